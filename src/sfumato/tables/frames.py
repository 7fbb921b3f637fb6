"""Frames of any kind as plain columns, and back: polars, pandas, pyarrow, mappings."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sfumato.core.errors import InvalidParameter
from sfumato.models.encoding import Raw
from sfumato.tables.columnar import plain
from sfumato.tables.headers import no_column
from sfumato.tables.problems import BadTable


def columns_of(frame: Any, names: Sequence[str], source: str) -> dict[str, list[Raw]]:
    """Some columns as plain lists; what is missing is None, moments and days are text.

    Args:
        frame: Anything that narwhals reads, or a mapping of columns.
        names: The columns.
        source: What messages call the frame.

    Examples:
        >>> columns_of({"x": np.array([1, 2]), "y": "ab"}, ["x"], "frame")
        {'x': [1, 2]}
    """
    for name in names:
        if not isinstance(name, str):
            raise InvalidParameter("column", type(name).__name__, "be the name of a column, a text")
    if isinstance(frame, Mapping):
        there, cells = list(frame), _of_mapping(frame)
    else:
        there, cells = _of_native(frame, source)
    for name in names:
        if name not in there:
            raise no_column(source, name, [str(each) for each in there])
    found = {name: cells(name) for name in dict.fromkeys(names)}
    if len({len(column) for column in found.values()}) > 1:
        raise BadTable(source, None, "columns must be equally long")
    if any(len(column) == 0 for column in found.values()):
        raise BadTable(source, None, "the table must have at least one row")
    return found


class Written(str):
    """A cell of a column that is kept: what it says, and exactly how it leaves."""

    __slots__ = ("cell", "exact")
    cell: Raw
    exact: str

    @classmethod
    def of(cls, cell: Raw, exact: str) -> Written:
        """A plain cell, and the text that is equal only where what leaves is."""
        made = cls(exact)
        made.cell, made.exact = cell, exact
        return made


def written_columns(frame: Any, names: Sequence[str], source: str) -> dict[str, list[Raw]]:
    """Columns that leave as they are, each cell with exactly how it leaves."""
    cells = columns_of(frame, names, source)
    return {
        name: [Written.of(*both) for both in zip(column, _exact(frame, name), strict=True)]
        for name, column in cells.items()
    }


def exactly(cell: Any) -> str:
    """A text that is equal only for cells of one kind that cannot be told apart.

    Examples:
        >>> exactly(0.0) == exactly(-0.0), exactly(1) == exactly(1.0), exactly("") == exactly(None)
        (False, False, False)
        >>> exactly(float("nan")) == exactly(float("nan"))
        True
    """
    kind = type(cell).__qualname__
    if isinstance(cell, float):
        return f"{kind} {struct.pack('>d', cell).hex()}"
    if isinstance(cell, np.ndarray):
        return f"{kind} {cell.dtype} {cell.shape} {cell.tobytes().hex()}"
    return f"{kind} {cell!r}"


def _exact(frame: Any, name: str) -> list[str]:
    """How each cell of a column leaves; moments with all their digits."""
    import narwhals as nw

    if isinstance(frame, Mapping):
        return [exactly(cell) for cell in list(frame[name])]
    column = nw.from_native(frame, eager_only=True)[name]
    native, kind = column.to_native(), column.dtype
    # Python's moments know no nanoseconds; pandas' own do.
    fine = kind.is_temporal() or kind.is_nested()
    if fine and column.implementation.is_polars():
        return [f"{kind} {exactly(cell)}" for cell in native.to_physical().to_list()]
    if fine and column.implementation.is_pyarrow() and not kind.is_nested():
        whole = native.cast("int32" if kind == nw.Date else "int64", safe=False)
        return [f"{kind} {exactly(cell)}" for cell in whole.to_pylist()]
    return [exactly(cell) for cell in column.to_list()]


def column_list(argument: str, names: Sequence[str]) -> list[str]:
    """Names of columns, each once; one text is refused, whose letters would be taken for names.

    Examples:
        >>> column_list("keep", ("id", "school"))
        ['id', 'school']
        >>> column_list("keep", "id")
        Traceback (most recent call last):
        sfumato.core.errors.InvalidParameter: keep must be a list of columns, not one text; got 'id'
    """
    if isinstance(names, str):
        raise InvalidParameter(argument, names, "be a list of columns, not one text")
    if len(set(names)) != len(names):
        raise InvalidParameter(argument, list(names), "name every column once")
    return list(names)


def _of_mapping(frame: Mapping[str, Any]) -> Any:
    def cells(name: str) -> list[Raw]:
        return [plain(_of_numpy(cell)) for cell in list(frame[name])]

    return cells


def _of_numpy(cell: Any) -> Any:
    if isinstance(cell, np.datetime64 | np.timedelta64):
        # Python knows no nanoseconds: numpy would give a whole number for them.
        unit = "datetime64[us]" if isinstance(cell, np.datetime64) else "timedelta64[us]"
        return cell.astype(unit).item()
    return cell.item() if isinstance(cell, np.generic) else cell


def _of_native(frame: Any, source: str) -> tuple[list[str], Any]:
    import narwhals as nw

    try:
        table = nw.from_native(frame, eager_only=True)
        there = table.columns
    except nw.exceptions.NarwhalsError:
        raise BadTable(source, None, "column names must be distinct texts") from None
    except TypeError:
        rule = "be a frame of polars or pandas, a pyarrow table, or a mapping of columns"
        raise InvalidParameter(source, type(frame).__name__, rule) from None
    if len(set(there)) != len(there):
        raise BadTable(source, None, "column names must be distinct texts")

    def cells(name: str) -> list[Raw]:
        column = table[name]
        missing = column.is_null().to_list()
        pairs = zip(column.to_list(), missing, strict=True)
        return [None if gone else plain(cell) for cell, gone in pairs]

    return there, cells


def framed_columns(
    frame: Any,
    kept: Sequence[str],
    told: Mapping[str, list[Any]],
    rows: Sequence[int] | None = None,
) -> Any:
    """Kept columns and new ones, as the kind of frame that came.

    Nothing else of it leaves: no metadata, and not the index of a pandas frame. One that is to
    leave becomes a column (`reset_index`) and is kept like any other: grouped by, or declared.

    Args:
        frame: What came.
        kept: Columns of it that leave.
        told: New columns.
        rows: The rows of the frame that the new columns are about, in their order; all if not
            given.
    """
    import narwhals as nw

    if isinstance(frame, Mapping):
        whole = range(len(frame[kept[0]])) if kept else ()
        return {**some_rows(frame, kept, whole if rows is None else rows), **told}
    native = nw.from_native(frame, eager_only=True)
    backend = native.implementation
    new = {name: nw.new_series(name, cells, backend=backend) for name, cells in told.items()}
    old = native if rows is None else nw.from_native(some_rows(frame, kept, rows), eager_only=True)
    columns = {name: nw.maybe_reset_index(old[name]) for name in kept}
    return nw.from_dict({**columns, **new}, backend=backend).to_native()


def has_index(frame: Any) -> bool:
    """Whether a pandas frame has an index that is more than the numbers of its rows.

    Examples:
        >>> import pandas as pd
        >>> has_index(pd.DataFrame({"x": [1, 2]}))
        False
        >>> has_index(pd.DataFrame({"x": [1, 2]}, index=["a", "b"]))
        True
    """
    import narwhals as nw

    if isinstance(frame, Mapping):
        return False
    native = nw.from_native(frame, eager_only=True)
    names = nw.maybe_get_index(native)
    return names is not None and list(names) != list(range(len(native)))


def some_rows(frame: Any, names: Sequence[str], rows: Sequence[int]) -> Any:
    """Some columns and rows of a frame, as the kind of frame that came.

    Examples:
        >>> some_rows({"x": [1, 2, 3], "y": "abc"}, ["x"], [0, 2])
        {'x': [1, 3]}
    """
    import narwhals as nw

    chosen = [int(row) for row in rows]
    if isinstance(frame, Mapping):
        cells = {name: list(frame[name]) for name in names}
        return {name: [column[row] for row in chosen] for name, column in cells.items()}
    return nw.from_native(frame, eager_only=True)[chosen, list(names)].to_native()
