"""Loops over pairs of places: losses that are computed where they are needed, never stored."""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit
from sfumato.core.portable_angles import arc_sine

HAMMING, ABSOLUTE, SQUARED, EUCLIDEAN, GREAT_CIRCLE = 0, 1, 2, 3, 4
_EARTH = 6371.0088
# Outputs treated together: their sums stay in the nearest memory.
_BLOCK = 512


@njit(cache=True)
def _losses(places: Floats, start: int, end: int, x: int, measure: int, losses: Floats) -> None:
    """Loss of symbol `x` for the outputs from `start` to `end`."""
    losses[:] = 0.0
    for axis in range(len(places)):
        here, there = places[axis, x], places[axis, start:end]
        if measure == HAMMING:
            for y in range(end - start):
                losses[y] += here != there[y]
        elif measure == ABSOLUTE:
            for y in range(end - start):
                losses[y] += abs(here - there[y])
        else:
            for y in range(end - start):
                losses[y] += (here - there[y]) * (here - there[y])
    if measure == EUCLIDEAN:
        for y in range(end - start):
            losses[y] = np.sqrt(losses[y])
    elif measure == GREAT_CIRCLE:
        for y in range(end - start):
            losses[y] = 2 * _EARTH * arc_sine(min(np.sqrt(losses[y]) / (2 * _EARTH), 1.0))


@njit(cache=True)
def mean_losses(places: Floats, measure: int, belief: Floats) -> Floats:
    """Mean loss of each output; `places` has one row per axis."""
    size = belief.size
    means, losses = np.zeros(size), np.empty(_BLOCK)
    for start in range(0, size, _BLOCK):
        end = min(start + _BLOCK, size)
        mean, part = means[start:end], losses[: end - start]
        for x in range(size):
            _losses(places, start, end, x, measure, part)
            share = belief[x]
            for y in range(part.size):
                mean[y] += share * part[y]
    return means


@njit(cache=True)
def place_centres(
    places: Floats, measure: int, belief: Floats, first: int, count: int
) -> tuple[Ints, Ints]:
    """The centres of `groups.spread_centres` for a loss that compares places."""
    size = belief.size
    centres, nearest = np.full(count, first), np.zeros(size, dtype=np.int64)
    least, losses = np.empty(size), np.empty(size)
    _losses(places, 0, size, first, measure, least)
    for taken in range(1, count):
        worst = int(np.argmax(belief * least))
        if least[worst] == 0.0:
            return centres[:taken], nearest
        _losses(places, 0, size, worst, measure, losses)
        for x in range(size):
            if losses[x] < least[x]:
                least[x], nearest[x] = losses[x], taken
        centres[taken] = worst
    return centres, nearest


@njit(cache=True)
def gathered_floors(
    places: Floats,
    measure: int,
    belief: Floats,
    prices: Floats,
    share: float,
    levels: Floats,
    step: float,
) -> tuple[Floats, Floats]:
    r"""For each output, the mean loss, and a floor under the surplus of the cheapest `share`.

    $$\min_{0 \le c \le b,\, \sum c = s} \sum_x c(x) u(x) \ge s t - \sum_x b(x) (t - u(x))^+$$

    for every level $t$, since $c\,(u - t) \ge -b\,(t - u)^+$ term by term. One pass tries the
    level of each output and a step to both sides and keeps the best; no sorting is needed.

    Args:
        places: One row per axis.
        measure: How two places are compared.
        belief: Probability of each symbol.
        prices: Price of each symbol; its surplus is its loss less its price.
        share: The mass `s`.
        levels: A guess of the best level of each output.
        step: How far to try around it.
    """
    size = belief.size
    means, floors, losses = np.zeros(size), np.empty(size), np.empty(_BLOCK)
    low, middle, high = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    for start in range(0, size, _BLOCK):
        end = min(start + _BLOCK, size)
        part, level, mean = losses[: end - start], levels[start:end], means[start:end]
        low[:], middle[:], high[:] = 0.0, 0.0, 0.0
        for x in range(size):
            _losses(places, start, end, x, measure, part)
            mass, price = belief[x], prices[x]
            for y in range(part.size):
                mean[y] += mass * part[y]
                under = level[y] - part[y] + price
                low[y] += mass * max(under - step, 0.0)
                middle[y] += mass * max(under, 0.0)
                high[y] += mass * max(under + step, 0.0)
        for y in range(part.size):
            best = max(share * level[y] - middle[y], share * (level[y] - step) - low[y])
            floors[start + y] = max(best, share * (level[y] + step) - high[y])
    return means, floors
