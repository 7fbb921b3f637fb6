"""Loops over sets of beliefs: how probable outputs may be at most, whatever chain of a box is true.

The same box as in `belief_sets.py`, carried through many streams. Bounds are rounded outward at
each step: what is free to move between symbols is a difference, right to an absolute error.
"""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit
from sfumato.core.portable_loops import log

Told = tuple[Ints, Ints, Floats]
_UNIT = 2.0**-53


@njit(cache=True, nogil=True, error_model="numpy")
def _tighten(low: Floats, high: Floats) -> None:
    """Bounds with what a sum of 1 says besides."""
    size = low.size
    slack = 4 * size * _UNIT
    sum_low, sum_high = 0.0, 0.0
    for x in range(size):
        sum_low += low[x]
        sum_high += high[x]
    for x in range(size):
        below = max(low[x], 1 - (sum_high - high[x]) - slack)
        above = min(high[x], 1 - (sum_low - low[x]) + slack)
        low[x], high[x] = min(max(below, 0.0), 1.0), min(max(above, 0.0), 1.0)
        low[x] = min(low[x], high[x])


@njit(cache=True, nogil=True, error_model="numpy")
def _extreme(
    low: Floats, high: Floats, values: Floats, order: Ints, but: int, mass: float
) -> float:
    """Sum of values over all symbols but one that share `mass`, filled up in an order."""
    free, total = mass, 0.0
    for x in range(low.size):
        if x != but:
            free -= low[x]
    for place in range(low.size):
        x = order[place]
        if x != but:
            moved = min(max(free, 0.0), high[x] - low[x])
            total += (low[x] + moved) * values[x]
            free -= moved
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _inform(low: Floats, high: Floats, likelihood: Floats, order: Ints, most: float) -> None:
    """Bayes' rule on an output; `order` is that of rising likelihoods."""
    size = low.size
    slack = (8 * size + 32) * _UNIT
    lower, upper = np.empty(size), np.empty(size)
    for x in range(size):
        others = _extreme(low, high, likelihood, order[::-1], x, 1 - low[x]) + slack * most
        own = low[x] * likelihood[x]
        lower[x] = own / (own + others) * (1 - slack)
        others = _extreme(low, high, likelihood, order, x, 1 - high[x]) - slack * most
        own = high[x] * likelihood[x]
        upper[x] = 0.0
        if own > 0:
            upper[x] = min(own / (own + max(others, 0.0)) * (1 + slack), 1.0)
    low[:], high[:] = lower, upper
    _tighten(low, high)


@njit(cache=True, nogil=True, error_model="numpy")
def _carry(
    low: Floats, high: Floats, least: Floats, most: Floats, rising: Ints, falling: Ints
) -> None:
    """A step of some chain of the box; `rising` orders columns of `least`, `falling` of `most`."""
    size = low.size
    slack = (8 * size + 16) * _UNIT
    lower, upper = np.empty(size), np.empty(size)
    for y in range(size):
        # No probability leaves the range of its column: a belief that is sure would be inside.
        bottom, top = least[y, rising[y, 0]], most[y, falling[y, 0]]
        below = _extreme(low, high, least[y], rising[y], -1, 1.0)
        below -= (6 * size + 24) * _UNIT * least[y, rising[y, size - 1]]
        above = _extreme(low, high, most[y], falling[y], -1, 1.0)
        above += (6 * size + 24) * _UNIT * top
        lower[y] = max(below, bottom) * (1 - slack)
        upper[y] = min(min(above, top) * (1 + slack), 1.0)
    low[:], high[:] = lower, upper
    _tighten(low, high)


@njit(cache=True, nogil=True, error_model="numpy")
def most_scores(
    first: Floats, least: Floats, most: Floats, told: Told, starts: Ints, scores: Floats
) -> None:
    """Log of the largest probability of each output over a box of chains, given earlier ones.

    Args:
        first: Least and largest probability of each symbol to begin with.
        least: Least probabilities of moves: a row for each symbol that is moved to.
        most: Largest ones.
        told: Where the likelihood of the output of a value begins, or -1; 1 for each; likelihoods.
        starts: Where the values of each stream begin, and the end.
        scores: Gets one number a value; 0 where nothing was told.
    """
    size = first.shape[1]
    rising, falling = np.empty((size, size), np.int64), np.empty((size, size), np.int64)
    for y in range(size):
        rising[y] = np.argsort(least[y], kind="mergesort")
        falling[y] = np.argsort(-most[y], kind="mergesort")
    begins, _, likelihoods = told
    for stream in range(starts.size - 1):
        low, high = first[0].copy(), first[1].copy()
        _tighten(low, high)
        for value in range(starts[stream], starts[stream + 1]):
            if value > starts[stream]:
                _carry(low, high, least, most, rising, falling)
            scores[value] = 0.0
            begin = begins[value]
            if begin >= 0:
                likelihood = likelihoods[begin : begin + size]
                order = np.argsort(likelihood, kind="mergesort")
                top = likelihood[order[size - 1]]
                mean = _extreme(low, high, likelihood, order[::-1], -1, 1.0)
                mean = min(mean + (6 * size + 24) * _UNIT * top, top)
                scores[value] = log(mean)
                _inform(low, high, likelihood, order, top)
