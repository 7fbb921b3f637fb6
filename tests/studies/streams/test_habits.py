"""Do habits help: what is compared is what it says, on made-up and on real check-ins."""

import gzip
import math
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from sfumato import SIP, PerStep, Plan
from sfumato.core.errors import InvalidParameter
from sfumato.models.markov import MarkovChain
from sfumato.models.periodic import PeriodicChain
from sfumato.studies.data.data_files import GOWALLA
from sfumato.studies.data.habit_data import CHECK_INS, check_ins, power_days, town_days
from sfumato.studies.held_out import held_out
from sfumato.studies.standard_error import clustered_error
from sfumato.studies.streams import habits, habits_study
from sfumato.studies.streams.habits import MODELS, HabitTask, habit_points, scores
from sfumato.studies.study import Setting
from tests.shell.running import call

QUICK = Setting(quick=True)


@pytest.mark.parametrize("read", [town_days, power_days, check_ins])
def test_every_value_of_a_set_has_a_phase_and_halves_are_apart(read: habits.HabitTask) -> None:
    found = read(QUICK, 9)  # type: ignore[operator]
    assert found.kept.shape == found.kept_phases.shape and len(found.kept) == 9
    assert [len(path) for path in found.learnt] == [len(own) for own in found.learnt_phases]
    assert found.kept_phases.max() < found.cycle.phases
    assert found.kept.max() < len(found.alphabet)
    assert len(found.owners) == 9


def test_what_is_predicted_is_the_probability_of_the_streams() -> None:
    found = check_ins(QUICK, 3)
    chain = MODELS[-1].fit(found)
    assert isinstance(chain, PeriodicChain)
    told = scores(chain, found)
    for row, (path, phases) in enumerate(zip(found.kept, found.kept_phases, strict=True)):
        chance = math.log(chain.initial[phases[0], path[0]])
        for before, after, phase in zip(path, path[1:], phases[1:], strict=False):
            chance += math.log(chain.at(int(phase)).row(int(before))[after])
        assert told[row] == pytest.approx(chance)


def test_streams_that_were_told_the_same_part_where_their_phases_do() -> None:
    found = check_ins(QUICK, 8)
    chain = MODELS[-1].fit(found)
    plan = Plan(chain, PerStep(SIP(0.5)), found.loss)
    told = held_out(plan, found.kept[:, :5], 1, found.kept_phases[:, :5])
    assert told.charged.max() <= 0.5 and told.received.shape == (8,)
    with pytest.raises(InvalidParameter, match="phase must be given"):
        held_out(plan, found.kept[:, :5])


def test_a_rhythm_is_predicted_by_the_hour_and_differences_are_those_to_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(habits, "FEW", 5)
    points = habit_points((HabitTask(6.0, 12, town_days),), QUICK)
    assert [point.model for point in points] == [model.name for model in MODELS]
    first, *_, hourly = points
    assert first.predicted_more == first.loss_more == first.predicted_error == 0.0
    assert hourly.predicted - first.predicted == pytest.approx(hourly.predicted_more)
    assert hourly.predicted_more > 2 * hourly.predicted_error > 0
    facts = habits_study._facts(points)
    assert len(facts) == len(MODELS) - 1 and "predicts more" in facts[-1]


def test_check_ins_are_compared_with_a_mixture_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(habits, "FEW", 5)
    # Two kinds are enough to see that a mixture is what is measured.
    monkeypatch.setattr(habits, "choose_clusters", lambda *_: SimpleNamespace(clusters=2))
    (task,) = habits.CHECK_IN_TASKS
    points = habit_points((task,), QUICK)
    assert [point.model for point in points] == [*(m.name for m in MODELS), "2 clusters"]
    assert points[-1].predicted_more > 0
    work = habits_study.habit_work((task,), QUICK)
    assert work.steps == len(points)
    monkeypatch.setattr(habits, "choose_clusters", lambda *_: SimpleNamespace(clusters=1))
    assert isinstance(habits.MIXTURE.fit(check_ins(QUICK, 3)), MarkovChain)


def test_words_follow_the_numbers() -> None:
    told = habits_study._compared
    assert told(0.3, 0.1, "loses less", "more") == "loses less"
    assert told(-0.3, 0.1, "loses less", "more") == "loses more"
    assert told(0.1, 0.1, "loses less", "more") == "loses as much"


def test_an_error_counts_people_not_streams() -> None:
    values, rng = np.repeat([0.0, 1.0, 2.0, 3.0], 5), np.random.default_rng(1)
    people = np.repeat(np.arange(4), 5)
    alone = clustered_error(values, np.arange(20))
    assert clustered_error(values, people) == pytest.approx(np.std([0, 1, 2, 3], ddof=1) / 2)
    assert alone < clustered_error(values, people)
    assert clustered_error(rng.normal(size=9), np.zeros(9, dtype=np.int64)) == math.inf


# Check-ins of a file ------------------------------------------------------------------------------


def a_file(path: Path, people: int, each: int) -> Path:
    """Lines as SNAP has them, the newest first, mostly in one square degree."""
    rng, lines = np.random.default_rng(1), []
    for user in range(people):
        now = datetime(2010, 10, 1) + timedelta(hours=int(rng.integers(24)))
        own = []
        for _ in range(each):
            x, y = -97 - rng.random(), 30 + rng.random()
            own.append(f"{user}\t{now.isoformat()}Z\t{y:.6f}\t{x:.6f}\t{rng.integers(99)}")
            now += timedelta(hours=int(rng.integers(1, 30)))
        lines += own[::-1]
    lines.append("99\t2010-10-19T23:55:27Z\t59.3\t18.0\t22847")
    file = path / GOWALLA.name
    file.write_bytes(gzip.compress("\n".join(lines).encode()))
    return file


def test_check_ins_of_a_file_are_read_in_the_order_of_their_times(tmp_path: Path) -> None:
    a_file(tmp_path, 6, 2 * CHECK_INS)
    found = check_ins(Setting(tmp_path, quick=True), 100)
    assert not found.stand_in and found.unit == "cells" and len(found.alphabet) == 36
    assert found.kept.shape == (6, CHECK_INS) and len(set(found.owners.tolist())) == 3
    assert set(np.concatenate(found.learnt_phases)) == set(range(12))


@pytest.mark.parametrize("content", [b"", b"1\t2\n", b"a\tb\tc\td\te\n"])
def test_another_file_is_refused_by_its_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / GOWALLA.name).write_bytes(gzip.compress(content))
    told = call("study", "habits-check-ins", "--quick", "--data", tmp_path, "-o", tmp_path / "out")
    assert told.code == 2 and GOWALLA.name in told.err and not (tmp_path / "out").exists()


def test_a_file_of_one_person_is_refused(tmp_path: Path) -> None:
    a_file(tmp_path, 1, 2 * CHECK_INS)
    with pytest.raises(InvalidParameter, match="whole and unchanged"):
        check_ins(Setting(tmp_path, quick=True), 100)
