"""Sums that come out alike in any order and any parts: of numbers rounded to one fixed point.

Sums of floats depend on their order in the last digits, and those of an engine have no order. Here
each number is first rounded to a multiple of 2^-52; such multiples are added as whole numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from sfumato.core.arrays import Floats, Ints

POINT = 52
"""Binary digits behind the point."""
_SCALE = 2.0**POINT
_BELOW = (1 << POINT) - 1
_HALF = POINT // 2


class FixedSum(NamedTuple):
    """Sums of many numbers, each a cell: whole ones, and multiples of 2^-52 below one.

    Attributes:
        whole: The whole part of each.
        parts: What is left of each, from 0 to 2^52 - 1.

    Examples:
        >>> numbers = np.array([0.1, 1e9, -0.25, 0.1, 0.1])
        >>> float(FixedSum.of(numbers).value()) == float(FixedSum.of(numbers[::-1]).value())
        True
        >>> FixedSum.of(np.array([-1.5, 0.25])).value()
        array(-1.25)
    """

    whole: Ints
    parts: Ints

    @classmethod
    def of(cls, numbers: Floats) -> FixedSum:
        """The sum of some numbers, one cell."""
        floor = np.floor(numbers)
        parts = np.rint((numbers - floor) * _SCALE).astype(np.int64)
        # Halves of 26 digits add up without an overflow, however many there are.
        high, low = int((parts >> _HALF).sum()), int((parts & ((1 << _HALF) - 1)).sum())
        rest = (high << _HALF) + low
        whole = int(floor.astype(np.int64).sum()) + (rest >> POINT)
        return cls(np.array(whole), np.array(rest & _BELOW))

    @classmethod
    def zeros(cls, shape: tuple[int, ...]) -> FixedSum:
        """Sums of nothing yet, as loops take them."""
        return cls(np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64))

    @classmethod
    def added(cls, sums: Iterable[FixedSum]) -> FixedSum:
        """Sums of parts, cell by cell; there must be one at least."""
        several = iter(sums)
        whole, parts = next(several)
        for more, rest in several:
            parts = parts + rest
            whole, parts = whole + more + (parts >> POINT), parts & _BELOW
        return cls(whole, parts)

    @property
    def cells(self) -> tuple[Ints, Ints]:
        """Both parts, as loops take and fill them."""
        return self.whole, self.parts

    def value(self) -> Floats:
        """The sums as floats, rounded once."""
        return np.asarray(self.whole + self.parts / _SCALE, dtype=np.float64)
