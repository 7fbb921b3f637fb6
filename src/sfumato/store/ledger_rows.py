"""Rows of a ledger, read from any database: each is checked against the chain when it is used.

Whoever inherits says how a statement is run (`_fetched`, `_any_of`) and what one look is
(`_reported`); what must hold of the rows is the same wherever they lie. Statements are those that
SQLite knows; `postgres_rows` says them in the words of PostgreSQL.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from sfumato.core.arrays import Bools
from sfumato.core.errors import CorruptData
from sfumato.store.chain import (
    ANSWER_FIELDS,
    DIGEST,
    HASH,
    SEQUENCE,
    STREAM,
    Row,
    answer_of,
    first_hash,
    first_head,
    intact,
    links,
    next_head,
    state_digest,
)
from sfumato.store.ledger_search import Entry, LedgerQuery, Page
from sfumato.store.protocol import Answer, Front, Head, Position

AT_ONCE = 500
"""Streams that are read at once; SQLite allows 999 names in a statement, in its oldest builds."""
_PAGE = 4096

COLUMNS = ", ".join(("entry", *ANSWER_FIELDS, "digest", "hash", "head"))
_STREAM_COLUMNS = "stream, sequence, leakage, model_free, state, hash"
_ID = 1 + ANSWER_FIELDS.index("id")
ROWS = f"SELECT {COLUMNS} FROM events"
SPAN = """SELECT
    coalesce((SELECT entry FROM events WHERE entry < ? AND hash <> x'' ORDER BY entry DESC LIMIT 1),
        0) + 1,
    (SELECT entry FROM events WHERE entry >= ? AND hash <> x'' ORDER BY entry LIMIT 1)"""
"""First and last row of the link that a row stands in."""
_LAST_ROWS = f"""SELECT {", ".join(f"events.{name.strip()}" for name in COLUMNS.split(","))}
    FROM streams JOIN events ON events.stream = streams.stream AND events.sequence =
        (SELECT max(sequence) FROM events WHERE events.stream = streams.stream)
    WHERE streams.stream IN"""


class LedgerRows(ABC):
    """A ledger that can be read.

    Attributes:
        front: What its first page says.
        anchored: The head that was written down outside of it, when it was opened.
        log_there: Whether rows may lie in a log beside it.
        rollback: What may have happened to one that lacks rows.
        walked: How many moments each stream has, if every row was checked and none can change: they
            are not checked again, and nothing else is read. None before.
    """

    front: Front
    anchored: Head | None
    log_there: bool
    walked: Mapping[str, int] | None
    rollback = "rolled back, or lost its -wal file"
    _intact_streams: set[str]  # streams of which every row was checked

    @abstractmethod
    def broken(self, what: str) -> CorruptData:
        """The refusal of a ledger in which something does not fit."""

    @abstractmethod
    def _reported(self) -> AbstractContextManager[None]:
        """One look, in which nothing changes; what goes wrong, in the words of a ledger."""

    @abstractmethod
    def _fetched(self, query: str, *given: object) -> list[Row]:
        """All rows of a statement."""

    @abstractmethod
    def _any_of(self, query: str, names: Sequence[str], order: str = "") -> Iterator[Row]:
        """Rows that have any of some names; the query ends where the list of them begins."""

    @abstractmethod
    def _damage(self) -> str | None:
        """What the database itself finds wrong with its rows; None if there is nothing."""

    def answers(self, ids: Sequence[str]) -> dict[str, Answer]:
        """The answers already given, by event id."""
        wanted = set(ids)
        query = "SELECT entry FROM events WHERE id IN"
        with self._reported():
            entries = [entry for (entry,) in self._any_of(query, ids)]
            found = [answer_of(row) for row in self._intact_rows(entries) if row[_ID] in wanted]
        return {answer.id: answer for answer in found}

    def known(self, ids: Sequence[str]) -> Bools:
        """Which of these events were answered before."""
        found = {id_ for (id_,) in self._any_of("SELECT id FROM events WHERE id IN", ids)}
        return np.array([id_ in found for id_ in ids], dtype=bool)

    def moment(self, stream: str, sequence: int) -> Answer | None:
        """The answer given at one moment of a stream."""
        if sequence < 0 or (self.walked is not None and sequence >= self.walked.get(stream, 0)):
            return None
        with self._reported():
            row = self._one(f"{ROWS} WHERE stream = ? AND sequence = ?", stream, sequence)
            if row is None:
                return None
            if not (self.walked is not None or stream in self._intact_streams):
                self._intact_rows(row[:1])
            return answer_of(row)

    def between(self, stream: str, first: int, until: int) -> list[Answer]:
        """The answers of a stream from one moment until another, of a ledger that is intact."""
        where = "WHERE stream = ? AND sequence >= ? AND sequence < ? ORDER BY sequence"
        with self._reported():
            if self.walked is None:
                raise self.broken("what was not checked is read moment by moment")
            seen = max(first, 0), min(until, self.walked.get(stream, 0))
            return [answer_of(row) for row in self._fetched(f"{ROWS} {where}", stream, *seen)]

    def rest(self, stream: str, sequence: int) -> Iterator[Answer]:
        """The answers of a stream from one moment on, in order."""
        where = "WHERE stream = ? AND sequence < ? AND hash <> x'' ORDER BY sequence DESC LIMIT 1"
        above = self._one(f"SELECT sequence, hash FROM events {where}", stream, sequence)
        begun = (-1, first_hash(self.front.id, self.front.plan, stream))
        last, before = above or begun
        for link in self._linked(self._stream_pages(stream, last), last, before):
            with self._reported():
                found = [answer_of(row) for row in link if row[SEQUENCE] >= sequence]
            yield from found

    def links(self) -> Iterator[Sequence[Row]]:
        """Every row in the order in which they were committed, link by link, unchecked."""
        query = f"{ROWS} WHERE entry > ? ORDER BY entry"
        return links(self._pages(query, (0,), lambda row: (row[0],)))

    def rows(self) -> Iterator[Row]:
        """Every row in the order in which they were committed, checked."""
        last: dict[str, bytes] = {}
        for link in self.links():
            stream = link[0][STREAM]
            before = last.get(stream) or first_hash(self.front.id, self.front.plan, stream)
            if not intact(link, before):
                raise self._changed(link)
            last[stream] = link[-1][HASH]
            yield from link

    def history(self) -> Iterator[Answer]:
        """Every answer in the order in which they were committed, unchecked."""
        return (answer_of(row) for link in self.links() for row in link)

    def streams(self) -> Iterator[tuple[str, int]]:
        """The streams, and how many answers each has."""
        return (row[:2] for row in self.stream_rows())

    def stream_rows(self) -> Iterator[tuple[str, int, float, float, bytes, bytes]]:
        """The streams as they are stored, unchecked."""
        query = f"SELECT {_STREAM_COLUMNS} FROM streams WHERE stream > ? ORDER BY stream"
        for page in self._pages(query, ("",), lambda row: row[:1]):
            yield from page

    def standing(self, after: str, limit: int) -> list[Position]:
        """Streams by name, those after one, and where each stands; as stored, unchecked."""
        query = f"SELECT {_STREAM_COLUMNS} FROM streams WHERE stream > ? ORDER BY stream LIMIT ?"
        return [Position(*row[:-1]) for row in self._fetched(query, after, limit)]

    def standing_of(self, streams: Sequence[str]) -> list[Position]:
        """The same of some streams, in any order; those without answers are left out."""
        query = f"SELECT {_STREAM_COLUMNS} FROM streams WHERE stream IN"
        return [Position(*row[:-1]) for row in self._any_of(query, streams)]

    def search(self, query: LedgerQuery) -> Page:
        """A page of the rows that are asked for, each checked against the chain."""
        with self._reported():
            entries = self.front.head.entries
            statement, values = query.statement("entry", entries)
            found = [entry for (entry,) in self._fetched(statement, *values)]
            rows = {row[0]: row for row in self._intact_rows(found)}
            return query.page([Entry(one, answer_of(rows[one])) for one in found], entries)

    def stray(self) -> Iterator[str]:
        """What lies there beside the rows and states that are read in their order."""
        if (rows := self.count()) != self.front.head.entries:
            yield f"it must have {self.front.head.entries} rows; it has {rows}"
        (states,) = self._one("SELECT count(*) FROM streams")
        (streams,) = self._one("SELECT count(*) FROM streams WHERE stream > ''")
        if states != streams:
            yield "it has the state of a stream without a name"
        if (damage := self._damage()) is not None:
            yield damage

    def count(self) -> int:
        """How many answers there are."""
        return int(self._one("SELECT count(*) FROM events")[0])

    def signalled(self) -> bool:
        """Whether any answer names the output of its channel."""
        return self._one("SELECT 1 FROM events WHERE signal IS NOT NULL LIMIT 1") is not None

    def inputs(self) -> dict[str, int]:
        """The inputs of which rows were answered, and how many of each."""
        return {label: rows for label, rows in self.input_rows().items() if rows}

    def input_rows(self) -> dict[str, int]:
        """All inputs, and how many of its rows each is said to have answers for, unchecked."""
        query = "SELECT label, answered FROM inputs ORDER BY number"
        return {label: rows for label, rows in self._fetched(query)}

    def position(self, stream: str) -> Position | None:
        """Where a stream stands; None if it never released anything."""
        (end,) = self.ends([stream])
        return None if end is None else end[0]

    def begun(self, streams: Sequence[str]) -> set[str]:
        """Which of some streams have answers, unchecked."""
        query = "SELECT stream FROM streams WHERE stream IN"
        return {stream for (stream,) in self._any_of(query, streams)}

    def ends(self, streams: Sequence[str]) -> list[tuple[Position, Answer] | None]:
        """Where streams stand, and their last answers; None for those that never released anything.

        Whoever goes on from a state relies on all that came before it: the first time, every row of
        the stream is checked.

        Raises:
            CorruptData: If a state is not the one of the last row, or a row was changed.
        """
        query = f"SELECT {_STREAM_COLUMNS} FROM streams WHERE stream IN"
        begun = "SELECT stream FROM events WHERE sequence = 0 AND stream IN"
        with self._reported():  # one look: others may commit between two
            found = {row[0]: row for row in self._any_of(query, streams)}
            for (stream,) in self._any_of(begun, [one for one in streams if one not in found]):
                raise self.broken(f"the state of stream {stream!r} is missing")
            last = self._last_rows({stream: row[1] for stream, row in found.items()})
            for stream, sequence, *spent, own in found.values():
                row = last.get(stream)
                told = None if row is None else (row[SEQUENCE] + 1, row[HASH], row[DIGEST])
                if told != (sequence, own, state_digest(*spent)):
                    rule = "is not the one of its last row"
                    raise self.broken(f"the state of stream {stream!r} {rule}")
            self._intact_streams.update(found)
            ends = {one: (Position(*found[one][:-1]), answer_of(last[one])) for one in found}
        return [ends.get(one) for one in streams]

    def _last_rows(self, moments: Mapping[str, int]) -> dict[str, Row]:
        """The last rows of streams of so many moments; what was not checked before is."""
        checked = {one for one in moments if self.walked is not None or one in self._intact_streams}
        last = {row[STREAM]: row for row in self._any_of(_LAST_ROWS, [*checked])}
        for share in _shares({one: moments[one] for one in moments if one not in checked}):
            for stream, pages in self._histories(share).items():
                begun = first_hash(self.front.id, self.front.plan, stream)
                for link in self._linked(pages, -1, begun):
                    last[stream] = link[-1]
        return last

    def _histories(self, streams: Sequence[str]) -> dict[str, Iterable[Sequence[Row]]]:
        """All rows of some streams, in pages."""
        if len(streams) == 1:
            return {streams[0]: self._stream_pages(streams[0], -1)}
        found: dict[str, list[Row]] = {}
        for row in self._any_of(f"{ROWS} WHERE stream IN", streams, "ORDER BY stream, sequence"):
            found.setdefault(row[STREAM], []).append(row)
        return {stream: [own] for stream, own in found.items()}

    def _stream_pages(self, stream: str, last: int) -> Iterator[Sequence[Row]]:
        """The rows of a stream after a moment."""
        query = f"{ROWS} WHERE stream = ? AND sequence > ? ORDER BY sequence"
        return self._pages(query, (stream, last), lambda row: (stream, row[SEQUENCE]))

    def _linked(
        self, pages: Iterable[Sequence[Row]], last: int, before: bytes
    ) -> Iterator[Sequence[Row]]:
        """The links of a stream after one that ends at a moment, checked."""
        for link in links(pages):
            if [row[SEQUENCE] for row in link] != list(range(last + 1, last + 1 + len(link))):
                raise self._changed(link, last + 1)
            if not intact(link, before):
                raise self._changed(link)
            last, before = link[-1][SEQUENCE], link[-1][HASH]
            yield link

    def _intact_rows(self, entries: Iterable[int]) -> list[Row]:
        """The rows of some entries, and those of their links, checked."""
        rows: list[Row] = []
        with self._reported():
            for entry in sorted(entries):
                if not rows or rows[-1][0] < entry:
                    rows += self._intact_link(entry)
        return rows

    def _intact_link(self, entry: int) -> list[Row]:
        """The rows of the link that an entry stands in, checked."""
        first, last = self._one(SPAN, entry, entry)
        query = f"{ROWS} WHERE entry BETWEEN ? AND ? ORDER BY entry"
        link = self._fetched(query, first, last or entry)
        before = None
        if link:
            query = "SELECT hash FROM events WHERE stream = ? AND sequence = ?"
            before = self._one(query, link[0][STREAM], link[0][SEQUENCE] - 1)
        return self._joined(entry, link, None if before is None else before[0])

    def _joined(self, entry: int, link: list[Row], before: bytes | None) -> list[Row]:
        """The link of an entry, if its rows are those that were committed after another."""
        if entry not in {row[0] for row in link}:  # no row has a number below 1
            raise self.broken(f"row {entry} stands outside of all that was committed")
        stream, moment = link[0][STREAM], link[0][SEQUENCE]
        if before is None and moment == 0:
            before = first_hash(self.front.id, self.front.plan, stream)
        if before is None or not intact(link, before):
            raise self._changed(link)
        return link

    def head_at(self, entries: int) -> Head | None:
        """The head after so many rows, recomputed from their last commit; None if it has none."""
        begun = first_head(self.front.id, self.front.plan)
        if entries == 0:
            return Head(0, begun)
        there = self._one("SELECT head FROM events WHERE entry = ?", entries)
        if there in (None, (b"",)):
            return None
        self._intact_rows([entries])
        before = "WHERE entry < ? AND head <> x'' ORDER BY entry DESC LIMIT 1"
        above = self._one(f"SELECT entry, head FROM events {before}", entries) or (0, begun)
        with self._reported():
            query = "SELECT hash FROM events WHERE entry > ? AND entry <= ? ORDER BY entry"
            hashes = self._fetched(query, above[0], entries)
            return Head(entries, next_head(above[1], (own for (own,) in hashes)))

    def _changed(self, link: Sequence[Row], moment: int | None = None) -> CorruptData:
        """What is wrong with a link whose hash is not that of its rows."""
        first = link[0][SEQUENCE] if moment is None else moment
        which = f"moment {first}"
        if len(link) > 1:
            which = f"one of the moments {first} to {link[-1][SEQUENCE]}"
        return self.broken(f"{which} of stream {link[0][STREAM]!r} was changed, moved or lost")

    def _one(self, query: str, *given: object) -> Any:
        """The only row of a statement; None if it has none."""
        return next(iter(self._fetched(query, *given)), None)

    def _pages(
        self, query: str, after: tuple[Any, ...], key: Callable[[Row], tuple[Any, ...]]
    ) -> Iterator[list[Row]]:
        """Many rows, page by page: between two pages others may use the ledger."""
        page: list[Row] = []
        while not page or len(page) == _PAGE:
            page = self._fetched(f"{query} LIMIT {_PAGE}", *after)
            if not page:
                return
            yield page
            after = key(page[-1])


def _shares(moments: Mapping[str, int]) -> Iterator[list[str]]:
    """Streams in shares that are read at once: some hundreds of short ones, or one of any length.

    Examples:
        >>> list(_shares({"a": 4000, "b": 90, "c": 9_000, "d": 1, "e": 2}))
        [['a', 'b'], ['c'], ['d', 'e']]
    """
    share: list[str] = []
    rows = 0
    for stream, own in moments.items():
        if share and (rows + own > _PAGE or len(share) == AT_ONCE):
            yield share
            share, rows = [], 0
        share.append(stream)
        rows += own
    if share:
        yield share
