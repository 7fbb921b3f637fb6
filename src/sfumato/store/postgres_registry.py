"""A registry in PostgreSQL: one log for all nodes of a service.

Whoever appends locks the table against others who append; readers never wait. Entry 0 is the
beginning, as in `sqlite_registry`. No head lies beside a shared registry: anchor it outside
(`home.HomeAnchor`).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import astuple
from typing import Any, Self

import psycopg

from sfumato.core.errors import CorruptData
from sfumato.core.guard import Guarded, guarded
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

_LOCK = 0x5F75_6D61_746F
"""Of the session that makes the table; two at once would fail on its name."""
_SCHEMA = """CREATE TABLE IF NOT EXISTS sfumato_registry (
    number bigint PRIMARY KEY, time text NOT NULL, actor text NOT NULL, action text NOT NULL,
    name text NOT NULL, content bytea NOT NULL, hash bytea NOT NULL
)"""
_COLUMNS = "number, time, actor, action, name, content, hash"
_INSERT = f"INSERT INTO sfumato_registry ({_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s)"
_LAST = "SELECT number, hash FROM sfumato_registry ORDER BY number DESC LIMIT 1"
_AT = "SELECT number, hash FROM sfumato_registry WHERE number = %s"


class PostgresRegistry(Guarded):
    """A registry that several nodes share.

    Args:
        url: The database, as `postgresql://user@host/name`.
        clock: Says when an entry is appended.

    Raises:
        LedgerMismatch: If the database cannot be reached; its password is not quoted.
        CorruptData: If the table there is no registry.
    """

    def __init__(self, url: str, clock: Clock = utc_now) -> None:
        self._lock = threading.RLock()  # its methods use each other
        self._url, self._clock = url, clock
        self._connection: psycopg.Connection[Any] | None = None
        self._closed = False
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        with self._transaction() as database:
            database.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            database.execute(_SCHEMA)
            if database.execute(_LAST).fetchone() is None:
                id_, begun = new_beginning()
                database.execute(_INSERT, (0, "", "", "registry", str(VERSION), id_, begun))
            self._check(database)

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
            # A server may be set to lose its last commits in a crash; not these.
            database.execute("SET LOCAL synchronous_commit = on")
            database.execute("LOCK TABLE sfumato_registry IN SHARE ROW EXCLUSIVE MODE")
            head = Head(*_row(database, _LAST))
            refuse_moved(after, head)
            entry = next_entry(head, self._clock(), actor, action, name, content)
            database.execute(_INSERT, astuple(entry))
        return entry

    def entries(self, after: int = 0) -> list[Entry]:
        """The entries after one of them, in order, each checked against the one before."""
        query = f"SELECT {_COLUMNS} FROM sfumato_registry WHERE number > %s ORDER BY number"
        with self._transaction() as database:
            found = database.execute(_AT, (after,)).fetchone()
            if found is None:
                return []
            rows = database.execute(query, (after,))
            return list(chained((Entry(*row) for row in rows), Head(*found)))

    def head_at(self, entries: int) -> Head | None:
        """The head after so many entries; None if there are fewer."""
        with self._transaction() as database:
            found = database.execute(_AT, (entries,)).fetchone()
        return None if found is None else Head(*found)

    @guarded
    def close(self) -> None:
        """Close the connection."""
        self._closed = True
        if self._connection is not None:
            self._connection.close()

    def _check(self, database: psycopg.Connection[Any]) -> None:
        first = database.execute(f"SELECT {_COLUMNS} FROM sfumato_registry WHERE number = 0")
        begun = first.fetchone()
        if begun is None:
            raise CorruptData("the beginning of the registry is missing")
        entry = Entry(*begun)
        if entry.name != str(VERSION):
            rule = f"a registry must have version {VERSION}; it has {entry.name}"
            raise CorruptData(f"{rule}: use the program that wrote it")
        if entry.hash != beginning(entry.content):
            raise CorruptData("the beginning of the registry was changed")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[psycopg.Connection[Any]]:
        """One thread at a time, all or nothing; after a lost connection the next has a new one."""
        with self._lock:
            if self._closed:
                raise LedgerMismatch("the registry must be open; it was closed")
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = psycopg.connect(self._url, autocommit=True)
                with self._connection.transaction():
                    yield self._connection
            except psycopg.Error as problem:
                kind = type(problem).__name__
                raise LedgerMismatch(
                    f"the registry must be reachable in its database; it is not ({kind})"
                ) from None


def _row(database: psycopg.Connection[Any], query: str) -> Any:
    found = database.execute(query).fetchone()
    if found is None:
        raise CorruptData("the beginning of the registry is missing")
    return found
