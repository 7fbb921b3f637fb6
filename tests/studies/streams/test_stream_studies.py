"""Studies of streams: what they measure, what they read, and how they are asked for."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from sfumato import SIP, Horizon, MarkovChain, Method, PerStep, Plan, loss
from sfumato.core.errors import InvalidParameter
from sfumato.stream import Bursts
from sfumato.stream.burst_search import expected_loss
from sfumato.stream.history_paths import draw_paths
from sfumato.stream.output_tree import OutputTree
from sfumato.stream.simulated_stream import as_simulation
from sfumato.studies.data import sequence_data
from sfumato.studies.data.sequence_data import ACTIVITIES, TOWN, VISITS, halves
from sfumato.studies.held_out import held_out
from sfumato.studies.streams import greedy as greedy_study
from sfumato.studies.streams import stream_caps, stream_totals
from sfumato.studies.study import DataFile, Setting
from tests.shell.running import call, done

STICKY = MarkovChain.from_matrix([[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
BIT = MarkovChain.from_matrix([[0.95, 0.05], [0.05, 0.95]])


# What true streams lose ---------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [Bursts(SIP(4.0), 12, None, 4, 1.3), Horizon(SIP(4.0), 12)])
def test_streams_of_the_model_lose_what_is_expected_of_it(budget: Horizon) -> None:
    plan = Plan(STICKY, budget, loss.hamming(STICKY.alphabet))
    streams = np.array(draw_paths(STICKY, 12, 600, seed=3))
    found = held_out(plan, streams, seed=2)
    expected = expected_loss(plan, 12, paths=400)
    for lost, mean in zip((found.guessed, found.held), expected, strict=True):
        error = float(lost.std()) / np.sqrt(len(lost))
        assert abs(lost.mean() - mean) < 4 * error
        assert error < 0.06 * mean
    assert found.charged.max() * 12 <= 4.0 + 1e-9


def test_the_tree_of_a_far_sighted_plan_loses_what_its_value_function_promises() -> None:
    plan = as_simulation(
        Plan(BIT, PerStep(SIP(0.5)), loss.hamming(BIT.alphabet), method=Method.FAR_SIGHTED)
    )
    moments = OutputTree(plan, loss.hamming(BIT.alphabet), 64, seed=1).moments(60)
    assert plan.sight is not None
    assert moments[30:, 0].mean() == pytest.approx(plan.sight.promised, rel=0.02)
    assert moments[:, 2] == pytest.approx(np.full(60, 0.5), abs=1e-6)


def test_a_greedy_release_leaves_most_of_its_budget_and_bursts_leave_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(greedy_study, "_PATHS", 24)
    story = greedy_study.greedy_story()
    greedy, far, bursts = story.ways
    assert greedy.spent < 0.25 * story.total
    assert bursts.spent == pytest.approx(story.total, rel=1e-6)
    assert story.bound < bursts.loss < 0.5 * far.loss < 0.5 * greedy.loss


# What is read -------------------------------------------------------------------------------------


def file_of(source: sequence_data.Source) -> DataFile:
    assert source.file is not None
    return source.file


def written(folder: Path, name: str, text: str) -> None:
    with gzip.open(folder / name, "wt") as file:
        file.write(text)


def test_halves_share_nobody_and_keep_the_length(tmp_path: Path) -> None:
    rows = [f"{person},{t},{person}{t % 2}" for person in range(6) for t in range(10)]
    written(tmp_path, file_of(ACTIVITIES).name, "subject,window,activity\n" + "\n".join(rows))
    found = halves(ACTIVITIES, Setting(tmp_path), 4, 100)
    assert not found.stand_in
    labels = found.alphabet.labels
    learnt = {str(value)[0] for path in found.learnt for value in path}
    kept = {str(labels[place])[0] for place in found.kept.ravel().tolist()}
    assert len(learnt) == len(kept) == 3
    assert not learnt & kept
    assert {len(path) for path in found.learnt} == {4}
    assert found.kept.shape == (6, 4)


def test_a_file_that_is_missing_is_named_with_its_source(tmp_path: Path) -> None:
    for source in (ACTIVITIES, VISITS):
        with pytest.raises(InvalidParameter) as caught:
            halves(source, Setting(tmp_path), 4, 10)
        assert file_of(source).name in str(caught.value)
        assert file_of(source).source in str(caught.value)


def test_without_a_folder_made_up_people_stand_in_and_the_seed_decides_who() -> None:
    first, again, other = (halves(ACTIVITIES, Setting(seed=seed), 12, 10) for seed in (1, 1, 2))
    assert first.stand_in
    assert first.kept.tolist() == again.kept.tolist() != other.kept.tolist()


def test_the_town_is_made_up_in_any_case_and_stands_in_for_nobody(tmp_path: Path) -> None:
    town = halves(TOWN, Setting(tmp_path), 12, 10)
    assert not town.stand_in
    assert town.kept.shape == (10, 12)
    assert town.unit == "km"


# How they are asked for ---------------------------------------------------------------------------


def test_a_total_is_studied_by_one_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_totals, "TASKS", stream_totals.TASKS[2:3])
    printed = done("study", "stream-totals", "--quick", "-o", tmp_path, "--json").document
    (record,) = printed["records"]
    assert record["data"] == TOWN.name
    assert record["bound"] < record["modelled"]
    assert record["hindsight"] <= record["own_held"] * 1.2
    assert record["bursts"] < record["evenly"] < record["silence"] * 1.1
    assert (tmp_path / "stream-totals" / "totals.png").read_bytes().startswith(b"\x89PNG")


def test_a_cap_is_studied_by_one_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_caps, "STAYS", (0.95,))
    monkeypatch.setattr(stream_caps, "CAPS", (1.0,))
    monkeypatch.setattr(stream_caps, "VALUES", 20)
    said = done("study", "stream-caps", "--quick", "-o", tmp_path)
    assert "a bit that stays with 0.95, 1\t" in said.out
    assert "gaps are large" in said.out


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        (("stream-totals", "--data", "nowhere"), "--data must name a folder; there is none"),
        (("stream-totals", "--data", "."), "hold uci_har_activity.csv.gz: UCI"),
    ],
)
def test_what_a_study_cannot_use_is_refused(
    tmp_path: Path, asked: tuple[str, ...], rule: str
) -> None:
    result = call("study", *asked, "-o", tmp_path / "none")
    assert result.code == 2
    assert not (tmp_path / "none").exists()
    assert rule in result.err


def test_cells_of_the_screen_are_where_they_are(tmp_path: Path) -> None:
    rows = ["a,dots,t,0,10,10,1", "a,dots,t,40,600,700,1", "a,dots,t,80,0,0,1", "b,dots,t,0,-5,1,1"]
    written(tmp_path, "gaze.csv.gz", "user,kind,stimulus,t_ms,x,y,label\n" + "\n".join(rows))
    people, alphabet = sequence_data._gaze(tmp_path / "gaze.csv.gz")
    assert people == [[["0 0", "2 2"]], [["0 0"]]]
    assert len(alphabet) == 12
