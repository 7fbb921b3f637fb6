"""Many successive rows of a table, column by column, as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.core.arrays import Ints
from sfumato.tables.arrow_arrays import cell_array, numbers_of
from sfumato.tables.chunks import CHUNK_ROWS, Chunk
from sfumato.tables.columnar import (
    checked_cells,
    column_arrays,
    is_sound,
    is_text,
    python_cells,
)

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 1 << 16
"""Enough that what is done once for a batch does not count."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a batch.

    Attributes:
        array: As it was read: text in CSV, coded text or numbers elsewhere.

    Examples:
        >>> import pyarrow as pa
        >>> column = Column(pa.array(["home", "work", "home", None]))
        >>> column.coded()
        (array([0, 1, 0, 2]), ['home', 'work', None])
        >>> column.cells()
        ['home', 'work', 'home', None]
    """

    array: pa.Array

    def __len__(self) -> int:
        return len(self.array)

    def cells(self) -> list[Any]:
        """The cells as a `Chunk` holds them."""
        return python_cells(self.array)

    def coded(self) -> tuple[Ints, list[Any]]:
        """The number of each cell in a list of the different cells, in order of appearance.

        Cells are as a `Chunk` holds them. None of the list is there twice; 0.0 and -0.0 differ.
        """
        import pyarrow as pa

        array = self.array
        if isinstance(array, pa.DictionaryArray):
            used = array.indices.dictionary_encode(null_encoding="encode")
            words = python_cells(array.dictionary.take(used.dictionary))
            return _distinct(numbers_of(used.indices).astype(np.int64), words)
        if is_text(array.type) or pa.types.is_integer(array.type):
            used = array.dictionary_encode(null_encoding="encode")  # no word twice
            return numbers_of(used.indices).astype(np.int64), python_cells(used.dictionary)
        return _distinct(np.arange(len(array)), self.cells())


def _distinct(codes: Ints, words: list[Any]) -> tuple[Ints, list[Any]]:
    """Codes of different words only: a file may list a word twice."""
    keys = [word if word is None or isinstance(word, str) else repr(word) for word in words]
    places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    if len(places) == len(words):
        return codes, words
    first = dict(zip(reversed(keys), reversed(words), strict=True))
    moved = np.array([places[key] for key in keys], dtype=np.int64)
    return moved[codes], [first[key] for key in places]


@dataclass(frozen=True, slots=True)
class Batch:
    """Many successive rows of a table, column by column.

    Attributes:
        first: Number of the first row, counted from 1.
        columns: The wanted columns.
    """

    first: int
    columns: dict[str, Column]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def chunk(self) -> Chunk:
        """The same rows as Python values."""
        return Chunk(self.first, {name: column.cells() for name, column in self.columns.items()})


def as_batch(chunk: Chunk) -> Batch | Chunk:
    """The same rows as arrays, if the cells of each column have one type that arrays hold.

    Examples:
        >>> as_batch(Chunk(1, {"cell": ["home", None]})).columns["cell"].cells()
        ['home', None]
        >>> as_batch(Chunk(1, {"cell": ["home", 7]}))
        Chunk(first=1, columns={'cell': ['home', 7]})
    """
    arrays = {name: _array(cells) for name, cells in chunk.columns.items()}
    if any(array is None for array in arrays.values()):
        return chunk
    return Batch(chunk.first, {name: Column(array) for name, array in arrays.items()})


def _array(cells: list[Any]) -> pa.Array | None:
    import pyarrow as pa

    kinds = set(map(type, cells)) - {type(None)}
    if len(kinds) > 1 or not kinds <= {str, int, float}:
        return None
    types = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    try:
        return cell_array(cells, types[kinds.pop() if kinds else str])
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        return None  # a number of too many digits, half a character, too much text


def columnar_batches(
    path: str, format: str, wanted: Sequence[str], optional: Sequence[str], rows: int
) -> Iterator[Batch | Chunk]:
    """The rows of a Parquet or an Arrow file; what is too large comes as the strict reader says."""
    first = 1
    for arrays in column_arrays(path, format, wanted, optional, rows):
        count = len(next(iter(arrays.values())))
        if all(map(is_sound, arrays.values())):
            yield Batch(first, {name: Column(array) for name, array in arrays.items()})
        else:
            for start in range(0, count, CHUNK_ROWS):
                parts = {name: array.slice(start, CHUNK_ROWS) for name, array in arrays.items()}
                cells = {name: checked_cells(part, name, path) for name, part in parts.items()}
                yield Chunk(first + start, cells)
        first += count
