from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from sfumato import (
    LDP,
    SIP,
    Event,
    Fallback,
    Fleet,
    Horizon,
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
from sfumato.core.budgets import Budget
from sfumato.core.errors import BudgetExceeded, InsecureRandomness, InvalidParameter, UnknownSymbol
from sfumato.core.randomness import Address, Randomness
from sfumato.store import from_bytes, to_bytes
from sfumato.stream import Geometric, Outcome, StreamState
from sfumato.stream.partition.belief_spaces import NextValue
from tests.compiled import CHAINS, NO_LIMIT, exact_leakages, exact_shares, plan_of, policy_of
from tests.grids import covered

SECRET = b"a secret of sixteen bytes or more"
ALPHA = 1e-6  # false alarm rate of a statistical test
NAMES = ("ann", "bob", "eve", "zoe", "kim")
BUDGETS: dict[str, Budget] = {
    "per step": PerStep(SIP(1.0)),
    "per step, less": PerStep(SIP(0.4), LDP(0.6)),
    "horizon": Horizon(SIP(4.0), 7),
    "horizon, capped": Horizon(SIP(4.0), 7, LDP(6.0)),
    "window": Window(SIP(2.0), 3),
    "window, capped": Window(SIP(2.0), 3, LDP(2.5)),
    "geometric": Geometric(SIP(3.0), 0.7),
    "geometric, capped": Geometric(SIP(3.0), 0.7, LDP(4.0)),
}
Ints = NDArray[np.int64]
Moves = list[tuple[Ints | None, list[Any]]]
"""Which streams move, and to what; no values: they let a moment pass."""


def moves(size: int, steps: int, labels: Any = None, strange: object = None) -> Moves:
    """A script: everybody, some of them in another order, a pause, and now and then a stranger."""
    draw = np.random.default_rng(steps)
    known = list(range(size)) if labels is None else list(labels)
    script: Moves = []
    for step in range(steps):
        which = None
        if step % 3 == 1:
            which = draw.permutation(len(NAMES))[: 2 + step % 3]
        if step % 5 == 4:
            script.append((which, []))
        count = len(NAMES) if which is None else len(which)
        values = [known[place] for place in draw.integers(0, size, count)]
        if strange is not None and step % 2:
            values[step % count] = strange
        script.append((which, values))
    return script


def together(fleet: Fleet, script: Moves) -> list[Event]:
    events = []
    for which, values in script:
        if values:
            told = fleet.step(values, which)
            assert [event.stream for (event,) in told] == list(told.streams)
            events += [event for (event,) in told]
        else:
            fleet.skip(which)
    return events


def apart(plan: Plan, script: Moves, coins: Randomness) -> tuple[list[Event], list[StreamState]]:
    """The same script, stream by stream, by the rule alone."""
    states, events = [plan.begin(name) for name in NAMES], []
    for which, values in script:
        streams = range(len(NAMES)) if which is None else which.tolist()
        for row, stream in enumerate(streams):
            if values:
                (event,), states[stream] = plan.step(states[stream], [values[row]], coins)
                events.append(event)
            else:
                _, states[stream] = plan.skip(states[stream])
    return events, states


def same(plan: Plan, script: Moves, coins: Callable[[], Randomness], **options: Any) -> Any:
    """Hold a fleet against single streams, to the last bit; return its events."""
    fleet = Fleet(plan, NAMES, randomness=coins(), **options)
    events = together(fleet, script)
    due, states = apart(plan, script, coins())
    assert events == due
    for stream, state in enumerate(states):
        assert to_bytes(fleet.state(stream)) == to_bytes(state)
    assert fleet.spent.tolist() == [[state.ledger.sip, state.ledger.ldp] for state in states]
    return events


def keyed_coins() -> Randomness:
    return keyed(SECRET)


# The same answers --------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "budget"), covered(list(CHAINS)[:-1], list(BUDGETS)))
def test_a_fleet_answers_as_its_streams_would_alone(name: str, budget: str) -> None:
    plan = plan_of(name, BUDGETS[budget], on_exhausted=Fallback.SUPPRESS)
    same(plan, moves(CHAINS[name].size, 9), keyed_coins)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_change_nothing(threads: int) -> None:
    plan = plan_of("sparse, order 2", purpose=Purpose.SIMULATION)
    same(plan, moves(3, 9), lambda: seeded(4), threads=threads)


@pytest.mark.parametrize("fallback", ["suppress", "repeat", "substitute"])
@pytest.mark.parametrize("budget", ["per step", "window, capped"])
def test_values_outside_the_alphabet_go_the_same_way(fallback: str, budget: str) -> None:
    plan = plan_of("letters", BUDGETS[budget], on_unknown=Fallback(fallback))
    events = same(plan, moves(3, 10, "abc", strange="z"), keyed_coins)
    left = {event.outcome for event in events}
    assert (left == {Outcome.RELEASED}) == (fallback == "substitute")


@pytest.mark.parametrize("fallback", ["suppress", "repeat"])
@pytest.mark.parametrize("budget", ["horizon", "horizon, capped"])
def test_budgets_that_are_gone_go_the_same_way(fallback: str, budget: str) -> None:
    plan = plan_of("dense, order 1", BUDGETS[budget], on_exhausted=Fallback(fallback))
    events = same(plan, moves(3, 14), keyed_coins)
    silent = Outcome.REPEATED if fallback == "repeat" else Outcome.SUPPRESSED
    assert {event.outcome for event in events} == {Outcome.RELEASED, silent}


@pytest.mark.parametrize("name", ["dense, order 1", "dense, order 2", "sparse, order 1"])
def test_beliefs_that_the_policy_misses_go_the_same_way(name: str) -> None:
    policy = replace(policy_of(name), repair_limit=1e-12)
    plan = plan_of(name, PerStep(SIP(0.7)), policy=policy, on_unknown=Fallback.SUBSTITUTE)
    same(plan, moves(CHAINS[name].size, 12, strange="z"), keyed_coins)
    assert isinstance(plan.space, NextValue)
    solved: Any = plan.space._designs
    assert solved.cache_info().misses > 0


@pytest.mark.parametrize("method", ["randomized-response", "context-free"])
def test_a_policy_of_one_channel_goes_the_same_way(method: str) -> None:
    policy = policy_of("dense, order 1", 1.0, None, method)
    plan = plan_of("dense, order 1", BUDGETS["window"], policy=policy, method=Method(method))
    same(plan, moves(3, 9), keyed_coins)


def test_values_may_come_as_numbers_in_an_array() -> None:
    plan = plan_of("dense, order 1", on_unknown=Fallback.SUPPRESS)
    script = [[0, 1, 2, 0, 1], [2, 2, 1, -1, 7], [0, 0, 0, 0, 0]]
    one = Fleet(plan, NAMES, randomness=keyed(SECRET))
    two = Fleet(plan, NAMES, randomness=keyed(SECRET))
    for values in script:
        assert list(one.step(values)) == list(two.step(np.array(values)))
    large: Any = np.array([2**64 - 1, 0, 1, 2, 0], dtype=np.uint64)
    assert one.step(large).outcomes[0] is Outcome.SUPPRESSED


def test_a_stream_is_named_rightly_in_any_order() -> None:
    fleet = Fleet(plan_of("dense, order 1"), NAMES)
    order = np.array([3, 0, 4, 1, 2])
    fleet.step([0], np.array([3]))
    told = fleet.step([0, 1, 2, 0, 1], order)
    assert list(told.streams) == [NAMES[place] for place in order]
    assert [(event.stream, event.sequence) for (event,) in told] == [
        (NAMES[place], int(place == 3)) for place in order
    ]


def test_no_streams_at_all_is_no_step_at_all() -> None:
    fleet = Fleet(plan_of("dense, order 1"), NAMES)
    before = [to_bytes(fleet.state(stream)) for stream in range(len(NAMES))]
    assert list(fleet.step([], np.array([], dtype=np.int64))) == []
    assert before == [to_bytes(fleet.state(stream)) for stream in range(len(NAMES))]


# Going on, and looking on ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "pause"),
    covered(["dense, order 1", "sparse, order 2", "dense, order 3"], [0, 1, 5, 8]),
)
def test_a_fleet_stored_in_mid_stream_goes_on_as_if_it_were_not(name: str, pause: int) -> None:
    plan = plan_of(name, BUDGETS["window, capped"], on_unknown=Fallback.REPEAT)
    script = moves(CHAINS[name].size, 9, strange="z")
    due = same(plan, script, keyed_coins)
    first = Fleet(plan, NAMES, randomness=keyed(SECRET))
    events = together(first, script[:pause])
    kept = [to_bytes(first.state(stream)) for stream in range(len(NAMES))]
    states = [from_bytes(state, StreamState) for state in kept]
    again = Fleet(plan, states=states, randomness=keyed(SECRET))
    assert [to_bytes(again.state(stream)) for stream in range(len(NAMES))] == kept
    assert events + together(again, script[pause:]) == due


@pytest.mark.parametrize(
    ("name", "budget"), covered(["dense, order 1", "dense, order 2"], list(BUDGETS))
)
def test_an_onlooker_computes_the_same_events_and_states(name: str, budget: str) -> None:
    plan = plan_of(
        name, BUDGETS[budget], on_exhausted=Fallback.REPEAT, on_unknown=Fallback.SUBSTITUTE
    )
    fleet = Fleet(plan, NAMES, randomness=keyed(SECRET))
    states = {stream: plan.begin(stream) for stream in NAMES}
    for which, values in moves(CHAINS[name].size, 10, strange="z"):
        if not values:
            fleet.skip(which)
            for stream in NAMES if which is None else [NAMES[place] for place in which]:
                _, states[stream] = plan.skip(states[stream])
            continue
        for (event,) in fleet.step(values, which):
            (seen,), after = plan.observe(states[event.stream], [event.released], event.outcome)
            assert seen == event
            states[event.stream] = after
    for place, stream in enumerate(NAMES):
        assert to_bytes(fleet.state(place)) == to_bytes(states[stream])


@pytest.mark.parametrize("name", ["dense, order 1", "sparse, order 1", "dense, order 3"])
def test_every_event_costs_at_least_its_exact_leakage(name: str) -> None:
    plan = plan_of(name, BUDGETS["geometric, capped"])
    fleet = Fleet(plan, NAMES, randomness=keyed(SECRET))
    draw = np.random.default_rng(3)
    for _ in range(8):
        before = [fleet.state(place) for place in range(len(NAMES))]
        told = fleet.step(draw.integers(0, CHAINS[name].size, len(NAMES)))
        for state, (event,) in zip(before, told, strict=True):
            due, prepared = plan.allowance(state.ledger, 1), plan.prepare(state)
            assert prepared is not None and due.ldp is not None
            belief = exact_shares(state.belief.joint, state.belief.axis)
            sip, ldp = exact_leakages(prepared.design.channel.weights.tolist(), belief)
            assert sip <= event.sip.epsilon <= due.sip
            assert ldp <= event.ldp.epsilon <= due.ldp


# All or nothing ----------------------------------------------------------------------------------


def everything(fleet: Fleet) -> list[bytes]:
    return [to_bytes(fleet.state(stream)) for stream in range(len(fleet))]


@pytest.mark.parametrize("row", [0, 2, 4])
def test_a_strange_value_in_one_stream_changes_no_stream(row: int) -> None:
    plan = plan_of("letters", BUDGETS["window"])
    fleet = Fleet(plan, NAMES, randomness=keyed(SECRET))
    fleet.step("abcab")
    before, values = everything(fleet), list("aabbc")
    values[row] = "z"
    with pytest.raises(UnknownSymbol):
        fleet.step(values)
    assert everything(fleet) == before
    fleet.step("aabbc")
    script: Moves = [(None, list("abcab")), (None, list("aabbc"))]
    _, states = apart(plan, script, keyed(SECRET))
    assert everything(fleet) == [to_bytes(state) for state in states]


@pytest.mark.parametrize("stream", [0, 3])
def test_a_budget_gone_in_one_stream_changes_no_stream(stream: int) -> None:
    plan = plan_of("dense, order 2", Horizon(SIP(2.0), 3))
    fleet = Fleet(plan, NAMES, randomness=keyed(SECRET))
    fleet.step([0, 1, 2, 0, 1])
    for _ in range(2):
        fleet.step([1], np.array([stream]))
    before = everything(fleet)
    with pytest.raises(BudgetExceeded):
        fleet.step([0, 1, 2, 0, 1])
    assert everything(fleet) == before
    others = np.array([place for place in range(5) if place != stream])
    assert len(fleet.step([0, 0, 0, 0], others)) == 4


def test_wrong_places_and_wrong_lengths_change_no_stream() -> None:
    fleet = Fleet(plan_of("dense, order 1"), NAMES)
    before = everything(fleet)
    for which in ([0, 0], [-1], [5], [[0]]):
        with pytest.raises(InvalidParameter, match="which must be places"):
            fleet.step([0] * len(which), np.array(which))
    with pytest.raises(InvalidParameter, match="values must be one per stream, 5; got 4"):
        fleet.step([0, 1, 2, 0])
    assert everything(fleet) == before


# What it is made of ------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", ["per step", "window, capped"])
def test_memory_does_not_grow_with_time(budget: str) -> None:
    fleet = Fleet(plan_of("dense, order 2", BUDGETS[budget]), NAMES)

    def held() -> dict[str, int]:
        parts = {**vars(fleet._arrays), **vars(fleet._ledgers), "last": fleet._last}
        return {name: part.nbytes for name, part in parts.items() if isinstance(part, np.ndarray)}

    fleet.step([0, 1, 2, 0, 1])
    before, each = held(), fleet.bytes_per_stream
    stored = len(to_bytes(fleet.state(0)))
    for _ in range(15):
        fleet.step([0, 1, 2, 0, 1])
    assert held() == before
    assert fleet.bytes_per_stream == each
    assert len(to_bytes(fleet.state(0))) <= stored + 80


def test_a_fleet_needs_a_policy_different_names_and_coins_nobody_can_guess() -> None:
    plan = plan_of("dense, order 1")
    with pytest.raises(InvalidParameter, match="have a policy"):
        Fleet(plan_of("dense, order 1", policy=None), NAMES)
    with pytest.raises(InvalidParameter, match="streams must be different"):
        Fleet(plan, ["ann", "ann"])
    with pytest.raises(InvalidParameter, match="streams must be a whole number of at least 1"):
        Fleet(plan)
    with pytest.raises(InsecureRandomness):
        Fleet(plan, NAMES, randomness=seeded(1))


@pytest.mark.parametrize(
    "joint",
    [[0.0] * 3, [-1.0, 1.0, 1.0], [1e308] * 3, [np.nan, 0.5, 0.5], [1.0, 0.0, 0.0]],
)
def test_a_belief_that_is_none_is_refused_and_releases_nothing(joint: list[float]) -> None:
    """As without a policy; never a step that is priced by a comparison with NaN."""
    plan = plan_of("dense, order 1")
    begun = plan.begin("ann")
    state = replace(begun, belief=replace(begun.belief, joint=np.array(joint)))
    with np.errstate(all="ignore"), pytest.raises(InvalidParameter):
        Fleet(plan, states=[state]).step([0])


def test_a_channel_whose_rows_are_not_all_used_is_refused_or_goes_the_same_way() -> None:
    """Rows that no symbol uses make it constant for the rule, and not for the loops."""
    policy = policy_of("dense, order 1")
    tables: Any = tuple(
        np.zeros_like(table) if place == 2 else table for place, table in enumerate(policy.tables)
    )
    try:
        made = replace(policy, tables=tables)
    except InvalidParameter:
        return
    same(plan_of("dense, order 1", policy=made), moves(3, 4), keyed_coins)


def test_a_state_of_another_plan_is_refused() -> None:
    other = plan_of("dense, order 1", PerStep(SIP(0.5)))
    with pytest.raises(InvalidParameter, match="state must come from this model"):
        Fleet(plan_of("dense, order 1"), states=[other.begin("ann")])


def test_a_policy_for_something_else_is_refused() -> None:
    ring, letters = CHAINS["dense, order 1"], CHAINS["letters"]
    policy, budget = policy_of("dense, order 1"), PerStep(SIP(1.0))
    with pytest.raises(InvalidParameter, match="be compiled for this chain, loss and method"):
        Plan(letters, budget, loss.hamming(letters.alphabet), policy=policy)
    with pytest.raises(InvalidParameter, match="be compiled for this chain, loss and method"):
        Plan(ring, budget, loss.absolute(ring.alphabet), policy=policy)
    with pytest.raises(InvalidParameter, match="be compiled for this chain, loss and method"):
        plan_of("dense, order 1", policy=policy, method=Method("context-free"))


def test_plans_with_and_without_a_policy_do_not_share_states() -> None:
    with_one, without = plan_of("dense, order 1"), plan_of("dense, order 1", policy=None)
    assert with_one.fingerprint != without.fingerprint
    other = plan_of("dense, order 1", policy=replace(policy_of("dense, order 1"), epsilon=0.9))
    assert other.fingerprint != with_one.fingerprint


# The draw ----------------------------------------------------------------------------------------


def chi_square(counts: NDArray[np.int64], shares: NDArray[np.float64]) -> float:
    return float(stats.chisquare(counts, shares / shares.sum() * counts.sum()).pvalue)


@pytest.mark.statistical
@pytest.mark.parametrize(("amount", "truth"), [(1.0, 0), (0.6, 1), (0.6, 2)])
def test_outputs_follow_the_channel_and_no_neighbouring_one(amount: float, truth: int) -> None:
    """PolicyChannel channels at 1, mixed ones at 0.6: the third fast step of many streams alike."""
    count = 20_000
    policy = replace(policy_of("dense, order 1"), repair_limit=NO_LIMIT)
    budget = PerStep(SIP(amount))
    plan = plan_of("dense, order 1", budget, policy=policy, purpose=Purpose.SIMULATION)
    start = plan.begin("s")
    for output in (0, 0):
        _, start = plan.observe(start, [output])
    names = [f"s{i}" for i in range(count)]
    fleet = Fleet(
        plan, states=[replace(start, stream=name) for name in names], randomness=Bulk(truth)
    )
    told = fleet.step(np.full(count, truth))
    prepared = plan.prepare(start)
    assert prepared is not None
    channel = prepared.design.channel
    counts = np.array([(told.released == output).sum() for output in channel.outputs])
    assert counts.sum() == count
    row = channel.probabilities[truth]
    assert len(row) > 1
    assert chi_square(counts, row) > ALPHA
    for wrong in (0.7, 1.3):
        off = row.copy()
        off[row.argmin()] *= wrong
        assert chi_square(counts, off) < ALPHA


class Bulk:
    """Seeded coins that are not tied to addresses: quick for many streams."""

    simulated = True
    addressed = False

    def __init__(self, seed: int) -> None:
        self._source = seeded(seed)

    def words(self, count: int) -> NDArray[np.uint64]:
        return self._source.words(count)

    def word(self) -> int:
        return self._source.word()

    def at(self, address: Address) -> Randomness:
        return self


def test_fresh_coins_differ_from_stream_to_stream() -> None:
    names = [f"s{i}" for i in range(500)]
    fleet = Fleet(plan_of("dense, order 1"), names, randomness=secure())
    for _ in range(3):
        told = fleet.step(np.zeros(500, dtype=np.int64))
    assert len(set(told.released.tolist())) > 1
