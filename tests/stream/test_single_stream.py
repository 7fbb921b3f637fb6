from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest

from sfumato import (
    Event,
    Fallback,
    Fleet,
    Horizon,
    InstantRelease,
    PerStep,
    Plan,
    Purpose,
    Window,
    keyed,
    secure,
    seeded,
)
from sfumato.core.budgets import Budget
from sfumato.core.bursts import Bursts, WindowBursts
from sfumato.core.errors import BudgetExceeded, InsecureRandomness, UnknownSymbol
from sfumato.core.guarantees import LDP, SIP
from sfumato.models.markov import MarkovChain
from sfumato.store import from_bytes, to_bytes
from sfumato.stream import Geometric, Outcome, StreamState
from sfumato.stream.single_stream import SingleStream
from tests.compiled import CHAINS, plan_of, policy_of, value_loss
from tests.grids import covered
from tests.stream.fleet_scripts import BUDGETS, SECRET

STEPS = 12
PAUSE = object()


def release_of(plan: Plan, **options: Any) -> InstantRelease:
    assert isinstance(plan.model, MarkovChain)
    return InstantRelease(
        plan.model,
        budget=plan.budget,
        loss=value_loss(plan),
        method=plan.method,
        on_exhausted=plan.on_exhausted,
        on_unknown=plan.on_unknown,
        purpose=plan.purpose,
        policy=plan.policy,
        stream="ann",
        **options,
    )


def script(size: int, strange: object = None) -> list[object]:
    draw = np.random.default_rng(size)
    values: list[object] = draw.integers(0, size, STEPS).tolist()
    values[3] = PAUSE
    if strange is not None:
        values[0] = values[5] = values[6] = strange
    return values


def by_rule(plan: Plan, values: list[object]) -> tuple[list[Event], StreamState]:
    state, events = plan.begin("ann"), []
    for value in values:
        if value is PAUSE:
            (event,), state = plan.skip(state)
        else:
            (event,), state = plan.step(state, [value], keyed(SECRET))
        events.append(event)
    return events, state


def live(release: InstantRelease, values: list[object]) -> list[Event]:
    return [release.skip() if value is PAUSE else release.step(value) for value in values]


@pytest.mark.parametrize(("name", "budget"), covered(list(CHAINS)[:-1], list(BUDGETS)))
def test_a_live_stream_answers_as_the_rule_does(name: str, budget: str) -> None:
    plan = plan_of(name, BUDGETS[budget], on_exhausted=Fallback.REPEAT)
    release = release_of(plan, randomness=keyed(SECRET))
    due, state = by_rule(plan, script(CHAINS[name].size))
    assert live(release, script(CHAINS[name].size)) == due
    assert to_bytes(release.state) == to_bytes(state)
    assert release.ledger == state.ledger


AMPLE: dict[str, Budget] = {
    "per step": PerStep(SIP(1.0)),
    "per step, capped": PerStep(SIP(1.0), LDP(4.0)),
    "horizon": Horizon(SIP(12.0), 12),
    "horizon, capped": Horizon(SIP(12.0), 12, LDP(48.0)),
    "window": Window(SIP(3.0), 3),
    "window, capped": Window(SIP(3.0), 3, LDP(12.0)),
    "geometric": Geometric(SIP(100.0), 0.99),
    "bursts": Bursts(SIP(6.0), 12, None, 2, 1.0),
    "bursts in a window": WindowBursts(SIP(2.0), 4, None, 2),
}
"""Of each step about as much as the policy was compiled for."""


@pytest.mark.parametrize("budget", AMPLE)
def test_what_a_policy_was_compiled_for_is_answered_by_the_loop(budget: str) -> None:
    """With less, channels of the policy would be repaired until they are of no use: the plan
    solves such steps, and the loop declines them, as in the test before."""
    ample = AMPLE[budget]
    policy = policy_of("dense, order 1", 1.0, None if ample.ldp is None else 4.0)
    plan = plan_of("dense, order 1", ample, on_exhausted=Fallback.REPEAT, policy=policy)
    due, state = by_rule(plan, script(3))
    release = release_of(plan, randomness=keyed(SECRET))
    with mock.patch.object(release, "_slow", side_effect=release._slow) as solved:
        assert live(release, script(3)) == due
    paid = sum(event.sip.epsilon > 0 for event in due)
    assert paid > 3 and solved.call_count <= len(due) - paid + paid // 2
    assert to_bytes(release.state) == to_bytes(state)


@pytest.mark.parametrize("fallback", ["suppress", "repeat", "substitute"])
@pytest.mark.parametrize("exhausted", ["suppress", "repeat"])
def test_what_the_loops_do_not_cover_goes_the_same_way(fallback: str, exhausted: str) -> None:
    plan = plan_of(
        "dense, order 2",
        BUDGETS["horizon, capped"],
        policy=replace(policy_of("dense, order 2", 1.0, 1.5), repair_limit=1e-12),
        on_unknown=Fallback(fallback),
        on_exhausted=Fallback(exhausted),
    )
    release = release_of(plan, randomness=keyed(SECRET))
    due, state = by_rule(plan, script(3, strange="z"))
    assert live(release, script(3, strange="z")) == due
    assert to_bytes(release.state) == to_bytes(state)
    assert len({event.outcome for event in due}) >= 3


@pytest.mark.parametrize("pause", range(0, STEPS, 3))
@pytest.mark.parametrize("budget", ["per step", "window, capped"])
def test_a_live_stream_stored_at_any_moment_goes_on(pause: int, budget: str) -> None:
    plan = plan_of("dense, order 3", BUDGETS[budget])
    values = script(2)
    due, state = by_rule(plan, values)
    first = release_of(plan, randomness=keyed(SECRET))
    events = live(first, values[:pause])
    kept = from_bytes(to_bytes(first.state), StreamState)
    second = release_of(plan, randomness=keyed(SECRET), state=kept)
    assert events + live(second, values[pause:]) == due
    assert to_bytes(second.state) == to_bytes(state)


def test_a_live_stream_and_a_fleet_answer_alike() -> None:
    plan = plan_of("sparse, order 2", BUDGETS["geometric"], purpose=Purpose.SIMULATION)
    release = release_of(plan, randomness=seeded(6))
    fleet = Fleet(plan, ["bob", "ann"], randomness=seeded(6))
    for value in [0, 1, 2, 2, 1, 0, 0]:
        told = fleet.step([2 - value, value])
        assert release(value) == told.labels()[1]
    assert to_bytes(release.state) == to_bytes(fleet.state(1))


def test_labels_leave_and_events_say_the_same() -> None:
    plan = plan_of("letters")
    quick, told = (release_of(plan, randomness=keyed(SECRET)) for _ in range(2))
    labels = [quick(value) for value in "abcabc"]
    assert labels == [event.released for event in told.over("abcabc")]
    assert set(labels) <= set("abc")


def test_a_refused_value_changes_nothing_and_draws_nothing() -> None:
    plan = plan_of("letters", BUDGETS["horizon"])
    release = release_of(plan, randomness=keyed(SECRET))
    release("a")
    before = to_bytes(release.state)
    with pytest.raises(UnknownSymbol):
        release("z")
    assert to_bytes(release.state) == before
    for value in "abcabc":
        release(value)
    before = to_bytes(release.state)
    for value in "az":
        with pytest.raises(BudgetExceeded):
            release(value)
    assert to_bytes(release.state) == before


@pytest.mark.parametrize(("budget", "leaves"), [("per step", True), ("horizon", False)])
def test_neither_value_nor_coin_stays_where_the_loop_had_them(budget: str, leaves: bool) -> None:
    """Whether something left, or the stream must go another way."""
    plan = plan_of("letters", BUDGETS[budget])
    stream = SingleStream(plan, plan.begin("ann"))
    for _ in range(3):
        assert (stream.release(2, keyed(SECRET)) >= 0) == leaves
        assert (stream._cell[0], stream._word[0]) == (0, 0)


def test_a_state_taken_out_is_a_value_of_its_own() -> None:
    release = release_of(plan_of("dense, order 1"))
    state = release.state
    before = to_bytes(state)
    release(0)
    assert to_bytes(state) == before
    assert release.state.sequence == 1


def test_an_event_tells_its_own_moment_and_outcome() -> None:
    release = release_of(plan_of("dense, order 1"), randomness=secure())
    events = [release.step(1) for _ in range(4)]
    assert [event.sequence for event in events] == [0, 1, 2, 3]
    assert {(event.stream, event.outcome) for event in events} == {("ann", Outcome.RELEASED)}
    assert release.ledger.count == 4


def test_coins_that_can_be_guessed_are_refused_at_once() -> None:
    with pytest.raises(InsecureRandomness):
        release_of(plan_of("dense, order 1"), randomness=seeded(1))


@pytest.mark.parametrize("joint", [[0.0] * 3, [-1.0, 1.0, 1.0], [1e308] * 3])
def test_a_belief_that_is_none_is_refused(joint: list[float]) -> None:
    plan = plan_of("dense, order 1", PerStep(SIP(1.0)))
    begun = plan.begin("ann")
    state = replace(begun, belief=replace(begun.belief, joint=np.array(joint)))
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="belief"):
        release_of(plan, state=state)(0)
