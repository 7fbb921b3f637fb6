"""What the state store of an engine keeps of one shard of streams, as bytes.

A shard is many streams under one key of the engine. It holds where its streams stand, array by
array, and the answers of events that may still be asked for again. All of it follows from what has
left: names, ids, times, answers, beliefs and sums. No true value is part of it, nor any coin.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Bools, Ints
from sfumato.core.errors import CorruptData
from sfumato.store.codec import from_bytes, to_bytes

if TYPE_CHECKING:
    import pyarrow as pa

NEVER = -(2**62)
"""The last time of a stream that has no answer: before all others."""


@dataclass(frozen=True, slots=True)
class ShardState:
    """Where the streams of a shard stand.

    Attributes:
        release: Digest of plan, model, key and number of shards (see `checkpoint_identity`), and
            the id of the query.
        names: The streams.
        times: Of each, the time of its last answer, in microseconds.
        rows: What is known of the streams, array by array, or state by state.
        kept: Answers that may be asked for again: a table in Arrow's format.

    Examples:
        >>> state = ShardState("digest", ["ann"], [0], [b""], b"")
        >>> ShardState.of_bytes(state.encoded, "digest").names
        ['ann']
        >>> ShardState.of_bytes(state.encoded, "another")
        Traceback (most recent call last):
        sfumato.engines.spark.shard_state.OtherRelease: the checkpoint belongs to a release ...
    """

    release: str
    names: list[str]
    times: list[int]
    rows: list[bytes]
    kept: bytes

    @property
    def encoded(self) -> bytes:
        """As a state store keeps it: with a checksum, and the layout of this version."""
        return to_bytes(self)

    @classmethod
    def of_bytes(cls, stored: bytes, release: str) -> ShardState:
        """What a state store kept for this release.

        Raises:
            OtherRelease: If it is that of another release; nothing may be drawn then.
            CorruptData: If it is damaged.
        """
        found = from_bytes(stored, cls)
        if found.release != release:
            raise OtherRelease
        if len(found.times) != len(found.names):
            raise CorruptData("a stored shard must have a time for each of its streams")
        return found


class OtherRelease(CorruptData):
    """A checkpoint was opened with another plan, model, key or number of shards."""

    def __init__(self) -> None:
        super().__init__(
            "the checkpoint belongs to a release with another model, policy, rules, key, columns "
            "or number of shards; go on with those, or begin a new checkpoint, where every stream "
            "has its whole budget again"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Answers of some events, by columns.

    Attributes:
        hashes: Of stream and id, as the engine computes them: alike where those are alike.
        places: Of the streams in their shard.
        ids: What tells each event from others of its stream.
        times: When, in microseconds.
        sequences: The moment of each in its stream.
        outcomes: What left: places in `tuple(Outcome)`.
        released: Places of symbols in the alphabet, -1 for none.
        signals: Which output of its channel left, -1 for none.
        charges: Both certificates of each.
    """

    hashes: Ints
    places: Ints
    ids: pa.Array
    times: Ints
    sequences: Ints
    outcomes: Ints
    released: Ints
    signals: Ints
    charges: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.hashes)

    def where(self, chosen: Bools) -> Answers:
        """Some of them."""
        import pyarrow as pa

        return self._made(lambda part: part[chosen], self.ids.filter(pa.array(chosen)))

    def at(self, rows: Ints) -> Answers:
        """Some of them by their numbers, each as often as it is named."""
        import pyarrow as pa

        return self._made(lambda part: part[rows], self.ids.take(pa.array(rows)))

    def _made(self, of: Callable[[Any], Any], ids: pa.Array) -> Answers:
        return Answers(ids=ids, **{name: of(getattr(self, name)) for name in _NUMBERS})

    def joined(self, others: Answers) -> Answers:
        """These and then others."""
        import pyarrow as pa

        numbers = {
            name: np.concatenate([getattr(self, name), getattr(others, name)]) for name in _NUMBERS
        }
        return Answers(ids=pa.concat_arrays([self.ids, others.ids]), **numbers)

    @property
    def encoded(self) -> bytes:
        """As a table in Arrow's format."""
        import pyarrow as pa

        # A shard is rewritten whole by every micro-batch: small numbers take a fraction of it.
        columns = {name: pa.array(_narrow(getattr(self, name))) for name in _WHOLE}
        columns |= {"ids": self.ids, "sip": pa.array(self.charges[:, 0])}
        columns["ldp"] = pa.array(self.charges[:, 1])
        batch = pa.RecordBatch.from_pydict(columns)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return bytes(sink.getvalue())

    @classmethod
    def of_bytes(cls, stored: bytes) -> Answers:
        """What `encoded` made; none if there are no bytes."""
        import pyarrow as pa

        if not stored:
            none = np.zeros(0, dtype=np.int64)
            return cls(
                ids=pa.array([], pa.string()),
                **dict.fromkeys(_WHOLE, none),
                charges=np.zeros((0, 2)),
            )
        batch = pa.ipc.open_stream(stored).read_next_batch()
        numbers = {name: batch.column(name).to_numpy().astype(np.int64) for name in _WHOLE}
        sums = [batch.column(name).to_numpy() for name in ("sip", "ldp")]
        return cls(ids=batch.column("ids"), **numbers, charges=np.stack(sums, axis=1))


def _narrow(numbers: Ints) -> NDArray[np.signedinteger[Any]]:
    """Whole numbers in as few bytes as all of them fit in."""
    least, most = int(numbers.min(initial=0)), int(numbers.max(initial=0))
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= least and most <= np.iinfo(kind).max:
            return numbers.astype(kind)
    return numbers


_WHOLE = ("hashes", "places", "times", "sequences", "outcomes", "released", "signals")
_NUMBERS = (*_WHOLE, "charges")
