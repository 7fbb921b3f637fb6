r"""The revised simplex method on extreme columns of a channel, in room that is given.

A column is an output $y$ with ratios $r(x) \in [1/k, k]$ that average to 1 under the belief; a
channel is a mixture of columns, $a(y|x) = \sum_j p_j r_j(x)$ over those with output $y$, whose
ratios add up to 1 for every $x$. There are as many such equations as symbols, so a basis is small,
and the best column to add is found exactly by `best_columns`. Pricing costs far more than a pivot,
so the columns it finds are kept for a while and exchanged first.

No array is made, so that the loops of a release can solve a small program at each step.
"""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import IN_PLACE, njit

Basis = tuple[Floats, Floats, Floats, Ints, Floats, Floats]
"""Inverse, by column: entry `[x, j]` belongs to place j of the basis; weights of its columns, their
ratios (one row each), their outputs (-1: none), dual variables, and room for a direction."""
Pricing = tuple[Floats, Ints, Floats, Floats, Floats]
"""Losses, row = output; for each output true symbols by surplus, or in any order to begin with;
shapes of columns (`best_columns` says how); prices of symbols, which are dual variables per unit of
belief; room for surpluses."""
Pool = tuple[Floats, Floats, Ints, Floats]
"""Ratios of columns that may enter, one column each; their costs, their outputs, and room for what
they are worth."""

POOLED = 3
"""Rounds of pricing whose columns are kept: fewer forget good columns, more cost more to scan."""
# Kept columns enter while they are worth this part of the best one at the last pricing.
_WORTHWHILE = 0.3
_NEVER = 1e300
# Columns that miss a row sum by more than this are no solution.
_WRONG = 1e-7


@njit(**IN_PLACE)
def cheapest_mixture(
    belief: Floats,
    outputs: int,
    share: float,
    tolerance: float,
    max_pivots: int,
    settled: float,
    starts: Pool,
    basis: Basis,
    pricing: Pricing,
    pool: Pool,
) -> int:
    """The optimal channel as a mixture of extreme columns: the number of pivots, -1 for none.

    Args:
        belief: Probability of each true symbol.
        outputs: Candidate outputs; `pricing` holds their losses.
        share: The mass that can be high, `1/(k+1)`.
        tolerance: Stop when no column is worth more than this.
        max_pivots: Give up after so many exchanges.
        settled: Stop as well when the proven gap is at most this part of the cost.
        starts: Columns to begin with; may have none.
        basis: Gets the columns of the mixture.
        pricing: Gets the prices.
        pool: Room for `POOLED` columns of each output.
    """
    size = belief.size
    by_output, order, shapes, prices, _ = pricing
    ratios, costs, names, _ = pool
    dual = basis[4]
    _first_basis(belief, by_output, outputs, basis)
    pivots, place, filled = 0, 0, 0
    if starts[2].size:
        for j in range(starts[2].size):
            starts[1][j] = _cost(belief, by_output[starts[2][j]], starts[0], j)
        pivots = _exchange(starts, starts[2].size, tolerance, max_pivots, basis)
        if pivots < 0:
            _price(belief, dual, prices)
            return -1
    while pivots < max_pivots:
        _price(belief, dual, prices)
        paid = 0.0
        for x in range(size):
            paid += dual[x]
        least = best_columns(belief, outputs, share, pricing)
        if -least <= max(tolerance, settled * paid):
            return pivots if _refine(basis) else -1
        for y in range(outputs):
            if shapes[y, 0] < -tolerance:
                shape_ratios(
                    belief, share, order[y], int(shapes[y, 1]), shapes[y, 2], ratios, place
                )
                names[place] = y
                costs[place] = _cost(belief, by_output[y], ratios, place)
                filled = max(filled, place + 1)
                place = (place + 1) % (POOLED * outputs)
        enough = max(tolerance, -_WORTHWHILE * least)
        done = _exchange(pool, filled, enough, max_pivots - pivots, basis)
        if done <= 0:
            break
        pivots += done
    return -1


@njit(**IN_PLACE)
def best_columns(belief: Floats, outputs: int, share: float, pricing: Pricing) -> float:
    """The cheapest shape of every output at given prices, high on the least surplus.

    Args:
        belief: Probability of each true symbol.
        outputs: How many there are.
        share: The mass that can be high, `1/(k+1)`.
        pricing: Losses and prices. Its orders are sorted anew from those at earlier prices; its
            shapes get the value of each (negative when the output is worth adding), the place in
            the order of the symbol that is partly high, and the mass of it that is.

    Returns:
        The least value.
    """
    least = np.inf
    for y in range(outputs):
        least = min(least, best_column(belief, y, share, pricing))
    return least


@njit(**IN_PLACE)
def best_column(belief: Floats, y: int, share: float, pricing: Pricing) -> float:
    """The cheapest shape of one output, and its value: see `best_columns`."""
    by_output, order, shapes, prices, surplus = pricing
    k, places, mean = 1 / share - 1, order[y], 0.0
    for x in range(belief.size):
        surplus[x] = by_output[y, x] - prices[x]
        mean += belief[x] * surplus[x]
    _sort(surplus, places)
    last, part, gathered = _fill(belief, surplus, places, share)
    value = mean / k + (k - 1 / k) * gathered
    shapes[y, 0], shapes[y, 1], shapes[y, 2] = value, last, part
    return value


@njit(**IN_PLACE)
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


@njit(**IN_PLACE)
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


@njit(**IN_PLACE)
def _price(belief: Floats, dual: Floats, prices: Floats) -> None:
    for x in range(belief.size):
        prices[x] = dual[x] / belief[x]


@njit(**IN_PLACE)
def _cost(belief: Floats, loss: Floats, ratios: Floats, column: int) -> float:
    cost = 0.0
    for x in range(belief.size):
        cost += ratios[x, column] * belief[x] * loss[x]
    return cost


@njit(**IN_PLACE)
def _first_basis(belief: Floats, by_output: Floats, outputs: int, basis: Basis) -> None:
    """The best constant output; unit columns at level 0, which may only leave, for the rest."""
    size = belief.size
    inverse, weights, columns, released, dual, _ = basis
    start, least, anchor = 0, np.inf, 0
    for y in range(outputs):
        mean = 0.0
        for x in range(size):
            mean += belief[x] * by_output[y, x]
        if mean < least:
            start, least = y, mean
    for x in range(size):
        for j in range(size):
            inverse[x, j] = columns[x, j] = 0.0
    for x in range(size):
        inverse[x, x] = 1.0
        if belief[x] > belief[anchor]:
            anchor = x
    for x in range(size):
        inverse[anchor, x], columns[anchor, x] = -1.0, 1.0
        released[x], dual[x], weights[x] = -1, least * belief[x], 0.0
    inverse[anchor, anchor] = 1.0
    weights[anchor], released[anchor] = 1.0, start


@njit(**IN_PLACE)
def shape_ratios(
    belief: Floats,
    share: float,
    order: Ints,
    last: int,
    part: float,
    ratios: Floats,
    column: int,
) -> None:
    """Ratios of a column that is high on symbols in some order, the last of them in part."""
    k = 1 / share - 1
    for x in range(belief.size):
        ratios[x, column] = 1 / k
    for place in range(last):
        ratios[order[place], column] = k
    x = order[last]
    ratios[x, column] = 1 / k + (k - 1 / k) * part / belief[x]


@njit(**IN_PLACE)
def _exchange(pool: Pool, filled: int, enough: float, max_pivots: int, basis: Basis) -> int:
    """Let columns of a pool enter while one is worth more than `enough`; -1 if none could leave."""
    ratios, costs, names, worth = pool
    inverse, weights, columns, released, dual, direction = basis
    size = dual.size
    for pivot in range(max_pivots if filled else 0):
        # Sums run over x outermost: no order of addition is changed by vectorising.
        for j in range(filled):
            worth[j] = costs[j]
        for x in range(size):
            for j in range(filled):
                worth[j] -= dual[x] * ratios[x, j]
        entering = _least_place(worth, filled)
        if worth[entering] >= -enough:
            return pivot
        for j in range(size):
            direction[j] = 0.0
        for x in range(size):
            for j in range(size):
                direction[j] += ratios[x, entering] * inverse[x, j]
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
            columns[leaving, x] = ratios[x, entering]
        released[leaving] = names[entering]
        costs[entering] = _NEVER
    return max_pivots if filled else 0


@njit(**IN_PLACE)
def _least_place(values: Floats, count: int) -> int:
    """The first of the least of some values, or the first that is no number."""
    place = 0
    for i in range(count):
        if values[i] != values[i]:
            return i
        if values[i] < values[place]:
            place = i
    return place


@njit(**IN_PLACE)
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


@njit(**IN_PLACE)
def _refine(basis: Basis) -> bool:
    """Newton's correction of the weights: the inverse has gathered the errors of all pivots.

    Returns:
        Whether the columns add up to a channel, which they do not if the inverse is none.
    """
    inverse, weights, columns, released, _, missing = basis
    size = weights.size
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


@njit(**IN_PLACE)
def _miss(columns: Floats, released: Ints, weights: Floats, missing: Floats) -> None:
    """What the weighted columns lack of 1 for each symbol."""
    for x in range(missing.size):
        missing[x] = 1.0
    for j in range(weights.size):
        if released[j] >= 0:
            for x in range(missing.size):
                missing[x] -= weights[j] * columns[j, x]
