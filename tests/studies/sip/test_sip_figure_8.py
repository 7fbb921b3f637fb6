"""Whose gaze it is: rates are shares, bounds stay below certificates, verdicts follow numbers."""

from dataclasses import replace
from pathlib import Path

import pytest

from sfumato.attacks import NetworkSpec
from sfumato.studies.data.gaze_data import Grid, simulated_gaze
from sfumato.studies.sip.gaze_owners import EXACT, NETWORK, RAW, TAUGHT, Owners, OwnersFound
from sfumato.studies.sip.owner_claims import claims, facts
from sfumato.studies.sip.sip_figure_8 import figure_work
from sfumato.studies.study import Findings, Verdict

WAYS = ("k-RR, epsilon-LDP", "temporal LDP", "instantaneous")


@pytest.fixture(scope="module")
def findings() -> Findings:
    seen = simulated_gaze(Grid(2, 2), people=4, seconds=8, trials=2)
    owners = Owners.of(seen, thin=2, length=20, each=3, most=80)
    network = NetworkSpec(hidden=4, window=20, steps=5)
    steps: list[int] = []
    work = figure_work(owners, (1,), (0.5, 4.0), WAYS, 2, network, ["gaze"])
    found = work.run(steps.append)
    assert steps == list(range(1, work.steps + 1))
    return found


def points(findings: Findings) -> list[OwnersFound]:
    return [OwnersFound(**record) for record in findings.records]


def test_every_release_meets_every_attacker(findings: Findings) -> None:
    met = {(one.curve, one.epsilon, one.attacker) for one in points(findings)}
    assert len(met) == 2 + 2 * 3 * 3
    assert all(0 <= one.rate <= one.top_rate <= 1 for one in points(findings))
    assert {one.chance for one in points(findings)} == {0.25}
    assert findings.stand_ins == ["gaze"] and len(findings.claims) == 3


def test_no_rate_needs_more_than_is_certified(findings: Findings) -> None:
    for one in points(findings):
        assert one.told <= one.certified
        if one.curve != RAW:
            assert one.leakage <= one.epsilon + 1e-9
    assert "no rate needs more leakage than is certified: yes" in findings.facts
    accused = [replace(one, told=one.certified + 1) for one in points(findings)]
    assert any("certified: NO, in" in fact for fact in facts(accused))


def test_the_picture_is_drawn(findings: Findings, tmp_path: Path) -> None:
    findings.pictures["owners-found"](tmp_path / "owners.svg")
    assert (tmp_path / "owners.svg").stat().st_size > 10_000


def rated(rates: dict[tuple[str, str], float]) -> list[OwnersFound]:
    """Points with these rates, and hardly any error."""
    raw = [
        OwnersFound(RAW, 1, float("inf"), who, 0.9, 0.01, 1.0, 0.0, 0.1, 1.0, 0.0, 9.0, 60)
        for who in (EXACT, NETWORK)
    ]
    return raw + [
        OwnersFound(way, 1, 1.0, who, rates.get((way, who), 0.5), 0.01, 1, 0, 0.1, 1, 0, 9, 60)
        for way in WAYS
        for who in (EXACT, NETWORK, TAUGHT)
    ]


def test_verdicts_follow_the_numbers() -> None:
    as_claimed: dict[tuple[str, str], float] = {
        ("temporal LDP", NETWORK): 0.1,
        ("k-RR, epsilon-LDP", NETWORK): 0.4,
        ("instantaneous", NETWORK): 0.3,
        ("temporal LDP", TAUGHT): 0.6,
        ("k-RR, epsilon-LDP", TAUGHT): 0.6,
        ("instantaneous", TAUGHT): 0.4,
    }
    assert [one.verdict for one in claims(rated(as_claimed))] == [Verdict.AGREES] * 3
    contrary = {key: 1 - rate for key, rate in as_claimed.items()}
    assert [one.verdict for one in claims(rated(contrary))] == [Verdict.DIFFERS] * 3
    assert [one.verdict for one in claims(rated({}))] == [Verdict.UNDECIDED] * 3
