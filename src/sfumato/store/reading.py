"""A ledger, read: its answers and states, each checked against the chain when it is used.

Reading changes nothing: no table is made, no log is written, and a file that may not be written, or
a copy, is read like any other.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeAlias, TypeVar
from urllib.parse import quote

from sfumato.core.errors import CorruptData
from sfumato.core.state import StreamState
from sfumato.store.anchor import Head, LedgerMismatch, written_head
from sfumato.store.chain import (
    Answer,
    Entry,
    first_hash,
    first_head,
    next_head,
    row_hash,
    state_digest,
    stored_hash,
)
from sfumato.store.codec import from_bytes

VERSION = 3
_QUESTION_MARKS = 500
_PAGE = 4096
Item = TypeVar("Item")
_Link: TypeAlias = tuple[int, bytes, bytes | None]
_StreamRow: TypeAlias = tuple[int, float, float, bytes, bytes]

COLUMNS = """entry, id, source, place, stream, sequence, outcome, released, sip, ldp, batch, time,
    tag, state, hash, head"""
_SEQUENCE = 5
_LINK = "sequence + 1, hash, state"
_BEFORE = """SELECT before.hash FROM events AS before
    WHERE before.stream = events.stream AND before.sequence = events.sequence - 1"""


@dataclass(frozen=True, slots=True)
class Front:
    """What the first page of a ledger says.

    Attributes:
        id: Tells ledgers apart.
        plan: Fingerprint of the plan that it was begun with.
        identity: What its events are known by; None until a run has begun.
        rules: The document of that plan, for an audit.
        head: How many rows there are, and the hash of all.
        closed: Whether whoever wrote last closed it: then nothing is missing from the file.
    """

    id: bytes
    plan: str
    identity: str | None
    rules: str | None
    head: Head
    closed: bool


class LedgerReader:
    """A ledger that is only read.

    Args:
        path: The ledger file.
        plan: Fingerprint of the plan; a ledger of another plan is refused. None for any.

    Raises:
        LedgerMismatch: If there is no such file, or it is the ledger of another plan.
        CorruptData: If it is no ledger, or one of another version.
    """

    def __init__(self, path: str | Path, plan: str | None = None) -> None:
        # A link is followed here, once: the files beside the ledger must not depend on its name.
        self.path: Path | None = Path(os.path.realpath(path))
        self._lock: AbstractContextManager[Any] = threading.RLock()  # its methods use each other
        self._closing = contextlib.ExitStack()
        self._whole: set[str] = set()  # streams of which every row was checked
        if not self.path.is_file():
            raise LedgerMismatch(f"{path}: the ledger must exist; it does not")
        # The head first: rows that are committed while this reads come on top.
        self.anchored = written_head(self.path)
        self.log_there = _log_of(self.path).exists()
        with self._closing_on_failure(), self._reported():
            self._database = self._closing.enter_context(_read_only(self.path))
            self._database.execute("BEGIN")
            self.front = self._front(plan)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._closing.close()

    def answers(self, ids: Sequence[str]) -> dict[str, Answer]:
        """The answers already given, by event id."""
        found: dict[str, Answer] = {}
        for start in range(0, len(ids), _QUESTION_MARKS):
            part = ids[start : start + _QUESTION_MARKS]
            marks = ",".join("?" * len(part))
            for entry in self._some(f"WHERE id IN ({marks})", *part):
                found[entry.answer.id] = entry.answer
        return found

    def moment(self, stream: str, sequence: int) -> Answer | None:
        """The answer given at one moment of a stream."""
        found = self._some("WHERE stream = ? AND sequence = ?", stream, sequence)
        return found[0].answer if found else None

    def events(self) -> Iterator[Answer]:
        """Every answer, stream by stream, in order."""
        rows = f"SELECT {COLUMNS}, ({_BEFORE}) FROM events WHERE (stream, sequence) > (?, ?)"
        order = f"{rows} ORDER BY stream, sequence"
        for entry in self._pages(order, ("", -1), self._intact, _moment_of):
            yield entry.answer

    def rest(self, stream: str, sequence: int) -> Iterator[Answer]:
        """The answers of a stream from one moment on, in order."""
        rows = f"SELECT {COLUMNS}, ({_BEFORE}) FROM events WHERE stream = ? AND sequence > ?"
        order = f"{rows} ORDER BY sequence"
        for entry in self._pages(order, (stream, sequence - 1), self._intact, _moment_of):
            yield entry.answer

    def entries(self) -> Iterator[Entry]:
        """Every row in the order in which they were committed, unchecked."""
        query = f"SELECT {COLUMNS} FROM events WHERE entry > ? ORDER BY entry"
        return self._pages(query, (0,), Entry.of, lambda entry: (entry.number,))

    def intact_entries(self) -> Iterator[Entry]:
        """Every row in the order in which they were committed, checked."""
        query = f"SELECT {COLUMNS}, ({_BEFORE}) FROM events WHERE entry > ? ORDER BY entry"
        return self._pages(query, (0,), self._intact, lambda entry: (entry.number,))

    def streams(self) -> Iterator[tuple[str, int]]:
        """The streams, and how many answers each has."""
        query = "SELECT stream, sequence FROM streams WHERE stream > ? ORDER BY stream"
        return self._pages(query, ("",), _as_it_is, lambda row: row[:1])

    def stream_rows(self) -> Iterator[tuple[str, int, float, float, bytes, bytes]]:
        """The streams as they are stored, unchecked."""
        columns = "stream, sequence, sip, ldp, state, hash"
        query = f"SELECT {columns} FROM streams WHERE stream > ? ORDER BY stream"
        return self._pages(query, ("",), _as_it_is, lambda row: row[:1])

    def count(self) -> int:
        """How many answers there are."""
        with self._reported():
            return int(self._database.execute("SELECT count(*) FROM events").fetchone()[0])

    def copy_to(self, target: sqlite3.Connection) -> None:
        """Copy all of it, the log included, through SQLite."""
        with self._reported():
            self._database.execute("ROLLBACK")
            self._database.backup(target)
            self._database.execute("BEGIN")

    def inputs(self) -> dict[str, int]:
        """The inputs, and how many answers each has."""
        query = "SELECT label, answered FROM inputs ORDER BY number"
        with self._reported():
            return dict(self._database.execute(query).fetchall())

    def state(self, stream: str) -> StreamState | None:
        """Where a stream stands; None if it never released anything.

        Whoever goes on from a state relies on all that came before it: the first time, every row of
        the stream is checked.

        Raises:
            CorruptData: If the state is not the one of the last row, or a row was changed.
        """
        row = self._stream_row(stream)
        last = self._last_link(stream) if stream in self._whole else self._whole_chain(stream)
        if row is None and last is None:
            return None
        if row is None:
            raise self._broken(f"the state of stream {stream!r} is missing")
        moments, sip, ldp, blob, own = row
        if last != (moments, own, state_digest(blob)):
            raise self._broken(f"the state of stream {stream!r} is not the one of its last row")
        state = from_bytes(blob, StreamState)
        if (stream, moments, sip, ldp) != (
            state.stream,
            state.sequence,
            state.ledger.sip,
            state.ledger.ldp,
        ):
            raise self._broken(f"what stream {stream!r} spent is not what its state says")
        self._whole.add(stream)
        return state

    def _last_link(self, stream: str) -> _Link | None:
        """How many rows a stream has, the hash of the last, and what that says of the state."""
        query = f"SELECT {_LINK} FROM events WHERE stream = ? ORDER BY sequence DESC LIMIT 1"
        with self._reported():
            found: _Link | None = self._database.execute(query, (stream,)).fetchone()
        return found

    def _whole_chain(self, stream: str) -> _Link | None:
        """The same, once every row of the stream was found to be the one that was committed."""
        before = first_hash(self.front.id, self.front.plan, stream)
        moments, state = 0, None
        query = f"SELECT {COLUMNS} FROM events WHERE stream = ? ORDER BY sequence"
        with self._reported():
            for row in self._database.execute(query, (stream,)):
                *_, state, own, _ = row
                if row[_SEQUENCE] != moments or stored_hash(before, row) != own:
                    what = f"moment {moments} of stream {stream!r} was changed, moved or lost"
                    raise self._broken(what)
                before, moments = own, moments + 1
        return (moments, before, state) if moments else None

    def last_time(self, stream: str) -> str | None:
        """When the last value of a stream was measured, if it is known."""
        query = "SELECT time FROM events WHERE stream = ? ORDER BY sequence DESC LIMIT 1"
        with self._reported():
            row = self._database.execute(query, (stream,)).fetchone()
        return None if row is None else row[0]

    def check_head(self) -> None:
        """Refuse a ledger whose end is not what it says, or that lost rows; a quick look.

        Raises:
            CorruptData: If rows are missing, or the last one was changed.
        """
        front = self.front
        if self.count() != front.head.entries:
            raise self._broken(f"it must have {front.head.entries} rows; it has {self.count()}")
        if self._head_at(front.head.entries) != front.head.hash:
            raise self._broken("its last row is not the one it ended with")
        if (missing := self.missing_rows()) is not None:
            raise CorruptData(f"{self.path}: {missing}")

    def missing_rows(self) -> str | None:
        """What shows that this is not all of the ledger, or an older one; None if nothing does."""
        anchored, head = self.anchored, self.front.head
        if anchored is None:
            # A run that is under way has rows in its log alone.
            if self.front.closed or self.log_there:
                return None
            return (
                "it was copied while it was in use, without its -wal file, and may lack rows; "
                "copy it with `sfumato ledger backup`"
            )
        if anchored.entries > head.entries:
            return (
                f"it has {head.entries} rows, but {anchored.entries} were committed: it was rolled "
                "back, or lost its -wal file. What was released stays spent: bring back the "
                f"whole ledger (its head was {anchored})"
            )
        if self._head_at(anchored.entries) != anchored.hash:
            return f"its rows are not those that were committed (their head was {anchored})"
        return None

    def head_at(self, entries: int) -> Head | None:
        """The head as it was after so many rows; None if there are fewer."""
        found = self._head_at(entries)
        return None if found is None else Head(entries, found)

    def _head_at(self, entries: int) -> bytes | None:
        """The head after a row, recomputed from the rows it stands on."""
        begun = first_head(self.front.id, self.front.plan)
        if entries == 0:
            return begun
        query = f"SELECT {COLUMNS}, ({_BEFORE}) FROM events WHERE entry = ?"
        with self._reported():
            row = self._database.execute(query, (entries,)).fetchone()
            above = self._database.execute(
                "SELECT head FROM events WHERE entry = ?", (entries - 1,)
            ).fetchone()
        if row is None or (above is None and entries > 1):
            return None
        own = self._intact(row).hash
        return next_head(begun if above is None else above[0], own)

    def _some(self, where: str, *given: object) -> list[Entry]:
        """A few rows, checked."""
        query = f"SELECT {COLUMNS}, ({_BEFORE}) FROM events {where}"
        with self._reported():
            return [self._intact(row) for row in self._database.execute(query, given)]

    def _pages(
        self,
        query: str,
        after: tuple[Any, ...],
        read: Callable[[Any], Item],
        key: Callable[[Item], tuple[Any, ...]],
    ) -> Iterator[Item]:
        """Many rows, page by page: between two pages others may use the ledger."""
        page: list[Item] = []
        while not page or len(page) == _PAGE:
            with self._reported():
                rows = self._database.execute(f"{query} LIMIT {_PAGE}", after).fetchall()
                page = [read(row) for row in rows]
            if not page:
                return
            yield from page
            after = key(page[-1])

    def _intact(self, row: tuple[object, ...]) -> Entry:
        """A row, if it is the one that was committed."""
        *fields, before = row
        entry = Entry.of(tuple(fields))
        event = entry.answer.event
        begun = first_hash(self.front.id, self.front.plan, event.stream)
        if event.sequence == 0 and before is None:
            before = begun
        if not isinstance(before, bytes) or row_hash(before, entry) != entry.hash:
            raise self._broken(
                f"moment {event.sequence} of stream {event.stream!r} was changed, moved or lost"
            )
        return entry

    def _stream_row(self, stream: str) -> _StreamRow | None:
        query = "SELECT sequence, sip, ldp, state, hash FROM streams WHERE stream = ?"
        with self._reported():
            row: _StreamRow | None = self._database.execute(query, (stream,)).fetchone()
        return row

    def _front(self, plan: str | None) -> Front:
        there = "SELECT 1 FROM sqlite_master WHERE name = 'ledger'"
        if self._database.execute(there).fetchone() is None:
            raise CorruptData(f"{self.path}: not a readable ledger (nothing was begun in it)")
        (version,) = self._database.execute("SELECT version FROM ledger").fetchone() or (None,)
        if version != VERSION:
            raise CorruptData(
                f"{self.path}: a ledger must have version {VERSION}; it has {version}. Older ones "
                "have no chain of hashes, and are not continued: begin a new ledger"
            )
        query = "SELECT id, plan, identity, rules, entries, head, closed FROM ledger"
        id_, own, identity, rules, entries, head, closed = self._database.execute(query).fetchone()
        if plan is not None and own != plan:
            raise LedgerMismatch(
                f"{self.path}: this ledger was begun with another model, budget, loss, method or "
                "length of batch, another --policy, --when-exhausted or --when-unknown, or one of "
                "the two is a simulation; use a ledger of its own"
            )
        return Front(id_, own, identity, rules, Head(entries, head), bool(closed))

    def _broken(self, what: str) -> CorruptData:
        return CorruptData(f"{self.path}: the ledger was tampered with or damaged: {what}")

    @contextlib.contextmanager
    def _closing_on_failure(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._closing.close()
            raise

    @contextlib.contextmanager
    def _reported(self) -> Iterator[None]:
        """One thread at a time; what SQLite cannot do, in the words of a ledger."""
        try:
            with self._lock:
                yield
        except (sqlite3.Error, OverflowError, ValueError, TypeError) as problem:
            if isinstance(problem, CorruptData | LedgerMismatch):
                raise
            if "locked" in str(problem):
                raise LedgerMismatch(
                    f"{self.path}: the ledger is in use by another release"
                ) from problem
            what = "not a readable ledger"
            if isinstance(problem, sqlite3.OperationalError):
                what = "the ledger cannot be written"
            raise CorruptData(f"{self.path}: {what} ({problem})") from problem


def _moment_of(entry: Entry) -> tuple[str, int]:
    return entry.answer.event.stream, entry.answer.event.sequence


def _as_it_is(row: Item) -> Item:
    return row


@contextlib.contextmanager
def _read_only(path: Path) -> Iterator[sqlite3.Connection]:
    log = _log_of(path)
    with contextlib.ExitStack() as stack:
        if not log.exists() or log.stat().st_size == 0:
            yield stack.enter_context(_connected(path, "immutable=1"))
            return
        database = stack.enter_context(_connected(path, "mode=ro"))
        try:
            database.execute("SELECT 1 FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as problem:
            if "locked" in str(problem):
                raise
            # A log needs a file beside it to be read; where none may be made, a copy is.
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            for part in (path, log):
                shutil.copyfile(part, folder / part.name)
            database = stack.enter_context(_connected(folder / path.name, "mode=rw"))
        yield database


@contextlib.contextmanager
def _connected(path: Path, how: str) -> Iterator[sqlite3.Connection]:
    name = f"file:{quote(str(path.resolve()))}?{how}"
    # Whoever uses it holds the lock of the reader.
    connection = sqlite3.connect(name, uri=True, isolation_level=None, check_same_thread=False)
    with contextlib.closing(connection) as database:
        yield database


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")
