"""Integer weights as long as the smallest probability asks for, in digits of 31 bits.

Sixty-two bits decide almost every draw; only a coin that is the beginning of a boundary between two
cells needs more of them, once in a million billion draws.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Floats, Ints
from sfumato.core.randomness import BITS, Randomness

# Bits of a digit: two of them are a coin, and millions of them add up in 64 bits.
_LIMB = 31


def first_digits(shares: Floats) -> Ints:
    """First digits of the running sums of the weights that stand for some shares."""
    sums = limb_sums(weight_limbs(shares))
    cumulative = (sums[0] << _LIMB) + sums[1]
    cumulative.setflags(write=False)
    return np.asarray(cumulative)


def weight_limbs(shares: Floats) -> Ints:
    """Integer weights that are in proportion to some shares, to all the digits that these have.

    Returns:
        The digits of each weight, the first most significant, an even number of them; all weights
        together are one unit before the first digit.
    """
    masses = shares / shares.sum()
    least = float(masses[masses > 0].min())
    count = math.ceil((54 - portable.log2(least)) / _LIMB)
    digits = np.zeros((count + count % 2, masses.size), dtype=np.int64)
    rest = masses
    for row in digits:
        scaled = np.ldexp(rest, _LIMB)
        row[:] = np.floor(scaled)
        rest = scaled - row  # exact: what is left of a float is a float
    # What rounding left over is the largest weight's, which hardly notices.
    largest = int(masses.argmax())
    missing = (1 << _LIMB * len(digits)) - _number(digits.sum(axis=1).tolist(), _LIMB)
    whole = missing + _number(digits[:, largest].tolist(), _LIMB)
    for row in digits[::-1]:
        whole, row[largest] = divmod(whole, 1 << _LIMB)
    return digits


def _number(digits: list[int], bits: int) -> int:
    """A number from its digits, which may be larger than digits are."""
    whole = 0
    for digit in digits:
        whole = (whole << bits) + digit
    return whole


def limb_sums(digits: Ints) -> Ints:
    """Running sums of numbers in digits; the first digit of the last one is one unit over."""
    sums = digits.cumsum(axis=1)
    for place in range(len(sums) - 1, 0, -1):
        sums[place - 1] += sums[place] >> _LIMB
        sums[place] &= (1 << _LIMB) - 1
    return np.asarray(sums)


def settled(shares: Floats, cumulative: Ints, coin: int, randomness: Randomness) -> int:
    """The cell of a coin that is the first digits of a boundary: further coins decide."""
    low, high = np.searchsorted(cumulative, [coin, coin + 1], side="left").tolist()
    rest = limb_sums(weight_limbs(shares))[2:]
    words = randomness.words(len(rest) // 2) >> np.uint64(64 - BITS)
    more = _number(words.tolist(), BITS)
    return int(low) + sum(_number(rest[:, i].tolist(), _LIMB) <= more for i in range(low, high))
