import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import event as note
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse, stats

from sfumato import (
    LDP,
    SIP,
    Alphabet,
    Event,
    Fallback,
    Horizon,
    InstantRelease,
    MarkovChain,
    Method,
    PerStep,
    Plan,
    Prior,
    Purpose,
    Window,
    keyed,
    loss,
    secure,
    seeded,
)
from sfumato.core.budgets import Budget
from sfumato.core.bursts import Bursts, WindowBursts
from sfumato.core.errors import InvalidParameter, UnknownSymbol
from sfumato.solver import Design
from sfumato.solver.design_methods import design
from sfumato.stream import Geometric, Outcome, StreamState
from tests.compiled import value_loss
from tests.contracts.release_laws import LETTERS, MATRIX, SECRET, CountingCoins, exact_sum
from tests.oracles.joint import (
    JointTable,
    Symbols,
    beliefs,
    exact_leakage,
    exact_local_leakage,
    joint_table,
    leakage_by_output,
    local_leakage,
    sequence_leakage,
)

ALPHA = 1e-6  # false alarm rate of a statistical test
RING = MarkovChain.from_matrix(MATRIX)
SKEWED = Prior([0.97, 0.02, 0.01])


def plan_of(model: MarkovChain | Prior, budget: Budget, **options: Any) -> Plan:
    return Plan(model, budget, loss.hamming(model.alphabet), **options)


# Every output sequence ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Tree:
    """All that a plan can do in some steps, by the outputs so far; and the joint table of it."""

    plan: Plan
    designs: dict[Symbols, Design]
    states: dict[Symbols, StreamState]
    events: dict[Symbols, Event]
    table: JointTable

    def charged(self, outputs: Symbols) -> list[Event]:
        return [self.events[outputs[:t]] for t in range(1, len(outputs) + 1)]


def explore(plan: Plan, chain: MarkovChain, length: int) -> Tree:
    designs: dict[Symbols, Design] = {}
    events: dict[Symbols, Event] = {}
    states: dict[Symbols, StreamState] = {(): plan.begin("s")}
    frontier: list[Symbols] = [()]
    for _ in range(length):
        reached: list[Symbols] = []
        for told in frontier:
            prepared = plan.prepare(states[told])
            assert prepared is not None
            designs[told] = prepared.design
            for symbol in prepared.design.channel.outputs.tolist():
                path = (*told, symbol)
                (events[path],), states[path] = plan.observe(states[told], [symbol])
                reached.append(path)
        frontier = reached

    def policy(told: Symbols) -> tuple[list[list[float]], list[int]]:
        channel = designs[told].channel
        return channel.probabilities.tolist(), channel.outputs.tolist()

    contexts = list(itertools.product(range(chain.size), repeat=chain.order))
    moves = dict(zip(contexts, chain.transition().tolist(), strict=True))
    starts = {context: float(chain.initial[context]) for context in contexts}
    table = joint_table(chain.size, length, starts, moves, policy)
    return Tree(plan, designs, states, events, table)


def random_chain(size: int, order: int, thin: bool) -> MarkovChain:
    draw = np.random.default_rng(size + 10 * order)
    rows = draw.dirichlet(np.full(size, 1.5), size**order)
    initial = draw.dirichlet(np.full(size**order, 3.0)).reshape((size,) * order)
    return MarkovChain.from_matrix(sparse.csr_array(rows) if thin else rows, initial, floor=0.01)


CASES: dict[str, tuple[int, int, int, Budget, Method, bool]] = {
    "two symbols": (2, 5, 1, PerStep(SIP(0.8)), Method.OPTIMAL, False),
    "three symbols, sparse": (3, 5, 1, PerStep(SIP(1.2)), Method.OPTIMAL, True),
    "four symbols": (4, 4, 1, Horizon(SIP(5.0), 4), Method.OPTIMAL, False),
    "order two": (2, 5, 2, Window(SIP(2.0), 3), Method.OPTIMAL, False),
    "order two of three": (3, 4, 2, PerStep(SIP(1.0), LDP(1.5)), Method.OPTIMAL, True),
    "calibrated": (3, 4, 1, PerStep(SIP(0.7)), Method.CALIBRATED, False),
    "bursts": (3, 6, 1, Bursts(SIP(2.0), 6, None, 3, 1.4), Method.OPTIMAL, False),
    "bursts, order two": (2, 6, 2, WindowBursts(SIP(2.5), 4, LDP(4.0), 2), Method.OPTIMAL, False),
    "context-free": (3, 3, 2, Geometric(SIP(3.0), 0.7), Method.CONTEXT_FREE, False),
}


@pytest.fixture(scope="module", params=list(CASES))
def tree(request: pytest.FixtureRequest) -> Tree:
    size, length, order, budget, method, thin = CASES[request.param]
    chain = random_chain(size, order, thin)
    plan = Plan(chain, budget, loss.absolute(chain.alphabet), method=method)
    return explore(plan, chain, length)


def test_belief_is_bayes_over_the_joint_table_for_every_output(tree: Tree) -> None:
    expected = beliefs(tree.table)
    assert set(expected) == set(tree.designs)
    for told, belief in expected.items():
        assert tree.states[told].belief.marginal == pytest.approx(belief, rel=1e-10)


def test_summed_leakage_bounds_that_of_every_pair_of_sequences(tree: Tree) -> None:
    moved = leakage_by_output(tree.table)
    assert max(moved.values()) > 0.3
    for outputs, leaked in moved.items():
        assert leaked <= sum(event.sip.epsilon for event in tree.charged(outputs)) + 1e-10
        assert leaked <= tree.states[outputs].ledger.sip + 1e-10


def test_summed_model_free_leakage_bounds_that_of_every_pair_of_sequences(tree: Tree) -> None:
    worst = max(tree.states[outputs].ledger.ldp for outputs in tree.table.outputs())
    assert sequence_leakage(tree.table) <= local_leakage(tree.table) <= worst + 1e-10


def test_both_certificates_of_a_step_are_exact(tree: Tree) -> None:
    expected = beliefs(tree.table)
    for outputs, event in tree.events.items():
        weights = tree.designs[outputs[:-1]].channel.weights.tolist()
        sip = float(exact_leakage(weights, expected[outputs[:-1]]))
        assert event.sip.epsilon == pytest.approx(sip, abs=1e-9)
        ldp = exact_local_leakage(weights)
        assert ldp <= event.ldp.epsilon <= ldp + 1e-12
        assert event.sip.epsilon <= event.ldp.epsilon


def test_certificates_bound_the_exact_leakage_under_the_belief_that_is_kept(tree: Tree) -> None:
    for outputs, event in tree.events.items():
        belief = tree.states[outputs[:-1]].belief.marginal
        weights = tree.designs[outputs[:-1]].channel.weights.tolist()
        assert exact_leakage(weights, belief.tolist()) <= event.sip.epsilon


def test_ledger_is_the_sum_of_the_events(tree: Tree) -> None:
    for outputs in tree.table.outputs():
        ledger, events = tree.states[outputs].ledger, tree.charged(outputs)
        for spent, amounts in (
            (ledger.sip, [event.sip.epsilon for event in events]),
            (ledger.ldp, [event.ldp.epsilon for event in events]),
        ):
            assert exact_sum(amounts) <= Fraction(spent) <= exact_sum(amounts) + Fraction(1, 10**12)
        assert ledger.count == len(outputs)


# Budgets -----------------------------------------------------------------------------------------


def stream(plan: Plan, data: st.DataObject, length: int) -> Iterator[Event]:
    """Outputs and pauses of an adversary's choice, until the budget is gone."""
    state = plan.begin("s")
    for _ in range(length):
        prepared = plan.prepare(state)
        if prepared is None:
            note("budget gone")
            return
        choice = data.draw(st.integers(-1, len(prepared.design.channel.outputs) - 1))
        if choice < 0:
            (event,), state = plan.skip(state)
        else:
            (event,), state = plan.observe(state, [int(prepared.design.channel.outputs[choice])])
        yield event


totals = st.integers(1, 40).map(lambda tenths: tenths / 10)


@settings(max_examples=12)
@given(totals, st.data())
def test_no_step_passes_its_own_bound(amount: float, data: st.DataObject) -> None:
    plan = plan_of(RING, PerStep(SIP(amount), LDP(1.2 * amount)))
    for event in stream(plan, data, 4):
        assert event.sip <= SIP(amount)
        assert event.ldp <= LDP(1.2 * amount)


@settings(max_examples=20)
@given(totals, st.integers(1, 6), st.data())
def test_a_horizon_is_never_passed(total: float, steps: int, data: st.DataObject) -> None:
    plan = plan_of(RING, Horizon(SIP(total), steps, LDP(1.5 * total)))
    events = list(stream(plan, data, steps + 2))
    assert len(events) <= steps
    assert exact_sum([event.sip.epsilon for event in events]) <= Fraction(total)
    assert exact_sum([event.ldp.epsilon for event in events]) <= Fraction(1.5 * total)


@settings(max_examples=12)
@given(totals, st.integers(1, 3), st.data())
def test_no_window_is_ever_passed(total: float, width: int, data: st.DataObject) -> None:
    plan = plan_of(RING, Window(SIP(total), width, LDP(1.5 * total)))
    events = list(stream(plan, data, 8))
    for start in range(len(events)):
        part = events[start : start + width]
        assert exact_sum([event.sip.epsilon for event in part]) <= Fraction(total)
        assert exact_sum([event.ldp.epsilon for event in part]) <= Fraction(1.5 * total)


@settings(max_examples=15)
@given(totals, st.sampled_from([0.3, 0.5, 0.8]), st.data())
def test_an_endless_stream_stays_under_its_total(
    total: float, ratio: float, data: st.DataObject
) -> None:
    plan = plan_of(RING, Geometric(SIP(total), ratio, LDP(2 * total)))
    events = list(stream(plan, data, 25))
    assert exact_sum([event.sip.epsilon for event in events]) < Fraction(total)
    assert exact_sum([event.ldp.epsilon for event in events]) < Fraction(2 * total)


def test_an_endless_stream_goes_on_with_constants_when_nothing_useful_is_left() -> None:
    plan = plan_of(RING, Geometric(SIP(1.0), 0.05), method=Method.RANDOMIZED_RESPONSE)
    state, constant = plan.begin("s"), []
    for _ in range(30):
        prepared = plan.prepare(state)
        assert prepared is not None
        constant.append(prepared.design.channel.is_constant)
        (event,), state = plan.observe(state, [int(prepared.design.channel.outputs[0])])
        assert (event.sip.epsilon == 0.0) == constant[-1]
    told = constant.index(True)
    assert 5 < told < 20
    assert all(constant[told:])
    assert state.ledger.sip <= 1.0


def test_a_window_recovers_for_ever() -> None:
    plan = plan_of(RING, Window(SIP(1.0), 3), method=Method.RANDOMIZED_RESPONSE)
    release = InstantRelease(
        RING,
        budget=plan.budget,
        loss=value_loss(plan),
        method=plan.method,
        randomness=keyed(SECRET),
    )
    events = list(release.over([0, 1, 2] * 10))
    assert all(event.outcome is Outcome.RELEASED for event in events)
    assert release.ledger.sip > 5.0
    assert len(release.ledger.recent) == 2


def test_a_model_free_cap_binds_where_the_model_would_allow_more() -> None:
    even = Prior([1 / 3, 1 / 3, 1 / 3])
    free = plan_of(even, PerStep(SIP(1.0))).prepare(plan_of(even, PerStep(SIP(1.0))).begin("s"))
    capped_plan = plan_of(even, PerStep(SIP(1.0), LDP(0.9)))
    capped = capped_plan.prepare(capped_plan.begin("s"))
    assert free is not None
    assert capped is not None
    assert free.design.ldp.epsilon > 1.2
    assert 0.85 < capped.design.ldp.epsilon <= 0.9
    assert capped.design.cost > free.design.cost


def test_a_release_that_tells_nothing_costs_nothing() -> None:
    plan = plan_of(SKEWED, PerStep(SIP(0.2)))
    state = plan.begin("s")
    for value in (0, 1, 2, 2):
        (event,), state = plan.step(state, [value], secure())
        assert (event.outcome, event.released) == (Outcome.RELEASED, 0)
        assert (event.sip, event.ldp) == (SIP(0.0), LDP(0.0))
        assert state.ledger.spent == (SIP(0.0), LDP(0.0))
        assert state.belief.error == 0.0


def test_a_step_is_charged_what_it_leaks_not_what_was_allowed() -> None:
    # Randomised response at 1 leaks less than 1 to somebody who knows the prior.
    plan = plan_of(Prior([0.5, 0.5]), PerStep(SIP(1.0)), method=Method.RANDOMIZED_RESPONSE)
    (event,), _ = plan.step(plan.begin("s"), [0], secure())
    truth = math.log(2 / (1 + math.exp(-1.0)))
    assert event.sip.epsilon == pytest.approx(max(truth, -math.log(2 / (1 + math.e))), abs=1e-12)
    assert event.sip.epsilon < 0.7
    assert event.ldp.epsilon == pytest.approx(1.0, abs=1e-12)


def test_what_rounding_did_to_the_belief_is_paid_for() -> None:
    plan, drift = plan_of(RING, PerStep(SIP(1.0))), 1e-5
    fresh = plan.begin("s")
    state = replace(fresh, belief=replace(fresh.belief, drift=drift))
    prepared = plan.prepare(state)
    assert prepared is not None
    (event,), _ = plan.observe(state, [int(prepared.design.channel.outputs[0])])
    weights = prepared.design.channel.weights.tolist()
    for signs in itertools.product((-drift, drift), repeat=3):
        other = state.belief.marginal * np.exp(signs)
        assert exact_leakage(weights, other.tolist()) <= event.sip.epsilon <= 1.0
    assert event.sip.epsilon > exact_leakage(weights, state.belief.marginal.tolist()) + drift


def test_what_was_not_spent_is_there_for_later_steps() -> None:
    plan = plan_of(RING, Horizon(SIP(1.0), 4))
    state = plan.begin("s")
    for _ in range(2):
        _, state = plan.skip(state)
    assert plan.budget.allowance(state.ledger).sip == pytest.approx(0.5)
    assert plan.prepare(state).design.sip.epsilon <= 0.5  # type: ignore[union-attr]


def test_the_published_rule_is_refused_where_it_breaks_its_promise() -> None:
    plan = plan_of(SKEWED, PerStep(SIP(0.5)), method=Method.PAPER)
    assert plan.prepare(plan.begin("s")) is None
    honest = plan_of(SKEWED, PerStep(SIP(0.5)))
    assert honest.prepare(honest.begin("s")) is not None


# Fallbacks ---------------------------------------------------------------------------------------


def test_refusing_an_unknown_value_draws_nothing_and_changes_nothing() -> None:
    coins = CountingCoins()
    release = InstantRelease(
        LETTERS, budget=SIP(1.0), loss=loss.hamming(LETTERS.alphabet), randomness=coins
    )
    before = release.state
    with pytest.raises(UnknownSymbol):
        release("z")
    assert release.state is before
    assert coins.drawn == 0


@pytest.mark.parametrize("unhashable", [[], {}, np.zeros(2)])
def test_values_that_can_be_no_symbol_are_unknown(unhashable: object) -> None:
    plan = plan_of(LETTERS, PerStep(SIP(1.0)))
    with pytest.raises(UnknownSymbol):
        plan.step(plan.begin("s"), [unhashable], secure())


@pytest.mark.parametrize("method", [Method.CALIBRATED, Method.PAPER])
def test_a_cap_that_a_method_cannot_keep_is_refused_with_the_plan(method: Method) -> None:
    for budget in (PerStep(SIP(1.0), LDP(1.0)), Horizon(SIP(1.0), 4, LDP(1.0))):
        with pytest.raises(InvalidParameter, match="ldp must not be given with method"):
            plan_of(LETTERS, budget, method=method)


# Coins -------------------------------------------------------------------------------------------


OTHER_PLANS = {
    "model": plan_of(
        MarkovChain.from_matrix(MATRIX[::-1], alphabet=Alphabet("abc")), PerStep(SIP(1.0))
    ),
    "alphabet": plan_of(RING, PerStep(SIP(1.0))),
    "budget": plan_of(LETTERS, PerStep(SIP(1.1))),
    "cap": plan_of(LETTERS, PerStep(SIP(1.0), LDP(1.0))),
    "rule": plan_of(LETTERS, Window(SIP(1.0), 1)),
    "method": plan_of(LETTERS, PerStep(SIP(1.0)), method=Method.CALIBRATED),
    "loss": Plan(LETTERS, PerStep(SIP(1.0)), loss.matrix(1 - np.eye(3) / 2)),
}


@pytest.mark.parametrize("different", list(OTHER_PLANS))
def test_a_state_is_continued_by_its_own_plan_only(different: str) -> None:
    state = plan_of(LETTERS, PerStep(SIP(1.0))).begin("s")
    with pytest.raises(InvalidParameter, match="state must come from this model"):
        OTHER_PLANS[different].step(state, "a", secure())


def chi_square(counts: NDArray[np.int64], expected: NDArray[np.float64]) -> float:
    return float(stats.chisquare(counts, expected / expected.sum() * counts.sum()).pvalue)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("method", "epsilon", "samples"),
    [(Method.OPTIMAL, 1.5, 2_500), (Method.RANDOMIZED_RESPONSE, 1.5, 4_000)],
)
@pytest.mark.parametrize("value", [0, 2])
def test_released_values_follow_the_channel_and_no_neighbouring_one(
    method: Method, epsilon: float, samples: int, value: int
) -> None:
    even = Prior([0.35, 0.35, 0.3])
    plan = plan_of(even, PerStep(SIP(epsilon)), method=method, purpose=Purpose.SIMULATION)
    start, coins = plan.begin("s"), seeded(99)
    events = (plan.step(replace(start, sequence=i), [value], coins)[0][0] for i in range(samples))
    counts = np.bincount([int(event.released or 0) for event in events], minlength=3)

    def p_value(factor: float) -> float:
        other = design(method, even.probabilities, value_loss(plan), factor * epsilon)
        row = np.zeros(3)
        row[other.channel.outputs] = other.channel.probabilities[value]
        return chi_square(counts, row)

    assert p_value(1.0) > ALPHA
    assert p_value(0.7) < ALPHA
    assert p_value(1.3) < ALPHA


@pytest.mark.statistical
def test_substitutes_follow_the_belief_of_the_moment_and_no_other() -> None:
    skewed = Prior([0.6, 0.25, 0.15])
    plan = plan_of(
        skewed,
        PerStep(SIP(2.5)),
        method=Method.RANDOMIZED_RESPONSE,
        on_unknown=Fallback.SUBSTITUTE,
        purpose=Purpose.SIMULATION,
    )
    start, coins = plan.begin("s"), seeded(7)
    events = (plan.step(replace(start, sequence=i), ["z"], coins)[0][0] for i in range(4_000))
    counts = np.bincount([int(event.released or 0) for event in events], minlength=3)
    prepared = plan.prepare(start)
    assert prepared is not None
    rows = prepared.design.channel.probabilities
    tilted = [skewed.probabilities**power for power in (1.0, 0.7, 1.3)]
    true, flat, sharp = (chi_square(counts, belief @ rows) for belief in tilted)
    assert true > ALPHA
    assert flat < ALPHA
    assert sharp < ALPHA


# Moments without a release -----------------------------------------------------------------------


def test_a_skipped_moment_moves_the_belief_by_one_prediction() -> None:
    plan = plan_of(RING, PerStep(SIP(1.0)))
    _, told = plan.step(plan.begin("s"), [1], secure())
    (event,), after = plan.skip(told)
    assert (event.outcome, event.released) == (Outcome.SKIPPED, None)
    assert (event.sip, event.ldp, event.sequence) == (SIP(0.0), LDP(0.0), 1)
    assert after.belief.marginal == pytest.approx(
        told.belief.marginal @ np.array(MATRIX), rel=1e-14
    )
    assert (after.sequence, after.last) == (2, told.last)
    assert (after.ledger.sip, after.ledger.count) == (told.ledger.sip, 2)


def test_pauses_let_the_belief_fade_to_the_stationary_one() -> None:
    release = InstantRelease(RING, budget=SIP(2.0), loss=loss.hamming(RING.alphabet))
    release(0)
    for _ in range(300):
        release.skip()
    assert release.state.belief.marginal == pytest.approx(RING.stationary(), abs=1e-12)


# The object around it ----------------------------------------------------------------------------


def test_a_release_remembers_its_plan_and_goes_on_from_a_state() -> None:
    options: dict[str, Any] = {"budget": SIP(1.0), "loss": [[0, 1, 1], [1, 0, 1], [1, 1, 0]]}
    one = InstantRelease(LETTERS, randomness=keyed(SECRET), **options)
    whole = [one(value) for value in "abcabc"]
    two = InstantRelease(LETTERS, randomness=keyed(SECRET), **options)
    head = [two(value) for value in "abc"]
    three = InstantRelease(LETTERS, randomness=keyed(SECRET), state=two.state, **options)
    assert head + [three(value) for value in "abc"] == whole
    assert three.ledger == one.ledger


def test_many_values_are_released_as_they_come() -> None:
    release = InstantRelease(LETTERS, budget=SIP(1.0), loss=loss.hamming(LETTERS.alphabet))
    events = release.over("abc")
    assert release.state.sequence == 0
    assert next(events).sequence == 0
    assert release.state.sequence == 1
    assert [event.sequence for event in events] == [1, 2]


def test_a_suppressed_value_is_none() -> None:
    release = InstantRelease(
        LETTERS, budget=SIP(1.0), loss=loss.hamming(LETTERS.alphabet), on_unknown="suppress"
    )
    assert release("z") is None
    assert release("a") in LETTERS.alphabet.labels


@pytest.mark.parametrize(
    "model",
    [
        Prior([1.0, 0.0]),
        MarkovChain.from_matrix([[1.0, 0.0], [0.5, 0.5]], [0.5, 0.5]),
        MarkovChain.from_matrix([[0.5, 0.5], [0.5, 0.5]], [1.0, 0.0]),
    ],
)
def test_a_model_that_calls_values_impossible_is_refused(model: Prior | MarkovChain) -> None:
    with pytest.raises(InvalidParameter, match="give every value some probability"):
        plan_of(model, PerStep(SIP(1.0)))


def test_a_loss_of_another_size_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="loss must be 3 by 3"):
        Plan(LETTERS, PerStep(SIP(1.0)), loss.hamming(Alphabet("ab")))


@pytest.mark.parametrize("wrong", [{"method": "best"}, {"on_unknown": "guess"}, {"purpose": "fun"}])
def test_words_that_name_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="is not a valid"):
        InstantRelease(LETTERS, budget=SIP(1.0), loss=loss.hamming(LETTERS.alphabet), **wrong)
