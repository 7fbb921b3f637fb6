"""Many values of many streams in one call: as each stream would go alone, all of it or none."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from numpy.typing import NDArray

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
    compile_policy,
    loss,
)
from sfumato.core.errors import BudgetExceeded, InterruptedStep, InvalidParameter, UnknownSymbol
from sfumato.store import to_bytes
from sfumato.stream import Outcome, StreamState
from tests.compiled import CHAINS, exact_leakages, exact_shares
from tests.grids import covered
from tests.stream.fleet_scripts import BUDGETS, NAMES, everything, keyed_coins, plan_of, policy_of

OUTCOMES = tuple(Outcome)
Ints = NDArray[np.int64]


def script_of(plan: Plan, count: int, seed: int = 0, least: int = 0) -> tuple[Ints, Ints]:
    """Cells and streams at random; streams have different numbers of values, and some none."""
    draw = np.random.default_rng(seed)
    cells = draw.integers(least, len(plan.model.alphabet), count)
    return cells, draw.choice(len(NAMES) - 1, count, p=[0.5, 0.3, 0.15, 0.05])


def alone(
    plan: Plan, cells: Ints, which: Ints, states: Sequence[StreamState] | None = None
) -> tuple[list[Event], list[StreamState]]:
    """The same, value by value, by the rule."""
    now = [plan.begin(name) for name in NAMES] if states is None else list(states)
    coins, labels, events = keyed_coins(), plan.model.alphabet.labels, []
    for cell, stream in zip(cells.tolist(), which.tolist(), strict=True):
        if cell == -2:
            (event,), now[stream] = plan.skip(now[stream])
        else:
            value = labels[cell] if cell >= 0 else "nobody knows"
            (event,), now[stream] = plan.step(now[stream], [value], coins)
        events.append(event)
    return events, now


def told(plan: Plan, run: Any, which: Ints) -> list[Event]:
    """Events of a run."""
    labels = plan.model.alphabet.labels
    sent = [-1] * len(run) if run.signals is None else run.signals.tolist()
    rows = zip(which, run.sequences, run.outcomes, run.released, run.charges, sent, strict=True)
    due = []
    for stream, moment, outcome, place, (sip, ldp), signal in rows:
        left = None if place < 0 else labels[place]
        amounts = (SIP(float(sip)), LDP(float(ldp)))
        sent_by = None if signal < 0 else int(signal)
        began = (NAMES[stream], int(moment), OUTCOMES[outcome], left)
        due.append(Event(*began, *amounts, None, sent_by))
    return due


def compared(plan: Plan, cells: Ints, which: Ints, **options: Any) -> Fleet:
    """A run, and the same rows in two runs, against the rule alone, bit for bit."""
    events, states = alone(plan, cells, which)
    fleet = Fleet(plan, NAMES, randomness=keyed_coins(), **options)
    assert told(plan, fleet.run(cells, which), which) == events
    assert everything(fleet) == [to_bytes(state) for state in states]
    assert fleet.positions(np.arange(len(NAMES))).rows() == [
        (state.stream, state.sequence, state.ledger.sip, state.ledger.ldp, to_bytes(state))
        for state in states
    ]
    cut, again = len(cells) // 3, Fleet(plan, NAMES, randomness=keyed_coins(), **options)
    parts = [again.run(cells[part], which[part]) for part in (slice(cut), slice(cut, None))]
    assert told(plan, parts[0], which[:cut]) + told(plan, parts[1], which[cut:]) == events
    assert everything(again) == everything(fleet)
    return fleet


# The same answers --------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "budget"), covered(list(CHAINS), list(BUDGETS)))
def test_a_run_answers_as_its_streams_would_alone(name: str, budget: str) -> None:
    rule = {"on_exhausted": Fallback.SUPPRESS, "on_unknown": Fallback.REPEAT}
    plan = plan_of(name, budget, **rule)
    compared(plan, *script_of(plan, 40, seed=len(name + budget), least=-2))


@pytest.mark.parametrize("fallback", ["suppress", "repeat", "substitute"])
def test_what_the_loops_do_not_cover_goes_the_same_way(fallback: str) -> None:
    policy = replace(policy_of("dense, order 1"), repair_limit=1e-12)
    rule = {"on_unknown": Fallback(fallback), "on_exhausted": Fallback.REPEAT}
    plan = plan_of("dense, order 1", Horizon(SIP(6.0), 9), policy=policy, **rule)
    compared(plan, *script_of(plan, 40, seed=2, least=-2))


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_change_nothing(threads: int) -> None:
    plan = plan_of("sparse, order 2", "window", on_unknown=Fallback.SUPPRESS)
    compared(plan, *script_of(plan, 60, seed=3, least=-1), threads=threads)


def test_a_far_sighted_run_answers_as_its_streams_would_alone() -> None:
    chain = CHAINS["dense, order 1"]
    hamming = loss.hamming(chain.alphabet)
    policy = compile_policy(chain, hamming, 1.0, method="far-sighted", steps=64)
    rule: dict[str, Any] = {"policy": policy, "method": Method.FAR_SIGHTED}
    rule |= {"on_unknown": Fallback.SUPPRESS, "on_exhausted": Fallback.REPEAT}
    for budget in (PerStep(SIP(1.0)), BUDGETS["bursts"]):
        plan = Plan(chain, budget, hamming, **rule)
        compared(plan, *script_of(plan, 40, seed=4, least=-2))


def test_every_value_costs_at_least_its_exact_leakage() -> None:
    plan = plan_of("sparse, order 1", "geometric, capped")
    cells, which = script_of(plan, 30)
    run = Fleet(plan, NAMES, randomness=keyed_coins()).run(cells, which)
    states = [plan.begin(name) for name in NAMES]
    for row, stream in enumerate(which.tolist()):
        prepared = plan.prepare(states[stream])
        assert prepared is not None
        belief = exact_shares(states[stream].belief.joint, states[stream].belief.axis)
        sip, ldp = exact_leakages(prepared.design.channel.weights.tolist(), belief)
        due = plan.allowance(states[stream].ledger, 1)
        assert due.ldp is not None
        assert sip <= run.charges[row, 0] <= due.sip
        assert ldp <= run.charges[row, 1] <= due.ldp
        label = plan.model.alphabet.labels[run.released[row]]
        _, states[stream] = plan.observe(states[stream], [label])


# Looking on --------------------------------------------------------------------------------------


def seen_of(fleet: Fleet, run: Any, which: Ints) -> Any:
    return fleet.observe(run.released, run.signals, run.outcomes, which)


@pytest.mark.parametrize(("name", "budget"), covered(list(CHAINS), list(BUDGETS)))
def test_an_onlooker_computes_the_same_charges_and_states(name: str, budget: str) -> None:
    rule = {"on_exhausted": Fallback.REPEAT, "on_unknown": Fallback.SUPPRESS}
    plan = plan_of(name, budget, **rule)
    cells, which = script_of(plan, 40, seed=5, least=-2)
    fleet = Fleet(plan, NAMES, randomness=keyed_coins())
    run = fleet.run(cells, which)
    onlooker = Fleet(plan, NAMES)
    seen = seen_of(onlooker, run, which)
    assert seen.possible.all()
    assert seen.charges.tolist() == run.charges.tolist()
    assert seen.sequences.tolist() == run.sequences.tolist()
    assert everything(onlooker) == everything(fleet)
    silent = run.outcomes == OUTCOMES.index(Outcome.SUPPRESSED)
    assert not seen.withheld[~silent & (run.outcomes == 0)].any()
    if budget == "per step":
        assert seen.withheld[silent].all() and silent.any()


def test_what_cannot_have_left_stops_its_stream_and_no_other() -> None:
    plan = plan_of("dense, order 1", Horizon(SIP(4.0), 5), on_exhausted=Fallback.SUPPRESS)
    which = np.array([0, 1, 0, 1, 0, 1, 0, 1, 0, 1])
    fleet = Fleet(plan, NAMES, randomness=keyed_coins())
    run = fleet.run(np.ones(10, dtype=np.int64), which)
    onlooker = Fleet(plan, NAMES)
    seen = onlooker.observe(run.released, None, np.where(np.arange(10) == 4, 2, 0), which)
    assert seen.possible.tolist() == [True, True, True, True] + [False, True] * 3
    assert onlooker.state(0).sequence == 2
    assert to_bytes(onlooker.state(1)) == to_bytes(fleet.state(1))
    # More values than the budget has steps for.
    late = onlooker.observe(run.released[:1], None, run.outcomes[:1], np.array([1]))
    assert not late.possible.any()


@pytest.mark.parametrize(
    ("budget", "outcome"), [("per step", Outcome.REPEATED), ("bursts", Outcome.RELEASED)]
)
def test_another_value_than_the_last_or_the_best_guess_cannot_have_left(
    budget: str, outcome: Outcome
) -> None:
    """What is repeated is the last value; between two bursts the best constant leaves."""
    plan = plan_of("dense, order 1", budget, on_unknown=Fallback.REPEAT)
    unknown = outcome is Outcome.REPEATED
    cells, which = np.array([1, -1 if unknown else 1]), np.zeros(2, dtype=np.int64)
    run = Fleet(plan, NAMES, randomness=keyed_coins()).run(cells, which)
    assert OUTCOMES[run.outcomes[1]] is outcome
    assert run.charges[0, 0] > run.charges[1, 0] == 0
    for shift in range(len(plan.model.alphabet)):
        said = (run.released + np.array([0, shift])) % len(plan.model.alphabet)
        seen = Fleet(plan, NAMES).observe(said, None, run.outcomes, which)
        assert seen.possible.tolist() == [True, shift == 0]


def test_signals_stand_at_far_sighted_releases_alone() -> None:
    plan = plan_of("dense, order 1")
    onlooker = Fleet(plan, NAMES)
    seen = onlooker.observe(np.array([0]), np.array([0]), np.array([0]), np.array([0]))
    assert not seen.possible.any()


# All or nothing ----------------------------------------------------------------------------------


def test_a_refusal_in_one_row_changes_no_stream() -> None:
    plan = plan_of("dense, order 2", Horizon(SIP(2.0), 3))
    fleet = Fleet(plan, NAMES, randomness=keyed_coins())
    fleet.run(np.array([0, 1]), np.array([0, 1]))
    before = everything(fleet)
    with pytest.raises(BudgetExceeded):
        fleet.run(np.zeros(6, dtype=np.int64), np.array([0, 1, 1, 0, 0, 2]))
    assert everything(fleet) == before
    with pytest.raises(UnknownSymbol):
        fleet.run(np.array([0, 0, -1]), np.array([2, 1, 2]))
    assert everything(fleet) == before
    fleet.run(np.array([1, 2]), np.array([1, 0]))
    _, states = alone(plan, np.array([0, 1, 1, 2]), np.array([0, 1, 1, 0]))
    assert everything(fleet) == [to_bytes(state) for state in states]


class Alarm(BaseException):
    """What a timer may raise anywhere."""


def test_a_run_that_was_broken_into_never_happened() -> None:
    plan = plan_of("dense, order 1", on_unknown=Fallback.SUBSTITUTE)
    fleet = Fleet(plan, NAMES, randomness=keyed_coins())
    cells, which = np.array([0, 1, -1, 2]), np.array([0, 1, 0, 0])
    fleet.run(cells[:2], which[:2])
    before = everything(fleet)
    with mock.patch.object(Plan, "step", side_effect=Alarm), pytest.raises(Alarm):
        fleet.run(cells, which)
    assert not fleet.torn
    assert everything(fleet) == before


def test_a_fleet_that_could_not_be_set_back_refuses_to_go_on() -> None:
    plan = plan_of("dense, order 1", on_unknown=Fallback.SUBSTITUTE)
    fleet = Fleet(plan, NAMES, randomness=keyed_coins())
    with (
        mock.patch.object(Plan, "step", side_effect=Alarm),
        mock.patch.object(fleet._arrays.threads, "settle", side_effect=[None, None, Alarm]),
        pytest.raises(Alarm),
    ):
        fleet.run(np.array([0, 1, -1, 2]), np.array([0, 1, 0, 0]))
    assert fleet.torn
    cells, which = np.array([0]), np.array([0])
    for go_on in (
        lambda: fleet.run(cells, which),
        lambda: fleet.observe(cells, None, cells, which),
        lambda: fleet.enlist(["new"]),
        lambda: fleet.backup(which),
        lambda: fleet.states(which),
    ):
        with pytest.raises(InterruptedStep):
            go_on()


def test_wrong_places_are_refused_and_change_nothing() -> None:
    fleet = Fleet(plan_of("dense, order 1"), NAMES)
    before = everything(fleet)
    for cells, which in (([0], [5]), ([0], [-1]), ([0, 1], [0]), ([3], [0]), ([-3], [0])):
        with pytest.raises(InvalidParameter):
            fleet.run(np.array(cells), np.array(which))
    with pytest.raises(InvalidParameter):
        fleet.run(np.array([0.5]), np.array([0]))
    with pytest.raises(InvalidParameter):
        fleet.observe(np.array([-2]), None, np.array([0]), np.array([0]))
    assert len(fleet.run(np.array([], dtype=np.int64), np.array([], dtype=np.int64))) == 0
    assert everything(fleet) == before
    with pytest.raises(InvalidParameter, match="release values one by one"):
        Fleet(plan_of("letters in pairs"), NAMES).run(np.array([0]), np.array([0]))


# Streams that come, and that are set back --------------------------------------------------------


@pytest.mark.parametrize("budget", ["per step", "window, capped"])
def test_streams_that_come_later_are_as_if_they_had_been_there(budget: str) -> None:
    plan = plan_of("sparse, order 2", budget)
    cells, which = script_of(plan, 30, seed=6)
    whole = Fleet(plan, NAMES, randomness=keyed_coins())
    whole.run(cells, which)
    grown = Fleet(plan, NAMES[:1], randomness=keyed_coins())
    first = which == 0
    grown.run(cells[first], which[first])
    assert grown.enlist(NAMES[1:3]).tolist() == [1, 2]
    begun = [plan.skip(plan.begin(name))[1] for name in NAMES[4:]]
    assert grown.enlist(NAMES[3:4], begun).tolist() == [3, 4]
    assert grown.streams == (*NAMES[:3], NAMES[4], NAMES[3])
    assert grown.places(["kim", "nobody", "ann"]).tolist() == [3, -1, 0]
    moved = np.array([0, 1, 2, 4, 3])[which]
    grown.run(cells[~first], moved[~first])
    states = {state.stream: to_bytes(state) for state in grown.states(np.arange(5))}
    assert [states[name] for name in NAMES[:4]] == everything(whole)[:4]
    assert states[NAMES[4]] == to_bytes(begun[0])
    assert grown.spent.shape == (5, 2)


def test_a_name_twice_or_a_strange_state_adds_nobody() -> None:
    plan = plan_of("dense, order 1")
    fleet = Fleet(plan, NAMES)
    for names, states in (
        (["ann"], []),
        (["new", "new"], []),
        (["new"], [plan.begin("new")]),
        (["new"], [plan_of("dense, order 1", "window").begin("late")]),
    ):
        with pytest.raises(InvalidParameter):
            fleet.enlist(names, states)
    assert fleet.streams == NAMES
    assert len(fleet.step([0] * 5)) == 5


def test_streams_that_are_set_back_go_on_as_if_nothing_had_happened() -> None:
    plan = plan_of("dense, order 2", "window, capped", on_exhausted=Fallback.SUPPRESS)
    cells, which = script_of(plan, 30, seed=7)
    fleet = Fleet(plan, NAMES, randomness=keyed_coins())
    fleet.run(cells[:10], which[:10])
    before, kept = everything(fleet), fleet.backup(np.array([0, 2, 3]))
    one = fleet.run(cells[10:], which[10:])
    after = everything(fleet)
    fleet.enlist(["new"])
    fleet.restore(kept)
    states = [to_bytes(state) for state in fleet.states(np.arange(5))]
    assert states == [before[0], after[1], *before[2:]]
    rows = which[10:] != 1
    again = fleet.run(cells[10:][rows], which[10:][rows])
    assert again.charges.tolist() == one.charges[rows].tolist()
    assert [to_bytes(state) for state in fleet.states(np.arange(5))] == after
