"""Loops over all pairs of rows of a channel."""

from __future__ import annotations

import math

from sfumato.core.arrays import Floats
from sfumato.core.compiled import njit

_HALVINGS = 52


@njit(cache=True)
def pair_delta(first: Floats, second: Floats, factor: float) -> float:
    """The sum of what one row has over a multiple of another."""
    total = 0.0
    for place in range(first.size):
        total += max(first[place] - factor * second[place], 0.0)
    return total


@njit(cache=True)
def largest_pair_delta(rows: Floats, factor: float) -> float:
    """The largest such sum over all ordered pairs of rows."""
    largest = 0.0
    for i in range(len(rows)):
        for j in range(len(rows)):
            if i != j:
                largest = max(largest, pair_delta(rows[i], rows[j], factor))
    return largest


@njit(cache=True)
def worst_pair_level(rows: Floats, delta: float, limit: float) -> float:
    """The least logarithm of a factor at which no pair has more than `delta`.

    One level is kept for all pairs: most of them are seen to be under it at once, and only
    those that are over it raise it. The far pairs come first, since they tend to be the worst.
    Infinite if it would be over the limit.
    """
    level = 0.0
    for apart in range(len(rows) - 1, 0, -1):
        for i in range(len(rows) - apart):
            for swap in range(2):
                first, second = (i, i + apart) if swap == 0 else (i + apart, i)
                if pair_delta(rows[first], rows[second], math.exp(level)) <= delta:
                    continue
                if pair_delta(rows[first], rows[second], math.exp(limit)) > delta:
                    return math.inf
                # Compiled: `core.search` asks a rule in Python. The upper end is the safe one.
                low, high = level, limit
                for _ in range(_HALVINGS):
                    middle = 0.5 * (low + high)
                    if pair_delta(rows[first], rows[second], math.exp(middle)) > delta:
                        low = middle
                    else:
                        high = middle
                level = high
    return level
