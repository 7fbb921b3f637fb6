"""A black box is asked for outputs: planted bugs are found, correct mechanisms are not accused."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import sfumato as sf
from sfumato.attacks import Notion, audit_mechanism
from sfumato.attacks.mechanism_audit import own_coins
from sfumato.attacks.output_codes import OutputCodes
from sfumato.solver import paper_response
from sfumato.stream import information_leakage, local_leakage
from tests.attacks.mechanisms import Case, correct, planted

dp.enable_features("contrib")


def accused(case: Case, **asked: Any) -> bool:
    return audit_mechanism(case.mechanism, case.inputs, **case.asked, **asked).bound.exceeds(
        case.claim
    )


def found(seed: int) -> list[str]:
    return [case.name for case in planted(np.random.default_rng(seed)) if accused(case, seed=seed)]


@pytest.mark.statistical
def test_planted_bugs_are_found() -> None:
    assert len(found(1)) >= 10  # of 12


@pytest.mark.slow
def test_planted_bugs_are_found_whatever_the_seed() -> None:
    shares = [len(found(seed)) / 12 for seed in range(100, 120)]
    assert np.mean(shares) > 0.9
    assert min(shares) >= 0.8


def _most(trials: int, failure: float) -> float:
    """More accusations than this would happen once in 100,000 if each had that probability."""
    return float(stats.binom.ppf(1 - 1e-5, trials, failure))


@pytest.mark.statistical
def test_correct_mechanisms_are_accused_no_more_often_than_stated() -> None:
    counts, trials, failure = 0, 0, 0.1
    for seed in range(12):
        for case in correct(np.random.default_rng(seed)):
            counts += accused(case, samples=1500, failure=failure, seed=seed)
            trials += 1
    assert counts <= _most(trials, failure)


@pytest.mark.slow
def test_each_correct_mechanism_is_accused_no_more_often_than_stated() -> None:
    names = [case.name for case in correct(np.random.default_rng(0))]
    counts, failure, runs = dict.fromkeys(names, 0), 0.1, 300
    for seed in range(runs):
        for case in correct(np.random.default_rng(seed)):
            counts[case.name] += accused(case, samples=1000, failure=failure, seed=seed)
    assert max(counts.values()) <= _most(runs, failure), counts
    assert max(counts.values()) > 0  # a bound that never accuses would be no use


@settings(max_examples=25)
@given(
    st.integers(2, 4).flatmap(
        lambda size: st.tuples(
            st.lists(
                st.lists(st.floats(0.05, 1.0), min_size=3, max_size=3),
                min_size=size,
                max_size=size,
            ),
            st.lists(st.floats(0.1, 1.0), min_size=size, max_size=size),
        )
    ),
    st.integers(0, 2**32),
)
def test_no_bound_is_above_the_certificate_of_a_channel(
    case: tuple[list[list[float]], list[float]], seed: int
) -> None:
    rows, weights = np.array(case[0]), np.array(case[1])
    channel = sf.Channel.from_probabilities(rows / rows.sum(axis=1, keepdims=True))
    inputs, prior = list(range(len(rows))), weights / weights.sum()
    asked: dict[str, Any] = {"samples": 1000, "failure": 1e-9, "seed": seed}
    bound = audit_mechanism(channel, inputs, **asked).bound
    assert not bound.exceeds(local_leakage(channel))
    bound = audit_mechanism(channel, inputs, prior=prior.tolist(), **asked).bound
    assert not bound.exceeds(information_leakage(channel, prior))


@pytest.mark.statistical
def test_the_rule_of_the_paper_is_exposed_where_a_value_is_rare() -> None:
    prior = [0.02, 0.49, 0.49]
    claim = paper_response(prior, 1 - np.eye(3), epsilon=0.5)
    audit = audit_mechanism(claim.channel, [0, 1, 2], prior=prior, seed=1)
    assert audit.bound.exceeds(sf.LIP(2.0))
    assert not audit.bound.exceeds(sf.LIP(claim.sip.epsilon))
    assert 0 in audit.inputs  # the rare one
    honest = sf.solver.optimal(prior, 1 - np.eye(3), epsilon=0.5)
    assert not audit_mechanism(honest.channel, [0, 1, 2], prior=prior, seed=1).bound.exceeds(
        sf.LIP(0.5)
    )


@pytest.mark.statistical
def test_a_measurement_of_another_library_is_audited() -> None:
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    noisy: Any = dp.m.make_laplace(*space, scale=1.0)
    asked: dict[str, Any] = {"samples": 6000, "seed": 1, "neighbours": [(0, 1)]}
    audit = audit_mechanism(noisy, [0.0, 1.0], **asked)
    assert audit.bound.notion is Notion.DP
    assert not audit.bound.exceeds(sf.PureDP(noisy.map(1.0)))
    assert audit.bound.exceeds(sf.PureDP(0.5 * noisy.map(1.0)))


def test_a_whole_stream_is_a_black_box_too() -> None:
    """A release that forgets what it said before leaks more of a sequence than of its steps."""
    chain = sf.MarkovChain.from_matrix([[0.95, 0.05], [0.05, 0.95]])
    step = sf.Channel.from_probabilities([[0.62, 0.38], [0.38, 0.62]])  # SIP .27 alone
    coins = sf.seeded(3)

    class Forgetful:
        def draw(self, values: Sequence[Any]) -> Sequence[Any]:
            flat = np.array(values).ravel()
            return step.draw(flat, coins.words(flat.size)).reshape(len(values), 2).tolist()

    tracks = [(a, b) for a in (0, 1) for b in (0, 1)]
    prior = [0.5 * chain.transition()[a, b] for a, b in tracks]
    audit = audit_mechanism(Forgetful(), tracks, prior=prior, seed=1)
    truth = sf.stream.tabulate(chain, lambda _: step, length=2).information_leakage()
    assert 0.5 * truth < audit.bound.epsilon <= truth


def test_the_coins_of_an_audit_are_not_those_of_a_mechanism_with_the_same_seed() -> None:
    """A mechanism that knows the coin of each trial is found to tell everything."""
    foreseen = np.random.default_rng(7)

    def nothing(value: int) -> int:
        return int(foreseen.integers(0, 2))

    own = own_coins(7).integers(0, 2, size=200)
    assert 60 < (own == [nothing(0) for _ in own]).sum() < 140


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"prior": [0.5, 0.5], "neighbours": [(0, 1)]}, "not come with a prior"),
        ({"neighbours": [(0, 0)]}, "be pairs of places of 2 inputs"),
        ({"neighbours": []}, "be pairs of places of 2 inputs"),
        ({"failure": 0.0}, "failure must"),
        ({"samples": 10}, "samples must"),
        ({"prior": [0.5, 0.2]}, "prior must"),
    ],
)
def test_what_makes_no_sense_is_refused(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(sf.SfumatoError, match=message):
        audit_mechanism(lambda value: value, [0, 1], **asked)


def test_outputs_of_every_kind_are_coded() -> None:
    many = list(np.random.default_rng(1).normal(size=1000)) + [0.5] * 100
    codes = OutputCodes.fitted(many)
    coded = codes.coded([0.5, -math.inf, math.inf, math.nan, 0.4999]).ravel()
    assert coded[0] == codes.columns[0].size - 1  # clamped values are a code of their own
    assert coded[1] == 0
    assert coded[4] not in (coded[0], coded[1])
    mixed = OutputCodes.fitted([("a", 1), ("b", 2), ("a", 2)])
    assert mixed.parts == 2
    assert len(set(map(tuple, mixed.coded([("a", 1), ("b", 2), "other", {"x": 1}]).tolist()))) == 3
