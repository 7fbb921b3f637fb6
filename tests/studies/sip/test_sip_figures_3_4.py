"""Figures 3 and 4 of SIP as a study: its claims follow from its numbers."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from sfumato.studies.sip import sip_figures_3_4 as study
from sfumato.studies.sip.sip_example import example_points
from sfumato.studies.sip.sip_figures_3_4 import Line
from sfumato.studies.study import Claim, Findings, Setting, Verdict


@pytest.fixture(scope="module")
def lines() -> list[Line]:
    flips = np.linspace(0, 1, 11).tolist()
    return [
        Line(figure, method, 1.0, tuple(example_points(prior, 1.0, 1.0, flips, method)))
        for figure, prior in study.PRIORS.items()
        for method in ("published", "optimal")
    ]


def judged(lines: Sequence[Line], word: str) -> Claim:
    [claim] = [one for one in study.claims(lines) if word in one.claimed]
    return claim


def changed(lines: Sequence[Line], method: str, **numbers: float) -> list[Line]:
    """The same curves, with other numbers at every point of one rule's."""
    return [
        replace(line, points=tuple(replace(point, **numbers) for point in line.points))
        if line.method == method
        else line
        for line in lines
    ]


def test_noise_that_falls_by_the_published_rule_alone_agrees_in_part(lines: list[Line]) -> None:
    claim = judged(lines, "noise needed at time 2")
    assert claim.verdict is Verdict.PARTLY
    assert "published: 2 of 2" in claim.seen
    assert "N3" in claim.reason


def test_verdicts_flip_with_the_numbers(lines: list[Line]) -> None:
    assert judged(lines, "independent bits").verdict is Verdict.AGREES
    for method in ("published", "optimal"):
        lines = changed(lines, method, noise_information=0.1)
    assert judged(lines, "independent bits").verdict is Verdict.DIFFERS
    steady = changed(changed(lines, "published", second_noise=0.1), "optimal", second_noise=0.1)
    assert judged(steady, "noise needed at time 2").verdict is Verdict.AGREES


def test_a_skewed_prior_refutes_that_correlated_noise_leaks_less(lines: list[Line]) -> None:
    even, skewed = (
        one for one in study.claims(lines) if one.claimed.startswith("with the noise at time 2")
    )
    assert (even.figure, even.verdict) == ("SIP 3", Verdict.AGREES)
    assert (skewed.figure, skewed.verdict) == ("SIP 4", Verdict.DIFFERS)


def test_the_leakage_at_a_bound_of_the_noise_is_level_for_an_even_prior(lines: list[Line]) -> None:
    assert judged(lines, "even prior").verdict is Verdict.AGREES
    bent = [
        replace(line, points=(replace(line.points[0], independent_leakage=9.0), *line.points[1:]))
        for line in lines
    ]
    assert judged(bent, "even prior").verdict is Verdict.DIFFERS


def test_the_study_runs_and_its_certified_curves_keep_their_budget() -> None:
    work = study.prepare(Setting(quick=True))
    seen: list[int] = []
    found: Findings = work.run(seen.append)
    assert seen == list(range(1, work.steps + 1))
    own = [one for one in found.records if one["method"] == "optimal"]
    assert all(one["second_leakage"] <= one["epsilon"] for one in own)
    assert any(one["second_leakage"] > 1.5 * one["epsilon"] for one in found.records)
    assert found.records == study.prepare(Setting(quick=True)).run(lambda _: None).records
    assert set(found.pictures) == {"figure-3", "figure-4"}


def test_ways_towards_correlation_begin_with_independent_bits(lines: list[Line]) -> None:
    for way in lines[0].towards_correlation:
        assert way[0].data_correlation == 0.0
        assert abs(way[-1].data_correlation) == pytest.approx(1.0)
    assert partial(study._monotone, name="flip", falls=True)(lines[0]) is False
