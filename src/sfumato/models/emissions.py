"""What outputs told about hidden values: all that a learner may see.

There is no room here for a true value. An output is known by how likely each symbol was to make it,
under the channel that made it; whoever has plan and outputs can compute that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.errors import InvalidParameter


@dataclass(frozen=True, slots=True, eq=False)
class Emissions:
    """How likely every value made what left, stream after stream.

    Attributes:
        symbols: How many symbols a value can take.
        starts: Where the values of each stream begin, and the end.
        begins: Where the likelihood of the output that ends at a value begins in `told`; -1 where
            nothing was told.
        reaches: Over how many values, up to this one, it is.
        told: The likelihoods: of each symbol, or of each combination of symbols, the first value
            most significant.

    Examples:
        >>> two = Emissions.of_rows([np.array([[0.8, 0.2], [0.2, 0.8]]), np.array([[0.8, 0.2]])])
        >>> two.streams, len(two), two.span
        (2, 3, 1)
    """

    symbols: int
    starts: Ints
    begins: Ints
    reaches: Ints
    told: Floats

    def __post_init__(self) -> None:
        checks.count("symbols", self.symbols)
        values = int(self.starts[-1]) if self.starts.size else -1
        if values != self.begins.size or values != self.reaches.size:
            raise InvalidParameter("starts", values, "end where the values do")
        tells = self.begins >= 0
        ends = self.begins[tells] + self.symbols ** self.reaches[tells]
        if np.any(ends > self.told.size) or not np.all(self.told >= 0):
            rule = "be at least 0, with one for each combination of symbols"
            raise InvalidParameter("told", self.told.size, rule)

    @classmethod
    def of_rows(cls, streams: Sequence[Floats]) -> Emissions:
        """One row of likelihoods for every value of each stream."""
        if not streams:
            raise InvalidParameter("streams", 0, "be at least one")
        told, symbols = np.concatenate(streams), streams[0].shape[1]
        starts = np.append(0, np.cumsum([len(rows) for rows in streams]))
        places = np.arange(len(told))
        return cls(symbols, starts, places * symbols, np.ones_like(places), told.ravel())

    @classmethod
    def joined(cls, several: Sequence[Emissions]) -> Emissions:
        """The streams of all parts, one part after another; there must be one at least."""
        sizes = np.cumsum([0, *(one.told.size for one in several)])
        ends = np.cumsum([0, *(len(one) for one in several)])
        begins = [
            np.where(one.begins < 0, -1, one.begins + before)
            for one, before in zip(several, sizes[:-1], strict=True)
        ]
        starts = [one.starts[1:] + end for one, end in zip(several, ends[:-1], strict=True)]
        return cls(
            several[0].symbols,
            np.concatenate([[0], *starts]),
            np.concatenate(begins),
            np.concatenate([one.reaches for one in several]),
            np.concatenate([one.told for one in several]),
        )

    @property
    def streams(self) -> int:
        """How many streams there are."""
        return int(self.starts.size - 1)

    @property
    def span(self) -> int:
        """The most values that one output tells about together."""
        return int(self.reaches.max(initial=1))

    @property
    def telling(self) -> int:
        """How many values have an output that tells anything."""
        return int((self.begins >= 0).sum())

    def __len__(self) -> int:
        return int(self.starts[-1])

    def of_streams(self, chosen: Ints) -> Emissions:
        """Those of some streams, in the order in which they are named."""
        lengths = np.diff(self.starts)[chosen]
        starts = np.append(0, np.cumsum(lengths))
        places = np.repeat(self.starts[:-1][chosen] - starts[:-1], lengths) + np.arange(starts[-1])
        own = self.begins[places], self.reaches[places]
        return Emissions(self.symbols, starts, *own, self.told)

    def of_values(self, chosen: Bools) -> Emissions:
        """Those of some values, which all left alone; streams that have none are left out.

        Args:
            chosen: Which of all values; those of a stream must follow each other.
        """
        before = np.append(0, np.cumsum(chosen))
        starts = np.unique(before[self.starts])
        return Emissions(self.symbols, starts, self.begins[chosen], self.reaches[chosen], self.told)

    def cut(self, pieces: int) -> Emissions:
        """Streams cut into at least so many pieces in all, where they are long enough for it.

        A piece is a stream that begins where another ends. No output is cut in two.
        """
        if self.streams >= pieces:
            return self
        return self.in_pieces(-(-pieces // self.streams))[0]

    def in_pieces(self, each: int) -> tuple[Emissions, Ints]:
        """Every stream cut into at most so many pieces, and how many pieces each has become."""
        whole = np.arange(len(self)) - self.reaches + 1
        # A cut before a value is allowed if no later output reaches back over it.
        first = np.minimum.accumulate(whole[::-1])[::-1]
        edges, counts = list[int](), list[int]()
        for start, stop in zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True):
            wanted = [start + cut for cut in piece_cuts(stop - start, each)]
            own = [start, *(cut for cut in wanted if cut == first[cut])]
            edges += own
            counts.append(len(own))
        starts = np.array([*edges, len(self)], dtype=np.int64)
        parts = Emissions(self.symbols, starts, self.begins, self.reaches, self.told)
        return parts, np.array(counts, dtype=np.int64)


def piece_cuts(length: int, each: int) -> list[int]:
    """Where a stream is cut into so many pieces, if it is long enough for them.

    Examples:
        >>> piece_cuts(10, 3), piece_cuts(1, 3)
        ([3, 6], [])
    """
    wanted = (length * part // each for part in range(each))
    return [cut for cut in wanted if cut > 0]
