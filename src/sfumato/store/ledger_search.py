"""What is looked for in a ledger, and the SQL that finds it: the same for every kind of database.

A search never costs more than a page: rows of one stream, or one event, are found by an index, and
whatever else is asked is looked for among a bounded number of rows, after which the search says how
far it came. So nobody who searches can hold up those who are answered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, runtime_checkable

from sfumato.core import checks
from sfumato.core.errors import InvalidParameter
from sfumato.store.protocol import Answer, Front, Position

MOST_FOUND = 1_000
"""Rows of a page at most."""
SCANNED = 50_000
"""Rows that are looked at for one page, where no index helps: some tens of milliseconds."""


class Order(StrEnum):
    """In which order rows are found."""

    NEWEST = "newest"
    OLDEST = "oldest"


class Entry(NamedTuple):
    """A row of a ledger: its number in the order of commits, from 1, and what it says."""

    entry: int
    answer: Answer


class Page(NamedTuple):
    """What was found, and where to go on: the last row looked at, or None at the end."""

    entries: list[Entry]
    next: int | None


@dataclass(frozen=True, slots=True)
class LedgerQuery:
    """What rows must be like; everything that is not given may be anything.

    Attributes:
        stream: Whose they are.
        event: Their event id.
        outcome: What happened.
        since: The earliest time, as the ledger writes times.
        until: The latest time.
        first: The lowest row number.
        last: The highest row number.
        beyond: Go on after this row, in the order asked for; as `Page.next` said.
        order: Newest first, or oldest first.
        limit: Rows of a page.

    Examples:
        >>> LedgerQuery(stream="u4", outcome="released").conditions("?")
        ('stream = ? AND outcome = ?', ['u4', 'released'])
    """

    stream: str | None = None
    event: str | None = None
    outcome: str | None = None
    since: str | None = None
    until: str | None = None
    first: int | None = None
    last: int | None = None
    beyond: int | None = None
    order: Order = Order.NEWEST
    limit: int = 100

    def __post_init__(self) -> None:
        checks.count("limit", self.limit, at_most=MOST_FOUND)
        for name in ("first", "last", "beyond"):
            number = getattr(self, name)
            if number is not None and not 0 <= number < 2**63:
                raise InvalidParameter(name, number, "be the number of a row, from 0")

    @property
    def indexed(self) -> bool:
        """Whether an index finds the rows, so that all of them may be looked at."""
        return self.stream is not None or self.event is not None

    def span(self, entries: int) -> tuple[int, int]:
        """First and last row to look at, of a ledger of so many; empty if the first is higher."""
        low, high = max(self.first or 1, 1), min(entries, self.last or entries)
        if self.order is Order.NEWEST:
            high = high if self.beyond is None else min(high, self.beyond - 1)
            return (low if self.indexed else max(low, high - SCANNED + 1)), high
        low = low if self.beyond is None else max(low, self.beyond + 1)
        return low, (high if self.indexed else min(high, low + SCANNED - 1))

    def conditions(self, mark: str) -> tuple[str, list[Any]]:
        """What rows must be like beside their numbers, as SQL with these marks for its values."""
        asked = {
            "stream = {}": self.stream,
            "id = {}": self.event,
            "outcome = {}": self.outcome,
            "time >= {}": self.since,
            "time <= {}": self.until,
        }
        given = [(part.format(mark), value) for part, value in asked.items() if value is not None]
        return " AND ".join(part for part, _ in given), [value for _, value in given]

    def statement(self, columns: str, entries: int, mark: str = "?") -> tuple[str, list[Any]]:
        """The query for one page, one row more than asked for, of a ledger of so many rows."""
        own, values = self.conditions(mark)
        low, high = self.span(entries)
        where = f"entry >= {mark} AND entry <= {mark}" + (f" AND {own}" if own else "")
        down = " DESC" if self.order is Order.NEWEST else ""
        # Within a stream moments and rows rise together, and moments have an index.
        by = "sequence" if self.stream is not None and self.event is None else "entry"
        query = f"SELECT {columns} FROM events WHERE {where} ORDER BY {by}{down} LIMIT {mark}"
        return query, [low, high, *values, self.limit + 1]

    def matches(self, entry: int, answer: Answer, entries: int) -> bool:
        """Whether a row is like that, for ledgers that are no databases."""
        low, high = self.span(entries)
        time = answer.time
        return (
            low <= entry <= high
            and self.stream in (None, answer.stream)
            and self.event in (None, answer.id)
            and self.outcome in (None, answer.outcome)
            and (self.since is None or (time is not None and time >= self.since))
            and (self.until is None or (time is not None and time <= self.until))
        )

    def page(self, found: Sequence[Entry], entries: int) -> Page:
        """The page, from its rows and perhaps one more."""
        kept = list(found[: self.limit])
        if len(found) > self.limit:
            return Page(kept, kept[-1].entry)
        low, high = self.span(entries)
        newest = self.order is Order.NEWEST
        reached, end = (low, max(self.first or 1, 1)) if newest else (high, self.last or entries)
        over = self.indexed or low > high or (reached <= end if newest else reached >= end)
        return Page(kept, None if over else reached)


class ReadableLedger(Protocol):
    """What a ledger must tell to be shown; it is only read."""

    front: Front

    def search(self, query: LedgerQuery) -> Page:
        """A page of the rows that are asked for."""
        ...

    def standing(self, after: str, limit: int) -> list[Position]:
        """Streams by name, those after one, and where each stands; as stored, unchecked."""
        ...

    def standing_of(self, streams: Sequence[str]) -> list[Position]:
        """The same of some streams, in any order; those without answers are left out."""
        ...

    def position(self, stream: str) -> Position | None:
        """Where a stream stands, checked against its last row."""
        ...

    def rest(self, stream: str, sequence: int) -> Iterator[Answer]:
        """The answers of a stream from one moment on, in order, checked."""
        ...


@runtime_checkable
class Snapshots(Protocol):
    """A store that can be read as it is now beside everything that goes on."""

    def snapshot(self) -> AbstractContextManager[ReadableLedger]:
        """The ledger as it is now; nobody waits for whoever reads it."""
        ...
