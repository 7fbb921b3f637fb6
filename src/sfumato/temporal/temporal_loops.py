r"""Loops over all pairs of rows of a transition matrix.

For two rows $q, d$ and a set of columns with sums $Q, D$ the leakage of a step is
$\log\frac{1 + cQ}{1 + cD}$ with $c = e^\alpha - 1$; the best set at $\lambda = 1 + \mu$ is
$\{j : q_j > \lambda d_j\}$. Everything is kept as the gap $Q - D$ and the base $D$, sums of
positive terms, so that nothing cancels; `rate` stands for $1/c$, so that nothing overflows.

Most pairs are far from the best one. They are told by a sum in single precision, four billion
terms a second, that is wrong by less than a unit for each term; only pairs near the best are looked
at in double precision, and nothing that is returned rests on the quick sum.
"""

from __future__ import annotations

import numpy as np
from numba import float32
from numpy.typing import NDArray

from sfumato.core.arrays import Floats
from sfumato.core.compiled import njit
from sfumato.core.portable_loops import exp, expm1, log1p

Singles = NDArray[np.float32]

# Rows compared with each other while both lie in the cache.
_TILE = 16
# Twice the relative error of a single-precision operation.
_UNIT = 2.0**-23
MOST_ALPHA = 700.0
"""Beyond this e**alpha leaves the floats."""
# Factors beyond this leave single precision; then only the full sum is used.
_LARGEST = 1e30
# Sums may be regrouped where they only sift.
_SIFTING = {"reassoc", "contract", "nsz", "nnan", "ninf"}


@njit(cache=True, fastmath=_SIFTING)
def _quick(first: Singles, second: Singles, factor: float) -> tuple[float, float]:
    """What each row has over a multiple of the other, summed, about."""
    forth, back, zero, times = float32(0), float32(0), float32(0), float32(factor)
    for place in range(first.size):
        here, there = first[place], second[place]
        forth += max(here - times * there, zero)
        back += max(there - times * here, zero)
    return float(forth), float(back)


@njit(cache=True)
def chosen(first: Floats, second: Floats, excess: float) -> tuple[float, float]:
    """Gap and base of the columns where one row is over a multiple `1 + excess` of another."""
    gap, base = 0.0, 0.0
    for place in range(first.size):
        over = first[place] - second[place]
        if over > excess * second[place]:
            gap += over
            base += second[place]
    return gap, base


@njit(cache=True)
def _raised(
    first: Floats, second: Floats, rate: float, excess: float
) -> tuple[float, float, float]:
    """The largest excess of a pair, if it is over a given one; Dinkelbach's iteration.

    Returns:
        The excess, and the gap and base that have it; nothing of both if it is the given one.
    """
    best = (excess, 0.0, 0.0)
    while True:
        gap, base = chosen(first, second, best[0])
        found = gap / (rate + base)
        if not found > best[0]:
            return best
        best = (found, gap, base)


@njit(cache=True)
def largest_excess(rows: Floats, singles: Singles, rate: float) -> tuple[float, float, float]:
    """The largest excess of any pair: one value is kept, and raised by those that beat it.

    Returns:
        The excess, and gap and base of the pair that has it.
    """
    size, excess = len(rows), 0.0
    margin = (8 + rows.shape[1]) * _UNIT
    best = (0.0, 0.0, 0.0)
    for top in range(0, size, _TILE):
        for left in range(top, size, _TILE):
            for i in range(top, min(size, top + _TILE)):
                for j in range(max(left, i + 1), min(size, left + _TILE)):
                    level = excess * rate - margin
                    forth, back = level, level
                    if excess < _LARGEST:
                        forth, back = _quick(singles[i], singles[j], 1 + excess)
                    for way in range(2):
                        if (forth if way == 0 else back) < level:
                            continue
                        a, b = (i, j) if way == 0 else (j, i)
                        raised = _raised(rows[a], rows[b], rate, excess)
                        if raised[0] > excess:
                            best = raised
                            excess = raised[0]
    return best


@njit(cache=True)
def farthest(rows: Floats, singles: Singles, excess: float) -> tuple[float, float, int, int]:
    """The gap and base that are farthest out: the largest `gap - excess * base` of any pair.

    Returns:
        Gap, base, and the two rows.
    """
    size, best = len(rows), (0.0, 0.0, 0, 0)
    margin = (8 + rows.shape[1]) * _UNIT
    most = 0.0
    for top in range(0, size, _TILE):
        for left in range(top, size, _TILE):
            for i in range(top, min(size, top + _TILE)):
                for j in range(max(left, i + 1), min(size, left + _TILE)):
                    level = most - margin
                    forth, back = level, level
                    if excess < _LARGEST:
                        forth, back = _quick(singles[i], singles[j], 1 + excess)
                    for way in range(2):
                        told = forth if way == 0 else back
                        if told < level:
                            continue
                        a, b = (i, j) if way == 0 else (j, i)
                        gap, base = chosen(rows[a], rows[b], excess)
                        if gap - excess * base > most:
                            most = gap - excess * base
                            best = (gap, base, a, b)
    return best


@njit(cache=True)
def apart(rows: Floats) -> tuple[float, int, int]:
    """The largest part of a row that lies where another row is 0, and the two rows."""
    size, best, pair = len(rows), -1.0, (0, 0)
    for i in range(size):
        for j in range(size):
            if i == j:
                continue
            alone, shared = 0.0, False
            for place in range(rows.shape[1]):
                if rows[j, place] == 0.0:
                    alone += rows[i, place]
                elif rows[i, place] > 0.0:
                    shared = True
            # Nothing shared is all of it, whatever the sum was rounded to.
            if not shared:
                return 1.0, i, j
            if alone > best:
                best, pair = alone, (i, j)
    return max(best, 0.0), pair[0], pair[1]


@njit(cache=True)
def step(alpha: float, gaps: Floats, bases: Floats, limits: Floats, error: float) -> float:
    """The loss function at one point, rounded up.

    Args:
        alpha: Where.
        gaps: Of the pieces, from the one for the largest alpha to that for the smallest.
        bases: The same.
        limits: `limits[i]` is the rate at which piece `i` gives way to piece `i + 1`, rising.
        error: Relative error of the gaps and bases.
    """
    if alpha <= 0.0 or gaps.size == 0:
        return 0.0
    if bases[0] == 0.0 and gaps[0] == 1.0:
        return alpha
    last = np.inf
    if bases[0] > 0.0:
        last = log1p(_upward(gaps[0], bases[0], error) / bases[0]) * (1 + 8.9e-16)
    if np.isinf(alpha):
        return float(last)
    # Beyond what floats hold the loss grows no faster than alpha does.
    beyond = max(0.0, alpha - MOST_ALPHA)
    rate = exp(beyond - alpha) / -expm1(beyond - alpha)
    place = int(np.searchsorted(limits, rate))
    best = 0.0
    # Neighbours too, for the limits are rounded.
    for piece in range(max(0, place - 1), min(gaps.size, place + 2)):
        best = max(best, _upward(gaps[piece], bases[piece], error) / (rate + bases[piece]))
    bound = log1p(best) * (1 + 8.9e-16) + beyond
    return float(min(alpha, bound, last))


@njit(cache=True)
def _upward(gap: float, base: float, error: float) -> float:
    """A gap that is not less than the exact one: entries of rows are rounded, each by a unit."""
    return gap * (1 + error) + 8.9e-16 * (gap + 2 * base)


@njit(cache=True)
def accumulate(
    epsilons: Floats, start: float, gaps: Floats, bases: Floats, limits: Floats, error: float
) -> Floats:
    """Leakages of successive releases, each on top of what the one before leaks of it."""
    found = np.empty(epsilons.size)
    total = start
    for place in range(epsilons.size):
        carried = step(total, gaps, bases, limits, error)
        total = carried + epsilons[place]
        if carried > 0.0:
            total = np.nextafter(total, np.inf)
        found[place] = total
    return found
