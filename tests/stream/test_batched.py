import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from sfumato import (
    LDP,
    SIP,
    BatchedRelease,
    Event,
    Fallback,
    Horizon,
    MarkovChain,
    Method,
    PerStep,
    Plan,
    Purpose,
    Window,
    keyed,
    loss,
    secure,
    seeded,
)
from sfumato.core.alphabet import Label
from sfumato.core.budgets import Budget
from sfumato.core.errors import BudgetExceeded, InvalidParameter, UnknownSymbol
from sfumato.core.ledger import Charge, Ledger
from sfumato.store import from_bytes, to_bytes
from sfumato.stream import Belief, Geometric, Outcome, StreamState
from sfumato.stream import batch_loss as batch_losses
from sfumato.stream.partition.batch_loss import BatchLoss, additive
from sfumato.stream.partition.patterns import Patterns
from tests.contracts.release_laws import (
    LETTERS,
    SECRET,
    CountingCoins,
    everything_said,
    exact_sum,
)
from tests.oracles.batches import (
    Floats,
    Process,
    Symbols,
    chain_of,
    codes,
    every,
    furthest,
    moved_by,
    random_process,
)
from tests.oracles.joint import exact_leakage

ALPHA = 1e-6  # false alarm rate of a statistical test


def hamming(chain: MarkovChain) -> BatchLoss:
    return additive(loss.hamming(chain.alphabet))


def plan_of(budget: Budget, width: int = 2, **options: Any) -> Plan:
    return Plan(LETTERS, budget, hamming(LETTERS), width, **options)


# Every output sequence ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Path:
    """One sequence of outputs: how likely every true sequence makes it, and what was charged."""

    outputs: tuple[tuple[Label, ...], ...]
    likelihood: Floats
    state: StreamState
    charges: tuple[float, ...]
    leaked: tuple[float, ...]


@dataclass(frozen=True)
class World:
    """All true sequences of one length and their probabilities, by brute force."""

    size: int
    paths: list[Symbols]
    prior: Floats

    @classmethod
    def of(cls, process: Process, length: int) -> "World":
        chances = process.chances(length)
        return cls(process.size, list(chances), np.array([float(p) for p in chances.values()]))

    def parts(self, plan: Plan, state: StreamState, length: int) -> NDArray[np.int64]:
        """The row of the next batch's channel for every true sequence."""
        start = state.sequence - plan.recalled(state)
        looked = [path[start : state.sequence + length] for path in self.paths]
        prepared = plan.prepare(state, length)
        assert prepared is not None
        if prepared.exact:
            return np.array(codes(looked, self.size))
        return np.array([prepared.partition.cell(batch) for batch in looked])

    def explore(self, plan: Plan, lengths: Sequence[int]) -> Iterator[Path]:
        """Everything that can leave, as an onlooker sees it: outputs that look alike are one."""
        begin = Path((), np.ones(len(self.paths)), plan.begin("s"), (), ())
        yield from self._explore(plan, begin, list(lengths))

    def _explore(self, plan: Plan, path: Path, lengths: list[int]) -> Iterator[Path]:
        if not lengths:
            yield path
            return
        prepared = plan.prepare(path.state, lengths[0])
        assert prepared is not None
        rows = self.parts(plan, path.state, lengths[0])
        channel = prepared.design.channel
        told: dict[tuple[int, ...], Floats] = {}
        for column, output in enumerate(channel.outputs.tolist()):
            batch = tuple(prepared.patterns[output].tolist())
            told[batch] = told.get(batch, 0.0) + channel.probabilities[rows, column]
        before = self.prior @ path.likelihood
        for batch, likelihood in told.items():
            labels = tuple(plan.model.alphabet.labels[place] for place in batch)
            events, state = plan.observe(path.state, labels)
            joint = path.likelihood * likelihood
            ratio = likelihood / (self.prior @ joint / before)
            yield from self._explore(
                plan,
                Path(
                    (*path.outputs, labels),
                    joint,
                    state,
                    (*path.charges, sum(event.sip.epsilon for event in events)),
                    (*path.leaked, float(np.abs(np.log(ratio)).max())),
                ),
                lengths[1:],
            )


def check_leakage(world: World, plan: Plan, lengths: Sequence[int]) -> float:
    """Summed charges bound what every output sequence tells; returns the largest such amount."""
    whole, worst = 0.0, 0.0
    known: dict[tuple[tuple[Label, ...], ...], tuple[float, float]] = {}
    for path in world.explore(plan, lengths):
        whole += float(world.prior @ path.likelihood)
        moved = moved_by(world.prior, path.likelihood)
        assert moved <= sum(path.charges) + 1e-10
        assert moved <= path.state.ledger.sip + 1e-10
        assert path.state.ledger.count == sum(lengths) == path.state.sequence
        for step, (charge, leaked) in enumerate(zip(path.charges, path.leaked, strict=True)):
            assert leaked <= charge + 1e-10
            before = path.outputs[:step]
            known[before] = charge, max(leaked, known.get(before, (0.0, 0.0))[1])
        worst = max(worst, moved)
    assert whole == pytest.approx(1.0, abs=1e-9)
    for charge, most in known.values():
        assert charge == pytest.approx(most, abs=1e-8)
    return worst


def check_belief(world: World, plan: Plan, lengths: Sequence[int]) -> None:
    """The state holds the adversary's belief about the next value, for every output sequence."""
    end = sum(lengths[:-1])
    now = np.array([path[end] for path in world.paths])
    for path in world.explore(plan, lengths[:-1]):
        told = world.prior * path.likelihood
        expected = np.bincount(now, told, world.size) / told.sum()
        assert path.state.belief.marginal == pytest.approx(expected, rel=1e-9)


Case = tuple[int, int, tuple[int, ...], Budget, dict[str, Any]]
CASES: dict[str, Case] = {
    "two symbols, pairs": (2, 1, (2, 2, 2), PerStep(SIP(0.5)), {}),
    "two symbols, threes": (2, 1, (3, 3), PerStep(SIP(0.4)), {}),
    "mixed lengths": (2, 1, (1, 3, 2), PerStep(SIP(0.6)), {}),
    "a short last batch": (2, 1, (3, 3, 1), Horizon(SIP(4.0), 7), {}),
    "three symbols": (3, 1, (2, 2), PerStep(SIP(0.7)), {}),
    "three symbols, capped": (3, 1, (2, 1), PerStep(SIP(0.7), LDP(0.9)), {}),
    "order two": (2, 2, (2, 2, 2), PerStep(SIP(0.5)), {}),
    "order two, single values": (2, 2, (1, 1, 1, 1), PerStep(SIP(0.8)), {}),
    "order two, short at first": (2, 2, (1, 3, 2), Window(SIP(2.5), 4), {}),
    "order three, pairs": (2, 3, (2, 2, 2), PerStep(SIP(0.5)), {}),
    "order three, single values": (2, 3, (1, 2, 1, 1), PerStep(SIP(0.7)), {}),
    "order two of three symbols": (3, 2, (1, 2), PerStep(SIP(0.8)), {}),
    "memory of two": (2, 1, (2, 2, 2), PerStep(SIP(0.5)), {"memory": 2}),
    "memory of two, single values": (2, 1, (1, 1, 1, 1), PerStep(SIP(0.9)), {"memory": 2}),
    "memory of three, order two": (2, 2, (1, 1, 1, 1), PerStep(SIP(0.8)), {"memory": 3}),
    "memory of two, mixed": (2, 2, (2, 1, 2), PerStep(SIP(0.8)), {"memory": 2}),
    "boxes": (3, 1, (2, 2), PerStep(SIP(0.6)), {"listed": 1}),
    "boxes, order two": (2, 2, (1, 3, 2), PerStep(SIP(0.7)), {"listed": 1}),
    "boxes, order three": (2, 3, (2, 2, 2), PerStep(SIP(0.6)), {"listed": 1}),
    "context-free": (2, 1, (2, 2), PerStep(SIP(0.5)), {"method": Method.CONTEXT_FREE}),
    "calibrated": (2, 2, (2, 2), Geometric(SIP(3.0), 0.6), {"method": Method.CALIBRATED}),
}


def case(name: str, seed: int = 0) -> tuple[World, Process, Plan, tuple[int, ...]]:
    size, order, lengths, budget, options = CASES[name]
    rng = np.random.default_rng(seed + 17 * size + order)
    process = random_process(size, order, rng, sticky=1.0 + seed)
    chain = chain_of(process, thin=bool(seed % 2))
    plan = Plan(chain, budget, additive(loss.absolute(chain.alphabet)), max(lengths), **options)
    return World.of(process, sum(lengths)), process, plan, lengths


@pytest.mark.parametrize("name", list(CASES))
def test_summed_charges_bound_what_any_output_tells_about_any_sequence(name: str) -> None:
    worst = 0.0
    for seed in range(2):
        world, _, plan, lengths = case(name, seed)
        worst = max(worst, check_leakage(world, plan, lengths))
    assert worst > 0.2


@pytest.mark.parametrize("name", list(CASES))
def test_the_state_holds_the_belief_of_an_onlooker(name: str) -> None:
    world, _, plan, lengths = case(name)
    check_belief(world, plan, lengths)


@settings(max_examples=20)
@given(
    st.integers(0, 10**6),
    st.integers(1, 3),
    st.lists(st.integers(1, 3), min_size=2, max_size=3).filter(lambda cut: sum(cut) <= 6),
    st.floats(0.05, 1.5),
    st.booleans(),
)
def test_summed_charges_bound_what_leaks_for_any_chain_and_any_cut(
    seed: int, order: int, lengths: list[int], epsilon: float, boxes: bool
) -> None:
    process = random_process(2, order, np.random.default_rng(seed), sticky=seed % 4, holes=True)
    chain = chain_of(process)
    plan = Plan(chain, PerStep(SIP(epsilon)), hamming(chain), 3, listed=1 if boxes else 4096)
    world = World.of(process, sum(lengths))
    check_leakage(world, plan, lengths)
    check_belief(world, plan, lengths)


@pytest.mark.parametrize("name", ["memory of two", "memory of three, order two"])
def test_drift_bounds_the_rounding_of_a_belief_that_looks_back(name: str) -> None:
    _, process, plan, _ = case(name)
    state = plan.begin("s")
    order = state.belief.joint.ndim
    for passed in range(3):
        exact: dict[Symbols, Fraction] = {}
        first = max(0, passed - order + 1)
        for path, chance in process.chances(first + order).items():
            exact[path[first:]] = exact.get(path[first:], Fraction(0)) + chance
        contexts = every(2, order)
        found = [float(state.belief.joint[context]) for context in contexts]
        off = furthest(found, [exact[context] for context in contexts])
        assert off <= state.belief.drift * (1 + 1e-9)
        _, state = plan.skip(state, 1)


def test_memory_cannot_lower_the_expected_loss_of_a_batch() -> None:
    _, process, _, _ = case("memory of two")
    chain = chain_of(process)
    long = Plan(chain, PerStep(SIP(0.5)), hamming(chain), 2, memory=2)
    for path in World.of(process, 4).explore(long, (2,)):
        found = long.prepare(path.state)
        assert found is not None
        belief = path.state.belief
        marginal = Belief(belief.joint.sum(axis=tuple(range(belief.joint.ndim - 1))), 0)
        short = Plan(chain, PerStep(SIP(0.5)), hamming(chain), 2)
        alone = short.prepare(replace(short.begin("s"), belief=marginal))
        assert alone is not None
        assert found.design.cost == pytest.approx(alone.design.cost, abs=1e-7)


@pytest.mark.parametrize("memory", [1, 2])
def test_an_onlooker_arrives_at_the_state_of_the_release(memory: int) -> None:
    for seed in range(6):
        _, process, _, _ = case("memory of two", seed)
        chain = chain_of(process)
        plan = Plan(chain, PerStep(SIP(1.35)), hamming(chain), 2, memory=memory)
        state, seen, past = plan.begin("s"), plan.begin("s"), list[int]()
        truth = np.random.default_rng(seed).integers(0, 2, 20).tolist()
        for start in range(0, 20, 2):
            batch = truth[start : start + 2]
            events, state = plan.step(state, batch, keyed(SECRET + bytes([seed])), past)
            past = batch if memory == 2 else []
            watched, seen = plan.observe(seen, [event.released for event in events])
            assert watched == events
            assert np.array_equal(seen.belief.joint, state.belief.joint)
            assert seen.ledger == state.ledger
            assert seen.last == state.last


# Budgets -----------------------------------------------------------------------------------------


def outputs(plan: Plan, data: st.DataObject, most: int) -> Iterator[tuple[Event, ...]]:
    """Batches of an adversary's choice, until the budget is gone."""
    state = plan.begin("s")
    for _ in range(most):
        length = data.draw(st.integers(1, plan.width))
        prepared = plan.prepare(state, length)
        if prepared is None or data.draw(st.integers(0, 4)) == 0:
            events, state = plan.skip(state, length)
        else:
            told = data.draw(st.sampled_from(prepared.design.channel.outputs.tolist()))
            labels = [plan.model.alphabet.labels[place] for place in prepared.patterns[told]]
            events, state = plan.observe(state, labels)
        yield events


totals = st.integers(2, 40).map(lambda tenths: tenths / 10)


@settings(max_examples=12)
@given(totals, st.integers(1, 5), st.data())
def test_batches_in_a_window_stay_within_it(total: float, width: int, data: st.DataObject) -> None:
    plan = plan_of(Window(SIP(total), width, LDP(1.5 * total)), method=Method.RANDOMIZED_RESPONSE)
    batches = list(outputs(plan, data, 7))
    last = batches[-1][-1].sequence
    for first in range(1 - width, last + 1):
        inside = [
            events
            for events in batches
            if any(first <= event.sequence < first + width for event in events)
        ]
        assert exact_sum(e.sip.epsilon for b in inside for e in b) <= Fraction(total)
        assert exact_sum(e.ldp.epsilon for b in inside for e in b) <= Fraction(1.5 * total)


@settings(max_examples=12)
@given(totals, st.integers(1, 9), st.data())
def test_a_horizon_is_never_passed(total: float, steps: int, data: st.DataObject) -> None:
    plan = plan_of(Horizon(SIP(total), steps, LDP(1.5 * total)))
    events = [event for batch in outputs(plan, data, 6) for event in batch]
    assert exact_sum([event.sip.epsilon for event in events]) <= Fraction(total)
    assert exact_sum([event.ldp.epsilon for event in events]) <= Fraction(1.5 * total)


@settings(max_examples=8)
@given(totals, st.data())
def test_no_batch_passes_what_its_values_may(amount: float, data: st.DataObject) -> None:
    plan = plan_of(PerStep(SIP(amount), LDP(1.2 * amount)))
    for batch in outputs(plan, data, 4):
        assert exact_sum([e.sip.epsilon for e in batch]) <= len(batch) * Fraction(amount)
        assert exact_sum([e.ldp.epsilon for e in batch]) <= len(batch) * Fraction(1.2 * amount)
        assert all(event.sip == SIP(0.0) for event in batch[:-1])
        assert {event.batch for event in batch} == {batch[0].sequence}


def test_what_rounding_did_to_the_belief_is_paid_for() -> None:
    plan, drift = plan_of(PerStep(SIP(0.5))), 1e-5
    fresh = plan.begin("s")
    state = replace(fresh, belief=replace(fresh.belief, drift=drift))
    found = plan.prepare(state)
    assert found is not None
    weights, masses = found.design.channel.weights.tolist(), found.partition.masses
    told = found.patterns[found.design.channel.outputs[0]].tolist()
    events, _ = plan.observe(state, [LETTERS.alphabet.labels[place] for place in told])
    charged = events[-1].sip.epsilon
    for signs in itertools.product((-drift, drift), repeat=3):
        other = masses * np.exp(np.repeat(signs, 3))  # the first value of a batch comes first
        assert exact_leakage(weights, other.tolist()) <= charged <= 1.0
    assert charged > exact_leakage(weights, masses.tolist()) + drift


# Refusals ----------------------------------------------------------------------------------------


def one_batch(**options: Any) -> dict[str, Any]:
    """Budget for one batch of two and no more."""
    return {
        "width": 2,
        "budget": Horizon(SIP(1.0), 2),
        "loss": hamming(LETTERS),
        "method": Method.RANDOMIZED_RESPONSE,
        **options,
    }


def test_refusal_draws_nothing_and_changes_nothing() -> None:
    coins = CountingCoins()
    release = BatchedRelease(LETTERS, randomness=coins, **one_batch())
    release.add("a")
    release.add("b")
    before, drawn = release.state, coins.drawn
    release.add("c")
    for _ in range(2):
        with pytest.raises(BudgetExceeded, match="this event was not released") as refusal:
            release.add("b")
        assert release.state is before
        assert coins.drawn == drawn == 1
        assert release.waiting == 1
    assert (refusal.value.stream, refusal.value.sequence) == ("stream", 2)
    with pytest.raises(BudgetExceeded):
        release.flush()
    assert (release.waiting, release.state, coins.drawn) == (1, before, drawn)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_unknown_value_is_refused_before_anything_is_drawn_and_never_quoted(
    place: int,
) -> None:
    coins = CountingCoins()
    release = BatchedRelease(
        LETTERS, width=3, budget=SIP(1.0), loss=hamming(LETTERS), randomness=coins
    )
    for value in "ab"[:place]:
        release.add(value)
    before = release.state
    with pytest.raises(UnknownSymbol) as refusal:
        release.add("secret-value")
    assert "secret" not in everything_said(refusal.value)
    assert release.state is before
    assert (coins.drawn, release.waiting) == (0, place)
    events = [event for value in "abc"[place:] for event in release.add(value)]
    assert [event.sequence for event in events] == [0, 1, 2]


def test_an_unknown_value_is_not_recalled() -> None:
    # The window is spent when the unknown value comes, and free again for the next one.
    options: dict[str, Any] = {
        "width": 1,
        "budget": Window(SIP(1.0), 2),
        "loss": hamming(LETTERS),
        "memory": 2,
        "on_exhausted": "suppress",
    }
    fresh = BatchedRelease(LETTERS, **options).state
    spent = replace(fresh, sequence=1, ledger=Ledger(1, 1.0, 1.0, (Charge(1.0, 1.0),)))
    release = BatchedRelease(LETTERS, state=spent, recalled="a", **options)
    with pytest.raises(UnknownSymbol):
        release.add("z")
    assert [event.outcome for event in release.add("b")] == [Outcome.SUPPRESSED]
    assert [event.outcome for event in release.add("a")] == [Outcome.RELEASED]


OTHERS: list[dict[str, Any]] = [
    {"width": 3},
    {"memory": 2},
    {"method": Method.CALIBRATED},
    {"listed": 5},
    {"loss": batch_losses.histogram(LETTERS.alphabet)},
    {"model": chain_of(random_process(3, 1, np.random.default_rng(1)))},
]


@pytest.mark.parametrize("place", range(len(OTHERS)))
def test_a_state_of_another_plan_is_refused(place: int) -> None:
    options: dict[str, Any] = {
        "model": LETTERS,
        "budget": PerStep(SIP(1.0)),
        "loss": hamming(LETTERS),
        "width": 2,
    }
    mine, other = Plan(**options), Plan(**options | OTHERS[place])
    assert mine.fingerprint != other.fingerprint
    with pytest.raises(InvalidParameter, match="that of another plan"):
        BatchedRelease(**options, state=other.begin("s"))


def test_what_is_recalled_must_be_what_the_channel_looks_at() -> None:
    plan = plan_of(PerStep(SIP(1.0)), memory=2)
    _, state = plan.step(plan.begin("s"), "ab", secure())
    for wrong in ("", "a", "abc"):
        with pytest.raises(InvalidParameter, match="be the 2 true values before the batch"):
            plan.step(state, "ab", secure(), wrong)
    with pytest.raises(InvalidParameter, match="be the 0 true values"):
        plan.step(plan.begin("s"), "ab", secure(), "ab")


def test_the_published_rule_is_refused_where_it_breaks_its_promise() -> None:
    plan = plan_of(PerStep(SIP(0.3)), method=Method.PAPER)
    assert plan.prepare(plan.begin("s")) is None
    with pytest.raises(BudgetExceeded):
        plan.step(plan.begin("s"), "ab", secure())


# Fallbacks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("listed", [4096, 1], ids=["exact", "boxes"])
def test_a_substitute_looks_like_what_the_adversary_expects(listed: int) -> None:
    process = random_process(3, 1, np.random.default_rng(3), sticky=2.0)
    chain = chain_of(process)
    plan = Plan(
        chain,
        PerStep(SIP(0.8)),
        hamming(chain),
        2,
        on_unknown=Fallback.SUBSTITUTE,
        purpose=Purpose.SIMULATION,
        listed=listed,
    )
    state = plan.begin("s")
    prepared = plan.prepare(state)
    assert prepared is not None
    channel, batches = prepared.design.channel, every(3, 2)
    rows = [prepared.partition.cell(batch) for batch in batches]
    chances = np.array([float(p) for p in process.chances(2).values()])
    patterns = [tuple(prepared.patterns[place].tolist()) for place in channel.outputs]
    expected = chances @ channel.probabilities[rows]
    coins, count = seeded(9), 2500
    drawn = [
        tuple(int(str(e.released)) for e in plan.step(replace(state, sequence=t), "zz", coins)[0])
        for t in range(count)
    ]
    found = np.array([drawn.count(pattern) for pattern in patterns])
    assert found.sum() == count
    assert stats.chisquare(found, count * expected).pvalue > ALPHA
    even = np.full(len(batches), 1 / len(batches)) @ channel.probabilities[rows]
    assert stats.chisquare(found, count * even).pvalue < ALPHA


# Waiting and going on ----------------------------------------------------------------------------


def test_a_flush_of_nothing_is_nothing() -> None:
    coins = CountingCoins()
    release = BatchedRelease(
        LETTERS, width=2, budget=SIP(1.0), loss=hamming(LETTERS), randomness=coins
    )
    before = release.state
    assert release.flush() == ()
    assert release.state is before
    assert coins.drawn == 0
    release.add("a")
    assert [event.sequence for event in release.flush()] == [0]
    assert release.flush() == ()
    assert release.waiting == 0


def test_a_short_batch_may_leak_no_more_than_its_values() -> None:
    release = BatchedRelease(LETTERS, width=4, budget=SIP(0.5), loss=hamming(LETTERS))
    events = list(release.over("aabbc"))
    assert [event.batch for event in events] == [0, 0, 0, 0, 4]
    assert events[3].sip <= SIP(2.0)
    assert events[4].sip <= SIP(0.5)


def test_a_skip_comes_between_batches() -> None:
    release = BatchedRelease(LETTERS, width=2, budget=SIP(0.5), loss=hamming(LETTERS))
    (event,) = release.skip()
    assert (event.outcome, event.sip) == (Outcome.SKIPPED, SIP(0.0))
    moved = LETTERS.initial @ LETTERS.transition()
    assert release.state.belief.marginal == pytest.approx(moved)
    release.add("a")
    with pytest.raises(InvalidParameter, match="must be flushed"):
        release.skip()
    assert release.waiting == 1


@pytest.mark.parametrize("memory", [1, 2])
def test_a_stored_state_goes_on_where_it_stood(memory: int) -> None:
    options: dict[str, Any] = {
        "width": 2,
        "budget": Window(SIP(2.0), 3, LDP(3.0)),
        "loss": hamming(LETTERS),
        "memory": memory,
        "on_exhausted": "repeat",
    }
    one = BatchedRelease(LETTERS, randomness=keyed(SECRET), **options)
    whole = list(one.over("abcabcaab"))
    two = BatchedRelease(LETTERS, randomness=keyed(SECRET), **options)
    head = [event for value in "abca" for event in two.add(value)]
    state = from_bytes(to_bytes(two.state), StreamState)
    recalled = "ca" if memory == 2 else ""
    three = BatchedRelease(
        LETTERS, randomness=keyed(SECRET), state=state, recalled=recalled, **options
    )
    assert head + list(three.over("bcaab")) == whole
    assert three.ledger == one.ledger
    assert np.array_equal(three.state.belief.joint, one.state.belief.joint)
    assert three.state.belief.drift == one.state.belief.drift


def test_an_event_of_a_batch_is_stored_with_its_batch() -> None:
    release = BatchedRelease(LETTERS, width=3, budget=SIP(0.5), loss=hamming(LETTERS))
    for event in release.over("aabbc"):
        assert from_bytes(to_bytes(event), Event) == event


def test_state_holds_no_true_value() -> None:
    # Two truths, one answer: the states must be the same to the last bit.
    plan = plan_of(PerStep(SIP(0.7)))
    found: dict[tuple[Label | None, ...], set[bytes]] = {}
    for truth in itertools.product("abc", repeat=2):
        for word in range(8):
            coins = keyed(SECRET + bytes([word]))
            events, state = plan.step(plan.begin("s"), truth, coins)
            told = tuple(event.released for event in events)
            found.setdefault(told, set()).add(to_bytes(state))
    assert len(found) > 1
    assert all(len(states) == 1 for states in found.values())


# Samplers ----------------------------------------------------------------------------------------


def drawn_pairs(epsilon: float, truth: str, count: int) -> NDArray[np.int64]:
    plan = Plan(
        LETTERS,
        PerStep(SIP(epsilon / 2)),
        hamming(LETTERS),
        2,
        method=Method.RANDOMIZED_RESPONSE,
        purpose=Purpose.SIMULATION,
    )
    state, coins = plan.begin("s"), seeded(4)
    found = np.zeros(9, dtype=np.int64)
    for t in range(count):
        events, _ = plan.step(replace(state, sequence=t), truth, coins)
        first, second = ("abc".index(str(event.released)) for event in events)
        found[3 * first + second] += 1
    return found


def response(epsilon: float, truth: int) -> Floats:
    """Randomised response on nine batches, from its definition."""
    rows = np.full(9, 1 / (math.exp(epsilon) + 8))
    rows[truth] *= math.exp(epsilon)
    return rows


@pytest.mark.statistical
def test_batches_are_drawn_from_the_channel_and_from_no_other() -> None:
    count = 3000
    found = drawn_pairs(2.0, "ca", count)
    assert stats.chisquare(found, count * response(2.0, 6)).pvalue > ALPHA
    for wrong in (0.7 * 2.0, 1.3 * 2.0):
        assert stats.chisquare(found, count * response(wrong, 6)).pvalue < ALPHA
    assert stats.chisquare(found, count * response(2.0, 2)).pvalue < ALPHA


@pytest.mark.statistical
@pytest.mark.parametrize("listed", [4096, 1], ids=["exact", "boxes"])
def test_batches_of_the_optimum_are_drawn_from_its_rows(listed: int) -> None:
    process = random_process(2, 1, np.random.default_rng(12))
    chain = chain_of(process)
    count = 3000

    def planned(epsilon: float) -> Plan:
        return Plan(
            chain,
            PerStep(SIP(epsilon / 3)),
            hamming(chain),
            3,
            purpose=Purpose.SIMULATION,
            listed=listed,
        )

    def law(epsilon: float, truth: Symbols) -> dict[Symbols, float]:
        plan = planned(epsilon)
        prepared = plan.prepare(plan.begin("s"))
        assert prepared is not None
        channel = prepared.design.channel
        row = channel.probabilities[prepared.partition.cell(truth)]
        told = [tuple(prepared.patterns[place].tolist()) for place in channel.outputs]
        return dict(zip(told, row.tolist(), strict=True))

    plan, truth, coins = planned(1.5), (0, 1, 1), seeded(7)
    state = plan.begin("s")
    drawn = [
        tuple(int(str(e.released)) for e in plan.step(replace(state, sequence=t), truth, coins)[0])
        for t in range(count)
    ]

    def pvalue(epsilon: float) -> float:
        rows = law(epsilon, truth)
        if not set(drawn) <= set(rows):
            return 0.0
        found = np.array([drawn.count(batch) for batch in rows])
        return float(stats.chisquare(found, count * np.array(list(rows.values()))).pvalue)

    assert pvalue(1.5) > ALPHA
    assert pvalue(1.5 * 0.7) < ALPHA
    assert pvalue(1.5 * 1.3) < ALPHA


# Planted bugs ------------------------------------------------------------------------------------


def test_a_belief_that_forgets_the_batch_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Patterns.after

    def forgetful(self: Patterns, likelihood: Floats) -> Belief:
        return honest(self, np.ones_like(likelihood))

    world, _, plan, lengths = case("two symbols, pairs", 1)
    check_leakage(world, plan, lengths)
    monkeypatch.setattr(Patterns, "after", forgetful)
    broken = Plan(plan.model, plan.budget, plan.loss, plan.width)
    with pytest.raises(AssertionError):
        check_belief(world, broken, lengths)
    with pytest.raises(AssertionError):
        check_leakage(world, broken, lengths)


def test_a_charge_that_is_forgotten_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Ledger.charged

    def cheap(self: Ledger, *details: Any) -> Ledger:
        return replace(honest(self, *details), sip=self.sip + 0.5 * details[0].sip)

    world, _, plan, lengths = case("two symbols, pairs", 1)
    monkeypatch.setattr(Ledger, "charged", cheap)
    with pytest.raises(AssertionError):
        check_leakage(world, plan, lengths)


def test_a_channel_for_the_last_value_alone_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_sided(self: Patterns, places: Sequence[int]) -> int:
        return int(places[-1])

    monkeypatch.setattr(Patterns, "cell", one_sided)
    found = drawn_pairs(2.0, "ca", 2000)
    assert stats.chisquare(found, 2000 * response(2.0, 6)).pvalue < ALPHA
