"""The tables of ledgers in PostgreSQL, how they came to be, and what shows that there are others.

A database knows the number of the last step that was taken (`sfumato.versions`). Whoever opens it
takes the steps that it lacks, in one transaction under a lock that all nodes know; a database that
took steps which this release does not know is refused. A step that was released is never changed.

Rows are tied by hashes; nothing ties what stands around them. A trigger, a rule, a table in the
place of another, or one that a crash empties would be run or read unseen, so none may be there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import psycopg

from sfumato.core.errors import CorruptData

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]

STEPS: tuple[str, ...] = (
    """
CREATE TABLE sfumato.ledgers (
    number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    version integer NOT NULL, id bytea NOT NULL, job text NOT NULL, plan text NOT NULL,
    identity text, rules text, secret bytea NOT NULL, entries bigint NOT NULL, head bytea NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE sfumato.inputs (
    ledger integer NOT NULL, number bigint GENERATED ALWAYS AS IDENTITY,
    label text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL, answered bigint NOT NULL,
    PRIMARY KEY (ledger, label)
) WITH (fillfactor = 50);
CREATE TABLE sfumato.streams (
    ledger integer NOT NULL, stream text COLLATE "C" NOT NULL, sequence bigint NOT NULL,
    leakage double precision NOT NULL, model_free double precision NOT NULL,
    state bytea NOT NULL, hash bytea NOT NULL,
    PRIMARY KEY (ledger, stream)
) WITH (fillfactor = 70);
CREATE TABLE sfumato.events (
    ledger integer NOT NULL, entry bigint NOT NULL, id text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL, place bigint NOT NULL, stream text COLLATE "C" NOT NULL,
    sequence bigint NOT NULL, outcome text COLLATE "C" NOT NULL, released json,
    leakage double precision NOT NULL, model_free double precision NOT NULL, batch bigint,
    time text COLLATE "C", tag bytea NOT NULL, signal bigint, digest bytea, hash bytea NOT NULL,
    head bytea NOT NULL,
    PRIMARY KEY (ledger, entry)
);
CREATE UNIQUE INDEX events_id ON sfumato.events (ledger, id);
CREATE UNIQUE INDEX events_moment ON sfumato.events (ledger, stream, sequence);
CREATE INDEX events_head ON sfumato.events (ledger, entry) WHERE head <> '';
""",
    """
CREATE TABLE sfumato.homes (
    stream text COLLATE "C" PRIMARY KEY, release text COLLATE "C" NOT NULL
);
""",
)
"""What was done to a database, in order; new ones are added at the end."""

TABLES = ("events", "homes", "inputs", "ledgers", "streams")
_LOCK = 0x5F_75_6D_61_74_6F
"""Of whoever takes steps; a number that no other program uses by chance."""
_FORM = """
SELECT relname || ' ' || relkind::text || ' ' || relpersistence::text
        || CASE WHEN relrowsecurity OR relhasrules OR relhassubclass THEN ' more' ELSE '' END
    FROM pg_class WHERE relnamespace = 'sfumato'::regnamespace AND relname = ANY(%(tables)s)
UNION ALL SELECT relname || ' ' || attname || ' ' || format_type(atttypid, atttypmod)
        || CASE WHEN attnotnull THEN ' NOT NULL' ELSE '' END
    FROM pg_attribute JOIN pg_class ON attrelid = pg_class.oid
    WHERE relnamespace = 'sfumato'::regnamespace AND relname = ANY(%(tables)s)
        AND attnum > 0 AND NOT attisdropped
UNION ALL SELECT replace(pg_get_indexdef(indexrelid), 'sfumato.', '')
        || CASE WHEN indisvalid THEN '' ELSE ' invalid' END
    FROM pg_index JOIN pg_class ON indrelid = pg_class.oid
    WHERE relnamespace = 'sfumato'::regnamespace AND relname = ANY(%(tables)s)
UNION ALL SELECT 'trigger ' || tgname FROM pg_trigger JOIN pg_class ON tgrelid = pg_class.oid
    WHERE relnamespace = 'sfumato'::regnamespace AND relname = ANY(%(tables)s)
"""
_DUE = frozenset(
    f"{table} {line.strip()}"
    for table, lines in {
        "ledgers": """r p
            number integer NOT NULL\nname text NOT NULL\nversion integer NOT NULL
            id bytea NOT NULL\njob text NOT NULL\nplan text NOT NULL\nidentity text\nrules text
            secret bytea NOT NULL\nentries bigint NOT NULL\nhead bytea NOT NULL""",
        "inputs": """r p
            ledger integer NOT NULL\nnumber bigint NOT NULL\nlabel text NOT NULL
            name text NOT NULL\nanswered bigint NOT NULL""",
        "streams": """r p
            ledger integer NOT NULL\nstream text NOT NULL\nsequence bigint NOT NULL
            leakage double precision NOT NULL\nmodel_free double precision NOT NULL
            state bytea NOT NULL\nhash bytea NOT NULL""",
        "events": """r p
            ledger integer NOT NULL\nentry bigint NOT NULL\nid text NOT NULL\nsource text NOT NULL
            place bigint NOT NULL\nstream text NOT NULL\nsequence bigint NOT NULL
            outcome text NOT NULL\nreleased json\nleakage double precision NOT NULL
            model_free double precision NOT NULL\nbatch bigint\ntime text\ntag bytea NOT NULL
            signal bigint\ndigest bytea\nhash bytea NOT NULL\nhead bytea NOT NULL""",
        "homes": "r p\nstream text NOT NULL\nrelease text NOT NULL",
        "CREATE": r"""UNIQUE INDEX homes_pkey ON homes USING btree (stream)
            UNIQUE INDEX ledgers_pkey ON ledgers USING btree (number)
            UNIQUE INDEX ledgers_name_key ON ledgers USING btree (name)
            UNIQUE INDEX inputs_pkey ON inputs USING btree (ledger, label)
            UNIQUE INDEX streams_pkey ON streams USING btree (ledger, stream)
            UNIQUE INDEX events_pkey ON events USING btree (ledger, entry)
            UNIQUE INDEX events_id ON events USING btree (ledger, id)
            UNIQUE INDEX events_moment ON events USING btree (ledger, stream, sequence)
            INDEX events_head ON events USING btree (ledger, entry) WHERE (head <> '\x'::bytea)""",
    }.items()
    for line in lines.split("\n")
)


def migrate(connection: Connection, steps: Sequence[str] = STEPS) -> None:
    """Take the steps that a database lacks, all or none; two nodes at once take them once.

    Args:
        connection: Outside of a transaction.
        steps: All steps there are.

    Raises:
        CorruptData: If the database is newer than these steps.
    """
    if version_of(connection) == len(steps) > 0:
        return  # whoever only writes rows needs no right to make tables
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        connection.execute("CREATE SCHEMA IF NOT EXISTS sfumato")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS sfumato.versions (number integer PRIMARY KEY)"
        )
        done = version_of(connection)
        refuse_newer(done, len(steps))
        for number, step in enumerate(steps[done:], start=done + 1):
            connection.execute(step.encode())
            connection.execute("INSERT INTO sfumato.versions VALUES (%s)", (number,))


def version_of(connection: Connection) -> int:
    """How many steps a database has taken; 0 if none."""
    there = connection.execute("SELECT to_regclass('sfumato.versions')").fetchone()
    if there in (None, (None,)):
        return 0
    found = connection.execute("SELECT coalesce(max(number), 0) FROM sfumato.versions").fetchone()
    return 0 if found is None else int(found[0])


def refuse_newer(version: int, known: int = len(STEPS)) -> None:
    """Refuse a database that took steps which are not known here."""
    if version > known:
        raise CorruptData(
            f"the database must have version {known} or an earlier one; it has {version}: it was "
            "opened by a newer Sfumato, and is read by that one alone"
        )


def check_form(connection: Connection) -> None:
    """Refuse tables that are not those of ledgers, or have something beside.

    Raises:
        CorruptData: If something was added, changed or lost.
    """
    found = {line for (line,) in connection.execute(_FORM, {"tables": list(TABLES)})}
    if found != _DUE:
        raise CorruptData(
            "the tables in the database are not those of a ledger, or something was added to them"
        )
