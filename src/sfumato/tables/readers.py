"""Reading tables a chunk at a time, by suffix; `-` is standard input, as it comes."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from sfumato.core.errors import InvalidParameter
from sfumato.tables.batches import BATCH_ROWS, Batch, as_batch, columnar_batches
from sfumato.tables.chunks import CHUNK_ROWS as CHUNK_ROWS
from sfumato.tables.chunks import Chunk as Chunk
from sfumato.tables.columnar import checked_cells, column_arrays
from sfumato.tables.csv_rows import CsvRows
from sfumato.tables.headers import SEPARATORS
from sfumato.tables.json_rows import JsonRows
from sfumato.tables.lines import STANDARD as STANDARD
from sfumato.tables.lines import Lines, lines_of
from sfumato.tables.problems import BadTable, EmptyTable

Part = TypeVar("Part")
_FOLDER = "it must be one file; folders of parts are for the commands of `sfumato spark`"


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
            rows: Rows per chunk; of standard input come those that are there, at most so many.

        Raises:
            BadTable: If the file cannot be read, a column is missing or a row is malformed.
        """
        with self._problems():
            if self.format not in ("csv", "jsonl"):
                yield from self._sound(self._columnar(wanted, optional, rows))
                return
            with lines_of(self.path) as lines:
                yield from self._filled(self._rows(lines, wanted, optional).chunks(rows))

    def batches(
        self, wanted: Sequence[str], optional: Sequence[str] = (), rows: int = BATCH_ROWS
    ) -> Generator[Batch | Chunk, None, None]:
        """Yield the same rows as arrays; as a `Chunk` where only the strict reader may read them.

        Args:
            wanted: Columns that must exist.
            optional: Columns that are read if they exist.
            rows: About how many rows a batch has.

        Raises:
            BadTable: As `chunks` does, with the same rows and rules.
        """
        if self.is_standard:
            yield from map(as_batch, self.chunks(wanted, optional))
            return
        with self._problems():
            if self.format not in ("csv", "jsonl"):
                arrays = columnar_batches(self.path, self.format, wanted, optional, rows)
                yield from self._sound(arrays)
                return
            with lines_of(self.path) as lines:
                yield from self._filled(self._rows(lines, wanted, optional).batches(rows))

    def _rows(
        self, lines: Lines, wanted: Sequence[str], optional: Sequence[str]
    ) -> CsvRows | JsonRows:
        if self.format == "jsonl":
            return JsonRows(lines, self.path, wanted, optional)
        return CsvRows(lines, self.path, self.separator, wanted, optional)

    @contextmanager
    def _problems(self) -> Iterator[None]:
        """What is wrong with a file, in words."""
        try:
            yield
        except FileNotFoundError:
            raise BadTable(self.path, None, "the file must exist; it does not") from None
        except IsADirectoryError:
            raise BadTable(self.path, None, _FOLDER) from None
        except PermissionError as problem:
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

    def _filled(self, parts: Iterator[Part]) -> Iterator[Part]:
        """The parts of a table; a file without any row is refused."""
        first = next(parts, None)
        if first is not None:
            yield first
            yield from parts
        elif not self.is_standard:
            raise EmptyTable(self.path, None, "the table must not be empty")

    def _columnar(
        self, wanted: Sequence[str], optional: Sequence[str], size: int
    ) -> Iterator[Chunk]:
        first = 1
        for arrays in column_arrays(self.path, self.format, wanted, optional, size):
            cells = {name: checked_cells(array, name, self.path) for name, array in arrays.items()}
            yield Chunk(first, cells)
            first += len(next(iter(cells.values())))

    def _sound(self, parts: Iterator[Part]) -> Iterator[Part]:
        """The parts of a Parquet or an Arrow file, which may be damaged anywhere."""
        import pyarrow as pa

        try:
            yield from self._filled(parts)
        except FileNotFoundError:
            raise
        except (pa.ArrowException, OSError):
            rule = _FOLDER if Path(self.path).is_dir() else "it is damaged"
            raise BadTable(self.path, None, rule) from None


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
