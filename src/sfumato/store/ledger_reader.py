"""A ledger file, read: its answers and states, each checked against the chain when it is used.

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
from pathlib import Path
from typing import Any, Self, TypeAlias, TypeVar
from urllib.parse import quote

import numpy as np

from sfumato.core.arrays import Bools
from sfumato.core.errors import CorruptData
from sfumato.store.chain import (
    ANSWER_FIELDS,
    Entry,
    Row,
    first_hash,
    first_head,
    next_head,
    row_hash,
    state_digest,
    written_head,
)
from sfumato.store.plan_rules import other_plan
from sfumato.store.protocol import (
    Answer,
    Front,
    Head,
    Job,
    LedgerMismatch,
    Position,
)

VERSION = 5
UNSIGNALLED = 4
"""The version before: its events have no signals, and are read as such."""
_QUESTION_MARKS = 500  # SQLite allows 999 in a statement, in its oldest builds
_PAGE = 4096
Item = TypeVar("Item")
_StreamRow: TypeAlias = tuple[int, float, float, bytes, bytes]

COLUMNS = ", ".join(("entry", *ANSWER_FIELDS, "digest", "hash", "head"))
_SEQUENCE = 1 + ANSWER_FIELDS.index("sequence")
_BEFORE = """SELECT before.hash FROM events AS before
    WHERE before.stream = events.stream AND before.sequence = events.sequence - 1"""
_CHECKED = f"SELECT {COLUMNS}, ({_BEFORE}) FROM events"
"""Rows, each with the hash that it must continue."""
_UNSIGNALLED_EVENTS = """CREATE TEMP VIEW IF NOT EXISTS events AS
    SELECT *, NULL AS signal FROM main.events"""
"""A view of this connection alone, which stands before the table of that name."""


class LedgerReader:
    """A ledger that is only read.

    Args:
        path: The ledger file.
        plan: Fingerprint of the plan; a ledger of another plan is refused. None for any.
        job: The job that wrote it; a ledger of another job is refused. None for any.

    Raises:
        LedgerMismatch: If there is no such file, or it is the ledger of another plan.
        CorruptData: If it is no ledger, or one of another version.
    """

    def __init__(self, path: str | Path, plan: str | None = None, job: Job | None = None) -> None:
        # A link is followed here, once: the files beside the ledger must not depend on its name.
        self.path: Path | None = Path(os.path.realpath(path))
        self._lock: AbstractContextManager[Any] = threading.RLock()  # its methods use each other
        self._closing = contextlib.ExitStack()
        self._intact_streams: set[str] = set()  # streams of which every row was checked
        if not self.path.is_file():
            raise LedgerMismatch(f"{path}: the ledger must exist; it does not")
        # The head first: rows that are committed while this reads come on top.
        self.anchored = written_head(self.path)
        self.log_there = _log_of(self.path).exists()
        with self._closing_on_failure(), self._reported():
            self._database = self._closing.enter_context(_read_only(self.path))
            self._database.execute("BEGIN")
            self.front = self._read_front(plan, job)

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
        for part in _parts(ids):
            marks = ",".join("?" * len(part))
            for entry in self._some(f"WHERE id IN ({marks})", *part):
                found[entry.answer.id] = entry.answer
        return found

    def known(self, ids: Sequence[str]) -> Bools:
        """Which of these events were answered before."""
        found: set[str] = set()
        for part in _parts(ids):
            marks = ",".join("?" * len(part))
            with self._reported():
                rows = self._database.execute(f"SELECT id FROM events WHERE id IN ({marks})", part)
                found.update(id_ for (id_,) in rows)
        return np.array([id_ in found for id_ in ids], dtype=bool)

    def moment(self, stream: str, sequence: int) -> Answer | None:
        """The answer given at one moment of a stream."""
        found = self._some("WHERE stream = ? AND sequence = ?", stream, sequence)
        return found[0].answer if found else None

    def rest(self, stream: str, sequence: int) -> Iterator[Answer]:
        """The answers of a stream from one moment on, in order."""
        query = f"{_CHECKED} WHERE stream = ? AND sequence > ? ORDER BY sequence"
        for entry in self._pages(query, (stream, sequence - 1), self._intact, _moment_of):
            yield entry.answer

    def entries(self) -> Iterator[Entry]:
        """Every row in the order in which they were committed, unchecked."""
        query = f"SELECT {COLUMNS} FROM events WHERE entry > ? ORDER BY entry"
        return self._pages(query, (0,), Entry.of, lambda entry: (entry.number,))

    def intact_entries(self) -> Iterator[Entry]:
        """Every row in the order in which they were committed, checked."""
        query = f"{_CHECKED} WHERE entry > ? ORDER BY entry"
        return self._pages(query, (0,), self._intact, lambda entry: (entry.number,))

    def streams(self) -> Iterator[tuple[str, int]]:
        """The streams, and how many answers each has."""
        return (row[:2] for row in self.stream_rows())

    def stream_rows(self) -> Iterator[tuple[str, int, float, float, bytes, bytes]]:
        """The streams as they are stored, unchecked."""
        columns = "stream, sequence, leakage, model_free, state, hash"
        query = f"SELECT {columns} FROM streams WHERE stream > ? ORDER BY stream"
        return self._pages(query, ("",), lambda row: row, lambda row: row[:1])

    def count(self) -> int:
        """How many answers there are."""
        return int(self._one("SELECT count(*) FROM events")[0])

    def signalled(self) -> bool:
        """Whether any answer names the output of its channel."""
        return self._one("SELECT 1 FROM events WHERE signal IS NOT NULL LIMIT 1") is not None

    def copy_to(self, target: sqlite3.Connection) -> None:
        """Copy all of it, the log included, through SQLite."""
        with self._reported():
            self._database.execute("ROLLBACK")
            self._database.backup(target)
            self._database.execute("BEGIN")

    def inputs(self) -> dict[str, int]:
        """The inputs of which rows were answered, and how many of each."""
        query = "SELECT label, answered FROM inputs WHERE answered > 0 ORDER BY number"
        with self._reported():
            return dict(self._database.execute(query).fetchall())

    def position(self, stream: str) -> Position | None:
        """Where a stream stands; None if it never released anything.

        Whoever goes on from a state relies on all that came before it: the first time, every row of
        the stream is checked.

        Raises:
            CorruptData: If the state is not the one of the last row, or a row was changed.
        """
        row = self._stream_row(stream)
        if stream in self._intact_streams:
            order = "ORDER BY sequence DESC LIMIT 1"
            query = f"SELECT sequence + 1, hash, digest FROM events WHERE stream = ? {order}"
            last = self._one(query, stream)
        else:
            last = self._checked_chain(stream)
        if row is None and last is None:
            return None
        if row is None:
            raise self._broken(f"the state of stream {stream!r} is missing")
        sequence, leakage, model_free, state, own = row
        after = Position(stream, sequence, leakage, model_free, state)
        if last != (sequence, own, state_digest(after)):
            raise self._broken(f"the state of stream {stream!r} is not the one of its last row")
        self._intact_streams.add(stream)
        return after

    def _checked_chain(self, stream: str) -> Row | None:
        """Moments, hash and digest of the last row, once every row of the stream was checked."""
        before = first_hash(self.front.id, self.front.plan, stream)
        moments, digest = 0, None
        query = f"SELECT {COLUMNS} FROM events WHERE stream = ? ORDER BY sequence"
        with self._reported():
            for row in self._database.execute(query, (stream,)):
                *_, digest, own, _ = row
                if row[_SEQUENCE] != moments or row_hash(before, row[:-2]) != own:
                    what = f"moment {moments} of stream {stream!r} was changed, moved or lost"
                    raise self._broken(what)
                before, moments = own, moments + 1
        return (moments, before, digest) if moments else None

    def check_head(self) -> None:
        """Refuse a ledger whose end is not what it says, or that lost rows; a quick look.

        Raises:
            CorruptData: If rows are missing, or the last one was changed.
        """
        head, count = self.front.head, self.count()
        if count != head.entries:
            raise self._broken(f"it must have {head.entries} rows; it has {count}")
        if self.head_at(head.entries) != head:
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
        if self.head_at(anchored.entries) != anchored:
            return f"its rows are not those that were committed (their head was {anchored})"
        return None

    def head_at(self, entries: int) -> Head | None:
        """The head after so many rows, recomputed from the last; None if there are fewer."""
        begun = first_head(self.front.id, self.front.plan)
        if entries == 0:
            return Head(0, begun)
        row = self._one(f"{_CHECKED} WHERE entry = ?", entries)
        above = self._one("SELECT head FROM events WHERE entry = ?", entries - 1)
        if row is None or (above is None and entries > 1):
            return None
        own = self._intact(row).hash
        return Head(entries, next_head(begun if above is None else above[0], own))

    def _one(self, query: str, *given: object) -> Any:
        with self._reported():
            return self._database.execute(query, given).fetchone()

    def _some(self, where: str, *given: object) -> list[Entry]:
        """A few rows, checked."""
        with self._reported():
            rows = self._database.execute(f"{_CHECKED} {where}", given)
            return [self._intact(row) for row in rows]

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

    def _intact(self, row: Row) -> Entry:
        """A row, if it is the one that was committed."""
        *stored, before = row
        entry = Entry.of(tuple(stored))
        stream, sequence = entry.answer.stream, entry.answer.sequence
        if sequence == 0 and before is None:
            before = first_hash(self.front.id, self.front.plan, stream)
        if not isinstance(before, bytes) or row_hash(before, row[:-3]) != entry.hash:
            raise self._broken(f"moment {sequence} of stream {stream!r} was changed, moved or lost")
        return entry

    def _stream_row(self, stream: str) -> _StreamRow | None:
        query = "SELECT sequence, leakage, model_free, state, hash FROM streams WHERE stream = ?"
        row: _StreamRow | None = self._one(query, stream)
        return row

    def _read_front(self, plan: str | None, job: Job | None) -> Front:
        there = "SELECT 1 FROM sqlite_master WHERE name = 'ledger'"
        if self._database.execute(there).fetchone() is None:
            raise CorruptData(f"{self.path}: not a readable ledger (nothing was begun in it)")
        (version,) = self._database.execute("SELECT version FROM ledger").fetchone() or (None,)
        if version == UNSIGNALLED:
            self._database.execute(_UNSIGNALLED_EVENTS)
        elif version != VERSION:
            raise CorruptData(
                f"{self.path}: a ledger must have version {VERSION}; it has {version}. Those of "
                "other versions are not continued: begin a new ledger"
            )
        query = "SELECT id, job, plan, identity, rules, entries, head, closed FROM ledger"
        stored = self._database.execute(query).fetchone()
        id_, job_, own, identity, rules, entries, head, closed = stored
        front = Front(id_, job_, own, identity, rules, Head(entries, head), bool(closed))
        if problem := other_plan(front, plan, job):
            raise LedgerMismatch(f"{self.path}: {problem}")
        return front

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


def _parts(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """As many at a time as one statement may name."""
    for start in range(0, len(ids), _QUESTION_MARKS):
        yield ids[start : start + _QUESTION_MARKS]


def _moment_of(entry: Entry) -> tuple[str, int]:
    return entry.answer.stream, entry.answer.sequence


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
