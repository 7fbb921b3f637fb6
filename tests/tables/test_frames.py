"""Frames of any kind as plain columns."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato import privatize
from sfumato.tables.frames import columns_of
from sfumato.tables.problems import BadTable

MOMENT, DAY = datetime(2026, 11, 15, 8, 30), date(2026, 11, 15)
COLUMNS: dict[str, list[Any]] = {
    "kind": ["red", None],
    "moment": [MOMENT, None],
    "day": [DAY, None],
    "price": [Decimal("2.50"), None],
    "wait": [timedelta(seconds=90), None],
}
PLAIN = {
    "kind": ["red", None],
    "moment": ["2026-11-15T08:30:00", None],
    "day": ["2026-11-15", None],
    "price": [2.5, None],
    "wait": [90.0, None],
}
FRAMES: dict[str, Any] = {
    "pandas": pd.DataFrame(COLUMNS).astype({"kind": "category"}),
    "polars": pl.DataFrame(COLUMNS).with_columns(pl.col("kind").cast(pl.Categorical)),
    "pyarrow": pa.table(COLUMNS),
    "mapping": COLUMNS,
}


@pytest.mark.parametrize("kind", FRAMES)
def test_categories_moments_days_and_decimals_are_plain_in_every_frame(kind: str) -> None:
    assert columns_of(FRAMES[kind], list(PLAIN), "frame") == PLAIN


def test_moments_of_numpy_are_moments_at_every_precision() -> None:
    for unit in ("s", "ms", "us", "ns"):
        cells = np.array(["2026-11-15T08:30:00", "NaT"], dtype=f"datetime64[{unit}]")
        assert columns_of({"t": cells}, ["t"], "frame")["t"] == ["2026-11-15T08:30:00", None]


def test_a_column_of_categories_or_moments_can_be_released() -> None:
    days = pd.to_datetime(["2026-11-15", "2026-11-16"] * 30)
    frame = pd.DataFrame({"kind": pd.Categorical(["a", "b"] * 30), "day": days})
    for name in ("kind", "day"):
        done = privatize(frame, name, epsilon=1.0, order="kept")
        assert len(done.frame) == 60


def test_a_wrong_name_is_answered_with_the_names_there_are() -> None:
    for frame in FRAMES.values():
        with pytest.raises(BadTable, match="'nothing'; it has 'kind', 'moment', 'day'"):
            columns_of(frame, ["nothing"], "frame")
