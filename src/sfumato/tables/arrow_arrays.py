"""Arrays of Arrow from numbers and texts, and back, without pandas.

`pyarrow.array` and `to_numpy` load pandas wherever it is installed, to ask whether it has anything
to do with what they are given: 40 MB of memory and half a second that no release needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

_DTYPES: dict[str, Any] = {"bool": np.bool_, "int64": np.int64, "double": np.float64}
_KINDS: dict[str, type] = {"bool": bool, "int64": int, "double": float}


def numbers_of(array: pa.Array) -> NDArray[Any]:
    """The numbers of an array in which none is missing; nobody can write to them.

    Examples:
        >>> import pyarrow as pa
        >>> numbers_of(pa.array([3, 1, 2])[1:]).tolist()
        [1, 2]
    """
    return np.from_dlpack(array)


def number_array(
    numbers: NDArray[Any], kind: pa.DataType, missing: NDArray[np.bool_] | None = None
) -> pa.Array:
    """An array of numbers, or of truths, of a type; there may be none at some places.

    Examples:
        >>> import pyarrow as pa
        >>> number_array(np.array([0.5, 2.0]), pa.float64(), np.array([True, False])).to_pylist()
        [None, 2.0]
    """
    import pyarrow as pa

    values = np.ascontiguousarray(numbers).astype(_DTYPES[str(kind)], casting="safe", copy=False)
    held = np.packbits(values, bitorder="little") if pa.types.is_boolean(kind) else values
    return pa.Array.from_buffers(kind, len(values), [_validity(missing), pa.py_buffer(held)])


def cell_array(cells: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """An array of Python's cells, of a type; None where there is none.

    Examples:
        >>> import pyarrow as pa
        >>> cell_array([7, None], pa.int64()).to_pylist()
        [7, None]
    """
    import pyarrow as pa

    types = set(map(type, cells)) - {type(None)}
    if types <= {str} and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return text_array(cells, kind)
    # Only what needs no rule of its own: Arrow refuses a text as a number, and numpy reads it.
    if str(kind) in _KINDS and types <= {_KINDS[str(kind)]}:
        missing = np.array([cell is None for cell in cells], dtype=np.bool_)
        filled = [0 if cell is None else cell for cell in cells]
        return number_array(np.array(filled, dtype=_DTYPES[str(kind)]), kind, missing)
    return pa.array(cells, type=kind)


def scalar(cell: Any, kind: pa.DataType) -> pa.Scalar:
    """One cell as Arrow has it.

    Examples:
        >>> import pyarrow as pa
        >>> scalar("home", pa.string()).as_py()
        'home'
    """
    return cell_array([cell], kind)[0]


def text_array(texts: Sequence[str | None], kind: pa.DataType | None = None) -> pa.Array:
    """An array of texts, of type `string` or another one of text; None where there is none.

    Raises:
        UnicodeEncodeError: If half a character stands in a text.
        OverflowError: If all texts together are too long for the type.

    Examples:
        >>> text_array(["home", None, "wörk", ""]).to_pylist()
        ['home', None, 'wörk', '']
    """
    import pyarrow as pa

    kind = kind or pa.string()
    cells = [b"" if text is None else text.encode() for text in texts]
    ends = np.zeros(len(cells) + 1, dtype=np.int64)
    np.cumsum([*map(len, cells)], out=ends[1:])
    if pa.types.is_string(kind):
        if ends[-1] > np.iinfo(np.int32).max:
            raise OverflowError("texts of a column must take at most 2 GB")
        ends = ends.astype(np.int32)
    missing = np.array([text is None for text in texts], dtype=np.bool_)
    parts = [_validity(missing), pa.py_buffer(ends), pa.py_buffer(b"".join(cells))]
    return pa.Array.from_buffers(kind, len(cells), parts)


def _validity(missing: NDArray[np.bool_] | None) -> pa.Buffer | None:
    """One bit for each place, as Arrow has them; None if there is something everywhere."""
    import pyarrow as pa

    if missing is None or not missing.any():
        return None
    return pa.py_buffer(np.packbits(~missing, bitorder="little"))
