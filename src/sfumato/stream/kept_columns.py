"""Columns that leave beside the answers, as text: whole arrays at once where Arrow can."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sfumato.core.arrays import Ints
from sfumato.models.stream_model import StreamModel
from sfumato.store.answer_columns import Coded
from sfumato.stream.column_times import EARLIEST, LATEST
from sfumato.stream.input_rows import Reading, as_text
from sfumato.tables.arrow_arrays import number_array
from sfumato.tables.batches import Column
from sfumato.tables.columnar import has_nanoseconds, is_text, microseconds
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Table

if TYPE_CHECKING:
    import pyarrow as pa


def check_copies(source: Table, model: StreamModel, reading: Reading) -> None:
    """Refuse to keep a column that holds the very values, whatever was declared of it.

    The first rows of a file are looked at; what comes through a pipe leaves before others come.

    Raises:
        BadTable: With the column, never a value.
    """
    if not reading.keep or not Path(source.path).is_file():
        return
    with closing(source.chunks([*model.values, *reading.keep])) as chunks:
        first = next(chunks)
    texts = {name: [*map(as_text, cells)] for name, cells in first.columns.items()}
    held = [texts[name] for name in model.values if len(set(texts[name])) > 1]
    for name in reading.keep:
        if texts[name] in held:
            raise BadTable(source.path, None, f"column {name!r} must not hold the very values")


def kept_column(column: Column, rows: Ints) -> Coded[str] | Column:
    """Some rows of a column, as `as_text` writes each cell.

    Args:
        column: All its rows.
        rows: Which of them leave, rising.

    Raises:
        pyarrow.ArrowInvalid: If what is said to be text is none.

    Examples:
        >>> import pyarrow as pa
        >>> kept_column(Column(pa.array([7, None, 9])), np.array([0, 1])).cells()
        ['7', None]
        >>> kept_column(Column(pa.array([0.5, 1.0])), np.array([1])).cells()
        ['1.0']
    """
    texts = _texts(column.array)
    if texts is not None:
        return Column(texts if len(rows) == len(texts) else texts.take(_arrow(rows)))
    codes, words = column.coded()
    spelled = [as_text(word) for word in words]
    there = np.array([word is not None for word in spelled], dtype=np.bool_)
    codes = codes[rows]
    return Coded(np.where(there[codes], codes, -1), [word or "" for word in spelled])


def _texts(array: pa.Array) -> pa.Array | None:
    """The texts of all cells; None if they must be written one by one."""
    import pyarrow as pa

    if is_text(array.type):
        array.validate(full=True)  # an engine may hold bytes in a column of text
        return array
    if pa.types.is_integer(array.type):
        return array.cast(pa.string())
    if pa.types.is_timestamp(array.type) and array.type.tz in (None, "UTC"):
        return None if has_nanoseconds(array) else _moments(array)
    return None


def _moments(array: pa.Array) -> pa.Array | None:
    """Moments as `isoformat` writes them: a fraction only where there is one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ticks = microseconds(array).view(pa.int64())
    bounds = pc.min_max(ticks).as_py()
    if bounds["min"] is None or bounds["min"] < EARLIEST or bounds["max"] > LATEST:
        return None  # years that Python does not know
    exact = ticks.view(pa.timestamp("us"))
    whole = exact.cast(pa.timestamp("s"), safe=False)
    texts = whole.cast(pa.string())
    broken = pc.not_equal(whole.cast(pa.timestamp("us")), exact)
    if pc.any(broken).as_py():
        texts = pc.if_else(broken, exact.cast(pa.string()), texts)
    texts = pc.replace_substring(texts, " ", "T")
    if array.type.tz is None:
        return texts
    return pc.binary_join_element_wise(texts, "+00:00", "")


def _arrow(rows: Ints) -> pa.Array:
    import pyarrow as pa

    return number_array(rows, pa.int64())
