"""Writing tables: a file appears under its name only when complete, a pipe gets whole lines."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol, Self, TypeAlias

import msgspec

from sfumato.core import limits
from sfumato.store.outputs import together
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Table
from sfumato.tables.spelling import (
    Cells,
    Spelling,
    arrow_type,
    column_array,
    column_cells,
    column_length,
)

Record = Sequence[str | int | float | None]
Document: TypeAlias = bytes | Callable[[str], bytes]
Columns = Mapping[str, type]
"""Names of the columns, in order, and what they hold: `str`, `int`, `float` or `bool`."""
_FEW_ROWS = 200
"""Fewer rows than this are written one by one: arrays cost more to set up than they do."""
_GROUP_ROWS = 1 << 17
"""Rows of a group in a Parquet or an Arrow file: some 10 MB while it is gathered."""


_PACKED = (b"PAR1", b"ARRO", b"\x1f\x8b")
"""How files of Parquet, of Arrow and of gzip begin."""


class Output:
    r"""A table being written, as a context: complete on success, gone on failure.

    While it is written, nobody else can write it.

    Args:
        table: Where to; `-` is standard output.
        columns: What it holds.
        beside: Documents that appear together with a file, by their paths: if there is a table,
            there are they. One that tells of the table is made when that is complete, from its
            SHA-256.

    Raises:
        FileInUse: If somebody else is writing one of the files.

    Examples:
        >>> target = getfixture("tmp_path") / "private.csv"
        >>> with Output(Table.at(str(target)), {"stream": str, "sip": float}) as output:
        ...     output.write([("u1", 0.5)])
        >>> target.read_text()
        'stream,sip\nu1,0.5\n'
    """

    def __init__(
        self, table: Table, columns: Columns, beside: Mapping[str, Document] | None = None
    ) -> None:
        self._table = table
        self._columns = columns
        self._beside = dict(beside or {})
        self._under: IO[bytes] | None = None
        self._part: str | None = None
        target = Path(table.path)
        if not table.is_standard and not target.parent.is_dir():
            raise BadTable(table.path, None, "the folder of the output must exist; it does not")
        if not table.is_standard and target.is_dir():
            raise BadTable(table.path, None, "the output must be a file; this is a folder")

    def __enter__(self) -> Self:
        if self._table.is_standard:
            if isinstance(sys.stdout, io.TextIOWrapper):
                # A table is UTF-8, like every table that is read, whatever a terminal can show.
                sys.stdout.reconfigure(encoding="utf-8", errors="strict")
            self._writer: _Writer = _Lines(self._table, self._columns, sys.stdout)
            return self
        with ExitStack() as files:
            *others, aside = files.enter_context(together([*self._beside, self._table.path]))
            self._asides = list(zip(others, self._beside.values(), strict=True))
            self._aside = aside
            self._writer = self._open(aside, files)
            self._files = files.pop_all()
        return self

    def _open(self, aside: Path, files: ExitStack) -> _Writer:
        if self._table.format not in ("csv", "jsonl"):
            return _Columnar(self._table.format, self._columns, aside)
        sink: Any = files.enter_context(aside.open("wb"))
        if self._table.path.endswith(".gz"):
            # Neither a name nor a time inside: equal tables are equal files.
            self._under = sink
            sink = gzip.GzipFile(filename="", mode="wb", fileobj=sink, mtime=0)
        text = io.TextIOWrapper(sink, encoding="utf-8", newline="")
        return _Lines(self._table, self._columns, text)

    def write(self, records: Iterable[Record]) -> None:
        """Append records; a pipe is flushed, so that the receiver has them now."""
        self._writer.write(records)
        if self._table.is_standard:
            sys.stdout.flush()

    def write_columns(self, columns: Mapping[str, Cells]) -> None:
        r"""Append rows that come as columns: the same file as by `write`, faster.

        Args:
            columns: The cells of every column, by its name.

        Examples:
            >>> target = getfixture("tmp_path") / "private.csv"
            >>> with Output(Table.at(str(target)), {"stream": str, "sip": float}) as output:
            ...     output.write_columns({"stream": ["u1", "u2"], "sip": [0.5, None]})
            >>> target.read_text()
            'stream,sip\nu1,0.5\nu2,\n'
        """
        self._writer.write_columns(columns)
        if self._table.is_standard:
            sys.stdout.flush()

    def keep_as_part(self, path: str) -> None:
        """What was written is not all: it goes to another name, and the documents are left out.

        Args:
            path: Where to; a file there that begins with what was written stays.
        """
        self._part = path

    def _put_aside(self, path: str) -> None:
        """Give the part its name, unless what is there already is a longer one."""
        if not _begins_with(Path(path), self._aside):
            self._aside.replace(path)
        incomplete = InterruptedError("the table is not complete")
        self._files.__exit__(InterruptedError, incomplete, None)  # nothing takes its final name

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._table.is_standard:
            return
        try:
            self._writer.close()
            if self._under is not None:
                self._under.flush()  # gzip leaves the file under it open, with bytes held back
            if kind is None and self._part is not None:
                self._put_aside(self._part)
                return
            if kind is None:
                self._write_documents()
        except BaseException as problem:
            self._files.__exit__(type(problem), problem, problem.__traceback__)
            raise
        self._files.__exit__(kind, failure, traceback)

    def _write_documents(self) -> None:
        for path, content in self._asides:
            made = content if isinstance(content, bytes) else content(file_digest(self._aside))
            path.write_bytes(made)


def _begins_with(longer: Path, shorter: Path) -> bool:
    """Whether a file holds all of another, and more; of a packed one its length alone tells."""
    if not longer.is_file() or longer.stat().st_size <= shorter.stat().st_size:
        return False
    with longer.open("rb") as one, shorter.open("rb") as other:
        head = other.read(len(_PACKED[0]))
        if one.read(len(head)) != head or head.startswith(_PACKED):
            return head.startswith(_PACKED)
        while block := other.read(1 << 20):
            if one.read(len(block)) != block:
                return False
    return True


def file_digest(path: str | Path) -> str:
    """The SHA-256 of a file's bytes."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class _Writer(Protocol):
    def write(self, records: Iterable[Record]) -> None: ...

    def write_columns(self, columns: Mapping[str, Cells]) -> None: ...

    def close(self) -> None: ...


class ShortEnds:
    """Ends the rows of a csv writer with a line feed alone.

    The writer quotes the characters of its own line end only, so it must believe in both, or a
    carriage return inside a name would tear the row apart.
    """

    def __init__(self, sink: IO[str]) -> None:
        self._sink = sink

    def write(self, row: str) -> None:
        """One row, as the csv writer ends it."""
        self._sink.write(row.removesuffix("\r\n") + "\n")


class _Lines:
    """Records as lines of text, CSV or JSON."""

    def __init__(self, table: Table, columns: Columns, sink: IO[str]) -> None:
        self._names = tuple(columns)
        self._kinds = columns
        self._sink = sink
        mark, is_csv = table.separator or ",", table.format == "csv"
        self._csv = csv.writer(ShortEnds(sink), delimiter=mark) if is_csv else None
        self._spelling = (
            Spelling.of_csv(self._names, mark) if is_csv else Spelling.of_json(self._names)
        )
        if self._csv:
            self._csv.writerow(self._names)

    def write(self, records: Iterable[Record]) -> None:
        if self._csv:
            self._csv.writerows(records)
            return
        for record in records:
            line = msgspec.json.encode(dict(zip(self._names, record, strict=True)))
            self._sink.write(line.decode() + "\n")

    def write_columns(self, columns: Mapping[str, Cells]) -> None:
        rows = column_length(columns[self._names[0]])
        # Alone in its line, a cell may need quotes that it does not need between others.
        if rows < _FEW_ROWS or len(self._names) == 1:
            self.write(zip(*(column_cells(columns[name]) for name in self._names), strict=True))
            return
        lines = self._spelling.lines(columns, self._kinds)
        if isinstance(self._sink, io.TextIOWrapper):
            self._sink.flush()
            self._sink.buffer.write(lines)
        else:
            self._sink.write(str(lines, "utf-8"))

    def close(self) -> None:
        self._sink.close()


def arrow_schema(columns: Columns) -> Any:
    """The columns of a Parquet or an Arrow file."""
    import pyarrow as pa

    return pa.schema([(name, arrow_type(kind)) for name, kind in columns.items()])


class _Columnar:
    """Records as columns, Parquet or Arrow, in groups of rows of one size however they came."""

    def __init__(self, format: str, columns: Columns, path: Path) -> None:
        import pyarrow.ipc
        import pyarrow.parquet

        self._columns = columns
        self._schema = arrow_schema(columns)
        if format == "parquet":
            self._writer: Any = pyarrow.parquet.ParquetWriter(path, self._schema)
        else:
            self._writer = pyarrow.ipc.new_file(str(path), self._schema)
        self._held: list[Any] = []
        self._rows = 0

    def write(self, records: Iterable[Record]) -> None:
        if rows := list(records):
            cells = map(list, zip(*rows, strict=True))
            self.write_columns(dict(zip(self._columns, cells, strict=True)))

    def write_columns(self, columns: Mapping[str, Cells]) -> None:
        import pyarrow as pa

        arrays = [column_array(columns[name], kind) for name, kind in self._columns.items()]
        self._held.append(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        self._rows += len(arrays[0])
        if self._rows >= _GROUP_ROWS:
            self._flush(self._rows - self._rows % _GROUP_ROWS)
        elif sum(batch.nbytes for batch in self._held) > limits.CHUNK:
            self._flush(self._rows)

    def _flush(self, rows: int) -> None:
        """Write so many of the rows that are held."""
        import pyarrow as pa

        held = pa.Table.from_batches(self._held, self._schema)
        for start in range(0, rows, _GROUP_ROWS):
            group = held.slice(start, min(_GROUP_ROWS, rows - start))
            # A part of an array would drag its neighbours into the file: it is copied.
            arrays = [pa.concat_arrays(column.chunks) for column in group.columns]
            self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        self._held, self._rows = held.slice(rows).to_batches(), self._rows - rows

    def close(self) -> None:
        if self._rows:
            self._flush(self._rows)
        self._writer.close()
