"""Ways to release the same streams: one unit of privacy, claims that follow from numbers."""

from dataclasses import replace

import numpy as np
import pytest

from sfumato.core.alphabet import Alphabet
from sfumato.core.loss import euclidean
from sfumato.core.randomness import seeded
from sfumato.models.markov import MarkovChain
from sfumato.solver.design_methods import Method
from sfumato.stream.partition.batch_design import design_batch
from sfumato.stream.partition.batch_loss import additive
from sfumato.studies.data.sequence_data import halves
from sfumato.studies.sip import release_claims as claims
from sfumato.studies.sip import sip_figure_6 as study
from sfumato.studies.sip.compared_releases import (
    SILENCE,
    Released,
    Trial,
    pooled,
    released_points,
)
from sfumato.studies.study import Setting, Verdict

EPSILONS = (0.3, 1.0)


def trial(streams: int = 6, length: int = 10) -> Trial:
    chain = MarkovChain.from_matrix(
        [[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]],
        alphabet=Alphabet(["0", "1", "2"], np.arange(3.0)),
    )
    truths = np.array([chain.sample(length, seeded(n)) for n in range(streams)])
    return Trial(chain, euclidean(chain.alphabet), truths, 3)


@pytest.fixture(scope="module")
def points() -> list[Released]:
    return released_points([trial()], study.WAYS, EPSILONS, lambda _: None)


def test_certified_ways_never_leak_over_their_promise(points: list[Released]) -> None:
    for point in points:
        if point.curve in study.CERTIFIED:
            assert point.leakage <= point.epsilon
        if point.curve != SILENCE:
            assert point.leakage <= 2 * point.epsilon * (1 + 1e-9)


def test_every_way_is_tried_at_every_budget_and_silence_once(points: list[Released]) -> None:
    tried = [(point.curve, point.epsilon) for point in points]
    assert tried[0] == (SILENCE, 0.0)
    assert sorted(tried[1:]) == sorted((name, e) for name in study.WAYS for e in EPSILONS)


def test_silence_is_the_best_constant_of_each_moment() -> None:
    small = trial(length=2)
    told = small.silence()
    loss = np.abs(np.arange(3)[:, None] - np.arange(3.0))
    first = small.chain.first().marginal
    second = first @ small.chain.transition()
    guesses = [int((belief @ loss).argmin()) for belief in (first, second)]
    expected = np.mean([loss[row, guesses].mean() for row in small.streams])
    assert told.loss == pytest.approx(expected)
    assert told.leakage == 0.0


def test_runs_are_pooled_by_their_streams() -> None:
    first = Released("a", 1, 1.0, 0.2, 0.1, 0.2, 0.1, 0.5, 10)
    second = replace(first, loss=0.6, error=0.3, leakage=0.9, streams=30)
    [both] = pooled([first, second])
    assert (both.loss, both.leakage, both.streams) == pytest.approx((0.5, 0.8, 40))
    assert both.error == pytest.approx(np.hypot(0.025, 0.225))


def line(curve: str, *losses: float, received: float | None = None) -> list[Released]:
    return [
        Released(curve, 1, epsilon, loss, 0.01, received or loss, 0.01, epsilon, 9)
        for epsilon, loss in zip(EPSILONS, losses, strict=True)
    ]


def test_a_best_guess_that_beats_ours_is_told_of_the_claim() -> None:
    ours = line("ours", 0.4, 0.3)
    claim = claims.better_than_twice_epsilon(
        "SIP 6", [*ours, *line("rr", 0.5, 0.5)], ["ours"], "rr"
    )
    assert claim.verdict is Verdict.AGREES
    guessed = line("rr", 0.5, 0.5, received=0.35)
    claim = claims.better_than_twice_epsilon("SIP 6", [*ours, *guessed], ["ours"], "rr")
    assert claim.verdict is Verdict.PARTLY
    worse = claims.better_than_twice_epsilon(
        "SIP 6", [*ours, *line("rr", 0.1, 0.1)], ["ours"], "rr"
    )
    assert worse.verdict is Verdict.DIFFERS


def test_width_helps_only_if_it_always_does() -> None:
    narrow = line("1", 0.5, 0.4)
    for wide, expected in (
        ((0.4, 0.3), Verdict.AGREES),
        ((0.6, 0.3), Verdict.PARTLY),
        ((0.6, 0.5), Verdict.DIFFERS),
    ):
        found = claims.steadily_better("SIP 6", [*narrow, *line("5", *wide)], ["1", "5"])
        assert found.verdict is expected


def test_more_than_twice_is_judged_at_equal_leakage_with_the_best_guess() -> None:
    ours, rival = line("ours", 0.2, 0.1), line("rr", 0.6, 0.5)
    found = claims.equal_leakage("SIP 6", [*ours, *rival], ["ours"], "rr")
    assert found.verdict is Verdict.AGREES
    guessed = line("rr", 0.6, 0.5, received=0.15)
    found = claims.equal_leakage("SIP 6", [*ours, *guessed], ["ours"], "rr")
    assert found.verdict is Verdict.DIFFERS


def test_truncation_is_judged_against_both() -> None:
    plain, cut, ours = line("rr", 0.5, 0.5), line("cut", 0.6, 0.4), line("ours", 0.1, 0.1)
    found = claims.truncation_helps("SIP 6", [*plain, *cut, *ours], "cut", "rr", ["ours"])
    assert found.verdict is Verdict.PARTLY


def test_a_batch_that_tells_nothing_is_guessed_value_by_value() -> None:
    told = trial(streams=3, length=6).planned("batches", 1e-6, Method.OPTIMAL, 3)
    assert told.leakage <= 1e-6
    assert told.loss == pytest.approx(trial(streams=3, length=6).silence().loss, abs=1e-4)


def test_the_study_is_ready_without_data_and_says_so() -> None:
    work = study.prepare(Setting(quick=True))
    assert work.steps == len(study.QUICK_EPSILONS) * len(study.WAYS)
    assert halves(study.CLICK_NUMBERS, Setting(), study.LENGTH, 3).kept.shape == (3, 30)


def test_batches_lose_what_their_channels_say_they_lose() -> None:
    # On streams of the model the loss of a batch is the expected loss of its design.
    own = trial(streams=400, length=3)
    told = own.planned("batches", 0.8, Method.OPTIMAL, 3)
    first = own.chain.first()
    found = design_batch(own.chain, first, 3, additive(own.loss), 3 * 0.8)
    assert told.loss == pytest.approx(found.design.cost / 3, abs=4 * told.error + 1e-3)
    assert told.error < 0.03
