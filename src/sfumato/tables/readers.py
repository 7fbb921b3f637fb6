"""Reading tables a chunk at a time, by suffix; `-` is standard input, line by line."""

from __future__ import annotations

import csv
import gzip
import io
import os
import sys
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import msgspec

from sfumato.core import limits
from sfumato.core.errors import InvalidParameter
from sfumato.tables.columnar import batches
from sfumato.tables.headers import (
    SEPARATORS,
    check_names,
    holds_names,
    listed,
    no_column,
    separator_of,
)
from sfumato.tables.problems import BadTable

STANDARD = "-"
CHUNK_ROWS = 4096
_PEEKED = 100


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some successive rows of a table, column by column.

    Attributes:
        first: Number of the first row, counted from 1.
        columns: The wanted columns; a text or a number each.
    """

    first: int
    columns: dict[str, list[Any]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


@dataclass(frozen=True, slots=True)
class Table:
    """A table on disk or on standard input.

    Attributes:
        path: A file name, or `-`.
        format: `csv`, `jsonl`, `parquet` or `arrow`.
        separator: What stands between the columns of a CSV file; its first line tells if None.
    """

    path: str
    format: str
    separator: str | None = None

    @classmethod
    def at(cls, path: str, format: str | None = None, separator: str | None = None) -> Table:
        """A table whose format follows from its suffix; standard input is CSV unless told.

        Args:
            path: A file name, or `-`.
            format: If the suffix does not tell.
            separator: `comma`, `semicolon` or `tab`, or the character itself; the first line tells
                if not given, and the suffix .tsv.
        """
        mark = separator
        if mark is None and path.removesuffix(".gz").lower().endswith(".tsv"):
            mark = "tab"
        return cls(path, format or _format(path), None if mark is None else _separator(mark))

    @property
    def is_standard(self) -> bool:
        """Whether the rows come from standard input."""
        return self.path == STANDARD

    def count(self) -> int | None:
        """About how many rows there are, for a progress bar; None when only reading would tell."""
        if self.is_standard or self.path.endswith(".gz") or not Path(self.path).is_file():
            return None
        if self.format == "parquet":
            import pyarrow as pa
            import pyarrow.parquet

            try:
                return int(pyarrow.parquet.read_metadata(self.path).num_rows)
            except (pa.ArrowException, OSError):
                return None  # reading it will say what is wrong
        if self.format == "arrow":
            return None
        with Path(self.path).open("rb") as file:
            return sum(part.count(b"\n") for part in iter(lambda: file.read(1 << 20), b""))

    def chunks(
        self, wanted: Sequence[str], optional: Sequence[str] = (), rows: int = CHUNK_ROWS
    ) -> Generator[Chunk, None, None]:
        """Yield the wanted columns of successive rows; close it to let go of the file early.

        Args:
            wanted: Columns that must exist.
            optional: Columns that are read if they exist.
            rows: Rows per chunk; standard input always comes one row at a time.

        Raises:
            BadTable: If the file cannot be read, a column is missing or a row is malformed.
        """
        size = 1 if self.is_standard else rows
        try:
            match self.format:
                case "csv":
                    yield from self._csv(wanted, optional, size)
                case "jsonl":
                    yield from self._json_lines(wanted, optional, size)
                case _:
                    yield from self._columnar(wanted, optional, size)
        except FileNotFoundError:
            raise BadTable(self.path, None, "the file must exist; it does not") from None
        except (IsADirectoryError, PermissionError) as problem:
            raise BadTable(
                self.path, None, f"the file must be readable ({problem.strerror})"
            ) from None
        except (EOFError, gzip.BadGzipFile, zlib.error):
            raise BadTable(self.path, None, "the compressed file is damaged") from None
        except OSError as problem:
            if not self.is_standard:
                raise
            rule = f"standard input must be readable ({problem.strerror})"
            raise BadTable(self.path, None, rule) from None

    def _csv(self, wanted: Sequence[str], optional: Sequence[str], size: int) -> Iterator[Chunk]:
        with opened(self.path) as file:
            decoded = _Lines(file, self.path)
            first = next(decoded, "")
            decoded.hold(first)
            mark = self.separator or separator_of(first, wanted, self.path)
            lines = csv.reader(decoded, delimiter=mark, strict=True)
            try:
                header = next(lines, None)
            except csv.Error as problem:
                raise BadTable(self.path, None, f"the header is malformed ({problem})") from None
            if not header:
                raise BadTable(self.path, None, "the file must not be empty")
            check_names(header, self.path)
            for name in wanted:
                if name not in header:
                    raise self._missing(name, header, lines, decoded)
            places = {name: header.index(name) for name in (*wanted, *optional) if name in header}
            yield from self._csv_rows(lines, decoded, len(header), places, size)

    def _missing(self, name: str, header: list[str], lines: Any, decoded: _Lines) -> BadTable:
        """Without a header line the names would be somebody's values: those are not repeated."""
        following: list[list[str]] = []
        with suppress(csv.Error, BadTable):
            for row in islice(() if self.is_standard else lines, _PEEKED):
                decoded.begin_row(1)
                if len(row) == len(header):
                    following.append(row)
        if holds_names(header, following):
            return no_column(self.path, name, header)
        rule = f"none of its {len(header)} columns is named so in the first line"
        if len(header) == 1:
            rule += "; it has no comma, semicolon or tab in it"
        return BadTable(self.path, None, f"the table must have a column {name!r}; {rule}")

    def _csv_rows(
        self, lines: Any, decoded: _Lines, width: int, places: dict[str, int], size: int
    ) -> Iterator[Chunk]:
        columns: dict[str, list[Any]] = {name: [] for name in places}
        first, number = 1, 0
        for row in self._filled(lines, decoded, width):
            number += 1
            if len(row) != width:
                rule = f"a row must have {width} fields, like the header; it has {len(row)}"
                raise BadTable(self.path, number, rule)
            for name, place in places.items():
                columns[name].append(row[place])
            if number - first + 1 == size:
                yield Chunk(first, columns)
                columns, first = {name: [] for name in places}, number + 1
        yield from self._rest(first, number, columns)

    def _rest(self, first: int, number: int, columns: dict[str, list[Any]]) -> Iterator[Chunk]:
        """The last chunk, which may be smaller; a file without any row is refused."""
        if number == 0 and not self.is_standard:
            raise BadTable(self.path, None, "the table must not be empty")
        if number >= first:
            yield Chunk(first, columns)

    def _filled(self, lines: Any, decoded: _Lines, width: int) -> Iterator[list[str]]:
        """The rows; blank lines after the last one are none.

        A blank line between rows is how a table of one column writes a missing value: skipped, it
        would vanish and the rows after it would move up. Where there are more columns it is a row
        without fields.
        """
        number, blank = 1, 0
        while True:
            decoded.begin_row(number + blank)
            try:
                row = next(lines, None)
            except csv.Error as problem:
                rule = f"the row is malformed ({problem})"
                raise BadTable(self.path, number + blank, rule) from None
            if row is None:
                return
            if not row:
                blank += 1
                continue
            for _ in range(blank):
                yield [""] if width == 1 else []
            yield row
            number, blank = number + blank + 1, 0

    def _json_lines(
        self, wanted: Sequence[str], optional: Sequence[str], size: int
    ) -> Iterator[Chunk]:
        decoder = msgspec.json.Decoder(dict[str, Any])
        columns: dict[str, list[Any]] = {}
        first, number = 1, 0
        with opened(self.path) as file:
            decoded = _Lines(file, self.path)
            for line in decoded:
                decoded.begin_row(number + 2)
                if not line.strip():
                    decoded.begin_row(number + 1)
                    continue
                number += 1
                try:
                    record = decoder.decode(line)
                except RecursionError:
                    rule = "a line must hold one JSON object that is not nested so deeply"
                    raise BadTable(self.path, number, rule) from None
                except msgspec.MsgspecError:
                    raise BadTable(self.path, number, "a line must hold one JSON object") from None
                if not columns:
                    names = (*wanted, *(name for name in optional if name in record))
                    columns = {name: [] for name in names}
                for name, values in columns.items():
                    if name not in record:
                        rule = f"the object must have a field {name!r}; it has {listed([*record])}"
                        raise BadTable(self.path, number, rule)
                    values.append(record[name])
                if number - first + 1 == size:
                    yield Chunk(first, columns)
                    columns, first = {name: [] for name in columns}, number + 1
        yield from self._rest(first, number, columns)

    def _columnar(
        self, wanted: Sequence[str], optional: Sequence[str], size: int
    ) -> Iterator[Chunk]:
        import pyarrow as pa

        first = 1
        try:
            for columns in batches(self.path, self.format, wanted, optional, size):
                chunk = Chunk(first, columns)
                yield chunk
                first += len(chunk)
        except FileNotFoundError:
            raise
        except (pa.ArrowException, OSError):
            rule = "the file must be readable" if Path(self.path).is_dir() else "it is damaged"
            raise BadTable(self.path, None, rule) from None
        if first == 1:
            raise BadTable(self.path, None, "the table must not be empty")


def _format(path: str) -> str:
    if path == STANDARD:
        return "csv"
    name = path.removesuffix(".gz")
    suffix = Path(name).suffix.lower()
    known = {
        ".csv": "csv",
        ".tsv": "csv",
        ".jsonl": "jsonl",
        ".ndjson": "jsonl",
        ".json": "jsonl",
        ".parquet": "parquet",
        ".arrow": "arrow",
        ".feather": "arrow",
    }
    if suffix not in known:
        rule = "the name must end in .csv, .tsv, .jsonl, .parquet or .arrow (or be -, for a pipe)"
        raise BadTable(path, None, rule)
    return known[suffix]


def _separator(given: str) -> str:
    by_name = {name: mark for mark, name in SEPARATORS.items()} | {"\\t": "\t"}
    mark = by_name.get(given, given)
    if mark not in SEPARATORS:
        rule = f"be {', '.join(SEPARATORS.values())}, or the character itself"
        raise InvalidParameter("--separator", given, rule)
    return mark


def same_file(left: str, right: str) -> bool:
    """Whether two names mean one file, however they are written."""
    return left != STANDARD and os.path.realpath(left) == os.path.realpath(right)


def opened(path: str) -> IO[bytes]:
    """A file, a compressed one, or standard input."""
    if path == STANDARD:
        if sys.stdin is None:
            raise BadTable(STANDARD, None, "standard input must be readable; it is closed")
        return io.BufferedReader(io.FileIO(sys.stdin.fileno(), closefd=False))
    if path.endswith(".gz"):
        return cast(IO[bytes], gzip.open(path, "rb"))
    return Path(path).open("rb")


class _Lines:
    """Lines of UTF-8 text, with limits: no NUL, no line and no row without an end.

    Attributes:
        row: The data row that the next line belongs to, for messages.
    """

    def __init__(self, file: IO[bytes], path: str) -> None:
        self._file = file
        self._path = path
        self._encoding = "utf-8-sig"
        self._held: list[str] = []
        self.row = 1
        self._length = 0

    def begin_row(self, row: int) -> None:
        """The next line is the first of a row; a quoted field may take more than one."""
        self.row, self._length = row, 0

    def hold(self, line: str) -> None:
        """Give a line back: it comes again next."""
        self._held.append(line)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self._held:
            return self._held.pop()
        line = self._file.readline(limits.LINE + 1)
        if not line:
            raise StopIteration
        self._length += len(line)
        if self._length > limits.LINE:
            rule = f"a row must have at most {limits.LINE:,} bytes, or a quote is never closed"
            raise BadTable(self._path, self.row, rule)
        try:
            text = line.decode(self._encoding)
        except UnicodeDecodeError:
            raise BadTable(self._path, self.row, "the text must be UTF-8") from None
        self._encoding = "utf-8"
        if "\0" in text:
            raise BadTable(self._path, self.row, "the text must not hold NUL characters")
        return text
