"""Whole numbers in the place of probabilities: what is drawn from is what is certified."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Floats, Ints

# Integer weights sum to 2**BITS: the largest power of two that leaves int64 sums exact.
BITS = 62


def integer_weights(probabilities: Floats) -> Ints:
    """Round each row of a probability matrix to integers that sum to `2**BITS` exactly.

    Every entry moves by at most one unit, except the largest of its row, which takes up what is
    left over: rounding, if the row sums to 1.

    Examples:
        >>> int(integer_weights(np.array([[0.1, 0.9]])).sum()) == 2**BITS
        True
    """
    weights = np.rint(np.ldexp(probabilities, BITS)).astype(np.int64)
    largest = probabilities.argmax(axis=1)
    weights[np.arange(len(weights)), largest] += 2**BITS - weights.sum(axis=1)
    return weights


def categorical(cumulative: Ints, rows: Ints, words: NDArray[np.uint64]) -> Ints:
    """Draw one column for each row number, one word each, exactly by the integer weights.

    Args:
        cumulative: Running sums of the weights along each row; the last column is `2**BITS`.
        rows: Which row each draw is made from.
        words: One uniformly random word per draw; its upper `BITS` bits are the coin.

    Examples:
        >>> cumulative = integer_weights(np.array([[0.5, 0.5]])).cumsum(axis=1)
        >>> words = np.array([0, 2**64 - 1], dtype=np.uint64)
        >>> categorical(cumulative, np.array([0, 0]), words)
        array([0, 1])
    """
    coins = (words >> np.uint64(64 - BITS)).astype(np.int64)
    if len(coins) == 1:
        return np.array([np.searchsorted(cumulative[rows[0]], coins[0], side="right")])
    return np.asarray((cumulative[rows] <= coins[:, None]).sum(axis=1), dtype=np.int64)


def sampled(probabilities: Floats, words: NDArray[np.uint64]) -> Ints:
    """Draw from one distribution, one word each."""
    cumulative = integer_weights(probabilities[None, :]).cumsum(axis=1)
    return categorical(cumulative, np.zeros(words.size, dtype=np.int64), words)
