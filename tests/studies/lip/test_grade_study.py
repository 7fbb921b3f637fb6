"""Grades: what is known of whom, what each mechanism loses and leaks, and verdicts on that."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from sfumato.core.local_leakage import local_leakage
from sfumato.core.randomness import seeded
from sfumato.noise.frequency import UnaryEncoding
from sfumato.solver import randomized_response
from sfumato.studies.data.people_data import Grades, maths_grades
from sfumato.studies.lip.grade_knowledge import Knowledge, classes_of, knowledge, parts_of
from sfumato.studies.lip.grade_points import GradePoint
from sfumato.studies.lip.grade_release import (
    BEST_LOCAL,
    BEST_TWICE,
    BOUNDED,
    GLOBAL,
    KNOWING_SILENCE,
    LOCAL,
    PUBLISHED,
    RESPONSE,
    RESPONSE_GUESSED,
    RULES,
    SILENCE,
    TUNED,
    TWICE,
    UNARY,
    UNARY_GUESSED,
    measured,
    medians,
    one_bit,
    silences,
    unary_guessed,
)
from sfumato.studies.lip.grade_study import at_leakage, grade_claims, grade_facts
from sfumato.studies.study import Claim, Setting, Verdict


def known_by(predictions: list[list[list[float]]], truth: list[int]) -> Knowledge:
    several = np.array(predictions)
    overall = several[0].mean(axis=0)
    return Knowledge(several[0], several, overall, np.array(truth))


KNOWN = known_by(
    [
        [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.2, 0.6, 0.2]],
        [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.3, 0.4, 0.3]],
    ],
    [0, 2, 1],
)
EPSILONS = (0.5, 2.0)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_every_mechanism_keeps_its_promise(epsilon: float) -> None:
    found = {name: measured(KNOWN, name, epsilon) for name in RULES}
    for name in (LOCAL, BOUNDED, TUNED, RESPONSE, BEST_LOCAL):
        assert found[name].lip <= epsilon
    for name in (RESPONSE, UNARY, RESPONSE_GUESSED, BEST_LOCAL):
        assert found[name].ldp <= epsilon
    for name in (LOCAL, GLOBAL, BOUNDED, TWICE, BEST_TWICE):
        assert found[name].ldp <= 2 * epsilon
    assert found[PUBLISHED].lip > epsilon


def expected_loss(name: str, epsilon: float) -> float:
    """Under the local priors: as if all true classes occurred as often as they say."""
    total = 0.0
    for person, prior in enumerate(KNOWN.local):
        for true, share in enumerate(prior):
            one = Knowledge(
                KNOWN.local[[person]], KNOWN.several[:, [person]], KNOWN.overall, np.array([true])
            )
            total += share * measured(one, name, epsilon).loss
    return total / len(KNOWN.local)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_who_promises_less_loses_less(epsilon: float) -> None:
    losses = {name: expected_loss(name, epsilon) for name in RULES}
    slack = 1e-9
    assert losses[BEST_TWICE] <= losses[LOCAL] + slack  # epsilon-LIP is 2 epsilon-LDP
    assert losses[LOCAL] <= losses[BEST_LOCAL] + slack  # epsilon-LDP is epsilon-LIP
    assert losses[LOCAL] <= losses[BOUNDED] + slack
    assert losses[LOCAL] <= losses[TUNED] + slack
    assert losses[BEST_LOCAL] <= losses[RESPONSE] + slack


@pytest.mark.parametrize(("size", "epsilon"), [(3, 0.5), (21, 2.0), (10, 5.0)])
def test_no_bit_of_a_unary_report_beats_k_ary_response(size: int, epsilon: float) -> None:
    channel = one_bit(size, epsilon)
    even = np.full(size, 1 / size)
    response = randomized_response(even, 1 - np.eye(size), epsilon).channel
    assert local_leakage(channel).epsilon <= epsilon
    assert channel.probabilities[0, 0] < response.probabilities[0, 0]


def test_one_bit_is_what_is_drawn() -> None:
    rng, size, draws = np.random.default_rng(2), 5, 40_000
    bits = UnaryEncoding.at(size, 1.5).report(np.zeros(draws, dtype=np.int64), seeded(4))
    keys = np.where(bits | (bits.sum(axis=1, keepdims=True) == 0), rng.random(bits.shape), -1.0)
    kept = float((keys.argmax(axis=1) == 0).mean())
    wanted = float(one_bit(size, 1.5).probabilities[0, 0])
    error = math.sqrt(wanted * (1 - wanted) / draws)
    assert abs(kept - wanted) < 4 * error < abs(kept - 0.7 * wanted)


def test_the_guess_from_a_unary_report_is_the_posterior_median() -> None:
    sure = known_by([[[0.001, 0.001, 0.998]] * 3], [2, 2, 2])
    assert unary_guessed(sure, 0.1, seeded(1)).loss == 0.0
    much = unary_guessed(KNOWN, 20.0, seeded(1)).loss
    assert much < dict(silences(KNOWN))[SILENCE].loss


def test_medians_and_silence() -> None:
    assert medians(np.array([[0.6, 0.4], [0.4, 0.6], [0.5, 0.5]])).tolist() == [0, 1, 0]
    found = dict(silences(KNOWN))
    assert found[KNOWING_SILENCE].loss == 0.0
    assert found[SILENCE].loss == pytest.approx(2 / 3)


# What is known ------------------------------------------------------------------------------------


def test_who_releases_is_not_learnt_from(monkeypatch: pytest.MonkeyPatch) -> None:
    grades = maths_grades(Setting())
    seen: list[tuple[int, int]] = []

    class Spy:
        @classmethod
        def fit(cls, features: dict[str, list[object]], values: object, **_: object) -> "Spy":
            seen.append((len(features), len(np.asarray(values))))
            return cls()

        def priors(self, features: dict[str, list[object]]) -> object:
            people = len(next(iter(features.values())))
            return np.full((people, 2), 0.5)

    monkeypatch.setattr("sfumato.studies.lip.grade_knowledge.FeaturePrior", Spy)
    known = knowledge(grades, 2, 30, seed=1)
    assert [count for _, count in seen] == [197] * 4
    columns = parts_of(list(grades.features))
    assert [width for width, _ in seen] == [len(part) for part in columns]
    assert known.local.shape == (30, 2) and known.several.shape == (4, 30, 2)
    again, other = knowledge(grades, 2, 30, seed=1), knowledge(grades, 2, 30, seed=2)
    assert np.array_equal(known.truth, again.truth)
    assert not np.array_equal(known.truth, other.truth)


@pytest.mark.slow
def test_predictions_are_better_than_nothing() -> None:
    grades = maths_grades(Setting())
    few = Grades(grades.name, {name: grades.features[name] for name in (
        "G1", "G2", "failures", "studytime", "goout", "absences")}, grades.final, True)  # fmt: skip
    known = knowledge(few, 2, 60, seed=3)
    own = known.local[np.arange(60), known.truth]
    assert np.log(own).mean() > np.log(known.overall[known.truth]).mean() + 0.1


def test_classes_are_even() -> None:
    assert classes_of(np.arange(21), 21).tolist() == list(range(21))
    assert np.bincount(classes_of(np.arange(21), 10)).tolist() == [3, 2, 2, 2, 2, 2, 2, 2, 2, 2]


# Verdicts -----------------------------------------------------------------------------------------

Change = Callable[[GradePoint], GradePoint]
LOSSES = {
    LOCAL: 0.2, BOUNDED: 0.5, GLOBAL: 0.4, RESPONSE: 2.0, TWICE: 0.6, UNARY: 1.5,
    UNARY_GUESSED: 0.8, RESPONSE_GUESSED: 0.9, BEST_LOCAL: 0.5, BEST_TWICE: 0.3,
    TUNED: 0.4, PUBLISHED: 0.1,
}  # fmt: skip


def made(change: Change = lambda point: point) -> list[GradePoint]:
    """Points with which all claims of the paper hold, but for what is changed."""
    points = []
    for size in (2, 21):
        for epsilon in (1.0, 3.0):
            losses = LOSSES | ({BOUNDED: 0.3} if size == 2 else {})
            points += [
                GradePoint("maths", size, name, epsilon, loss / epsilon, 0.01, epsilon, epsilon)
                for name, loss in losses.items()
            ]
        points += [
            GradePoint("maths", size, name, 0.0, 3.0, 0.01, 0.0, 0.0)
            for name in (SILENCE, KNOWING_SILENCE)
        ]
    return [change(point) for point in points]


def verdicts(points: list[GradePoint]) -> dict[str, Claim]:
    return {claim.claimed.split()[0]: claim for claim in grade_claims(points)}


def test_verdicts_follow_the_losses() -> None:
    assert {claim.verdict for claim in grade_claims(made())} == {Verdict.AGREES}

    def times(name: str, factor: float) -> Change:
        return lambda p: replace(p, loss=p.loss * factor) if p.mechanism == name else p

    assert verdicts(made(times(TWICE, 0.1)))["local"].verdict is Verdict.PARTLY
    assert "k-RR, 2ε-LDP (4, from epsilon 1 on)" in verdicts(made(times(TWICE, 0.1)))["local"].seen
    assert verdicts(made(times(BOUNDED, 9.0)))["bounded"].verdict is Verdict.DIFFERS
    assert verdicts(made(times(BOUNDED, 0.5)))["a"].verdict is Verdict.DIFFERS
    assert verdicts(made(times(UNARY, 2.0)))["unary"].verdict is Verdict.DIFFERS
    assert verdicts(made(times(GLOBAL, 6.0)))["LDP"].verdict is Verdict.PARTLY
    leaky = made(lambda p: replace(p, lip=4.0) if p.mechanism == PUBLISHED else p)
    assert verdicts(leaky)["the"].verdict is Verdict.DIFFERS


def test_losses_are_read_off_at_one_leakage() -> None:
    line = [p for p in made() if (p.size, p.mechanism) == (21, RESPONSE)]
    assert at_leakage(line, 1.0) == pytest.approx(2.0)
    assert at_leakage(line, 2.0) == pytest.approx((2.0 + 2.0 / 3) / 2)
    assert math.isnan(at_leakage(line, 4.0))
    (fact, kept) = grade_facts(made())
    assert "at a leakage of 2" in fact and "LIP, local prior 0.13" in fact
    assert kept.endswith("0 of 12")
