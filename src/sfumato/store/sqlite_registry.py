"""A registry in a file of SQLite: `registry.db`, held by one process, read by any.

WAL mode with `synchronous=FULL`, and the log goes into the file after each entry, unless somebody
is reading: actions of administrators are rare. Its head lies beside it, as that of a ledger does
(`chain.Anchor`): a file with fewer entries was rolled back, or lost its log, and is refused.
Entry 0 is the beginning: the id of the registry, and the version of its form.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any, Self

from sfumato.core.errors import CorruptData, FileInUse
from sfumato.core.guard import guarded
from sfumato.store.chain import Anchor, written_head
from sfumato.store.database_guard import DatabaseGuard
from sfumato.store.ledger_connection import read_only
from sfumato.store.ledger_form import has_tables
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
from sfumato.store.sqlite_transaction import copied, transaction

SCHEMA = """CREATE TABLE entries (
    number INTEGER PRIMARY KEY, time TEXT NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL,
    name TEXT NOT NULL, content BLOB NOT NULL, hash BLOB NOT NULL
) STRICT"""
_INSERT = "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)"
_LAST = "SELECT number, hash FROM entries ORDER BY number DESC LIMIT 1"


class RegistryReader:
    """A registry file that is only read, also while a service holds it.

    Raises:
        LedgerMismatch: If there is no such file.
        CorruptData: If it is no registry, or entries are missing.
    """

    path: Path
    _database: sqlite3.Connection
    _closing: contextlib.ExitStack
    _lock: Any

    def __init__(self, path: str | Path) -> None:
        self.path = Path(os.path.realpath(path))
        self._lock = threading.RLock()
        if not self.path.is_file():
            raise LedgerMismatch(f"{path}: the registry must exist; it does not")
        anchored = written_head(self.path)  # before the file: what comes later is on top
        with contextlib.ExitStack() as stack, self._reported():
            self._database = stack.enter_context(read_only(self.path))
            self._database.execute("BEGIN")
            self._check(anchored)
            self._closing = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._closing.close()

    @property
    def head(self) -> Head:
        """How many entries there are, and the hash of all of them."""
        with self._reported():
            return Head(*self._database.execute(_LAST).fetchone())

    def entries(self, after: int = 0) -> list[Entry]:
        """The entries after one of them, in order, each checked against the one before."""
        before = self.head_at(after)
        if before is None:
            return []
        with self._reported():
            query = "SELECT * FROM entries WHERE number > ? ORDER BY number"
            rows = self._database.execute(query, (after,))
            return list(chained((Entry(*row) for row in rows), before))

    def head_at(self, entries: int) -> Head | None:
        """The head after so many entries; None if there are fewer."""
        query = "SELECT number, hash FROM entries WHERE number = ?"
        with self._reported():
            found = self._database.execute(query, (entries,)).fetchone()
        return None if found is None else Head(*found)

    def copy_to(self, target: sqlite3.Connection) -> None:
        """Copy all of it through SQLite."""
        with self._reported():
            copied(self._database, target)

    def _check(self, anchored: Head | None) -> None:
        """Refuse another form, a changed beginning, and fewer entries than were appended."""
        if not has_tables(self._database, [SCHEMA]):
            raise self._broken("its tables are not those of a registry")
        begun = self._database.execute("SELECT * FROM entries WHERE number = 0").fetchone()
        if begun is None:
            raise self._broken("its beginning is missing")
        first = Entry(*begun)
        if first.name != str(VERSION):
            rule = f"a registry must have version {VERSION}; it has {first.name}"
            raise CorruptData(f"{self.path}: {rule}: use the program that wrote it")
        if first.hash != beginning(first.content):
            raise self._broken("its beginning was changed")
        count, last = self._database.execute("SELECT count(*), max(number) FROM entries").fetchone()
        if count != last + 1:
            raise self._broken(f"it must have {last} entries; it has {count - 1}")
        if anchored is not None and self.head_at(anchored.entries) != anchored:
            raise self._broken(
                f"{anchored.entries} entries were appended (their head was {anchored}), and it has "
                f"{last}, or others: it was rolled back. Bring back the whole registry"
            )

    def _broken(self, what: str) -> CorruptData:
        return CorruptData(f"{self.path}: the registry was tampered with or damaged: {what}")

    @contextlib.contextmanager
    def _reported(self) -> Iterator[None]:
        """One thread at a time; what SQLite cannot do, in the words of a registry."""
        try:
            with self._lock:
                yield
        except CorruptData as problem:
            said = str(problem)
            raise problem if said.startswith(str(self.path)) else self._broken(said) from None
        except (sqlite3.Error, TypeError, OverflowError) as problem:
            raise CorruptData(f"{self.path}: not a usable registry ({problem})") from problem


class SqliteRegistry(DatabaseGuard, RegistryReader):
    """A registry file, held by one process.

    Args:
        path: The file; made where there is none.
        clock: Says when an entry is appended.

    Raises:
        FileInUse: If another process holds it.
        CorruptData: If it is no registry, or entries are missing.

    Examples:
        >>> path = getfixture("tmp_path") / "registry.db"
        >>> with SqliteRegistry(path) as registry:
        ...     registry.append("ann", "greet", "bob", b"good morning").number
        1
        >>> with RegistryReader(path) as registry:
        ...     registry.head.entries
        1
    """

    def __init__(self, path: str | Path, clock: Clock = utc_now) -> None:
        self.path = Path(os.path.realpath(path))
        self._lock = threading.RLock()  # its methods use each other
        self._clock = clock
        with contextlib.ExitStack() as stack, self._reported():
            self._anchor = stack.enter_context(_held(self.path))
            anchored = written_head(self.path)
            if anchored is not None and not self.path.exists():
                raise self._broken(f"it is lost, but its head was {anchored}: bring it back")
            connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            self._database = stack.enter_context(contextlib.closing(connection))
            self.path.chmod(0o600)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=FULL")
            if self._database.execute("SELECT 1 FROM sqlite_master").fetchone() is None:
                self._create()
            self._check(anchored)
            # Readers lock where there is a log: one is begun, whether or not an entry comes.
            self._database.execute(f"PRAGMA user_version = {VERSION}")
            self._anchor.write(self.head)
            self._closing = stack.pop_all()

    def _create(self) -> None:
        id_, begun = new_beginning()
        with self._transaction():
            self._database.execute(SCHEMA)
            row = (0, "", "", "registry", str(VERSION), id_, begun)
            self._database.execute(_INSERT, row)

    @guarded
    def append(
        self, actor: str, action: str, name: str, content: bytes, *, after: int | None = None
    ) -> Entry:
        """Append an entry; on disk when this returns."""
        with self._reported():
            with self._transaction():
                head = Head(*self._database.execute(_LAST).fetchone())
                refuse_moved(after, head)
                entry = next_entry(head, self._clock(), actor, action, name, content)
                self._database.execute(_INSERT, astuple(entry))
            self._anchor.write(Head(entry.number, entry.hash))
        return entry

    def close(self) -> None:
        """Close the file, and let others hold it."""
        with self._lock:
            self._closing.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        with transaction(self._database):
            yield
        # A copy of the file alone should lack nothing; the log stays, or readers would not lock.
        self._database.execute("PRAGMA wal_checkpoint(PASSIVE)")


@contextlib.contextmanager
def _held(path: Path) -> Iterator[Anchor]:
    """The head file, held; refused if another process holds it."""
    if not path.parent.is_dir():
        raise LedgerMismatch(f"{path}: the folder of a registry must exist; it does not")
    try:
        anchor = Anchor(path)
    except LedgerMismatch:
        raise FileInUse(str(path)) from None
    with anchor:
        yield anchor
