"""Batches of many streams under a policy: the answers of single steps, and exact certificates."""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any
from unittest import mock

import numpy as np
import pytest

from sfumato import (
    SIP,
    Fallback,
    Fleet,
    MarkovChain,
    PerStep,
    Plan,
    Policy,
    Purpose,
    Window,
    compile_policy,
    loss,
)
from sfumato.core.errors import InterruptedStep, InvalidParameter, UnknownSymbol
from sfumato.store import from_bytes, to_bytes
from sfumato.stream import batch_loss
from sfumato.stream.partition.batch_loss import additive
from tests.compiled import NO_LIMIT
from tests.grids import covered
from tests.oracles.batches import Symbols, codes, exact_leakages, furthest
from tests.stream import fleet_scripts as scripts

FIRST_ORDER = 1 + 1e-9


def test_a_loss_of_histograms_goes_the_same_way() -> None:
    setting = scripts.SETTINGS["letters in pairs"]
    counts = batch_loss.histogram(setting.chain.alphabet)
    policy = compile_policy(setting.chain, counts, 1.0, width=2, steps=64, max_channels=8)
    plan = Plan(setting.chain, PerStep(SIP(0.5)), counts, 2, policy=policy)
    scripts.same(plan, scripts.moves(plan, 6), scripts.keyed_coins)


def test_a_stream_is_named_rightly_in_any_order() -> None:
    fleet = Fleet(scripts.plan_of("letters in pairs"), scripts.NAMES)
    fleet.step(["ab"], np.array([3]))
    fleet.flush(1, "c")
    order = np.array([3, 0, 4, 1, 2])
    told = fleet.step(["aa", "bb", "cc", "ab", "ba"], order)
    began = {3: 2, 1: 1}
    assert [[(e.stream, e.sequence, e.batch) for e in events] for events in told] == [
        [(scripts.NAMES[place], (at := began.get(place, 0)) + offset, at) for offset in range(2)]
        for place in order.tolist()
    ]


def test_leakage_stands_at_the_last_value_of_a_batch() -> None:
    fleet = Fleet(
        scripts.plan_of("letters in threes"), scripts.NAMES, randomness=scripts.keyed_coins()
    )
    for _ in range(3):
        told = fleet.step(["aba", "bbb", "aab", "abb", "bab"])
        for events, charge in zip(told, told.charges.tolist(), strict=True):
            assert [event.sip.epsilon for event in events] == [0.0, 0.0, charge[0]]
            assert [event.ldp.epsilon for event in events] == [0.0, 0.0, charge[1]]
            assert 0 < charge[0] <= 1.5


def test_old_and_new_streams_stand_in_one_fleet() -> None:
    plan = scripts.plan_of("letters in pairs")
    _, state = plan.step(plan.begin("ann"), "ab", scripts.keyed_coins())
    fleet = Fleet(plan, ["bob"], states=[state], randomness=scripts.keyed_coins())
    assert list(fleet.streams) == ["ann", "bob"]
    first, second = fleet.step(["bc", "ab"])
    assert first == plan.step(state, "bc", scripts.keyed_coins())[0]
    assert second == plan.step(plan.begin("bob"), "ab", scripts.keyed_coins())[0]


# Certificates under the exact belief -------------------------------------------------------------


@cache
def whole_chances(name: str, length: int) -> dict[Symbols, int]:
    """Probability of every sequence in a common unit, so that sums and products are quick."""
    chances = scripts.SETTINGS[name].process.chances(length)
    unit = math.lcm(*(chance.denominator for chance in chances.values()))
    return {path: int(chance * unit) for path, chance in chances.items()}


class Onlooker:
    """All true sequences with their exact weights, for what has left so far."""

    def __init__(self, name: str, length: int) -> None:
        self.size = scripts.SETTINGS[name].process.size
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
    ("name", "budget"),
    covered(list(scripts.SETTINGS), ["per step", "per step, capped", "window, capped"]),
)
def test_every_batch_costs_at_least_its_exact_leakage(name: str, budget: str) -> None:
    plan, pick = scripts.plan_of(name, budget), np.random.default_rng(3)
    for lengths in WALKS[name]:
        for _ in range(2):
            assert walk(plan, name, lengths, pick) < 1e-6


@pytest.mark.parametrize("name", ["letters in threes", "order two in threes"])
def test_mixed_channels_cost_at_least_their_exact_leakage(name: str) -> None:
    policy = replace(scripts.policy_of(name), repair_limit=NO_LIMIT)
    plan = scripts.plan_of(name, PerStep(SIP(0.3)), policy=policy)
    for seed in range(3):
        walk(plan, name, [3, 2, 1], np.random.default_rng(seed))


@pytest.mark.parametrize("name", ["letters in threes", "order two in threes"])
def test_pauses_before_and_after_short_batches_are_in_the_belief(name: str) -> None:
    pick = np.random.default_rng(5)
    for lengths in ([-1, 2, 3], [2, -2, -1], [-3, 1, -1]):
        walk(scripts.plan_of(name), name, lengths, pick)


@pytest.mark.parametrize("name", ["letters in pairs", "order two in threes"])
def test_the_policy_is_what_answers_whole_batches(name: str) -> None:
    """Not the program solved on the spot: the laws above are about kept channels."""
    plan = scripts.plan_of(name, policy=replace(scripts.policy_of(name), repair_limit=NO_LIMIT))
    state = plan.begin("s")
    batch = [plan.model.alphabet.labels[0]] * plan.width
    for _ in range(6):
        _, state = plan.step(state, batch, scripts.keyed_coins())
    space: Any = plan.space
    assert space._designs.cache_info().misses == 0


# All or nothing ----------------------------------------------------------------------------------


def test_wrong_places_and_wrong_lengths_change_no_stream() -> None:
    fleet = Fleet(scripts.plan_of("letters in pairs"), scripts.NAMES)
    before = scripts.everything(fleet)
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
    assert scripts.everything(fleet) == before
    assert not fleet.torn


class Alarm(BaseException):
    """What a timer may raise anywhere."""


@pytest.mark.parametrize("during", ["step", "skip", "flush"])
def test_a_fleet_that_was_broken_into_refuses_to_go_on(during: str) -> None:
    plan = scripts.plan_of("letters in pairs")
    fleet = Fleet(plan, scripts.NAMES[:2])
    fleet.step(["ab", "bc"])
    kept = [fleet.state(place) for place in range(2)]
    # A step goes back to where it began, unless that is broken into as well.
    owners = {"flush": (fleet, "_put"), "skip": (fleet._arrays, "advance")}
    owner, name = owners.get(during, (fleet._arrays.threads, "settle"))
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
    plan = scripts.plan_of("letters in pairs", on_unknown=Fallback.SUBSTITUTE)
    fleet = Fleet(plan, scripts.NAMES[:2])
    before = scripts.everything(fleet)
    with (
        mock.patch.object(Plan, "step", side_effect=Alarm),
        pytest.raises(Alarm),
    ):
        fleet.step(["ab", "az"])
    assert not fleet.torn
    assert scripts.everything(fleet) == before


@pytest.mark.parametrize("lengths", [(3, 1, 1, 2), (2, 3, 1, 2, 3), (3, 3, 2, 1, 3), (1, 3, 1, 3)])
def test_a_window_lasts_for_ever_however_batches_are_cut(lengths: tuple[int, ...]) -> None:
    """A stream that is refused stands still, so its window never moves on."""
    plan = scripts.plan_of("letters in threes", Window(SIP(2.0), 4), policy=None)
    state = plan.begin("s")
    for length in lengths:
        _, state = plan.step(state, "a" * length, scripts.keyed_coins())


# What it is made of ------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "width"), [(2, 10), (3, 6), (8, 4), (513, 1)])
def test_too_many_batches_are_refused_before_anything_is_simulated(size: int, width: int) -> None:
    chain = MarkovChain.from_matrix(np.full((size, size), 1 / size))
    each = additive(loss.hamming(chain.alphabet))
    with pytest.raises(InvalidParameter, match="width must have at most 512 batches"):
        compile_policy(chain, each, 1.0, width=width)


@pytest.mark.parametrize("width", [0, -1, 2.5])
def test_a_width_is_a_whole_number_of_at_least_one(width: Any) -> None:
    chain = scripts.SETTINGS["letters in pairs"].chain
    for each in (loss.hamming(chain.alphabet), additive(loss.hamming(chain.alphabet))):
        with pytest.raises(InvalidParameter, match="width must be a whole number of at least 1"):
            compile_policy(chain, each, 1.0, width=width, steps=32)


def test_a_batch_must_cover_what_the_chain_looks_back_on() -> None:
    chain = scripts.SETTINGS["order three in threes"].chain
    with pytest.raises(InvalidParameter, match="width must be at least the order of the chain, 3"):
        compile_policy(chain, loss.hamming(chain.alphabet), 1.0, width=2, steps=32)


def test_a_policy_of_another_width_is_refused() -> None:
    setting, policy = scripts.SETTINGS["letters in pairs"], scripts.policy_of("letters in pairs")
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
            scripts.plan_of("letters in pairs", memory=memory)


def test_a_policy_for_batches_survives_storing() -> None:
    policy = scripts.policy_of("letters in pairs")
    read = from_bytes(to_bytes(policy), Policy)
    assert read.fingerprint == policy.fingerprint
    plan = scripts.plan_of("letters in pairs", policy=read)
    assert plan.fingerprint == scripts.plan_of("letters in pairs").fingerprint
    scripts.same(plan, scripts.moves(plan, 3), scripts.keyed_coins)


@pytest.mark.statistical
@pytest.mark.parametrize("truth", ["ab", "cc"])
def test_outputs_follow_the_channel_and_no_neighbouring_one(truth: str) -> None:
    plan = scripts.plan_of("letters in pairs", purpose=Purpose.SIMULATION)
    _, start = plan.observe(plan.begin("s"), "aa")
    states = [replace(start, stream=f"s{i}") for i in range(scripts.COUNT)]
    fleet = Fleet(plan, states=states, randomness=scripts.Bulk(7))
    told = fleet.step(np.tile([list(truth)], (scripts.COUNT, 1)))
    prepared = plan.prepare(start)
    assert prepared is not None
    row = prepared.design.channel.probabilities[codes([tuple("abc".index(x) for x in truth)], 3)[0]]
    released = told.released @ np.array([3, 1])
    counts = np.array([(released == o).sum() for o in prepared.design.channel.outputs])
    scripts.assert_drawn_from(counts, row, int(row.argmax()), (0.7, 1.3))
