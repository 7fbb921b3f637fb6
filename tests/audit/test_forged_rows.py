"""Forged rows and streams left out are told alike by array and row by row; no other is accused."""

from pathlib import Path

import pytest

from sfumato.stream import audit_columns
from tests.audit.scene import Scene
from tests.audit.test_columns import by_rows, rows_alone, small_pieces
from tests.shell.running import Result
from tests.shell.tables import read

__all__ = ["small_pieces"]


def told_alike(scene: Scene, *more: object) -> Result:
    together = scene.audit("--json", *more)
    with by_rows():
        assert scene.audit("--json", *more) == together
    return together


def test_a_release_without_a_value_is_a_problem_of_its_row(
    compiled_scenes: dict[str, Scene], tmp_path: Path
) -> None:
    scene = compiled_scenes["csv"].copied(tmp_path / "scene")
    scene.cell(50, "released", lambda text: "")
    found = told_alike(scene)
    assert found.code == 1 and "row 50: " in found.document["problems"][0]


@pytest.fixture
def latecomer(
    compiled_scenes: dict[str, Scene], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Scene, str]:
    """A release in which one stream comes after all others, blocks later; its name."""
    monkeypatch.setattr(audit_columns, "_CELLS", 1)
    scene = compiled_scenes["csv"].copied(tmp_path / "scene")
    late = str(read(scene.private)[0]["person"])
    scene.cells(lambda rows: [rows[0], *sorted(rows[1:], key=lambda row: row[0] == late)])
    return scene, late


def test_a_stream_that_comes_late_can_be_asked_for(latecomer: tuple[Scene, str]) -> None:
    scene, late = latecomer
    with rows_alone() as row:
        assert scene.audit("--only", late).code == 0
    assert row.call_count == 0
    found = told_alike(scene, "--only", late)
    assert found.code == 0 and list(found.document["streams"]) == [late]


def test_a_stream_that_is_not_there_is_named(latecomer: tuple[Scene, str]) -> None:
    scene, _ = latecomer
    found = told_alike(scene, "--only", "nobody")
    assert found.code == 2 and "nobody" in found.out + found.err


def test_one_forged_row_accuses_no_other_and_a_sound_ledger_once(
    compiled_scenes: dict[str, Scene], tmp_path: Path
) -> None:
    scene = compiled_scenes["ledger"].copied(tmp_path / "scene")
    values = sorted({str(row["released"]) for row in read(scene.private)})
    scene.cell(20, "released", lambda text: next(each for each in values if each != text))
    found = told_alike(scene, "--ledger", scene.ledger)
    assert found.code == 1
    problems = found.document["problems"]
    assert problems and all(each.startswith("row 20: ") for each in problems)
