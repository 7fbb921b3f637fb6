"""What a release tells who knows the hours, or that people differ: against the joint table."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import InvalidParameter
from sfumato.models.clustered_chain import ClusteredChain
from sfumato.models.cycle import Cycle
from sfumato.models.markov import MarkovChain
from sfumato.models.periodic import PeriodicChain
from sfumato.stream.other_truth import leakage_under
from sfumato.stream.partition.cells import StepDesign
from tests.models.test_clustered_chain import joint_of_values, mixture
from tests.oracles.phased_sequences import (
    Joint,
    Weights,
    phased_sequences,
    told_in_all,
    told_step_by_step,
)
from tests.stream.test_other_truth import a_chain, a_plan, a_release
from tests.stream.test_periodic_plan import a_periodic_chain

SEEDS = st.integers(0, 2**32 - 1)
HOURS = Cycle.of("hour", phases=3)
TURNS = Cycle.of("3")


def tables(channels: list[tuple[StepDesign, int]]) -> list[tuple[Weights, int]]:
    return [(design.design.channel.weights.tolist(), column) for design, column in channels]


def of_batches(
    joint: Joint, channels: list[tuple[StepDesign, int]], size: int, width: int
) -> tuple[Joint, list[tuple[Weights, int]]]:
    """The same table, with batches for values: channels act on the cell of a whole batch."""
    batches = list(itertools.product(range(size), repeat=width))
    paired: Joint = {}
    for path, chance in joint.items():
        parts = [path[at : at + width] for at in range(0, len(path), width)]
        key = tuple(batches.index(part) for part in parts)
        paired[key] = paired.get(key, Fraction(0)) + chance
    steps: list[tuple[Weights, int]] = []
    for design, column in channels:
        weights = design.design.channel.weights
        rows = [weights[design.partition.cell(batch)].tolist() for batch in batches]
        steps.append((rows, column))
    return paired, steps


def joint_of_hours(truth: PeriodicChain, phases: list[int]) -> Joint:
    chains = [truth.at(phase) for phase in range(truth.cycle.phases)]
    rows = [chain.transition().tolist() for chain in chains]
    return phased_sequences(truth.initial.tolist(), rows, phases)


def joint_of_mixture(truth: ClusteredChain, length: int) -> Joint:
    return {path: Fraction(mass) for path, mass in joint_of_values(truth, length).items()}


@settings(max_examples=12, deadline=None)
@given(seed=SEEDS, size=st.integers(2, 3), epsilon=st.floats(0.1, 1.5))
def test_who_knows_the_hours_is_told_what_the_joint_table_says(
    seed: int, size: int, epsilon: float
) -> None:
    rng = np.random.default_rng(seed)
    model, truth = a_chain(rng, size), a_periodic_chain(rng, size, HOURS)
    phases = rng.integers(HOURS.phases, size=4).tolist()
    plan = a_plan(model, epsilon)
    left, channels = a_release(plan, rng, 4)
    told = leakage_under({"ann": left}, plan, truth, phases={"ann": phases}).streams["ann"]
    joint = joint_of_hours(truth, phases)
    steps = told_step_by_step(joint, tables(channels))
    assert sum(steps) - 1e-12 <= told.truth <= sum(steps) + 1e-9
    assert told.worst_step == pytest.approx(max(steps), abs=1e-9)
    assert told_in_all(joint, tables(channels)) <= told.truth + 1e-12
    assert told.truth <= told.transfer <= told.ldp


def test_a_phase_that_is_off_by_one_is_another_truth() -> None:
    rng = np.random.default_rng(4)
    model, truth = MarkovChain.from_matrix(np.full((2, 2), 0.5)), a_periodic_chain(rng, 2, TURNS)
    plan = a_plan(model, 0.8)
    left, channels = a_release(plan, rng, 6)
    told = leakage_under({"ann": left}, plan, truth).streams["ann"].truth
    for first, right in ((0, True), (1, False)):
        phases = [TURNS.turn(first + place) for place in range(6)]
        due = sum(told_step_by_step(joint_of_hours(truth, phases), tables(channels)))
        assert (abs(told - due) < 1e-9) == right


@settings(max_examples=6, deadline=None)
@given(seed=SEEDS)
def test_batches_are_weighed_by_the_hours_of_each_value(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model, truth = a_chain(rng, 2), a_periodic_chain(rng, 2, HOURS)
    phases = rng.integers(HOURS.phases, size=4).tolist()
    plan = a_plan(model, 0.5, width=2)
    left, channels = a_release(plan, rng, 4)
    told = leakage_under({"ann": left}, plan, truth, phases={"ann": phases}).streams["ann"]
    steps = told_step_by_step(*of_batches(joint_of_hours(truth, phases), channels, 2, 2))
    assert sum(steps) - 1e-12 <= told.truth <= sum(steps) + 1e-9


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**16), change=st.sampled_from([1e-6, 0.05]))
def test_who_knows_that_people_differ_is_told_what_the_joint_table_says(
    seed: int, change: float
) -> None:
    rng = np.random.default_rng(seed)
    truth, model = mixture(seed, 2, 2, change), a_chain(rng, 2)
    plan = a_plan(model, 0.6)
    left, channels = a_release(plan, rng, 4)
    told = leakage_under({"ann": left}, plan, truth).streams["ann"]
    steps = told_step_by_step(joint_of_mixture(truth, 4), tables(channels))
    assert sum(steps) - 1e-12 <= told.truth <= sum(steps) + 1e-9


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**16))
def test_batches_are_weighed_by_all_clusters(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth, model = mixture(seed, 2, 2), a_chain(rng, 2)
    plan = a_plan(model, 0.5, width=2)
    left, channels = a_release(plan, rng, 4)
    told = leakage_under({"ann": left}, plan, truth).streams["ann"]
    steps = told_step_by_step(*of_batches(joint_of_mixture(truth, 4), channels, 2, 2))
    assert sum(steps) - 1e-12 <= told.truth <= sum(steps) + 1e-9


def test_hours_that_the_model_does_not_know_tell_more_than_is_stated() -> None:
    night, day = [[0.97, 0.03], [0.9, 0.1]], [[0.1, 0.9], [0.03, 0.97]]
    truth = PeriodicChain.from_matrices([night, day], Cycle.of("2"))
    model = MarkovChain.from_matrix([[0.5, 0.5], [0.5, 0.5]])
    plan = a_plan(model, 0.5)
    left, _ = a_release(plan, np.random.default_rng(1), 40)
    told = leakage_under({"ann": left}, plan, truth).streams["ann"]
    assert told.truth > 1.2 * told.sip


def test_moments_that_told_nothing_pass_in_their_phases() -> None:
    rng = np.random.default_rng(8)
    model, truth = MarkovChain.from_matrix(np.full((2, 2), 0.5)), a_periodic_chain(rng, 2, TURNS)
    plan = a_plan(model, 0.5)
    (skipped,), state = plan.skip(plan.begin("ann"))
    design = plan.prepare(state)
    (event,), _ = plan.step(state, [0], sf.seeded(1))
    told = leakage_under({"ann": [skipped, event]}, plan, truth).streams["ann"]
    assert design is not None and event.released is not None
    later = truth.at(0).initial @ truth.at(1).transition()
    weights = design.design.channel.weights.astype(float)
    due = np.abs(np.log(weights / (later @ weights))).max()
    assert told.truth == pytest.approx(due, abs=1e-9) and told.steps == 2


def test_hours_without_times_are_refused() -> None:
    rng = np.random.default_rng(2)
    plan = a_plan(a_chain(rng, 2), 0.5)
    left, _ = a_release(plan, rng, 2)
    with pytest.raises(InvalidParameter, match="times must be known of every value"):
        leakage_under({"ann": left}, plan, a_periodic_chain(rng, 2, HOURS))
