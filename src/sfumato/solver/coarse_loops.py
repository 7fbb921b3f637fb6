"""A small program that stands for a large one: few outputs, few rows, solved at once.

What a large alphabet may release at a belief is decided by few outputs, spread where the loss would
be, and by few rows: symbols of much belief have their own, others share one with those that have
the same two outputs nearest. On some 8 outputs and 25 rows the interior-point method takes tens of
microseconds, and the channel costs about a hundredth more than the best one. Afterwards each output
moves to the symbol that it means best. Nothing rests on any of this but the loss: whoever uses the
channel rounds and certifies it.
"""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit
from sfumato.solver.interior_point import cold, interior_point

# Gap of the small program, as a part of its cost; a step more than that hardly ever pays.
_GAP, _STEPS = 0.005, 40
# A symbol with more than this part of the belief has a row of its own.
_HEAVY = 1 / 32
_LEAST_MASS = 1e-300
# Halvings of a range of losses that find which symbols are nearest an output.
_HALVINGS = 8
# Moves of an output at most, which is far more than it ever takes.
_MOVES = 64


@njit(cache=True, nogil=True, error_model="numpy")
def _mean_loss(weights: Floats, losses: Floats) -> float:
    """Sum of products, in four sums side by side."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    whole = weights.size - weights.size % 4
    for x in range(0, whole, 4):
        s0 += weights[x] * losses[x]
        s1 += weights[x + 1] * losses[x + 1]
        s2 += weights[x + 2] * losses[x + 2]
        s3 += weights[x + 3] * losses[x + 3]
    for x in range(whole, weights.size):
        s0 += weights[x] * losses[x]
    return (s0 + s1) + (s2 + s3)


@njit(cache=True, nogil=True, error_model="numpy")
def _settled(weights: Floats, losses: Floats, near: Ints, start: int) -> tuple[int, float]:
    """Move from output to output as long as one nearby costs less under these weights."""
    place, least = start, _mean_loss(weights, losses[start])
    for _ in range(_MOVES):
        best = place
        for i in range(near.shape[1]):
            other = near[place, i]
            if other != place:
                cost = _mean_loss(weights, losses[other])
                if cost < least:
                    best, least = other, cost
        if best == place:
            break
        place = best
    return place, least


@njit(cache=True, nogil=True, error_model="numpy")
def _spread(share: Floats, losses: Floats, near: Ints, first: int, outputs: Ints) -> int:
    """Outputs one by one, each for the symbol whose part of the loss is largest so far."""
    size, count = share.size, 1
    outputs[0] = first
    least, lost = np.empty(size), np.empty(size)
    for x in range(size):
        least[x] = losses[first, x]
        lost[x] = share[x] * least[x]
    while count < outputs.size:
        worst = 0
        for x in range(1, size):
            if lost[x] > lost[worst]:
                worst = x
        if lost[worst] <= 0.0:
            break
        output = near[worst, 0]
        taken = False
        for y in range(count):
            taken = taken or outputs[y] == output
        lost[worst] = 0.0
        if taken:
            continue
        row = losses[output]
        for x in range(size):
            if row[x] < least[x]:
                least[x] = row[x]
                lost[x] = min(lost[x], share[x] * row[x])
        outputs[count] = output
        count += 1
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def _drawn_in(
    share: Floats, losses: Floats, near: Ints, k: float, outputs: Ints, weights: Floats
) -> int:
    """Move each output but the first to the best guess after a column that is high around it."""
    size, kept = share.size, 1
    base = losses[outputs[0]]
    for y in range(1, outputs.size):
        row = losses[outputs[y]]
        low, high = 0.0, 0.0
        for x in range(size):
            weights[x] = row[x] - base[x]
            low, high = min(low, weights[x]), max(high, weights[x])
        # The symbols that gain most, up to the mass that may be high.
        for _ in range(_HALVINGS):
            level, reached = (low + high) / 2, 0.0
            for x in range(size):
                if weights[x] <= level:
                    reached += share[x]
            if reached * (k + 1) > 1.0:
                high = level
            else:
                low = level
        for x in range(size):
            weights[x] = share[x] * (k if weights[x] <= high else 1 / k)
        moved, _ = _settled(weights, losses, near, outputs[y])
        free = True
        for other in range(kept):
            free = free and outputs[other] != moved
        if free:
            outputs[kept] = moved
            kept += 1
    return kept


@njit(cache=True, nogil=True, error_model="numpy")
def _grouped(share: Floats, losses: Floats, outputs: Ints, most: int, row_of: Ints) -> int:
    """The row of each symbol: its own, or that of its two nearest outputs; at most `most`."""
    size, count = share.size, outputs.size
    first, second = np.zeros(size, np.int64), np.zeros(size, np.int64)
    nearest, next_one = np.empty(size), np.empty(size)
    for x in range(size):
        nearest[x] = next_one[x] = np.inf
    for y in range(count):
        row = losses[outputs[y]]
        for x in range(size):
            if row[x] < nearest[x]:
                second[x], next_one[x] = first[x], nearest[x]
                first[x], nearest[x] = y, row[x]
            elif row[x] < next_one[x]:
                second[x], next_one[x] = y, row[x]
    rows = 0
    for x in range(size):
        if share[x] > _HEAVY:
            row_of[x] = rows
            rows += 1
    shared, latest = np.zeros((count, count), np.int64), np.zeros(count, np.int64)
    for x in range(size):
        if share[x] <= _HEAVY:
            y, z = first[x], second[x]
            if shared[y, z] == 0 and rows < most:
                latest[y] = rows
                rows += 1
            if shared[y, z] == 0:
                shared[y, z] = latest[y] + 1
            row_of[x] = shared[y, z] - 1
    return rows


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def coarse_channel(
    share: Floats,
    losses: Floats,
    near: Ints,
    k: float,
    start: int,
    most: int,
    outputs: Ints,
    row_of: Ints,
    rows: Floats,
) -> tuple[int, int]:
    """A channel whose ratios to its output marginal are within `1/k` and `k`, or nearly.

    Args:
        share: Belief in each symbol; sums to 1.
        losses: Row = output, column = true symbol.
        near: For each symbol the outputs that cost least when it is true, the least first.
        k: The bound of ratios.
        start: Where the search for the best constant begins.
        most: Rows at most, more than 48.
        outputs: Gets the symbols that its columns release; as many as it is long at most.
        row_of: Gets the row of each symbol.
        rows: Gets the rows.

    Returns:
        How many columns and rows it has; one of each where no channel costs less than a constant.
    """
    first, constant = _settled(share, losses, near, start)
    width = _spread(share, losses, near, first, outputs)
    weights = np.empty(share.size)
    width = _drawn_in(share, losses, near, k, outputs[:width], weights)
    count = _grouped(share, losses, outputs[:width], most, row_of)
    mass, cost, fixed = np.zeros(count), np.zeros((count, width)), np.empty(width)
    for x in range(share.size):
        mass[row_of[x]] += share[x]
    for y in range(width):
        row = losses[outputs[y]]
        for x in range(share.size):
            cost[row_of[x], y] += share[x] * row[x]
        total = 0.0
        for r in range(count):
            total += cost[r, y]
        fixed[y] = total / (k - 1)
    unit = 0.0
    for r in range(count):
        for y in range(width):
            # A row of symbols that are next to impossible may have no mass at all.
            cost[r, y] /= max(mass[r], _LEAST_MASS)
            unit = max(unit, cost[r, y])
    if width > 1 and unit > 0.0:
        # In units of the part that is not fixed, and of losses of at most 1.
        for y in range(width):
            fixed[y] /= unit
            for r in range(count):
                cost[r, y] /= unit
        cells, marginal, prices, worth = cold(mass, cost, fixed, k + 1)
        interior_point(mass, cost, fixed, k + 1, cells, marginal, prices, worth, _GAP, _STEPS)
        found = 0.0
        for r in range(count):
            total = 0.0
            for y in range(width):
                rows[r, y] = max(0.0, marginal[y] / k + (1 - 1 / k) * cells[0, r, y])
                total += rows[r, y]
            for y in range(width):
                rows[r, y] /= total
        for y in range(width):
            for x in range(share.size):
                weights[x] = share[x] * rows[row_of[x], y]
            moved, least = _settled(weights, losses, near, outputs[y])
            free = True
            for other in range(width):
                free = free and (other == y or outputs[other] != moved)
            if free:
                outputs[y] = moved
            else:
                least = _mean_loss(weights, losses[outputs[y]])
            found += least
        if found < constant:
            return width, count
    outputs[0], rows[0, 0] = first, 1.0
    for x in range(share.size):
        row_of[x] = 0
    return 1, 1
