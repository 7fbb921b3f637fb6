"""Some columns of a table as a whole, read into memory and written again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.core import limits
from sfumato.core.progress import Progress
from sfumato.models.encoding import Raw
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Table
from sfumato.tables.writers import Output


def read_columns(
    table: Table, names: Sequence[str], progress: Progress | None = None
) -> dict[str, list[Raw]]:
    """The named columns of a table, as they stand there.

    Raises:
        BadTable: If the file cannot be read, a column is missing or a row is malformed.
    """
    wanted = list(dict.fromkeys(names))
    columns: dict[str, list[Raw]] = {name: [] for name in wanted}
    most = limits.CELLS // max(len(wanted), 1)
    if table.format == "parquet" and (table.count() or 0) > most:
        raise _too_long(table, most)
    for chunk in table.chunks(wanted):
        if chunk.first + len(chunk) - 1 > most:
            raise _too_long(table, most)
        for name in wanted:
            columns[name].extend(chunk.columns[name])
        if progress:
            progress(chunk.first + len(chunk) - 1)
    return columns


def _too_long(table: Table, most: int) -> BadTable:
    rule = f"a table that is read as a whole must have at most {most:,} rows; split it"
    return BadTable(table.path, None, rule)


def write_columns(table: Table, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write columns as a table; a file appears under its name only when complete."""
    kinds = {name: _kind(cells) for name, cells in columns.items()}
    cells = [_told(columns[name], kind) for name, kind in kinds.items()]
    with Output(table, kinds) as output:
        output.write(zip(*cells, strict=True))


def _kind(cells: Sequence[Any]) -> type:
    """The narrowest of booleans, whole numbers, numbers and text that holds all cells."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds == {bool}:
        return bool
    if kinds <= {int}:
        return int
    return float if kinds <= {int, float} else str


def _told(cells: Sequence[Any], kind: type) -> list[Any]:
    return [None if cell is None else kind(cell) for cell in cells]
