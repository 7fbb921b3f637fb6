"""What ties the rows of a ledger together: a chain of hashes per stream, and one over all of them.

Every row holds the hash of itself and of the row before it in its stream, so a row that is changed,
taken out or moved shows. The head runs over all rows in the order in which they were committed: one
number that stands for everything, and can be written down elsewhere.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import msgspec

from sfumato.core.events import Event, Outcome
from sfumato.core.guarantees import LDP, SIP

HASH_BYTES = 32
_NONE = bytes(HASH_BYTES)


@dataclass(frozen=True, slots=True)
class Answer:
    """An event together with what asked for it.

    Attributes:
        id: What tells the event from all others.
        source: The input that asked first.
        place: Its row there.
        event: What left, and what it cost.
        tag: Keyed digest of the true value: tells a retry from other data under an old id.
        time: When the value was measured, if a time column was named.
    """

    id: str
    source: str
    place: int
    event: Event
    tag: bytes = b""
    time: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the ledger.

    Attributes:
        number: Its place among all rows, counted from 1.
        answer: The answer.
        state: Digest of the state of the stream after it; None if others of its commit follow.
        hash: Of this row and the one before it in its stream.
        head: Of this hash and all rows before.
    """

    number: int
    answer: Answer
    state: bytes | None
    hash: bytes
    head: bytes

    def fields(self) -> tuple[object, ...]:
        """The row as it is stored."""
        answer, event = self.answer, self.answer.event
        return (
            self.number,
            answer.id,
            answer.source,
            answer.place,
            event.stream,
            event.sequence,
            event.outcome.value,
            event.released,
            event.sip.epsilon,
            event.ldp.epsilon,
            event.batch,
            answer.time,
            answer.tag,
            self.state,
            self.hash,
            self.head,
        )

    @classmethod
    def of(cls, row: tuple[object, ...]) -> Entry:
        """A stored row; a `ValueError` if it holds what no ledger does."""
        number, id_, source, place, stream, sequence, outcome, released, *rest = row
        sip, ldp, batch, time, tag, state, hash_, head = rest
        event = Event(
            stream,  # type: ignore[arg-type]
            sequence,  # type: ignore[arg-type]
            Outcome(str(outcome)),
            released,  # type: ignore[arg-type]
            SIP(sip),  # type: ignore[arg-type]
            LDP(ldp),  # type: ignore[arg-type]
            batch,  # type: ignore[arg-type]
        )
        answer = Answer(id_, source, place, event, tag, time)  # type: ignore[arg-type]
        return cls(number, answer, state, hash_, head)  # type: ignore[arg-type]


def chained(number: int, answer: Answer, state: bytes | None, before: bytes, head: bytes) -> Entry:
    """The next row: after `before` in its stream, and after `head` among all."""
    bare = Entry(number, answer, state, _NONE, _NONE)
    own = row_hash(before, bare)
    return Entry(number, answer, state, own, next_head(head, own))


def row_hash(before: bytes, entry: Entry) -> bytes:
    """Hash of a row and of the one before it in its stream."""
    return stored_hash(before, entry.fields())


def stored_hash(before: bytes, fields: tuple[object, ...]) -> bytes:
    """The same of a row as it is stored."""
    return _hash(b"row", before + msgspec.msgpack.encode(fields[:-2]))


def next_head(head: bytes, own: bytes) -> bytes:
    """Hash of all rows up to one."""
    return _hash(b"head", head + own)


def first_hash(ledger: bytes, plan: str, stream: str) -> bytes:
    """What stands before the first row of a stream."""
    return _hash(b"stream", msgspec.msgpack.encode((ledger, plan, stream)))


def first_head(ledger: bytes, plan: str) -> bytes:
    """The head of a ledger without rows."""
    return _hash(b"ledger", msgspec.msgpack.encode((ledger, plan)))


def state_digest(state: bytes) -> bytes:
    """What a row says of the state that was committed with it."""
    return _hash(b"state", state)


def _hash(kind: bytes, content: bytes) -> bytes:
    return hashlib.sha256(b"sfumato ledger 3 " + kind + b"\0" + content).digest()
