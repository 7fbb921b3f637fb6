"""The home of a database as files, and back: what backups, checks and restores of it stand on.

A copy is taken in one transaction that sees one moment, so registry and ledgers fit each other. It
has the form of a folder home, and is checked by the same code. What is brought back is one
transaction, too, which holds all ledgers: it is refused as a whole if it would lower a spend.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import msgspec
from psycopg import IsolationLevel

from sfumato.core.progress import Progress
from sfumato.store.chain import ANSWER_FIELDS, Row
from sfumato.store.folder_home import LEDGERS, REGISTRY, STREAMS, HomeFiles, HomeFolder
from sfumato.store.home_anchor import HomeAnchor
from sfumato.store.home_backup import copy_home
from sfumato.store.home_restore import (
    SpendLowered,
    Unanchored,
    check_spends,
    reached,
    refuse_unanchored,
)
from sfumato.store.ledger_connection import read_only
from sfumato.store.ledger_form import SCHEMA, VERSION
from sfumato.store.postgres_connection import Database, Patience
from sfumato.store.postgres_registry import PostgresRegistry
from sfumato.store.postgres_rows import check_version
from sfumato.store.postgres_schema import Connection, migrate, version_of
from sfumato.store.protocol import Head, LedgerMismatch
from sfumato.store.sqlite_registry import SCHEMA as REGISTRY_SCHEMA
from sfumato.store.stream_homes import other_home, reading_homes, write_homes

_FIELDS = ("entry", *ANSWER_FIELDS, "digest", "hash", "head")
_COLUMNS = ", ".join(_FIELDS)
_RELEASED = _FIELDS.index("released")
_STREAMS = "stream, sequence, leakage, model_free, state, hash"
_ENTRIES = "number, time, actor, action, name, content, hash"
_NEW = """INSERT INTO sfumato.ledgers (name, version, id, job, plan, rules, secret, entries, head)
    VALUES (%s, %s, %s, %s, %s, %s, %s, 0, '') RETURNING number"""
_MOVE = "UPDATE sfumato.ledgers SET identity = %s, entries = %s, head = %s WHERE number = %s"
_HOMES = """INSERT INTO sfumato.homes (stream, release)
    SELECT * FROM unnest(%s::text[], %s::text[]) ON CONFLICT (stream) DO NOTHING"""
_ROWS_AT_ONCE = 4096
_LONG = 86_400.0
"""Seconds that a copy may take: it is no node that hangs."""


def migrate_database(url: str) -> list[str]:
    """Take the steps that the tables of a database lack; what was done, in words."""
    with Database(url, Patience()).alone() as connection:
        before = version_of(connection)
        migrate(connection)
        after = version_of(connection)
    return [] if before == after else [f"tables of ledgers: version {before} to {after}"]


# Out ----------------------------------------------------------------------------------------------


def copy_postgres(url: str, folder: Path) -> None:
    """Write the home of a database into an empty folder, as it is at one moment.

    Raises:
        LedgerMismatch: If there is no home in it.
    """
    # Whoever copies may take his time: he holds no lock that a release waits for.
    database = Database(url, Patience(statement=_LONG, idle=_LONG))
    with database.alone() as connection:
        connection.isolation_level = IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        with connection.transaction():
            there = connection.execute("SELECT to_regclass('sfumato.registry')").fetchone()
            if there in (None, (None,)):
                raise LedgerMismatch(
                    f"{database.place}: the database must hold a home; it has none"
                )
            with _new_file(folder / REGISTRY, REGISTRY_SCHEMA) as file:
                query = f"SELECT {_ENTRIES} FROM sfumato.registry ORDER BY number"
                _fill(file, "entries", _ENTRIES, _rows(connection, query))
            (folder / LEDGERS).mkdir(mode=0o700)
            if version_of(connection):
                check_version(connection, database.place)
                _copy_ledgers(connection, HomeFolder(folder))
                query = "SELECT stream, release FROM sfumato.homes ORDER BY stream"
                write_homes(folder / STREAMS, _rows(connection, query))


def _copy_ledgers(connection: Connection, folder: HomeFolder) -> None:
    query = """SELECT name, number, secret, id, job, plan, identity, rules, entries, head
        FROM sfumato.ledgers ORDER BY name"""
    for name, number, secret, *front in connection.execute(query).fetchall():
        own = f"WHERE ledger = {int(number)} ORDER BY"
        with _new_file(folder.ledger_path(name), SCHEMA) as file:
            marks = ", ".join("?" * (len(front) + 2))
            file.execute(f"INSERT INTO ledger VALUES ({marks})", (VERSION, *front, 1))
            query = f"SELECT label, name, answered FROM sfumato.inputs {own} number"
            inputs = ((*row[:2], secret, row[2]) for row in _rows(connection, query))
            _fill(file, "inputs", "label, name, secret, answered", inputs)
            query = f"SELECT {_STREAMS} FROM sfumato.streams {own} stream"
            _fill(file, "streams", _STREAMS, _rows(connection, query))
            query = f"SELECT {_COLUMNS} FROM sfumato.events {own} entry"
            _fill(file, "events", _COLUMNS, _rows(connection, query))


def _rows(connection: Connection, query: str) -> Iterator[Row]:
    """Rows of a statement, a few at a time."""
    with connection.cursor("copied") as cursor:
        cursor.itersize = _ROWS_AT_ONCE
        cursor.execute(query.encode())
        yield from cursor


@contextlib.contextmanager
def _new_file(path: Path, schema: str) -> Iterator[sqlite3.Connection]:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    with contextlib.closing(sqlite3.connect(path)) as file:
        for statement in schema.split(";"):
            file.execute(statement)
        yield file
        file.commit()


def _fill(file: sqlite3.Connection, table: str, columns: str, rows: Iterator[Row]) -> None:
    marks = ", ".join("?" * (columns.count(",") + 1))
    file.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", rows)


# Back ---------------------------------------------------------------------------------------------


def restore_postgres(
    backup: HomeFiles,
    url: str,
    anchor: HomeAnchor | Unanchored | None = None,
    progress: Progress | None = None,
) -> HomeAnchor:
    """Bring a backup back to a database, as `home_restore.restore_home` does to a folder.

    Raises:
        SpendLowered: If the database, or the anchor, knows of something that the backup does not;
            the database is as before.
    """
    with tempfile.TemporaryDirectory(prefix="sfumato-home-") as folder:
        heads = copy_home(backup, Path(folder))
        reached(HomeFolder(folder), anchor)
        with PostgresRegistry(url):  # begun, so that there is one to compare with
            pass
        with (
            HomeFiles(folder) as copy,
            Database(url, Patience(statement=_LONG, idle=_LONG)).alone() as connection,
        ):
            migrate(connection)
            with connection.transaction():
                # Turns of all nodes wait for this, and this for theirs.
                tables = "sfumato.ledgers, sfumato.registry, sfumato.homes"
                connection.execute(f"LOCK TABLE {tables} IN EXCLUSIVE MODE".encode())
                place = _Place.found(connection)
                if place.is_empty():
                    refuse_unanchored(anchor)
                place.check(connection, copy)
                _put_homes(connection, copy)
                for done, name in enumerate(copy.names(), start=1):
                    _put_ledger(connection, copy, name)
                    if progress is not None:
                        progress(done)
                _put_registry(connection, copy, place.registry.entries)
    return heads


@dataclass(frozen=True, slots=True)
class _Place:
    """What a database holds by now.

    Attributes:
        registry: How far its registry has come.
        ledgers: The number and the head of each ledger.
    """

    registry: Head
    ledgers: dict[str, tuple[int, Head]]

    @classmethod
    def found(cls, connection: Connection) -> _Place:
        query = "SELECT number, hash FROM sfumato.registry ORDER BY number DESC LIMIT 1"
        (registry,) = connection.execute(query).fetchall()
        rows = connection.execute("SELECT name, number, entries, head FROM sfumato.ledgers")
        return cls(Head(*registry), {name: (number, Head(*head)) for name, number, *head in rows})

    def is_empty(self) -> bool:
        """Whether nothing was ever released or done there."""
        return not self.registry.entries and not any(h.entries for _, h in self.ledgers.values())

    def check(self, connection: Connection, copy: HomeFiles) -> None:
        """Refuse unless all of it is the beginning of what the copy has."""
        due = self.registry
        if due.entries and copy.registry.head_at(due.entries) != due:
            raise SpendLowered(f"the backup does not go on from the head {due} of the registry")
        for name, (number, head) in self.ledgers.items():
            if head.entries and copy.head_at(name, head.entries) != head:
                raise SpendLowered(f"the backup does not go on from the head {head} of {name!r}")
            if head.entries:
                query = f"SELECT {_STREAMS} FROM sfumato.streams WHERE ledger = {int(number)}"
                with copy.ledger(name) as later:
                    rows = _rows(connection, f"{query} ORDER BY stream")
                    check_spends(f"ledger {name!r}", later.stream_rows(), rows)


def _put_homes(connection: Connection, copy: HomeFiles) -> None:
    """Add where streams belong, unless one would move."""
    with reading_homes(copy.streams_path) as homes:
        while some := dict(islice(homes, _ROWS_AT_ONCE)):
            given = (list(some), list(some.values()))
            connection.execute(_HOMES, given)
            query = "SELECT stream, release FROM sfumato.homes WHERE stream = ANY(%s::text[])"
            for stream, release in connection.execute(query, given[:1]).fetchall():
                if some[stream] != release:
                    raise SpendLowered(str(other_home(stream)))


def _put_ledger(connection: Connection, copy: HomeFiles, name: str) -> None:
    """Add what a ledger lacks; one without rows is replaced."""
    with read_only(copy.ledger_path(name)) as file:
        query = "SELECT label, name, secret, answered FROM inputs ORDER BY number"
        inputs = file.execute(query).fetchall()
    with copy.ledger(name) as ledger:
        front = ledger.front
        if not front.head.entries:
            return  # nothing was released under it
        begun, number = _begun(connection, name, front.id)
        if number is None:
            # All nodes have one secret; of several that a folder had, the last one counts.
            secret = inputs[-1][2] if inputs else b""
            told = (name, VERSION, front.id, front.job, front.plan, front.rules, secret)
            made = connection.execute(_NEW, told).fetchone()
            number = 0 if made is None else int(made[0])
        later = (row for link in ledger.links() for row in link if row[0] > begun)
        _insert(connection, "events", _COLUMNS, number, map(_with_json, later))
        for table in ("streams", "inputs"):
            connection.execute(f"DELETE FROM sfumato.{table} WHERE ledger = {number}".encode())
        _insert(connection, "streams", _STREAMS, number, ledger.stream_rows())
        told_inputs = ((label, own, answered) for label, own, _, answered in inputs)
        _insert(connection, "inputs", "label, name, answered", number, told_inputs)
        head = (front.identity, front.head.entries, front.head.hash, number)
        connection.execute(_MOVE, head)


def _begun(connection: Connection, name: str, id_: bytes) -> tuple[int, int | None]:
    """How many rows a ledger has, and its number; None if there is none yet, or an empty one."""
    query = "SELECT entries, number, id FROM sfumato.ledgers WHERE name = %s"
    found = connection.execute(query, (name,)).fetchone()
    if found is None:
        return 0, None
    entries, number, own = found
    if own == id_:
        return entries, number
    connection.execute("DELETE FROM sfumato.inputs WHERE ledger = %s", (number,))
    connection.execute("DELETE FROM sfumato.ledgers WHERE number = %s", (number,))
    return 0, None


def _with_json(row: Row) -> Row:
    cells = [*row]
    if cells[_RELEASED] is not None:
        cells[_RELEASED] = msgspec.json.encode(cells[_RELEASED]).decode()
    return tuple(cells)


def _insert(
    connection: Connection, table: str, columns: str, ledger: int, rows: Iterable[Row]
) -> None:
    statement = f"COPY sfumato.{table} (ledger, {columns}) FROM STDIN"
    with connection.cursor() as cursor, cursor.copy(statement.encode()) as copying:
        for row in rows:
            copying.write_row((ledger, *row))


def _put_registry(connection: Connection, copy: HomeFiles, begun: int) -> None:
    """Add the entries that a registry lacks; one without any gets the beginning, too."""
    with read_only(copy.registry_path) as file:
        first = begun + 1 if begun else 0
        query = f"SELECT {_ENTRIES} FROM entries WHERE number >= ? ORDER BY number"
        rows = file.execute(query, (first,))
        if not begun:
            connection.execute("DELETE FROM sfumato.registry")
        statement = f"COPY sfumato.registry ({_ENTRIES}) FROM STDIN".encode()
        with connection.cursor() as cursor, cursor.copy(statement) as copying:
            for row in rows:
                copying.write_row(row)
