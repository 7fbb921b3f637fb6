"""A ledger file opened so that reading it changes nothing, whatever state its log is in."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote


@contextlib.contextmanager
def read_only(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that writes nothing, not even a file beside the ledger."""
    log = log_of(path)
    with contextlib.ExitStack() as stack:
        if not log.exists() or log.stat().st_size == 0:
            yield stack.enter_context(_connected(path, "immutable=1"))
            return
        database = stack.enter_context(_connected(path, "mode=ro"))
        try:
            database.execute("SELECT 1 FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as problem:
            if "locked" in str(problem):
                raise
            # A log needs a file beside it to be read; where none may be made, a copy is.
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            for part in (path, log):
                shutil.copyfile(part, folder / part.name)
            database = stack.enter_context(_connected(folder / path.name, "mode=rw"))
        yield database


@contextlib.contextmanager
def _connected(path: Path, how: str) -> Iterator[sqlite3.Connection]:
    name = f"file:{quote(str(path.resolve()))}?{how}"
    # Whoever uses it holds the lock of the reader.
    connection = sqlite3.connect(name, uri=True, isolation_level=None, check_same_thread=False)
    with contextlib.closing(connection) as database:
        yield database


def log_of(path: Path) -> Path:
    """The write-ahead log of a ledger."""
    return path.with_name(f"{path.name}-wal")
