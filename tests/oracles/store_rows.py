"""Every row that a home holds, by plain SQL; no code of the product is used."""

import sqlite3
from pathlib import Path
from typing import Any

Rows = dict[str, list[tuple[Any, ...]]]
"""Rows of tables, `FILE TABLE` or `TABLE`, in an order of their own."""


def folder_rows(home: Path) -> Rows:
    """All rows of all databases in a folder, which others may have open."""
    found: Rows = {}
    for path in sorted(home.rglob("*")):
        if path.suffix in (".db", ".ledger"):
            connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
            try:
                connection.execute("BEGIN")
                tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
                for (table,) in tables.fetchall():
                    rows = connection.execute(f'SELECT * FROM "{table}"').fetchall()
                    found[f"{path.name} {table}"] = sorted(rows, key=repr)
            finally:
                connection.close()
    return found


def postgres_rows(url: str) -> Rows:
    """All rows of the schema of the service, of one moment."""
    import psycopg
    from psycopg import sql

    found: Rows = {}
    with psycopg.connect(url) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        tables = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'sfumato'"
        ).fetchall()
        for (table,) in tables:
            query = sql.SQL("SELECT * FROM sfumato.{}").format(sql.Identifier(table))
            found[table] = sorted(connection.execute(query).fetchall(), key=repr)
    return found


def changed(before: Rows, now: Rows) -> list[str]:
    """The tables that do not hold the same rows."""
    names = sorted({*before, *now})
    return [name for name in names if before.get(name, []) != now.get(name, [])]


def as_bytes(rows: Rows) -> bytes:
    """Everything that stands in them, to be searched."""
    cells = (cell for table in rows.values() for row in table for cell in row)
    return b"\0".join(cell if isinstance(cell, bytes) else str(cell).encode() for cell in cells)
