"""Gaze on a grid: what is read, how it is cut, and its stand-in."""

import gzip
from pathlib import Path

import pytest

from sfumato.core.alphabet import Label
from sfumato.studies.data.gaze_data import Gaze, Grid, Viewer, gaze, simulated_gaze

HEAD = "user,kind,stimulus,t_ms,x,y,label\n"


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    """Two people: one for 8 slots of 20 ms at 500 Hz, one for 4, of which one is lost."""
    lines = [f"b,img,sky,{2 * t},{100 * (t // 20)},700,1\n" for t in range(80)]
    lines += [
        f"a,dots,one,{20 * t},{0 if t == 2 else 1000},{0 if t == 2 else 30},1\n" for t in range(4)
    ]
    path = tmp_path / "gaze.csv.gz"
    with gzip.open(path, "wt") as text:
        text.writelines([HEAD, *lines])
    return path


def test_a_slot_of_20_ms_gives_one_value_and_lost_samples_none(recordings: Path) -> None:
    seen = gaze(recordings, Grid(10, 2), least=1)
    assert [viewer.name for viewer in seen.viewers] == ["a", "b"]
    assert seen.viewers[0].trials == [["9 0"] * 3]
    assert seen.viewers[1].trials == [["0 1", "0 1", "0 1", "0 1", "1 1", "1 1", "2 1", "2 1"]]
    assert not seen.simulated


def test_short_recordings_are_left_out_and_so_are_people_without_any(recordings: Path) -> None:
    assert [viewer.name for viewer in gaze(recordings, Grid(2, 2), least=5).viewers] == ["b"]


def test_halves_make_up_a_recording_and_pieces_come_from_the_second() -> None:
    seen = simulated_gaze(Grid(4, 3), people=3, seconds=7)
    for viewer in seen.viewers:
        for whole, first, second in zip(
            viewer.trials, viewer.training, viewer.testing, strict=True
        ):
            assert first + second == whole
            assert len(first) == len(whole) // 2
    trial: list[Label] = [*["0 0"] * 5, *["1 0"] * 6]
    own = Gaze((Viewer("a", [trial]),), Grid(2, 1).alphabet, simulated=True)
    assert own.pieces(3) == [["1 0"] * 3, ["1 0"] * 3]


def test_what_was_seen_in_the_second_halves_teaches_nothing() -> None:
    trial: list[Label] = [*["0 0"] * 200, *["1 0"] * 200]
    chain = Gaze((Viewer("a", [trial]),), Grid(2, 1).alphabet, simulated=True).chain()
    assert chain.transition()[0, 1] < 0.01


def test_without_a_file_people_are_simulated_and_marked() -> None:
    seen = gaze(None, Grid(5, 4))
    assert seen.simulated
    assert len(seen.viewers) == 10
    places = set(seen.alphabet.labels)
    assert all(cell in places for v in seen.viewers for trial in v.trials for cell in trial)
    again = gaze(None, Grid(5, 4))
    assert [v.trials for v in again.viewers] == [v.trials for v in seen.viewers]


@pytest.mark.parametrize("order", [1, 2])
def test_a_chain_of_either_order_has_full_support(order: int) -> None:
    chain = simulated_gaze(Grid(3, 2), people=2, seconds=5).chain(order)
    assert chain.order == order
    assert chain.full_support
