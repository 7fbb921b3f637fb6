"""What ties the rows of a ledger together: a chain of hashes per stream, and one over all of them.

Every row holds the hash of itself and of the row before it in its stream, so a row that is changed,
taken out or moved shows. The head runs over all rows in the order in which they were committed: one
number that stands for everything, and can be written down elsewhere.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec

from sfumato.store.protocol import Answer, Head, Position

Row: TypeAlias = tuple[Any, ...]
"""A row as it is stored: number, answer, digest of the state, hash, head."""

ANSWER_FIELDS = tuple(field.name for field in fields(Answer))
_content = attrgetter(*ANSWER_FIELDS)
_encode = msgspec.msgpack.Encoder().encode


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the ledger.

    Attributes:
        number: Its place among all rows, counted from 1.
        answer: The answer.
        digest: Of the position of the stream after it; None if others of its commit follow.
        hash: Of this row and the one before it in its stream.
        head: Of this hash and all rows before.
    """

    number: int
    answer: Answer
    digest: bytes | None
    hash: bytes
    head: bytes

    @classmethod
    def of(cls, row: Row) -> Entry:
        """A stored row; a `ValueError` if it holds what no ledger does."""
        number, *answer, digest, own, head = row
        made = Answer(*answer)
        if isinstance(made.released, bytes):
            raise ValueError("a released value must be text, a number or nothing")
        return cls(number, made, digest, own, head)

    def content(self) -> Row:
        """What the hash is of."""
        return (self.number, *_content(self.answer), self.digest)


def chained_rows(
    answers: list[Answer], after: Position, before: bytes, head: Head
) -> tuple[list[Row], Head]:
    """The next rows of one stream, and the new head.

    Args:
        answers: The answers, in order.
        after: Where the stream stands after the last of them.
        before: Hash of the last row of the stream.
        head: The head so far.
    """
    rows: list[Row] = []
    number, above = head.entries, head.hash
    last, digest = len(answers) - 1, state_digest(after)
    for place, answer in enumerate(answers):
        number += 1
        content = (number, *_content(answer), digest if place == last else None)
        before = row_hash(before, content)
        above = next_head(above, before)
        rows.append((*content, before, above))
    return rows, Head(number, above)


def row_hash(before: bytes, content: Row) -> bytes:
    """Hash of a row, without its own hash and head, and of the one before it in its stream."""
    return _hash(b"row", before + _encode(content))


def next_head(head: bytes, own: bytes) -> bytes:
    """Hash of all rows up to one."""
    return _hash(b"head", head + own)


def first_hash(ledger: bytes, plan: str, stream: str) -> bytes:
    """What stands before the first row of a stream."""
    return _hash(b"stream", _encode((ledger, plan, stream)))


def first_head(ledger: bytes, plan: str) -> bytes:
    """The head of a ledger without rows."""
    return _hash(b"ledger", _encode((ledger, plan)))


def state_digest(after: Position) -> bytes:
    """What a row says of the position that was committed with it."""
    return _hash(b"state", _encode((after.leakage, after.model_free, after.state)))


def _hash(kind: bytes, content: bytes) -> bytes:
    return hashlib.sha256(b"sfumato ledger 4 " + kind + b"\0" + content).digest()
