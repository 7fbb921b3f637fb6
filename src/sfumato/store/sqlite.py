"""A ledger file: every answer ever given, and the state of every stream, in SQLite.

Charge, answer and new state are committed together; an answer leaves only after its commit. The
same event id again returns the stored answer, so a retry never draws fresh noise. WAL mode with
`synchronous=FULL`: a commit that returned survives a power cut. Rows are chained (`chain`), and
their head is kept beside the file (`chain`).
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from sfumato.core.errors import InvalidParameter
from sfumato.core.guard import guarded
from sfumato.store.answer_columns import AnswerColumns, PositionColumns, committed
from sfumato.store.chain import (
    ANSWER_FIELDS,
    Anchor,
    Commit,
    by_stream,
    first_hash,
    first_head,
    new_id,
    written_head,
)
from sfumato.store.database_guard import DatabaseGuard
from sfumato.store.keys import key_file, secret_name, secret_of
from sfumato.store.ledger_form import SCHEMA, UNSIGNALLED, VERSION
from sfumato.store.ledger_head import check_head
from sfumato.store.ledger_reader import LedgerReader
from sfumato.store.ledger_rows import COLUMNS
from sfumato.store.plan_rules import chosen_label
from sfumato.store.protocol import (
    NO_JOB,
    Again,
    Answer,
    Head,
    Identity,
    Input,
    Job,
    LedgerMismatch,
    Position,
    ReleaseClosed,
)
from sfumato.store.sqlite_transaction import transaction

_ADVANCE = """
INSERT INTO streams VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (stream) DO UPDATE
SET sequence = excluded.sequence, leakage = excluded.leakage, model_free = excluded.model_free,
    state = excluded.state, hash = excluded.hash
WHERE excluded.sequence > sequence AND excluded.leakage >= leakage
    AND excluded.model_free >= model_free
"""
_CACHE_KIB = 16 << 10
"""Groups of many streams touch many pages: with the usual 2 MiB they take an eighth longer."""
_MARKS = ", ".join("?" * (COLUMNS.count(",") + 1))
_INSERT = f"INSERT INTO events ({COLUMNS}) VALUES ({_MARKS})"


class SqliteStore(DatabaseGuard, LedgerReader):
    """The ledger of one plan.

    Args:
        path: The ledger file; None keeps it in a temporary file that is gone when closed.
        plan: Fingerprint of the plan; a ledger of another plan is refused.
        job: The job that writes it; a ledger of another job is refused.
        rules: The document of the plan, kept in a new ledger for an audit.

    Examples:
        >>> with SqliteStore(None, plan="fingerprint") as store:
        ...     store.answers(["e1"])
        {}
    """

    shared = ended = False

    def __init__(
        self,
        path: str | Path | None,
        plan: str,
        *,
        job: Job = NO_JOB,
        rules: str | None = None,
    ) -> None:
        # A link is followed here, once: the files beside the ledger must not depend on its name.
        self.path = None if path is None else Path(os.path.realpath(path))
        self.lasting = path is not None
        self._lock = threading.RLock()  # its methods use each other
        self._closing = contextlib.ExitStack()
        self._intact_streams, self.walked = set(), None
        self._anchor = None
        self._made, self._unused = list[Path](), False
        self.anchored, self.log_there = None, True
        with self._closing_on_failure():
            if self.path is not None:
                self._check_place(self.path)
                self._anchor = self._closing.enter_context(Anchor(self.path))
                beside = (self.path, key_file(self.path))
                self._made = [one for one in beside if not one.exists()]
                self._closing.callback(self._remove_unused)  # closed, and not yet let go of
                self.anchored = written_head(self.path)
                self.log_there = self.path.with_name(f"{self.path.name}-wal").exists()
            with self._reported():
                connection = sqlite3.connect(
                    self.path or "", isolation_level=None, check_same_thread=False
                )
            self._database = self._closing.enter_context(contextlib.closing(connection))
            with self._reported():
                self._open(plan, job, rules)

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Other threads wait until it is over; other processes cannot open the file at all."""
        with self._lock:
            yield

    def snapshot(self) -> LedgerReader:
        """The ledger as it is now, to be read in full beside everything that goes on."""
        if self.path is None:
            raise InvalidParameter("ledger", "one without a name", "be a file to be read apart")
        return LedgerReader(self.path)

    @property
    def headless(self) -> bool:
        """Whether a lasting ledger has rows, and no head beside it to compare them with."""
        return self.lasting and self.anchored is None and self.front.head.entries > 0

    def _check_place(self, path: Path) -> None:
        if not path.parent.is_dir():
            raise LedgerMismatch(f"{path}: the folder of a ledger must exist; it does not")
        if path.is_dir():
            raise LedgerMismatch(f"{path}: a ledger must be a file; this is a folder")
        if path.exists() and path.stat().st_nlink > 1:
            raise LedgerMismatch(f"{path}: a ledger must have one name; this file has several")

    def _open(self, plan: str, job: Job, rules: str | None) -> None:
        self._database.execute("PRAGMA synchronous=FULL")
        self._database.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
        if self._database.execute("SELECT 1 FROM sqlite_master").fetchone() is None:
            self._create(plan, job, rules)
        self.front = self._read_front(plan, job)
        check_head(self)
        self._renew()
        if self.path is not None:
            # Marked as open in the file itself, not in its log alone: a copy without the log shows.
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("UPDATE ledger SET closed = 0")
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._write_head(self.front.head)

    def _create(self, plan: str, job: Job, rules: str | None) -> None:
        if self.anchored is not None and self.anchored.entries:
            raise LedgerMismatch(
                f"{self.path}: this ledger is empty, but had {self.anchored.entries} rows (its "
                f"head was {self.anchored}); bring it back: what was released stays spent"
            )
        self.anchored = None
        id_ = new_id(job.name, rules)
        with transaction(self._database):
            for statement in SCHEMA.split(";"):
                self._database.execute(statement)
            row = (VERSION, id_, job.name, plan, None, rules, 0, first_head(id_, plan), 1)
            self._database.execute("INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    def _renew(self) -> None:
        """Let a ledger of an earlier version go on; its rows stay as they are."""
        (version,) = self._database.execute("SELECT version FROM ledger").fetchone()
        if version == VERSION:
            return
        with transaction(self._database):
            if version == UNSIGNALLED:
                self._database.execute("DROP VIEW temp.events")
                self._database.execute("ALTER TABLE events ADD COLUMN signal INTEGER")
            self._database.execute("UPDATE ledger SET version = ?", (VERSION,))

    def close(self) -> None:
        """Close the file; everything committed stays, and is in the file itself."""
        with self._lock, self._closing:
            if self.path is not None:
                with contextlib.suppress(sqlite3.Error):
                    self._database.execute("UPDATE ledger SET closed = 1")

    def __exit__(self, *problem: object) -> None:
        new = self.path in self._made and not self.front.head.entries
        self._unused = new and problem[0] is not None
        self.close()

    def _remove_unused(self) -> None:
        """After an error before the first answer of a new ledger: leave nothing behind."""
        if self._unused and self._anchor is not None:
            for made in self._made:
                made.unlink(missing_ok=True)
            self._anchor.clear()

    @guarded
    def begin(self, name: str, identity: Identity, again: Again = Again.REFUSE) -> Input:
        """Begin an input, or go on with one."""
        with self._reported():
            query = "SELECT label, secret, answered FROM inputs WHERE name = ? ORDER BY number"
            earlier = self._database.execute(query, (name,)).fetchall()
        labels = [(label, rows) for label, _, rows in earlier]
        try:
            label = chosen_label(self.front, name, labels, identity, again)
        except LedgerMismatch as problem:
            raise LedgerMismatch(f"{self.path}: {problem}") from None
        if self.front.identity is None:
            with self._reported(), transaction(self._database):
                self._database.execute("UPDATE ledger SET identity = ?", (identity.value,))
            self.front = replace(self.front, identity=identity.value)
        if label is None:
            secret = secret_of(self.path)
            return Input(self._new_label(name, secret), 0, secret)
        _, own_secret, rows = earlier[-1]
        # Rows that are known by their place alone are compared by their values: with the old key.
        compared = identity is Identity.ROW and rows > 0
        if compared and self.path is not None and not key_file(self.path).exists():
            raise self._keyless()
        secret = secret_of(self.path)
        if own_secret == secret_name(secret):
            return Input(label, rows, secret)
        if compared:
            raise self._keyless()
        return Input(self._new_label(name, secret), 0, secret)

    def _keyless(self) -> LedgerMismatch:
        return LedgerMismatch(
            f"{self.path}: whether the input is the same can only be told with the key file of "
            f"that run, {self.path}.key; bring it back, or --append new data"
        )

    def compared(self, source: str, secret: bytes) -> bool:
        """Whether values of an input can be compared: the secret of its digests is this one."""
        query = "SELECT 1 FROM inputs WHERE label = ? AND secret = ?"
        return self._one(query, source, secret_name(secret)) is not None

    def commit(self, answers: Iterable[Answer], positions: Iterable[Position]) -> None:
        """Store answers and the positions after them, all or nothing; on disk when this returns."""
        self._commit(by_stream(answers, positions))

    def commit_columns(self, answers: AnswerColumns, positions: PositionColumns) -> None:
        """The same for a batch by columns."""
        self._commit(committed(answers, positions))

    def _commit(self, commit: Commit) -> None:
        if not commit.after:
            return
        if self.ended:
            raise ReleaseClosed
        with self._reported():
            with transaction(self._database):
                head = self._append(commit)
                self._database.execute(
                    "UPDATE ledger SET entries = ?, head = ?", (head.entries, head.hash)
                )
                sources = Counter(commit.columns[ANSWER_FIELDS.index("source")])
                self._database.executemany(
                    "UPDATE inputs SET answered = answered + ? WHERE label = ?",
                    [(count, label) for label, count in sources.items()],
                )
            self.front = replace(self.front, head=head)
            self._write_head(head)

    def _append(self, commit: Commit) -> Head:
        """Store answers after the last rows of their streams; return the new head."""
        there = self._stream_ends([stream for stream, *_ in commit.after])
        commit.check_moments([moments for moments, _ in there])
        rows, hashes, head = commit.chained([own for _, own in there], self.front.head)
        try:
            self._database.executemany(_INSERT, rows)
        except sqlite3.IntegrityError as problem:
            raise LedgerMismatch(f"an event was answered before: {problem}") from problem
        moved = [(*after, own) for after, own in zip(commit.after, hashes, strict=True)]
        if self._database.executemany(_ADVANCE, moved).rowcount != len(moved):
            raise LedgerMismatch("a state may only move forward and never lower its spend")
        return head

    def _stream_ends(self, streams: Sequence[str]) -> list[tuple[int, bytes]]:
        """How many moments streams have, and the hashes of their last rows."""
        query = "SELECT stream, sequence, hash FROM streams WHERE stream IN"
        found = {stream: (moments, own) for stream, moments, own in self._any_of(query, streams)}
        id_, plan = self.front.id, self.front.plan
        return [found.get(one) or (0, first_hash(id_, plan, one)) for one in streams]

    def _write_head(self, head: Head) -> None:
        """The head is on disk before anything that it stands for leaves."""
        if self._anchor is not None:
            self._anchor.write(head)

    def _new_label(self, name: str, secret: bytes) -> str:
        query = "SELECT 1 FROM inputs WHERE label = ?"
        label, number = name, 1
        with self._reported(), transaction(self._database):
            while self._database.execute(query, (label,)).fetchone():
                number += 1
                label = f"{name}#{number}"
            row = (None, label, name, secret_name(secret), 0)
            self._database.execute("INSERT INTO inputs VALUES (?, ?, ?, ?, ?)", row)
        return label
