"""A ledger file: every answer ever given, and the state of every stream, in SQLite.

Charge, answer and new state are committed together; an answer leaves only after its commit. The
same event id again returns the stored answer, so a retry never draws fresh noise. WAL mode with
`synchronous=FULL`: a commit that returned survives a power cut. Rows are chained (`chain`), and
their head is kept beside the file (`anchor`).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from sfumato.core.guard import Guarded, guarded
from sfumato.core.state import StreamState
from sfumato.store.anchor import (
    Anchor,
    Head,
    LedgerMismatch,
    key_file,
    secret_name,
    secret_of,
    written_head,
)
from sfumato.store.chain import Answer, chained, first_hash, first_head, state_digest
from sfumato.store.codec import to_bytes
from sfumato.store.reading import COLUMNS, VERSION, LedgerReader

__all__ = ["Again", "Answer", "Identity", "Input", "LedgerMismatch", "LedgerReader", "SqliteStore"]

_SCHEMA = """
CREATE TABLE ledger (
    version INTEGER NOT NULL, id BLOB NOT NULL, plan TEXT NOT NULL, identity TEXT, rules TEXT,
    entries INTEGER NOT NULL, head BLOB NOT NULL, closed INTEGER NOT NULL
) STRICT;
CREATE TABLE inputs (
    number INTEGER PRIMARY KEY, label TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
    secret BLOB NOT NULL, answered INTEGER NOT NULL
) STRICT;
CREATE TABLE streams (
    stream TEXT PRIMARY KEY, sequence INTEGER NOT NULL, sip REAL NOT NULL, ldp REAL NOT NULL,
    state BLOB NOT NULL, hash BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE events (
    entry INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, source TEXT NOT NULL,
    place INTEGER NOT NULL, stream TEXT NOT NULL, sequence INTEGER NOT NULL, outcome TEXT NOT NULL,
    released ANY, sip REAL NOT NULL, ldp REAL NOT NULL, batch INTEGER, time TEXT,
    tag BLOB NOT NULL, state BLOB, hash BLOB NOT NULL, head BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX moments ON events (stream, sequence);
"""

_ADVANCE = """
INSERT INTO streams VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (stream) DO UPDATE
SET sequence = excluded.sequence, sip = excluded.sip, ldp = excluded.ldp, state = excluded.state,
    hash = excluded.hash
WHERE excluded.sequence > sequence AND excluded.sip >= sip AND excluded.ldp >= ldp
"""


class Identity(StrEnum):
    """What tells an event from all others: through days, files and restarts."""

    EVENT = "event"
    TIME = "time"
    ROW = "row"


class Again(StrEnum):
    """What a source that was answered before holds now; it cannot be told from outside."""

    REFUSE = "refuse"
    RESUME = "resume"
    APPEND = "append"


_KNOWN_BY = {
    Identity.EVENT: "the event column (--event)",
    Identity.TIME: "stream and time (--time)",
    Identity.ROW: "source and row (neither --event nor --time)",
}


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a ledger.

    Attributes:
        label: Its name, with a number if there were others of that name.
        answered: How many of its rows were answered before.
        secret: The secret of the digests of its values.
    """

    label: str
    answered: int
    secret: bytes


class SqliteStore(Guarded, LedgerReader):
    """The ledger of one plan.

    Args:
        path: The ledger file; None keeps it in a temporary file that is gone when closed.
        plan: Fingerprint of the plan; a ledger of another plan is refused.
        rules: The document of the plan, kept in a new ledger for an audit.

    Examples:
        >>> with SqliteStore(None, plan="fingerprint") as store:
        ...     store.answers(["e1"])
        {}
    """

    def __init__(self, path: str | Path | None, plan: str, *, rules: str | None = None) -> None:
        # A link is followed here, once: the files beside the ledger must not depend on its name.
        self.path = None if path is None else Path(os.path.realpath(path))
        self._lock = threading.RLock()  # its methods use each other
        self._closing = contextlib.ExitStack()
        self._whole = set()
        self._anchor = None
        self.anchored, self.log_there = None, True
        with self._closing_on_failure():
            if self.path is not None:
                self._check_place(self.path)
                self._anchor = self._closing.enter_context(Anchor(self.path))
                self.anchored = written_head(self.path)
                self.log_there = self.path.with_name(f"{self.path.name}-wal").exists()
            with self._reported():
                connection = sqlite3.connect(
                    self.path or "", isolation_level=None, check_same_thread=False
                )
            self._database = self._closing.enter_context(contextlib.closing(connection))
            with self._reported():
                self._open(plan, rules)

    def _check_place(self, path: Path) -> None:
        if not path.parent.is_dir():
            raise LedgerMismatch(f"{path}: the folder of a ledger must exist; it does not")
        if path.is_dir():
            raise LedgerMismatch(f"{path}: a ledger must be a file; this is a folder")
        if path.exists() and path.stat().st_nlink > 1:
            raise LedgerMismatch(f"{path}: a ledger must have one name; this file has several")

    def _open(self, plan: str, rules: str | None) -> None:
        self._database.execute("PRAGMA synchronous=FULL")
        if self._database.execute("SELECT 1 FROM sqlite_master").fetchone() is None:
            self._begin(plan, rules)
        self.front = self._front(plan)
        self.check_head()
        if self.path is not None:
            # Marked as open in the file itself, not in its log alone: a copy without the log shows.
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("UPDATE ledger SET closed = 0")
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._keep(self.front.head)

    def _begin(self, plan: str, rules: str | None) -> None:
        if self.anchored is not None and self.anchored.entries:
            raise LedgerMismatch(
                f"{self.path}: this ledger is empty, but had {self.anchored.entries} rows (its "
                f"head was {self.anchored}); bring it back: what was released stays spent"
            )
        self.anchored = None
        id_ = os.urandom(16)
        with self._transaction():
            for statement in _SCHEMA.split(";"):
                self._database.execute(statement)
            row = (VERSION, id_, plan, None, rules, 0, first_head(id_, plan), 1)
            self._database.execute("INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def close(self) -> None:
        """Close the file; everything committed stays, and is in the file itself."""
        with self._lock, self._closing:
            if self.path is not None:
                with contextlib.suppress(sqlite3.Error):
                    self._database.execute("UPDATE ledger SET closed = 1")

    def _abandoned(self) -> None:
        # A child that closed the parent's connection, at its exit for instance, would empty and
        # remove the write-ahead log under the parent: what was committed later would be lost.
        database = getattr(self, "_database", None)  # None if it was being made just then
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(database))

    @guarded
    def begin(self, name: str, identity: Identity, again: Again = Again.REFUSE) -> Input:
        """Begin an input, or go on with one.

        Args:
            name: The name of the source.
            identity: What its events are known by; one thing for a whole ledger.
            again: What this source holds, if some of it was answered before.

        Raises:
            LedgerMismatch: If events of this ledger are known by something else, or nothing tells
                these rows from those that were answered before, or there is nothing to resume.
        """
        self._check_identity(identity)
        with self._reported():
            query = "SELECT label, secret, answered FROM inputs WHERE name = ? ORDER BY number"
            known = self._database.execute(query, (name,)).fetchall()
        if answered := sum(rows for _, _, rows in known):
            if identity is Identity.ROW and again is Again.REFUSE:
                raise LedgerMismatch(self._choices(name, answered))
        elif again is Again.RESUME and not known:
            raise LedgerMismatch(f"{self.path}: there is nothing of {name!r} to resume")
        label, named, rows = known[-1] if known else ("", b"", 0)
        resumed = identity is Identity.ROW and again is Again.RESUME and rows > 0
        if resumed and self.path is not None and not key_file(self.path).exists():
            raise self._keyless()
        secret = secret_of(self.path)
        if resumed and named != secret_name(secret):
            raise self._keyless()
        if resumed or (known and not rows and named == secret_name(secret)):
            return Input(label, rows, secret)
        return Input(self._new_label(name, secret), 0, secret)

    def _keyless(self) -> LedgerMismatch:
        return LedgerMismatch(
            f"{self.path}: whether the input is the same can only be told with the key file of "
            f"that run, {self.path}.key; bring it back, or --append new data"
        )

    def compared(self, source: str, secret: bytes) -> bool:
        """Whether values of an input can be compared: the secret of its digests is this one."""
        with self._reported():
            query = "SELECT 1 FROM inputs WHERE label = ? AND secret = ?"
            return (
                self._database.execute(query, (source, secret_name(secret))).fetchone() is not None
            )

    def commit(self, answers: Iterable[Answer], states: Iterable[StreamState]) -> None:
        """Store answers and new states, all or nothing; on disk when this returns.

        Raises:
            LedgerMismatch: If an event id or a moment of a stream was answered before, a moment is
                left out, or a state would go back; nothing is stored then.
        """
        by_stream: dict[str, list[Answer]] = {}
        for answer in answers:
            by_stream.setdefault(answer.event.stream, []).append(answer)
        blobs = {state.stream: (state, to_bytes(state)) for state in states}
        if set(by_stream) != set(blobs):
            raise LedgerMismatch("an answer and the state after it must be stored together")
        sources = Counter(answer.source for row in by_stream.values() for answer in row)
        with self._reported():
            head = self.front.head
            with self._transaction():
                for stream, (state, blob) in blobs.items():
                    head = self._append(by_stream[stream], state, blob, head)
                self._database.execute(
                    "UPDATE ledger SET entries = ?, head = ?", (head.entries, head.hash)
                )
                self._database.executemany(
                    "UPDATE inputs SET answered = answered + ? WHERE label = ?",
                    [(count, label) for label, count in sources.items()],
                )
            self.front = replace(self.front, head=head)
            self._keep(head)

    def _append(self, answers: list[Answer], state: StreamState, blob: bytes, head: Head) -> Head:
        """Store the answers of one stream after its last row; return the new head."""
        row = self._stream_row(state.stream)
        due, before = 0, first_hash(self.front.id, self.front.plan, state.stream)
        if row is not None:
            due, *_, before = row
        moments = [answer.event.sequence for answer in answers]
        if moments[0] < due:
            raise LedgerMismatch("an event was answered before: its moment of the stream is taken")
        if state.sequence <= due:
            raise LedgerMismatch("a state may only move forward and never lower its spend")
        if moments != list(range(due, state.sequence)):
            raise LedgerMismatch("answers must follow each other, moment by moment")
        rows = []
        for answer in answers:
            last = answer is answers[-1]
            digest = state_digest(blob) if last else None
            entry = chained(head.entries + 1, answer, digest, before, head.hash)
            before, head = entry.hash, Head(entry.number, entry.head)
            rows.append(entry.fields())
        marks = ", ".join("?" * len(rows[0]))
        try:
            self._database.executemany(f"INSERT INTO events ({COLUMNS}) VALUES ({marks})", rows)
        except sqlite3.IntegrityError as problem:
            raise LedgerMismatch(f"an event was answered before: {problem}") from problem
        sip, ldp = state.ledger.sip, state.ledger.ldp
        moved = (state.stream, state.sequence, sip, ldp, blob, before)
        if self._database.execute(_ADVANCE, moved).rowcount != 1:
            raise LedgerMismatch("a state may only move forward and never lower its spend")
        return head

    def _keep(self, head: Head) -> None:
        """The head is on disk before anything that it stands for leaves."""
        if self._anchor is not None:
            self._anchor.write(head)

    def _check_identity(self, identity: Identity) -> None:
        known = self.front.identity
        if known is None:
            with self._reported(), self._transaction():
                self._database.execute("UPDATE ledger SET identity = ?", (identity.value,))
            self.front = replace(self.front, identity=identity.value)
        elif known != identity.value:
            raise LedgerMismatch(
                f"{self.path}: events of this ledger are known by {_KNOWN_BY[Identity(known)]}, "
                f"not by {_KNOWN_BY[identity]}: go on as it was begun, or use a ledger of its own"
            )

    def _choices(self, name: str, answered: int) -> str:
        return (
            f"{self.path}: {answered} rows of {name!r} were answered before, and nothing tells "
            "them from these. If this is the same input, add --resume; if it is new data, add "
            "--append. Better, name a column that tells events apart: --time or --event"
        )

    def _new_label(self, name: str, secret: bytes) -> str:
        query = "SELECT 1 FROM inputs WHERE label = ?"
        label, number = name, 1
        with self._reported(), self._transaction():
            while self._database.execute(query, (label,)).fetchone():
                number += 1
                label = f"{name}#{number}"
            row = (None, label, name, secret_name(secret), 0)
            self._database.execute("INSERT INTO inputs VALUES (?, ?, ?, ?, ?)", row)
        return label

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
