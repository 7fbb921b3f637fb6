"""Every way to cheat is found by whoever is said to find it, and by nobody below."""

from pathlib import Path

import pytest

from tests.audit.catalogue import TRICKS, Trick
from tests.audit.scene import Level, Scene


@pytest.mark.parametrize("name", ["csv", "jsonl", "packed", "parquet", "batch", "grid"])
def test_an_honest_release_passes_at_every_level(scenes: dict[str, Scene], name: str) -> None:
    for against in ((), ("--against", scenes[name].live)):
        result = scenes[name].audit(*against)
        assert result.code == 0, result.out


@pytest.mark.parametrize("trick", TRICKS, ids=lambda trick: trick.name)
def test_every_trick_is_found(scenes: dict[str, Scene], tmp_path: Path, trick: Trick) -> None:
    scene = scenes[trick.scene].copied(tmp_path / "scene")
    trick.do(scene)
    more = {
        Level.LEDGER: ("--ledger", scene.ledger),
        Level.RAW_DATA: ("--against", scene.live),
    }.get(trick.level, ())
    if more:
        assert scene.audit(*trick.options).code == 0, "whoever sees outputs alone cannot know"
    result = scene.audit(*trick.options, *more)
    assert result.code == (2 if result.err else 1), result.out
    assert trick.says in result.out + result.err


def test_there_are_many_tricks_of_different_names() -> None:
    assert len({trick.name for trick in TRICKS}) == len(TRICKS) >= 50
