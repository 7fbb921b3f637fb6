"""Times of rows: their order and their phases, as the calendar of another library has them."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from sfumato.core.errors import InvalidParameter
from sfumato.series.calendar import Season, are_moments, moments
from sfumato.tables.moments import kept_rows, values_of
from sfumato.tables.problems import BadTable

HOURS = [datetime(2011, 12, 30) + timedelta(hours=7 * step) for step in range(60)]


@pytest.mark.parametrize(
    ("name", "period", "pattern"),
    [("weekday", 7, "%w"), ("hour", 24, "%H"), ("month", 12, "%m"), ("hour-of-week", 168, "")],
)
def test_phases_are_those_of_the_calendar(name: str, period: int, pattern: str) -> None:
    season = Season.of(name)
    assert season.period == period
    told = season.phases([moment.isoformat() for moment in HOURS], "hours.csv")
    shift = {"weekday": 6, "month": 11}.get(name, 0)
    if pattern:
        # Weeks begin on Sunday there, and months with 1.
        expected = [(int(moment.strftime(pattern)) + shift) % period for moment in HOURS]
    else:
        monday = datetime(2011, 12, 26)
        expected = [int((moment - monday).total_seconds() // 3600) % 168 for moment in HOURS]
    assert told == expected


def test_times_of_every_kind_are_read() -> None:
    cells = ["2011-01-31", "2011-01-31T07:00", " 2011-02-01 00:00:00 "]
    assert [moment.day for moment in moments(cells, "t.csv")] == [31, 31, 1]
    read: list[Any] = [date(2011, 1, 1), datetime(2011, 1, 2)]  # as Parquet files have them
    assert are_moments(read)
    assert not are_moments(["2011-01-01", "soon"]) and not are_moments([]) and not are_moments([3])


@pytest.mark.parametrize(
    ("cells", "row"),
    [
        (["2011-01-02", "2011-01-01"], 2),
        (["2011-01-01", "", "2011-01-02"], 2),
        (["4711.5x"], 1),
        (["2011-01-01", datetime(2011, 1, 2, tzinfo=UTC)], 2),
    ],
)
def test_times_that_are_none_or_run_backwards_are_refused_with_their_row(
    cells: list[Any], row: int
) -> None:
    with pytest.raises(BadTable, match=f"row {row}") as refusal:
        moments(cells, "t.csv")
    assert "4711" not in str(refusal.value)


@pytest.mark.parametrize("bad", ["", "week", "-7", "7.5", "Weekday"])
def test_other_periods_are_refused(bad: str) -> None:
    with pytest.raises(InvalidParameter, match="period"):
        Season.of(bad)


def test_a_calendar_needs_times() -> None:
    with pytest.raises(InvalidParameter, match="times of the rows"):
        Season.of("weekday").estimate(None, "t.csv")
    assert Season.of("7").estimate(None, "t.csv").name == "bank 1.0 of 7 phases"


def test_rows_without_a_value_are_refused_dropped_or_pass() -> None:
    cells = ["4", "", None, "nan", "5"]
    assert kept_rows(cells, "drop", "t.csv") == [0, 4]
    assert kept_rows(cells, "skip", "t.csv") == [0, 1, 2, 3, 4]
    assert values_of(cells, [0, 1, 4], "t.csv") == [4.0, None, 5.0]
    with pytest.raises(BadTable, match="row 2"):
        kept_rows(cells, "refuse", "t.csv")
    for wrong in ("symbol", "guess"):
        with pytest.raises(InvalidParameter, match="missing"):
            kept_rows(cells, wrong, "t.csv")
    with pytest.raises(BadTable, match="row 3"):
        values_of(["1", "", "4711.5x"], [0, 1, 2], "t.csv")
