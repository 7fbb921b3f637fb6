"""Loops of the design: the cheapest columns of a channel, and the channel made of them."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@njit(cache=True)
def sorted_by_surplus(surplus: Floats, order: Ints) -> None:
    """Sort `order` in place by rising surplus: insertion, since it is nearly sorted already."""
    for i in range(1, order.size):
        moving = order[i]
        j = i - 1
        while j >= 0 and surplus[order[j]] > surplus[moving]:
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = moving


@njit(cache=True)
def best_column(
    belief: Floats, loss: Floats, prices: Floats, share: float, order: Ints, surplus: Floats
) -> tuple[float, int, float]:
    """The cheapest shape of one output at given prices, high on the least surplus.

    Args:
        belief: Probability of each true symbol.
        loss: Loss of this output for each true symbol.
        prices: Price of each true symbol.
        share: The mass that can be high, `1/(k+1)`.
        order: True symbols by surplus at earlier prices; sorted anew in place.
        surplus: Work space.

    Returns:
        Value of the shape (which is negative when the output is worth adding), place in
        `order` of the symbol that is partly high, and the mass of it that is.
    """
    mean = 0.0
    for x in range(belief.size):
        surplus[x] = loss[x] - prices[x]
        mean += belief[x] * surplus[x]
    sorted_by_surplus(surplus, order)
    k = 1 / share - 1
    mass = 0.0
    gathered = 0.0
    last = belief.size - 1
    for place in range(last):
        x = order[place]
        if mass + belief[x] >= share:
            last = place
            break
        mass += belief[x]
        gathered += belief[x] * surplus[x]
    part = min(share - mass, belief[order[last]])
    gathered += part * surplus[order[last]]
    return mean / k + (k - 1 / k) * gathered, last, part


@njit(cache=True)
def gathered_at(
    belief: Floats, loss: Floats, prices: Floats, share: float
) -> tuple[Floats, Floats]:
    """For each output, the mean surplus and the part of it on the cheapest `share` of the belief.

    Selection in linear time: the symbols are split around a pivot until the share is met.
    """
    size, outputs = loss.shape
    means, parts = np.zeros(outputs), np.zeros(outputs)
    keys, masses = np.empty(size), np.empty(size)
    for y in range(outputs):
        for x in range(size):
            keys[x], masses[x] = loss[x, y] - prices[x], belief[x]
            means[y] += keys[x] * masses[x]
        low, high, need = 0, size, share
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
            parts[y] += worth + min(equal, need - left) * pivot
            need -= left + equal
            low = same
            if need <= 0.0:
                break
        if need > 0.0 and high - low == 1:
            parts[y] += min(need, masses[low]) * keys[low]
    return means, parts


@njit(cache=True)
def column_generation(
    belief: Floats, loss: Floats, share: float, tolerance: float, max_pivots: int
) -> tuple[Floats, Ints, Floats, int]:
    r"""Optimal channel as a mixture of extreme columns, by the revised simplex method.

    A column is an output $y$ with ratios $r(x) \in [1/k, k]$ that average to 1 under the belief;
    a channel is a mixture of columns, $a(y|x) = \sum_j p_j r_j(x)$ over those with output $y$,
    whose ratios add up to 1 for every $x$. There are `size` such equations, so a basis is
    small, and the best column to add is found exactly by `best_column`.

    Args:
        belief: Probability of each true symbol.
        loss: Row = true symbol, column = candidate output.
        share: `1/(k+1)`.
        tolerance: Stop when no column is worth more than this.
        max_pivots: Give up after so many exchanges.

    Returns:
        Ratios of the basic columns (one row each), their outputs (-1: none), their prices'
        solution (the dual variable of each equation, per unit of belief) and the number of
        pivots, or -1 when the method gave up.
    """
    size, outputs = loss.shape
    k = 1 / share - 1
    by_output = np.ascontiguousarray(loss.T)
    mean_loss = by_output @ belief
    start = int(np.argmin(mean_loss))
    anchor = int(np.argmax(belief))
    # Begin with the best constant output; the other places are held by unit columns at level 0
    # that may only leave.
    inverse = np.eye(size)
    inverse[:, anchor] -= 1.0
    inverse[anchor, anchor] = 1.0
    weights = np.zeros(size)
    weights[anchor] = 1.0
    columns = np.zeros((size, size))
    columns[anchor] = 1.0
    told = np.full(size, -1)
    told[anchor] = start
    dual = mean_loss[start] * belief
    order = np.empty((outputs, size), dtype=np.int64)
    for y in range(outputs):
        order[y] = np.argsort(by_output[y])
    surplus = np.empty(size)
    ratios = np.empty(size)
    for pivot in range(max_pivots):
        prices = dual / belief
        entering, best, split, part = -1, -tolerance, 0, 0.0
        for y in range(outputs):
            value, place, mass = best_column(belief, by_output[y], prices, share, order[y], surplus)
            if value < best:
                entering, best, split, part = y, value, place, mass
        if entering < 0:
            return columns, told, prices, pivot
        ratios[:] = 1 / k
        for place in range(split):
            ratios[order[entering, place]] = k
        partly = order[entering, split]
        ratios[partly] = 1 / k + (k - 1 / k) * part / belief[partly]
        direction = inverse @ ratios
        leaving = _leaving(direction, weights, told)
        if leaving < 0:
            break
        gain = 0.0
        for x in range(size):
            gain += ratios[x] * (belief[x] * by_output[entering, x] - dual[x])
        step = weights[leaving] / direction[leaving] if told[leaving] >= 0 else 0.0
        inverse[leaving] /= direction[leaving]
        for j in range(size):
            if j != leaving and direction[j] != 0.0:
                inverse[j] -= direction[j] * inverse[leaving]
                weights[j] = max(0.0, weights[j] - step * direction[j])
        weights[leaving] = step
        dual += gain * inverse[leaving]
        told[leaving] = entering
        columns[leaving] = ratios
    return columns, told, dual / belief, -1


@njit(cache=True)
def _leaving(direction: Floats, weights: Floats, told: Ints) -> int:
    """The basic column to replace: a unit column if possible, else the first to reach 0."""
    leaving = -1
    least = np.inf
    largest = 1e-9
    for j in range(direction.size):
        if told[j] < 0 and abs(direction[j]) > largest:
            leaving, largest, least = j, abs(direction[j]), 0.0
    if leaving >= 0:
        return leaving
    for j in range(direction.size):
        if told[j] >= 0 and direction[j] > 1e-11:
            ratio = weights[j] / direction[j]
            if ratio < least or (ratio == least and direction[j] > largest):
                leaving, largest, least = j, direction[j], ratio
    return leaving
