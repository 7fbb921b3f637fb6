"""Gaze of SIP: the published rival leaks without a bound, certified ways keep their promise."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from sfumato.models.markov import MarkovChain
from sfumato.studies.data.gaze_data import Grid, simulated_gaze
from sfumato.studies.sip import sip_figure_7, sip_figure_9
from sfumato.studies.sip.compared_releases import SILENCE, Released, released_points
from sfumato.studies.sip.release_drawings import _marks
from sfumato.studies.sip.sip_figure_7 import TRUTH, Track
from sfumato.studies.sip.support_response import SupportResponse
from sfumato.studies.study import Claim, Setting, Verdict

# A walk on a line: 0 and 2 never follow each other.
LINE = MarkovChain.fit([[0, 0, 1, 1, 2, 2, 1, 0, 1, 2, 1, 1, 0, 0]])


def test_an_output_of_the_published_rival_rules_out_true_streams() -> None:
    rival = SupportResponse(LINE, 1.0)
    told = (1, 0)  # the second output: a 0, which cannot follow a 2
    likelihoods = {}
    for first, second in itertools.product(range(3), repeat=2):
        begin = np.where(np.arange(3) == first, math.e, 1.0)
        likelihoods[first, second] = (
            begin[told[0]] / begin.sum() * rival.row(first, second)[told[1]]
        )
    assert all(likelihoods[2, second] == 0.0 for second in range(3))
    assert likelihoods[0, 0] > 0
    assert rival.leakage == math.inf


def test_it_keeps_its_promise_where_everything_follows_everything() -> None:
    free = MarkovChain.fit([list(map(int, np.random.default_rng(1).integers(3, size=400)))])
    rival = SupportResponse(free, 1.0)
    assert rival.leakage == pytest.approx(1.0)
    assert np.allclose(rival.row(0, 2), rival.row(1, 2))


def test_losses_are_means_over_the_outputs() -> None:
    rival = SupportResponse(LINE, 1.0)
    lost = rival.losses(1 - np.eye(3), np.array([[0, 0], [0, 2]]))
    begin, kept = 1 - math.e / (math.e + 2), 1 - math.e / (math.e + 1)
    assert lost == pytest.approx([(begin + kept) / 2, (begin + 1.0) / 2])


@pytest.fixture(scope="module")
def points() -> list[Released]:
    seen = simulated_gaze(Grid(3, 1), people=3, seconds=4)
    found = []
    for trial in sip_figure_9.trials_of(seen, (1, 2), 3, 1):
        short = replace(trial, streams=trial.streams[:, :10])
        ways = sip_figure_9.ways_of(trial.chain.order)
        found += released_points([short], ways, (0.2, 0.6), lambda _: None)
    return found


def test_certified_ways_keep_their_promise_under_both_orders(points: list[Released]) -> None:
    assert {point.order for point in points} == {1, 2}
    for point in points:
        if point.curve in (*sip_figure_9.OURS, "k-RR, calibrated"):
            assert point.leakage <= point.epsilon
    published = [p.leakage for p in points if p.order == 2 and "as published" in p.curve]
    assert published == [math.inf] * 4
    assert {p.order for p in points if p.curve == "far-sighted"} == {1}


def judged(points: list[Released], word: str) -> Claim:
    return next(one for one in sip_figure_9.claims(2, points) if word in one.claimed)


def test_verdicts_on_the_rival_flip_with_the_losses(points: list[Released]) -> None:
    near = [replace(p, loss=0.01) if p.curve == "instantaneous" else p for p in points]
    found = judged(near, "temporal LDP at 2 epsilon")
    assert found.verdict is Verdict.AGREES
    assert "N51" in found.reason
    far = [replace(p, loss=9.0) if p.curve == "instantaneous" else p for p in points]
    assert judged(far, "temporal LDP at 2 epsilon").verdict is Verdict.DIFFERS


def test_silence_stands_once_in_each_order(points: list[Released]) -> None:
    assert [p.order for p in points if p.curve == SILENCE] == [1, 2]


def track(way: str, piece: int, off: float) -> Track:
    return Track(way, piece, np.zeros(4, dtype=np.int64), np.full(4, off), 1.0)


def test_pictures_are_judged_by_distances() -> None:
    near = {"k-RR, LDP": 0.5, "instantaneous": 0.3, "batches of 10": 0.1}
    tracks = [track(way, piece, off) for way, off in near.items() for piece in (0, 1)]
    [claim] = sip_figure_7.claims(tracks)
    assert claim.verdict is Verdict.AGREES
    [claim] = sip_figure_7.claims(
        [t for t in tracks if t.way != "k-RR, LDP"]
        + [track("k-RR, LDP", 0, 0.1), track("k-RR, LDP", 1, 0.9)]
    )
    assert claim.verdict is Verdict.PARTLY


def test_tracks_of_all_ways_leak_at_most_ten_nats_a_second() -> None:
    seen = simulated_gaze(Grid(3, 1), people=2, seconds=6)
    stream = seen.alphabet.indices(seen.pieces(sip_figure_7.LENGTH)[0])[None, :30]
    found = sip_figure_7._run(seen.chain(), stream, 1, [], lambda _: None)
    told = {row[0]: float(row[2]) for row in found.rows if row[0] != TRUTH}
    assert set(told) == set(sip_figure_7._WAYS)
    assert all(0 <= leaked <= sip_figure_7.TOTAL for leaked in told.values())
    assert len(found.records) == (1 + len(told)) * 30


def test_without_data_the_gaze_is_simulated_and_says_so() -> None:
    for study in (sip_figure_7, sip_figure_9):
        assert study.prepare(Setting(quick=True)).steps > 0


def test_a_curve_looks_alike_in_all_panels(points: list[Released]) -> None:
    marks = _marks(points, sip_figure_9.OURS)
    assert len(set(marks.values())) == len(marks) == len(sip_figure_9.WAYS)
    second = [point for point in points if point.order == 2]
    assert "far-sighted" not in {point.curve for point in second}
    assert marks["bursts every 10"] != marks["far-sighted"]
