"""Which release a stream belongs to: written down before its first draw, and never changed.

Events that name no release go to the home of their stream. Were that derived anew by each node, two
nodes around an activation would each draw for the same id, and two budgets would be spent. So the
first who writes a home down wins, and everybody goes by what is written.

Nothing is forgotten for good where this is lost: a stream with answers belongs where they are.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from sfumato.core.errors import CorruptData
from sfumato.core.guard import Guarded, guarded
from sfumato.store.database_guard import DatabaseGuard
from sfumato.store.ledger_connection import read_only
from sfumato.store.ledger_form import has_tables
from sfumato.store.protocol import LedgerMismatch, StoreUnavailable
from sfumato.store.sqlite_transaction import transaction

SCHEMA = """CREATE TABLE homes (
    stream TEXT PRIMARY KEY, release TEXT NOT NULL
) STRICT, WITHOUT ROWID"""
_NEW = "INSERT INTO homes VALUES (?, ?) ON CONFLICT (stream) DO NOTHING"
_ONE = "SELECT release FROM homes WHERE stream = ?"
_FILE = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class StreamHomes(Protocol):
    """The release of each stream; safe in threads."""

    def settle(self, streams: Sequence[str], release: str) -> dict[str, str]:
        """Write down a release for those that have none yet; durable when this returns.

        Args:
            streams: Names of streams.
            release: Where those belong from now on of which nothing is written.

        Returns:
            The release of each of them, whoever wrote it down.
        """
        ...

    def settled(self, streams: Sequence[str]) -> dict[str, str]:
        """The release of those for which one is written down; nothing is written."""
        ...


class MemoryStreamHomes(Guarded):
    """Homes of streams in memory.

    Examples:
        >>> homes = MemoryStreamHomes()
        >>> homes.settle(["ann"], "v1"), homes.settle(["ann", "bob"], "v2")
        ({'ann': 'v1'}, {'ann': 'v1', 'bob': 'v2'})
    """

    def __init__(self) -> None:
        self._homes: dict[str, str] = {}

    @guarded
    def settle(self, streams: Sequence[str], release: str) -> dict[str, str]:
        """Write down a release for those that have none yet."""
        return {stream: self._homes.setdefault(stream, release) for stream in streams}

    @guarded
    def settled(self, streams: Sequence[str]) -> dict[str, str]:
        """The release of those for which one is written down."""
        return {stream: self._homes[stream] for stream in streams if stream in self._homes}


class SqliteStreamHomes(DatabaseGuard):
    """Homes of streams in a file of SQLite, made when the first is written down.

    Whoever uses it holds the folder (`FolderHome`): there is one writer.

    Raises:
        CorruptData: If there is a file that is none of these.

    Examples:
        >>> path = getfixture("tmp_path") / "streams.db"
        >>> homes = SqliteStreamHomes(path)
        >>> homes.settled(["ann"]), path.exists()
        ({}, False)
        >>> homes.settle(["ann"], "v1"), homes.settle(["ann"], "v2")
        ({'ann': 'v1'}, {'ann': 'v1'})
        >>> homes.close()
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        self._path, self._closed = path, False
        self._database: sqlite3.Connection | None = None
        if path.is_symlink() or path.exists():
            self._open()

    @guarded
    def settle(self, streams: Sequence[str], release: str) -> dict[str, str]:
        """Write down a release for those that have none yet; on disk when this returns."""
        with self._reported():
            database = self._database or self._open()
            with transaction(database):
                database.executemany(_NEW, [(stream, release) for stream in streams])
        return self.settled(streams)

    @guarded
    def settled(self, streams: Sequence[str]) -> dict[str, str]:
        """The release of those for which one is written down."""
        with self._reported():
            if self._database is None:
                return {}
            found = {one: self._database.execute(_ONE, (one,)).fetchone() for one in streams}
        return {stream: row[0] for stream, row in found.items() if row is not None}

    @guarded
    def close(self) -> None:
        """Close the file."""
        self._closed = True
        if self._database is not None:
            self._database.close()
            self._database = None

    def _open(self) -> sqlite3.Connection:
        handle = os.open(self._path, _FILE, 0o600)
        os.fchmod(handle, 0o600)
        os.close(handle)
        database = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        try:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=FULL")
            if database.execute("SELECT 1 FROM sqlite_master").fetchone() is None:
                database.execute(SCHEMA)
            check_table(database, self._path)
        except sqlite3.Error as problem:
            database.close()
            raise _unusable(self._path, problem) from None
        except BaseException:
            database.close()
            raise
        self._database = database
        return database

    @contextlib.contextmanager
    def _reported(self) -> Iterator[None]:
        if self._closed:
            raise LedgerMismatch(f"{self._path}: the home must be open; it was closed")
        try:
            yield
        except (sqlite3.OperationalError, OSError) as problem:  # a full disk, for instance
            told = f"{self._path}: where streams belong could not be written down or read"
            raise StoreUnavailable(f"{told} ({type(problem).__name__})") from None
        except sqlite3.Error as problem:
            raise _unusable(self._path, problem) from None


def check_table(database: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that has another table, or something beside."""
    if not has_tables(database, [SCHEMA]):
        raise CorruptData(f"{path}: the file is not that of the homes of streams")


def _unusable(path: Path, problem: sqlite3.Error) -> CorruptData:
    return CorruptData(f"{path}: not a usable file of the homes of streams ({problem})")


# Copies -------------------------------------------------------------------------------------------


@contextlib.contextmanager
def reading_homes(path: Path) -> Iterator[Iterator[tuple[str, str]]]:
    """Streams and their releases, by name; none where there is no file."""
    if not path.exists():
        yield iter(())
        return
    try:
        with read_only(path) as database:
            check_table(database, path)
            yield iter(database.execute("SELECT stream, release FROM homes ORDER BY stream"))
    except sqlite3.Error as problem:
        raise _unusable(path, problem) from None


def write_homes(path: Path, homes: Iterator[tuple[str, str]]) -> None:
    """A new file with these; one file that needs no other. None is made for none."""
    first = next(homes, None)
    if first is None:
        return
    os.close(os.open(path, _FILE | os.O_EXCL, 0o600))
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute(SCHEMA)
        database.execute(_NEW, first)
        database.executemany(_NEW, homes)
        database.commit()
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def joined_homes(copy: Path, place: Path) -> None:
    """Add what a place has written down to a copy, which then has all of both.

    Raises:
        LedgerMismatch: If a stream belongs to another release in the copy; it is as before then.
    """
    with reading_homes(place) as own:
        if not copy.exists():
            write_homes(copy, own)
            return
        with contextlib.closing(sqlite3.connect(copy)) as database:
            for stream, release in own:
                database.execute(_NEW, (stream, release))
                if database.execute(_ONE, (stream,)).fetchone() != (release,):
                    raise other_home(stream)
            database.commit()


def other_home(stream: str) -> LedgerMismatch:
    """The refusal of a copy that would move a stream."""
    return LedgerMismatch(
        f"stream {stream!r} belongs to another release in the backup than at the place"
    )
