"""Bayes' attack on released streams: never above the certificate, and near it where it is tight."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.attacks import attack_tracks, realised_gains, worst_outputs
from sfumato.core.state import StreamState
from sfumato.stream import recover
from tests.attacks.scenes import plan_of, released, sticky, walk
from tests.oracles.tracks import chances


def random_chain(size: int, seed: int) -> sf.MarkovChain:
    rng = np.random.default_rng(seed)
    moves = rng.dirichlet(np.full(size, 0.5), size=size) * 0.95 + 0.05 / size
    chain = sf.MarkovChain.from_matrix(moves)
    return replace(chain, initial=rng.dirichlet(np.ones(size)) * 0.9 + 0.1 / size)


def brute_gain(plan: sf.Plan, outputs: list[int]) -> float:
    """The largest |log posterior/prior| over all tracks, written down one by one."""
    chain = plan.model
    assert isinstance(chain, sf.MarkovChain)
    state, likelihoods = plan.begin("s0"), []
    for output in outputs:
        design = plan.prepare(state)
        assert design is not None
        likelihoods.append(design.design.channel.likelihood(output))
        _, state = plan.observe(state, [chain.alphabet.labels[output]])
    told = {
        track: math.prod(one[value] for one, value in zip(likelihoods, track, strict=True))
        for track in itertools.product(range(chain.size), repeat=len(outputs))
    }
    prior = chances(chain.initial, chain.transition(), len(outputs))
    total = sum(prior[track] * told[track] for track in told)
    return max(abs(math.log(chance / total)) for chance in told.values())


@settings(max_examples=40)
@given(
    size=st.integers(2, 4),
    length=st.integers(1, 4),
    epsilon=st.sampled_from([0.1, 0.5, 1.0, 2.5]),
    seed=st.integers(0, 10_000),
)
def test_the_gain_is_that_of_all_tracks_and_never_above_the_certificate(
    size: int, length: int, epsilon: float, seed: int
) -> None:
    check_gain(size, length, epsilon, seed)


@pytest.mark.slow
def test_no_gain_of_thousands_is_above_its_certificate() -> None:
    rng = np.random.default_rng(1)
    for seed in range(3000):
        epsilon = float(np.exp(rng.uniform(np.log(0.02), np.log(4.0))))
        check_gain(int(rng.integers(2, 5)), int(rng.integers(1, 5)), epsilon, seed)


def check_gain(size: int, length: int, epsilon: float, seed: int) -> None:
    chain = random_chain(size, seed)
    plan = plan_of(chain, epsilon)
    left = released(plan, [walk(chain.transition(), length, np.random.default_rng(seed))], seed)
    (bound,) = realised_gains(recover(left.events, plan))
    assert not bound.exceeds(left.spent["s0"])
    outputs = [int(event.released) for event in left.events["s0"] if event.released is not None]
    assert bound.epsilon == pytest.approx(brute_gain(plan, outputs), rel=1e-7, abs=1e-8)
    attack = attack_tracks(left.events, plan)
    assert attack.value_gains[0] <= left.spent["s0"].epsilon
    assert attack.value_gains[0] <= bound.epsilon + 1e-8


@settings(max_examples=15)
@given(size=st.integers(2, 3), width=st.integers(2, 3), seed=st.integers(0, 10_000))
def test_batches_and_their_search_keep_to_the_certificate(size: int, width: int, seed: int) -> None:
    chain = random_chain(size, seed)
    plan = plan_of(chain, 0.4, width=width)
    left = released(plan, [walk(chain.transition(), 5, np.random.default_rng(seed))], seed)
    (bound,) = realised_gains(recover(left.events, plan))
    assert not bound.exceeds(left.spent["s0"])
    found = worst_outputs(plan, 5)
    assert not found.bound.exceeds(found.certified)
    assert len(found.outputs) == 5


def test_the_search_finds_what_all_sequences_have_to_offer() -> None:
    plan = plan_of(random_chain(3, 5), 0.7)
    every = [brute_gain(plan, list(outputs)) for outputs in _possible(plan, 4)]
    assert worst_outputs(plan, 4, beam=200).bound.epsilon == pytest.approx(max(every), abs=1e-7)


def _possible(plan: sf.Plan, length: int) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = [()]
    states: dict[tuple[int, ...], StreamState] = {(): plan.begin("s0")}
    for _ in range(length):
        longer = []
        for path in found:
            design = plan.prepare(states[path])
            assert design is not None
            for output in design.design.channel.outputs.tolist():
                _, following = plan.observe(states[path], [plan.model.alphabet.labels[output]])
                states[*path, output] = following
                longer.append((*path, output))
        found = longer
    return found


def test_far_sighted_releases_are_searched_with_their_signals() -> None:
    plan = plan_of(sticky(2, 0.9), 0.5, method=sf.Method.FAR_SIGHTED)
    found = worst_outputs(plan, 5)
    assert found.tightness > 0.8
    assert not found.bound.exceeds(found.certified)


def test_a_memory_of_several_batches_is_refused() -> None:
    plan = plan_of(sticky(2, 0.9), 0.5, memory=2)
    with pytest.raises(sf.SfumatoError, match="memory must be 1"):
        worst_outputs(plan, 3)


@pytest.mark.statistical
def test_what_the_adversary_expects_is_what_he_gets() -> None:
    chain = sticky(5, 0.8)
    plan = plan_of(chain, 1.0)
    rng = np.random.default_rng(7)
    tracks = [walk(chain.transition(), 30, rng) for _ in range(40)]
    left = released(plan, tracks, seed=3)
    attack = attack_tracks(left.events, plan, top=2)
    scores = attack.scored(np.concatenate(tracks))
    for expected, got in (
        (attack.expected_first, scores.first),
        (attack.expected_top, scores.top),
        (attack.expected_error, scores.error),
        (attack.expected_blind_error, scores.blind_error),
    ):
        assert abs(expected - got.mean) < 4 * got.error
        assert got.error < 0.03
    assert scores.first.mean > scores.blind.mean + 0.2
    assert scores.top.mean > scores.first.mean
    assert scores.error.mean == pytest.approx(1 - scores.first.mean)  # right or wrong
    at_once = attack_tracks(left.events, plan, lag=0)
    assert at_once.expected_error > attack.expected_error


def test_truths_that_are_unknown_do_not_count() -> None:
    plan = plan_of(sticky(2, 0.9), 1.0)
    left = released(plan, [[0, 1, 0], [1, 1, 1]], seed=1)
    attack = attack_tracks(left.events, plan, top=1)
    one = np.array([-1, -1, -1, int(attack.ranked[3, 0]), -1, -1])
    scores = attack.scored(one)
    assert (scores.values, scores.first.mean, scores.top.mean, scores.error.mean) == (1, 1, 1, 0)
    assert math.isinf(scores.first.error)
    with pytest.raises(sf.SfumatoError, match="be known of one value"):
        attack.scored(np.full(6, -1))
    with pytest.raises(sf.SfumatoError, match="be 6 places"):
        attack.scored(np.zeros(5, dtype=np.int64))
