"""Stores for the laws of live runs: places that can be opened again, and stores that fail."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sfumato.store.memory import MemoryLedger, MemoryStore
from sfumato.store.protocol import Job, Store
from sfumato.store.sqlite import SqliteStore


class SharedStore(MemoryStore):
    """One of several stores over one ledger, as nodes of a service have them."""

    shared = True

    def __init__(self, ledger: MemoryLedger, lock: Any, **given: Any) -> None:
        ledger.held = False  # by none alone
        super().__init__(ledger, **given)
        self._turns = lock

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Other nodes wait until it is over."""
        with self._turns, super().turn():
            assert self._ledger.front is not None
            self.front = self._ledger.front
            yield


class Place:
    """Where a ledger lies; opened again, it is the same one."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.path = kind, folder / "live.ledger"
        self._ledger, self._lock = MemoryLedger(), threading.RLock()

    def open(self, plan: str, job: Job, rules: str) -> Store:
        """A store at this place."""
        match self.kind:
            case "sqlite":
                return SqliteStore(self.path, plan, job=job, rules=rules)
            case "shared":
                return SharedStore(self._ledger, self._lock, plan=plan, job=job, rules=rules)
            case _:
                return MemoryStore(self._ledger, plan=plan, job=job, rules=rules)


class FailingStore:
    """A store whose commits fail in one way while `failing` is set; all else is the inner one's."""

    def __init__(self, inner: Store) -> None:
        self.inner, self.failing = inner, ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Fails at its end, perhaps."""
        with self.inner.turn():
            if self.failing == "lookup":
                raise ConnectionError("the connection was lost")
            yield
        if self.failing == "turn":
            raise ConnectionError("the connection was lost")

    def commit(self, *given: Any) -> None:
        """Fails, perhaps."""
        self._try(self.inner.commit, *given)

    def commit_columns(self, *given: Any) -> None:
        """Fails, perhaps."""
        self._try(self.inner.commit_columns, *given)

    def _try(self, commit: Any, *given: Any) -> None:
        if self.failing == "before":
            raise OSError("no space left on the device")
        if self.failing == "during" and isinstance(self.inner, SqliteStore):
            append = self.inner._append

            def torn(commit: Any) -> Any:
                append(commit)
                raise sqlite3.OperationalError("disk I/O error")

            self.inner._append = torn  # type: ignore[method-assign]
            try:
                commit(*given)
            finally:
                del self.inner._append
        elif self.failing == "during":
            raise OSError("no space left on the device")
        else:
            commit(*given)
        if self.failing == "after":
            raise TimeoutError("nobody said whether it is stored")


FAILURES = ("lookup", "before", "during", "after", "turn")
