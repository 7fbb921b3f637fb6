"""Times as whole numbers: in the order of the times themselves, and back again."""

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.stream.column_times import Clock, TimeKeys, keys_of, time_keys, time_texts
from sfumato.stream.column_values import Irregular
from sfumato.tables.batches import Column
from sfumato.tables.cells import Time

moments = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))
zones = st.integers(-12, 12).map(lambda hours: timezone(timedelta(hours=hours)))
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "whole": st.integers(-(2**62), 2**62),
    "floats": st.floats(-1e12, 1e12).map(lambda x: round(x, 4)),
    "whole text": st.integers(-(10**15), 10**15).map(str),
    "text": st.decimals(-1000, 1000, places=3).map(str),
    "moments": moments,
    "moments in text": moments.map(lambda x: x.isoformat()),
    "seconds in text": moments.map(lambda x: x.isoformat(" ", "seconds")),
    "days": st.dates(date(1, 1, 2), date(9999, 12, 30)),
    "zoned": st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)),
    "zones in text": st.builds(lambda x, z: x.replace(tzinfo=z).isoformat(), moments, zones),
}


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_keys_compare_as_times_do(kind: str, data: Any) -> None:
    cells = data.draw(st.lists(KINDS[kind], min_size=1, max_size=12))
    column = Column(pa.array(cells))
    times = [Time.of(cell) for cell in column.cells()]
    keys = time_keys(column, np.ones(len(cells), dtype=np.bool_))
    for i, one in enumerate(times):
        assert keys.time(i).text == one.text
        for j, other in enumerate(times):
            assert one.before(other) == bool(keys.keys[i] < keys.keys[j])
            assert (one.value == other.value) == bool(keys.keys[i] == keys.keys[j])
    assert time_texts(column) == [time.text for time in times]
    assert keys_of(times).on(keys.clock).keys.tolist() == keys.keys.tolist()


def test_whole_numbers_go_on_as_floats_where_they_are_exact() -> None:
    whole, real = TimeKeys(Clock.WHOLE, np.array([-3, 0, 2**53])), keys_of([Time.of("0.5")])
    moved = whole.on(Clock.REAL)
    assert [moved.time(place).text for place in range(3)] == ["-3", "0", str(2**53)]
    assert (moved.keys < real.keys[0]).tolist() == [True, True, False]
    with pytest.raises(Irregular):
        TimeKeys(Clock.WHOLE, np.array([2**53 + 1])).on(Clock.REAL)
    with pytest.raises(Irregular):
        real.on(Clock.WHOLE)


ODD = {
    "nothing": [None, 3],
    "empty": ["", "3"],
    "no time": ["soon"],
    "sixteen": ["0x10"],
    "of two kinds": ["3", "2026-11-17"],
    "with and without a zone": ["2026-11-17T08:00", "2026-11-17T08:00Z"],
    "more digits than a float has": ["0.12345678901234567890"],
    "a year that Python lacks": ["0000-01-01"],
    "no number": ["nan"],
}


@pytest.mark.parametrize("what", ODD)
def test_what_is_odd_goes_row_by_row(what: str) -> None:
    column = Column(pa.array(ODD[what]))
    with pytest.raises(Irregular):
        time_keys(column, np.ones(len(column), dtype=np.bool_))


def test_rows_that_are_left_out_may_hold_anything() -> None:
    column = Column(pa.array(["3", "soon", "5"]))
    keys = time_keys(column, np.array([True, False, True]))
    assert (keys.clock, keys.keys[[0, 2]].tolist()) == (Clock.WHOLE, [3, 5])
