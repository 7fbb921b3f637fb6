"""Answers and positions appended to a ledger in PostgreSQL, in three statements for any number.

Measured for groups of 1,000 rows of as many streams: COPY takes half the time of arrays, and an
array of bytes four times that of one piece that is cut into them by the server.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from psycopg import errors

from sfumato.store.chain import ANSWER_FIELDS, Commit, Row, first_hash
from sfumato.store.ledger_rows import COLUMNS
from sfumato.store.postgres_schema import Connection
from sfumato.store.protocol import Front, Head, LedgerMismatch

_COPY = f"COPY sfumato.events (ledger, {COLUMNS}) FROM STDIN (FORMAT binary)"
_TYPES = {
    "ledger": "int4",
    **dict.fromkeys(("entry", "place", "sequence", "batch", "signal"), "int8"),
    **dict.fromkeys(("id", "source", "stream", "outcome", "time"), "text"),
    **dict.fromkeys(("leakage", "model_free"), "float8"),
    **dict.fromkeys(("tag", "digest", "hash", "head"), "bytea"),
    "released": "json",
}
_COPIED = [_TYPES[name] for name in f"ledger, {COLUMNS}".split(", ")]
# Hashes and states come in one piece, of which each stream has its part.
_ADVANCE = """WITH moved AS (
    INSERT INTO sfumato.streams AS there
        (ledger, stream, sequence, leakage, model_free, hash, state)
    SELECT %(ledger)s, stream, sequence, leakage, model_free,
        substring(%(bytes)s FROM start FOR 32), substring(%(bytes)s FROM start + 32 FOR length)
    FROM unnest(%(streams)s::text[], %(sequences)s::bigint[], %(leakage)s::float8[],
        %(model_free)s::float8[], %(starts)s::integer[], %(lengths)s::integer[])
        AS given(stream, sequence, leakage, model_free, start, length)
    ON CONFLICT (ledger, stream) DO UPDATE
    SET sequence = excluded.sequence, leakage = excluded.leakage, model_free = excluded.model_free,
        state = excluded.state, hash = excluded.hash
    WHERE excluded.sequence > there.sequence AND excluded.leakage >= there.leakage
        AND excluded.model_free >= there.model_free
    RETURNING 1
), counted AS (
    UPDATE sfumato.inputs SET answered = answered + count
    FROM unnest(%(labels)s::text[], %(counts)s::bigint[]) AS given(own, count)
    WHERE ledger = %(ledger)s AND label = own
), headed AS (
    UPDATE sfumato.ledgers SET entries = %(entries)s, head = %(head)s WHERE number = %(ledger)s
) SELECT count(*) FROM moved"""
_ENDS = """SELECT found.* FROM unnest(%s::text[]) AS asked(name) CROSS JOIN LATERAL
    (SELECT stream, sequence, hash FROM sfumato.streams
        WHERE ledger = %s AND stream = name OFFSET 0) AS found"""


def append(connection: Connection, ledger: int, front: Front, commit: Commit) -> Head:
    """Store answers after the last rows of their streams, and the positions after them.

    Args:
        connection: In a transaction that holds the ledger.
        ledger: Its number.
        front: What its row says now.
        commit: What is stored.

    Returns:
        The new head.

    Raises:
        LedgerMismatch: If a moment or an id was answered before, a moment is left out, or a
            position would go back; the transaction is of no use then.
    """
    streams = [stream for stream, *_ in commit.after]
    rows = connection.execute(_ENDS, (streams, ledger), binary=True)
    found = {stream: (moments, own) for stream, moments, own in rows}
    there = [found.get(one) or (0, first_hash(front.id, front.plan, one)) for one in streams]
    commit.check_moments([moments for moments, _ in there])
    chained, hashes, head = commit.chained([own for _, own in there], front.head)
    _copy(connection, ledger, chained)
    given = {"ledger": ledger, "entries": head.entries, "head": head.hash}
    if connection.execute(_ADVANCE, {**given, **_moved(commit, hashes)}).fetchone() != (
        len(streams),
    ):
        raise LedgerMismatch("a state may only move forward and never lower its spend")
    return head


def _moved(commit: Commit, hashes: Sequence[bytes]) -> dict[str, Any]:
    """Where streams stand after a commit, and how many answers inputs have got, by columns."""
    streams, sequences, leakage, model_free, states = map(list, zip(*commit.after, strict=True))
    pieces = [own + state for own, state in zip(hashes, states, strict=True)]
    sources = Counter(commit.columns[ANSWER_FIELDS.index("source")])
    return {
        "streams": streams,
        "sequences": sequences,
        "leakage": leakage,
        "model_free": model_free,
        "bytes": b"".join(pieces),
        "starts": [1, *(1 + end for end in accumulate(map(len, pieces[:-1])))],
        "lengths": [len(state) for state in states],
        "labels": [*sources],
        "counts": [*sources.values()],
    }


def _copy(connection: Connection, ledger: int, rows: Iterator[Row]) -> None:
    try:
        with connection.cursor() as cursor, cursor.copy(_COPY.encode()) as copy:
            copy.set_types(_COPIED)
            for row in rows:
                copy.write_row((ledger, *row))
    except errors.UniqueViolation as problem:
        rule = problem.diag.constraint_name  # what else it says quotes an id
        raise LedgerMismatch(f"an event was answered before: {rule}") from None
