"""Laws of the columns that leave beside the answers: as `as_text` writes each cell."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.stream.kept_columns import kept_column
from sfumato.tables.batches import Column

_MOMENTS = st.datetimes() | st.datetimes().map(lambda one: one.replace(microsecond=0))


@given(st.data(), st.lists(st.none() | _MOMENTS, max_size=8), st.sampled_from([None, UTC]))
def test_moments_leave_as_python_writes_them(
    data: st.DataObject, moments: list[datetime | None], zone: None
) -> None:
    cells = [None if one is None else one.replace(tzinfo=zone) for one in moments]
    array = pa.array(cells, pa.timestamp("us", tz=None if zone is None else "UTC"))
    rows = [row for row in range(len(cells)) if data.draw(st.booleans())]
    found = kept_column(Column(array), np.array(rows, dtype=np.int64)).cells()
    due = [cells[row] for row in rows]
    assert found == [None if one is None else one.isoformat() for one in due]


@given(
    st.lists(st.none() | st.integers(-(2**62), 2**62), max_size=8), st.sampled_from([None, "UTC"])
)
def test_nanoseconds_leave_with_all_their_digits(ticks: list[int | None], zone: str | None) -> None:
    array = pa.array(ticks, pa.timestamp("ns", tz=zone))
    found = kept_column(Column(array), np.arange(len(ticks))).cells()
    assert [None if text is None else _nanoseconds(text) for text in found] == ticks


def _nanoseconds(text: str) -> int:
    """Since 1970, read by another library."""
    return int(np.datetime64(text.removesuffix("+00:00"), "ns").astype(np.int64))


@pytest.mark.parametrize("digits", ["0.1", "-12.50", "12345678901234567890.5", "1e-30", "7"])
def test_decimals_leave_as_numbers_that_are_equal(digits: str) -> None:
    cell = Decimal(digits)
    (found,) = kept_column(Column(pa.array([cell])), np.array([0])).cells()
    assert found is not None and Decimal(found) == cell


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint64(), pa.string()])
def test_numbers_and_texts_leave_as_they_are(kind: pa.DataType) -> None:
    least, most = (-(2**63), 2**63 - 1) if kind == pa.int64() else (0, 100)
    cells = [least, None, most] if pa.types.is_integer(kind) else ["", None, "wörk"]
    found = kept_column(Column(pa.array(cells, kind)), np.array([0, 1, 2])).cells()
    assert found == [None if cell is None else str(cell) for cell in cells]


def test_bytes_that_are_no_text_are_refused() -> None:
    array = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xff")]
    )
    with pytest.raises(pa.ArrowInvalid):
        kept_column(Column(array), np.array([0]))
