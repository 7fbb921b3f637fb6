"""Far-sighted releases that keep their budget for every chain of a set."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import InvalidParameter
from sfumato.models.plausible import PlausibleChains
from sfumato.models.prior_sets import PriorBox
from sfumato.solver.design_methods import Method
from sfumato.solver.far_sighted import FarSight
from sfumato.store.codec import from_bytes, to_bytes
from sfumato.stream.look_ahead import look_ahead
from sfumato.stream.partition.robust_sight import Repair, robust_sighted
from sfumato.stream.partition.value_spaces import NextValueAhead
from tests.models.test_belief_sets import a_box, corners
from tests.stream.test_other_truth import a_chain, a_chain_within, a_plan

SEEDS = st.integers(0, 2**32 - 1)
STICKY = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])


@settings(max_examples=6, deadline=None)
@given(
    seed=SEEDS,
    size=st.integers(2, 3),
    radius=st.sampled_from([0.01, 0.05, 0.2]),
    repair=st.sampled_from(Repair),
)
def test_no_chain_of_the_set_is_told_more_than_was_charged_at_any_step(
    seed: int, size: int, radius: float, repair: Repair
) -> None:
    """Signals count: the adversary sees which output left, not its symbol alone."""
    rng = np.random.default_rng(seed)
    model = a_chain(rng, size)
    chains = PlausibleChains.from_radius(model, radius)
    plan = a_plan(model, 0.5, robust=chains, method=Method.FAR_SIGHTED, repair=repair)
    truth = a_chain_within(chains, rng)
    state, belief = plan.begin("ann"), truth.initial.ravel()
    for _ in range(5):
        found = plan.prepare(state)
        assert found is not None
        rows = found.design.channel.probabilities
        (event,), after = plan.step(state, [int(rng.integers(size))], sf.seeded(seed))
        seen = plan.observed(state, [event.released], signal=event.signal)
        assert to_bytes(seen.following) == to_bytes(after)
        state = from_bytes(to_bytes(after), type(after))
        mean = belief @ rows
        told = max(np.log(rows.max(axis=0) / mean).max(), np.log(mean / rows.min(axis=0)).max())
        assert told <= event.sip.epsilon + 1e-12
        assert event.sip <= sf.SIP(0.5) and event.signal is not None
        weighed = belief * found.design.channel.likelihood(event.signal)
        belief = (weighed / weighed.sum()) @ truth.transition()


@settings(max_examples=10, deadline=None)
@given(
    seed=SEEDS,
    size=st.integers(2, 3),
    epsilon=st.floats(0.1, 1.5),
    repair=st.sampled_from(Repair),
)
def test_a_channel_keeps_its_budget_at_every_corner(
    seed: int, size: int, epsilon: float, repair: Repair
) -> None:
    rng = np.random.default_rng(seed)
    chain, box = a_chain(rng, size), a_box(rng, size)
    sight = FarSight(look_ahead(chain, sf.loss.hamming(chain.alphabet), epsilon))
    middle = np.maximum(box.nominal, 1e-6)
    found = robust_sighted(sight, middle / middle.sum(), box, epsilon, repair=repair).design
    rows = found.channel.probabilities
    for corner in corners(box):
        mean = corner @ rows
        worst = max((rows.max(axis=0) / mean).max(), (mean / rows.min(axis=0)).max())
        assert np.log(worst) <= found.sip.epsilon + 1e-12 <= epsilon + 2e-12


def test_a_set_of_one_chain_has_the_cost_to_go_of_the_chain() -> None:
    loss = sf.loss.hamming(STICKY.alphabet)
    sight = FarSight(look_ahead(STICKY, loss, 1.0))
    belief = np.array([0.7, 0.3])
    plain = sight.design(belief, 1.0).design.channel.probabilities
    near = robust_sighted(sight, belief, PriorBox(belief, belief), 1.0)
    due = sight.going_on(belief, plain)[1]
    assert sight.going_on(belief, near.design.channel.probabilities)[1] <= due + 1e-6


def test_what_is_ahead_counts_and_not_the_step_alone() -> None:
    """Near a certain belief a constant is best for the step; far-sighted ones tell the value."""
    chain = sf.MarkovChain.from_matrix([[0.95, 0.05], [0.05, 0.95]])
    near = PlausibleChains.from_radius(chain, 0.005)
    loss = sf.loss.hamming(chain.alphabet)
    box = PriorBox([0.8, 0.16], [0.84, 0.2])
    sight = FarSight(look_ahead(chain, loss, 0.5))
    found = robust_sighted(sight, np.array([0.82, 0.18]), box, 0.5)
    assert found.symbols.tolist() == [0, 0] and not found.design.channel.is_constant
    step_wise = sf.Plan(chain, sf.PerStep(sf.SIP(0.5)), loss, robust=near)
    ahead = replace(step_wise, method=Method.FAR_SIGHTED, purpose=sf.Purpose.SIMULATION)
    losses = [_lost(plan) for plan in (replace(step_wise, purpose=ahead.purpose), ahead)]
    assert losses[1] < 0.95 * losses[0]


def _lost(plan: sf.Plan) -> float:
    """Mean expected loss of some streams drawn from the model."""
    rng, total = np.random.default_rng(7), 0.0
    moves = plan.model.transition()  # type: ignore[union-attr]
    for stream in range(6):
        state, value = plan.begin(f"s{stream}"), int(rng.integers(2))
        for _ in range(30):
            found = plan.prepare(state)
            assert found is not None
            total += found.design.cost / 180
            _, state = plan.step(state, [value], sf.seeded(stream))
            value = int(rng.random() < moves[value, 1])
    return total


def test_another_sight_is_another_plan() -> None:
    near = PlausibleChains.from_radius(STICKY, 0.05)
    plans = [
        a_plan(STICKY, 0.5, robust=chains, method=method)
        for chains in (None, near)
        for method in (Method.OPTIMAL, Method.FAR_SIGHTED)
    ]
    assert len({plan.fingerprint for plan in plans}) == 4


def test_a_chain_of_higher_order_cannot_be_followed() -> None:
    second = sf.MarkovChain.fit([[0, 1, 1, 0, 0, 1, 0, 1] * 9], order=2, floor=1e-3)
    with pytest.raises(InvalidParameter, match="order 1"):
        a_plan(
            second,
            0.5,
            robust=PlausibleChains.from_radius(second, 0.05),
            method=Method.FAR_SIGHTED,
        )


def test_steps_for_boxes_that_never_come_again_are_not_kept_for_ever() -> None:
    near = PlausibleChains.from_radius(STICKY, 0.05)
    space = a_plan(STICKY, 0.5, robust=near, method=Method.FAR_SIGHTED).space
    assert isinstance(space, NextValueAhead)
    most = space._robust_steps.cache_info().maxsize
    assert most is not None and 64 <= most <= 10_000  # some 1.5 kB each
