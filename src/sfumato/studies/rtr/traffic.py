"""Traffic of New York by the hour: Figures 4, 5 and 6 of RTR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.plots.colours import GREY
from sfumato.studies.data.series_data import HOURS, hourly_traffic
from sfumato.studies.rtr import series_errors as errors
from sfumato.studies.rtr.method_claims import method_claims
from sfumato.studies.rtr.method_curves import FEW, RUNS, Method, Task, Yardstick, curve_points
from sfumato.studies.rtr.point_table import curve, records, table
from sfumato.studies.rtr.private_sequences import Plot, all_sequences, sequence_claim
from sfumato.studies.rtr.series_drawings import (
    LOOKS,
    Look,
    Panel,
    draw_curves,
    draw_methods,
    draw_sequences,
)
from sfumato.studies.rtr.series_points import Budget, SeriesPoint
from sfumato.studies.rtr.study_steps import Steps
from sfumato.studies.study import Claim, Findings, Setting, Work, verdict, verdict_of

DELAYS = (1, 2, 3, 6, 12, 24, 48, 168)
"""Values of a block that leave together, and the whole series after them."""
_BLOCKS = "Fourier in blocks"
_FAIR = "Fourier in blocks, Gaussian noise"
_DELAY_NOISE = 0.5
_WEEK = 7 * HOURS


def prepare(setting: Setting) -> Work:
    """Errors against epsilon and delay, and private sequences."""
    data = hourly_traffic(setting)
    values = data.values[: 14 * HOURS] if setting.quick else data.values
    runs = FEW if setting.quick else RUNS
    task = Task("4", data.name, values, HOURS)

    def run(show: Callable[[int], None]) -> Findings:
        step = Steps(show)
        points = curve_points(task, runs, setting.seed, step)
        delayed = delay_points(replace(task, figure="5"), runs, setting.seed)
        step()
        size = values.size
        plots = [
            Plot.same_epsilon("6", _each(values), size),
            Plot.same_variance("6", (_DELAY_NOISE * float(values.std())) ** 2, size),
        ]
        shown, released = all_sequences(partial(_shown_in, task), plots, setting.seed)
        step()
        everything = [*points, *delayed, *shown]
        heads, rows = table(points)
        return Findings(
            title="errors in parts of a constant's, by epsilon of the whole series",
            columns=heads,
            rows=rows,
            records=records(everything),
            facts=facts(values, points),
            pictures={
                "methods": partial(draw_methods, points, task.name),
                "delays": partial(_draw_delays, delayed),
                "sequences": partial(draw_sequences, values[:_WEEK], released, unit="cars an hour"),
            },
            claims=[
                *method_claims("RTR 4", points, task.name),
                *delay_claims(delayed),
                sequence_claim(
                    "RTR 6",
                    shown,
                    "sequences of the rule are nearer to the truth than those of noise and FAST",
                    (Method.GAUSSIAN, Method.LAPLACE, Method.FAST),
                ),
            ],
            stand_ins=[data.name] if data.stand_in else [],
            captions={
                "methods": "RTR 4 by three yardsticks of equal privacy",
                "delays": f"RTR 5: noise of {_DELAY_NOISE} of the deviation of the series",
                "sequences": "RTR 6: the first week; mean and range of ten releases",
            },
        )

    return Work(len(task.ratios) + 2, run)


def _shown_in(task: Task, figure: str) -> Task:
    return replace(task, figure=figure)


def _each(values: Floats) -> float:
    """Epsilon of a value with which independent Gaussian noise is half of the series' deviation."""
    budget = Budget.with_noise(_DELAY_NOISE * float(values.std()), values.size)
    return budget.epsilon / values.size


def delay_points(task: Task, runs: int, seed: int) -> list[SeriesPoint]:
    """Fourier in blocks against the delay; the others stand beside it as level lines."""
    values = task.values
    budget = Budget.with_noise(_DELAY_NOISE * float(values.std()), values.size)
    delays = [delay for delay in DELAYS if delay < values.size]
    seen = errors.measured(values, budget, runs, np.random.default_rng([seed, 5]))
    _, best, _ = errors.rule_errors(values, seen, budget)
    total, kept = budget.matched_epsilon, (budget.epsilon, budget.delta)
    level = {
        Method.LAPLACE: (errors.laplace_error(budget, total), total, 0.0),
        Method.FOURIER: (errors.fourier_error(values, budget, total), total, 0.0),
        Method.BEST: (best, *kept),
        Method.BANK: (errors.bank_error(values, seen, budget), *kept),
    }
    points = []
    for delay in [*delays, values.size]:
        blocks = errors.fourier_error(values, budget, total, delay)
        fair = errors.gaussian_fourier_error(values, budget, delay)
        points.append(task.point("delay", _BLOCKS, delay, blocks, total, 0.0))
        points.append(task.point("delay", _FAIR, delay, fair, *kept))
        points += [task.point("delay", name, delay, *told) for name, told in level.items()]
    return points


def delay_claims(points: list[SeriesPoint]) -> list[Claim]:
    """What the paper says of Figure 5."""
    blocks, fair = curve(points, _BLOCKS), curve(points, _FAIR)
    laplace, rule = (curve(points, name)[0] for name in (Method.LAPLACE, Method.BEST))
    first = blocks[0].error / laplace.error
    steps = [b.error <= 1.005 * a.error for a, b in pairwise(blocks)]
    falls = [blocks[-1].error < blocks[0].error, all(steps)]
    crossed = [point.x for point in blocks if point.error < rule.error]
    fairly = [point.x for point in fair if point.error < rule.error]
    later = f"from {fairly[0]:g} at the same epsilon and delta" if fairly else "never fairly"
    meets = f"from a delay of {crossed[0]:g} values, {later}" if crossed else "at no delay"
    return [
        Claim(
            "RTR 5",
            "Fourier without delay is Laplace noise",
            f"{first:.3f} times its error",
            verdict(abs(first - 1) < 0.05),
        ),
        Claim(
            "RTR 5",
            "longer delays err less",
            ", ".join(f"{point.x:g}: {point.of_silence:.3g}" for point in blocks),
            verdict_of(falls),
            "" if all(falls) else "blocks that cut the day at odd hours need more coefficients",
        ),
        Claim(
            "RTR 5",
            "at some delay Fourier and the rule err alike",
            f"Fourier errs less {meets}",
            verdict(bool(crossed) and crossed[0] > 1),
        ),
    ]


def facts(values: Floats, points: list[SeriesPoint]) -> list[str]:
    """What follows from the numbers."""
    zeros = int((values == 0).sum())
    middle = curve(points, Method.BANK, Yardstick.EXACT)[3]
    laplace = [p for p in points if p.x == middle.x and p.method == Method.LAPLACE]
    equal = next(p for p in laplace if p.panel == Yardstick.VARIANCE)
    exact = next(p for p in laplace if p.panel == Yardstick.EXACT)
    whole = next(p for p in curve(points, Method.FOURIER, Yardstick.VARIANCE) if p.x == middle.x)
    return [
        f"{values.size} hours, 24 a day (the paper says 12AM to 1PM); {zeros} of them are 0: rows "
        "that stop at noon add nothing after it",
        "one person changes an hour by 1, as in the paper; a car that passes several counters in "
        "an hour changes the sum by more",
        f"at epsilon {middle.x:.3g} Laplace noise of the variance of the Gaussian keeps "
        f"{equal.epsilon:.3g} at the same delta, and Fourier a pure {whole.epsilon:.3g}; at the "
        f"same epsilon and delta Laplace noise is {exact.error / equal.error:.2f} times as "
        f"large; Theorem 5.1 would claim {Budget(middle.x, values.size).paper_epsilon:.3g} for the "
        "Gaussian noise",
    ]


def _draw_delays(points: list[SeriesPoint], path: Path) -> None:
    level = (Method.LAPLACE, Method.BEST, Method.BANK)
    looks: dict[str, Look] = {_BLOCKS: Look(GREY), _FAIR: Look(GREY, "--")}
    looks |= {name: replace(LOOKS[name], marker="") for name in level}
    panel = Panel("blocks of hours, each from its own frequencies", points, "hours of a block")
    draw_curves([panel], looks, path, columns=1)
