"""Batches of many streams under a policy: the answers of single steps, and exact certificates."""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any
from unittest import mock

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato import (
    LDP,
    SIP,
    Alphabet,
    Event,
    Fallback,
    Fleet,
    Horizon,
    MarkovChain,
    Method,
    PerStep,
    Plan,
    Policy,
    Purpose,
    Window,
    compile_policy,
    keyed,
    loss,
    seeded,
)
from sfumato.core.budgets import Budget
from sfumato.core.errors import (
    InterruptedStep,
    InvalidParameter,
    UnknownSymbol,
)
from sfumato.core.randomness import Address, Randomness
from sfumato.store import from_bytes, to_bytes
from sfumato.stream import Geometric, Outcome, StreamState, batch_loss
from sfumato.stream.partition.batch_loss import BatchLoss, additive
from tests.grids import covered
from tests.oracles.batches import (
    Process,
    Symbols,
    chain_of,
    codes,
    exact_leakages,
    furthest,
    random_process,
)

SECRET = b"a secret of sixteen bytes or more"
NAMES = ("ann", "bob", "eve", "zoe", "kim")
FIRST_ORDER = 1 + 1e-9
NO_LIMIT = 1e300
BUDGETS: dict[str, Budget] = {
    "per step": PerStep(SIP(0.5)),
    "per step, capped": PerStep(SIP(0.4), LDP(0.5)),
    "horizon": Horizon(SIP(4.0), 9),
    "horizon, capped": Horizon(SIP(4.0), 9, LDP(5.0)),
    "window": Window(SIP(2.0), 5),
    "window, capped": Window(SIP(2.0), 5, LDP(2.4)),
    "geometric": Geometric(SIP(3.0), 0.8),
    "geometric, capped": Geometric(SIP(3.0), 0.8, LDP(4.0)),
}


@dataclass(frozen=True)
class Setting:
    """A process in fractions, the same chain, and the length of its batches."""

    process: Process
    chain: MarkovChain
    width: int


def _setting(size: int, order: int, width: int, *, thin: bool = False) -> Setting:
    process = random_process(size, order, np.random.default_rng(10 * size + order), sticky=1.5)
    alphabet = Alphabet("abc"[:size]) if order == 1 else None
    return Setting(process, chain_of(process, thin=thin, alphabet=alphabet), width)


SETTINGS = {
    "letters in pairs": _setting(3, 1, 2),
    "letters in threes": _setting(2, 1, 3, thin=True),
    "order two in threes": _setting(2, 2, 3),
    "order two in pairs": _setting(3, 2, 2, thin=True),
    "order three in threes": _setting(2, 3, 3),
    "one by one": _setting(3, 1, 1),
}


PAIRS_AND_THREES = ("letters in pairs", "order two in threes")


def loss_of(setting: Setting) -> BatchLoss:
    return additive(loss.hamming(setting.chain.alphabet))


@cache
def policy_of(name: str, method: str = "optimal") -> Policy:
    """A policy for batches that leak half a unit per value, from a short simulation."""
    setting = SETTINGS[name]
    return compile_policy(
        setting.chain,
        loss_of(setting),
        0.5 * setting.width,
        width=setting.width,
        method=method,
        steps=96,
        max_channels=12,
    )


def plan_of(name: str, budget: Budget | None = None, **options: Any) -> Plan:
    setting = SETTINGS[name]
    options.setdefault("policy", policy_of(name))
    chosen = PerStep(SIP(0.5)) if budget is None else budget
    return Plan(setting.chain, chosen, loss_of(setting), setting.width, **options)


def keyed_coins() -> Randomness:
    return keyed(SECRET)


# Scripts -----------------------------------------------------------------------------------------

Batch = list[Any]


@dataclass(frozen=True)
class Move:
    """What some streams do together: a whole batch each, a shorter one, or nothing."""

    which: list[int] | None
    batches: list[Batch]
    short: bool = False

    @property
    def streams(self) -> Sequence[int]:
        return range(len(NAMES)) if self.which is None else self.which


def moves(name: str, steps: int, strange: object = None) -> list[Move]:
    """Everybody, some in another order, short batches in the middle, a pause, a stranger."""
    setting, draw = SETTINGS[name], np.random.default_rng(steps)
    labels, width = setting.chain.alphabet.labels, setting.width

    def batch(length: int) -> Batch:
        return [labels[place] for place in draw.integers(0, len(labels), length)]

    script = []
    for step in range(steps):
        which = draw.permutation(len(NAMES))[: 2 + step % 3].tolist() if step % 3 == 1 else None
        if step % 5 == 4:
            script.append(Move(which, []))
        if width > 1 and step % 3 == 2:
            ended = draw.permutation(len(NAMES))[:2].tolist()
            script += [Move([one], [batch(1 + step % (width - 1))], short=True) for one in ended]
        batches = [batch(width) for _ in (NAMES if which is None else which)]
        if strange is not None and step % 2:
            batches[step % len(batches)][step % width] = strange
        script.append(Move(which, batches))
    return script


def together(fleet: Fleet, script: Sequence[Move]) -> list[tuple[Event, ...]]:
    events: list[tuple[Event, ...]] = []
    for move in script:
        which = None if move.which is None else np.array(move.which)
        if not move.batches:
            fleet.skip(which)
        elif move.short:
            events.append(fleet.flush(move.streams[0], move.batches[0]))
        else:
            told = fleet.step(move.batches, which)
            assert len(told) == len(move.batches)
            assert list(told.streams) == [NAMES[place] for place in move.streams]
            events += list(told)
    return events


def apart(
    plan: Plan, script: Sequence[Move], coins: Randomness
) -> tuple[list[tuple[Event, ...]], list[StreamState]]:
    """The same script, stream by stream, by the rule alone."""
    states, events = [plan.begin(name) for name in NAMES], []
    for move in script:
        for row, stream in enumerate(move.streams):
            if move.batches:
                told, states[stream] = plan.step(states[stream], move.batches[row], coins)
                events.append(told)
            else:
                _, states[stream] = plan.skip(states[stream], plan.width)
    return events, states


def everything(fleet: Fleet) -> list[bytes]:
    return [to_bytes(fleet.state(stream)) for stream in range(len(fleet))]


def same(
    plan: Plan, script: Sequence[Move], coins: Callable[[], Randomness], **options: Any
) -> list[Event]:
    """Hold a fleet against single streams, to the last bit; return its events."""
    fleet = Fleet(plan, NAMES, randomness=coins(), **options)
    events = together(fleet, script)
    due, states = apart(plan, script, coins())
    assert events == due
    assert everything(fleet) == [to_bytes(state) for state in states]
    assert fleet.spent.tolist() == [[state.ledger.sip, state.ledger.ldp] for state in states]
    return [event for batch in events for event in batch]


# The same answers --------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "budget"), covered(list(SETTINGS), list(BUDGETS)))
def test_a_fleet_answers_as_its_streams_would_alone(name: str, budget: str) -> None:
    plan = plan_of(name, BUDGETS[budget], on_exhausted=Fallback.SUPPRESS)
    events = same(plan, moves(name, 6), keyed_coins)
    assert any(event.sip.epsilon > 0 for event in events)


@pytest.mark.parametrize("name", ["letters in pairs", "order two in threes"])
@pytest.mark.parametrize("threads", [1, 2])
def test_threads_and_seeded_coins_change_nothing(name: str, threads: int) -> None:
    rule = {"purpose": Purpose.SIMULATION, "on_exhausted": Fallback.REPEAT}
    plan = plan_of(name, BUDGETS["window"], **rule)
    same(plan, moves(name, 7), lambda: seeded(4), threads=threads)


@pytest.mark.parametrize(
    ("fallback", "budget", "name"),
    covered(
        ["suppress", "repeat", "substitute"],
        ["per step", "window, capped", "horizon"],
        PAIRS_AND_THREES,
    ),
)
def test_values_outside_the_alphabet_go_the_same_way(name: str, fallback: str, budget: str) -> None:
    rule = {"on_unknown": Fallback(fallback), "on_exhausted": Fallback.SUPPRESS}
    events = same(plan_of(name, BUDGETS[budget], **rule), moves(name, 8, "stranger"), keyed_coins)
    left = {event.outcome for event in events}
    if budget != "horizon":
        assert (left == {Outcome.RELEASED}) == (fallback == "substitute")
    assert (Outcome.REPEATED in left) == (fallback == "repeat")


@pytest.mark.parametrize("fallback", ["suppress", "repeat"])
@pytest.mark.parametrize("budget", ["horizon", "horizon, capped"])
@pytest.mark.parametrize("name", ["letters in pairs", "letters in threes"])
def test_budgets_that_are_gone_go_the_same_way(name: str, fallback: str, budget: str) -> None:
    plan = plan_of(name, BUDGETS[budget], on_exhausted=Fallback(fallback))
    events = same(plan, moves(name, 9), keyed_coins)
    silent = Outcome.REPEATED if fallback == "repeat" else Outcome.SUPPRESSED
    assert {event.outcome for event in events} == {Outcome.RELEASED, silent}


@pytest.mark.parametrize("name", ["letters in pairs", "order two in threes"])
def test_beliefs_that_the_policy_misses_go_the_same_way(name: str) -> None:
    policy = replace(policy_of(name), repair_limit=1e-12)
    plan = plan_of(name, PerStep(SIP(0.3)), policy=policy, on_unknown=Fallback.SUBSTITUTE)
    same(plan, moves(name, 5, "stranger"), keyed_coins)
    space: Any = plan.space
    solved = space._designs
    assert solved.cache_info().misses > 0


@pytest.mark.parametrize("method", ["randomized-response", "context-free"])
def test_a_policy_of_one_channel_goes_the_same_way(method: str) -> None:
    name = "letters in pairs"
    plan = plan_of(name, BUDGETS["window"], policy=policy_of(name, method), method=Method(method))
    same(plan, moves(name, 6), keyed_coins)


def test_a_loss_of_histograms_goes_the_same_way() -> None:
    setting = SETTINGS["letters in pairs"]
    counts = batch_loss.histogram(setting.chain.alphabet)
    policy = compile_policy(setting.chain, counts, 1.0, width=2, steps=64, max_channels=8)
    plan = Plan(setting.chain, PerStep(SIP(0.5)), counts, 2, policy=policy)
    same(plan, moves("letters in pairs", 6), keyed_coins)


def test_values_may_come_as_numbers_in_an_array() -> None:
    name = "order two in pairs"
    plan = plan_of(name, on_unknown=Fallback.SUPPRESS)
    one, two = (Fleet(plan, NAMES, randomness=keyed(SECRET)) for _ in range(2))
    for values in (
        [[0, 1], [2, 0], [1, 1], [0, 0], [2, 2]],
        [[2, 2], [1, -1], [7, 0], [0, 1], [1, 0]],
    ):
        given, taken = two.step(np.array(values)), one.step(values)
        assert list(taken) == list(given)
        assert taken.labels() == given.labels()
        assert taken.released.tolist() == given.released.tolist()
    assert everything(one) == everything(two)
    large: Any = np.array([[2**64 - 1, 0], *[[0, 1]] * 4], dtype=np.uint64)
    assert one.step(large).outcomes[0] is Outcome.SUPPRESSED


def test_a_stream_is_named_rightly_in_any_order() -> None:
    fleet = Fleet(plan_of("letters in pairs"), NAMES)
    fleet.step(["ab"], np.array([3]))
    fleet.flush(1, "c")
    order = np.array([3, 0, 4, 1, 2])
    told = fleet.step(["aa", "bb", "cc", "ab", "ba"], order)
    began = {3: 2, 1: 1}
    assert [[(e.stream, e.sequence, e.batch) for e in events] for events in told] == [
        [(NAMES[place], (at := began.get(place, 0)) + offset, at) for offset in range(2)]
        for place in order.tolist()
    ]


def test_leakage_stands_at_the_last_value_of_a_batch() -> None:
    plan = plan_of("letters in threes")
    fleet = Fleet(plan, NAMES, randomness=keyed(SECRET))
    for _ in range(3):
        told = fleet.step(["aba", "bbb", "aab", "abb", "bab"])
        for events, charge in zip(told, told.charges.tolist(), strict=True):
            assert [event.sip.epsilon for event in events] == [0.0, 0.0, charge[0]]
            assert [event.ldp.epsilon for event in events] == [0.0, 0.0, charge[1]]
            assert 0 < charge[0] <= 1.5


# Going on, and looking on ------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "pause"), covered(PAIRS_AND_THREES, [0, 1, 4, 8]))
def test_a_fleet_stored_in_mid_stream_goes_on_as_if_it_were_not(name: str, pause: int) -> None:
    rule = {"on_unknown": Fallback.REPEAT, "on_exhausted": Fallback.SUPPRESS}
    plan = plan_of(name, BUDGETS["window, capped"], **rule)
    script = moves(name, 7, "stranger")
    due, states = apart(plan, script, keyed(SECRET))
    first = Fleet(plan, NAMES, randomness=keyed(SECRET))
    events = together(first, script[:pause])
    kept = everything(first)
    read = [from_bytes(state, StreamState) for state in kept]
    again = Fleet(plan, states=read, randomness=keyed(SECRET))
    assert everything(again) == kept
    assert events + together(again, script[pause:]) == due
    assert everything(again) == [to_bytes(state) for state in states]


def test_old_and_new_streams_stand_in_one_fleet() -> None:
    plan = plan_of("letters in pairs")
    _, state = plan.step(plan.begin("ann"), "ab", keyed(SECRET))
    fleet = Fleet(plan, ["bob"], states=[state], randomness=keyed(SECRET))
    assert list(fleet.streams) == ["ann", "bob"]
    first, second = fleet.step(["bc", "ab"])
    assert first == plan.step(state, "bc", keyed(SECRET))[0]
    assert second == plan.step(plan.begin("bob"), "ab", keyed(SECRET))[0]


@pytest.mark.parametrize(
    ("name", "budget"),
    covered(PAIRS_AND_THREES, ["per step", "horizon, capped", "window", "geometric"]),
)
def test_an_onlooker_computes_the_same_events_and_states(name: str, budget: str) -> None:
    rule = {"on_exhausted": Fallback.REPEAT, "on_unknown": Fallback.SUBSTITUTE}
    plan = plan_of(name, BUDGETS[budget], **rule)
    fleet = Fleet(plan, NAMES, randomness=keyed(SECRET))
    states = {stream: plan.begin(stream) for stream in NAMES}
    for move in moves(name, 6, "stranger"):
        for events in together(fleet, [move]):
            stream, told = events[0].stream, [event.released for event in events]
            seen, states[stream] = plan.observe(states[stream], told, events[0].outcome)
            assert seen == events
        if not move.batches:
            for stream in (NAMES[place] for place in move.streams):
                _, states[stream] = plan.skip(states[stream], plan.width)
    assert everything(fleet) == [to_bytes(states[stream]) for stream in NAMES]


# Certificates under the exact belief -------------------------------------------------------------


@cache
def whole_chances(name: str, length: int) -> dict[Symbols, int]:
    """Probability of every sequence in a common unit, so that sums and products are quick."""
    chances = SETTINGS[name].process.chances(length)
    unit = math.lcm(*(chance.denominator for chance in chances.values()))
    return {path: int(chance * unit) for path, chance in chances.items()}


class Onlooker:
    """All true sequences with their exact weights, for what has left so far."""

    def __init__(self, name: str, length: int) -> None:
        self.size = SETTINGS[name].process.size
        self.weights = dict(whole_chances(name, length))
        self.seen = 0

    def chances(self, length: int) -> list[Fraction]:
        """Of the next values, the first slowest; up to a common factor."""
        found: dict[Symbols, int] = defaultdict(int)
        for path, weight in self.weights.items():
            found[path[self.seen : self.seen + length]] += weight
        return [Fraction(found[batch]) for batch in sorted(found)]

    def told(self, length: int, column: Sequence[int] | None) -> None:
        """Condition on an output: a whole number for each batch."""
        if column is not None:
            nexts = [path[self.seen : self.seen + length] for path in self.weights]
            rows = codes(nexts, self.size)
            for path, row in zip(list(self.weights), rows, strict=True):
                self.weights[path] *= int(column[row])
        self.seen += length


def walk(plan: Plan, name: str, lengths: Sequence[int], pick: np.random.Generator) -> float:
    """Follow one sequence of outputs; every charge bounds the exact leakage, every drift the error.

    A length below 0 lets so many moments pass. Returns the most that a charge was above it.
    """
    state, over = plan.begin("s"), 0.0
    onlooker = Onlooker(name, sum(map(abs, lengths)) + plan.width)
    for length in lengths:
        if length < 0:
            _, state = plan.skip(state, -length)
            onlooker.told(-length, None)
        else:
            prepared = plan.prepare(state, length)
            assert prepared is not None
            weights = prepared.design.channel.weights
            assert weights.shape[0] == onlooker.size**length
            sip, ldp = exact_leakages(weights.tolist(), onlooker.chances(length))
            column = int(pick.integers(weights.shape[1]))
            told = prepared.patterns[prepared.design.channel.outputs[column]]
            labels = [plan.model.alphabet.labels[place] for place in told.tolist()]
            allowed = plan.allowance(state.ledger, length)
            events, state = plan.observe(state, labels)
            assert sip <= events[-1].sip.epsilon <= allowed.sip
            assert ldp <= events[-1].ldp.epsilon
            assert allowed.ldp is None or events[-1].ldp.epsilon <= allowed.ldp
            over = max(over, events[-1].sip.epsilon - sip)
            onlooker.told(length, weights[:, column].tolist())
        exact = onlooker.chances(plan.width)
        found = furthest(state.belief.joint.ravel().tolist(), exact)
        assert found <= state.belief.drift * FIRST_ORDER
    return over


WALKS = {
    "letters in pairs": ([2, 1, 2], [1, 2, 1]),
    "letters in threes": ([3, 1, 2], [2, 3, 1]),
    "order two in threes": ([3, 1, 2], [1, 3, 2]),
    "order two in pairs": ([1, 2], [2, 1]),
    "order three in threes": ([3, 2, 1], [1, 2, 3]),
    "one by one": ([1, 1, 1, 1],),
}


@pytest.mark.parametrize(
    ("name", "budget"), covered(list(SETTINGS), ["per step", "per step, capped", "window, capped"])
)
def test_every_batch_costs_at_least_its_exact_leakage(name: str, budget: str) -> None:
    plan, pick = plan_of(name, BUDGETS[budget]), np.random.default_rng(3)
    for lengths in WALKS[name]:
        for _ in range(2):
            assert walk(plan, name, lengths, pick) < 1e-6


@pytest.mark.parametrize("name", ["letters in threes", "order two in threes"])
def test_mixed_channels_cost_at_least_their_exact_leakage(name: str) -> None:
    policy = replace(policy_of(name), repair_limit=NO_LIMIT)
    plan = plan_of(name, PerStep(SIP(0.3)), policy=policy)
    for seed in range(3):
        walk(plan, name, [3, 2, 1], np.random.default_rng(seed))


@pytest.mark.parametrize("name", ["letters in threes", "order two in threes"])
def test_pauses_before_and_after_short_batches_are_in_the_belief(name: str) -> None:
    pick = np.random.default_rng(5)
    for lengths in ([-1, 2, 3], [2, -2, -1], [-3, 1, -1]):
        walk(plan_of(name), name, lengths, pick)


@pytest.mark.parametrize("name", ["letters in pairs", "order two in threes"])
def test_the_policy_is_what_answers_whole_batches(name: str) -> None:
    """Not the program solved on the spot: the laws above are about kept channels."""
    plan = plan_of(name, policy=replace(policy_of(name), repair_limit=NO_LIMIT))
    state = plan.begin("s")
    batch = [plan.model.alphabet.labels[0]] * plan.width
    for _ in range(6):
        _, state = plan.step(state, batch, keyed(SECRET))
    space: Any = plan.space
    assert space._designs.cache_info().misses == 0


# All or nothing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("row", [0, 2, 4])
@pytest.mark.parametrize("place", [0, 1])
def test_a_strange_value_in_one_stream_changes_no_stream(row: int, place: int) -> None:
    plan = plan_of("letters in pairs", BUDGETS["window"])
    fleet = Fleet(plan, NAMES, randomness=keyed(SECRET))
    first = [list(batch) for batch in ("ab", "bc", "ca", "aa", "bb")]
    fleet.step(first)
    before, values = everything(fleet), [list(batch) for batch in ("ba", "bb", "cc", "ac", "cb")]
    wrong = [list(batch) for batch in values]
    wrong[row][place] = "z"
    with pytest.raises(UnknownSymbol) as caught:
        fleet.step(wrong)
    assert "z" not in str(caught.value)
    assert everything(fleet) == before
    fleet.step(values)
    _, states = apart(plan, [Move(None, first), Move(None, values)], keyed(SECRET))
    assert everything(fleet) == [to_bytes(state) for state in states]


def test_wrong_places_and_wrong_lengths_change_no_stream() -> None:
    fleet = Fleet(plan_of("letters in pairs"), NAMES)
    before = everything(fleet)
    for which in ([0, 0], [-1], [5], [[0]]):
        with pytest.raises(InvalidParameter, match="which must be places"):
            fleet.step(["ab"] * len(which), np.array(which))
    with pytest.raises(InvalidParameter, match="values must be one per stream, 5; got 4"):
        fleet.step(["ab"] * 4)
    shapes: list[Any] = [["ab", "ab", "a", "ab", "ab"], ["abc"] * 5, np.zeros((5, 3), dtype=int)]
    shapes.append(np.zeros(5, dtype=int))
    for values in shapes:
        with pytest.raises(InvalidParameter, match="have 2 values for each stream; flush shorter"):
            fleet.step(values)
    for wrong in ("", "abc"):
        with pytest.raises(InvalidParameter, match="values must be"):
            fleet.flush(0, wrong)
    with pytest.raises(UnknownSymbol):
        fleet.flush(0, "z")
    assert everything(fleet) == before
    assert not fleet.torn


class Alarm(BaseException):
    """What a timer may raise anywhere."""


@pytest.mark.parametrize("during", ["step", "skip", "flush"])
def test_a_fleet_that_was_broken_into_refuses_to_go_on(during: str) -> None:
    plan = plan_of("letters in pairs")
    fleet = Fleet(plan, NAMES[:2])
    fleet.step(["ab", "bc"])
    kept = [fleet.state(place) for place in range(2)]
    owner, name = (fleet, "_put") if during == "flush" else (fleet._arrays, "advance")
    broken: dict[str, Callable[[], object]] = {
        "step": lambda: fleet.step(["aa", "bb"]),
        "skip": lambda: fleet.skip(),
        "flush": lambda: fleet.flush(0, "a"),
    }
    with mock.patch.object(owner, name, side_effect=Alarm), pytest.raises(Alarm):
        broken[during]()
    assert fleet.torn
    broken["state"] = lambda: fleet.state(0)
    for go_on in broken.values():
        with pytest.raises(InterruptedStep, match="begin a new one from the states"):
            go_on()
    assert len(Fleet(plan, states=kept).step(["ab", "ab"])) == 2


def test_an_exception_in_a_slow_row_changes_no_stream() -> None:
    plan = plan_of("letters in pairs", on_unknown=Fallback.SUPPRESS)
    fleet = Fleet(plan, NAMES[:2])
    before = everything(fleet)
    with (
        mock.patch.object(Plan, "step", side_effect=Alarm),
        pytest.raises(Alarm),
    ):
        fleet.step(["ab", "az"])
    assert not fleet.torn
    assert everything(fleet) == before


@pytest.mark.parametrize("lengths", [(3, 1, 1, 2), (2, 3, 1, 2, 3), (3, 3, 2, 1, 3), (1, 3, 1, 3)])
def test_a_window_lasts_for_ever_however_batches_are_cut(lengths: tuple[int, ...]) -> None:
    """A stream that is refused stands still, so its window never moves on."""
    plan = plan_of("letters in threes", Window(SIP(2.0), 4), policy=None)
    state = plan.begin("s")
    for length in lengths:
        _, state = plan.step(state, "a" * length, keyed(SECRET))


# What it is made of ------------------------------------------------------------------------------


def test_a_state_of_another_plan_is_refused() -> None:
    plan = plan_of("letters in pairs")
    for other in (
        plan_of("letters in pairs", PerStep(SIP(0.4))),
        plan_of("letters in pairs", policy=None),
    ):
        with pytest.raises(InvalidParameter, match="state must come from this model"):
            Fleet(plan, states=[other.begin("ann")])


@pytest.mark.parametrize("joint", [[0.0] * 9, [np.nan, *[0.125] * 8], [1.0, *[0.0] * 8], [1.0]])
def test_a_belief_that_is_none_is_refused_and_releases_nothing(joint: list[float]) -> None:
    plan = plan_of("letters in pairs")
    begun = plan.begin("ann")
    state = replace(begun, belief=replace(begun.belief, joint=np.array(joint)))
    with np.errstate(all="ignore"), pytest.raises(InvalidParameter):
        Fleet(plan, states=[state]).step(["ab"])


@pytest.mark.parametrize(("size", "width"), [(2, 10), (3, 6), (8, 4), (513, 1)])
def test_too_many_batches_are_refused_before_anything_is_simulated(size: int, width: int) -> None:
    chain = MarkovChain.from_matrix(np.full((size, size), 1 / size))
    each = additive(loss.hamming(chain.alphabet))
    with pytest.raises(InvalidParameter, match="width must have at most 512 batches"):
        compile_policy(chain, each, 1.0, width=width)


@pytest.mark.parametrize("width", [0, -1, 2.5])
def test_a_width_is_a_whole_number_of_at_least_one(width: Any) -> None:
    chain = SETTINGS["letters in pairs"].chain
    for each in (loss.hamming(chain.alphabet), additive(loss.hamming(chain.alphabet))):
        with pytest.raises(InvalidParameter, match="width must be a whole number of at least 1"):
            compile_policy(chain, each, 1.0, width=width, steps=32)


def test_a_batch_must_cover_what_the_chain_looks_back_on() -> None:
    chain = SETTINGS["order three in threes"].chain
    with pytest.raises(InvalidParameter, match="width must be at least the order of the chain, 3"):
        compile_policy(chain, loss.hamming(chain.alphabet), 1.0, width=2, steps=32)


def test_a_policy_of_another_width_is_refused() -> None:
    setting, policy = SETTINGS["letters in pairs"], policy_of("letters in pairs")
    single = loss.hamming(setting.chain.alphabet)
    budget, rule = PerStep(SIP(0.5)), "be compiled for this chain, loss and method, and this length"
    for width in (1, 3):
        with pytest.raises(InvalidParameter, match=rule):
            Plan(setting.chain, budget, additive(single), width, policy=policy)
    with pytest.raises(InvalidParameter, match=rule):
        Plan(setting.chain, budget, single, policy=policy)
    counts = batch_loss.histogram(setting.chain.alphabet)
    with pytest.raises(InvalidParameter, match=rule):
        Plan(setting.chain, budget, counts, 2, policy=policy)
    one = compile_policy(setting.chain, single, 0.5, steps=32)
    with pytest.raises(InvalidParameter, match=rule):
        Plan(setting.chain, budget, additive(single), 2, policy=one)


def test_a_policy_and_a_memory_exclude_each_other() -> None:
    for memory in (2, 0, -1):
        with pytest.raises(InvalidParameter, match="memory must be "):
            plan_of("letters in pairs", memory=memory)


def test_a_policy_for_batches_survives_storing() -> None:
    policy = policy_of("letters in pairs")
    read = from_bytes(to_bytes(policy), Policy)
    assert read.fingerprint == policy.fingerprint
    plan = plan_of("letters in pairs", policy=read)
    assert plan.fingerprint == plan_of("letters in pairs").fingerprint
    same(plan, moves("letters in pairs", 3), keyed_coins)


@pytest.mark.statistical
@pytest.mark.parametrize("truth", ["ab", "cc"])
def test_outputs_follow_the_channel_and_no_neighbouring_one(truth: str) -> None:
    from scipy import stats

    count = 20_000
    plan = plan_of("letters in pairs", purpose=Purpose.SIMULATION)
    _, start = plan.observe(plan.begin("s"), "aa")
    names = [f"s{i}" for i in range(count)]
    fleet = Fleet(plan, states=[replace(start, stream=name) for name in names], randomness=Bulk(7))
    told = fleet.step(np.tile([list(truth)], (count, 1)))
    prepared = plan.prepare(start)
    assert prepared is not None
    row = prepared.design.channel.probabilities[codes([tuple("abc".index(x) for x in truth)], 3)[0]]
    released = told.released @ np.array([3, 1])
    counts = np.array([(released == o).sum() for o in prepared.design.channel.outputs])
    assert counts.sum() == count and len(row) > 1

    def fits(shares: NDArray[np.float64]) -> float:
        return float(stats.chisquare(counts, shares / shares.sum() * count).pvalue)

    assert fits(row) > 1e-6
    for wrong in (0.7, 1.3):
        off = row.copy()
        off[row.argmax()] *= wrong
        assert fits(off) < 1e-6


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
