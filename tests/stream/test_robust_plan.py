"""Releases that keep their budget for every chain of a set."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import InvalidParameter
from sfumato.core.state import StreamState
from sfumato.models.markov import MarkovChain
from sfumato.models.plausible import PlausibleChains
from sfumato.models.prior_sets import PriorBox
from sfumato.solver.bounded_prior_channel import bounded_prior
from sfumato.solver.design_methods import Method
from sfumato.store.codec import from_bytes, to_bytes
from sfumato.stream.partition.robust_design import robust_design
from sfumato.stream.robust_forecast import forecast_robust
from tests.models.test_belief_sets import a_box, corners
from tests.stream.test_other_truth import (
    a_chain,
    a_chain_within,
    a_plan,
    a_release,
    exact_steps,
)

SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=8, deadline=None)
@given(seed=SEEDS, size=st.integers(2, 3), radius=st.sampled_from([0.01, 0.05, 0.2]))
def test_no_chain_of_the_set_is_told_more_than_was_charged_at_any_step(
    seed: int, size: int, radius: float
) -> None:
    rng = np.random.default_rng(seed)
    model = a_chain(rng, size)
    chains = PlausibleChains.from_radius(model, radius)
    left, channels = a_release(a_plan(model, 0.5, robust=chains), rng, 4)
    assert all(event.sip <= sf.SIP(0.5) for event in left)
    for inside in (model, a_chain_within(chains, rng), a_chain_within(chains, rng)):
        for told, event in zip(exact_steps(inside, channels), left, strict=True):
            assert told <= event.sip.epsilon + 1e-12


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS, size=st.integers(2, 4), epsilon=st.floats(0.1, 1.5))
def test_a_robust_channel_keeps_its_budget_at_every_corner(
    seed: int, size: int, epsilon: float
) -> None:
    rng = np.random.default_rng(seed)
    box = a_box(rng, size)
    loss = sf.loss.hamming(sf.Alphabet.of_size(size))
    middle = np.maximum(box.nominal, 1e-6)
    found = robust_design(Method.OPTIMAL, middle / middle.sum(), box, loss, epsilon)
    rows = found.channel.probabilities
    for corner in corners(box):
        mean = corner @ rows
        worst = max((rows.max(axis=0) / mean).max(), (mean / rows.min(axis=0)).max())
        assert np.log(worst) <= found.sip.epsilon + 1e-12 <= epsilon + 2e-12


def test_a_robust_channel_is_near_the_best_of_all() -> None:
    rng, behind = np.random.default_rng(7), []
    loss = sf.loss.hamming(sf.Alphabet.of_size(4))
    for _ in range(6):
        belief = rng.dirichlet(np.ones(4)) * 0.9 + 0.025
        box = PriorBox(np.maximum(belief - 0.03, 0.001), belief + 0.03)
        best = bounded_prior(box, loss, 0.7).cost
        own = robust_design(Method.OPTIMAL, box.nominal, box, loss, 0.7).cost
        assert own >= best - 1e-9
        behind.append(own / best - 1)
    assert np.mean(behind) < 0.1


def test_a_set_of_one_chain_costs_next_to_nothing() -> None:
    rng = np.random.default_rng(3)
    model = a_chain(rng, 3)
    plain, near = (
        a_plan(model, 0.5, robust=chains)
        for chains in (None, PlausibleChains.from_radius(model, 0.0))
    )
    one, other = plain.prepare(plain.begin("ann")), near.prepare(near.begin("ann"))
    assert one is not None and other is not None
    assert other.design.cost == pytest.approx(one.design.cost, rel=1e-6)


def test_a_state_says_what_may_be_believed_and_is_stored_with_it() -> None:
    rng = np.random.default_rng(4)
    model = a_chain(rng, 2)
    plan = a_plan(model, 0.5, robust=PlausibleChains.from_radius(model, 0.05))
    _, state = plan.step(plan.begin("ann"), [0], sf.seeded(1))
    back = from_bytes(to_bytes(state), StreamState)
    assert state.bounds is not None and back.bounds is not None
    np.testing.assert_array_equal(back.bounds, state.bounds)
    assert np.all(state.bounds[0] <= state.belief.marginal)
    assert np.all(state.belief.marginal <= state.bounds[1])
    # A state without its bounds would be certified for one chain alone.
    with pytest.raises(InvalidParameter, match="may be believed"):
        plan.prepare(replace(state, bounds=None))


def test_states_of_other_plans_are_stored_as_they_were() -> None:
    model = a_chain(np.random.default_rng(4), 2)
    state = a_plan(model, 0.5).begin("ann")
    assert state.bounds is None
    assert b"bounds" not in to_bytes(state)


def test_another_set_is_another_plan() -> None:
    model = a_chain(np.random.default_rng(4), 2)
    sets = [None, *(PlausibleChains.from_radius(model, radius) for radius in (0.0, 0.1))]
    assert len({a_plan(model, 0.5, robust=chains).fingerprint for chains in sets}) == 3


def test_silent_moments_widen_what_may_be_believed() -> None:
    model = MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
    plan = a_plan(model, 0.5, robust=PlausibleChains.from_radius(model, 0.02))
    state = plan.begin("ann")
    _, later = plan.skip(state)
    assert state.bounds is not None and later.bounds is not None
    assert np.all(np.diff(later.bounds, axis=0) > np.diff(state.bounds, axis=0))


def test_plans_that_cannot_follow_a_set_are_refused() -> None:
    model = a_chain(np.random.default_rng(4), 2)
    chains = PlausibleChains.from_radius(model, 0.1)
    with pytest.raises(InvalidParameter, match="one by one"):
        a_plan(model, 0.5, robust=chains, width=2)
    with pytest.raises(InvalidParameter, match="one by one"):
        a_plan(a_chain(np.random.default_rng(5), 2), 0.5, robust=chains)


def test_a_wider_set_costs_more_and_no_more_than_no_model() -> None:
    model = MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
    alone, *near, free = forecast_robust(a_plan(model, 0.5), 0.05, length=8, streams=2)
    assert alone.loss < near[0].loss < near[-1].loss <= free.loss + 0.02
    assert all(one.worst_step <= 0.5 and one.sip <= one.over_set <= one.ldp for one in near)
    assert alone.worst_step > 0.55 and not alone.promised
