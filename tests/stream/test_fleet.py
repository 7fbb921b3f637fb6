"""Many streams under a policy answer as each would alone, value by value and in batches."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sfumato import (
    SIP,
    Fallback,
    Fleet,
    Horizon,
    Method,
    PerStep,
    Plan,
    Purpose,
    loss,
    secure,
    seeded,
)
from sfumato.core.errors import BudgetExceeded, InsecureRandomness, InvalidParameter, UnknownSymbol
from sfumato.store import from_bytes, to_bytes
from sfumato.stream import Outcome, StreamState
from tests.compiled import CHAINS, NO_LIMIT, exact_leakages, exact_shares
from tests.grids import covered
from tests.stream.fleet_scripts import (
    BUDGETS,
    COUNT,
    NAMES,
    SETTINGS,
    Bulk,
    Move,
    apart,
    assert_drawn_from,
    everything,
    keyed_coins,
    moves,
    plan_of,
    policy_of,
    same,
    together,
)

IN_BATCHES = ("letters in pairs", "order two in threes")

# The same answers --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "budget"),
    [*covered(list(CHAINS)[:-1], list(BUDGETS)), *covered(list(SETTINGS), list(BUDGETS))],
)
def test_a_fleet_answers_as_its_streams_would_alone(name: str, budget: str) -> None:
    plan = plan_of(name, budget, on_exhausted=Fallback.SUPPRESS)
    events = same(plan, moves(plan, 6 if name in SETTINGS else 9), keyed_coins)
    # Of the chains, one of order 3 says so little that constants leave at some budgets.
    assert name in CHAINS or any(event.sip.epsilon > 0 for event in events)


@pytest.mark.parametrize(
    ("name", "threads"), [("sparse, order 2", 3), *((name, 2) for name in IN_BATCHES)]
)
def test_threads_and_seeded_coins_change_nothing(name: str, threads: int) -> None:
    rule = {"purpose": Purpose.SIMULATION, "on_exhausted": Fallback.REPEAT}
    plan = plan_of(name, "window", **rule)
    for shared in (1, threads):
        same(plan, moves(plan, 7), lambda: seeded(4), threads=shared)


@pytest.mark.parametrize(
    ("fallback", "budget", "name"),
    covered(
        ["suppress", "repeat", "substitute"],
        ["per step", "window, capped", "horizon"],
        ["letters", *IN_BATCHES],
    ),
)
def test_values_outside_the_alphabet_go_the_same_way(name: str, fallback: str, budget: str) -> None:
    rule = {"on_unknown": Fallback(fallback), "on_exhausted": Fallback.SUPPRESS}
    plan = plan_of(name, budget, **rule)
    events = same(plan, moves(plan, 9, "stranger"), keyed_coins)
    left = {event.outcome for event in events}
    if budget != "horizon":
        assert (left == {Outcome.RELEASED}) == (fallback == "substitute")
    assert (Outcome.REPEATED in left) == (fallback == "repeat")


@pytest.mark.parametrize("fallback", ["suppress", "repeat"])
@pytest.mark.parametrize("budget", ["horizon", "horizon, capped"])
@pytest.mark.parametrize("name", ["dense, order 1", "letters in pairs", "letters in threes"])
def test_budgets_that_are_gone_go_the_same_way(name: str, fallback: str, budget: str) -> None:
    plan = plan_of(name, budget, on_exhausted=Fallback(fallback))
    events = same(plan, moves(plan, 12), keyed_coins)
    silent = Outcome.REPEATED if fallback == "repeat" else Outcome.SUPPRESSED
    assert {event.outcome for event in events} == {Outcome.RELEASED, silent}


@pytest.mark.parametrize(
    "name", ["dense, order 1", "dense, order 2", "sparse, order 1", *IN_BATCHES]
)
def test_beliefs_that_the_policy_misses_go_the_same_way(name: str) -> None:
    policy = replace(policy_of(name), repair_limit=1e-12)
    less = PerStep(SIP(0.3 if name in SETTINGS else 0.7))
    plan = plan_of(name, less, policy=policy, on_unknown=Fallback.SUBSTITUTE)
    same(plan, moves(plan, 5 if name in SETTINGS else 12, "stranger"), keyed_coins)
    space: Any = plan.space
    assert space._designs.cache_info().misses > 0


@pytest.mark.parametrize("name", ["dense, order 1", "letters in pairs"])
@pytest.mark.parametrize("method", ["randomized-response", "context-free"])
def test_a_policy_of_one_channel_goes_the_same_way(name: str, method: str) -> None:
    plan = plan_of(name, "window", policy=policy_of(name, method), method=Method(method))
    same(plan, moves(plan, 7), keyed_coins)


@pytest.mark.parametrize(
    ("name", "script"),
    [
        ("dense, order 1", [[0, 1, 2, 0, 1], [2, 2, 1, -1, 7], [0, 0, 0, 0, 0]]),
        (
            "order two in pairs",
            [
                [[0, 1], [2, 0], [1, 1], [0, 0], [2, 2]],
                [[2, 2], [1, -1], [7, 0], [0, 1], [1, 0]],
            ],
        ),
    ],
)
def test_values_may_come_as_numbers_in_an_array(name: str, script: list[Any]) -> None:
    plan = plan_of(name, on_unknown=Fallback.SUPPRESS)
    one, two = (Fleet(plan, NAMES, randomness=keyed_coins()) for _ in range(2))
    for values in script:
        taken, given = one.step(values), two.step(np.array(values))
        assert list(taken) == list(given)
        assert taken.labels() == given.labels()
        assert taken.released.tolist() == given.released.tolist()
    assert everything(one) == everything(two)
    large: Any = np.array(script[0], dtype=np.uint64)
    large.flat[0] = 2**64 - 1
    assert one.step(large).outcomes == [Outcome.SUPPRESSED, *[Outcome.RELEASED] * 4]


def test_a_stream_is_named_rightly_in_any_order() -> None:
    fleet = Fleet(plan_of("dense, order 1"), NAMES)
    order = np.array([3, 0, 4, 1, 2])
    fleet.step([0], np.array([3]))
    told = fleet.step([0, 1, 2, 0, 1], order)
    assert [(event.stream, event.sequence) for (event,) in told] == [
        (NAMES[place], int(place == 3)) for place in order
    ]


def test_no_streams_at_all_is_no_step_at_all() -> None:
    fleet = Fleet(plan_of("dense, order 1"), NAMES)
    before = everything(fleet)
    assert list(fleet.step([], np.array([], dtype=np.int64))) == []
    assert everything(fleet) == before


# Going on, and looking on ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "pause"),
    covered(
        ["dense, order 1", "sparse, order 2", "dense, order 3", *IN_BATCHES],
        [0, 1, 5, 8],
    ),
)
def test_a_fleet_stored_in_mid_stream_goes_on_as_if_it_were_not(name: str, pause: int) -> None:
    rule = {"on_unknown": Fallback.REPEAT, "on_exhausted": Fallback.SUPPRESS}
    plan = plan_of(name, "window, capped", **rule)
    script = moves(plan, 8, "stranger")
    due, states = apart(plan, script, keyed_coins())
    first = Fleet(plan, NAMES, randomness=keyed_coins())
    events = together(first, script[:pause])
    stored = everything(first)
    read = [from_bytes(state, StreamState) for state in stored]
    again = Fleet(plan, states=read, randomness=keyed_coins())
    assert everything(again) == stored
    assert events + together(again, script[pause:]) == due
    assert everything(again) == [to_bytes(state) for state in states]


@pytest.mark.parametrize(
    ("name", "budget"), covered(["dense, order 1", "dense, order 2", *IN_BATCHES], list(BUDGETS))
)
def test_an_onlooker_computes_the_same_events_and_states(name: str, budget: str) -> None:
    rule = {"on_exhausted": Fallback.REPEAT, "on_unknown": Fallback.SUBSTITUTE}
    plan = plan_of(name, budget, **rule)
    fleet = Fleet(plan, NAMES, randomness=keyed_coins())
    states = {stream: plan.begin(stream) for stream in NAMES}
    for move in moves(plan, 6 if name in SETTINGS else 10, "stranger"):
        for events in together(fleet, [move]):
            stream, told = events[0].stream, [event.released for event in events]
            seen, states[stream] = plan.observe(states[stream], told, events[0].outcome)
            assert seen == events
        if not move.batches:
            for stream in (NAMES[place] for place in move.streams):
                _, states[stream] = plan.skip(states[stream], plan.width)
    assert everything(fleet) == [to_bytes(states[stream]) for stream in NAMES]


@pytest.mark.parametrize("name", ["dense, order 1", "sparse, order 1", "dense, order 3"])
def test_every_event_costs_at_least_its_exact_leakage(name: str) -> None:
    plan = plan_of(name, "geometric, capped")
    fleet = Fleet(plan, NAMES, randomness=keyed_coins())
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


@pytest.mark.parametrize(
    ("name", "first", "then", "wrong"),
    [
        ("letters", "abcab", "aabbc", {0: "z", 2: "z", 4: "z"}),
        (
            "letters in pairs",
            ("ab", "bc", "ca", "aa", "bb"),
            ("ba", "bb", "cc", "ac", "cb"),
            {0: "za", 2: "cz", 4: "zb"},
        ),
    ],
)
def test_a_strange_value_in_one_stream_changes_no_stream(
    name: str, first: Any, then: Any, wrong: dict[int, str]
) -> None:
    plan = plan_of(name, "window")
    for row, strange in wrong.items():
        fleet = Fleet(plan, NAMES, randomness=keyed_coins())
        fleet.step(first)
        before, values = everything(fleet), list(then)
        values[row] = strange
        with pytest.raises(UnknownSymbol) as caught:
            fleet.step(values)
        assert "z" not in str(caught.value)
        assert everything(fleet) == before
        fleet.step(then)
        script = [Move(None, [list(batch) for batch in batches]) for batches in (first, then)]
        _, states = apart(plan, script, keyed_coins())
        assert everything(fleet) == [to_bytes(state) for state in states]


@pytest.mark.parametrize("stream", [0, 3])
def test_a_budget_gone_in_one_stream_changes_no_stream(stream: int) -> None:
    plan = plan_of("dense, order 2", Horizon(SIP(2.0), 3))
    fleet = Fleet(plan, NAMES, randomness=keyed_coins())
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
    fleet = Fleet(plan_of("dense, order 2", budget), NAMES)

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
    ("name", "joint"),
    [
        ("dense, order 1", [0.0] * 3),
        ("dense, order 1", [-1.0, 1.0, 1.0]),
        ("dense, order 1", [1e308] * 3),
        ("dense, order 1", [np.nan, 0.5, 0.5]),
        ("dense, order 1", [1.0, 0.0, 0.0]),
        ("letters in pairs", [0.0] * 9),
        ("letters in pairs", [np.nan, *[0.125] * 8]),
        ("letters in pairs", [1.0, *[0.0] * 8]),
        ("letters in pairs", [1.0]),
    ],
)
def test_a_belief_that_is_none_is_refused_and_releases_nothing(
    name: str, joint: list[float]
) -> None:
    """As without a policy; never a step that is priced by a comparison with NaN."""
    plan = plan_of(name)
    begun = plan.begin("ann")
    state = replace(begun, belief=replace(begun.belief, joint=np.array(joint)))
    with np.errstate(all="ignore"), pytest.raises(InvalidParameter):
        Fleet(plan, states=[state]).step([0] if name not in SETTINGS else ["ab"])


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
    plan = plan_of("dense, order 1", policy=made)
    same(plan, moves(plan, 4), keyed_coins)


@pytest.mark.parametrize("name", ["dense, order 1", "letters in pairs"])
def test_a_state_of_another_plan_is_refused(name: str) -> None:
    for other in (plan_of(name, PerStep(SIP(0.4))), plan_of(name, policy=None)):
        with pytest.raises(InvalidParameter, match="state must come from this model"):
            Fleet(plan_of(name), states=[other.begin("ann")])


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


@pytest.mark.statistical
@pytest.mark.parametrize(("amount", "truth"), [(1.0, 0), (0.6, 1), (0.6, 2)])
def test_outputs_follow_the_channel_and_no_neighbouring_one(amount: float, truth: int) -> None:
    """PolicyChannel channels at 1, mixed ones at 0.6: the third fast step of many streams alike."""
    policy = replace(policy_of("dense, order 1"), repair_limit=NO_LIMIT)
    budget = PerStep(SIP(amount))
    plan = plan_of("dense, order 1", budget, policy=policy, purpose=Purpose.SIMULATION)
    start = plan.begin("s")
    for output in (0, 0):
        _, start = plan.observe(start, [output])
    states = [replace(start, stream=f"s{i}") for i in range(COUNT)]
    told = Fleet(plan, states=states, randomness=Bulk(truth)).step(np.full(COUNT, truth))
    prepared = plan.prepare(start)
    assert prepared is not None
    channel = prepared.design.channel
    counts = np.array([(told.released == output).sum() for output in channel.outputs])
    row = channel.probabilities[truth]
    assert_drawn_from(counts, row, int(row.argmin()), (0.7, 1.3))


def test_fresh_coins_differ_from_stream_to_stream() -> None:
    names = [f"s{i}" for i in range(500)]
    fleet = Fleet(plan_of("dense, order 1"), names, randomness=secure())
    for _ in range(3):
        told = fleet.step(np.zeros(500, dtype=np.int64))
    assert len(set(told.released.tolist())) > 1
