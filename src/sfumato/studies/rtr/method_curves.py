"""Methods side by side on one series, at equal privacy by three yardsticks.

Everything protects a person who may be in every value. The paper's left plots give pure methods the
same epsilon, their budgets added up; its right plots give Laplace noise the variance of Gaussian
noise. The third yardstick is ours: the same epsilon and delta, each noise by its exact curve.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.studies.rtr import series_errors as errors
from sfumato.studies.rtr.laplace_curve import composed_epsilon
from sfumato.studies.rtr.series_points import DELTA, Budget, Error, SeriesPoint, paper_error

RATIOS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Deviations of independent Gaussian noise, in those of the series."""
RUNS, FEW = 40, 6
SMOOTHED = 6
"""Runs that are also looked at once more, when complete."""


class Yardstick(StrEnum):
    """What equal privacy means."""

    SUM = "same epsilon, pure budgets added up"
    VARIANCE = "Laplace noise of equal variance"
    EXACT = "same epsilon and delta, exact curves"


class Method(StrEnum):
    """What is compared."""

    GAUSSIAN = "Gaussian noise"
    LAPLACE = "Laplace noise"
    PAPER = "published, weight of Thm 6.1 and 6.2"
    LIMITED = "published, the same, correlation at most 1"
    BEST = "published, best weight"
    FAST = "FAST"
    FOURIER = "Fourier (needs all values)"
    BANK = "Sfumato"
    SEASONAL = "Sfumato with a period"
    SMOOTHED = "Sfumato, once complete"


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A series to be released.

    Attributes:
        figure: In the paper.
        name: Of the series.
        values: Of the series.
        period: Phases that a seasonal bank learns.
        phases: Of each value; in turn if not given.
        ratios: Deviations of the noise, in those of the series.
    """

    figure: str
    name: str
    values: Floats
    period: int
    phases: Ints | None = None
    ratios: Sequence[float] = field(default=RATIOS)

    def point(
        self, panel: str, method: str, x: float, error: Error, epsilon: float, delta: float
    ) -> SeriesPoint:
        """A number of this series."""
        told = (error.root, error.spread, float(self.values.std()))
        relative = paper_error(error.root, self.values)
        return SeriesPoint(
            self.figure, panel, self.name, method, x, *told, relative, epsilon, delta
        )


def curve_points(
    task: Task, runs: int, seed: int, progress: Callable[[], None] = lambda: None
) -> list[SeriesPoint]:
    """All methods at all noises by all yardsticks; x is the epsilon of the whole series."""
    points: list[SeriesPoint] = []
    for place, ratio in enumerate(task.ratios):
        budget = Budget.with_noise(ratio * float(task.values.std()), task.values.size)
        draw = np.random.default_rng([seed, place])
        ours = _approximate(task, budget, runs, draw)
        for yardstick in Yardstick:
            kept = (budget.epsilon, budget.epsilon, budget.delta)
            points += [
                task.point(yardstick, method, kept[0], error, *kept[1:])
                for method, error in ours.items()
            ]
            points += _pure(task, budget, yardstick)
        progress()
    return points


def _approximate(
    task: Task, budget: Budget, runs: int, draw: np.random.Generator
) -> dict[str, Error]:
    """Errors of all that is made of Gaussian noise: the same by every yardstick."""
    values = task.values
    seen = errors.measured(values, budget, errors.check_runs(runs), draw)
    asked, best, _ = errors.rule_errors(values, seen, budget)
    limited, _, _ = errors.rule_errors(values, seen, budget, limit=1.0)
    phases = None if task.phases is None else task.phases.tolist()
    return {
        Method.GAUSSIAN: Error(budget.deviation),
        Method.PAPER: asked,
        Method.LIMITED: limited,
        Method.BEST: best,
        Method.BANK: errors.bank_error(values, seen, budget),
        Method.SEASONAL: errors.seasonal_error(values, seen, budget, task.period, phases),
        Method.SMOOTHED: errors.smoother_error(values, seen[:, :SMOOTHED], budget),
    }


def _pure(task: Task, budget: Budget, yardstick: Yardstick) -> list[SeriesPoint]:
    """Laplace noise and what is made of it, with what it keeps by the yardstick."""
    sums = {
        Yardstick.SUM: budget.epsilon,
        Yardstick.VARIANCE: budget.matched_epsilon,
        Yardstick.EXACT: budget.exact_epsilon,
    }
    total, values = sums[yardstick], task.values
    if yardstick is Yardstick.SUM:
        kept, whole = (budget.epsilon, 0.0), (budget.epsilon, 0.0)
    elif yardstick is Yardstick.VARIANCE:
        # What equal variance comes to: the paper calls all of these as private as the others.
        each = total / values.size
        kept, whole = (composed_epsilon(each, values.size, DELTA), DELTA), (total, 0.0)
    else:
        kept = whole = (budget.epsilon, budget.delta)
    fourier = (
        errors.gaussian_fourier_error(values, budget)
        if yardstick is Yardstick.EXACT
        else errors.fourier_error(values, budget, total)
    )
    x = budget.epsilon
    return [
        task.point(yardstick, Method.LAPLACE, x, errors.laplace_error(budget, total), *kept),
        task.point(yardstick, Method.FAST, x, errors.fast_error(values, budget, total), *kept),
        task.point(yardstick, Method.FOURIER, x, fourier, *whole),
    ]
