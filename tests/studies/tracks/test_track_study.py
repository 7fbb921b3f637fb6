"""The study of tracks: certified ways keep their leakage, and sentences follow the numbers."""

from dataclasses import replace

import numpy as np
import pytest

from sfumato.studies.data.sequence_data import TOWN, halves
from sfumato.studies.study import Setting
from sfumato.studies.tracks.public_rivals import Scales
from sfumato.studies.tracks.track_points import (
    FIXED,
    SILENCE,
    TrackPoint,
    best_settings,
    cap_points,
    world_of,
)
from sfumato.studies.tracks.track_rivals import UNBOUNDED
from sfumato.studies.tracks.track_study import facts


@pytest.fixture(scope="module")
def points() -> list[TrackPoint]:
    found = halves(TOWN, Setting(), 5, 3)
    world = world_of(found)
    return cap_points(found, world, Scales(world.places, count=40), 0.5, seed=1)


def test_every_way_is_there_and_keeps_its_leakage(points: list[TrackPoint]) -> None:
    ways = [point.way for point in points]
    assert len(ways) == len(set(ways)) == 13
    bounded = [point for point in points if point.way not in (UNBOUNDED, FIXED)]
    assert all(point.sip <= 0.5 + 1e-9 for point in bounded)
    assert all(point.sip <= point.ldp + 1e-9 for point in points)
    assert next(point for point in points if point.way == UNBOUNDED).sip == np.inf


def test_sentences_say_who_wins(points: list[TrackPoint]) -> None:
    def with_losses(far: float, planar: float) -> list[TrackPoint]:
        losses = {"far-sighted": far, "planar Laplace": planar, SILENCE: 3.0}
        return [
            replace(point, guessed=losses.get(point.way, 2.5), shown=losses.get(point.way, 2.5))
            for point in points
        ]

    won, lost = facts(with_losses(1.0, 2.0)), facts(with_losses(2.0, 1.0))
    assert "0.50 to 0.50 times" in won[0]
    assert won[1].endswith("none")
    assert "2.00 to 2.00 times" in lost[0]
    assert "planar Laplace: 1.000 against 2.000" in lost[1]
    assert won[3].endswith("never")
    assert "planar Laplace" in facts(with_losses(1.0, 4.0))[3]


def test_sentences_hold_rivals_at_twice_the_cap_against_ours(points: list[TrackPoint]) -> None:
    def at(planar: float) -> str:
        louder = [
            replace(point, cap=1.0, guessed=planar if point.way == "planar Laplace" else 9.0)
            for point in points
        ]
        return facts([*(replace(point, guessed=2.0) for point in points), *louder])[2]

    assert at(3.0).endswith("no worse 1 of 1 times")
    assert at(1.0).endswith("no worse 0 of 1 times")


def test_a_rival_is_judged_by_its_best_setting(points: list[TrackPoint]) -> None:
    planar = next(point for point in points if point.way == "planar Laplace")
    worse = replace(planar, guessed=planar.guessed + 1, setting="worse")
    assert best_settings([worse, planar, worse]) == [planar]
