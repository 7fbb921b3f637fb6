"""What can be wrong with a table: always the file, the row and the rule, never the value."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.core.errors import SfumatoError


class BadTable(SfumatoError):
    """A table was refused.

    Attributes:
        source: The file, or `-` for standard input.
        row: Number of the data row, counted from 1; None when the whole table is meant.
        rule: What must hold.

    Examples:
        >>> raise BadTable("live.csv", 7, "column 'cell' must not be empty")
        Traceback (most recent call last):
        sfumato.tables.problems.BadTable: live.csv, row 7: column 'cell' must not be empty
    """

    def __init__(self, source: str, row: int | None, rule: str) -> None:
        self.source = source
        self.row = row
        self.rule = rule
        place = source if row is None else f"{source}, row {row}"
        super().__init__(f"{place}: {rule}")


class EmptyTable(BadTable):
    """A table has no rows.

    Examples:
        >>> raise EmptyTable("live.csv", None, "the table must not be empty")
        Traceback (most recent call last):
        sfumato.tables.problems.EmptyTable: live.csv: the table must not be empty
    """


class NoColumn(BadTable):
    """A table lacks a column, and the names of those that it has are known to be names.

    Attributes:
        name: The column that was asked for.
        there: The names of the columns.
    """

    def __init__(self, source: str, name: str, there: Sequence[str], listed: str) -> None:
        self.name, self.there = name, tuple(there)
        super().__init__(source, None, f"the table must have a column {name!r}; it has {listed}")
