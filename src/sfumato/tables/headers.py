"""The first line of a text table: what separates its columns, and whether it holds their names."""

from __future__ import annotations

import csv
from collections.abc import Sequence

from sfumato.core import limits
from sfumato.tables.problems import BadTable, NoColumn

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}
_SHOWN = 20
_MISSING = {"", "na", "n/a", "nan", "null", "none", "-", "?"}


def separator_of(line: str, wanted: Sequence[str], source: str) -> str:
    """What separates the columns of a table, from its first line.

    Only what stands outside quotes counts. Where more than one candidate does, it is the one under
    which the wanted columns exist; who would have to guess asks.

    Examples:
        >>> separator_of("person;place, or area", ["person"], "live.csv")
        ';'
    """
    fields = {mark: _fields(line, mark) for mark in SEPARATORS}
    there = [mark for mark, names in fields.items() if len(names) > 1]
    if len(there) < 2:
        return there[0] if there else ","
    fitting = [mark for mark in there if set(wanted) <= set(fields[mark])]
    if len(fitting) == 1:
        return fitting[0]
    found = " or a ".join(SEPARATORS[mark] for mark in there)
    rule = f"it must be clear what separates the columns, a {found}: say it with --separator"
    raise BadTable(source, None, rule)


def _fields(line: str, mark: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=mark, strict=True), [])
    except csv.Error:
        return []


def listed(names: Sequence[str]) -> str:
    """Names for a message, some of them if there are many.

    Examples:
        >>> listed(["a", "b"])
        "'a', 'b'"
    """
    shown = ", ".join(repr(name[:60]) for name in names[:_SHOWN])
    return shown + (f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else "")


def no_column(source: str, name: str, there: Sequence[str]) -> NoColumn:
    """What to say when a column is not there, where the names are known to be names."""
    return NoColumn(source, name, there, listed(there))


def holds_names(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether the rows that follow show that a first line holds names, and nobody's values.

    In some column it must differ in kind from all that follows: words over numbers, or a word that
    never recurs over words that do. Without such evidence the names are not repeated anywhere.

    Examples:
        >>> holds_names(["person", "steps"], [["ann", "12"], ["bob", "7"]])
        True
        >>> holds_names(["ann", "home"], [["bob", "work"]])
        False
    """
    columns = [[row[place] for row in rows] for place in range(len(header))]
    pairs = list(zip(header, columns, strict=True))
    if any(name.strip().lower() in _MISSING or _is_number(name) for name in header):
        return False
    if any(name in cells for name, cells in pairs):
        return False
    return any(_differs(cells) for _, cells in pairs)


def _differs(cells: Sequence[str]) -> bool:
    given = [cell for cell in cells if cell.strip().lower() not in _MISSING]
    if not given:
        return False
    return all(map(_is_number, given)) or len(set(given)) * 2 <= len(given)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def check_names(header: Sequence[str], source: str) -> None:
    """Column names must be distinct, and not too many."""
    if len(header) > limits.COLUMNS:
        rule = f"a table must have at most {limits.COLUMNS:,} columns; it has {len(header):,}"
        raise BadTable(source, None, rule)
    if len(set(header)) != len(header):
        raise BadTable(source, None, "column names must be distinct")
