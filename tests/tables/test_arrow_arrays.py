"""Arrays made without pandas are those that Arrow makes, and no pandas is loaded for them."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.tables.arrow_arrays import cell_array, number_array, numbers_of, text_array

CELLS = {
    "string": (pa.string(), st.text(st.characters(exclude_categories=["Cs"]), max_size=5)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "double": (pa.float64(), st.floats()),
    "bool": (pa.bool_(), st.booleans()),
}


@pytest.mark.parametrize("name", CELLS)
@given(data=st.data())
def test_cells_become_the_array_that_arrow_makes_of_them(name: str, data: st.DataObject) -> None:
    kind, cells = CELLS[name]
    given_cells = data.draw(st.lists(st.none() | cells, max_size=20))
    found, due = cell_array(given_cells, kind), pa.array(given_cells, kind)
    found.validate(full=True)
    assert repr(found.to_pylist()) == repr(due.to_pylist())
    assert (found.type, found.null_count) == (due.type, due.null_count)


@given(st.lists(st.none() | st.text(max_size=3, alphabet="aé€😀"), max_size=20))
def test_texts_may_be_of_a_longer_type(texts: list[str | None]) -> None:
    found = text_array(texts, pa.large_string())
    found.validate(full=True)
    assert found.equals(pa.array(texts, pa.large_string()))


@given(st.lists(st.tuples(st.integers(0, 255), st.booleans()), max_size=20), st.integers(0, 5))
def test_numbers_come_back_from_any_part_of_an_array(
    cells: list[tuple[int, bool]], start: int
) -> None:
    numbers = np.array([number for number, _ in cells], dtype=np.uint8)
    missing = np.array([gone for _, gone in cells], dtype=np.bool_)
    assert (
        numbers_of(number_array(numbers, pa.int64())[start:]).tolist() == numbers.tolist()[start:]
    )
    due = [None if gone else number for number, gone in cells]
    assert number_array(numbers, pa.int64(), missing).to_pylist() == due


def test_what_a_type_cannot_hold_is_refused_as_arrow_refuses_it() -> None:
    with pytest.raises(pa.ArrowInvalid):
        cell_array(["1.5"], pa.float64())
    with pytest.raises(OverflowError):
        cell_array([2**63], pa.int64())
    with pytest.raises(UnicodeEncodeError):
        text_array(["\ud800"])
    with pytest.raises(TypeError, match="according to the rule 'safe'"):
        number_array(np.array([0.5]), pa.int64())


def test_no_column_loads_pandas() -> None:
    """Else it is loaded wherever it is installed, which it is here."""
    program = """
import sys, importlib.util
import numpy as np, pyarrow as pa
from sfumato.tables.batches import Chunk, as_batch
from sfumato.tables.spelling import Coded, Spelling, column_array
codes, masked = np.array([1, 0, -1]), np.ma.masked_invalid([0.5, np.nan, 1.0])
columns = {"a": Coded(codes, ["x", "y"]), "b": masked, "c": codes, "d": [0.5, None, 2.0]}
kinds = {"a": str, "b": float, "c": int, "d": float}
arrays = [column_array(columns[name], kinds[name]) for name in columns]
Spelling.of_csv([*columns], ",").lines(columns, kinds)
as_batch(Chunk(1, {"name": ["x", None, "x"], "number": [1, 2, 1]})).columns["name"].coded()
assert "pandas" not in sys.modules
assert importlib.util.find_spec("pandas")
"""
    subprocess.run([sys.executable, "-c", program], check=True)
