"""What stands around the solvers of a design: put together; round, certify and bound.

These are separate calls, and so are the solvers: a compiled function is optimised together with
all that it calls, so a single one for everything would take a minute to build.
"""

from __future__ import annotations

import numpy as np

from sfumato.core.array_loops import divide_by_sums, largest, least_place, taken
from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit
from sfumato.core.portable_loops import exp
from sfumato.solver.certificate_loops import rounded, undusted
from sfumato.solver.column_loops import column_generation, gathered_at

_UNIT = 2.0**-53
# A column worth less than this part of the largest loss is not worth adding.
_WORTHLESS = 1e-11


@njit(cache=True, error_model="numpy")
def from_columns(
    share: Floats,
    loss: Floats,
    epsilon: float,
    settled: float,
    pivots: int,
    starts: Floats,
    names: Ints,
) -> tuple[bool, Floats, Floats]:
    """Column generation, and its columns put together.

    Args:
        share: The belief, summing to 1.
        loss: Row = true symbol, column = candidate output.
        epsilon: Budget for the leakage under the belief.
        settled: Part of the cost that the gap may be.
        pivots: Give up after so many.
        starts: Columns to begin with; may have none.
        names: Their outputs.

    Returns:
        Whether it ended, float rows, and prices of the true symbols.
    """
    size, outputs = loss.shape
    high, least = 1 / (exp(epsilon) + 1), _WORTHLESS * largest(loss)
    columns, released, weights, prices, done = column_generation(
        share, loss, high, least, pivots, settled, starts, names
    )
    rows = np.zeros((size, outputs))
    for j in range(size):
        if weights[j] > 0.0 and released[j] >= 0:
            for x in range(size):
                rows[x, released[j]] += weights[j] * columns[j, x]
    divide_by_sums(rows)
    return done >= 0, rows, prices


@njit(cache=True, error_model="numpy")
def blended(share: Floats, coupling: Floats, k: float) -> Floats:
    """The channel of a coupling: with probability 1/k it releases a draw that ignores the truth."""
    size, outputs = coupling.shape
    marginal, rows = np.zeros(outputs), np.empty((size, outputs))
    for x in range(size):
        rows[x] = coupling[x] / coupling[x].sum()
        for y in range(outputs):
            marginal[y] += share[x] * rows[x, y]
    for x in range(size):
        for y in range(outputs):
            rows[x, y] = marginal[y] / k + (1 - 1 / k) * rows[x, y]
    return rows


@njit(cache=True, error_model="numpy")
def finished(
    belief: Floats,
    share: Floats,
    loss: Floats,
    rows: Floats,
    prices: Floats,
    epsilon: float,
    ldp: float,
) -> tuple[bool, Ints, Ints, float, float, float, float]:
    """A channel ready to be sampled, next to float rows.

    Args:
        belief: Probability of each true symbol; need not sum to 1 exactly.
        share: The same, divided by its sum.
        loss: Row = true symbol, column = released one.
        rows: Of the same shape, each summing to 1.
        prices: Of the true symbols, from which the floor is computed.
        epsilon: Budget for the leakage under the belief.
        ldp: Model-free budget; infinite if there is none.

    Returns:
        Whether it keeps its budgets; weights, the outputs of their columns, both leakages, rounded
        up, the expected loss, and a floor under that of every channel within the budget.
    """
    merged, outputs = undusted(rows, share, loss)
    fits, weights, columns, under_belief, model_free = rounded(merged, belief, epsilon, ldp)
    outputs = taken(outputs, columns)
    cost = expected(weights, outputs, share, loss)
    floor = max(0.0, bound_at(prices, share, loss, epsilon))
    # A constant that costs no more tells nothing.
    best, least = best_constant(share, loss)
    if least <= cost:
        weights, outputs = np.empty((belief.size, 1), np.int64), np.empty(1, np.int64)
        outputs[0] = best
        for x in range(belief.size):
            weights[x, 0] = 2**62
        cost, under_belief, model_free = least, 0.0, 0.0
    return fits, weights, outputs, under_belief, model_free, cost, floor


@njit(cache=True, error_model="numpy")
def best_constant(share: Floats, loss: Floats) -> tuple[int, float]:
    """The output of least mean loss, and that loss."""
    means = np.zeros(loss.shape[1])
    for x in range(share.size):
        for y in range(means.size):
            means[y] += share[x] * loss[x, y]
    best = least_place(means)
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
    k = exp(epsilon)
    means, parts = gathered_at(share, loss, prices, 1 / (k + 1))
    paid, scale, least = 0.0, 0.0, np.inf
    for x in range(share.size):
        paid += share[x] * prices[x]
        scale = max(scale, abs(prices[x]))
    for y in range(means.size):
        least = min(least, means[y] / k + (k - 1 / k) * parts[y])
    error = (16 * share.size + 64) * _UNIT * (largest(loss) + scale)
    return float(paid + least - error)


@njit(cache=True, error_model="numpy")
def is_belief(vector: Floats, least: float, tolerance: float) -> bool:
    """Whether no entry is under `least` and the sum is 1 within the tolerance."""
    total, fine = 0.0, True
    for x in range(vector.size):
        fine = fine and vector[x] >= least
        total += vector[x]
    return fine and abs(total - 1.0) <= tolerance
