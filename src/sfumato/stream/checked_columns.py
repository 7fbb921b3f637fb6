"""Many rows that left, and what the plan says of them, as arrays: what checks look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.stream.fleet_replay import Followed, Left
from sfumato.stream.true_values import TruthColumns


@dataclass(frozen=True, slots=True, eq=False)
class CheckedColumns:
    """Rows that are what the plan does where they stand; single values, in the order of the file.

    Attributes:
        names: Names of streams, by their places.
        left: What left.
        sequences: The moment of each in its stream.
        rows: Their numbers in the file.
        followed: What the plan says of them.
        spent: What each stream had leaked in all after them, by its place.
        truths: The true values; None where they are not known.
        order: The rows stream by stream, those of each in order.
        starts: Where the rows of each stream begin in `order`.
        streams: Places of those streams.
        counts: How many rows each has.
    """

    names: Sequence[str]
    left: Left
    sequences: Ints
    rows: Ints
    followed: Followed
    spent: Floats
    truths: TruthColumns | None = None
    order: Ints = field(init=False)
    starts: Ints = field(init=False)
    streams: Ints = field(init=False)
    counts: Ints = field(init=False)

    def __post_init__(self) -> None:
        order = np.argsort(self.left.streams, kind="stable")
        sorted_ = self.left.streams[order]
        starts = np.flatnonzero(np.diff(sorted_, prepend=-1))
        counts = np.diff(starts, append=len(order))
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "starts", starts)
        object.__setattr__(self, "streams", sorted_[starts])
        object.__setattr__(self, "counts", counts)

    def __len__(self) -> int:
        return len(self.rows)

    def owners(self) -> list[str]:
        """Names of the streams of `streams`."""
        return [self.names[place] for place in self.streams.tolist()]

    def parts(self) -> Iterator[tuple[str, int, int]]:
        """Each stream, where its rows begin in `order`, and how many it has."""
        return zip(self.owners(), self.starts.tolist(), self.counts.tolist(), strict=True)


@runtime_checkable
class ColumnCheck(Protocol):
    """A check that can look at many rows at once."""

    def covers(self, columns: CheckedColumns) -> bool:
        """Whether it has nothing to say of one of them alone; changes nothing."""

    def see_columns(self, columns: CheckedColumns) -> None:
        """Look at rows that it covers: as if each of them came alone."""
