"""What ties the rows of a ledger together: a chain of hashes per stream, and one over all of them.

Every row holds the hash of itself and of the row before it in its stream, so a row that is changed,
taken out or moved shows. The head runs over all rows in the order in which they were committed: one
number that stands for everything, and can be written down elsewhere.

The head file, `LEDGER.head`, is held by the one process that writes the ledger, and says after
every commit, before an answer leaves, how many rows there are and what their head is. A ledger that
has fewer rows, or others, was rolled back, or lost its write-ahead log.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from pathlib import Path
from typing import Any, Self, TypeAlias

import msgspec

from sfumato.core.errors import CorruptData
from sfumato.store.protocol import Answer, Head, LedgerMismatch, Position, Released

Row: TypeAlias = tuple[Any, ...]
"""A row as it is stored: number, answer, digest of the state, hash, head."""

ANSWER_FIELDS = tuple(field.name for field in fields(Answer))
_content = attrgetter(*ANSWER_FIELDS)
_encode = msgspec.msgpack.Encoder().encode
_LINE = re.compile(rb"(\d{20}) ([0-9a-f]{64})\n")
_HEAD = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_TAG_BYTES = 16


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


def by_stream(
    answers: Iterable[Answer], positions: Iterable[Position]
) -> list[tuple[list[Answer], Position]]:
    """What is committed together, stream by stream: the answers, and the position after them.

    Raises:
        LedgerMismatch: If a stream has one and not the other.
    """
    groups: dict[str, list[Answer]] = {}
    for answer in answers:
        groups.setdefault(answer.stream, []).append(answer)
    after = {position.stream: position for position in positions}
    if set(groups) != set(after):
        raise LedgerMismatch("an answer and the state after it must be stored together")
    return [(groups[stream], position) for stream, position in after.items()]


def check_moments(answers: Sequence[Answer], after: Position, due: int) -> None:
    """Refuse answers of one stream that do not follow each other from the moment that is due."""
    moments = [answer.sequence for answer in answers]
    if moments[0] < due:
        raise LedgerMismatch("an event was answered before: its moment of the stream is taken")
    if after.sequence <= due:
        raise LedgerMismatch("a state may only move forward and never lower its spend")
    if moments != list(range(due, after.sequence)):
        raise LedgerMismatch("answers must follow each other, moment by moment")


def row_hash(before: bytes, content: Row) -> bytes:
    """Hash of a row, without its own hash and head, and of the one before it in its stream."""
    *answer, signal, digest = content
    # Rows without a signal are hashed as they were before there were any: old ledgers go on.
    return _hash(b"row", before + _encode((*answer, digest) if signal is None else content))


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


def value_tag(secret: bytes, id_: str, stream: str, value: Released) -> bytes:
    """Keyed digest of the value of one event; the same value of two events has two digests."""
    content = _encode((id_, stream, value))
    return hmac.digest(secret, b"sfumato value 1 " + content, "sha256")[:_TAG_BYTES]


def value_tags(
    secret: bytes, ids: Sequence[str], streams: Sequence[str], values: Sequence[Released]
) -> list[bytes]:
    """Keyed digests of the values of many events, as `value_tag` makes them."""
    return [value_tag(secret, *event) for event in zip(ids, streams, values, strict=True)]


def head_file(ledger: Path) -> Path:
    """Where the head of a ledger is kept."""
    return ledger.with_name(f"{ledger.name}.head")


class Anchor:
    """The head file of a ledger, held by one process.

    Examples:
        >>> path = getfixture("tmp_path") / "city.ledger"
        >>> with Anchor(path) as anchor:
        ...     anchor.write(Head(2, bytes(32)))
        >>> written_head(path).entries
        2
    """

    def __init__(self, ledger: Path) -> None:
        self._path = head_file(ledger)
        self._handle = os.open(self._path, _HEAD, 0o600)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._handle)
            raise LedgerMismatch(f"{ledger}: the ledger is in use by another release") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, head: Head) -> None:
        """Say that so many rows are on disk; a power cut may lose this, and is no harm.

        What is lost then is how new the ledger is, and it may be newer than its head says.
        """
        os.pwrite(self._handle, b"%020d %s\n" % (head.entries, head.hash.hex().encode()), 0)

    def close(self) -> None:
        """Let others hold it; what was written stays."""
        if self._handle >= 0:
            if os.fstat(self._handle).st_size == 0:
                self._path.unlink(missing_ok=True)  # nothing was begun
            os.fsync(self._handle)
            os.close(self._handle)
            self._handle = -1


def written_head(ledger: Path) -> Head | None:
    """The head that was written last; None if there is none."""
    path = head_file(ledger)
    try:
        line = path.read_bytes()
    except FileNotFoundError:
        return None
    if not line:
        return None
    found = _LINE.fullmatch(line)
    if found is None:
        raise CorruptData(f"{path}: the head of a ledger is damaged")
    return Head(int(found[1]), bytes.fromhex(found[2].decode()))
