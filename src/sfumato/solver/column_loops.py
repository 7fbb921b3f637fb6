"""Loops of the design: the cheapest columns of a channel, and the channel made of them."""

from __future__ import annotations

import numpy as np

from sfumato.core.array_loops import least_place
from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit

# Rounds of pricing whose columns are kept: fewer forget good columns, more cost more to scan.
_POOLED = 3
# Kept columns enter while they are worth this part of the best one at the last pricing.
_WORTHWHILE = 0.3
_NEVER = 1e300
# Columns that miss a row sum by more than this are no solution.
_WRONG = 1e-7


@njit(cache=True, error_model="numpy")
def best_columns(
    belief: Floats, by_output: Floats, prices: Floats, share: float, order: Ints, shapes: Floats
) -> float:
    """The cheapest shape of every output at given prices, high on the least surplus.

    Args:
        belief: Probability of each true symbol.
        by_output: Row = output, column = true symbol: the loss.
        prices: Price of each true symbol.
        share: The mass that can be high, `1/(k+1)`.
        order: For each output, true symbols by surplus at earlier prices; sorted anew in place.
        shapes: Filled in: value of each shape (negative when the output is worth adding), place
            in `order` of the symbol that is partly high, and the mass of it that is.

    Returns:
        The least value.
    """
    outputs, size = by_output.shape
    k = 1 / share - 1
    surplus = np.empty(size)
    least = np.inf
    for y in range(outputs):
        places = order[y]
        mean = 0.0
        for x in range(size):
            surplus[x] = by_output[y, x] - prices[x]
            mean += belief[x] * surplus[x]
        _sort(surplus, places)
        last, part, gathered = _fill(belief, surplus, places, share)
        value = mean / k + (k - 1 / k) * gathered
        shapes[y, 0], shapes[y, 1], shapes[y, 2] = value, last, part
        least = min(least, value)
    return least


@njit(cache=True, error_model="numpy")
def _sort(surplus: Floats, order: Ints) -> None:
    """Sort `order` in place by rising surplus: insertion, since it is nearly sorted already."""
    for i in range(1, order.size):
        moving = order[i]
        key = surplus[moving]
        j = i - 1
        while j >= 0 and surplus[order[j]] > key:
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = moving


@njit(cache=True, error_model="numpy")
def _fill(belief: Floats, surplus: Floats, order: Ints, share: float) -> tuple[int, float, float]:
    """Take symbols in order until `share` is full: last place, its part, surplus gathered."""
    mass, gathered, last = 0.0, 0.0, belief.size - 1
    for place in range(last):
        x = order[place]
        if mass + belief[x] >= share:
            last = place
            break
        mass += belief[x]
        gathered += belief[x] * surplus[x]
    x = order[last]
    part = min(share - mass, belief[x])
    return last, part, gathered + part * surplus[x]


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

    A column is an output $y$ with ratios $r(x) \in [1/k, k]$ that average to 1 under the belief;
    a channel is a mixture of columns, $a(y|x) = \sum_j p_j r_j(x)$ over those with output $y$,
    whose ratios add up to 1 for every $x$. There are `size` such equations, so a basis is
    small, and the best column to add is found exactly by `best_columns`. Pricing costs far more
    than a pivot, so the columns it finds are kept for a while and exchanged first.

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
    by_output = np.empty((outputs, size))
    order = np.empty((outputs, size), dtype=np.int64)
    for y in range(outputs):
        for x in range(size):
            by_output[y, x], order[y, x] = loss[x, y], x
    inverse, weights, columns, released, dual = _first_basis(belief, by_output)
    pivots, place = 0, 0
    if names.size:
        costs = _costs(belief, by_output, starts, names)
        pivots = _exchange(
            starts, costs, names, tolerance, max_pivots, inverse, weights, columns, released, dual
        )
        if pivots < 0:
            return columns, released, weights, _prices(dual, belief), -1
    pool = np.zeros((size, _POOLED * outputs))
    costs, names = np.empty(_POOLED * outputs), np.zeros(_POOLED * outputs, dtype=np.int64)
    for j in range(costs.size):
        costs[j] = _NEVER
    shapes, prices = np.empty((outputs, 3)), np.empty(size)
    while pivots < max_pivots:
        paid = 0.0
        for x in range(size):
            prices[x] = dual[x] / belief[x]
            paid += dual[x]
        least = best_columns(belief, by_output, prices, share, order, shapes)
        if -least <= max(tolerance, settled * paid):
            fits = _refine(columns, released, inverse, weights)
            return columns, released, weights, prices, pivots if fits else -1
        for y in range(outputs):
            if shapes[y, 0] < -tolerance:
                _shape_ratios(belief, share, order[y], shapes[y], pool[:, place])
                names[place] = y
                costs[place] = _cost(belief, by_output[y], pool[:, place])
                place = (place + 1) % costs.size
        enough = max(tolerance, -_WORTHWHILE * least)
        left = max_pivots - pivots
        done = _exchange(
            pool, costs, names, enough, left, inverse, weights, columns, released, dual
        )
        if done <= 0:
            break
        pivots += done
    return columns, released, weights, prices, -1


@njit(cache=True, error_model="numpy")
def _prices(dual: Floats, belief: Floats) -> Floats:
    prices = np.empty(dual.size)
    for x in range(dual.size):
        prices[x] = dual[x] / belief[x]
    return prices


@njit(cache=True, error_model="numpy")
def _costs(belief: Floats, by_output: Floats, ratios: Floats, names: Ints) -> Floats:
    costs = np.empty(names.size)
    for j in range(names.size):
        costs[j] = _cost(belief, by_output[names[j]], ratios[:, j])
    return costs


@njit(cache=True, error_model="numpy")
def _cost(belief: Floats, loss: Floats, ratios: Floats) -> float:
    cost = 0.0
    for x in range(belief.size):
        cost += ratios[x] * belief[x] * loss[x]
    return cost


@njit(cache=True, error_model="numpy")
def _first_basis(belief: Floats, by_output: Floats) -> tuple[Floats, Floats, Floats, Ints, Floats]:
    """The best constant output; unit columns at level 0, which may only leave, for the rest."""
    outputs, size = by_output.shape
    start, least, anchor = 0, np.inf, 0
    for y in range(outputs):
        mean = 0.0
        for x in range(size):
            mean += belief[x] * by_output[y, x]
        if mean < least:
            start, least = y, mean
    inverse = np.zeros((size, size))  # by column: inverse[x, j] belongs to place j of the basis
    for x in range(size):
        inverse[x, x] = 1.0
        if belief[x] > belief[anchor]:
            anchor = x
    weights, columns, dual = np.zeros(size), np.zeros((size, size)), np.empty(size)
    released = np.empty(size, dtype=np.int64)
    for x in range(size):
        inverse[anchor, x], columns[anchor, x] = -1.0, 1.0
        released[x], dual[x] = -1, least * belief[x]
    inverse[anchor, anchor] = 1.0
    weights[anchor], released[anchor] = 1.0, start
    return inverse, weights, columns, released, dual


@njit(cache=True, error_model="numpy")
def _shape_ratios(belief: Floats, share: float, order: Ints, shape: Floats, ratios: Floats) -> None:
    k = 1 / share - 1
    last = int(shape[1])
    for x in range(belief.size):
        ratios[x] = 1 / k
    for place in range(last):
        ratios[order[place]] = k
    x = order[last]
    ratios[x] = 1 / k + (k - 1 / k) * shape[2] / belief[x]


@njit(cache=True, error_model="numpy")
def _exchange(
    pool: Floats,
    costs: Floats,
    names: Ints,
    enough: float,
    max_pivots: int,
    inverse: Floats,
    weights: Floats,
    columns: Floats,
    released: Ints,
    dual: Floats,
) -> int:
    """Let kept columns enter while one is worth more than `enough`; -1 if none could leave."""
    size = dual.size
    worth, direction = np.empty(costs.size), np.empty(size)
    for pivot in range(max_pivots):
        # Sums run over x outermost: no order of addition is changed by vectorising.
        for j in range(worth.size):
            worth[j] = costs[j]
        for x in range(size):
            for j in range(worth.size):
                worth[j] -= dual[x] * pool[x, j]
        entering = least_place(worth)
        if worth[entering] >= -enough:
            return pivot
        for j in range(size):
            direction[j] = 0.0
        for x in range(size):
            for j in range(size):
                direction[j] += pool[x, entering] * inverse[x, j]
        leaving = _leaving(direction, weights, released)
        if leaving < 0:
            return -1
        step = weights[leaving] / direction[leaving] if released[leaving] >= 0 else 0.0
        for j in range(size):
            weights[j] = max(0.0, weights[j] - step * direction[j])
        weights[leaving] = step
        for x in range(size):
            factor = inverse[x, leaving] / direction[leaving]
            for j in range(size):
                inverse[x, j] -= factor * direction[j]
            inverse[x, leaving] = factor
            dual[x] += worth[entering] * factor
            columns[leaving, x] = pool[x, entering]
        released[leaving] = names[entering]
        costs[entering] = _NEVER
    return max_pivots


@njit(cache=True, error_model="numpy")
def _leaving(direction: Floats, weights: Floats, released: Ints) -> int:
    """The basic column to replace: a unit column if possible, else the first to reach 0."""
    leaving = -1
    least = np.inf
    largest = 1e-9
    for j in range(direction.size):
        if released[j] < 0 and abs(direction[j]) > largest:
            leaving, largest, least = j, abs(direction[j]), 0.0
    if leaving >= 0:
        return leaving
    for j in range(direction.size):
        if released[j] >= 0 and direction[j] > 1e-11:
            ratio = weights[j] / direction[j]
            if ratio < least or (ratio == least and direction[j] > largest):
                leaving, largest, least = j, direction[j], ratio
    return leaving


@njit(cache=True, error_model="numpy")
def _refine(columns: Floats, released: Ints, inverse: Floats, weights: Floats) -> bool:
    """Newton's correction of the weights: the inverse has gathered the errors of all pivots.

    Returns:
        Whether the columns add up to a channel, which they do not if the inverse is none.
    """
    size = weights.size
    missing = np.empty(size)
    for _ in range(2):
        _miss(columns, released, weights, missing)
        for x in range(size):
            for j in range(size):
                weights[j] += missing[x] * inverse[x, j]
    for j in range(size):
        weights[j] = max(0.0, weights[j]) if released[j] >= 0 else 0.0
    _miss(columns, released, weights, missing)
    off = 0
    for x in range(size):
        off += not abs(missing[x]) < _WRONG
    return off == 0


@njit(cache=True, error_model="numpy")
def _miss(columns: Floats, released: Ints, weights: Floats, missing: Floats) -> None:
    """What the weighted columns lack of 1 for each symbol."""
    for x in range(missing.size):
        missing[x] = 1.0
    for j in range(weights.size):
        if released[j] >= 0:
            for x in range(missing.size):
                missing[x] -= weights[j] * columns[j, x]
