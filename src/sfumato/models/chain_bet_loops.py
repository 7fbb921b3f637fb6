"""Loops of the bets on a chain: which outputs followed which, and how far bets rule values out."""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit
from sfumato.core.portable_loops import log1p

HALVINGS = 24
"""Halvings of an interval: ends are found to 6e-8, outward."""


@njit(cache=True, nogil=True, error_model="numpy")
def count_pairs(
    initial: Floats,
    moves: Floats,
    channel: Floats,
    starts: Ints,
    columns: Ints,
    spread: Floats,
    tables: Floats,
) -> None:
    """How often each output followed each, by how much a bet on the first value is worth.

    Args:
        initial: Distribution of first values under the chain that guides bets.
        moves: Its transitions.
        channel: Probability of each output for each value.
        starts: Where the outputs of each stream begin, and the end.
        columns: The outputs.
        spread: Mean square of the estimate of each value where it is the value, and where not.
        tables: Gets the counts: parity, value, level of the bet, output, next output.
    """
    symbols, levels = initial.size, tables.shape[2]
    belief, moved = np.empty(symbols), np.empty(symbols)
    for stream in range(starts.size - 1):
        belief[:] = initial
        for place in range(starts[stream], starts[stream + 1] - 1):
            y, following = columns[place], columns[place + 1]
            parity = (place - starts[stream]) % 2
            total = 0.0
            for value in range(symbols):
                # What is told by this output and the next decides no stake: only earlier ones do.
                p = belief[value]
                worth = p * spread[0, value] / (p * spread[0, value] + (1 - p) * spread[1, value])
                level = min(int(worth * levels), levels - 1)
                tables[parity, value, level, y, following] += 1
                belief[value] = p * channel[value, y]
                total += belief[value]
            moved[:] = 0.0
            for value in range(symbols):
                held = belief[value] / total
                for after in range(symbols):
                    moved[after] += held * moves[value, after]
            belief[:] = moved


@njit(cache=True, nogil=True, error_model="numpy")
def gather_cells(table: Floats, first: Ints, second: Ints, counts: Floats) -> None:
    """Add up what followed what, by which weights outputs have.

    Args:
        table: Counts: level of the bet, output, next output.
        first: The place of each output among the different weights of the first value.
        second: The same for the next one.
        counts: Gets the sums: level, first weight, second weight.
    """
    for level in range(table.shape[0]):
        for one in range(first.size):
            for other in range(second.size):
                counts[level, first[one], second[other]] += table[level, one, other]


@njit(cache=True, nogil=True, error_model="numpy")
def capitals(
    counts: Floats, stakes: Floats, shown: Floats, rates: Floats, value: float, found: Floats
) -> None:
    """Log of what bettors at several rates have who bet that outputs say more than `value`."""
    for place in range(rates.size):
        found[place] = _capital(counts, stakes, shown, rates[place], value)


@njit(cache=True, nogil=True, error_model="numpy")
def _capital(counts: Floats, stakes: Floats, shown: Floats, rate: float, value: float) -> float:
    """Log of what a bettor has who put `rate` on outputs that say more than `value`."""
    total = 0.0
    for cell in range(counts.size):
        if counts[cell] > 0:
            total += counts[cell] * log1p(rate * stakes[cell] * (shown[cell] - value))
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def ruled_out(
    counts: Floats, stakes: Floats, shown: Floats, rate: float, limit: float, end: float
) -> float:
    """How far values from an end of [0, 1] on are ruled out; the end itself if it is not.

    The capital is concave in the value, so that the values that are ruled out are an interval.
    """
    if not _capital(counts, stakes, shown, rate, end) >= limit:
        return end
    out, left = end, 1.0 - end
    if _capital(counts, stakes, shown, rate, left) >= limit:
        return left
    for _ in range(HALVINGS):
        middle = 0.5 * (out + left)
        if _capital(counts, stakes, shown, rate, middle) >= limit:
            out = middle
        else:
            left = middle
    return out
