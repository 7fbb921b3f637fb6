"""By columns as row by row: outputs, ledgers, reports, errors, to the last bit."""

import random
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.stream.input_rows import Reading
from sfumato.tables.cells import Late
from tests.stream.both_ways import ENCODINGS, Day, model_of, plan_of, same_both_ways
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
            f"{1000 + row // 3 * 3 if numbers else 1000 + row}",
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
    assert left.reports[0].rows == 90  # type: ignore[attr-defined]
    assert left.progress == [16, 48, 90]


@pytest.mark.parametrize("name", ENCODINGS)
def test_values_are_encoded_alike(tmp_path: Path, name: str) -> None:
    rows = records(name, 60)
    left = same_both_ways(tmp_path / "day", name, plan_of(name), [Day(rows)])
    assert left.reports[0].rows == 60  # type: ignore[attr-defined]


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("fallback", [sf.Fallback.REFUSE, sf.Fallback.SUPPRESS, sf.Fallback.REPEAT])
def test_budgets_are_spent_alike(tmp_path: Path, budget: str, fallback: sf.Fallback) -> None:
    plan = plan_of("words", budget, on_exhausted=fallback)
    same_both_ways(tmp_path / "day", "words", plan, [Day(records("words", 70))], ledger=True)
