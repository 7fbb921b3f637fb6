"""What ties the rows of a ledger together: a chain of hashes per stream, and one over all of them.

Rows of one stream that are committed together form links of at most 64 rows, one after the other.
The last row of a link holds the hash of all its rows and of the link before it in its stream, so a
row that is changed, taken out or moved shows, and a single row is checked with the few around it.
The last row of a commit holds the head: the hash of the head before and of the hashes of all links
of the commit, one number that stands for everything, and can be written down elsewhere.

Up to version 5 every row was a link and had a head of its own; the rule is the same for them.

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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import accumulate, islice
from operator import attrgetter
from pathlib import Path
from typing import Any, Self, TypeAlias

import msgspec

from sfumato.core.errors import CorruptData
from sfumato.core.keyed_digest import KeyedDigest
from sfumato.store.protocol import Answer, Head, LedgerMismatch, Position, Released

Row: TypeAlias = tuple[Any, ...]
"""A row as it is stored: number, answer, digest of the state, hash, head."""

ANSWER_FIELDS = tuple(field.name for field in fields(Answer))
SOURCE, STREAM, SEQUENCE = (
    1 + ANSWER_FIELDS.index(name) for name in ("source", "stream", "sequence")
)
LEAKAGE, MODEL_FREE = (1 + ANSWER_FIELDS.index(name) for name in ("leakage", "model_free"))
DIGEST, HASH, HEAD = -3, -2, -1
LINK_ROWS = 64
"""So many rows are read to check one of them; a hash per link then costs little per row."""
_content = attrgetter(*ANSWER_FIELDS)
_after = attrgetter(*(field.name for field in fields(Position)))
_encode = msgspec.msgpack.Encoder().encode
_LINE = re.compile(rb"(\d{20}) ([0-9a-f]{64})\n")
_HEAD = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_ID_BYTES, _TAG_BYTES = 16, 16


@dataclass(frozen=True, slots=True)
class Commit:
    """What is committed together, stream by stream.

    Attributes:
        columns: The fields of the answers, those of one stream after the other.
        ends: Where the answers of each stream end.
        after: The fields of the position after them, for each stream.
    """

    columns: Sequence[Sequence[Any]]
    ends: Sequence[int]
    after: Sequence[Row]

    def spans(self) -> Iterator[tuple[int, int]]:
        """Where the answers of each stream begin and end."""
        return zip((0, *self.ends), self.ends, strict=False)

    def check_moments(self, due: Sequence[int]) -> None:
        """Refuse answers that do not follow each other from the moment that is due.

        Args:
            due: The moment that comes next, for each stream.
        """
        moments = self.columns[SEQUENCE - 1]
        for (start, end), after, first in zip(self.spans(), self.after, due, strict=True):
            own, sequence = moments[start:end], after[1]
            if own[0] < first:
                rule = "an event was answered before: its moment of the stream is taken"
                raise LedgerMismatch(rule)
            if sequence <= first:
                raise LedgerMismatch("a state may only move forward and never lower its spend")
            if list(own) != list(range(first, sequence)):
                raise LedgerMismatch("answers must follow each other, moment by moment")

    def chained(
        self, before: Sequence[bytes], head: Head
    ) -> tuple[Iterator[Row], list[bytes], Head]:
        """The next rows, the hash of the last row of each stream, and the new head.

        Args:
            before: Hash of the last row of each stream so far.
            head: The head so far.
        """
        *answers, signals = self.columns
        count = len(signals)
        numbers = range(head.entries + 1, head.entries + count + 1)
        digests: list[bytes | None] = [None] * count
        for end, after in zip(self.ends, self.after, strict=True):
            digests[end - 1] = state_digest(*after[2:])
        # Rows are made one at a time, where they are used: no list of them is ever held.
        contents: Iterator[Row] = zip(numbers, *answers, digests, strict=True)
        if signals.count(None) < count:
            contents = map(hashed, zip(numbers, *self.columns, digests, strict=True))
        hashes, heads, last = [b""] * count, [b""] * count, []
        for (start, end), above in zip(self.spans(), before, strict=True):
            for first in range(start, end, LINK_ROWS):
                stop = min(first + LINK_ROWS, end)
                above = hashes[stop - 1] = link_hash(above, islice(contents, stop - first))
            last.append(above)
        heads[-1] = next_head(head.hash, hashes)
        rows = zip(numbers, *self.columns, digests, hashes, heads, strict=True)
        return rows, last, Head(numbers[-1], heads[-1])


def by_stream(answers: Iterable[Answer], positions: Iterable[Position]) -> Commit:
    """Answers and positions that are committed together.

    Raises:
        LedgerMismatch: If a stream has one and not the other.
    """
    groups: dict[str, list[Row]] = {}
    for answer in answers:
        groups.setdefault(answer.stream, []).append(_content(answer))
    after = {position.stream: _after(position) for position in positions}
    if set(groups) != set(after):
        raise apart()
    rows = [row for stream in after for row in groups[stream]]
    ends = list(accumulate(len(groups[stream]) for stream in after))
    return Commit(list(zip(*rows, strict=True)), ends, list(after.values()))


def apart() -> LedgerMismatch:
    """The refusal of answers without the states after them."""
    return LedgerMismatch("an answer and the state after it must be stored together")


def hashed(content: Row) -> Row:
    """What the hash is of: a row without its hash and head."""
    *answer, signal, digest = content
    # Rows without a signal are hashed as they were before there were any: old ledgers go on.
    return (*answer, digest) if signal is None else content


def link_hash(before: bytes, contents: Iterable[Row]) -> bytes:
    """Hash of the rows of a link, and of the link before it in its stream."""
    return _hash(b"row", before + b"".join(map(_encode, contents)))


def next_head(head: bytes, hashes: Iterable[bytes]) -> bytes:
    """Hash of all rows up to the last of a commit whose links have these hashes."""
    return _hash(b"head", head + b"".join(hashes))


def links(pages: Iterable[Sequence[Row]]) -> Iterator[Sequence[Row]]:
    """Rows of the ledger, or of one stream, link by link; the last may lack its end."""
    rest: list[Row] = []
    for page in pages:
        rows, start = [*rest, *page], 0
        for end in [end for end, row in enumerate(rows, 1) if row[HASH]]:
            yield rows[start:end]
            start = end
        rest = rows[start:]
    if rest:
        yield rest


def intact(link: Sequence[Row], before: bytes) -> bool:
    """Whether the rows of a link are those that were committed after another link."""
    own: bytes = link[-1][HASH]
    return link_hash(before, [hashed(row[:HASH]) for row in link]) == own


def answer_of(row: Row) -> Answer:
    """The answer of a stored row; a `ValueError` if it holds what no ledger does."""
    made = Answer(*row[1:DIGEST])
    if isinstance(made.released, bytes):
        raise ValueError("a released value must be text, a number or nothing")
    return made


def first_hash(ledger: bytes, plan: str, stream: str) -> bytes:
    """What stands before the first row of a stream."""
    return _hash(b"stream", _encode((ledger, plan, stream)))


def new_id(job: str, rules: str | None) -> bytes:
    """Tells a new ledger from others, and holds the digest of its rules: all hashes begin with it.

    Examples:
        >>> own = new_id("release", "a rule")
        >>> keeps_rules(own, "release", "a rule"), keeps_rules(own, "release", None)
        (True, False)
    """
    return os.urandom(_ID_BYTES) + _rules_digest(job, rules)


def keeps_rules(ledger: bytes, job: str, rules: str | None) -> bool:
    """Whether these can be the rules that a ledger was begun with; of old ids nothing is known."""
    return len(ledger) == _ID_BYTES or ledger[_ID_BYTES:] == _rules_digest(job, rules)


def _rules_digest(job: str, rules: str | None) -> bytes:
    return _hash(b"rules", _encode((job, rules)))


def first_head(ledger: bytes, plan: str) -> bytes:
    """The head of a ledger without rows."""
    return _hash(b"ledger", _encode((ledger, plan)))


def state_digest(leakage: float, model_free: float, state: bytes) -> bytes:
    """What a row says of the position that was committed with it."""
    return _hash(b"state", _encode((leakage, model_free, state)))


def _hash(kind: bytes, content: bytes) -> bytes:
    return hashlib.sha256(b"sfumato ledger 4 %b\0%b" % (kind, content)).digest()


def value_tag(secret: bytes, id_: str, stream: str, value: Released) -> bytes:
    """Keyed digest of the value of one event; the same value of two events has two digests."""
    content = _encode((id_, stream, value))
    return hmac.digest(secret, b"sfumato value 1 " + content, "sha256")[:_TAG_BYTES]


def value_tags(
    secret: bytes, ids: Sequence[str], streams: Sequence[str], values: Sequence[Released]
) -> list[bytes]:
    """Keyed digests of the values of many events, as `value_tag` makes them.

    Examples:
        >>> [tag] = value_tags(b"key", ["e1"], ["ann"], ["home"])
        >>> tag == value_tag(b"key", "e1", "ann", "home")
        True
    """
    digest = KeyedDigest(secret, b"sfumato value 1 ")
    events = map(_encode, zip(ids, streams, values, strict=True))
    return [digest(event)[:_TAG_BYTES] for event in events]


def head_file(ledger: Path) -> Path:
    """Where the head of a ledger is kept."""
    return ledger.with_name(f"{ledger.name}.head")


def head_line(head: Head) -> bytes:
    """What a head file holds; always of one length, so that one replaces another."""
    return b"%020d %s\n" % (head.entries, head.hash.hex().encode())


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
            # Whoever held it may just have removed it: then the name is another file's.
            if not os.path.samestat(os.fstat(self._handle), os.stat(self._path)):
                raise FileNotFoundError
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
        os.pwrite(self._handle, head_line(head), 0)

    def clear(self) -> None:
        """Forget what was written: there is no ledger."""
        os.ftruncate(self._handle, 0)

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
        return read_head(path.read_bytes(), path)
    except FileNotFoundError:
        return None


def read_head(line: bytes, path: Path) -> Head | None:
    """The head that a head file holds; None if it is empty."""
    if not line:
        return None
    found = _LINE.fullmatch(line)
    if found is None:
        raise CorruptData(f"{path}: the head of a ledger is damaged")
    return Head(int(found[1]), bytes.fromhex(found[2].decode()))
