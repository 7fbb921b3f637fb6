"""Cells that hold no value, and what becomes of them: one rule for every command."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from sfumato.core.alphabet import MISSING_SYMBOL as MISSING_SYMBOL

if TYPE_CHECKING:
    from sfumato.models.encoding import Raw


class Missing(StrEnum):
    """What becomes of a missing value.

    Attributes:
        REFUSE: Nothing is released, and the row is named.
        DROP: The row leaves out; how many rows are left shows.
        SYMBOL: It is a symbol of its own, `(missing)`, as private as any other.
        SKIP: Nothing leaves for it, but its moment passes: for values over time.

    Examples:
        >>> Missing("drop"), ", ".join(Missing)
        (<Missing.DROP: 'drop'>, 'refuse, drop, symbol, skip')
    """

    REFUSE = "refuse"
    DROP = "drop"
    SYMBOL = "symbol"
    SKIP = "skip"


def is_missing(value: Raw) -> bool:
    """Whether a cell holds no value: empty, blank, or no number (NaN).

    Examples:
        >>> [is_missing(cell) for cell in (None, "", " ", "NaN", math.nan)], is_missing("none")
        ([True, True, True, True, True], False)
        >>> is_missing(0), is_missing(False)
        (False, False)
    """
    if value is None:
        return True
    if isinstance(value, str):
        word = value.strip()
        return not word or word.lower() == "nan"
    return isinstance(value, float) and math.isnan(value)


def missing_rows(*columns: Sequence[Raw]) -> list[int]:
    """The rows, counted from 0, in which a cell of any of the columns is missing.

    Examples:
        >>> missing_rows([1, None, 3, 4], ["a", "b", "", "d"])
        [1, 2]
    """
    rows = zip(*columns, strict=True)
    return [row for row, cells in enumerate(rows) if any(is_missing(cell) for cell in cells)]
