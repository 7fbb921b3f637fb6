"""Cells of a table, read one by one; what breaks a rule is named by its row, never by its value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from sfumato.models.encoding import Raw, Unreadable, text
from sfumato.tables.problems import BadTable

Value = TypeVar("Value")


def stream_name(owner: Raw, column: str, source: str, row: int) -> str:
    """The name of a stream as text, the same in every format, or the rule that it breaks."""
    try:
        return text(owner)
    except Unreadable as problem:
        raise BadTable(source, row, f"column {column!r} {problem}") from None


def read_each(column: Sequence[Raw], read: Callable[[Raw], Value], source: str) -> list[Value]:
    """Read every value of a column, or name the row that breaks the rule."""
    found: list[Value] = []
    try:
        for value in column:
            found.append(read(value))
    except Unreadable as problem:
        raise BadTable(source, len(found) + 1, f"the value {problem}") from None
    return found
