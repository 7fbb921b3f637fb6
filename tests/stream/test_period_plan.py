"""Releases under a budget for periods of time: any times, refusals, restarts, against fractions."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import sfumato as sf
from sfumato.core.errors import BudgetExceeded, InvalidParameter
from sfumato.core.ledger import Ledger, PeriodLedger
from sfumato.core.state import StreamState
from sfumato.models.encoding import Symbols
from sfumato.models.stream_model import StreamModel
from sfumato.store.codec import from_bytes, to_bytes
from sfumato.store.memory import MemoryStore
from sfumato.stream import Outcome, Period, ReleaseSpec
from sfumato.stream.forecast import forecast
from sfumato.stream.live_release import open_release
from sfumato.stream.release_document import document
from tests.oracles.period_sums import period_sums

CHAIN = sf.MarkovChain.from_matrix([[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.3, 0.3, 0.4]])
LOSS = sf.loss.hamming(CHAIN.alphabet)
HOUR = Period("hour")
TOTAL = 1.0
HOURLY = sf.PerPeriod(sf.SIP(TOTAL), HOUR, cap=sf.SIP(0.4))
START = datetime(2024, 3, 31, tzinfo=UTC)


def hourly(**options: object) -> sf.Plan:
    given = {"budget": HOURLY, "loss": LOSS}
    return sf.Plan(CHAIN, **given | options)  # type: ignore[arg-type]


class PeriodMachine(RuleBasedStateMachine):
    """Two streams at irregular times; the oracle sums up what left, by the times alone."""

    reached: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.plan = hourly(budget=replace(HOURLY, cap=sf.SIP(0.6)))
        self.now = {"ann": START, "bob": START + timedelta(minutes=31)}
        self.states = {name: self.plan.begin(name) for name in self.now}
        self.left: list[tuple[str, str, float]] = []
        self.events = Counter[str]()

    @rule(
        who=st.sampled_from(["ann", "bob"]),
        minutes=st.sampled_from([0, 1, 1, 2, 2, 3, 5, 17, 59, 60, 61, 26 * 60]),
        value=st.integers(0, 2),
    )
    def release(self, who: str, minutes: int, value: int) -> None:
        moment = self.now[who] + timedelta(minutes=minutes)
        before = self.states[who]
        try:
            (event,), after = self.plan.step(before, [value], sf.secure(), period=HOUR.at(moment))
        except BudgetExceeded:
            self.reached["refused"] += 1
            spent = period_sums("hour", self.left)[who, moment.strftime("%Y-%j %H")]
            assert spent > TOTAL - 1e-6  # refused because it is gone, and not before
            return
        if before.period is not None and after.period is not None:
            self.reached["next period"] += before.period.index < after.period.index
        self.now[who], self.states[who] = moment, after
        self.left.append((who, moment.isoformat(), event.sip.epsilon))
        self.events[who] += 1

    @rule(who=st.sampled_from(["ann", "bob"]), minutes=st.sampled_from([0, 1, 2, 45]))
    def skip(self, who: str, minutes: int) -> None:
        self.now[who] += timedelta(minutes=minutes)
        _, self.states[who] = self.plan.skip(self.states[who], period=HOUR.at(self.now[who]))
        self.events[who] += 1

    @rule(who=st.sampled_from(["ann", "bob"]))
    def restart(self, who: str) -> None:
        self.states[who] = from_bytes(to_bytes(self.states[who]), StreamState)

    @precondition(lambda self: self.left)
    @rule(who=st.sampled_from(["ann", "bob"]))
    def go_back(self, who: str) -> None:
        if self.events[who]:
            earlier = HOUR.at(self.now[who]) - 1
            with pytest.raises(InvalidParameter, match="not lie before that of the value before"):
                self.plan.step(self.states[who], [0], sf.secure(), period=earlier)

    @invariant()
    def no_hour_of_a_stream_is_passed(self) -> None:
        sums = period_sums("hour", self.left)
        assert all(spent <= TOTAL for spent in sums.values())
        for who, state in self.states.items():
            all_of_it = sum(spent for (owner, _), spent in sums.items() if owner == who)
            assert all_of_it <= state.ledger.sip <= float(all_of_it) + 1e-9
            assert state.ledger.count == self.events[who]


def test_no_period_is_passed_at_any_times_and_refusals_are_reached() -> None:
    PeriodMachine.reached.clear()
    bounds = settings(max_examples=40, stateful_step_count=30, deadline=None)
    run_state_machine_as_test(PeriodMachine, settings=bounds)
    assert PeriodMachine.reached["refused"] and PeriodMachine.reached["next period"]


def test_a_period_of_silence_gives_no_more_than_one_period() -> None:
    plan, left = hourly(), []
    state = plan.begin("ann")
    for minute in range(0, 60, 5):
        moment = START + timedelta(hours=50, minutes=minute)
        try:
            (event,), state = plan.step(state, [0], sf.secure(), period=HOUR.at(moment))
            left.append(("ann", moment.isoformat(), event.sip.epsilon))
        except BudgetExceeded:
            break
    ((_, spent),) = period_sums("hour", left).items()
    assert TOTAL - 1e-6 < spent <= TOTAL


def test_the_fallback_lasts_until_the_period_is_over() -> None:
    for fallback, due in (("suppress", Outcome.SUPPRESSED), ("repeat", Outcome.REPEATED)):
        plan = hourly(on_exhausted=sf.Fallback(fallback))
        state, told = plan.begin("ann"), []
        for minute in range(0, 120, 10):
            moment = START + timedelta(minutes=minute)
            (event,), state = plan.step(state, [0], sf.secure(), period=HOUR.at(moment))
            told.append(event.outcome)
        assert told[:6] == told[6:] == [Outcome.RELEASED] * 3 + [due] * 3


def test_whoever_sees_the_outputs_and_times_computes_the_same() -> None:
    plan = hourly(on_exhausted=sf.Fallback.SUPPRESS)
    state = seen = plan.begin("ann")
    for minute in range(0, 150, 13):
        period = HOUR.at(START + timedelta(minutes=minute))
        (event,), state = plan.step(state, [minute % 3], sf.secure(), period=period)
        (due,), seen = plan.observe(seen, [event.released], event.outcome, period=period)
        assert (event, to_bytes(state)) == (due, to_bytes(seen))
        assert event.period == period


def test_a_release_after_the_end_of_a_period_s_budget_could_not_have_been() -> None:
    plan = hourly(on_exhausted=sf.Fallback.SUPPRESS)
    state = plan.begin("ann")
    for _ in range(3):
        _, state = plan.step(state, [0], sf.secure(), period=7)
    with pytest.raises(InvalidParameter, match="the budget was gone"):
        plan.observe(state, [0], period=7)
    plan.observe(state, [0], period=8)


def test_another_period_has_other_coins_and_another_budget_too() -> None:
    plan, key = hourly(), sf.keyed(b"sixteen bytes or more")
    places = [plan.address("ann", 0, period=period) for period in (None, 3, 4)]
    other = hourly(budget=replace(HOURLY, period=Period("day")))
    places.append(other.address("ann", 0, period=3))
    assert len({tuple(key.at(place).words(2).tolist()) for place in places}) == 4


@pytest.mark.parametrize("compiled", [False, True])
def test_a_release_object_resumes_in_the_middle_of_a_period(compiled: bool) -> None:
    policy = sf.compile_policy(CHAIN, LOSS, 0.4, steps=200) if compiled else None
    key = sf.keyed(b"sixteen bytes or more")

    def begun(state: StreamState | None = None) -> sf.InstantRelease:
        return sf.InstantRelease(
            CHAIN,
            budget=HOURLY,
            loss=LOSS,
            policy=policy,
            randomness=key,
            on_exhausted="suppress",
            state=state,
        )

    whole, first = begun(), begun()
    periods = [1] * 5 + [2] * 3
    due = [whole(value % 3, period=period) for value, period in enumerate(periods)]
    found = [first(value % 3, period=1) for value in range(2)]
    stored = from_bytes(to_bytes(first.state), StreamState)
    rest = begun(stored)
    found += [rest(value % 3, period=periods[value]) for value in range(2, 8)]
    assert found == due
    assert compiled or None in due  # kept channels leak less than they may, and last longer
    assert to_bytes(rest.state) == to_bytes(whole.state)


def test_a_period_is_given_just_where_a_budget_has_them() -> None:
    with pytest.raises(InvalidParameter, match="be given with each value: the budget is for each"):
        hourly().step(hourly().begin("ann"), [0], sf.secure())
    plain = hourly(budget=sf.PerStep(sf.SIP(0.4)))
    with pytest.raises(InvalidParameter, match="not be given: the budget is not for periods"):
        plain.step(plain.begin("ann"), [0], sf.secure(), period=1)


@pytest.mark.parametrize("period", [0.5, float("nan"), float("inf"), "3", 2**62, START])
def test_a_clock_is_no_period(period: object) -> None:
    """Hours as a float would begin a period, and its whole budget, with every value."""
    release = sf.InstantRelease(CHAIN, budget=HOURLY, loss=LOSS)
    for _ in range(2):
        with pytest.raises(InvalidParameter, match="be a whole number within 2\\^62"):
            release(0, period=period)  # type: ignore[arg-type]
        release(0, period=2)
    release(1, period=np.int64(3))  # type: ignore[arg-type]
    assert to_bytes(release.state) and type(release.state.period.index) is int  # type: ignore[union-attr]


def test_a_state_that_lost_its_period_is_refused() -> None:
    plan = hourly()
    _, state = plan.step(plan.begin("ann"), [0], sf.secure(), period=1)
    for forged in (replace(state, period=None), replace(plan.begin("ann"), period=PeriodLedger(1))):
        with pytest.raises(InvalidParameter, match="what was spent in the last period"):
            plan.step(forged, [0], sf.secure(), period=1)


def test_states_of_other_budgets_are_stored_as_before() -> None:
    plain = hourly(budget=sf.PerStep(sf.SIP(0.4))).begin("ann")
    stored = to_bytes(plain)
    assert b"period" not in stored and b"bounds" not in stored
    assert from_bytes(stored, StreamState).period is None
    assert from_bytes(stored, StreamState).counted == Ledger()


def test_batches_fleets_forecasts_and_live_events_refuse_it() -> None:
    with pytest.raises(InvalidParameter, match="a batch might lie in two periods"):
        hourly(width=2)
    policy = sf.compile_policy(CHAIN, LOSS, 0.4, steps=200)
    compiled = hourly(policy=policy)
    with pytest.raises(InvalidParameter, match="have no budget for periods of time"):
        sf.Fleet(compiled, ["ann"])
    with pytest.raises(InvalidParameter, match="nobody knows when values come"):
        forecast(hourly(), length=10, streams=1)
    model = StreamModel(CHAIN, Symbols(CHAIN.alphabet))
    rules = document(ReleaseSpec(budget=1.0, per="hour", cap=0.4), model)
    with pytest.raises(InvalidParameter, match="live events need not have times"):
        open_release(rules, model, None, _no_store, sf.secure(), "phones")


def _no_store(*_: object) -> MemoryStore:
    raise AssertionError("nothing is opened for rules that are refused")
