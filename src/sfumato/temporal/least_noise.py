r"""Budgets of least noise under correlation, and how much less noise there could be.

A loss function lies above a line through the origin, $L(x) \ge s x$ up to $x = \alpha$, so

$$TPL_t \ge \sum_k w_{tk} \epsilon_k, \qquad
  w_{tk} = s_B^{t-k} \; (k \le t), \; s_F^{k-t} \; (k \ge t).$$

With these lines the least of $\sum_t 2/\epsilon_t^2$ is a convex problem, and any multipliers
$\lambda \ge 0$ of it prove that no budgets have less noise:

$$\sum_t 6 (g_t/4)^{2/3} - \alpha \sum_t \lambda_t, \qquad g = w^\top \lambda.$$
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache

import numpy as np

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.temporal.loss_function import LossFunction
from sfumato.temporal.over_time import temporal_leakage
from sfumato.temporal.temporal_budgets import paper_budgets, scaled_budgets

# Sequences up to this length are improved by a solver; the others are the best that is known.
_LONGEST = 96
_ROUNDING = 1e-9
# What a solver finds is taken in steps of this part of where it began.
_GRID = 2.0**20
# Steps of the search for multipliers, and a slope that is none.
_MOST_STEPS, _SETTLED = 500, 1e-9
# Part of a budget that the solver may leave.
_LEAST_PART = 1e-3


def least_noise_budgets(
    backward: LossFunction, forward: LossFunction, alpha: float, steps: int
) -> Floats:
    r"""Budgets of least total variance $\sum_t 2/\epsilon_t^2$ of Laplace noise, certified.

    The best of several that keep alpha: the largest constant, those of the paper, those of the
    convex problem behind `least_noise_bound`, and what a solver makes of the best of these.

    Examples:
        >>> chain = LossFunction.of([[0.99, 0.01], [0.01, 0.99]])
        >>> best = least_noise_budgets(chain, chain, 1.0, 5)
        >>> least = least_noise_bound(chain, chain, 1.0, 5)
        >>> least <= noise_variance(best) <= 1.1 * least
        True
    """
    length, level = checks.count("steps", steps), checks.positive("alpha", alpha)
    if length == 1:
        return np.array([level])
    shape = _budgets_of(*_multipliers(backward, forward, level, length))
    stretched = shape * (level / float(shape.max()))
    shaped = scaled_budgets(stretched, backward, forward, level)
    best = min(plain_budgets(backward, forward, level, length), shaped, key=noise_variance)
    if length > _LONGEST:
        return best
    # The solver is not trusted: what it found is scaled until it keeps alpha.
    improved = _improved(best, backward, forward, level)
    return min((best, scaled_budgets(improved, backward, forward, level)), key=noise_variance)


def plain_budgets(
    backward: LossFunction, forward: LossFunction, alpha: float, steps: int
) -> Floats:
    """The paper's budgets, or the largest constant where that has less noise; no solver.

    The paper's begin and end high and keep to the budget for ever in between, so they are good for
    long sequences of what is soon forgotten, and bad for short ones of what is not.

    Examples:
        >>> chain = LossFunction.of([[0.8, 0.2], [0.2, 0.8]])
        >>> plain_budgets(chain, chain, 1.0, 3).round(3)
        array([0.457, 0.457, 0.457])
    """
    length, level = checks.count("steps", steps), checks.positive("alpha", alpha)
    paper = paper_budgets(backward, forward, level, length)
    constant = scaled_budgets(np.full(length, level), backward, forward, level)
    return min(paper, constant, key=noise_variance)


class Allocation(StrEnum):
    """How budgets are spread over a known number of releases.

    Examples:
        >>> Allocation("least-noise") is Allocation.LEAST_NOISE
        True
    """

    PLAIN = "plain"
    """The paper's, or the largest constant where that has less noise."""
    LEAST_NOISE = "least-noise"
    """Of least total variance that a solver finds."""
    PAPER = "paper"
    """As the paper has them."""


_MAKERS = {
    Allocation.PLAIN: plain_budgets,
    Allocation.LEAST_NOISE: least_noise_budgets,
    Allocation.PAPER: paper_budgets,
}


@lru_cache(maxsize=4096)
def allocated_budgets(
    allocation: Allocation, backward: LossFunction, forward: LossFunction, alpha: float, steps: int
) -> Floats:
    """Budgets of an allocation; remembered, for every step of a plan asks for them."""
    return checks.read_only(_MAKERS[allocation](backward, forward, alpha, steps))


def least_noise_bound(
    backward: LossFunction, forward: LossFunction, alpha: float, steps: int
) -> float:
    """A total variance that no budgets with which no moment leaks more than alpha can go below.

    Examples:
        >>> least_noise_bound(LossFunction.unknown(), LossFunction.unknown(), 1.0, 5)
        10.0
    """
    length, level = checks.count("steps", steps), checks.positive("alpha", alpha)
    multipliers, slopes = _multipliers(backward, forward, level, length)
    # Nobody can spend more than alpha at a moment, whatever the solver found.
    plain = 2 * length / level**2
    return max(plain, -_negative_dual(multipliers, slopes, level)[0]) * (1 - _ROUNDING)


def noise_variance(epsilons: Floats) -> float:
    """Total variance of Laplace noise of scale `1/epsilon` at each release."""
    return float((2 / np.square(epsilons)).sum()) if epsilons.min() > 0 else math.inf


def _slope(loss: LossFunction, alpha: float) -> float:
    """The steepest line through the origin that a loss function lies above, up to alpha.

    Of each corner the quotient of loss and leakage rises and then falls, so it is least at an end.
    """
    growth = portable.expm1(min(alpha, 700.0))
    at_end = portable.log1p(loss.gaps * growth / (1 + loss.bases * growth)) / alpha
    return float(np.minimum(loss.gaps, at_end).max(initial=0.0)) * (1 - _ROUNDING)


def _multipliers(
    backward: LossFunction, forward: LossFunction, alpha: float, length: int
) -> tuple[Floats, tuple[float, float]]:
    """Multipliers of the convex problem, good ones; nothing rests on how good."""
    slopes = (_slope(backward, alpha), _slope(forward, alpha))
    start = np.ones(length)
    ends = 6 * portable.power(_told(start, slopes[::-1]) / 4, 2 / 3)
    # Of all multiples of one vector the best is known.
    part = 2 * float(ends.sum()) / (3 * alpha * length)
    start *= part * part * part
    found = _least(lambda parts: _negative_dual(parts * start, slopes, alpha, start), length)
    return found * start, slopes


def _least(function: Callable[[Floats], tuple[float, Floats]], length: int) -> Floats:
    """Where a convex function of parts that are not negative is least, begun at ones.

    Projected gradients with the step lengths of Barzilai and Borwein, in fixed order: a minimiser
    of a library takes other steps on another processor, and stops elsewhere by more than a grid.
    """
    here = best = np.ones(length)
    value, slope = function(here)
    lowest, step = value, 1 / float(np.abs(slope).max(initial=_ROUNDING))
    last = [value]
    for _ in range(_MOST_STEPS):
        way = np.maximum(here - step * slope, 0.0) - here
        if float(np.abs(way).max()) <= _SETTLED * min(step, 1.0):
            break
        descent, part = float((slope * way).sum()), 1.0
        while (tried := function(here + part * way))[0] > max(last) + 1e-4 * part * descent:
            part /= 2
            if part < _ROUNDING:
                return best
        moved, turned = part * way, tried[1] - slope
        here, value, slope = here + moved, *tried
        if value < lowest:
            best, lowest = here, value
        last = [*last[-9:], value]
        curved = float((moved * turned).sum())
        step = min(float((moved * moved).sum()) / curved, 1e10) if curved > 0 else 1e10
    return best


def _told(values: Floats, slopes: tuple[float, float]) -> Floats:
    """Sums over the past with powers of the one slope, and over the future of the other."""
    from scipy import signal  # at first use: it takes half a second to load

    past = signal.lfilter([1.0], [1.0, -slopes[0]], values)
    future = signal.lfilter([1.0], [1.0, -slopes[1]], values[::-1])[::-1]
    return np.asarray(past + future - values)


def _negative_dual(
    multipliers: Floats, slopes: tuple[float, float], alpha: float, scale: Floats | float = 1.0
) -> tuple[float, Floats]:
    """What multipliers prove, and how it changes with them, both negated for a minimiser."""
    prices = np.maximum(_told(multipliers, slopes[::-1]), 1e-300)
    proven = 6 * float(portable.power(prices / 4, 2 / 3).sum()) - alpha * float(multipliers.sum())
    budgets = portable.power(4 / prices, 1 / 3)
    return -proven, np.asarray((alpha - _told(budgets, slopes)) * scale)


def _budgets_of(multipliers: Floats, slopes: tuple[float, float]) -> Floats:
    """The best budgets at the prices that multipliers put on them."""
    prices = _told(multipliers, slopes[::-1])
    return portable.power(4 / np.maximum(prices, 1e-9 * float(prices.max())), 1 / 3)


def _improved(start: Floats, backward: LossFunction, forward: LossFunction, alpha: float) -> Floats:
    """A local optimum, in parts of the budgets it begins with; nothing rests on the solver."""
    before = noise_variance(start)

    def room(parts: Floats) -> Floats:
        return np.asarray(1 - temporal_leakage(parts * start, backward, forward).total / alpha)

    def slopes(parts: Floats) -> Floats:
        told = temporal_leakage(parts * start, backward, forward)
        past = _chained([backward.slope(level) for level in told.backward[:-1]])
        future = _chained([forward.slope(level) for level in told.forward[:0:-1]])[::-1, ::-1]
        return np.asarray((np.eye(start.size) - past - future) * start / alpha)

    from scipy import optimize  # at first use: it takes half a second to load

    found = optimize.minimize(
        lambda parts: noise_variance(parts * start) / before,
        np.ones(start.size),
        jac=lambda parts: -4 / (parts * parts * parts * start**2) / before,
        bounds=[(_LEAST_PART, alpha / least) for least in start.tolist()],
        constraints=[{"type": "ineq", "fun": room, "jac": slopes}],
        method="SLSQP",
        options={"maxiter": 200, "ftol": 1e-12},
    )
    return np.asarray(np.clip(_on_grid(found.x) * start, _LEAST_PART * start, alpha))


def _on_grid(parts: Floats) -> Floats:
    """What a solver found, to six digits: its last ones depend on the machine."""
    return np.asarray(np.rint(parts * _GRID) / _GRID)


def _chained(slopes: list[float]) -> Floats:
    """How each leakage changes with each earlier budget: products of the slopes between them."""
    size = len(slopes) + 1
    table = np.eye(size)
    for row in range(1, size):
        table[row, :row] = table[row - 1, :row] * slopes[row - 1]
    return table
