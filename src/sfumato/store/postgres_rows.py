"""A ledger in PostgreSQL, read: statements of `ledger_rows` in the words of PostgreSQL."""

from __future__ import annotations

import contextlib
import re
import threading
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Self

from psycopg import IsolationLevel

from sfumato.core.errors import CorruptData, SfumatoError
from sfumato.store.chain import SEQUENCE, STREAM, Row, keeps_rules, written_head
from sfumato.store.ledger_form import VERSION
from sfumato.store.ledger_rows import ROWS, SPAN, LedgerRows
from sfumato.store.plan_rules import other_plan
from sfumato.store.postgres_connection import Database, Patience
from sfumato.store.postgres_schema import STEPS, Connection, check_form, refuse_newer, version_of
from sfumato.store.protocol import Front, Head, Identity, Job, LedgerMismatch

_TABLE = re.compile(r"\b(FROM|JOIN) (events|streams|inputs)\b")
FRONT = """SELECT number, version, secret, id, job, plan, identity, rules, entries, head
    FROM sfumato.ledgers WHERE name = %s"""
_EVERY = "SELECT name, job, plan, entries, head FROM sfumato.ledgers ORDER BY name"

# Each name is looked up by itself, which finds the index also where a server knows nothing yet of
# how its rows are spread: `= ANY` read all rows of a new ledger. OFFSET keeps it from being undone.
_EACH = """SELECT found.* FROM unnest(?::text[]) AS asked(name)
    CROSS JOIN LATERAL ({each} OFFSET 0) AS found {order}"""
_SPANS = f"""SELECT first, coalesce(last, asked.entry)
    FROM unnest(?::bigint[]) WITH ORDINALITY AS asked(entry, place)
    CROSS JOIN LATERAL ({SPAN.replace("?", "asked.entry")} OFFSET 0) AS span(first, last)
    ORDER BY place"""
_WITHIN = f"""SELECT asked.last, found.* FROM unnest(?::bigint[], ?::bigint[]) AS asked(first, last)
    CROSS JOIN LATERAL ({ROWS} WHERE entry BETWEEN asked.first AND asked.last OFFSET 0) AS found
    ORDER BY entry"""
_AT = """SELECT asked.stream, asked.moment, found.hash
    FROM unnest(?::text[], ?::bigint[]) AS asked(stream, moment) CROSS JOIN LATERAL
    (SELECT hash FROM events WHERE stream = asked.stream AND sequence = asked.moment OFFSET 0)
        AS found"""


class StoredLedger(NamedTuple):
    """One of the ledgers of a database.

    Attributes:
        name: Tells it from the others there.
        job: The job that writes it.
        plan: Fingerprint of its plan.
        head: How many rows it has, and the hash of all of them.
    """

    name: str
    job: str
    plan: str
    head: Head


@lru_cache(maxsize=256)
def said(query: str, ledger: int) -> bytes:
    """A statement about one ledger file, as one about one ledger of a database.

    Examples:
        >>> said("SELECT id FROM events WHERE hash <> x'' AND entry = ?", 7).decode()
        "SELECT id FROM (SELECT * FROM sfumato.events WHERE ledger = 7) AS events WHERE
        hash <> ''::bytea AND entry = %s"
    """
    tables = _TABLE.sub(rf"\1 (SELECT * FROM sfumato.\2 WHERE ledger = {ledger}) AS \2", query)
    return tables.replace("x''", "''::bytea").replace("?", "%s").encode()


class PostgresRows(LedgerRows):
    """A ledger of a database that can be read.

    Attributes:
        place: What it is called in messages.
    """

    place: str
    log_there = False
    rollback = "rolled back, or restored from an older copy"
    _number: int

    @abstractmethod
    def _using(self) -> AbstractContextManager[Connection]:
        """A connection, for one look: within it nothing changes but by whoever looks."""

    def broken(self, what: str) -> CorruptData:
        """The refusal of a ledger in which something does not fit."""
        return CorruptData(f"{self.place}: the ledger was tampered with or damaged: {what}")

    @contextlib.contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            with self._using():
                yield
        except (OverflowError, ValueError, TypeError) as problem:
            if isinstance(problem, SfumatoError):
                raise
            raise CorruptData(f"{self.place}: not a readable ledger ({problem})") from problem

    def _fetched(self, query: str, *given: object) -> list[Row]:
        with self._using() as connection:
            return connection.execute(said(query, self._number), given, binary=True).fetchall()

    def _any_of(self, query: str, names: Sequence[str], order: str = "") -> Iterator[Row]:
        if names:
            each = f"{query.removesuffix('IN')}= asked.name"
            yield from self._fetched(_EACH.format(each=each, order=order), list(names))

    def _intact_rows(self, entries: Iterable[int]) -> list[Row]:
        # Three statements for all of them: those who ask again after a failure are many.
        asked = sorted(entries)
        if not asked:
            return []
        with self._reported():
            spans = self._fetched(_SPANS, asked)
            links: dict[int, list[Row]] = {last: [] for _, last in spans}
            for last, *row in self._fetched(_WITHIN, *map(list, zip(*set(spans), strict=True))):
                links[last].append(tuple(row))
            begun = {(link[0][STREAM], link[0][SEQUENCE] - 1) for link in links.values() if link}
            found = self._fetched(_AT, *map(list, zip(*begun, strict=True))) if begun else []
            above = {(stream, moment + 1): own for stream, moment, own in found}
            for entry, (_, last) in zip(asked, spans, strict=True):
                link = links[last]
                before = above.get((link[0][STREAM], link[0][SEQUENCE])) if link else None
                self._joined(entry, link, before)
        return [row for last in sorted(links) for row in links[last]]

    def _damage(self) -> str | None:
        """A server looks after its indexes itself."""
        return None

    def _end(self) -> None:
        """Refuse a ledger whose end is not what it says, or that lost rows; a quick look.

        Raises:
            CorruptData: If rows are missing, or the last one was changed.
        """
        head = self.front.head
        # To count all rows takes seconds per million: that is for a check of all of them.
        (last,) = self._one("SELECT coalesce(max(entry), 0) FROM events")
        if last != head.entries or self.head_at(head.entries) != head:
            raise self.broken("its last row is not the one it ended with")
        if self.anchored is not None:
            self.compare(self.anchored)

    def compare(self, anchored: Head) -> None:
        """Refuse a ledger that did not grow from a head that was written down elsewhere.

        Args:
            anchored: A head that this ledger had once: `front.head` of then.

        Raises:
            CorruptData: If it has fewer rows, or others.
        """
        if self.head_at(anchored.entries) != anchored:
            raise CorruptData(
                f"{self.place}: it has {self.front.head.entries} rows that did not grow from its "
                f"head {anchored}: it was {self.rollback}. What was released stays spent: bring "
                "back the whole ledger"
            )

    def _take_front(self, row: Row, plan: str | None, job: Job | None) -> bytes:
        """Set what the row of a ledger says, checked; return the name of its secret."""
        self._number, version, secret, id_, job_, own, identity, rules, *head = row
        if version != VERSION:
            raise CorruptData(f"{self.place}: a ledger must have version {VERSION}; not {version}")
        if identity is not None and identity not in tuple(Identity):
            raise self.broken("what its events are known by is nothing that a ledger knows")
        if not keeps_rules(id_, job_, rules):
            raise self.broken("its rules are not those that it was begun with")
        self.front = Front(id_, job_, own, identity, rules, Head(*head), closed=True)
        if problem := other_plan(self.front, plan, job):
            raise LedgerMismatch(f"{self.place}: {problem}")
        name: bytes = secret
        return name


class PostgresReader(PostgresRows):
    """A ledger of a database as it was at one moment; it is only read.

    Args:
        database: Where it lies.
        name: Its name there.
        anchor: Where a node wrote down its head (see `PostgresStore`), to compare with.

    Raises:
        LedgerMismatch: If there is no such ledger.
        StoreUnavailable: If the database cannot be reached.
    """

    def __init__(self, database: Database, name: str, anchor: Path | None = None) -> None:
        self.place = f"{database.place} {name!r}"
        self._database, self._lock = database, threading.RLock()
        self._intact_streams, self.walked = set(), None
        # The head first: rows that are committed while this reads come on top.
        self.anchored = None if anchor is None else written_head(anchor)
        with contextlib.ExitStack() as stack:
            self._connection = stack.enter_context(database.alone())
            check_version(self._connection, database.place)
            self._connection.isolation_level = IsolationLevel.REPEATABLE_READ
            self._connection.read_only = True
            stack.enter_context(self._connection.transaction())
            # Whoever reads may take his time; he holds no lock that a release waits for.
            for limit in ("idle_in_transaction_session_timeout", "statement_timeout"):
                self._connection.execute(f"SET LOCAL {limit} = 0".encode())
            row = self._connection.execute(FRONT, (name,)).fetchone()
            if row is None:
                raise LedgerMismatch(f"{self.place}: the ledger must exist; it does not")
            self._take_front(row, None, None)
            self._closing = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._closing.close()

    @contextlib.contextmanager
    def _using(self) -> Iterator[Connection]:
        with self._lock, self._database.reported():
            yield self._connection


def check_version(connection: Connection, place: str) -> None:
    """Refuse a database with tables of another version, or others than ledgers have."""
    try:
        done = version_of(connection)
        refuse_newer(done)
        if done < len(STEPS):
            raise LedgerMismatch(
                f"the database must have version {len(STEPS)}; it has {done}: bring it there first "
                "(`sfumato store migrate`)"
            )
        check_form(connection)
    except SfumatoError as problem:
        raise type(problem)(f"{place}: {problem}") from None


def read_postgres(url: str, name: str, anchor: Path | None = None) -> PostgresReader:
    """A ledger of a database, to be read: for a check, or an export."""
    return PostgresReader(Database(url, Patience()), name, anchor)


def postgres_ledgers(url: str) -> list[StoredLedger]:
    """The ledgers of a database, by name.

    Args:
        url: The database.

    Raises:
        StoreUnavailable: If it cannot be reached.
        CorruptData: If a newer release has changed its tables.
    """
    database = Database(url, Patience())
    with database.alone() as connection:
        if version_of(connection) == 0:
            return []
        check_version(connection, database.place)
        rows: list[Any] = connection.execute(_EVERY).fetchall()
    return [StoredLedger(name, job, plan, Head(*head)) for name, job, plan, *head in rows]
