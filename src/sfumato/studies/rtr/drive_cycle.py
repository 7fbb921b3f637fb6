"""Speeds of one car, released while it drives: Figure 14 of RTR.

The series is one person's own, so a value may change by the whole range of speeds, and she is in
every value: local privacy of a whole drive.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from scipy import optimize, special

from sfumato.core.arrays import Floats
from sfumato.series.filter_banks import learned
from sfumato.studies.data.series_data import SeriesData, ftp_speeds, udds_speeds
from sfumato.studies.rtr import series_errors as errors
from sfumato.studies.rtr.method_curves import FEW, Method, Task
from sfumato.studies.rtr.one_lag_rule import Rule, mean_squares
from sfumato.studies.rtr.point_table import curve, records, table, wins
from sfumato.studies.rtr.series_drawings import LOOKS, Panel, draw_curves, draw_sequences
from sfumato.studies.rtr.series_points import DELTA, Error, SeriesPoint
from sfumato.studies.rtr.study_steps import Steps
from sfumato.studies.study import Claim, Findings, Setting, Work, verdict, verdict_of

NOISES = (2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 500.0, 2000.0)
"""Deviations of independent noise, in mph."""
LEVELS = (20.0, 5.0)
"""Those of the two plots of the paper: strict above, lax below. It names neither."""
_RUNS, _SECONDS = 20, 500
_PRIVATE = 10.0
"""An epsilon above which one would hardly speak of privacy."""


def drive_epsilon(ratio: float, delta: float = DELTA) -> float:
    """Epsilon of a Gaussian mechanism of any ratio; the product's own curve ends at 2,000.

    Examples:
        >>> from sfumato.noise.curves import gaussian_epsilon
        >>> round(drive_epsilon(2.0) / gaussian_epsilon(2.0, DELTA), 6)
        1.0
    """

    def excess(epsilon: float) -> float:
        first = special.log_ndtr(ratio / 2 - epsilon / ratio)
        second = epsilon + special.log_ndtr(-ratio / 2 - epsilon / ratio)
        return float(first + np.log1p(-np.exp(min(second - first, 0.0))) - math.log(delta))

    # Ten deviations of the loss above its mean are more than any delta of a study.
    return float(optimize.brentq(excess, 1e-9, ratio**2 / 2 + 10 * ratio + 1, xtol=1e-9))


def prepare(setting: Setting) -> Work:
    """Errors against the noise on two cycles, and private drives at two levels."""
    read = [ftp_speeds(setting), udds_speeds(setting)]
    runs = FEW if setting.quick else _RUNS
    noises = NOISES[1::2] if setting.quick else NOISES

    def run(show: Callable[[int], None]) -> Findings:
        steps, points = Steps(show), list[SeriesPoint]()
        for data in read:
            for place, noise in enumerate(noises):
                draw = np.random.default_rng([setting.seed, place])
                points += cycle_points(data, noise, runs, draw)
                steps()
        drives = {f"noise {noise:g} mph": drive(read[0], noise, setting.seed) for noise in LEVELS}
        steps()
        heads, rows = table(points)
        return Findings(
            title="root mean squared error in parts of a constant's, by the noise in mph",
            columns=heads,
            rows=rows,
            records=records(points),
            facts=facts(points, read[0].values),
            pictures={
                "errors": partial(_draw, points),
                "drives": partial(
                    draw_sequences, read[0].values[:_SECONDS], drives, unit="mph, by second"
                ),
            },
            claims=claims(points),
            stand_ins=[data.name for data in read if data.stand_in],
            captions={
                "errors": "errors against the noise; the epsilon of a drive stands in the facts",
                "drives": "RTR 14: the first 500 seconds; mean and range of ten releases",
            },
        )

    return Work(2 * len(noises) + 1, run)


def _ratio(values: Floats, noise: float) -> float:
    """Of the whole drive: every speed may change by the range of speeds."""
    return float(values.max() - values.min()) * math.sqrt(values.size) / noise


def _errors(
    values: Floats, noise: float, runs: int, draw: np.random.Generator
) -> tuple[dict[str, Error], float]:
    """Errors of each method, and the best weight of the rule."""
    normals = draw.standard_normal((values.size, runs))
    rule = Rule(errors.WEIGHTS)
    released = rule.released(values, noise * errors.WEIGHTS[0], normals)
    squares = mean_squares(released, values)
    best = int(squares.mean(axis=1).argmin())
    bank = _filtered(values[:, None] + noise * normals, noise)
    return {
        Method.GAUSSIAN: Error(noise),
        Method.BEST: Error.of_runs(squares[best]),
        Method.BANK: Error.of_runs(np.square(bank - values[:, None]).mean(axis=0)),
    }, float(errors.WEIGHTS[0, best])


def _filtered(seen: Floats, noise: float) -> Floats:
    length, runs = seen.shape
    return learned().begin(runs).update(seen, np.ones(length), np.full(length, noise**2))


def cycle_points(
    data: SeriesData, noise: float, runs: int, draw: np.random.Generator
) -> list[SeriesPoint]:
    """All methods on one drive at one noise."""
    found, _ = _errors(data.values, noise, runs, draw)
    task = Task("14", data.name, data.values, 0)
    epsilon = drive_epsilon(_ratio(data.values, noise))
    return [
        task.point("drive", method, noise, error, epsilon, DELTA) for method, error in found.items()
    ]


def drive(data: SeriesData, noise: float, seed: int) -> dict[str, Floats]:
    """Ten private drives by each method."""
    values, draw = data.values, np.random.default_rng([seed, 14])
    _, weight = _errors(values, noise, 10, draw)
    normals = draw.standard_normal((values.size, 10))
    rule = Rule(np.array([[weight]]))
    return {
        Method.GAUSSIAN: values[:, None] + noise * normals,
        Method.BEST: rule.released(values, np.array([noise * weight]), normals)[:, 0],
        Method.BANK: _filtered(values[:, None] + noise * normals, noise),
    }


def claims(points: list[SeriesPoint]) -> list[Claim]:
    """What the paper says of Figure 14."""
    name = points[0].series
    rule, noise, bank = (
        curve(points, method, series=name) for method in (Method.BEST, Method.GAUSSIAN, Method.BANK)
    )
    won = wins(rule, noise)
    useful = [point for point in bank if point.of_silence < 1]
    least = min(point.epsilon for point in useful)
    private = [point for point in [*rule, *bank] if point.epsilon <= _PRIVATE]
    helped = [point.of_silence < 1 for point in private]
    worst = max((point.epsilon for point in private), default=math.nan)
    seen = f"{name}: some release errs less than a constant only from epsilon {least:,.0f} on"
    if private:
        seen += f"; at epsilon {worst:.3g} the best errs "
        seen += f"{min(p.of_silence for p in private):.2f} times as much as a constant"
    return [
        Claim(
            "RTR 14",
            "private speeds by the rule are nearer to the drive than noise",
            f"{name}: nearer at {sum(won)} of {len(won)} noises; at "
            + ", ".join(
                f"{a.x:g} mph {a.error:.3g} against {b.error:.3g}"
                for a, b in zip(rule, noise, strict=True)
                if a.x in LEVELS
            ),
            verdict_of(won),
        ),
        Claim(
            "RTR 14",
            "the private drive is accurate enough to be followed",
            seen,
            verdict(bool(helped) and any(helped)),
            "erratum N64: the sensitivity is the range of speeds at every second",
        ),
    ]


def facts(points: list[SeriesPoint], values: Floats) -> list[str]:
    """Which privacy the noises are."""
    said = ", ".join(
        f"{point.x:g} mph: {point.epsilon:,.3g}"
        for point in curve(points, Method.GAUSSIAN, series=points[0].series)
    )
    return [
        f"{points[0].series}: {values.size} seconds, speeds up to {values.max():g} mph, which is "
        "the sensitivity of each",
        f"epsilon of the whole drive at delta {DELTA:g}, by noise: {said}",
    ]


def _draw(points: list[SeriesPoint], path: Path) -> None:
    panels = [
        Panel(name, [p for p in points if p.series == name], "independent noise (mph)")
        for name in dict.fromkeys(p.series for p in points)
    ]
    names = (Method.GAUSSIAN, Method.BEST, Method.BANK)
    draw_curves(panels, {name: LOOKS[name] for name in names}, path, columns=2)
