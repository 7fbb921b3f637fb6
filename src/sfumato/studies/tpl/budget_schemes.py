r"""Budgets that keep temporal leakage within a level, and their noise: TPL Figures 8 and 9.

*Figure 8*: budgets of each moment for a level of 1 under the matrices that are printed, and what
each moment then leaks. *Figure 9*: mean absolute noise of a count of sensitivity 1 for a level of
2: (a) against the number of releases, s = .001; (b) against s. Laplace noise, as in the paper,
$1/\epsilon_t$ on average; and the exact geometric noise of a release here, from the integers that
are sampled, and drawn.

Beside the paper's Algorithms 7 and 8: alpha/T at every moment, which needs no matrix (Corollary 1);
the largest constant for the number of releases; and budgets of least noise. All keep the level.

Not in the text and chosen here: 30 releases in Figure 8, 10 in 9b, matrices of 50 rows; and the
reading of `s` (see `smoothed_matrices`): both are computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.randomness import Randomness, seeded
from sfumato.noise.geometric import DiscreteLaplace
from sfumato.plots.points import MeasuredPoint, Point
from sfumato.studies.standard_error import standard_error
from sfumato.studies.tpl.smoothed_matrices import Reading, smoothed_loss
from sfumato.temporal.least_noise import least_noise_budgets
from sfumato.temporal.loss_function import LossFunction
from sfumato.temporal.over_time import temporal_leakage
from sfumato.temporal.temporal_budgets import allocate, paper_budgets, scaled_budgets

SHOWN_ALPHA, SHOWN_RELEASES = 1.0, 30
SHOWN = (((0.8, 0.2), (0.2, 0.8)), ((0.8, 0.2), (0.1, 0.9)))
"""Backward and forward matrix of Figure 8."""
ALPHA, SIZE = 2.0, 50
STRONG, SHORT = 0.001, 10
"""`s` of Figure 9a, releases of 9b."""
READINGS = {"printed": Reading.CELL, "s/50": Reading.FIFTIETH}
PLAIN = "α/T"
SEVEN, EIGHT, CONSTANT, LEAST = "Algorithm 7", "Algorithm 8", "largest constant", "least noise"
DRAWN = "least noise, geometric, drawn"


@dataclass(frozen=True, slots=True)
class Lengths:
    """How much is computed.

    Attributes:
        releases: Numbers of releases in Figure 9a.
        degrees: Of correlation in Figure 9b.
        draws: Runs of a release whose noise is drawn.
    """

    releases: tuple[int, ...] = (2, 3, 5, 10, 20, 30, 50, 70, 96)
    degrees: tuple[float, ...] = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
    draws: int = 400

    @property
    def steps(self) -> int:
        """Settings that budgets are sought for."""
        return 1 + len(READINGS) * (len(self.releases) + len(self.degrees))


QUICK = Lengths((2, 5, 10, 30), (0.001, 0.01, 0.1, 1.0), 100)

Scheme = Callable[[LossFunction, LossFunction, float, int], Floats]


def _forever(backward: LossFunction, forward: LossFunction, alpha: float, steps: int) -> Floats:
    return np.full(steps, allocate(backward, forward, alpha).constant)


def _even(backward: LossFunction, forward: LossFunction, alpha: float, steps: int) -> Floats:
    return np.full(steps, alpha / steps)


def _constant(backward: LossFunction, forward: LossFunction, alpha: float, steps: int) -> Floats:
    return scaled_budgets(np.full(steps, alpha), backward, forward, alpha)


SCHEMES: dict[str, Scheme] = {
    SEVEN: _forever,
    EIGHT: paper_budgets,
    PLAIN: _even,
    CONSTANT: _constant,
    LEAST: least_noise_budgets,
}


def figure_8() -> Iterator[Point]:
    """Budgets of every moment ("8"), and what each then leaks ("8, leakage").

    References:
        [TPL, Fig. 8], [TPL, Alg. 7], [TPL, Alg. 8]
    """
    backward, forward = (LossFunction.of(rows) for rows in SHOWN)
    for curve, scheme in SCHEMES.items():
        budgets = scheme(backward, forward, SHOWN_ALPHA, SHOWN_RELEASES)
        told = temporal_leakage(budgets, backward, forward).total
        for moment, (budget, leakage) in enumerate(zip(budgets, told, strict=True), 1):
            yield Point("8", curve, moment, float(budget))
            yield Point("8, leakage", curve, moment, float(leakage))


def short_sequences(releases: tuple[int, ...] = (2, 3, 5, 10, SHOWN_RELEASES)) -> Iterator[Point]:
    """Mean noise under the matrices of Figure 8, against the number of releases."""
    backward, forward = (LossFunction.of(rows) for rows in SHOWN)
    for steps in releases:
        for curve, scheme in SCHEMES.items():
            budgets = scheme(backward, forward, SHOWN_ALPHA, steps)
            yield Point("8, noise", curve, steps, laplace_noise(budgets))


def noise_points(
    panel: str, x: float, s: float, steps: int, name: str, draws: int, randomness: Randomness
) -> list[Point]:
    """Mean noise of every scheme in one setting of Figure 9.

    References:
        [TPL, Fig. 9]
    """
    loss = smoothed_loss(SIZE, s, READINGS[name])
    figure, points = f"{panel}, {name}", []
    for curve, scheme in SCHEMES.items():
        budgets = scheme(loss, loss, ALPHA, steps)
        points.append(Point(figure, curve, x, laplace_noise(budgets)))
        told = temporal_leakage(budgets, loss, loss).event.alpha
        points.append(Point(f"{figure}, leakage", curve, x, told))
    noises = [DiscreteLaplace.at(float(budget)) for budget in budgets]
    exact = float(np.mean([geometric_noise(noise) for noise in noises]))
    points.append(Point(figure, "least noise, geometric", x, exact))
    found = np.mean([np.abs(noise.draw(draws, randomness)) for noise in noises], axis=0)
    points.append(MeasuredPoint(figure, DRAWN, x, float(found.mean()), standard_error(found)))
    points.append(Point(figure, "no correlation", x, 1 / ALPHA))
    return points


def budget_points(
    lengths: Lengths, seed: int, progress: Callable[[int], None] | None = None
) -> list[Point]:
    """All points of Figures 8 and 9."""
    coins = seeded(seed)
    points = [*figure_8(), *short_sequences()]
    work = [
        partial(noise_points, "9a", steps, STRONG, steps, name, lengths.draws, coins)
        for name in READINGS
        for steps in lengths.releases
    ]
    work += [
        partial(noise_points, "9b", s, s, SHORT, name, lengths.draws, coins)
        for name in READINGS
        for s in lengths.degrees
    ]
    for done, one in enumerate(work, 2):
        points += one()
        if progress:
            progress(done)
    return points


def laplace_noise(budgets: Floats) -> float:
    """Mean absolute Laplace noise of a sequence, of a count that a person changes by 1."""
    return float(np.mean(1 / budgets))


def geometric_noise(noise: DiscreteLaplace) -> float:
    r"""Mean absolute value of two-sided geometric noise: $1/\sinh\epsilon$.

    Examples:
        >>> geometric_noise(DiscreteLaplace.at(2.0))  # Laplace noise: 0.5
        0.2757
    """
    return 1 / math.sinh(noise.step)
