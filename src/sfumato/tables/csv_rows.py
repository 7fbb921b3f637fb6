"""CSV, strictly: what a file means is what is read here, row by row."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice, repeat
from typing import Any

from sfumato.core import limits
from sfumato.tables.batches import Batch, Column, as_batch
from sfumato.tables.chunks import Chunk
from sfumato.tables.headers import check_names, holds_names, no_column, separator_of
from sfumato.tables.lines import STANDARD, Lines
from sfumato.tables.plain_blocks import plain_columns
from sfumato.tables.problems import BadTable

_PEEKED = 100


class CsvRows:
    """The rows of a CSV file that follow its header.

    Args:
        lines: The file, at its beginning.
        path: Its name, for messages.
        separator: What stands between columns; the first line tells if None.
        wanted: Columns that must exist.
        optional: Columns that are read if they exist.

    Raises:
        BadTable: If a column is missing or the header is malformed.
    """

    def __init__(
        self,
        lines: Lines,
        path: str,
        separator: str | None,
        wanted: Sequence[str],
        optional: Sequence[str],
    ) -> None:
        self._lines, self._path = lines, path
        first = next(lines, "")
        lines.hold(first)
        self._mark = separator or separator_of(first, wanted, path)
        self._reader = csv.reader(lines, delimiter=self._mark, strict=True)
        try:
            header = next(self._reader, None)
        except csv.Error as problem:
            raise BadTable(path, None, f"the header is malformed ({problem})") from None
        if not header:
            raise BadTable(path, None, "the file must not be empty")
        check_names(header, path)
        for name in wanted:
            if name not in header:
                raise self._missing(name, header)
        self._width = len(header)
        self._places = {n: header.index(n) for n in (*wanted, *optional) if n in header}
        self._number = self._blank = 0

    def _missing(self, name: str, header: list[str]) -> BadTable:
        """Without a header line the names would be somebody's values: those are not repeated."""
        following: list[list[str]] = []
        with suppress(csv.Error, BadTable):
            for row in islice(() if self._path == STANDARD else self._reader, _PEEKED):
                self._lines.begin_row(1)
                if len(row) == len(header):
                    following.append(row)
        if holds_names(header, following):
            return no_column(self._path, name, header)
        rule = f"none of its {len(header)} columns is named so in the first line"
        if len(header) == 1:
            rule += "; it has no comma, semicolon or tab in it"
        return BadTable(self._path, None, f"the table must have a column {name!r}; {rule}")

    def chunks(self, size: int) -> Iterator[Chunk]:
        """All rows, so many at a time; of a pipe those that are there, at most so many."""
        if not self._lines.live:
            yield from self._strict(size)
            return
        for block in self._lines.blocks(size):
            rows = self._closed(block) if size > 1 else None
            if rows is None:
                self._lines.give_back(block)
                yield from self._strict(1, block=True)
                continue
            for start in range(0, len(rows), size):
                part, first = rows[start : start + size], self._number + 1
                self._number += len(part)
                cells = {n: [row[place] for row in part] for n, place in self._places.items()}
                yield Chunk(first, cells)

    def batches(self, rows: int) -> Iterator[Batch | Chunk]:
        """All rows of a file, about so many at a time, by array where nothing is in the way."""
        for block in self._lines.blocks(rows):
            arrays = plain_columns(block, self._mark, self._width, self._places)
            if arrays is None:
                self._lines.give_back(block)
                # Twice as many: a few rows more than were guessed are no batch of their own.
                yield from map(as_batch, self._strict(2 * rows, block=True))
                continue
            batch = Batch(self._number + 1, {n: Column(array) for n, array in arrays.items()})
            self._number += len(batch)
            yield batch

    def _strict(self, size: int, *, block: bool = False) -> Iterator[Chunk]:
        """All rows, so many at a time; or those of the block that was given back last."""
        columns: dict[str, list[Any]] = {name: [] for name in self._places}
        first = self._number + 1
        for row in self._rows(block):
            for name, place in self._places.items():
                columns[name].append(row[place])
            if self._number - first + 1 == size:
                yield Chunk(first, columns)
                columns, first = {name: [] for name in self._places}, self._number + 1
        if self._number >= first:
            yield Chunk(first, columns)

    def _closed(self, block: bytes) -> list[list[str]] | None:
        """The rows of some lines, if those are whole rows and nothing is wrong with any of them.

        Otherwise they are read one by one: none must wait for what comes after it.
        """
        if len(block) > limits.LINE or b"\0" in block:
            return None
        try:
            lines = map(bytes.decode, io.BytesIO(block))
            rows = list(csv.reader(lines, delimiter=self._mark, strict=True))
        except (csv.Error, UnicodeDecodeError):
            return None
        return rows if all(len(row) == self._width for row in rows) else None

    def _rows(self, block: bool) -> Iterator[list[str]]:
        """The rows; blank lines after the last one are none.

        A blank line between rows is how a table of one column writes a missing value: skipped, it
        would vanish and the rows after it would move up. Where there are more columns it is a row
        without fields.
        """
        while not block or self._lines.in_block or self._blank:
            due = self._number + self._blank + 1
            self._lines.begin_row(due)
            try:
                row = next(self._reader, None)
            except csv.Error as problem:
                raise BadTable(self._path, due, f"the row is malformed ({problem})") from None
            if row is None:
                return
            if not row:
                self._blank += 1
                continue
            blank, self._blank = self._blank, 0
            for one in (*repeat([""] if self._width == 1 else [], blank), row):
                self._number += 1
                if len(one) != self._width:
                    fields = f"{self._width} fields, like the header; it has {len(one)}"
                    raise BadTable(self._path, self._number, f"a row must have {fields}")
                yield one
