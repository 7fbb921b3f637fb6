"""An audit of many rows at once says what one of row by row says, to the last digit."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from sfumato.stream import audit, audit_columns
from sfumato.stream.audit_walk import Walk
from tests.audit.catalogue import TRICKS, Trick
from tests.audit.scene import Level, Scene

FEW, PIECE = 2, 7
"""Sizes that let small files go by array, and what is unusual in them by pieces."""


@pytest.fixture(autouse=True)
def small_pieces() -> Iterator[None]:
    with (
        mock.patch.object(audit_columns, "_FEW", FEW),
        mock.patch.object(audit_columns, "CHUNK_ROWS", PIECE),
    ):
        yield


def by_rows() -> Any:
    """Look at every row by itself."""
    return mock.patch.object(audit, "_walk_under", lambda plan: (Walk, {}))


def rows_alone() -> Any:
    """Count the rows that are looked at one by one."""
    return mock.patch.object(Walk, "row", autospec=True, side_effect=Walk.row)


KINDS = ["csv", "jsonl", "packed", "parquet", "grid"]


@pytest.mark.parametrize("name", KINDS)
def test_an_honest_file_is_verified_by_array_alone(
    compiled_scenes: dict[str, Scene], name: str
) -> None:
    scene = compiled_scenes[name]
    with rows_alone() as row:
        together = scene.audit("--json", "--against", scene.live)
    assert together.code == 0 and row.call_count == 0
    with by_rows(), rows_alone() as row:
        alone = scene.audit("--json", "--against", scene.live)
    assert row.call_count > 0
    assert together.out == alone.out


# Coins need many rows to be told fair: those are for the long run of tests, but for two.
QUICK = ("never the truth", "suppressing exactly at one place, as if it were unknown")
TRIED = [
    pytest.param(
        trick,
        id=trick.name,
        marks=pytest.mark.slow if trick.scene == "long" and trick.name not in QUICK else (),
    )
    for trick in TRICKS
    if trick.scene != "batch"
]


@pytest.mark.parametrize("trick", TRIED)
def test_every_trick_is_told_as_row_by_row(
    compiled_scenes: dict[str, Scene], tmp_path: Path, trick: Trick
) -> None:
    scene = compiled_scenes[trick.scene].copied(tmp_path / "scene")
    trick.do(scene)
    more = {
        Level.LEDGER: ("--ledger", scene.ledger),
        Level.RAW_DATA: ("--against", scene.live),
    }.get(trick.level, ())
    together = scene.audit("--json", *trick.options, *more)
    with by_rows():
        alone = scene.audit("--json", *trick.options, *more)
    assert together == alone
    assert together.code != 0


def test_a_moment_that_is_left_out_at_the_end_is_told_alike(
    compiled_scenes: dict[str, Scene], tmp_path: Path
) -> None:
    scene = compiled_scenes["csv"].copied(tmp_path / "scene")
    scene.cell(-1, "sequence", lambda text: str(int(text) + 1))
    together = scene.audit("--json")
    with by_rows():
        assert scene.audit("--json") == together
    assert "sequence number must be" in together.out
