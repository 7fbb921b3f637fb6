"""What recorded streams say of their moves, stream by stream: all that a mixture is fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter


@dataclass(frozen=True, slots=True, eq=False)
class StreamCounts:
    """What recorded streams say of their moves, one by one.

    Attributes:
        size: How many symbols there are.
        pairs: The moves that occur in any stream, `first * size + second`, rising.
        counts: How often each stream made each of its moves, stream after stream.
        places: Which move that is, a place in `pairs`.
        starts: Where those of each stream begin, and the end.
        begins: First value of each stream.
        lengths: Values of each stream.
        symbols: How often each stream shows each symbol.
    """

    size: int
    pairs: Ints
    counts: Floats
    places: Ints
    starts: Ints
    begins: Ints
    lengths: Floats
    symbols: sparse.csr_array

    @classmethod
    def of(cls, paths: Sequence[Ints], size: int) -> StreamCounts:
        """Those of sequences of places, none empty.

        Examples:
            >>> told = StreamCounts.of([np.array([0, 1, 0, 1]), np.array([1, 1])], 2)
            >>> told.pairs, told.counts, told.starts
            (array([1, 2, 3]), array([2., 1., 1.]), array([0, 2, 3]))
        """
        if not paths or min(map(len, paths)) == 0:
            raise InvalidParameter("sequences", "an empty one", "each hold at least one value")
        own = [np.unique(path[:-1] * size + path[1:], return_counts=True) for path in paths]
        codes = np.concatenate([pairs for pairs, _ in own])
        pairs, places = np.unique(codes, return_inverse=True)
        lengths = np.array([len(path) for path in paths], dtype=np.float64)
        shown = sparse.coo_array(
            (
                np.ones(int(lengths.sum())),
                (np.repeat(np.arange(len(paths)), lengths.astype(np.int64)), np.concatenate(paths)),
            ),
            shape=(len(paths), size),
        )
        return cls(
            size=size,
            pairs=pairs.astype(np.int64),
            counts=np.concatenate([seen for _, seen in own]).astype(np.float64),
            places=places.astype(np.int64),
            starts=np.append(0, np.cumsum([len(seen) for _, seen in own])).astype(np.int64),
            begins=np.array([path[0] for path in paths], dtype=np.int64),
            lengths=lengths,
            symbols=sparse.csr_array(shown),
        )

    @property
    def streams(self) -> int:
        """How many streams there are."""
        return int(self.begins.size)

    @property
    def stays(self) -> Floats:
        """Share of the moves of each stream that lead nowhere else."""
        first, second = np.divmod(self.pairs, self.size)
        owners = np.repeat(np.arange(self.streams), np.diff(self.starts))
        same = self.counts * (first == second)[self.places]
        found = np.bincount(owners, same, minlength=self.streams)
        return np.asarray(found / np.maximum(self.lengths - 1, 1.0))

    @property
    def shown(self) -> Floats:
        """Share of the values of each stream that are each symbol: one row per stream."""
        return np.asarray(self.symbols.toarray() / self.lengths[:, None])

    @property
    def of_streams(self) -> tuple[Floats, Ints, Ints, Ints]:
        """What the loops read of each stream."""
        return self.counts, self.places, self.starts, self.begins
