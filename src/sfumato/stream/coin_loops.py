"""How much likelier each kind of unfair releaser makes an output than fair coins do."""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats
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
