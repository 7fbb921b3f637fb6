"""The values of many rows as places in the alphabet: each different cell is encoded once.

Numbers are read and cut into cells by array. Whatever is not covered is `Irregular`: such rows go
one by one, and the row that breaks a rule is named there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sfumato.core.alphabet import MISSING_SYMBOL
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.models.encoding import (
    Bins,
    Encoding,
    Grid,
    Raw,
    Symbols,
    Unreadable,
    is_missing,
    number,
)
from sfumato.tables.arrow_arrays import numbers_of
from sfumato.tables.batches import Column
from sfumato.tables.cells import Missing

PASSES = -2
"""In the place of a symbol: a moment that passes without a release, as `Fleet.run` knows it."""


class Irregular(Exception):
    """Rows that arrays do not cover; nothing has been done for any of them."""


@dataclass(frozen=True, slots=True)
class EncodedValues:
    """The values of many rows.

    Attributes:
        cells: Places of their symbols; -1 outside the alphabet, `PASSES` where a moment passes.
        gone: Which are missing, and not refused for it.
        clipped: Which lie beyond the range and were taken for its edge.
    """

    cells: Ints
    gone: Bools
    clipped: Bools


def encoded_values(
    encoding: Encoding, missing: Missing, columns: Sequence[Column]
) -> EncodedValues:
    """The values of rows, as `RowReader` reads them one by one.

    Raises:
        Irregular: If one of them cannot be read.
    """
    if isinstance(encoding, Symbols):
        (column,) = columns
        return _symbols(encoding, missing, column)
    read = [_numbers(column, missing) for column in columns]
    gone = np.logical_or.reduce([one.gone for one in read])
    if (np.logical_or.reduce([one.unreadable for one in read]) & ~gone).any():
        raise Irregular
    # What is missing stands at the first edge for as long as it takes to be overwritten.
    edges = (encoding.edges,) if isinstance(encoding, Bins) else _grid_edges(encoding)
    points = [np.where(gone, edge[0], one.values) for edge, one in zip(edges, read, strict=True)]
    cells = encoding.cells(*points)
    clipped = encoding.beyond(*points) if encoding.clip else np.zeros(len(gone), dtype=np.bool_)
    cells[gone] = _place_of_missing(encoding, missing)
    return EncodedValues(cells, gone, clipped)


def _grid_edges(grid: Grid) -> tuple[Floats, Floats]:
    return grid.x_edges, grid.y_edges


def _place_of_missing(encoding: Encoding, missing: Missing) -> int:
    return encoding.alphabet.index(MISSING_SYMBOL) if missing is Missing.SYMBOL else PASSES


def _symbols(encoding: Symbols, missing: Missing, column: Column) -> EncodedValues:
    codes, words = column.coded()
    gone = np.array([_is_gone(word, missing) for word in words], dtype=np.bool_)
    cells = np.empty(len(words), dtype=np.int64)
    for place, word in enumerate(words):
        cells[place] = PASSES if gone[place] else _cell(encoding, word)
    if gone.any():
        cells[gone] = _place_of_missing(encoding, missing)
    return EncodedValues(cells[codes], gone[codes], np.zeros(len(codes), dtype=np.bool_))


def _cell(encoding: Symbols, word: Raw) -> int:
    try:
        return encoding.alphabet.place(encoding.encode(word))
    except Unreadable:
        raise Irregular from None


def _is_gone(word: Raw, missing: Missing) -> bool:
    return missing is not Missing.REFUSE and is_missing(word)


class _Numbers(NamedTuple):
    values: Floats
    gone: Bools
    unreadable: Bools


def _numbers(column: Column, missing: Missing) -> _Numbers:
    values = _by_array(column)
    if values is not None and np.isfinite(values).all():
        nothing = np.zeros(len(values), dtype=np.bool_)
        return _Numbers(values, nothing, nothing)
    codes, words = column.coded()
    gone = np.array([_is_gone(word, missing) for word in words], dtype=np.bool_)
    read = np.array([np.nan if is_missing(word) else _number(word) for word in words])
    return _Numbers(read[codes], gone[codes], np.isnan(read)[codes])


def _by_array(column: Column) -> Floats | None:
    """A column of numbers, or of text that reads as numbers throughout; None for any other."""
    import pyarrow as pa

    array, kinds = column.array, pa.types
    if array.null_count or isinstance(array, pa.DictionaryArray):
        return None
    kind = array.type
    if not (kinds.is_integer(kind) or kinds.is_float32(kind) or kinds.is_float64(kind)):
        if not (kinds.is_string(kind) or kinds.is_large_string(kind)):
            return None
        try:
            # Both this and Python round to the nearest number; what only Python reads fails here.
            array = array.cast(pa.float64())
        except pa.ArrowInvalid:
            return None
    values: Floats = numbers_of(array).astype(np.float64)
    return values


def _number(word: Raw) -> float:
    """A number, or NaN where it breaks a rule."""
    try:
        return number(word)
    except Unreadable:
        return np.nan
