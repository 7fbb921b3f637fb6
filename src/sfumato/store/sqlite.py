"""A ledger file: every answer ever given, and the state of every stream, in SQLite.

Charge, answer and new state are committed together; an answer leaves only after its commit. The
same event id again returns the stored answer, so a retry never draws fresh noise. WAL mode with
`synchronous=FULL`: a commit that returned survives a power cut.
"""

from __future__ import annotations

import contextlib
import ctypes
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from sfumato._guard import Guarded
from sfumato.accounting.events import Event, Outcome
from sfumato.codec import from_bytes, to_bytes
from sfumato.errors import CorruptData, SfumatoError
from sfumato.guarantees import LDP, SIP
from sfumato.streaming.instant import InstantState

VERSION = 2
_QUESTION_MARKS = 500
_PAGE = 4096

_SCHEMA = """
CREATE TABLE ledger (version INTEGER NOT NULL, plan TEXT NOT NULL) STRICT;
CREATE TABLE streams (
    stream TEXT PRIMARY KEY, sequence INTEGER NOT NULL, sip REAL NOT NULL, ldp REAL NOT NULL,
    state BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE events (
    id TEXT PRIMARY KEY, source TEXT NOT NULL, place INTEGER NOT NULL,
    stream TEXT NOT NULL, sequence INTEGER NOT NULL, outcome TEXT NOT NULL, released ANY,
    sip REAL NOT NULL, ldp REAL NOT NULL, batch INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX moments ON events (stream, sequence);
"""


_ADVANCE = """
INSERT INTO streams VALUES (?, ?, ?, ?, ?) ON CONFLICT (stream) DO UPDATE
SET sequence = excluded.sequence, sip = excluded.sip, ldp = excluded.ldp, state = excluded.state
WHERE excluded.sequence > sequence AND excluded.sip >= sip AND excluded.ldp >= ldp
"""


class LedgerMismatch(SfumatoError):
    """A ledger belongs to another plan, or an event id to another event."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An event together with the id and the place in the source that asked for it."""

    id: str
    source: str
    place: int
    event: Event


class SqliteStore(Guarded):
    """The ledger of one plan.

    Args:
        path: The ledger file; None keeps it in a temporary file that is gone when closed.
        plan: Fingerprint of the plan; a ledger of another plan is refused.

    Examples:
        >>> with SqliteStore(None, plan="fingerprint") as store:
        ...     store.answers(["e1"])
        {}
    """

    def __init__(self, path: str | Path | None, plan: str) -> None:
        self.path = None if path is None else Path(path)
        if self.path is not None and not self.path.parent.is_dir():
            raise LedgerMismatch(f"{self.path}: the folder of a ledger must exist; it does not")
        if self.path is not None and self.path.is_dir():
            raise LedgerMismatch(f"{self.path}: a ledger must be a file; this is a folder")
        self._lock = threading.RLock()  # its methods use each other
        self._database = sqlite3.connect(
            "" if path is None else path, isolation_level=None, check_same_thread=False
        )
        try:
            with self._reported():
                self._open(plan)
        except SfumatoError:
            self._database.close()
            raise

    def _open(self, plan: str) -> None:
        if self.path is not None:
            self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=FULL")
        # One writer at a time: two releases with one ledger would charge past each other.
        self._database.execute("PRAGMA locking_mode=EXCLUSIVE")
        with self._transaction():
            exists = "SELECT 1 FROM sqlite_master WHERE name = 'ledger'"
            if self._database.execute(exists).fetchone() is None:
                for statement in _SCHEMA.split(";"):
                    self._database.execute(statement)
                self._database.execute("INSERT INTO ledger VALUES (?, ?)", (VERSION, plan))
            found = self._database.execute("SELECT version, plan FROM ledger").fetchone()
            if found == (1, plan):
                # Version 1 knew no batches.
                self._database.execute("ALTER TABLE events ADD COLUMN batch INTEGER")
                self._database.execute("UPDATE ledger SET version = ?", (VERSION,))
                found = (VERSION, found[1])
        if found is None or found[0] not in (1, VERSION):
            raise CorruptData(f"{self.path}: a ledger must have version {VERSION}")
        if found[1] != plan:
            raise LedgerMismatch(
                f"{self.path}: this ledger was begun with another model, budget, loss, method or "
                "length of batch, or one of the two is a simulation; use a ledger of its own"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; everything committed stays."""
        with self._lock:
            self._database.close()

    def _abandoned(self) -> None:
        # A child that closed the parent's connection, at its exit for instance, would empty and
        # remove the write-ahead log under the parent: what was committed later would be lost.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._database))

    def answers(self, ids: Sequence[str]) -> dict[str, Answer]:
        """The answers already given, by event id."""
        found: dict[str, Answer] = {}
        with self._reported():
            for start in range(0, len(ids), _QUESTION_MARKS):
                part = ids[start : start + _QUESTION_MARKS]
                marks = ",".join("?" * len(part))
                rows = self._database.execute(f"SELECT * FROM events WHERE id IN ({marks})", part)
                found.update((answer.id, answer) for answer in map(_answer, rows))
        return found

    def moment(self, stream: str, sequence: int) -> Answer | None:
        """The answer given at one moment of a stream."""
        query = "SELECT * FROM events WHERE stream = ? AND sequence = ?"
        with self._reported():
            row = self._database.execute(query, (stream, sequence)).fetchone()
            return None if row is None else _answer(row)

    def events(self) -> Iterator[Answer]:
        """Every answer, stream by stream, in order."""
        query = "SELECT * FROM events WHERE (stream, sequence) > (?, ?) ORDER BY stream, sequence"
        after: tuple[str, int] | None = ("", -1)
        while after is not None:
            with self._reported():  # given back between pages: others may use the ledger meanwhile
                rows = self._database.execute(f"{query} LIMIT {_PAGE}", after).fetchall()
                page = [_answer(row) for row in rows]
            yield from page
            last = page[-1].event if len(page) == _PAGE else None
            after = None if last is None else (last.stream, last.sequence)

    def count(self) -> int:
        """How many answers there are."""
        with self._reported():
            return int(self._database.execute("SELECT count(*) FROM events").fetchone()[0])

    def state(self, stream: str) -> InstantState | None:
        """Where a stream stands; None if it never released anything."""
        query = "SELECT state FROM streams WHERE stream = ?"
        with self._reported():
            row = self._database.execute(query, (stream,)).fetchone()
        return None if row is None else from_bytes(row[0], InstantState)

    def commit(self, answers: Iterable[Answer], states: Iterable[InstantState]) -> None:
        """Store answers and new states, all or nothing.

        Raises:
            LedgerMismatch: If an event id or a moment of a stream was answered before, or a
                state would go back; nothing is stored then.
        """
        rows = [
            (
                answer.id,
                answer.source,
                answer.place,
                answer.event.stream,
                answer.event.sequence,
                answer.event.outcome.value,
                answer.event.released,
                answer.event.sip.epsilon,
                answer.event.ldp.epsilon,
                answer.event.batch,
            )
            for answer in answers
        ]
        blobs = [
            (state.stream, state.sequence, state.ledger.sip, state.ledger.ldp, to_bytes(state))
            for state in states
        ]
        with self._reported(), self._transaction():
            try:
                self._database.executemany(
                    "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows
                )
            except sqlite3.IntegrityError as problem:
                raise LedgerMismatch(f"an event was answered before: {problem}") from problem
            if self._database.executemany(_ADVANCE, blobs).rowcount not in (-1, len(blobs)):
                raise LedgerMismatch("a state may only move forward and never lower its spend")

    @contextlib.contextmanager
    def _reported(self) -> Iterator[None]:
        """One thread at a time; what SQLite cannot do, in the words of a ledger."""
        try:
            with self._lock:
                yield
        except (sqlite3.Error, OverflowError, ValueError) as problem:
            if "locked" in str(problem):
                raise LedgerMismatch(
                    f"{self.path}: the ledger is in use by another release"
                ) from problem
            what = "not a readable ledger"
            if isinstance(problem, sqlite3.OperationalError):
                what = "the ledger cannot be written"
            raise CorruptData(f"{self.path}: {what} ({problem})") from problem

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")


def _answer(
    row: tuple[str, str, int, str, int, str, str | int | None, float, float, int | None],
) -> Answer:
    id_, source, place, stream, sequence, outcome, released, sip, ldp, batch = row
    event = Event(stream, sequence, Outcome(outcome), released, SIP(sip), LDP(ldp), batch)
    return Answer(id_, source, place, event)
