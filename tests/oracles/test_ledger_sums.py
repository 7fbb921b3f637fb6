"""The independent script finds what it is there to find."""

import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.oracles import ledger_sums
from tests.oracles.ledger_sums import RawLedger

SOUND = RawLedger(
    [("a", "u", 0, "released", "x", 1.0, 2.0), ("b", "u", 1, "released", "y", 0.5, 1.0)],
    {"u": (2, 1.5, 3.0)},
    2,
)


def test_nothing_is_wrong_with_a_sound_ledger() -> None:
    assert SOUND.problems(limit=1.5) == []


@pytest.mark.parametrize(
    ("planted", "told"),
    [
        (replace(SOUND, entries=3), "3 rows are counted"),
        (replace(SOUND, events=[*SOUND.events, SOUND.events[0]]), "an id has 2 answers"),
        (replace(SOUND, events=SOUND.events[1:]), "a moment is left out"),
        (replace(SOUND, positions={}), "streams with answers"),
        (replace(SOUND, positions={"u": (3, 1.5, 3.0)}), "3 answers are counted"),
        (replace(SOUND, positions={"u": (2, 1.4, 3.0)}), "the leakage is not the sum"),
        (replace(SOUND, positions={"u": (2, 1.5, 2.9)}), "the model-free leakage is not the sum"),
    ],
)
def test_what_is_wrong_is_found(planted: RawLedger, told: str) -> None:
    assert any(told in problem for problem in planted.problems(limit=5.0))


def test_a_budget_that_is_exceeded_is_found() -> None:
    assert "over the budget of 1.4" in SOUND.problems(limit=1.4)[0]


def test_the_script_ends_with_1_where_something_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "town.ledger"
    database = sqlite3.connect(file)
    database.executescript(
        "CREATE TABLE events (id, stream, sequence, outcome, released, leakage, model_free);"
        "CREATE TABLE streams (stream, sequence, leakage, model_free);"
        "CREATE TABLE ledger (entries);"
        "INSERT INTO events VALUES ('a', 'u', 0, 'released', 'x', 1.0, 2.0);"
        "INSERT INTO streams VALUES ('u', 1, 1.0, 2.0); INSERT INTO ledger VALUES (1);"
    )
    database.close()
    command = [sys.executable, ledger_sums.__file__, str(file), "--limit"]
    assert subprocess.run([*command, "1"], check=False, capture_output=True).returncode == 0
    assert subprocess.run([*command, "0.9"], check=False, capture_output=True).returncode == 1


def test_no_code_of_the_product_is_used() -> None:
    assert "sfumato" not in [
        line.split()[1].partition(".")[0]
        for line in Path(ledger_sums.__file__).read_text().splitlines()
        if line.strip().startswith(("import ", "from "))
    ]
