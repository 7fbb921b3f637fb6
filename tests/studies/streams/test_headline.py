"""The paper's headline: equal leakage, error bars over people, verdicts from the numbers."""

from dataclasses import replace

import numpy as np
import pytest

from sfumato.studies.data.sequence_data import ACTIVITIES
from sfumato.studies.data.simulated_sequences import Crowd
from sfumato.studies.streams import headline
from sfumato.studies.streams.headline import (
    BATCHES,
    OURS,
    PLAIN,
    RIVAL,
    SILENCE,
    WAITING,
    Drawn,
    Sample,
)
from sfumato.studies.streams.headline_study import claims, facts, verdict_beyond_chance
from sfumato.studies.study import Setting, Verdict

FEW = replace(ACTIVITIES, stand_in=Crowd(3, people=6, values=24, stay=0.9, skew=0.0))


@pytest.fixture(scope="module")
def points() -> list[headline.HeadlinePoint]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(headline, "SAMPLES", (Sample(FEW, 6, 2),))
        patch.setattr(headline, "QUICK_CAPS", (1.0,))
        return headline.headline_points(Setting(quick=True))


def test_no_way_leaks_more_than_the_cap_and_the_rival_leaks_just_that(
    points: list[headline.HeadlinePoint],
) -> None:
    charges = {point.way: point.charge for point in points}
    assert set(charges) == {SILENCE, PLAIN, RIVAL, WAITING, *OURS}
    assert max(charges.values()) <= 1.0
    assert min(charges[RIVAL], charges[WAITING]) > 0.999
    assert charges[SILENCE] == 0.0
    assert "no way leaks more than its cap per value: yes" in facts(points)[0]


def test_the_rival_is_no_better_than_itself_and_people_are_counted(
    points: list[headline.HeadlinePoint],
) -> None:
    rival = next(point for point in points if point.way == RIVAL)
    assert (rival.factor, rival.least, rival.most) == (1.0, 1.0, 1.0)
    assert {point.people for point in points} == {3}
    assert all(point.least <= point.factor <= point.most for point in points)
    assert all(point.stand_in for point in points)


def test_limits_are_over_people_not_over_their_streams() -> None:
    draw = np.random.default_rng(1)
    person = np.repeat(np.arange(20), 50)
    lost = np.repeat(draw.uniform(1, 3, 20), 50)
    error = Drawn(person, 1).error(lost)
    assert error == pytest.approx(lost[::50].std() / 20**0.5, rel=0.15)
    assert Drawn(np.arange(1000), 1).error(lost) < error / 4


@pytest.mark.parametrize(
    ("factor", "said"), [(2.5, Verdict.AGREES), (1.5, Verdict.DIFFERS), (None, Verdict.PARTLY)]
)
def test_twice_is_judged_by_the_factors(
    points: list[headline.HeadlinePoint], factor: float | None, said: Verdict
) -> None:
    first, second = (1.5, 2.5) if factor is None else (factor, factor)
    told = [replace(point, factor=first, least=first, most=first) for point in points]
    told += [replace(point, cap=2.0, factor=second, least=second, most=second) for point in points]
    assert [claim.verdict for claim in claims(told)] == [said] * len(OURS)


def test_batches_stand_beside_the_better_of_both_rivals(
    points: list[headline.HeadlinePoint],
) -> None:
    found = {point.way: point for point in points}
    best = min(found[RIVAL].loss, found[WAITING].loss)
    assert found[WAITING].loss < 0.95 * found[RIVAL].loss
    assert found[BATCHES].factor == pytest.approx(best / found[BATCHES].loss)
    assert found[BATCHES].rival == WAITING
    assert {found[way].rival for way in OURS if way != BATCHES} == {RIVAL}


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ([(2.1, 3.0), (2.5, 4.0)], Verdict.AGREES),
        ([(2.1, 3.0), (1.0, 1.5)], Verdict.PARTLY),
        ([(2.1, 3.0), (1.5, 2.5)], Verdict.PARTLY),
        ([(1.9, 3.0)] + 7 * [(1.0, 1.5)], Verdict.DIFFERS),
        ([(1.9, 3.0), (1.5, 2.5)], Verdict.UNDECIDED),
        ([], Verdict.UNDECIDED),
    ],
)
def test_twice_by_chance_is_no_agreement(
    points: list[headline.HeadlinePoint], limits: list[tuple[float, float]], said: Verdict
) -> None:
    told = [replace(points[0], least=a, most=b, factor=(a + b) / 2) for a, b in limits]
    assert verdict_beyond_chance(told) is said
