"""A ledger file that is open, and what its front says."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Self

from sfumato.core.errors import CorruptData
from sfumato.store.chain import keeps_rules
from sfumato.store.ledger_form import UNLINKED, UNSIGNALLED, VERSION, form_problem
from sfumato.store.plan_rules import other_plan
from sfumato.store.protocol import Front, Head, Job, LedgerMismatch

_UNSIGNALLED_EVENTS = """CREATE TEMP VIEW IF NOT EXISTS events AS
    SELECT *, NULL AS signal FROM main.events"""
"""A view of this connection alone, which stands before the table of that name."""


class LedgerFile:
    """A ledger file that is open; whoever opens it sets what stands here.

    Attributes:
        path: The file; None for one that has no name.
        front: What its first page says.
        anchored: The head that was written beside it, when it was opened.
        log_there: Whether there was a log beside it, when it was opened.
        walked: How many moments each stream has, if every row was checked and none can change: they
            are not checked again, and nothing else is read. None before.
    """

    path: Path | None
    front: Front
    anchored: Head | None
    log_there: bool
    walked: Mapping[str, int] | None
    _database: sqlite3.Connection
    _lock: AbstractContextManager[Any]
    _closing: contextlib.ExitStack
    _intact_streams: set[str]  # streams of which every row was checked

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._closing.close()

    def _read_front(self, plan: str | None, job: Job | None) -> Front:
        there = "SELECT 1 FROM sqlite_master WHERE name = 'ledger'"
        if self._database.execute(there).fetchone() is None:
            raise CorruptData(f"{self.path}: not a readable ledger (nothing was begun in it)")
        (version,) = self._database.execute("SELECT version FROM ledger").fetchone() or (None,)
        if version == UNSIGNALLED:
            self._database.execute(_UNSIGNALLED_EVENTS)
        elif version not in (VERSION, UNLINKED):
            raise CorruptData(
                f"{self.path}: a ledger must have version {VERSION}; it has {version}. Those of "
                "other versions are not continued: begin a new ledger"
            )
        if strange := form_problem(self._database, version):
            raise self.broken(strange)
        query = "SELECT id, job, plan, identity, rules, entries, head, closed FROM ledger"
        stored = self._database.execute(query).fetchone()
        id_, job_, own, identity, rules, entries, head, closed = stored
        front = Front(id_, job_, own, identity, rules, Head(entries, head), bool(closed))
        if not keeps_rules(id_, job_, rules):
            raise self.broken("its rules are not those that it was begun with")
        if problem := other_plan(front, plan, job):
            raise LedgerMismatch(f"{self.path}: {problem}")
        return front

    def broken(self, what: str) -> CorruptData:
        """The refusal of a ledger in which something does not fit."""
        return CorruptData(f"{self.path}: the ledger was tampered with or damaged: {what}")

    @contextlib.contextmanager
    def _closing_on_failure(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._closing.close()
            raise
