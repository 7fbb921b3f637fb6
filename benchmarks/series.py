"""Series of numbers: values a second, many series together and one alone.

Ratios to limits and peers of the same run: numpy adding normal numbers of its own (no privacy:
which floats come out tells what went in), and OpenDP's Gaussian measurement, value by value and
for a whole moment. Processor seconds, one core.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from unittest import mock

import numpy as np
import opendp.prelude as dp
from numpy.typing import NDArray

from sfumato.core.randomness import secure
from sfumato.noise import curves, densities
from sfumato.series.autoregressive import Autoregressive
from sfumato.series.filter_banks import learned
from sfumato.series.filters import Estimate, kalman, one_lag, plain
from sfumato.series.realtime import Realtime

Floats = NDArray[np.float64]
SERIES, TIMES, LONG, LIVE = 10_000, 100, 200_000, 20_000
NESTED = 134_282
"""Evaluations of the curve when one bisection was within another."""


def rate(values: int, run: Callable[[], object]) -> float:
    """Values a processor second; the best of two runs."""
    spent = []
    for _ in range(2):
        began = time.process_time()
        run()
        spent.append(time.process_time() - began)
    return values / min(spent)


def method(length: int, estimate: Estimate) -> Realtime:
    """Noise of about the signal's variance."""
    return Realtime.gaussian(0.05, epsilon=1.0, delta=1e-6, length=length, estimate=estimate)


def opendp_rates(deviation: float) -> tuple[float, float]:
    """OpenDP's Gaussian noise on one value at a time, and on all series of a moment."""
    dp.enable_features("contrib")
    one = dp.m.make_gaussian(
        dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=deviation
    )
    many = dp.m.make_gaussian(
        dp.vector_domain(dp.atom_domain(T=float, nan=False)),
        dp.l2_distance(T=float),
        scale=deviation,
    )
    row = np.zeros(SERIES).tolist()
    alone = rate(2_000, lambda: [one(0.0) for _ in range(2_000)])
    return alone, rate(2 * SERIES, lambda: [many(row) for _ in range(2)])


def main() -> None:
    """Print the tables."""
    rng = np.random.default_rng(1)
    model = Autoregressive(0.0, [0.9], 0.19)
    table = rng.normal(size=(TIMES, SERIES))
    estimates = {
        "noise alone": plain(),
        "published (one lag)": one_lag(),
        "Kalman, known process": kalman(model),
        "learned (bank of 154 filters)": learned(),
    }
    deviation = float(method(TIMES, plain()).variances[0] ** 0.5)
    alone, many = opendp_rates(deviation)
    limit = rate(
        table.size, lambda: table + deviation * np.random.default_rng().normal(size=table.shape)
    )
    print(f"## {SERIES:,} series together, {TIMES} moments\n")
    print("| method | values/s | part of numpy's | times OpenDP's |")
    print("|---|---|---|---|")
    for name, estimate in estimates.items():
        made = method(TIMES, estimate)
        made.release_many(table[:2], secure())
        found = rate(table.size, lambda made=made: made.release_many(table, secure()))
        print(f"| {name} | {found:,.0f} | {found / limit:.2f} | {found / many:,.1f} |")
    print(f"| numpy, normal numbers (not private) | {limit:,.0f} | 1 | |")
    print(f"| OpenDP, a moment at a time | {many:,.0f} | | 1 |")
    print("\n## One series\n")
    print("| method | whole series, values/s | live, values/s | live / OpenDP |")
    print("|---|---|---|---|")
    series = rng.normal(size=LONG)
    for name, estimate in estimates.items():
        made = method(LONG, estimate)
        whole = rate(LONG, lambda made=made: made.release(series, secure()))
        live = rate(LIVE, lambda made=made: _live(made, series[:LIVE]))
        print(f"| {name} | {whole:,.0f} | {live:,.0f} | {live / alone:.1f} |")
    print(f"| OpenDP, a value at a time | | {alone:,.0f} | 1 |")
    print("\n## Calibration of Gaussian noise for 8 counts\n")
    asked = calls_of_calibration()
    print(f"{asked:,} evaluations of the curve; a search within a search took {NESTED:,}")


def calls_of_calibration() -> int:
    """How often the Gaussian curve is evaluated to find the noise of 8 counts."""
    curve = densities.local_gaussian_delta
    with mock.patch.object(curves, "local_gaussian_delta", wraps=curve) as asked:
        Realtime.gaussian(1.0, epsilon=1.0, delta=1e-6, length=8)
    return asked.call_count


def _live(made: Realtime, values: Floats) -> None:
    running = made.begin(secure())
    for value in values.tolist():
        running.step(value)


if __name__ == "__main__":
    main()
