"""What a release tells an adversary whose chain is not the model, against brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import InvalidParameter
from sfumato.core.events import Event
from sfumato.models.markov import MarkovChain
from sfumato.models.plausible import PlausibleChains
from sfumato.stream.other_truth import leakage_under
from sfumato.stream.partition.cells import StepDesign
from tests.oracles.other_truth import largest_gain, told_step_by_step

SEEDS = st.integers(0, 2**32 - 1)


def a_chain(rng: np.random.Generator, size: int) -> MarkovChain:
    rows = rng.dirichlet(np.ones(size), size=size + 1) * 0.94 + 0.06 / size
    return MarkovChain.from_matrix(rows[1:], initial=rows[0])


def a_release(
    plan: sf.Plan, rng: np.random.Generator, length: int
) -> tuple[list[Event], list[tuple[StepDesign, int]]]:
    """A stream of random values, and the channel and column of each step."""
    left: list[Event] = []
    channels: list[tuple[StepDesign, int]] = []
    state = plan.begin("ann")
    labels, coins = plan.model.alphabet.labels, sf.seeded(int(rng.integers(2**31)))
    for _ in range(0, length, plan.width):
        design = plan.prepare(state)
        assert design is not None
        values = [labels[place] for place in rng.integers(len(labels), size=plan.width)]
        events, state = plan.step(state, values, coins)
        places = plan.model.alphabet.indices([event.released for event in events])
        output = design.output(places, events[0].signal)
        assert output is not None
        channels.append((design, design.design.channel.column(output)))
        left += events
    return left, channels


def a_plan(chain: MarkovChain, epsilon: float, **others: object) -> sf.Plan:
    loss = sf.loss.hamming(chain.alphabet)
    budget = sf.PerStep(sf.SIP(epsilon))
    return sf.Plan(chain, budget, loss, purpose=sf.Purpose.SIMULATION, **others)  # type: ignore[arg-type]


def exact_steps(truth: MarkovChain, channels: list[tuple[StepDesign, int]]) -> list[float]:
    steps = [(design.design.channel.weights.tolist(), column) for design, column in channels]
    return told_step_by_step(truth.initial.tolist(), truth.transition().tolist(), steps)


@settings(max_examples=12, deadline=None)
@given(seed=SEEDS, size=st.integers(2, 3), epsilon=st.floats(0.1, 1.5))
def test_the_leakage_under_another_chain_is_that_of_brute_force(
    seed: int, size: int, epsilon: float
) -> None:
    rng = np.random.default_rng(seed)
    model, truth = a_chain(rng, size), a_chain(rng, size)
    left, channels = a_release(a_plan(model, epsilon), rng, 4)
    told = leakage_under({"ann": left}, a_plan(model, epsilon), truth).streams["ann"]
    steps = exact_steps(truth, channels)
    assert sum(steps) - 1e-12 <= told.truth <= sum(steps) + 1e-9
    assert told.worst_step == pytest.approx(max(steps), abs=1e-9)
    assert told.sip == pytest.approx(sum(event.sip.epsilon for event in left), abs=1e-9)


@settings(max_examples=12, deadline=None)
@given(seed=SEEDS)
def test_no_sequence_becomes_likelier_than_that(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model, truth = a_chain(rng, 2), a_chain(rng, 2)
    left, channels = a_release(a_plan(model, 0.7), rng, 5)
    told = leakage_under({"ann": left}, a_plan(model, 0.7), truth).streams["ann"]
    steps = [(design.design.channel.weights.tolist(), column) for design, column in channels]
    gain = largest_gain(truth.initial.tolist(), truth.transition().tolist(), steps)
    assert gain <= told.truth + 1e-12


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS, size=st.integers(2, 4))
def test_the_transfer_bound_and_the_model_free_leakage_are_never_below(
    seed: int, size: int
) -> None:
    rng = np.random.default_rng(seed)
    model, truth = a_chain(rng, size), a_chain(rng, size)
    left, _ = a_release(a_plan(model, 0.5), rng, 8)
    told = leakage_under({"ann": left}, a_plan(model, 0.5), truth).streams["ann"]
    assert told.truth <= told.transfer <= told.ldp
    assert told.transfer <= 2 * told.sip + 1e-9


def test_the_model_itself_is_told_what_was_stated() -> None:
    rng = np.random.default_rng(5)
    model = a_chain(rng, 3)
    left, _ = a_release(a_plan(model, 0.5), rng, 20)
    told = leakage_under({"ann": left}, a_plan(model, 0.5), model).streams["ann"]
    assert told.truth == pytest.approx(told.sip, abs=1e-9)
    assert told.transfer == pytest.approx(told.sip, abs=1e-9)


def test_a_stream_that_stays_longer_than_the_model_says_leaks_more_than_stated() -> None:
    model = MarkovChain.from_matrix([[0.7, 0.3], [0.3, 0.7]])
    truth = MarkovChain.from_matrix([[0.98, 0.02], [0.02, 0.98]])
    left, _ = a_release(a_plan(model, 0.5), np.random.default_rng(1), 30)
    told = leakage_under({"ann": left}, a_plan(model, 0.5), truth).streams["ann"]
    assert told.truth > 1.15 * told.sip


@settings(max_examples=6, deadline=None)
@given(seed=SEEDS)
def test_batches_are_weighed_by_the_other_chain_too(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model, truth = a_chain(rng, 2), a_chain(rng, 2)
    plan = a_plan(model, 0.5, width=2)
    left, channels = a_release(plan, rng, 4)
    told = leakage_under({"ann": left}, plan, truth).streams["ann"]
    # Two batches of two values: the chain of pairs, told in the same brute force.
    moves, start = truth.transition(), truth.initial
    pairs = [(x, y) for x in range(2) for y in range(2)]
    initial = [float(start[x] * moves[x, y]) for x, y in pairs]
    matrix = [[float(moves[y, u] * moves[u, v]) for u, v in pairs] for _, y in pairs]
    tables = []
    for design, column in channels:
        weights = design.design.channel.weights
        cells = [design.partition.cell(pair) for pair in pairs]
        tables.append((weights[cells].tolist(), column))
    steps = told_step_by_step(initial, matrix, tables)
    assert told.truth == pytest.approx(sum(steps), abs=1e-9)


@settings(max_examples=8, deadline=None)
@given(seed=SEEDS, size=st.integers(2, 3), radius=st.sampled_from([0.0, 0.01, 0.1]))
def test_no_chain_of_the_set_is_told_more_than_the_bound_at_any_step(
    seed: int, size: int, radius: float
) -> None:
    rng = np.random.default_rng(seed)
    model, centre = a_chain(rng, size), a_chain(rng, size)
    plan = a_plan(model, 0.5)
    left, channels = a_release(plan, rng, 4)
    chains = PlausibleChains.from_radius(centre, radius)
    bound = leakage_under({"ann": left}, plan, centre, chains).streams["ann"]
    assert bound.over_set is not None
    assert bound.truth <= bound.over_set + 1e-9 and bound.over_set <= bound.ldp
    for _ in range(3):
        inside = a_chain_within(chains, rng)
        assert sum(exact_steps(inside, channels)) <= bound.over_set + 1e-12


def a_chain_within(chains: PlausibleChains, rng: np.random.Generator) -> MarkovChain:
    """A chain between the bounds: a corner more often than not."""
    boxes = [(chains.first_low, chains.first_high), *zip(chains.low, chains.high, strict=True)]
    rows = []
    for low, high in boxes:
        row, free = low.copy(), 1 - low.sum()
        for place in rng.permutation(low.size):
            most = min(free, high[place] - low[place])
            taken = most if rng.random() < 0.7 else most * rng.random()
            row[place] += taken
            free -= taken
        # What a coin left over goes wherever there is room.
        for place in range(low.size):
            taken = min(free, high[place] - row[place])
            row[place], free = row[place] + taken, free - taken
        rows.append(row)
    return MarkovChain.from_matrix(rows[1:], initial=rows[0])


def test_the_bound_is_near_the_worst_chain_that_a_search_finds() -> None:
    rng = np.random.default_rng(3)
    model = MarkovChain.from_matrix([[0.8, 0.2], [0.2, 0.8]])
    plan = a_plan(model, 0.5)
    left, _ = a_release(plan, rng, 12)
    chains = PlausibleChains.from_radius(model, 0.03)
    bound = leakage_under({"ann": left}, plan, model, chains).streams["ann"].over_set
    assert bound is not None
    worst = 0.0
    for _ in range(40):
        inside = a_chain_within(chains, rng)
        worst = max(worst, leakage_under({"ann": left}, plan, inside).streams["ann"].truth)
    assert 0.9 * bound <= worst <= bound + 1e-9


def test_a_set_of_all_chains_promises_the_model_free_leakage() -> None:
    rng = np.random.default_rng(2)
    model = a_chain(rng, 3)
    plan = a_plan(model, 0.5)
    left, _ = a_release(plan, rng, 10)
    everything = PlausibleChains.from_radius(model, 1.0)
    told = leakage_under({"ann": left}, plan, model, everything).streams["ann"]
    assert told.over_set == pytest.approx(told.ldp)
    assert told.unbounded == told.telling > 0


def test_moments_that_told_nothing_move_the_other_belief_on() -> None:
    model = MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]], initial=[0.9, 0.1])
    truth = MarkovChain.from_matrix([[0.6, 0.4], [0.4, 0.6]], initial=[0.9, 0.1])
    plan = a_plan(model, 0.5)
    state = plan.begin("ann")
    (skipped,), state = plan.skip(state)
    (event,), _ = plan.step(state, [0], sf.seeded(1))
    told = leakage_under({"ann": [skipped, event]}, plan, truth).streams["ann"]
    channel = plan.prepare(state)
    assert channel is not None
    weights = channel.design.channel.weights.astype(float)
    later = truth.initial @ truth.transition()
    mean = later @ weights
    due = max(np.abs(np.log(weights / mean)).max(), 0.0)
    assert told.truth == pytest.approx(due, abs=1e-9) and told.steps == 2


def test_what_cannot_be_followed_is_refused() -> None:
    rng = np.random.default_rng(2)
    model, plan = a_chain(rng, 2), a_plan(a_chain(rng, 2), 0.5)
    with pytest.raises(InvalidParameter, match="symbols of the model"):
        leakage_under({}, plan, a_chain(rng, 3))
    zeros = MarkovChain.from_matrix([[1.0, 0.0], [0.5, 0.5]], initial=[0.5, 0.5])
    with pytest.raises(InvalidParameter, match="some probability"):
        leakage_under({}, plan, zeros)
    batches = a_plan(model, 0.5, width=2)
    with pytest.raises(InvalidParameter, match="one by one"):
        leakage_under({}, batches, model, PlausibleChains.from_radius(model, 0.1))
