"""Outputs of many streams in the order in which they left, cut into blocks of equal size.

A block is closed by so many values, whatever comes after: what is computed of the first blocks is
the same today and when more has left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.models.emissions import Emissions


class OutputBlock(NamedTuple):
    """Some outputs, stream by stream.

    Attributes:
        emissions: What they told; a stream for each that has values here.
        streams: The number of each among all streams.
        seen: How many values of each came before.
    """

    emissions: Emissions
    streams: Ints
    seen: Floats


@dataclass(frozen=True, slots=True, eq=False)
class OutputBlocks:
    """Which block each output is in.

    Attributes:
        emissions: What all outputs told, stream after stream.
        turns: When each left: 0, 1, ... over all streams.
        size: Values of a block; the last one may have fewer.

    Examples:
        >>> even = np.full((3, 2), 0.5)
        >>> both = OutputBlocks.of(Emissions.of_rows([even, even]), np.array([1, 2, 5, 3, 4, 6]), 2)
        >>> both.turns, both.blocks
        (array([0, 1, 4, 2, 3, 5]), array([0, 0, 2, 1, 1, 2]))
    """

    emissions: Emissions
    turns: Ints
    size: int

    @classmethod
    def of(cls, emissions: Emissions, moments: Ints, size: int) -> Self:
        """Blocks by when values left; of one stream in its own order, whatever is said.

        Args:
            emissions: What outputs told.
            moments: When each left: numbers that may have gaps, and be equal.
            size: Values of a block.
        """
        checks.count("block", size)
        if moments.size != len(emissions):
            raise InvalidParameter("moments", moments.size, f"be {len(emissions)} numbers")
        told = np.array(moments)
        for first, last in zip(emissions.starts[:-1], emissions.starts[1:], strict=True):
            told[first:last] = np.maximum.accumulate(told[first:last])
        turns = np.empty(told.size, dtype=np.int64)
        turns[np.argsort(told, kind="stable")] = np.arange(told.size)
        return cls(emissions, turns, size)

    @property
    def blocks(self) -> Ints:
        """The block of each value."""
        return self.turns // self.size

    @property
    def ends(self) -> Ints:
        """How many values there are until the end of each block."""
        count, whole = -(-self.turns.size // self.size), self.turns.size
        return np.minimum(self.size * np.arange(1, count + 1), whole)

    def summed(self, scores: Floats) -> Floats:
        """The sum over each block of one number a value."""
        return np.bincount(self.blocks, scores, minlength=len(self.ends)).astype(np.float64)

    def each(self) -> Iterator[OutputBlock]:
        """The blocks, one after another."""
        order, first = np.argsort(self.blocks, kind="stable"), 0
        for stop in self.ends.tolist():
            yield self._gathered(order[first:stop])
            first = stop

    def since(self, block: int) -> OutputBlock:
        """All that left from a block on, as one."""
        return self._gathered(np.flatnonzero(self.blocks >= block))

    def _gathered(self, values: Ints) -> OutputBlock:
        """Some values of all streams; those of one stream follow each other without a gap."""
        starts = self.emissions.starts
        owners = np.searchsorted(starts, values, side="right") - 1
        streams, places, counts = np.unique(owners, return_index=True, return_counts=True)
        seen = (values[places] - starts[:-1][streams]).astype(np.float64)
        return OutputBlock(self._part(values, np.append(0, np.cumsum(counts))), streams, seen)

    def _part(self, values: Ints, starts: Ints) -> Emissions:
        """What some values were told by, without what others were."""
        whole = self.emissions
        begins, reaches = whole.begins[values], whole.reaches[values]
        sizes = np.where(begins >= 0, whole.symbols**reaches, 0)
        ends = np.cumsum(sizes)
        places = np.repeat(begins - ends + sizes, sizes) + np.arange(int(sizes.sum()))
        own = np.where(begins >= 0, ends - sizes, -1)
        return Emissions(whole.symbols, starts, own, reaches, whole.told[places])
