"""Claims about Figure 5 of SIP follow from the losses, and its rivals keep their promises."""

from dataclasses import replace

import pytest

from sfumato.plots.points import BatchPoint
from sfumato.studies.sip import sip_batches
from sfumato.studies.sip.batch_claims import claims
from sfumato.studies.sip.sip_batches import FIXED, SILENCE, Comparison, batch_points, silent_points
from sfumato.studies.study import Claim, Verdict

EPSILONS = (0.5, 1.5)
FAIR = Comparison("a", 0.3, 30, 5, 6, 0.25, 0.24)


@pytest.fixture(scope="module")
def points() -> list[BatchPoint]:
    return batch_points(epsilons=EPSILONS, branches=8) + silent_points(epsilons=EPSILONS)


def judged(points: list[BatchPoint], word: str, kink: Comparison = FAIR) -> Claim:
    [claim] = [one for one in claims(points, [FAIR], kink) if word in one.claimed]
    return claim


def scaled(points: list[BatchPoint], curve: str, factor: float) -> list[BatchPoint]:
    return [
        replace(p, loss=factor * p.loss, guessed_loss=factor * p.guessed_loss)
        if p.curve == curve
        else p
        for p in points
    ]


def test_the_instantaneous_release_lies_between_the_two_responses(points: list[BatchPoint]) -> None:
    assert judged(points, "more than at 2 epsilon").verdict is Verdict.AGREES
    found = judged(scaled(points, "instantaneous", 0.1), "more than at 2 epsilon")
    assert found.verdict is Verdict.PARTLY


def test_one_width_that_is_dearer_refutes_always(points: list[BatchPoint]) -> None:
    assert judged(points, "batches always").verdict is Verdict.AGREES
    kink = replace(FAIR, narrow_loss=0.24359, wide_loss=0.24456)
    found = judged(points, "batches always", kink)
    assert (found.verdict, found.reason) == (Verdict.PARTLY, "erratum N5")
    assert judged(scaled(points, "batches of 5", 9.0), "batches always").verdict is Verdict.PARTLY


def test_a_rival_that_loses_less_is_seen(points: list[BatchPoint]) -> None:
    assert judged(points, "rivals from the literature").verdict is Verdict.AGREES
    found = judged(scaled(points, "ToPL", 0.01), "rivals from the literature")
    assert found.verdict is Verdict.PARTLY
    assert "ToPL 0 of 4" in found.seen


def test_rivals_leak_at_most_what_they_promise_model_free(points: list[BatchPoint]) -> None:
    for point in points:
        if point.curve in FIXED:
            most = 2 * point.epsilon if "2 epsilon" in point.curve else point.epsilon
            assert 0 < point.leakage <= most * (1 + 1e-9)
            assert point.guessed_loss <= point.loss + 1e-12


def test_silence_leaks_nothing_and_is_the_likelier_bit(points: list[BatchPoint]) -> None:
    silent = {p.setting: p for p in points if p.curve == SILENCE}
    assert silent["a"].loss == pytest.approx(0.5)
    assert silent["b"].leakage == 0.0
    stays = sip_batches.SETTINGS[1]
    expected = sum(0.5 - 0.4 * 0.8**t for t in range(sip_batches.HORIZON)) / sip_batches.HORIZON
    assert silent[stays.name].loss == pytest.approx(expected)
