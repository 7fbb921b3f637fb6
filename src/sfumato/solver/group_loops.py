"""Loops over groups of symbols: where to put them, and what a symbol loses by sharing a row."""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit


@njit(cache=True)
def spread_centres(belief: Floats, loss: Floats, first: int, count: int) -> tuple[Ints, Ints]:
    """Outputs taken one by one, each for the symbol whose share of the loss is largest so far.

    Returns:
        The outputs, and for each symbol the place among them of its nearest.
    """
    size = belief.size
    centres, nearest = np.full(count, first), np.zeros(size, dtype=np.int64)
    least, share = loss[:, first].copy(), np.empty(size)
    for x in range(size):
        share[x] = belief[x] * least[x]
    taken = 1
    while taken < count:
        worst = int(np.argmax(share))
        if share[worst] <= 0.0:
            break
        centre = int(np.argmin(loss[worst]))
        for x in range(size):
            if loss[x, centre] < least[x]:
                least[x], nearest[x] = loss[x, centre], taken
                share[x] = min(share[x], belief[x] * least[x])
        share[worst] = 0.0
        centres[taken] = centre
        taken += 1
    return centres[:taken], nearest


@njit(cache=True)
def least_row_costs(loss: Floats, worth: Floats, room: Floats) -> Floats:
    """What a row would cost each symbol if it could fill the cheapest outputs up to their room."""
    size, outputs = loss.shape
    costs, price, left = np.zeros(size), np.empty(outputs), np.empty(outputs)
    for x in range(size):
        for y in range(outputs):
            price[y] = loss[x, y] - worth[y]
        left[:] = room
        need = 1.0
        for _ in range(outputs):
            y = int(np.argmin(price))
            part = min(need, left[y])
            costs[x] += part * price[y]
            need -= part
            if need <= 0.0:
                break
            price[y] = np.inf
    return costs


@njit(cache=True)
def best_near(nearest: Ints, values: Floats, count: int) -> Ints:
    """The output of least value around each of `count` centres; -1 where there is none."""
    best = np.full(count, -1)
    for y in range(nearest.size):
        held = best[nearest[y]]
        if held < 0 or values[y] < values[held]:
            best[nearest[y]] = y
    return best


@njit(cache=True)
def group_sums(belief: Floats, columns: Floats, groups: Ints, count: int) -> tuple[Floats, Floats]:
    """Mass of each group, and the sum of its members' losses weighted by the belief."""
    mass, sums = np.zeros(count), np.zeros((count, columns.shape[1]))
    for x in range(belief.size):
        share, group = belief[x], groups[x]
        mass[group] += share
        total, row = sums[group], columns[x]
        for y in range(row.size):
            total[y] += share * row[y]
    return mass, sums


@njit(cache=True)
def weighted_sum(weights: Floats, columns: Floats) -> Floats:
    """Sum of the rows, each times its weight; rows of no weight cost nothing."""
    total = np.zeros(columns.shape[1])
    for x in range(weights.size):
        share = weights[x]
        if share > 0.0:
            row = columns[x]
            for y in range(row.size):
                total[y] += share * row[y]
    return total
