"""Turns of a ledger in PostgreSQL, of all nodes one after the other; and looks at it in between.

A turn is one transaction that locks the front row of the ledger first, so whoever holds one sees
everything that was committed before. A look is a transaction that only reads, as of one moment.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import psycopg
from psycopg import IsolationLevel
from psycopg.pq import TransactionStatus

from sfumato.core.errors import ForkedUse
from sfumato.store.postgres_connection import SETTINGS, Database, check_durable
from sfumato.store.postgres_rows import PostgresRows
from sfumato.store.postgres_schema import Connection
from sfumato.store.protocol import Front, Head, LedgerMismatch, StoreUnavailable
from sfumato.store.registry import CLOSED
from sfumato.store.shared_anchor import SharedAnchor

_LOCK = f"""SELECT id, identity, entries, head, {SETTINGS}
    FROM sfumato.ledgers WHERE number = %s FOR UPDATE"""
_ENTRIES = "SELECT number, action, name FROM sfumato.registry WHERE number > %s ORDER BY number"


class _Held(threading.local):
    """The connection that a thread uses now, in a turn or for one look; and the front it sees."""

    connection: Connection | None = None
    front: Front | None = None

    @contextlib.contextmanager
    def using(self, connection: Connection) -> Iterator[None]:
        self.connection = connection
        try:
            yield
        finally:
            self.connection = self.front = None


class PostgresTurns(PostgresRows):
    """A ledger of a database that one node of several holds for a turn, or looks at.

    Attributes:
        ended: Whether the release was closed, as this node last saw.
    """

    ended = False
    _lock: AbstractContextManager[Any]

    def _begin_turns(self, database: Database, name: str) -> None:
        """Set what turns and looks need; nothing is read yet."""
        self._lock = threading.RLock()  # a turn holds it while methods take it
        self._process, self._held, self._closed = os.getpid(), _Held(), False
        self._database, self._name = database, name
        self.place = f"{database.place} {name!r}"
        self._intact_streams, self.walked, self.anchored = set(), None, None
        self._anchor: SharedAnchor | None = None
        self._read_entries: int | None = None

    @property
    def front(self) -> Front:
        """What is durable; for whoever holds a turn, with what was committed in it."""
        return self._held.front or self._front

    @front.setter
    def front(self, front: Front) -> None:
        if self._held.connection is None:
            self._front = front
        else:
            self._held.front = front

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """One transaction: others, here and on other nodes, wait until it is over.

        Within a turn another one is a part of it. A turn that is left by an exception stores
        nothing.

        Raises:
            StoreUnavailable: If the ledger is held by another node for too long, the database is
                lost, or it did not say whether it stored what was committed.
            CorruptData: If rows that were there are gone.
        """
        with self._lock:
            self._refuse_closed()
            if (connection := self._held.connection) is None:
                with self._outermost():
                    yield
                return
            before = self.front
            try:
                with connection.transaction():
                    yield
            except BaseException:
                self.front = before
                raise

    @contextlib.contextmanager
    def _outermost(self) -> Iterator[None]:
        ending = False
        try:
            with self._database.pooled() as connection:
                # Each statement sees what others committed while the one before waited for them.
                connection.isolation_level = IsolationLevel.READ_COMMITTED
                connection.read_only = False
                with self._held.using(connection):
                    with connection.transaction():
                        self._lock_front(connection)
                        self._look_for_end(connection)
                        yield
                        self._refuse_undone(connection)
                        ending = True
                    now = self.front
        except psycopg.Error as problem:
            if not ending:
                raise self._database.refusal(problem) from None
            raise StoreUnavailable(
                f"{self.place}: the database did not say whether it stored the last answers; they "
                "must not leave, and asking again is safe: what was stored is answered from there"
            ) from None
        self.front = now
        self._write_head()

    def _refuse_undone(self, connection: Connection) -> None:
        """Refuse to end a turn in which a statement failed, whoever caught its error.

        The server has undone all of it, and would answer COMMIT as if there were nothing to say.
        """
        if connection.info.transaction_status is not TransactionStatus.INTRANS:
            raise StoreUnavailable(
                f"{self.place}: a statement of this turn failed; nothing of it was stored, and "
                "asking again is safe"
            )

    def _lock_front(self, connection: Connection) -> None:
        """Hold the ledger, and see where it stands by now."""
        seen = self.front.head
        row = connection.execute(_LOCK.encode(), (self._number,), binary=True).fetchone()
        if row is None or row[0] != self.front.id:
            raise self.broken("it is gone, or another one has its name")
        _, identity, entries, head, *told = row
        check_durable(self.place, tuple(told))
        self.front = replace(self.front, identity=identity, head=Head(entries, head))
        if self.front.head == seen:
            return
        # A server that took over may lack what the one before it had stored.
        there = self._one("SELECT head FROM events WHERE entry = ?", seen.entries)
        if entries <= seen.entries or (seen.entries and there != (seen.hash,)):
            self.compare(seen)
            raise self.broken("its last row is not the one it ended with")

    def _look_for_end(self, connection: Connection) -> None:
        """See whether the release was closed; whoever closes it holds the ledger meanwhile."""
        if self._read_entries is None or self.ended:
            return
        for number, action, name in connection.execute(_ENTRIES, (self._read_entries,)):
            self._read_entries = number
            self.ended = self.ended or (action == CLOSED and name == self._name)

    @contextlib.contextmanager
    def _using(self) -> Iterator[Connection]:
        if os.getpid() != self._process:
            raise ForkedUse(type(self).__name__)
        connection = self._held.connection
        if connection is not None:
            with self._database.reported():
                yield connection
            return
        self._refuse_closed()
        with self._database.reported(), self._database.pooled() as connection:
            connection.isolation_level = IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            with connection.transaction(), self._held.using(connection):
                yield connection

    def _refuse_closed(self) -> None:
        if self._closed:
            raise LedgerMismatch(f"{self.place}: the ledger must be open; it was closed")

    def _write_head(self) -> None:
        """What was committed is written down here before anything that it stands for leaves."""
        if self._anchor is not None:
            self._anchor.write(self.front.head)
