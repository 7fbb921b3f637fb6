"""Whether a file is written as this program writes tables, byte by byte where it is text.

A table can be written in many ways that read alike: spaces, quotes, line ends, other spellings of
a number, fields in another order. Who wants to hide a message in a table uses them.
"""

from __future__ import annotations

import codecs
import csv
import io
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from sfumato.core import limits
from sfumato.tables.lines import opened
from sfumato.tables.plain_blocks import is_bare
from sfumato.tables.readers import Table
from sfumato.tables.writers import ShortEnds, arrow_schema

Finding = tuple[int | None, str]
"""A row, or None for the whole file, and the rule that it breaks."""
_BLOCK = 1 << 20
_LINE = "the line must be written as the release writes it: quotes, spaces, ends"


def column_names(table: Table) -> list[str]:
    """The columns of a table in their order; of JSON lines, those of the first line.

    A file that cannot be read has none: reading it says what is wrong.
    """
    if table.is_standard:
        return []
    try:
        if table.format not in ("csv", "jsonl"):
            return list(_schema(table).names)
        with opened(table.path) as file:
            line = file.readline(limits.LINE)
        if table.format == "jsonl":
            return list(msgspec.json.decode(line, type=dict[str, Any]))
        text = line.decode("utf-8-sig", "replace")
        return next(csv.reader([text], delimiter=_mark(table)), [])
    except (OSError, EOFError, ValueError, zlib.error, csv.Error, RecursionError):
        return []


def spelled_otherwise(table: Table, columns: Mapping[str, type]) -> Iterator[Finding]:
    r"""What is written in another way than this program would.

    Args:
        table: A file; a pipe can be read once only and is not looked at.
        columns: What it must hold, in order.

    Examples:
        >>> path = getfixture("tmp_path") / "private.csv"
        >>> path.write_text('stream,sip\n"u1",0.5\n') > 0
        True
        >>> list(spelled_otherwise(Table.at(str(path)), {"stream": str, "sip": float}))
        [(1, 'the line must be written as the release writes it: quotes, spaces, ends')]
    """
    match table.format:
        case "csv":
            yield from _csv(table)
        case "jsonl":
            yield from _json_lines(table, list(columns))
        case _:
            yield from _columnar(table, columns)


def unseen(table: Table) -> str | None:
    """What of a file's bytes nobody looks at here; None where every byte is compared."""
    if table.is_standard:
        return "how a pipe was spelled: only a file can be read twice"
    if table.format in ("parquet", "arrow"):
        return "how a Parquet or Arrow file packs its cells (pages, padding): only CSV is all text"
    if table.path.endswith(".gz"):
        return "how the compressed file was packed: its content is compared"
    return None


class _Told:
    """Lines for a reader, and what it has read since somebody last asked."""

    def __init__(self, file: Iterable[bytes]) -> None:
        self._file = file
        self._read: list[bytes] = []

    def __iter__(self) -> Iterator[str]:
        for line in self._file:
            self._read.append(line)
            yield line.decode()

    def taken(self) -> bytes:
        """The bytes of what was read."""
        found, self._read = b"".join(self._read), []
        return found


def _csv(table: Table) -> Iterator[Finding]:
    with opened(table.path) as file:
        # Lines of cells alone are written in one way; the first that may not be is looked at.
        lines, block = 0, b""
        while block := file.read(_BLOCK) + file.readline():
            if not block.endswith(b"\n") or not is_bare(block):
                break
            lines += block.count(b"\n")
        told, text = _Told(chain(io.BytesIO(block), file)), io.StringIO(newline="")
        writer = csv.writer(ShortEnds(text), delimiter=_mark(table))
        try:
            rows = csv.reader(told, delimiter=_mark(table), strict=True)
            for number, row in enumerate(rows, start=lines):
                text.seek(0)
                text.truncate()
                writer.writerow(row)
                given = told.taken()
                marked = number == 0 and given.startswith(codecs.BOM_UTF8)
                if not row or marked or given != text.getvalue().encode():
                    yield number or None, _LINE if number else f"the header: {_LINE}"
        except (csv.Error, UnicodeDecodeError):
            yield None, "the text must be CSV in UTF-8"


def _json_lines(table: Table, columns: Sequence[str]) -> Iterator[Finding]:
    with opened(table.path) as file:
        for number, line in enumerate(file, start=1):
            try:
                record = msgspec.json.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                yield number, "a line must hold one JSON object"
                continue
            if not isinstance(record, dict) or msgspec.json.encode(record) + b"\n" != line:
                yield number, _LINE
            elif list(record) != columns:
                yield number, "the line must have the fields of the release, in their order"


def _columnar(table: Table, columns: Mapping[str, type]) -> Iterator[Finding]:
    schema = _schema(table)
    if schema.metadata:
        yield None, "the file must hold no remarks (metadata)"
    due = arrow_schema(columns)
    for field in schema:
        wanted = due.field(field.name) if field.name in due.names else field
        if field.type != wanted.type or field.metadata or not field.nullable:
            yield None, f"column {field.name!r} must have the type that the release writes"


def _schema(table: Table) -> Any:
    import pyarrow as pa
    import pyarrow.ipc
    import pyarrow.parquet

    if table.format == "parquet":
        return pyarrow.parquet.ParquetFile(table.path).schema_arrow
    with pa.memory_map(table.path) as source:
        return pyarrow.ipc.open_file(source).schema


def _mark(table: Table) -> str:
    """What a release writes between columns: a comma, or a tab where the name says so."""
    return "\t" if Path(table.path.removesuffix(".gz")).suffix.lower() == ".tsv" else ","
