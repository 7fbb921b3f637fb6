"""A ledger in PostgreSQL, for several nodes that answer under one plan.

The rules, the hashes and the refusals are those of a ledger file (`sqlite`); the turns of all nodes
follow each other (`postgres_turns`). Rows go in with COPY. What tells a retry from other data, the
secret of the digests of values, is not in the database but in a file that each node has; the
database knows the name of that secret, and nodes with another are refused.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.core.guard import guarded
from sfumato.store.answer_columns import AnswerColumns, PositionColumns, committed
from sfumato.store.chain import Commit, by_stream, first_head, new_id, written_head
from sfumato.store.database_guard import DatabaseGuard
from sfumato.store.keys import read_secret, secret_name
from sfumato.store.ledger_form import VERSION
from sfumato.store.plan_rules import chosen_label
from sfumato.store.postgres_append import append
from sfumato.store.postgres_connection import Database, Patience, refuse_forgetful
from sfumato.store.postgres_rows import FRONT, PostgresReader
from sfumato.store.postgres_schema import Connection, check_form, migrate
from sfumato.store.postgres_turns import PostgresTurns
from sfumato.store.protocol import (
    Again,
    Answer,
    Identity,
    Input,
    Job,
    LedgerMismatch,
    Position,
    ReleaseClosed,
)
from sfumato.store.shared_anchor import SharedAnchor

_NEW = """INSERT INTO sfumato.ledgers (name, version, id, job, plan, rules, secret, entries, head)
    VALUES (%s, %s, %s, %s, %s, %s, %s, 0, %s) ON CONFLICT (name) DO NOTHING"""
_REGISTRY = "SELECT to_regclass('sfumato.registry')"
_INPUT = "INSERT INTO sfumato.inputs (ledger, label, name, answered) VALUES (%s, %s, %s, 0)"


class PostgresStore(DatabaseGuard, PostgresTurns):
    """The ledger of one plan in a database that other nodes use at the same time.

    Args:
        url: The database; it must not lose commits in a crash (`fsync`, `full_page_writes`).
        name: Of the ledger; made if there is none of that name.
        plan: Fingerprint of the plan; a ledger of another plan is refused.
        job: The job that writes it; a ledger of another job is refused.
        rules: The document of the plan, kept in a new ledger for an audit.
        secret: A file of 32 random bytes (`sfumato key new`), the same on each node and nowhere
            else: the secret of the digests of values.
        anchor: Where this node writes the head after each turn, as `ANCHOR.head`; a database that
            has fewer rows than that, or others, is refused. Nodes of one machine may share it.
        patience: How long it waits, and how long others wait for it.

    Raises:
        LedgerMismatch: If the ledger is of another plan, job or secret, or the server may forget.
        CorruptData: If the end of the ledger is not what it says, or did not grow from the anchor.
        StoreUnavailable: If the database cannot be reached.
    """

    lasting = shared = True

    def __init__(
        self,
        url: str,
        name: str,
        plan: str,
        *,
        job: Job,
        rules: str | None,
        secret: Path,
        anchor: Path | None = None,
        patience: Patience | None = None,
    ) -> None:
        self._secret, self._anchored_at = _read(secret), anchor
        self._begin_turns(Database(url, patience or Patience()), name)
        with contextlib.ExitStack() as stack:
            stack.callback(self._database.close)
            if anchor is not None:
                self._anchor = stack.enter_context(SharedAnchor(anchor))
                self.anchored = written_head(anchor)
            self._open(plan, job, rules)
            self._closing = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; everything committed stays."""
        with self._lock:
            self._closed = True
            self._closing.close()

    def _open(self, plan: str, job: Job, rules: str | None) -> None:
        with self._database.alone() as connection:
            migrate(connection)
            check_form(connection)
            refuse_forgetful(connection, self.place)
            if connection.execute(FRONT, (self._name,)).fetchone() is None:
                self._create(connection, plan, job, rules)
            if connection.execute(_REGISTRY).fetchone() != (None,):
                self._read_entries = 0  # a ledger of a home: who closes its release says so there
        with self._using() as connection:  # one look: other nodes may be at work
            row = connection.execute(FRONT, (self._name,)).fetchone()
            if row is None:
                raise self.broken("it is gone while it was opened")
            if self._take_front(row, plan, job) != secret_name(self._secret):
                raise LedgerMismatch(
                    f"{self.place}: the ledger was begun with another secret than that in the "
                    "file; every node must have the same"
                )
            self._end()
            front = self.front
        self.front = front
        self._write_head()

    def _create(self, connection: Connection, plan: str, job: Job, rules: str | None) -> None:
        if self.anchored is not None and self.anchored.entries:
            raise LedgerMismatch(
                f"{self.place}: there is no such ledger, but it had {self.anchored.entries} rows "
                f"(its head was {self.anchored}); bring it back: what was released stays spent"
            )
        self.anchored = None
        id_ = new_id(job.name, rules)
        name, begun = secret_name(self._secret), first_head(id_, plan)
        connection.execute(_NEW, (self._name, VERSION, id_, job.name, plan, rules, name, begun))

    def snapshot(self) -> PostgresReader:
        """The ledger as it is now, to be read in full beside everything that goes on."""
        return PostgresReader(self._database, self._name, self._anchored_at)

    # Inputs ---------------------------------------------------------------------------------------

    @guarded
    def begin(self, name: str, identity: Identity, again: Again = Again.REFUSE) -> Input:
        """Begin an input, or go on with one."""
        with self.turn():
            query = "SELECT label, answered FROM inputs WHERE name = ? ORDER BY number"
            earlier = [(str(label), int(rows)) for label, rows in self._fetched(query, name)]
            try:
                label = chosen_label(self.front, name, earlier, identity, again)
            except LedgerMismatch as problem:
                raise LedgerMismatch(f"{self.place}: {problem}") from None
            if self.front.identity is None:
                query = "UPDATE sfumato.ledgers SET identity = %s WHERE number = %s"
                self._run(query, identity.value, self._number)
                self.front = replace(self.front, identity=identity.value)
            if label is not None:
                return Input(label, dict(earlier)[label], self._secret)
            return Input(self._new_label(name), 0, self._secret)

    def _new_label(self, name: str) -> str:
        label, number = name, 1
        while self._one("SELECT 1 FROM inputs WHERE label = ?", label):
            number += 1
            label = f"{name}#{number}"
        self._run(_INPUT, self._number, label, name)
        return label

    def compared(self, source: str, secret: bytes) -> bool:
        """Whether values of an input can be compared: the secret of its digests is this one."""
        there = self._one("SELECT 1 FROM inputs WHERE label = ?", source)
        return there is not None and secret == self._secret

    # Commits --------------------------------------------------------------------------------------

    def commit(self, answers: Iterable[Answer], positions: Iterable[Position]) -> None:
        """Store answers and the positions after them, all or nothing.

        Durable when this returns, or within a turn when that ends.
        """
        self._commit(by_stream(answers, positions))

    def commit_columns(self, answers: AnswerColumns, positions: PositionColumns) -> None:
        """The same for a batch by columns."""
        self._commit(committed(answers, positions))

    def _commit(self, commit: Commit) -> None:
        if not commit.after:
            return
        # Within a turn this one is a savepoint: what is refused leaves the rest as it was.
        with self.turn(), self._reported(), self._using() as connection:
            if self.ended:
                raise ReleaseClosed
            head = append(connection, self._number, self.front, commit)
            self.front = replace(self.front, head=head)

    def _run(self, statement: str, *given: Any) -> int:
        """Run a statement; return how many rows it changed."""
        with self._using() as connection:
            return connection.execute(statement.encode(), given).rowcount


def _read(secret: Path) -> bytes:
    try:
        return read_secret(Path(secret))
    except FileNotFoundError:
        rule = "exist: make it once (`sfumato key new`), and give each node the same"
        raise InvalidParameter("secret", str(secret), rule) from None


def migrate_postgres(url: str) -> None:
    """Bring the tables of a database to the version of this release.

    Raises:
        CorruptData: If a newer release has changed them.
        StoreUnavailable: If it cannot be reached.
    """
    database = Database(url, Patience())
    with database.alone() as connection:
        try:
            migrate(connection)
        except CorruptData as problem:
            raise CorruptData(f"{database.place}: {problem}") from None
