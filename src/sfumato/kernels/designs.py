"""A whole design in one compiled call: solve, tidy up, round, certify, bound."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.kernels.certificates import rounded, undusted
from sfumato.kernels.columns import column_generation, gathered_at

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_UNIT = 2.0**-53
_WORTHLESS = 1e-11
"""A column worth less than this part of the largest loss is not worth adding."""


@njit(cache=True, error_model="numpy")
def from_columns(
    share: Floats, loss: Floats, epsilon: float, settled: float
) -> tuple[bool, Floats, Floats]:
    """Column generation, and its columns put together: whether it ended, float rows, prices."""
    size, outputs = loss.shape
    columns, told, weights, prices, pivots = column_generation(
        share,
        loss,
        1 / (math.exp(epsilon) + 1),
        _WORTHLESS * loss.max(),
        60 * size + 200,
        settled,
    )
    rows = np.zeros((size, outputs))
    for j in range(size):
        if weights[j] > 0.0 and told[j] >= 0:
            for x in range(size):
                rows[x, told[j]] += weights[j] * columns[j, x]
    for x in range(size):
        rows[x] /= rows[x].sum()
    return pivots >= 0, rows, prices


@njit(cache=True, error_model="numpy")
def designed(
    belief: Floats, loss: Floats, epsilon: float, ldp: float, settled: float
) -> tuple[bool, Ints, Ints, float, float, float, float]:
    """The optimal channel of a small alphabet, ready to be sampled.

    Args:
        belief: Probability of each true symbol; need not sum to 1 exactly.
        loss: Row = true symbol, column = released one.
        epsilon: Budget for the leakage under the belief.
        ldp: Model-free budget, which only guides the rounding; infinite if there is none.
        settled: Part of the cost that the gap may be.

    Returns:
        Whether it succeeded; weights, the outputs of their columns, both leakages, rounded up,
        the expected loss, and a floor under that of every channel within the budget.
    """
    total = 0.0
    for x in range(belief.size):
        total += belief[x]
    share = belief / total
    good, rows, prices = from_columns(share, loss, epsilon, settled)
    rows, outputs = undusted(rows, share, loss)
    fits, weights, kept, under_belief, model_free = rounded(rows, belief, epsilon, ldp)
    outputs = outputs[kept]
    cost = expected(weights, outputs, share, loss)
    floor = max(0.0, bound_at(prices, share, loss, epsilon))
    # A constant that costs no more tells nothing.
    best, least = best_constant(share, loss)
    if least <= cost:
        weights, outputs = np.full((belief.size, 1), 2**62), np.full(1, best)
        cost, under_belief, model_free = least, 0.0, 0.0
    return good and fits, weights, outputs, under_belief, model_free, cost, floor


@njit(cache=True, error_model="numpy")
def best_constant(share: Floats, loss: Floats) -> tuple[int, float]:
    """The output of least mean loss, and that loss."""
    means = np.zeros(loss.shape[1])
    for x in range(share.size):
        for y in range(means.size):
            means[y] += share[x] * loss[x, y]
    best = int(np.argmin(means))
    return best, means[best]


@njit(cache=True, error_model="numpy")
def expected(weights: Ints, outputs: Ints, share: Floats, loss: Floats) -> float:
    """Mean loss of integer weights."""
    cost = 0.0
    for x in range(share.size):
        row = 0.0
        for y in range(outputs.size):
            row += float(weights[x, y]) * loss[x, outputs[y]]
        cost += share[x] * row * 2.0**-62
    return cost


@njit(cache=True, error_model="numpy")
def bound_at(prices: Floats, share: Floats, loss: Floats, epsilon: float) -> float:
    """`dual_bound` without a cap: a floor that holds for any prices, rounded down."""
    k = math.exp(epsilon)
    means, parts = gathered_at(share, loss, prices, 1 / (k + 1))
    paid, scale, least = 0.0, 0.0, np.inf
    for x in range(share.size):
        paid += share[x] * prices[x]
        scale = max(scale, abs(prices[x]))
    for y in range(means.size):
        least = min(least, means[y] / k + (k - 1 / k) * parts[y])
    error = (16 * share.size + 64) * _UNIT * (loss.max() + scale)
    return float(paid + least - error)


@njit(cache=True, error_model="numpy")
def is_belief(vector: Floats, least: float, tolerance: float) -> bool:
    """Whether no entry is under `least` and the sum is 1 within the tolerance."""
    total, fine = 0.0, True
    for x in range(vector.size):
        fine = fine and vector[x] >= least
        total += vector[x]
    return fine and abs(total - 1.0) <= tolerance
