"""What a receiver infers of a release by the hour: against every sequence of values."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import InvalidParameter
from sfumato.core.events import Event
from sfumato.models.cycle import Cycle
from sfumato.models.periodic import PeriodicChain
from sfumato.stream import recovery
from sfumato.stream.learning import learn
from sfumato.stream.other_truth import leakage_under
from sfumato.stream.recovered_counts import Population
from sfumato.stream.recovery import recover
from tests.oracles.hidden_sequences import switching
from tests.stream.test_periodic_plan import a_periodic_chain, a_plan

HOURS, TURNS = Cycle.of("hour", phases=3), Cycle.of("3")
SEEDS = st.integers(0, 2**32 - 1)
LENGTH = 5


def a_release(
    model: PeriodicChain, rng: np.random.Generator, name: str = "ann"
) -> tuple[list[Event], list[int], list[list[float]]]:
    """A stream of random values, the phases of its values, and how likely each made what left."""
    plan = a_plan(model, purpose=sf.Purpose.SIMULATION)
    labels, coins = model.alphabet.labels, sf.seeded(int(rng.integers(2**31)))
    phases = rng.integers(model.cycle.phases, size=LENGTH).tolist()
    if model.cycle.in_turn:
        phases = [model.cycle.turn(place) for place in range(LENGTH)]
    state, left, told = plan.begin(name), list[Event](), list[list[float]]()
    for place, phase in enumerate(phases):
        if place == 2:  # a moment that told nothing
            (event,), state = plan.skip(state, phase=phase)
            told.append([1.0] * model.size)
        else:
            design = plan.prepare(state, phase=phase)
            assert design is not None
            value = labels[int(rng.integers(model.size))]
            (event,), state = plan.step(state, [value], coins, phase=phase)
            output = design.output(model.alphabet.indices([event.released]))
            assert output is not None
            told.append(design.design.channel.likelihood(output).tolist())
        left.append(event)
    return left, phases, told


def joint_of(model: PeriodicChain, phases: list[int], told: list[list[float]]) -> Any:
    chains = [model.at(phase) for phase in range(model.cycle.phases)]
    rows = [chain.transition().tolist() for chain in chains]
    return switching(model.initial.tolist(), rows, phases, told)


def shares(joint: Any, size: int, place: int) -> Any:
    found = np.zeros(size)
    for path, weight in joint.items():
        found[path[place]] += weight
    return found / found.sum()


@settings(max_examples=10, deadline=None)
@given(seed=SEEDS, cycle=st.sampled_from([HOURS, TURNS]), size=st.integers(2, 3))
def test_posteriors_and_tracks_are_those_of_all_sequences(
    seed: int, cycle: Cycle, size: int
) -> None:
    rng = np.random.default_rng(seed)
    model = a_periodic_chain(rng, size, cycle)
    left, phases, told = a_release(model, rng)
    found = recover({"ann": left}, a_plan(model, purpose=sf.Purpose.SIMULATION))
    joint = joint_of(model, phases, told)
    smoothed, filtered = found.posterior("ann"), found.posterior("ann", lag=0)
    for place in range(LENGTH):
        assert smoothed[place] == pytest.approx(shares(joint, size, place), abs=1e-12)
        past = joint_of(model, phases[: place + 1], told[: place + 1])
        assert filtered[place] == pytest.approx(shares(past, size, place), abs=1e-12)
    best = tuple(found.likeliest().tolist())
    assert joint[best] == pytest.approx(max(joint.values()), rel=1e-9)


def test_moves_are_those_of_all_sequences() -> None:
    rng = np.random.default_rng(3)
    model = a_periodic_chain(rng, 2, HOURS)
    left, phases, told = a_release(model, rng)
    found = recover({"ann": left}, a_plan(model, purpose=sf.Purpose.SIMULATION))
    flows = Population(found, found.released.moments).flows().values
    due = np.zeros((2, 2))
    joint = joint_of(model, phases, told)
    for path, weight in joint.items():
        for before, after in itertools.pairwise(path):
            due[before, after] += weight / sum(joint.values())
    assert np.asarray(flows).reshape(2, 2) == pytest.approx(due, abs=1e-12)


def test_streams_in_another_order_are_recovered_alike() -> None:
    rng = np.random.default_rng(5)
    model = a_periodic_chain(rng, 2, HOURS)
    plan = a_plan(model, purpose=sf.Purpose.SIMULATION)
    left = {name: a_release(model, rng, name)[0] for name in ("ann", "bob", "cid")}
    found = recover(left, plan)
    turned = recover(found.released.by_name(), plan)
    for name in left:
        assert np.array_equal(found.posterior(name), turned.posterior(name))


def test_what_the_model_itself_is_told_is_what_was_stated() -> None:
    rng = np.random.default_rng(6)
    model = a_periodic_chain(rng, 2, HOURS)
    left, phases, _ = a_release(model, rng)
    plan = a_plan(model, purpose=sf.Purpose.SIMULATION)
    told = leakage_under({"ann": left}, plan, model, phases={"ann": phases}).streams["ann"]
    assert told.truth == pytest.approx(sum(event.sip.epsilon for event in left), abs=1e-9)


def test_values_without_times_and_what_knows_no_phases_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(7)
    model = a_periodic_chain(rng, 2, HOURS)
    plan = a_plan(model, purpose=sf.Purpose.SIMULATION)
    left, _, _ = a_release(model, rng)
    bare = [Event(e.stream, e.sequence, e.outcome, e.released, e.sip, e.ldp) for e in left]
    with pytest.raises(InvalidParameter, match="come with their times"):
        recover({"ann": bare}, plan)
    with pytest.raises(InvalidParameter, match="the same for all streams"):
        learn({"ann": left}, plan)
    monkeypatch.setattr(recovery, "_PHASED", 5)
    with pytest.raises(InvalidParameter, match="fewer --phases"):
        recover({"ann": left}, plan)
