"""One transaction of a SQLite file, stored whole or not at all; and a copy of all of it."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator


@contextlib.contextmanager
def transaction(database: sqlite3.Connection) -> Iterator[None]:
    """What is written in the block is committed at its end; after an error nothing of it is there.

    Examples:
        >>> database = sqlite3.connect(":memory:", isolation_level=None)
        >>> with transaction(database):
        ...     _ = database.execute("CREATE TABLE heads (entries INTEGER)")
        >>> database.execute("SELECT count(*) FROM heads").fetchone()
        (0,)
        >>> database.close()
    """
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        # Also a commit may fail, and leave open what must never be read as if it were stored.
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


def copied(database: sqlite3.Connection, target: sqlite3.Connection) -> None:
    """Copy all of a file that is being read, the log included; the reading begins anew."""
    database.execute("ROLLBACK")
    database.backup(target)
    database.execute("BEGIN")
