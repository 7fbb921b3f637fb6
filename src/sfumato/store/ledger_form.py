"""The tables of a ledger file, and what shows that a file has others.

Rows are tied by hashes; nothing ties what stands around them. A trigger, a view in the place of a
table, one more table or one more front would be read or run unseen, so none may be there.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from sfumato.store.protocol import Identity

VERSION = 6
UNLINKED, UNSIGNALLED = 5, 4
"""Versions before: every row was a link with a head; its events had no signals. They are read."""

SCHEMA = """
CREATE TABLE ledger (
    version INTEGER NOT NULL, id BLOB NOT NULL, job TEXT NOT NULL, plan TEXT NOT NULL,
    identity TEXT, rules TEXT, entries INTEGER NOT NULL, head BLOB NOT NULL, closed INTEGER NOT NULL
) STRICT;
CREATE TABLE inputs (
    number INTEGER PRIMARY KEY, label TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
    secret BLOB NOT NULL, answered INTEGER NOT NULL
) STRICT;
CREATE TABLE streams (
    stream TEXT PRIMARY KEY, sequence INTEGER NOT NULL, leakage REAL NOT NULL,
    model_free REAL NOT NULL, state BLOB NOT NULL, hash BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE events (
    entry INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, source TEXT NOT NULL,
    place INTEGER NOT NULL, stream TEXT NOT NULL, sequence INTEGER NOT NULL, outcome TEXT NOT NULL,
    released ANY, leakage REAL NOT NULL, model_free REAL NOT NULL, batch INTEGER, time TEXT,
    tag BLOB NOT NULL, digest BLOB, hash BLOB NOT NULL, head BLOB NOT NULL, signal INTEGER
) STRICT;
CREATE UNIQUE INDEX moments ON events (stream, sequence);
"""


def form_problem(database: sqlite3.Connection, version: int) -> str | None:
    """What a file holds that no ledger of its version does; None if there is nothing."""
    due = [statement for statement in SCHEMA.split(";") if statement.strip()]
    if version == UNSIGNALLED:
        due = [_bare(statement).replace(",signalINTEGER", "") for statement in due]
    if not has_tables(database, due):
        return "its tables are not those of a ledger, or something was added to them"
    (fronts,) = database.execute("SELECT count(*) FROM ledger").fetchone()
    if fronts != 1:
        return f"it must have one front; it has {fronts}"
    (identity,) = database.execute("SELECT identity FROM ledger").fetchone()
    if identity is not None and identity not in tuple(Identity):
        return "what its events are known by is nothing that a ledger knows"
    return None


def has_tables(database: sqlite3.Connection, statements: Iterable[str]) -> bool:
    """Whether a file was made by these statements, and has nothing beside."""
    # Indexes that tables bring along have no statement of their own.
    query = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"
    stored = [_bare(statement) for (statement,) in database.execute(query)]
    return sorted(stored) == sorted(map(_bare, statements))


def _bare(statement: str) -> str:
    """A statement without blanks: SQLite keeps them as they came, also when it adds a column."""
    return "".join(statement.split())
