"""A ledger file, read: its answers and states, each checked against the chain when it is used.

Reading changes nothing: no table is made, no log is written, and a file that may not be written, or
a copy, is read like any other.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from sfumato.core.errors import CorruptData
from sfumato.store.chain import Row, written_head
from sfumato.store.ledger_connection import log_of, read_only
from sfumato.store.ledger_file import LedgerFile
from sfumato.store.ledger_rows import AT_ONCE, LedgerRows
from sfumato.store.protocol import Job, LedgerMismatch
from sfumato.store.sqlite_transaction import copied

_ROOMS = (1, 8, 32, 64, 128, 256, 384, AT_ONCE)
"""Numbers of names in a statement: few, so that SQLite prepares each of them once."""
_MARKS = {room: ",".join("?" * room) for room in _ROOMS}


class LedgerReader(LedgerFile, LedgerRows):
    """A ledger that is only read.

    Args:
        path: The ledger file.
        plan: Fingerprint of the plan; a ledger of another plan is refused. None for any.
        job: The job that wrote it; a ledger of another job is refused. None for any.

    Raises:
        LedgerMismatch: If there is no such file, or it is the ledger of another plan.
        CorruptData: If it is no ledger, or one of another version.
    """

    def __init__(self, path: str | Path, plan: str | None = None, job: Job | None = None) -> None:
        # A link is followed here, once: the files beside the ledger must not depend on its name.
        self.path = Path(os.path.realpath(path))
        self._lock = threading.RLock()  # its methods use each other
        self._closing = contextlib.ExitStack()
        self._intact_streams, self.walked = set(), None
        if not self.path.is_file():
            raise LedgerMismatch(f"{path}: the ledger must exist; it does not")
        # The head first: rows that are committed while this reads come on top.
        self.anchored = written_head(self.path)
        self.log_there = log_of(self.path).exists()
        with self._closing_on_failure(), self._reported():
            self._database = self._closing.enter_context(read_only(self.path))
            self._database.execute("BEGIN")
            self.front = self._read_front(plan, job)

    def copy_to(self, target: sqlite3.Connection) -> None:
        """Copy all of it, the log included, through SQLite."""
        with self._reported():
            copied(self._database, target)

    def _fetched(self, query: str, *given: object) -> list[Row]:
        with self._reported():
            return self._database.execute(query, given).fetchall()

    def _any_of(self, query: str, names: Sequence[str], order: str = "") -> Iterator[Row]:
        for start in range(0, len(names), AT_ONCE):
            part = names[start : start + AT_ONCE]
            room = min(size for size in _ROOMS if size >= len(part))
            # Names that fill the room up are one of them again: it is found once all the same.
            given = [*part, *[part[0]] * (room - len(part))]
            yield from self._fetched(f"{query} ({_MARKS[room]}) {order}", *given)

    def _damage(self) -> str | None:
        # Rows are found by indexes, which hold a part of them once more.
        if self._one("PRAGMA integrity_check(1)") == ("ok",):
            return None
        return "the file is damaged, or its indexes do not fit its rows"

    @contextlib.contextmanager
    def _reported(self) -> Iterator[None]:
        """One thread at a time; what SQLite cannot do, in the words of a ledger."""
        try:
            with self._lock:
                yield
        except (sqlite3.Error, OverflowError, ValueError, TypeError) as problem:
            if isinstance(problem, CorruptData | LedgerMismatch):
                raise
            if "locked" in str(problem):
                raise LedgerMismatch(
                    f"{self.path}: the ledger is in use by another release"
                ) from problem
            what = "not a readable ledger"
            if isinstance(problem, sqlite3.OperationalError):
                what = "the ledger cannot be written"
            raise CorruptData(f"{self.path}: {what} ({problem})") from problem
