"""Loops over rows of a batch: whose they are, and which column a released symbol came from."""

from __future__ import annotations

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import IN_PLACE, njit


@njit(**IN_PLACE)
def best_constant(table: Floats, belief: Floats, means: Floats) -> int:
    """Where the symbol stands that loses least if it leaves whatever is true: `Loss.best_constant`.

    Args:
        table: Losses: row = true symbol.
        belief: Distribution of the next value.
        means: Work space.
    """
    size = belief.size
    for y in range(size):
        means[y] = 0.0
    for x in range(size):
        share = belief[x]
        for y in range(size):
            means[y] += share * table[x, y]
    best = 0
    for y in range(1, size):
        if means[y] < means[best]:
            best = y
    return best


@njit(**IN_PLACE, forceinline=True)
def column_of(nodes: Ints, outputs: Ints, c: int, symbol: int, signal: int, sighted: bool) -> int:
    """The column of a channel that released a symbol; -1 if none does, or its signal is wrong."""
    first, width = nodes[c, 2], nodes[c, 4]
    if sighted:
        fits = 0 <= signal < width and outputs[first + signal] == symbol
        return signal if fits else -1
    if signal < 0:
        for y in range(width):
            if outputs[first + y] == symbol:
                return y
    return -1


@njit(**IN_PLACE)
def group_rows(which: Ints, slots: Ints, streams: Ints, begins: Ints, rows: Ints) -> int:
    """Sort rows by stream, each stream's in their order; how many streams have any.

    Args:
        which: The stream of each row.
        slots: Work space, one entry per stream: -1 before and after.
        streams: The streams that have rows, by their first, as a result.
        begins: Where in `rows` those of each begin, and all of them end, as a result.
        rows: Rows, one stream after another, as a result.
    """
    found = 0
    for row in range(which.size):
        stream = which[row]
        if slots[stream] < 0:
            slots[stream] = found
            streams[found], begins[found] = stream, 0
            found += 1
        begins[slots[stream]] += 1
    before = 0
    for group in range(found):
        count = begins[group]
        begins[group] = before
        before += count
    for row in range(which.size):
        group = slots[which[row]]
        rows[begins[group]] = row
        begins[group] += 1
    for group in range(found, 0, -1):
        begins[group] = begins[group - 1]
    begins[0] = 0
    for group in range(found):
        slots[streams[group]] = -1
    return found
