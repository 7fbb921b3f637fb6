"""Values over time from a column: which rows have one, and what becomes of the others."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.core.errors import InvalidParameter
from sfumato.models.encoding import Raw, number
from sfumato.tables.cells import Missing, is_missing, missing_rows, read_each
from sfumato.tables.problems import BadTable


def kept_rows(
    cells: Sequence[Raw], missing: str, source: str, *, skipped: bool = True
) -> list[int]:
    """The rows, from 0, that are moments of the series, by what becomes of missing values.

    Args:
        cells: The column.
        missing: One of `Missing`.
        source: The file, for messages.
        skipped: Whether a moment without a value can pass.

    Examples:
        >>> kept_rows(["4", "", "5"], "drop", "counts.csv")
        [0, 2]
        >>> kept_rows(["4", "", "5"], "skip", "counts.csv")
        [0, 1, 2]
    """
    able = [each for each in Missing if each is not Missing.SYMBOL]
    if not skipped:
        able.remove(Missing.SKIP)
    if missing not in able:
        raise InvalidParameter("missing", missing, f"be one of {', '.join(able)} for numbers")
    empty = set(missing_rows(cells))
    match Missing(missing):
        case Missing.REFUSE if empty:
            raise BadTable(source, min(empty) + 1, "the value must not be empty (see --missing)")
        case Missing.DROP:
            return [row for row in range(len(cells)) if row not in empty]
        case _:
            return list(range(len(cells)))


def values_of(cells: Sequence[Raw], rows: Sequence[int], source: str) -> list[float | None]:
    """The numbers of some rows; None where there is none, which is left to pass.

    Examples:
        >>> values_of(["4", "", "5"], [0, 1, 2], "counts.csv")
        [4.0, None, 5.0]
    """
    known = [row for row in rows if not is_missing(cells[row])]
    found = dict(zip(known, numbers_of(cells, known, source), strict=True))
    return [found.get(row) for row in rows]


def numbers_of(cells: Sequence[Raw], rows: Sequence[int], source: str) -> list[float]:
    """The numbers of some rows, or the row that has none."""
    try:
        return read_each([cells[row] for row in rows], number, source)
    except BadTable as problem:
        row = None if problem.row is None else rows[problem.row - 1] + 1
        raise BadTable(source, row, problem.rule) from None
