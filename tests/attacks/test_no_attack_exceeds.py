"""One law for all attacks: what they show is never above what is certified."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.attacks import (
    NetworkSpec,
    attack_tracks,
    audit_mechanism,
    realised_gains,
    reconstruct_by_particles,
    reconstruct_private_weight,
    reconstruct_series,
    reidentify,
    reidentify_by_network,
    worst_outputs,
)
from sfumato.core.purpose import Purpose
from sfumato.series.autoregressive import Autoregressive
from sfumato.series.filters import one_lag, plain
from sfumato.series.realtime import Realtime
from sfumato.solver import paper_response
from sfumato.stream import information_leakage, local_leakage, recover
from tests.attacks.scenes import plan_of, released, walk

SURE = 1e-7
"""Failure probability of sampled bounds: thousands of cases must not accuse by chance."""


def random_plan(seed: int, size: int, epsilon: float, width: int) -> sf.Plan:
    rng = np.random.default_rng(seed)
    moves = rng.dirichlet(np.full(size, 0.5), size=size) * 0.95 + 0.05 / size
    chain = sf.MarkovChain.from_matrix(moves)
    chain = replace(chain, initial=rng.dirichlet(np.ones(size)) * 0.9 + 0.1 / size)
    return plan_of(chain, epsilon, width=width)


def check_streams(seed: int, size: int, epsilon: float, width: int) -> None:
    """Bayes, its gains, the search, and owners found by likelihood."""
    rng, plan = np.random.default_rng(seed), random_plan(seed, size, epsilon, width)
    assert isinstance(plan.model, sf.MarkovChain)
    tracks = [walk(plan.model.transition(), 4, rng) for _ in range(4)]
    left = released(plan, tracks, seed)
    certified = max(left.spent.values(), key=lambda one: one.epsilon)
    for bound, own in zip(
        realised_gains(recover(left.events, plan)), left.spent.values(), strict=True
    ):
        assert not bound.exceeds(own)
    assert attack_tracks(left.events, plan).value_gains.max() <= certified.epsilon + 1e-9
    found = worst_outputs(plan, 4, beam=4)
    assert not found.bound.exceeds(found.certified)
    assert found.least_step <= 1 + 1e-9
    known = {f"s{n}": walk(plan.model.transition(), 12, rng) for n in range(4)}
    leaked = reidentify(known, left.events, plan).accuracy(list(known)).leaked
    assert leaked is not None and not leaked.exceeds(sf.SIP(4 * epsilon))


def check_channel(seed: int, size: int) -> None:
    """The audit of a channel that it cannot look into."""
    rng = np.random.default_rng(seed)
    rows, prior = rng.dirichlet(np.ones(3), size) * 0.9 + 0.1 / 3, rng.dirichlet(np.full(size, 2.0))
    channel = sf.Channel.from_probabilities(rows)
    asked: dict[str, Any] = {"samples": 400, "failure": SURE, "seed": seed}
    inputs = list(range(size))
    assert not audit_mechanism(channel, inputs, **asked).bound.exceeds(local_leakage(channel))
    audit = audit_mechanism(channel, inputs, prior=prior.tolist(), **asked)
    assert not audit.bound.exceeds(information_leakage(channel, prior))


def check_series(seed: int, correlation: float) -> None:
    """Reconstructions are never surer than the exact bound of who knows everything."""
    process, rng = Autoregressive(5.0, [correlation], 1.0), np.random.default_rng(seed)
    truth = 5 + rng.normal(size=12)
    method = Realtime.gaussian(1.0, epsilon=8.0, delta=1e-6, length=12, estimate=plain())
    left = method.release(truth, sf.seeded(seed), Purpose.SIMULATION)
    exact = reconstruct_series(left, method, process=process)
    particles = reconstruct_by_particles(left, method, process, particles=1000, seed=seed)
    assert particles.expected_error > 0.9 * exact.expected_error
    rule = replace(method, estimate=one_lag(), weights=np.full(12, 0.5))
    shown = rule.release(truth, sf.seeded(seed), Purpose.SIMULATION).tolist()
    noise = 0.25 * float(method.variances[0])
    blind = reconstruct_private_weight(shown, noise, process, weights=[0.2, 0.5, 1.0])
    # At weight 1 the noise is that of a release alone: nobody is surer than that.
    sharpest = reconstruct_series(shown, noise, process=process).expected_error
    assert blind.series.expected_error >= sharpest - 1e-9


@settings(max_examples=12)
@given(
    st.integers(0, 10**6),
    st.integers(2, 4),
    st.sampled_from([0.05, 0.4, 1.0, 2.5]),
    st.sampled_from([1, 1, 2]),
)
def test_no_attack_on_streams_is_above_its_certificate(
    seed: int, size: int, epsilon: float, width: int
) -> None:
    check_streams(seed, size, epsilon, width)


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.integers(2, 4))
def test_no_audit_is_above_its_certificate(seed: int, size: int) -> None:
    check_channel(seed, size)


@settings(max_examples=10)
@given(st.integers(0, 10**6), st.floats(0.05, 0.95))
def test_no_reconstruction_is_surer_than_the_exact_one(seed: int, correlation: float) -> None:
    check_series(seed, correlation)


@pytest.mark.slow
def test_none_of_thousands_is_above_its_certificate() -> None:
    rng = np.random.default_rng(2)
    for seed in range(2500):
        epsilon = float(np.exp(rng.uniform(np.log(0.02), np.log(4.0))))
        check_streams(seed, int(rng.integers(2, 5)), epsilon, int(rng.integers(1, 3)))
        check_channel(seed, int(rng.integers(2, 5)))
        if seed % 5 == 0:
            check_series(seed, float(rng.uniform(0.05, 0.95)))


@pytest.mark.slow
def test_no_network_of_many_is_above_its_certificate() -> None:
    small = NetworkSpec(hidden=4, window=5, steps=20)
    for seed in range(60):
        plan = random_plan(seed, 3, 0.05, 1)
        rng = np.random.default_rng(seed)
        known = {f"s{n}": rng.integers(0, 3, 20).tolist() for n in range(12)}
        left = released(plan, [rng.integers(0, 3, 5).tolist() for _ in known], seed)
        found = reidentify_by_network(known, left.events, plan, network=small, rehearsals=1)
        leaked = found.accuracy(list(known)).leaked
        assert leaked is not None
        # A bound that fails once in 40 may; the certificate is .25 for five values.
        assert leaked.epsilon <= 0.25 + np.log(3)


@pytest.mark.statistical
@pytest.mark.parametrize("rare", [0.01, 0.05, 0.1])
def test_rules_of_papers_are_exposed_where_a_value_is_rare(rare: float) -> None:
    """SIP Theorem 4, Algorithm 1 and LIP Equation 19: one value below 1/(k+1) breaks them."""
    prior = [rare, *((1 - rare) / 3,) * 3]
    claim = paper_response(prior, 1 - np.eye(4), epsilon=0.5)
    audit = audit_mechanism(claim.channel, [0, 1, 2, 3], prior=prior, samples=8000, seed=1)
    assert audit.bound.exceeds(sf.LIP(0.5))
    assert not audit.bound.exceeds(information_leakage(claim.channel, np.array(prior)))
