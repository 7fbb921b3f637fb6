"""By columns as row by row: outputs, ledgers, reports, errors, to the last bit."""

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.store.protocol import Again
from sfumato.store.sqlite import SqliteStore
from sfumato.stream import seen_ids
from sfumato.stream.column_run import ColumnRun
from sfumato.stream.column_values import Irregular
from sfumato.stream.fleet_threads import FleetThreads
from sfumato.stream.input_rows import Reading
from sfumato.stream.row_run import RowRun
from sfumato.tables.batches import Batch
from sfumato.tables.cells import Late, Missing
from tests.shell.tables import FORMATS, arrow_table
from tests.stream.both_ways import (
    COLUMNS,
    ENCODINGS,
    Day,
    model_of,
    plan_of,
    released,
    same_both_ways,
)
from tests.stream.fleet_scripts import BUDGETS

Records = list[list[object]]


def records(name: str, rows: int, seed: int = 0, streams: int = 7) -> Records:
    """Regular rows: some streams, their values, an id each, times that rise."""
    draw = random.Random(seed)
    labels = [*map(str, model_of(name).alphabet.labels)]
    numbers = "bins" in name or "grid" in name
    return [
        [
            f"u{draw.randrange(streams)}",
            f"{draw.uniform(0, 4 if 'bins' in name else 2):.3f}"
            if numbers
            else draw.choice(labels),
            f"{draw.uniform(-1, 1):.3f}",
            f"e{seed}-{row}",
            f"{1000 + row}",
            f"room {row % 3}",
        ]
        for row in range(rows)
    ]


READINGS = {
    "row": Reading(),
    "event": Reading(event="id", keep=("place",), independent=("place",)),
    "event, time": Reading(event="id", time="when", keep=("when",)),
    "time": Reading(time="when", keep=("when", "place"), independent=("place",)),
    "time, late": Reading(time="when", late=Late.ACCEPT),
}


@pytest.mark.parametrize("ledger", [False, True], ids=["alone", "ledger"])
@pytest.mark.parametrize("known", READINGS)
def test_rows_are_answered_alike_whatever_tells_events_apart(
    tmp_path: Path, known: str, ledger: bool
) -> None:
    day = Day(records("words", 90), READINGS[known])
    left = same_both_ways(tmp_path / "day", "words", plan_of("words"), [day], ledger=ledger)
    assert left.reports[0].rows == 90
    assert left.progress == [16, 48, 90]


@pytest.mark.parametrize("name", ENCODINGS)
def test_values_are_encoded_alike(tmp_path: Path, name: str) -> None:
    rows = records(name, 60)
    left = same_both_ways(tmp_path / "day", name, plan_of(name), [Day(rows)])
    assert left.reports[0].rows == 60


@pytest.mark.parametrize("budget", BUDGETS)
def test_budgets_are_spent_alike(tmp_path: Path, budget: str) -> None:
    plan = plan_of("words", budget)
    same_both_ways(tmp_path / "day", "words", plan, [Day(records("words", 70))], ledger=True)


def test_regular_rows_never_go_one_by_one(tmp_path: Path) -> None:
    """What the other tests compare is what it says."""
    with mock.patch.object(RowRun, "answered", side_effect=AssertionError):
        for known, ledger in (("row", False), ("time", False), ("event", True), ("time", True)):
            days = [Day(records("words", 90), READINGS[known])]
            plan = plan_of("words")
            left = released(tmp_path / "d", "words", plan, days, ledger=ledger, by_columns=True)
            assert left.progress == [16, 48, 90]


def test_numbered_rows_of_a_new_input_are_not_looked_up(tmp_path: Path) -> None:
    """No other input has its name; rows of one that is resumed, and of other ids, are."""
    day = Day(records("words", 40), READINGS["row"])
    days = [day, replace(day, again=Again.APPEND), replace(day, again=Again.RESUME)]
    with mock.patch.object(
        SqliteStore, "known", autospec=True, side_effect=SqliteStore.known
    ) as asked:
        released(tmp_path / "d", "words", plan_of("words"), days[:2], ledger=True, by_columns=True)
        assert asked.call_count == 0
        left = released(
            tmp_path / "d", "words", plan_of("words"), days, ledger=True, by_columns=True
        )
        assert asked.call_count > 0
    assert [report.repeated for report in left.reports] == [0, 0, 40]


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("name", ["words", "numbers", "grid"])
def test_formats_in_and_out(tmp_path: Path, suffix: str, name: str) -> None:
    reading = replace(READINGS["time"], missing=Missing.SKIP)
    rows = records(name, 60)
    rows[7][1] = rows[30][1] = None
    days = [Day(rows, reading, f"live.{suffix}", f"private.{suffix}")]
    # A value outside the alphabet would be suppressed, a missing one is skipped.
    plan = plan_of(name, on_unknown=sf.Fallback.SUPPRESS)
    left = same_both_ways(tmp_path / "day", name, plan, days)
    assert left.reports[0].missing == 2


def test_typed_columns_and_coded_text(tmp_path: Path) -> None:
    """Times as moments with and without a zone, days, floats; streams as numbers; coded words."""
    rows = records("numbers", 50)
    begin = datetime(2026, 11, 17, 8)
    times: dict[str, Sequence[object]] = {
        "moments": [begin + timedelta(seconds=row) for row in range(50)],
        "zoned": [datetime(2026, 11, 17, 8, second=row, tzinfo=UTC) for row in range(50)],
        "days": [begin.date() + timedelta(days=row) for row in range(50)],
        "floats": [row / 8 for row in range(50)],
        "whole floats": [float(row) for row in range(50)],
    }
    for kind, when in times.items():
        typed: Records = [
            [int(str(person)[1:]), int(str(value)), other, id_, moment, place]
            for (person, value, other, id_, _, place), moment in zip(rows, when, strict=True)
        ]
        days = [Day(typed, READINGS["time"], f"{kind}.parquet", "private.parquet")]
        left = same_both_ways(tmp_path / "d", "numbers", plan_of("numbers"), days, ledger=True)
        assert left.reports[0].rows == 50

    def coded(path: Path) -> None:
        table = arrow_table(COLUMNS, rows)
        for name in ("person", "value", "when"):
            place = COLUMNS.index(name)
            table = table.set_column(place, name, table[name].dictionary_encode())
        pyarrow.parquet.write_table(table, path)

    days = [Day(rows, READINGS["time"], "live.parquet", "private.parquet", write=coded)]
    same_both_ways(tmp_path / "coded", "numbers", plan_of("numbers"), days, ledger=True)


def change(rows: Records, row: int, column: str, cell: object) -> Records:
    changed = [list(record) for record in rows]
    changed[row][COLUMNS.index(column)] = cell
    return changed


REGULAR = records("words", 80)
IRREGULAR = {
    "a name is missing": ("row", change(REGULAR, 50, "person", "")),
    "a value is unknown": ("row", change(REGULAR, 50, "value", "q")),
    "a value is missing": ("row", change(REGULAR, 50, "value", "")),
    "an id twice": ("event", change(REGULAR, 60, "id", "e0-3")),
    "an id twice, close by": ("event", change(REGULAR, 60, "id", "e0-58")),
    "an id of another stream": ("event, time", change(REGULAR, 60, "id", "e0-0")),
    "no id": ("event", change(REGULAR, 60, "id", None)),
    "a time twice": ("time", change(change(REGULAR, 3, "person", "x"), 60, "person", "x")),
    "back in time": ("time", change(change(REGULAR, 60, "person", "u0"), 60, "when", "3")),
    "a time twice, late": ("time, late", change(REGULAR, 60, "person", REGULAR[61][0])),
    "no time": ("time", change(REGULAR, 60, "when", "soon")),
    "times of two kinds": ("time", change(REGULAR, 60, "when", "2026-11-17")),
    "a time of many digits": ("time", change(REGULAR, 60, "when", "1060.0000000000000000001")),
}
IRREGULAR["a time twice"][1][60][COLUMNS.index("when")] = "1003"
IRREGULAR["a time twice, late"][1][60][COLUMNS.index("when")] = "1061"


@pytest.mark.parametrize("ledger", [False, True], ids=["alone", "ledger"])
@pytest.mark.parametrize("what", IRREGULAR)
def test_what_is_not_regular_is_told_as_row_by_row(tmp_path: Path, what: str, ledger: bool) -> None:
    known, rows = IRREGULAR[what]
    days = [Day(rows, READINGS[known]), Day(records("words", 40, 1), READINGS[known], "more.csv")]
    left = same_both_ways(tmp_path / "day", "words", plan_of("words"), days, ledger=ledger)
    if what != "a time of many digits":
        assert left.reports[0][0] == "BadTable"


@pytest.mark.parametrize("known", READINGS)
def test_rows_one_by_one_in_between(tmp_path: Path, known: str) -> None:
    """Whatever goes one by one, before and after it others go by columns, with the same streams."""
    days = [Day(records("words", 300), READINGS[known])]
    by_columns, parts = ColumnRun._by_columns, itertools.count()

    def every_second(self: ColumnRun, part: Batch) -> Any:
        if next(parts) % 2:
            raise Irregular
        return by_columns(self, part)

    for ledger in (False, True):
        with mock.patch.object(ColumnRun, "_by_columns", every_second):
            left = same_both_ways(tmp_path / "d", "words", plan_of("words"), days, ledger=ledger)
        assert left.reports[0].rows == 300


@pytest.mark.parametrize("known", ["row", "event", "time"])
def test_resumed_and_appended_inputs(tmp_path: Path, known: str) -> None:
    rows, reading = records("words", 120), READINGS[known]
    later = records("words", 50, seed=2)
    for record in later:
        record[4] = str(5000 + int(str(record[4])))
    days = [
        Day(rows[:70], reading),
        Day(rows, reading, again=Again.RESUME, output="resumed.csv"),
        Day(rows, reading, again=Again.RESUME, output="again.csv"),
        Day(later, reading, again=Again.APPEND, output="appended.csv"),
        Day(change(rows, 30, "value", "c"), reading, again=Again.RESUME, output="other.csv"),
        Day(rows[:20], reading, again=Again.RESUME, output="short.csv"),
    ]
    left = same_both_ways(tmp_path / "days", "words", plan_of("words"), days, ledger=True)
    assert [getattr(report, "repeated", None) for report in left.reports[:4]] == [0, 70, 120, 0]


CELLS = {
    "words": st.sampled_from(["a", "b", "c", "a", "b", "c", "z", "", " ", "NaN", 'say "b"']),
    "words, order 2": st.sampled_from(["a", "b", "a", "b", "a", "b", "ab", None]),
    "numbers": st.sampled_from(["1", "2", "30", "1", "2", "2.0", "007", "nan", "30 "]),
    "with missing": st.sampled_from(["a", "b", "", "(missing)", " ", "c"]),
    "bins": st.sampled_from(["0", "1", "1.0", "2.49", "4", "4.1", "1e0", " 3", "+2", "", "inf"]),
    "clipped bins": st.sampled_from(["-3", "9e9", "1", "2.5", "nan", "0.0"]),
    "clipped grid": st.sampled_from(["-3", "2", "1", "1.5", "", "0"]),
}


@st.composite
def tables(draw: st.DrawFn, name: str) -> Records:
    """Tables of few streams; most cells regular, some odd, times that mostly rise."""
    odd = draw(st.sampled_from([0.0, 0.02, 0.2]))
    rows = draw(st.integers(1, 70))
    chance = draw(st.randoms(use_true_random=False))
    made = records(name, rows, draw(st.integers(0, 3)), draw(st.integers(1, 5)))
    for row, record in enumerate(made):
        if chance.random() < odd:
            record[1] = draw(CELLS[name])
        if chance.random() < odd / 4:
            record[chance.choice([0, 3, 4])] = draw(st.sampled_from(["", "u0", "7", "1e3", "x y"]))
        if chance.random() < odd / 2 and row:
            place = chance.choice([3, 4])
            record[place] = made[chance.randrange(row)][place]
    return made


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_table_is_released_alike(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    _compare_any(tmp_path_factory, data)


@pytest.mark.slow
@settings(max_examples=2_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_many_tables_are_released_alike(
    tmp_path_factory: pytest.TempPathFactory, data: Any
) -> None:
    _compare_any(tmp_path_factory, data)


def _compare_any(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    name = data.draw(st.sampled_from([*CELLS]), "model")
    unknown = data.draw(st.sampled_from([*sf.Fallback]), "unknown")
    fallbacks = [sf.Fallback.REFUSE, sf.Fallback.SUPPRESS, sf.Fallback.REPEAT]
    exhausted = data.draw(st.sampled_from(fallbacks), "exhausted")
    budget = data.draw(st.sampled_from([*BUDGETS]), "budget")
    plan = plan_of(name, budget, on_unknown=unknown, on_exhausted=exhausted)
    missing = [one for one in Missing if one is not Missing.SYMBOL or name == "with missing"]
    reading = replace(
        data.draw(st.sampled_from([*READINGS.values()]), "reading"),
        missing=data.draw(st.sampled_from(missing), "missing"),
    )
    first = data.draw(tables(name), "first")
    more = data.draw(tables(name), "more")
    again = data.draw(st.sampled_from([Again.RESUME, Again.APPEND]), "again")
    suffix = data.draw(st.sampled_from(["csv", "jsonl", "parquet"]), "suffix")
    days = [
        Day(first, reading, f"live.{suffix}", f"one.{suffix}"),
        Day(first + more, reading, f"live.{suffix}", f"two.{suffix}", again),
    ]
    ledger = data.draw(st.booleans(), "ledger")
    folder = tmp_path_factory.mktemp("both") / "days"
    same_both_ways(folder, name, plan, days if ledger else days[:1], ledger=ledger)


@pytest.mark.parametrize("budget", ["per step", "horizon", "bursts"])
def test_far_sighted_streams(tmp_path: Path, budget: str) -> None:
    plan = plan_of("words", budget, "far-sighted", on_exhausted=sf.Fallback.SUPPRESS)
    days = [Day(records("words", 60)), Day(records("words", 40, 1), again=Again.APPEND)]
    left = same_both_ways(tmp_path / "day", "words", plan, days, ledger=True)
    assert b",signal," in left.outputs[0]


@pytest.mark.parametrize("known", ["row", "time"])
def test_ctrl_c_in_the_middle(tmp_path: Path, known: str) -> None:
    """What was answered is whole; the rest is answered later, by the same coins."""
    rows, reading = records("words", 150), READINGS[known]
    days = [
        Day(rows, reading, output="part.csv", stop_after=40),
        Day(rows, reading, output="whole.csv", again=Again.RESUME),
    ]
    left = same_both_ways(tmp_path / "days", "words", plan_of("words"), days, ledger=True)
    first, second = left.reports
    assert first.interrupted and first.rows == 48
    assert (second.rows, second.repeated) == (150, 48)
    part, _, whole, _ = left.outputs
    assert whole.startswith(part)


def test_a_crash_between_commit_and_output(tmp_path: Path) -> None:
    """What was committed and never left is answered from the ledger."""
    rows, reading = records("words", 150), READINGS["row"]
    crash = Day(rows, reading, output="lost.csv", full_after=1)
    again = Day(rows, reading, output="whole.csv", again=Again.RESUME)
    left = same_both_ways(tmp_path / "days", "words", plan_of("words"), [crash, again], ledger=True)
    assert left.reports[0] == ("OSError", "the disk is full")
    assert left.reports[1].repeated == 48
    alone = same_both_ways(tmp_path / "alone", "words", plan_of("words"), [Day(rows, reading)])
    assert left.outputs[1] == alone.outputs[0]


@pytest.mark.parametrize("known", ["event", "time, late"])
def test_ids_that_look_alike_are_told_apart_by_the_table(tmp_path: Path, known: str) -> None:
    """A hash that two ids share costs time, and changes nothing."""
    twice = change(records("words", 90), 80, "id", "e0-3")
    twice[80][0], twice[80][4] = twice[3][0], twice[3][4]
    for rows, refused in ((records("words", 90), False), (twice, True)):
        with mock.patch.object(seen_ids, "hash", lambda id_: len(id_) % 2, create=True):
            days = [Day(rows, READINGS[known])]
            left = same_both_ways(tmp_path / "day", "words", plan_of("words"), days)
        assert isinstance(left.reports[0], tuple) == refused


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_old_answers_that_a_table_asks_for_twice_keep_their_cells(
    tmp_path: Path, suffix: str
) -> None:
    rows = records("words", 12)
    again = [*rows, [*rows[3][:5], "room 9"], rows[3]]
    days = [
        Day(rows, READINGS["event"], f"live.{suffix}", f"one.{suffix}"),
        Day(again, READINGS["event"], f"more.{suffix}", f"two.{suffix}", Again.APPEND),
    ]
    left = same_both_ways(tmp_path / "day", "words", plan_of("words"), days, ledger=True)
    two = left.outputs[2]
    assert isinstance(two, bytes)
    last = two.decode().splitlines()[-2:]
    assert ["room 9" in line for line in last] == [True, False]
    assert all("e0-3" in line for line in last)


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("budget", ["per step", "bursts"])
def test_threads_change_no_bit(tmp_path: Path, threads: int, budget: str) -> None:
    """Nor does Ctrl-C in the middle: outputs, ledgers and reports are those of one thread."""
    rows, reading = records("words", 400, streams=90), READINGS["time"]
    days = [
        Day(rows, reading, output="part.csv", stop_after=150),
        Day(rows, reading, output="whole.csv", again=Again.RESUME),
    ]
    plan = plan_of("words", budget, on_exhausted=sf.Fallback.SUPPRESS)
    one = released(tmp_path / "d", "words", plan, days, ledger=True, by_columns=True)
    asked = [replace(day, threads=threads) for day in days]
    with mock.patch.object(
        FleetThreads, "together", autospec=True, side_effect=FleetThreads.together
    ) as shared:
        several = released(tmp_path / "d", "words", plan, asked, ledger=True, by_columns=True)
    assert threads in {call.args[0].count for call in shared.call_args_list}
    assert one.reports[0].interrupted and several == one
