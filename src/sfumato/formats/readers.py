"""Reading tables a chunk at a time, by suffix; `-` is standard input, line by line."""

from __future__ import annotations

import csv
import gzip
import io
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import msgspec

from sfumato.formats.problems import BadTable

STANDARD = "-"
CHUNK_ROWS = 4096


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
    """

    path: str
    format: str

    @classmethod
    def at(cls, path: str, format: str | None = None) -> Table:
        """A table whose format follows from its suffix; standard input is CSV unless told."""
        return cls(path, format or _format(path))

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
    ) -> Iterator[Chunk]:
        """Yield the wanted columns of successive rows.

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

    def _csv(self, wanted: Sequence[str], optional: Sequence[str], size: int) -> Iterator[Chunk]:
        with self._text() as file:
            decoded = _Lines(file, self.path)
            lines = csv.reader(decoded, strict=True)
            try:
                header = next(lines, None)
            except csv.Error as problem:
                raise BadTable(self.path, None, f"the header is malformed ({problem})") from None
            if not header:
                raise BadTable(self.path, None, "the file must not be empty")
            self._check_header(header, wanted)
            places = {name: header.index(name) for name in (*wanted, *optional) if name in header}
            yield from self._csv_rows(lines, decoded, len(header), places, size)

    def _csv_rows(
        self, lines: Any, decoded: _Lines, width: int, places: dict[str, int], size: int
    ) -> Iterator[Chunk]:
        columns: dict[str, list[Any]] = {name: [] for name in places}
        first, number = 1, 0
        while True:
            decoded.row = number + 1
            try:
                row = next(lines, None)
            except csv.Error as problem:
                rule = f"the row is malformed ({problem})"
                raise BadTable(self.path, number + 1, rule) from None
            if row is None:
                break
            if not row:
                continue
            number += 1
            if len(row) != width:
                rule = f"a row must have {width} fields, like the header; it has {len(row)}"
                raise BadTable(self.path, number, rule)
            for name, place in places.items():
                columns[name].append(row[place])
            if number - first + 1 == size:
                yield Chunk(first, columns)
                columns, first = {name: [] for name in places}, number + 1
        if number == 0 and not self.is_standard:
            raise BadTable(self.path, None, "the table must not be empty")
        if number >= first:
            yield Chunk(first, columns)

    def _json_lines(
        self, wanted: Sequence[str], optional: Sequence[str], size: int
    ) -> Iterator[Chunk]:
        decoder = msgspec.json.Decoder(dict[str, Any])
        columns: dict[str, list[Any]] = {}
        first, number = 1, 0
        with self._text() as file:
            decoded = _Lines(file, self.path)
            for line in decoded:
                decoded.row = number + 2
                if not line.strip():
                    decoded.row -= 1
                    continue
                number += 1
                try:
                    record = decoder.decode(line)
                except msgspec.MsgspecError:
                    raise BadTable(self.path, number, "a line must hold one JSON object") from None
                if not columns:
                    names = (*wanted, *(name for name in optional if name in record))
                    columns = {name: [] for name in names}
                for name, values in columns.items():
                    if name not in record:
                        raise BadTable(self.path, number, f"the object must have a field {name!r}")
                    values.append(record[name])
                if number - first + 1 == size:
                    yield Chunk(first, columns)
                    columns, first = {name: [] for name in columns}, number + 1
        if number == 0 and not self.is_standard:
            raise BadTable(self.path, None, "the table must not be empty")
        if number >= first:
            yield Chunk(first, columns)

    def _columnar(
        self, wanted: Sequence[str], optional: Sequence[str], size: int
    ) -> Iterator[Chunk]:
        import pyarrow as pa
        import pyarrow.ipc
        import pyarrow.parquet

        first = 1
        try:
            if self.format == "parquet":
                file = pyarrow.parquet.ParquetFile(self.path)
                names = file.schema_arrow.names
                self._check_header(names, wanted)
                chosen = [name for name in (*wanted, *optional) if name in names]
                batches = file.iter_batches(size, columns=chosen)
            else:
                reader = pyarrow.ipc.open_file(pa.memory_map(self.path))
                self._check_header(reader.schema.names, wanted)
                chosen = [name for name in (*wanted, *optional) if name in reader.schema.names]
                batches = (
                    part.select(chosen)
                    for i in range(reader.num_record_batches)
                    for part in _sliced(reader.get_batch(i), size)
                )
            for batch in batches:
                if batch.num_rows:
                    yield Chunk(first, {name: batch[name].to_pylist() for name in chosen})
                    first += batch.num_rows
        except FileNotFoundError:
            raise
        except (pa.ArrowException, OSError):
            rule = "the file must be readable" if Path(self.path).is_dir() else "it is damaged"
            raise BadTable(self.path, None, rule) from None
        if first == 1:
            raise BadTable(self.path, None, "the table must not be empty")

    def _check_header(self, header: Sequence[str], wanted: Sequence[str]) -> None:
        if len(set(header)) != len(header):
            raise BadTable(self.path, None, "column names must be distinct")
        for name in wanted:
            if name not in header:
                # Without a header line the names would be somebody's values: they are not quoted.
                rule = f"none of its {len(header)} columns is named so in the first line"
                raise BadTable(self.path, None, f"the table must have a column {name!r}; {rule}")

    def _text(self) -> IO[bytes]:
        if self.is_standard:
            return io.BufferedReader(io.FileIO(sys.stdin.fileno(), closefd=False))
        if self.path.endswith(".gz"):
            return cast(IO[bytes], gzip.open(self.path, "rb"))
        return Path(self.path).open("rb")


class _Lines:
    """Lines of UTF-8 text; a byte order mark at the start is dropped.

    Attributes:
        row: The data row that the next line belongs to, for messages.
    """

    def __init__(self, file: IO[bytes], path: str) -> None:
        self._file = file
        self._path = path
        self._encoding = "utf-8-sig"
        self.row = 1

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._file.readline()
        if not line:
            raise StopIteration
        try:
            text = line.decode(self._encoding)
        except UnicodeDecodeError:
            raise BadTable(self._path, self.row, "the text must be UTF-8") from None
        self._encoding = "utf-8"
        if "\0" in text:
            raise BadTable(self._path, self.row, "the text must not hold NUL characters")
        return text


def _sliced(batch: Any, size: int) -> Iterator[Any]:
    for start in range(0, batch.num_rows, size):
        yield batch.slice(start, size)


def _format(path: str) -> str:
    if path == STANDARD:
        return "csv"
    name = path.removesuffix(".gz")
    suffix = Path(name).suffix.lower()
    known = {
        ".csv": "csv",
        ".jsonl": "jsonl",
        ".ndjson": "jsonl",
        ".json": "jsonl",
        ".parquet": "parquet",
        ".arrow": "arrow",
        ".feather": "arrow",
    }
    if suffix not in known:
        rule = "the name must end in .csv, .jsonl, .parquet or .arrow (or be - for standard input)"
        raise BadTable(path, None, rule)
    return known[suffix]
