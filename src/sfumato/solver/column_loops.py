"""Loops of the design: the cheapest columns of a channel, and the channel made of them."""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit
from sfumato.solver.simplex_loops import POOLED, cheapest_mixture


@njit(cache=True, error_model="numpy")
def gathered_at(
    belief: Floats, loss: Floats, prices: Floats, share: float
) -> tuple[Floats, Floats]:
    """For each output, the mean surplus and the part of it on the cheapest `share` of the belief.

    Selection in linear time: the symbols are split around a pivot until the share is met. Prices
    that are no numbers give values that are none.
    """
    size, outputs = loss.shape
    means, parts = np.zeros(outputs), np.zeros(outputs)
    keys, masses = np.empty(size), np.empty(size)
    for y in range(outputs):
        for x in range(size):
            keys[x], masses[x] = loss[x, y] - prices[x], belief[x]
            means[y] += keys[x] * masses[x]
        # An infinity among the keys may hide in the mean only as another one.
        parts[y] = _gathered(keys, masses, share) if np.isfinite(means[y]) else np.nan
    return means, parts


@njit(cache=True, error_model="numpy")
def _gathered(keys: Floats, masses: Floats, share: float) -> float:
    low, high, need, gathered = 0, keys.size, share, 0.0
    while high - low > 1:
        pivot = keys[(low + high) // 2]
        below, left, worth = low, 0.0, 0.0
        for i in range(low, high):
            if keys[i] < pivot:
                keys[i], keys[below] = keys[below], keys[i]
                masses[i], masses[below] = masses[below], masses[i]
                left += masses[below]
                worth += masses[below] * keys[below]
                below += 1
        if left >= need:
            high = below
            continue
        same, equal = below, 0.0
        for i in range(below, high):
            if keys[i] == pivot:
                keys[i], keys[same] = keys[same], keys[i]
                masses[i], masses[same] = masses[same], masses[i]
                equal += masses[same]
                same += 1
        gathered += worth + min(equal, need - left) * pivot
        need -= left + equal
        low = same
        if need <= 0.0:
            break
    if need > 0.0 and high - low == 1:
        gathered += min(need, masses[low]) * keys[low]
    return gathered


@njit(cache=True, error_model="numpy")
def column_generation(
    belief: Floats,
    loss: Floats,
    share: float,
    tolerance: float,
    max_pivots: int,
    settled: float,
    starts: Floats,
    names: Ints,
) -> tuple[Floats, Ints, Floats, Floats, int]:
    r"""Optimal channel as a mixture of extreme columns, by the revised simplex method.

    `simplex_loops` says how.

    Args:
        belief: Probability of each true symbol.
        loss: Row = true symbol, column = candidate output.
        share: `1/(k+1)`.
        tolerance: Stop when no column is worth more than this.
        max_pivots: Give up after so many exchanges.
        settled: Stop as well when the proven gap is at most this part of the cost.
        starts: Columns to begin with, ratios of one column each; may have none.
        names: Their outputs.

    Returns:
        Ratios of the basic columns (one row each), their outputs (-1: none), their weights,
        the prices (the dual variable of each equation, per unit of belief) and the number of
        pivots, or -1 when the method gave up.
    """
    size, outputs = loss.shape
    by_output, shapes = np.empty((outputs, size)), np.empty((outputs, 3))
    order = np.empty((outputs, size), dtype=np.int64)
    for y in range(outputs):
        for x in range(size):
            by_output[y, x], order[y, x] = loss[x, y], x
    weights, dual, prices = np.empty(size), np.empty(size), np.empty(size)
    inverse, columns = np.empty((size, size)), np.empty((size, size))
    released = np.empty(size, dtype=np.int64)
    basis = (inverse, weights, columns, released, dual, np.empty(size))
    pricing = (by_output, order, shapes, prices, np.empty(size))
    room = POOLED * outputs
    pool = (np.empty((size, room)), np.empty(room), np.empty(room, np.int64), np.empty(room))
    first = (starts, np.empty(names.size), names, np.empty(names.size))
    pivots = cheapest_mixture(
        belief, outputs, share, tolerance, max_pivots, settled, first, basis, pricing, pool
    )
    return columns, released, weights, prices, pivots
