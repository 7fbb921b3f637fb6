r"""Loops of far-sighted steps of two symbols: the value of a belief stands on an even grid."""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.compiled import njit
from sfumato.core.portable_loops import exp, log

_TURNS = 12
"""Sweeps in which splits stay, after each in which they are sought."""


@njit(cache=True, error_model="numpy")
def best_split(
    chance: float, k: float, transition: Floats, loss: Floats, values: Floats
) -> tuple[float, float, float]:
    r"""The best posteriors of two symbols: where the lower hull over those in reach passes.

    In reach are $q$ with $b/k \le q \le kb$ and $(1-b)/k \le 1-q \le k(1-b)$. The cost of going on
    from $q$ is straight between points at which $qM$ meets the grid or the best symbol changes, so
    the hull of these points is that of all.

    Args:
        chance: Probability of the second symbol.
        k: The exponential of the spend.
        transition: Two rows.
        loss: Row = true symbol, column = released one.
        values: The value at each point of an even grid from 0 to 1.

    Returns:
        The cost, and the probability of the second symbol after either output; both are `chance`
        where telling nothing is best.
    """
    low = max(chance / k, 1 - k * (1 - chance))
    high = min(k * chance, 1 - (1 - chance) / k)
    cells, base = values.size - 1, transition[0, 1]
    slope = transition[1, 1] - base
    # Points in reach, from left to right: the ends, the grid seen through the chain, corners.
    points = np.empty(values.size + loss.shape[1] ** 2 + 3)
    points[0], points[1], points[2] = low, chance, high
    count = 3
    if abs(slope) > 1e-12:
        for i in range(values.size):
            at = (i / cells - base) / slope
            if low < at < high:
                points[count] = at
                count += 1
    for z in range(loss.shape[1]):
        for other in range(z):
            gain, steep = loss[0, z] - loss[0, other], 0.0
            steep = gain - (loss[1, z] - loss[1, other])
            if steep != 0.0 and low < gain / steep < high:
                points[count] = gain / steep
                count += 1
    ordered = np.sort(points[:count])
    hull, worth = np.empty(count), np.empty(count)
    top = 0
    for i in range(count):
        at = ordered[i]
        cost = continued(at, transition, loss, values)
        while top >= 2 and (worth[top - 1] - worth[top - 2]) * (at - hull[top - 2]) >= (
            cost - worth[top - 2]
        ) * (hull[top - 1] - hull[top - 2]):
            top -= 1
        if top > 0 and at <= hull[top - 1]:
            worth[top - 1] = min(worth[top - 1], cost)
            continue
        hull[top], worth[top] = at, cost
        top += 1
    alone = continued(chance, transition, loss, values)
    for i in range(1, top):
        if hull[i - 1] <= chance <= hull[i]:
            part = (chance - hull[i - 1]) / (hull[i] - hull[i - 1])
            cost = (1 - part) * worth[i - 1] + part * worth[i]
            if cost < alone - 1e-13 * abs(alone):
                return cost, hull[i - 1], hull[i]
    return alone, chance, chance


@njit(cache=True, error_model="numpy")
def continued(chance: float, transition: Floats, loss: Floats, values: Floats) -> float:
    """The best symbol at a posterior of two symbols, and what the next belief is worth."""
    least = np.inf
    for z in range(loss.shape[1]):
        least = min(least, (1 - chance) * loss[0, z] + chance * loss[1, z])
    at = ((1 - chance) * transition[0, 1] + chance * transition[1, 1]) * (values.size - 1)
    cell = min(max(int(at), 0), values.size - 2)
    return float(least + values[cell] + (at - cell) * (values[cell + 1] - values[cell]))


@njit(cache=True, error_model="numpy")
def swept(
    transition: Floats,
    loss: Floats,
    spends: Floats,
    price: float,
    values: Floats,
    tolerance: float,
    most: int,
) -> tuple[float, int]:
    """Value iteration on the grid of two symbols until every belief gains the same; in place.

    Args:
        transition: Two rows.
        loss: Row = true symbol, column = released one.
        spends: What a step may spend; nothing is always allowed.
        price: Of a nat.
        values: One per point of an even grid; overwritten.
        tolerance: How far gains may still differ.
        most: Sweeps at most.

    Returns:
        The mean cost of a step, and the sweeps.
    """
    cells = values.size - 1
    fresh, paid, splits = np.empty(values.size), np.empty(values.size), np.empty((values.size, 2))
    low, high = 0.0, 0.0
    for sweep in range(most):
        low, high = np.inf, -np.inf
        for i in range(values.size):
            # The ends cannot be left, and stand for beliefs next to them.
            chance = min(max(i / cells, 1e-9), 1 - 1e-9)
            best = continued(chance, transition, loss, values)
            splits[i], paid[i] = chance, 0.0
            for spend in spends:
                cost, left, right = best_split(chance, exp(spend), transition, loss, values)
                spent = price * told(chance, left, right)
                if cost + spent < best:
                    best, paid[i] = cost + spent, spent
                    splits[i, 0], splits[i, 1] = left, right
            fresh[i] = best
            low, high = min(low, best - values[i]), max(high, best - values[i])
        if high - low <= tolerance:
            return (low + high) / 2, sweep
        _moved(values, fresh)
        # The same splits a few times more: far cheaper than to look for better ones each time.
        for _ in range(_TURNS):
            for i in range(values.size):
                chance = min(max(i / cells, 1e-9), 1 - 1e-9)
                left, right = splits[i]
                fresh[i] = paid[i] + continued(left, transition, loss, values)
                if right > left:
                    part = (chance - left) / (right - left)
                    other = continued(right, transition, loss, values)
                    fresh[i] += part * (other + paid[i] - fresh[i])
            _moved(values, fresh)
    return (low + high) / 2, most


@njit(cache=True, error_model="numpy")
def _moved(values: Floats, fresh: Floats) -> None:
    """Half a move towards fresh values, in place: bursts come back at a fixed distance."""
    first = fresh[0] - values[0]
    for i in range(values.size):
        values[i] += (fresh[i] - values[i] - first) / 2


@njit(cache=True, error_model="numpy")
def told(chance: float, left: float, right: float) -> float:
    """The leakage of a split of two symbols."""
    most = 0.0
    for at in (left, right):
        most = max(most, abs(log(at / chance)), abs(log((1 - at) / (1 - chance))))
    return most
