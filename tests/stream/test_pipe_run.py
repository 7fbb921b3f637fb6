"""Rows that wait in a pipe are answered together, as if each had come alone."""

import io
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import sfumato as sf
from sfumato.stream.input_rows import Reading
from sfumato.stream.plan import Plan
from sfumato.stream.release_run import RunSpec, release_table
from sfumato.tables.cells import Missing
from sfumato.tables.readers import Table
from tests.shell.tables import csv_bytes
from tests.stream.both_ways import COLUMNS, model_of, plan_of
from tests.stream.fleet_scripts import SECRET
from tests.stream.test_column_run import READINGS, Records, records


class Left:
    """What a release through a pipe leaves."""

    def __init__(self, folder: Path, plan: Plan, reading: Reading, parts: list[bytes]) -> None:
        out, waiting, ledger = io.TextIOWrapper(io.BytesIO()), iter(parts), folder / "ledger"
        spec = RunSpec(reading=reading, ledger=ledger, randomness=sf.keyed(SECRET))
        folder.mkdir(parents=True)
        with (
            mock.patch("sfumato.tables.pipes.os.read", lambda *_: next(waiting, b"")),
            mock.patch("sys.stdin", mock.Mock(fileno=lambda: -1)),
            mock.patch("sys.stdout", out),
        ):
            try:
                tables = Table.at("-"), Table.at("-")
                self.report: object = release_table(*tables, model_of("words"), plan, spec)
            except sf.SfumatoError as problem:
                self.report = str(problem)
        out.flush()
        self.output = out.buffer.getvalue().decode()
        with sqlite3.connect(ledger) as database:
            columns = "id, place, stream, sequence, released, outcome, leakage"
            found = database.execute(f"SELECT {columns} FROM events ORDER BY place").fetchall()
            self.answers = [(str(id_).split(":")[-1], *rest) for id_, *rest in found]


def assert_alike(folder: Path, plan: Plan, reading: Reading, rows: Records) -> Left:
    """However rows come, the same leaves, is kept and is said; what it was."""
    data = csv_bytes(COLUMNS, rows)
    lines = data.splitlines(keepends=True)
    cuts = {
        "one by one": lines,
        "together": [data],
        "in parts": [data[start : start + 100] for start in range(0, len(data), 100)],
    }
    found = {name: Left(folder / name, plan, reading, parts) for name, parts in cuts.items()}
    due = found["one by one"]
    for left in found.values():
        assert left.output == due.output
        assert left.report == due.report
        assert left.answers == due.answers
    return due


PLANS = {"policy": plan_of("words"), "solved": replace(plan_of("words"), policy=None)}


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("known", READINGS)
def test_rows_that_wait_are_answered_as_if_each_came_alone(
    tmp_path: Path, known: str, plan: str
) -> None:
    left = assert_alike(tmp_path, PLANS[plan], READINGS[known], records("words", 40))
    assert left.report.rows == 40  # type: ignore[attr-defined]
    assert left.output.count("\n") == 41


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize(
    "column, cell, rule",
    [(1, "nowhere", "value must be"), (1, "", "must not be"), (0, "x" * 1001, "'person'")],
)
def test_rows_before_a_bad_one_leave_and_those_after_it_are_not_drawn(
    tmp_path: Path, plan: str, column: int, cell: str, rule: str
) -> None:
    rows = records("words", 30)
    rows[20][column] = cell
    left = assert_alike(tmp_path, PLANS[plan], Reading(), rows)
    assert left.output.count("\n") == 21
    assert len(left.answers) == 20
    assert isinstance(left.report, str)
    assert left.report.startswith("-, row 21: ")
    assert rule in left.report


@pytest.mark.parametrize("plan", PLANS)
def test_a_retry_in_the_same_breath_has_the_answer_that_just_left(
    tmp_path: Path, plan: str
) -> None:
    rows = records("words", 20)
    again = [*rows[:12], rows[4], rows[11], *rows[12:], rows[19], rows[19]]
    left = assert_alike(tmp_path, PLANS[plan], READINGS["event"], again)
    assert len(left.answers) == 20
    lines = left.output.splitlines()[1:]
    assert lines[12] == lines[4]
    assert lines[-1] == lines[-2] == lines[-3]
    assert left.report.repeated == 4  # type: ignore[attr-defined]


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("known", ["event", "time", "event, time"])
def test_a_retry_with_another_value_or_a_step_back_is_refused_alike(
    tmp_path: Path, known: str, plan: str
) -> None:
    rows = records("words", 20)
    changed = [*rows[5][:1], "abc"[("abc".index(str(rows[5][1])) + 1) % 3], *rows[5][2:]]
    left = assert_alike(
        tmp_path / "a", PLANS[plan], READINGS[known], [*rows[:9], changed, *rows[9:]]
    )
    assert isinstance(left.report, str)
    assert left.output.count("\n") == 10


@pytest.mark.parametrize("fallback", [sf.Fallback.REFUSE, sf.Fallback.SUPPRESS])
def test_a_budget_that_ends_in_one_breath_is_told_alike(
    tmp_path: Path, fallback: sf.Fallback
) -> None:
    plan = plan_of("words", "horizon", on_exhausted=fallback)
    left = assert_alike(tmp_path, plan, Reading(), records("words", 60, streams=3))
    assert isinstance(left.report, str) == (fallback is sf.Fallback.REFUSE)


def test_missing_values_are_skipped_alike(tmp_path: Path) -> None:
    rows: Any = records("words", 30)
    for place in (3, 4, 17):
        rows[place][1] = ""
    for missing in (Missing.SKIP, Missing.DROP):
        reading = Reading(missing=missing)
        left = assert_alike(tmp_path / missing.value, PLANS["policy"], reading, rows)
        assert left.report.missing == 3  # type: ignore[attr-defined]
