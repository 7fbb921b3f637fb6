"""Releases under a chain that changes with time: certificates, phases that are due, refusals."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator

import sfumato as sf
from sfumato.core.bursts import spread_out
from sfumato.core.errors import InvalidParameter
from sfumato.core.state import StreamState
from sfumato.models.encoding import Symbols
from sfumato.models.plausible import PlausibleChains
from sfumato.models.stream_model import StreamModel
from sfumato.solver.design_methods import Method
from sfumato.store.codec import from_bytes, to_bytes
from sfumato.stream import Cycle, PeriodicChain, ReleaseSpec
from sfumato.stream.burst_search import best_bursts
from sfumato.stream.forecast import forecast
from sfumato.stream.look_ahead import look_ahead
from sfumato.stream.plan import Plan
from tests.oracles.phased_sequences import (
    Joint,
    Weights,
    phased_sequences,
    told_in_all,
    told_step_by_step,
)

SEEDS = st.integers(0, 2**32 - 1)
HOURS = Cycle.of("hour", 3)
METHODS = [Method.OPTIMAL, Method.RANDOMIZED_RESPONSE, Method.CALIBRATED]


def a_periodic_chain(rng: Generator, size: int = 2, cycle: Cycle = HOURS) -> PeriodicChain:
    tables = rng.dirichlet(0.5 * np.ones(size), (cycle.phases, size))
    starts = rng.dirichlet(np.ones(size), cycle.phases)
    return PeriodicChain.from_matrices(list(tables), cycle, starts, floor=0.01)


def a_plan(model: PeriodicChain, **options: object) -> Plan:
    given = {"budget": sf.PerStep(sf.SIP(0.7)), "loss": sf.loss.hamming(model.alphabet)}
    return Plan(model, **given | options)  # type: ignore[arg-type]


def joint_of(model: PeriodicChain, phases: list[int]) -> Joint:
    tables = [model.at(phase).transition().tolist() for phase in range(model.cycle.phases)]
    return phased_sequences(model.initial.tolist(), tables, phases)


def walked(
    plan: Plan, rng: Generator, phases: list[int]
) -> tuple[list[sf.Event], list[tuple[Weights, int]]]:
    """What left at some phases, with the channel of each step and the column that left."""
    state, left, steps = plan.begin("ann"), [], []
    for phase in phases:
        design = plan.prepare(state, phase=phase)
        assert design is not None
        channel = design.design.channel
        column = int(rng.integers(len(channel.outputs)))
        label = plan.model.alphabet.labels[int(channel.outputs[column])]
        (event,), state = plan.observe(state, [label], phase=phase)
        left.append(event)
        steps.append((channel.weights.tolist(), column))
    return left, steps


# Certificates -------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, size=st.integers(2, 3), method=st.sampled_from(METHODS))
def test_charges_are_the_leakage_in_the_joint_table_of_all_sequences(
    seed: int, size: int, method: Method
) -> None:
    rng = np.random.default_rng(seed)
    model = a_periodic_chain(rng, size)
    phases = rng.integers(3, size=4).tolist()
    plan = a_plan(model, method=method)
    left, steps = walked(plan, rng, phases)
    joint = joint_of(model, phases)
    for event, exact in zip(left, told_step_by_step(joint, steps), strict=True):
        constant = len(steps[event.sequence][0][0]) == 1
        assert event.sip <= sf.SIP(0.7)
        # Logarithms of the oracle's long fractions are off by some roundings.
        assert -1e-12 <= event.sip.epsilon - exact <= 1e-11 or (constant and exact == 0)
    assert told_in_all(joint, steps) <= sum(event.sip.epsilon for event in left) + 1e-12
    assert [event.phase for event in left] == phases


BUDGETS = [
    sf.Horizon(sf.SIP(1.5), 4),
    sf.Horizon(sf.SIP(1.5), 4, sf.LDP(2.0)),
    sf.Window(sf.SIP(0.9), 2),
    spread_out(sf.Horizon(sf.SIP(1.5), 4), 2, 3.0, sf.SIP(1.0)),
    spread_out(sf.Window(sf.SIP(1.5), 3), 2, 1.0, None),
]


@settings(max_examples=4, deadline=None)
@given(seed=SEEDS)
@pytest.mark.parametrize("budget", BUDGETS)
def test_totals_windows_and_bursts_are_kept_in_the_joint_table(
    budget: sf.Horizon | sf.Window, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    model = a_periodic_chain(rng)
    phases = rng.integers(3, size=4).tolist()
    left, steps = walked(a_plan(model, budget=budget), rng, phases)
    joint, width = joint_of(model, phases), getattr(budget, "width", 4)
    exact = told_step_by_step(joint, steps)
    for event, told in zip(left, exact, strict=True):
        assert -1e-12 <= event.sip.epsilon - told <= 1e-11
    for first in range(5 - width):
        assert sum(exact[first : first + width]) <= budget.sip.epsilon + 1e-12
    assert told_in_all(joint, steps) <= sum(exact) + 1e-12


def test_a_phase_that_is_off_by_one_is_seen_in_the_joint_table() -> None:
    """The oracle finds a plan that looks up the hour before: what it charges is not what leaks."""
    rng, wrong = np.random.default_rng(5), 0
    for _ in range(20):
        model = a_periodic_chain(rng)
        phases = rng.integers(3, size=3).tolist()
        late = [(phase - 1) % 3 for phase in phases]
        left, steps = walked(a_plan(model), rng, late)
        exact = told_step_by_step(joint_of(model, phases), steps)
        wrong += any(
            abs(event.sip.epsilon - told) > 1e-6 for event, told in zip(left, exact, strict=True)
        )
    assert wrong >= 10


@settings(max_examples=15, deadline=None)
@given(seed=SEEDS)
def test_steps_say_what_observers_compute(seed: int) -> None:
    rng = np.random.default_rng(seed)
    plan = a_plan(a_periodic_chain(rng, 3), purpose=sf.Purpose.SIMULATION)
    coins, here = sf.seeded(seed), plan.begin("ann")
    there = here
    for phase in rng.integers(3, size=6).tolist():
        if rng.random() < 0.2:
            (event,), here = plan.skip(here, phase=phase)
        else:
            (event,), here = plan.step(here, [int(rng.integers(3))], coins, phase=phase)
        seen, there = plan.observe(there, [event.released], event.outcome, phase=phase)
        assert seen == (event,) and event.phase == phase
        assert to_bytes(here) == to_bytes(there)
        here = from_bytes(to_bytes(here), StreamState)


def test_a_moment_that_passes_moves_the_belief_through_its_phase() -> None:
    model = a_periodic_chain(np.random.default_rng(1))
    plan = a_plan(model)
    _, state = plan.skip(plan.begin("ann"), phase=2)
    expected = model.initial[2] @ model.at(0).transition() @ model.at(1).transition()
    _, state = plan.skip(state, phase=0)
    assert plan.belief(state, 1).marginal == pytest.approx(expected, rel=1e-12)


def test_one_phase_charges_as_the_chain_without_phases_does() -> None:
    rng = np.random.default_rng(2)
    alone = a_periodic_chain(rng, 3, Cycle.of("5", 1))
    phased, plain = (
        a_plan(alone),
        Plan(alone.at(0), sf.PerStep(sf.SIP(0.7)), sf.loss.hamming(alone.alphabet)),
    )
    one, two = phased.begin("ann"), plain.begin("ann")
    for _ in range(5):
        design = phased.prepare(one)
        assert design is not None
        left = [int(design.design.channel.outputs[0])]
        (first,), one = phased.observe(one, left)
        (second,), two = plain.observe(two, left)
        assert first.sip.epsilon == pytest.approx(second.sip.epsilon, abs=1e-9)


# Phases that are due ------------------------------------------------------------------------------


def test_a_step_without_its_phase_is_refused_and_draws_nothing() -> None:
    plan = a_plan(a_periodic_chain(np.random.default_rng(3)))
    state, coins = plan.begin("ann"), sf.secure()
    for call in (
        lambda: plan.step(state, [0], coins),
        lambda: plan.skip(state),
        lambda: plan.prepare(state),
        lambda: plan.observe(state, [0]),
    ):
        with pytest.raises(InvalidParameter, match=r"phase must be given with each value: .*hour"):
            call()
    for phase in (-1, 3):
        with pytest.raises(InvalidParameter, match="phase"):
            plan.step(state, [0], coins, phase=phase)


def test_values_in_turn_know_their_phase() -> None:
    turn = Cycle.of("4", 2)
    plan = a_plan(a_periodic_chain(np.random.default_rng(3), cycle=turn))
    state, seen = plan.begin("ann"), []
    for _ in range(6):
        (event,), state = plan.step(state, [1], sf.secure())
        seen.append(event.phase)
    assert seen == [0, 0, 1, 1, 0, 0]
    with pytest.raises(InvalidParameter, match="be that of the value"):
        plan.step(state, [1], sf.secure(), phase=0)


def test_a_model_without_phases_is_given_none() -> None:
    chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
    plan = Plan(chain, sf.PerStep(sf.SIP(0.5)), sf.loss.hamming(chain.alphabet))
    with pytest.raises(InvalidParameter, match="does not change with time"):
        plan.step(plan.begin("ann"), [0], sf.secure(), phase=0)


def test_a_live_stream_is_given_phases() -> None:
    model = a_periodic_chain(np.random.default_rng(4))
    loss = sf.loss.hamming(model.alphabet)
    release = sf.InstantRelease(model, budget=sf.SIP(0.5), loss=loss)
    assert release.step(1, phase=2).phase == 2
    assert release(0, phase=1) in (0, 1)
    assert release.skip(phase=0).sequence == 2
    with pytest.raises(InvalidParameter, match="phase must be given"):
        release.step(1)
    policy = sf.compile_policy(model.at(0), loss, 0.5, steps=200)
    compiled = sf.InstantRelease(model.at(0), budget=sf.SIP(0.5), loss=loss, policy=policy)
    with pytest.raises(InvalidParameter, match="does not change with time"):
        compiled.step(1, phase=0)


# What it is not for -------------------------------------------------------------------------------


def test_what_knows_no_phases_says_so() -> None:
    model = a_periodic_chain(np.random.default_rng(6))
    loss = sf.loss.hamming(model.alphabet)
    plan = a_plan(model)
    refused = (
        lambda: a_plan(model, method=Method.FAR_SIGHTED),
        lambda: a_plan(model, width=2),
        lambda: a_plan(model, memory=2),
        lambda: a_plan(model, robust=PlausibleChains.from_radius(model.at(0), 0.1)),
        lambda: a_plan(model, policy=sf.compile_policy(model.at(0), loss, 0.5, steps=200)),
        lambda: look_ahead(model, loss, 0.5),
        lambda: best_bursts(replace(plan, budget=sf.Horizon(sf.SIP(3.0), 6))),
        lambda: forecast(plan, length=5, streams=2),
        lambda: sf.stream.learn({"ann": [plan.skip(plan.begin("ann"), phase=0)[0][0]]}, plan),
        lambda: sf.stream.forecast_widths(plan, [1, 2], steps=5),
        lambda: sf.Fleet(plan, ["ann"]),
    )
    for call in refused:
        with pytest.raises(InvalidParameter):
            call()


def test_a_model_file_holds_a_chain_with_phases_and_others_stay_what_they_were() -> None:
    model = a_periodic_chain(np.random.default_rng(7))
    whole = StreamModel(model, Symbols(model.alphabet))
    back = from_bytes(to_bytes(whole), StreamModel)
    assert back.chain.fingerprint == model.fingerprint and back.cycle == HOURS
    assert ReleaseSpec(epsilon=0.5).plan(back).fingerprint == (
        ReleaseSpec(epsilon=0.5).plan(whole).fingerprint
    )
    # The layout in the envelope is the one that files had before there were phases.
    plain = StreamModel(model.at(0), Symbols(model.alphabet))
    assert to_bytes(plain)[-8:] == bytes.fromhex("87eaa2ff206a7d04")
    for call in (lambda: whole.steady, lambda: whole.value_by_value, lambda: whole.single_values):
        with pytest.raises(InvalidParameter, match="without --period"):
            call()
