"""Drift of released streams: from plan and outputs alone, whatever made them."""

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.errors import InvalidParameter
from sfumato.core.events import Event
from sfumato.models.clustered_chain import ClusteredChain
from sfumato.stream.drift import OutputOrder, drift_test

STICKY = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
LOOSE = sf.MarkovChain.from_matrix([[0.3, 0.7], [0.7, 0.3]])


def plan_of(method: sf.Method, model: sf.MarkovChain = STICKY) -> sf.Plan:
    loss = sf.loss.hamming(model.alphabet)
    return sf.Plan(
        model, sf.PerStep(sf.SIP(1.0)), loss, method=method, purpose=sf.Purpose.SIMULATION
    )


def left(
    plan: sf.Plan, streams: int, length: int, later: sf.MarkovChain, seed: int, gaps: bool = False
) -> dict[str, list[Event]]:
    """Streams that follow the plan's chain for half of their values, and then another."""
    coins, found = sf.seeded(seed), {}
    for stream in range(streams):
        name, half = f"s{stream}", length // 2
        truth = np.random.default_rng([seed, stream])
        value, state, events = int(truth.integers(2)), plan.begin(name), list[Event]()
        for moment in range(length):
            moves = (STICKY if moment < half else later).transition()
            if moment:
                value = int(truth.random() > moves[value, 0])
            if gaps and moment % 5 == 3:
                more, state = plan.skip(state)
            else:
                more, state = plan.step(state, [value], coins)
            events += more
        found[name] = events
    return found


@pytest.mark.parametrize("method", [sf.Method.RANDOMIZED_RESPONSE, sf.Method.OPTIMAL])
@pytest.mark.parametrize("gaps", [False, True])
def test_a_change_is_found_behind_any_channel_and_around_gaps(
    method: sf.Method, gaps: bool
) -> None:
    plan = plan_of(method)
    same = drift_test(left(plan, 10, 60, STICKY, 1, gaps), plan, along=OutputOrder.MOMENTS)
    other = drift_test(left(plan, 10, 150, LOOSE, 2, gaps), plan, along=OutputOrder.MOMENTS)
    assert same.alarm is None and same.since is None and same.distance is None
    assert other.alarm is not None and 750 < other.alarm <= 1500
    assert other.since is not None and 400 <= other.since <= 1100
    assert other.distance is not None and 0.2 < other.distance < 0.9
    assert other.chance <= 0.01 < same.chance
    assert other.telling <= other.values == 1500


def test_only_outputs_are_looked_at_and_their_order() -> None:
    plan = plan_of(sf.Method.RANDOMIZED_RESPONSE)
    events = left(plan, 4, 50, LOOSE, 3)
    by_moments = drift_test(events, plan, along=OutputOrder.MOMENTS)
    by_rows = drift_test(events, plan)
    turned = drift_test(dict(reversed(events.items())), plan, along=OutputOrder.MOMENTS, block=200)
    assert by_moments.log_capital.shape == by_rows.log_capital.shape == (2,)
    assert turned.log_capital.shape == (1,)
    assert by_moments.log_capital[0] != by_rows.log_capital[0]


def test_a_set_around_the_model_is_accused_of_less_than_the_model_is() -> None:
    plan = plan_of(sf.Method.RANDOMIZED_RESPONSE)
    events = left(plan, 10, 100, LOOSE, 4)
    found = [
        drift_test(
            events,
            plan,
            plausible=sf.stream.PlausibleChains.from_radius(STICKY, radius) if radius else None,
            along=OutputOrder.MOMENTS,
        )
        for radius in (0.0, 1e-12, 1e-4, 0.05, 1.0)
    ]
    made = np.array([one.evidence for one in found])
    assert np.all(np.diff(made) <= 1e-6) and made[0] == pytest.approx(made[1], abs=1e-6)
    assert made[-1] <= 0.0
    assert found[3].tested == pytest.approx(0.05)


def test_batches_are_looked_at_as_wholes() -> None:
    loss = sf.stream.batch_loss.additive(sf.loss.hamming(STICKY.alphabet))
    plan = sf.Plan(STICKY, sf.PerStep(sf.SIP(1.0)), loss, width=2, purpose=sf.Purpose.SIMULATION)
    state, events, coins = plan.begin("ann"), list[Event](), sf.seeded(5)
    for moment in range(150):
        more, state = plan.step(state, [moment % 2, 1 - moment % 2], coins)
        events += more
    found = drift_test({"ann": events}, plan)
    assert found.alarm is not None and found.telling < found.values == 300


def test_what_is_no_chain_or_no_probability_is_refused() -> None:
    plan = plan_of(sf.Method.RANDOMIZED_RESPONSE)
    events = left(plan, 1, 4, STICKY, 6)
    with pytest.raises(InvalidParameter, match="alpha"):
        drift_test(events, plan, alpha=0.0)
    with pytest.raises(InvalidParameter, match="block"):
        drift_test(events, plan, block=0)


def test_a_model_that_is_no_chain_is_refused_with_what_it_is() -> None:
    mixture = ClusteredChain(np.array([0.5, 0.5]), (STICKY, LOOSE))
    loss = sf.loss.hamming(STICKY.alphabet)
    plan = sf.Plan(mixture, sf.PerStep(sf.SIP(1.0)), loss, purpose=sf.Purpose.SIMULATION)
    with pytest.raises(InvalidParameter, match=r"--clusters .*; got 'a mixture of chains'"):
        drift_test({"ann": []}, plan)
