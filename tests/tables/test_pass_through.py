from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato.column.privatize import privatize
from sfumato.core.errors import InvalidParameter
from sfumato.tables.frames import written_columns
from sfumato.tables.pass_through import FEWEST_ROWS, Groups, PassThrough
from sfumato.tables.problems import BadTable


def test_a_kept_column_is_knowledge_unless_it_is_declared() -> None:
    found = PassThrough.of(["a", "b", "c"], ["b"], ["x"])
    assert (found.linked, found.independent) == (("a", "c"), ("b",))
    assert any("'a', 'c'" in remark for remark in found.remarks)
    assert any("'b'" in remark and "declared" in remark for remark in found.remarks)
    assert PassThrough.of([], [], ["x"]).remarks == ()


def test_only_what_is_kept_can_be_declared_and_what_is_released_is_not_kept() -> None:
    with pytest.raises(InvalidParameter, match="independent must name columns that are kept"):
        PassThrough.of(["a"], ["b"], ["x"])
    with pytest.raises(InvalidParameter, match="keep must not name a column that is released"):
        PassThrough.of(["a", "x"], [], ["x"])


def test_a_group_is_the_same_however_another_file_wrote_its_values() -> None:
    learnt = Groups.of({"k": [1, 2.0, None]}, ["k"])
    assert learnt.owners({"k": ["2", "1", ""]}, "frame").tolist() == [2, 1, 0]
    with pytest.raises(BadTable, match="row 3: "):
        learnt.owners({"k": ["2", "1", "", " "]}, "frame")


CELLS = ["", " ", "NaN", "nan", None, float("nan"), 1, 1.0, "1", True, 0.0, -0.0]


def test_cells_that_leave_differently_are_different_groups() -> None:
    assert Groups.of({"k": CELLS * 2}, ["k"]).sizes.tolist() == [2] * len(CELLS)


@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame, pa.table, dict])
def test_moments_a_nanosecond_apart_are_different_groups(kind: Any) -> None:
    frame = kind({"k": np.array([0, 1, 1000, 1], dtype="datetime64[ns]")})
    found = Groups.of(written_columns(frame, ["k"], "frame"), ["k"])
    assert sorted(found.sizes.tolist()) == [1, 1, 2]


def test_how_a_kept_cell_is_written_tells_nothing_of_the_column() -> None:
    values = np.random.default_rng(1).choice(["pos", "neg"], 200)
    wards = ["" if value == "pos" else "NaN" for value in values]
    done = privatize({"x": values, "ward": wards}, "x", epsilon=0.1, keep=["ward"])
    assert len(done.knowledge.priors) == 2
    assert done.knowledge.priors.max(axis=1).min() > 0.98
    with pytest.raises(BadTable, match="one way"):
        given: dict[str, Any] = {"prior": "features:ward", "keep": ["ward"]}
        privatize({"x": values, "ward": wards}, "x", epsilon=0.1, **given)


def test_a_row_of_no_group_is_named_and_its_value_is_not() -> None:
    learnt = Groups.of({"k": ["secret-a", "secret-b"]}, ["k"])
    with pytest.raises(BadTable, match="row 2: ") as problem:
        learnt.owners({"k": ["secret-a", "secret-c"]}, "live.csv")
    assert "secret" not in str(problem.value)


def test_groups_too_small_to_learn_from_are_refused() -> None:
    Groups.of({"k": ["a"] * FEWEST_ROWS}, ["k"]).check_sizes("frame")
    with pytest.raises(BadTable, match="1 of 2 have fewer"):
        Groups.of({"k": ["a"] * FEWEST_ROWS + ["b"]}, ["k"]).check_sizes("frame")
