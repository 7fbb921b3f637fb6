"""A registry in PostgreSQL: one log for all nodes of a service.

Whoever appends locks the table against others who append; readers never wait. Entry 0 is the
beginning, as in `sqlite_registry`. A node may keep the head that it saw last (`shared_anchor`): a
registry that did not grow from it was put back, and is refused.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any, Self

from sfumato.core.errors import CorruptData
from sfumato.core.guard import guarded
from sfumato.store.chain import written_head
from sfumato.store.database_guard import DatabaseGuard
from sfumato.store.postgres_connection import Database, Patience, refuse_forgetful
from sfumato.store.postgres_schema import Connection
from sfumato.store.protocol import Head, LedgerMismatch
from sfumato.store.registry import (
    VERSION,
    Clock,
    Entry,
    beginning,
    chained,
    new_beginning,
    next_entry,
    refuse_moved,
    utc_now,
)
from sfumato.store.shared_anchor import SharedAnchor

_LOCK = 0x5F_75_6D_61_74_6F
"""Of whoever makes tables (`postgres_schema`): two at once would fail on their names."""
_SCHEMA = """CREATE TABLE IF NOT EXISTS sfumato.registry (
    number bigint PRIMARY KEY, time text NOT NULL, actor text NOT NULL, action text NOT NULL,
    name text NOT NULL, content bytea NOT NULL, hash bytea NOT NULL
)"""
_COLUMNS = "number, time, actor, action, name, content, hash"
_INSERT = f"INSERT INTO sfumato.registry ({_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s)"
_LAST = "SELECT number, hash FROM sfumato.registry ORDER BY number DESC LIMIT 1"
_AT = "SELECT number, hash FROM sfumato.registry WHERE number = %s"


class PostgresRegistry(DatabaseGuard):
    """A registry that several nodes share.

    Args:
        url: The database, as `postgresql://user@host/name`.
        clock: Says when an entry is appended.
        anchor: Where this node keeps its head, as `ANCHOR.head`; nowhere if not given.

    Raises:
        StoreUnavailable: If the database cannot be reached; its password is not quoted.
        LedgerMismatch: If the server may forget what it said was stored.
        CorruptData: If the table there is no registry, or did not grow from the anchor.
    """

    def __init__(self, url: str, clock: Clock = utc_now, anchor: Path | None = None) -> None:
        self._lock = threading.RLock()  # its methods use each other
        self._clock, self._closed = clock, False
        self._database = Database(url, Patience())
        self._anchor: SharedAnchor | None = None
        try:
            if anchor is not None:
                self._anchor = SharedAnchor(anchor)
            self._begin(None if anchor is None else written_head(anchor))
        except BaseException:
            self.close()
            raise

    def _begin(self, anchored: Head | None) -> None:
        # Alone: a pool would try for long where there is no server.
        with self._database.alone() as database, database.transaction():
            refuse_forgetful(database, self._database.place)
            database.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            database.execute("CREATE SCHEMA IF NOT EXISTS sfumato")
            database.execute(_SCHEMA)
            if database.execute(_LAST).fetchone() is None:
                _grown(database, anchored)  # nothing is begun anew where something was
                id_, begun = new_beginning()
                database.execute(_INSERT, (0, "", "", "registry", str(VERSION), id_, begun))
            _check(database)
            _grown(database, anchored)
            now = Head(*_row(database, _LAST))
        self._saw(now)

    def _saw(self, head: Head) -> None:
        """Write down how far the registry has come, before anybody acts on it."""
        if self._anchor is not None and head.entries:
            self._anchor.write(head)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def head(self) -> Head:
        """How many entries there are now, on all nodes, and the hash of all of them."""
        with self._transaction() as database:
            return Head(*_row(database, _LAST))

    @guarded
    def append(
        self, actor: str, action: str, name: str, content: bytes, *, after: int | None = None
    ) -> Entry:
        """Append an entry; durable when this returns."""
        with self._transaction() as database:
            database.execute("LOCK TABLE sfumato.registry IN SHARE ROW EXCLUSIVE MODE")
            head = Head(*_row(database, _LAST))
            refuse_moved(after, head)
            entry = next_entry(head, self._clock(), actor, action, name, content)
            database.execute(_INSERT, astuple(entry))
        self._saw(Head(entry.number, entry.hash))
        return entry

    def entries(self, after: int = 0) -> list[Entry]:
        """The entries after one of them, in order, each checked against the one before."""
        query = f"SELECT {_COLUMNS} FROM sfumato.registry WHERE number > %s ORDER BY number"
        with self._transaction() as database:
            found = database.execute(_AT, (after,)).fetchone()
            if found is None:
                return []
            rows = database.execute(query.encode(), (after,))
            new = list(chained((Entry(*row) for row in rows), Head(*found)))
        if new:
            self._saw(Head(new[-1].number, new[-1].hash))
        return new

    def head_at(self, entries: int) -> Head | None:
        """The head after so many entries; None if there are fewer."""
        with self._transaction() as database:
            found = database.execute(_AT, (entries,)).fetchone()
        return None if found is None else Head(*found)

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            self._closed = True
            self._database.close()
            if self._anchor is not None:
                self._anchor.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """One thread at a time, all or nothing; after a lost connection the next has a new one."""
        with self._lock:
            if self._closed:
                raise LedgerMismatch("the registry must be open; it was closed")
            with (
                self._database.reported(),
                self._database.pooled() as connection,
                connection.transaction(),
            ):
                yield connection


def _check(database: Connection) -> None:
    """Refuse another version, or a beginning that was changed."""
    first = Entry(*_row(database, f"SELECT {_COLUMNS} FROM sfumato.registry WHERE number = 0"))
    if first.name != str(VERSION):
        rule = f"a registry must have version {VERSION}; it has {first.name}"
        raise CorruptData(f"{rule}: use the program that wrote it")
    if first.hash != beginning(first.content):
        raise CorruptData("the beginning of the registry was changed")


def _grown(database: Connection, anchored: Head | None) -> None:
    """Refuse a registry that has fewer entries than this node saw, or others."""
    if anchored is None or not anchored.entries:
        return
    found = database.execute(_AT, (anchored.entries,)).fetchone()
    if found is None or Head(*found) != anchored:
        raise CorruptData(
            f"the registry had {anchored.entries} entries when this node saw it last (its head was "
            f"{anchored}); now it has fewer, or others: the database was put back. Bring back a "
            "later one: what was released stays spent"
        )


def _row(database: Connection, query: str) -> Any:
    found = database.execute(query.encode()).fetchone()
    if found is None:
        raise CorruptData("the beginning of the registry is missing")
    return found
