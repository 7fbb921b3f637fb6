"""Some successive rows of a table, column by column, as Python values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
