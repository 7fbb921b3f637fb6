"""How much likelier each kind of unfair releaser makes an output than fair coins do."""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit

NEAREST, NEARER_OF_TWO, NEARER_OF_FOUR, FARTHER_OF_TWO, LIKELIEST, REPEATED, LEARNT = range(7)
"""Places of the ways to cheat in the arrays below."""


@njit(cache=True, nogil=True, error_model="numpy")
def unfair_ratios(
    fair: Floats, losses: Floats, alike: Floats, output: int, ranks: Floats, ratios: Floats
) -> float:
    """For each way to cheat, its probability of the output that left over that of fair coins.

    Args:
        fair: Probability of each output given the true value.
        losses: What each output costs, given the true value; all alike if that is unknown.
        alike: Above zero where an output says what the stream said last.
        output: Which output left; fair coins can give it.
        ranks: How often outputs stood so high among all, by loss, until now; is updated.
        ratios: Gets one ratio for each way to cheat.

    Returns:
        The probability that fair coins give one of the nearest outputs.
    """
    below, level, nearest, likeliest, again = 0.0, 0.0, 0.0, 0.0, 0.0
    least, most, here = np.inf, 0.0, losses[output]
    for y in range(fair.size):
        if fair[y] > 0.0:
            least, most = min(least, losses[y]), max(most, fair[y])
    for y in range(fair.size):
        if losses[y] < here:
            below += fair[y]
        elif losses[y] == here:
            level += fair[y]
        if losses[y] == least:
            nearest += fair[y]
        if fair[y] == most:
            likeliest += fair[y]
        if alike[y] > 0.0:
            again += fair[y]
    above = max(1.0 - below - level, 0.0)
    ratios[NEAREST] = 1.0 / nearest if here == least else 0.0
    ratios[NEARER_OF_TWO] = 2.0 * above + level
    ratios[NEARER_OF_FOUR] = ((above + level) ** 4 - above**4) / level
    ratios[FARTHER_OF_TWO] = 2.0 * below + level
    ratios[LIKELIEST] = 1.0 / likeliest if fair[output] == most else 0.0
    ratios[REPEATED] = 1.0
    if again > 0.0:
        ratios[REPEATED] = 1.0 / again if alike[output] > 0.0 else 0.0
    # Fair coins spread ranks evenly over the interval from 0 to 1; what is seen is bet upon.
    bins, total, inside = ranks.size, ranks.sum(), 0.0
    for place in range(bins):
        share = min(below + level, (place + 1) / bins) - max(below, place / bins)
        if share > 0.0:
            inside += share * ranks[place] / total * bins
            ranks[place] += share / level
    ratios[LEARNT] = inside / level
    return nearest


@njit(cache=True, nogil=True, error_model="numpy")
def unfair_rows(
    fair: Floats,
    symbols: Ints,
    widths: Ints,
    columns: Ints,
    costs: Floats,
    which: Ints,
    before: Ints,
    ranks: Floats,
    ratios: Floats,
    nearest: Floats,
) -> None:
    """`unfair_ratios` of many outputs, one after the other.

    Args:
        fair: Probability of each output of a row, given its true value.
        symbols: What each output says.
        widths: How many outputs each row has.
        columns: Which one left.
        costs: What symbols cost, for each true value.
        which: The true value of each row, as a row of `costs`.
        before: What its stream said last; -1 for nothing.
        ranks: As in `unfair_ratios`; is updated.
        ratios: Gets the ratios of each row.
        nearest: Gets the probability that fair coins give one of the nearest outputs.
    """
    losses, alike = np.empty(fair.shape[1]), np.empty(fair.shape[1])
    for row in range(len(fair)):
        width = widths[row]
        for y in range(width):
            losses[y] = costs[which[row], symbols[row, y]]
            alike[y] = 1.0 if before[row] >= 0 and symbols[row, y] == before[row] else 0.0
        nearest[row] = unfair_ratios(
            fair[row, :width], losses[:width], alike[:width], columns[row], ranks, ratios[row]
        )


@njit(cache=True, nogil=True)
def add_each(fortunes: Floats, owners: Ints, won: Floats) -> None:
    """Add what was won to the fortunes of its owners, one after the other."""
    for row in range(owners.size):
        for way in range(won.shape[1]):
            for share in range(won.shape[2]):
                fortunes[owners[row], way, share] += won[row, way, share]
