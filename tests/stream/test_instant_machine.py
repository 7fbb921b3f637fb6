"""A release under any mixture of steps, pauses and restarts, against a shadow in 60 digits."""

from collections import Counter
from typing import Any, ClassVar

import mpmath
import numpy as np
import pytest
from hypothesis import currently_in_test_context, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from sfumato import (
    LDP,
    SIP,
    Alphabet,
    Event,
    Horizon,
    MarkovChain,
    PerStep,
    Plan,
    Window,
    loss,
    secure,
)
from sfumato.core.budgets import Budget
from sfumato.core.errors import BudgetExceeded, UnknownSymbol
from sfumato.store import from_bytes, to_bytes
from sfumato.stream import Geometric, Outcome, StreamState
from tests.oracles.joint import (
    DIGITS,
    exact_leakage,
    exact_local_leakage,
    exact_marginal,
    exact_step,
)

ROWS = [[0.75, 0.15, 0.1], [0.125, 0.75, 0.125], [0.25, 0.25, 0.5]]
START = [0.5, 0.25, 0.25]
MOVES: dict[tuple[int, ...], list[float]] = {(x,): row for x, row in enumerate(ROWS)}
CHAIN = MarkovChain.from_matrix(ROWS, START, Alphabet("abc"))
LOSS = loss.hamming(CHAIN.alphabet)
PLANS = [
    Plan(CHAIN, budget, LOSS)
    for budget in (
        Horizon(SIP(2.0), 4),
        Horizon(SIP(3.0), 6, LDP(3.5)),
        Window(SIP(1.5), 3),
        Window(SIP(2.0), 2, LDP(2.0)),
        Geometric(SIP(3.0), 0.01),
        PerStep(SIP(0.7), LDP(1.0)),
    )
]
TOLERANCE = 1e-12


class Shadow:
    """What the ledger should be: exact leakages under the exact belief, and their sums."""

    def __init__(self) -> None:
        self.belief: dict[tuple[int, ...], Any] = {(x,): mpmath.mpf(p) for x, p in enumerate(START)}
        self.sip: list[Any] = []
        self.ldp: list[Any] = []

    def release(self, weights: list[list[int]], column: int) -> None:
        self.sip.append(exact_leakage(weights, exact_marginal(self.belief, 3)))
        self.ldp.append(exact_local_leakage(weights))
        self.belief = exact_step(self.belief, MOVES, [row[column] for row in weights])

    def wait(self) -> None:
        self.sip.append(mpmath.mpf(0))
        self.ldp.append(mpmath.mpf(0))
        self.belief = exact_step(self.belief, MOVES)

    def within(self, budget: Budget) -> bool:
        """Whether the exact sums keep the promise of a budget."""
        match budget:
            case PerStep():
                spans = [slice(t, t + 1) for t in range(len(self.sip))]
            case Window():
                spans = [slice(t, t + budget.width) for t in range(len(self.sip))]
            case Horizon() | Geometric():
                spans = [slice(None)]
        with mpmath.workdps(DIGITS):
            return all(
                sum(self.sip[span]) <= budget.sip.epsilon
                and (budget.ldp is None or sum(self.ldp[span]) <= budget.ldp.epsilon)
                for span in spans
            )


class InstantMachine(RuleBasedStateMachine):
    reached: ClassVar[Counter[str]] = Counter()

    @initialize(plan=st.sampled_from(PLANS))
    def begin(self, plan: Plan) -> None:
        self.plan, self.state, self.shadow = plan, plan.begin("u"), Shadow()

    def note(self, what: str) -> None:
        if currently_in_test_context():
            event(what)
        self.reached[what] += 1

    @rule(value=st.sampled_from("abc"))
    def release_one(self, value: str) -> None:
        before = self.state
        prepared = self.plan.prepare(before)
        try:
            (told,), self.state = self.plan.step(before, [value], secure())
        except BudgetExceeded:
            self.note("refused")
            assert prepared is None
            assert self.state is before
            return
        assert prepared is not None
        assert told.outcome is Outcome.RELEASED
        channel = prepared.design.channel
        column = channel.outputs.tolist().index(CHAIN.alphabet.index(told.released))
        self.note("silent" if channel.is_constant else "released")
        self.shadow.release(channel.weights.tolist(), column)
        self.compare(told)

    @rule(values=st.lists(st.sampled_from("abc"), min_size=2, max_size=6))
    def release_many(self, values: list[str]) -> None:
        for value in values:
            self.release_one(value)

    @rule()
    def skip_one(self) -> None:
        (told,), self.state = self.plan.skip(self.state)
        self.note("skipped")
        self.shadow.wait()
        self.compare(told)

    @rule()
    def offer_an_unknown_value(self) -> None:
        before = self.state
        with pytest.raises((UnknownSymbol, BudgetExceeded)):
            self.plan.step(before, ["z"], secure())
        self.note("unknown")
        assert self.state is before

    @rule()
    def save_and_load(self) -> None:
        loaded = from_bytes(to_bytes(self.state), StreamState)
        self.note("loaded")
        assert np.array_equal(loaded.belief.joint, self.state.belief.joint)
        assert loaded.ledger == self.state.ledger
        self.state = loaded

    def compare(self, told: Event) -> None:
        for charged, exact in (
            (told.sip.epsilon, self.shadow.sip[-1]),
            (told.ldp.epsilon, self.shadow.ldp[-1]),
        ):
            assert exact <= charged <= exact + TOLERANCE

    @invariant()
    def ledger_is_that_of_the_shadow_rounded_up(self) -> None:
        ledger = self.state.ledger
        assert ledger.count == self.state.sequence == len(self.shadow.sip)
        for spent, exact in ((ledger.sip, self.shadow.sip), (ledger.ldp, self.shadow.ldp)):
            with mpmath.workdps(DIGITS):
                total = mpmath.fsum(exact)
                assert total <= spent <= total + TOLERANCE * max(1, len(exact))

    @invariant()
    def promise_of_the_budget_is_kept(self) -> None:
        assert self.shadow.within(self.plan.budget)

    @invariant()
    def belief_is_that_of_the_shadow(self) -> None:
        exact = exact_marginal(self.shadow.belief, 3)
        assert self.state.belief.marginal == pytest.approx([float(p) for p in exact], rel=1e-12)


InstantMachine.TestCase.settings = settings(max_examples=12, stateful_step_count=20, deadline=None)
TestInstant = InstantMachine.TestCase


def test_the_machine_reaches_refusals_restarts_pauses_and_silence() -> None:
    class Counting(InstantMachine):
        reached: ClassVar[Counter[str]] = Counter()

    run_state_machine_as_test(
        Counting,
        settings=settings(
            max_examples=40, stateful_step_count=20, deadline=None, derandomize=True, database=None
        ),
    )
    for what in ("refused", "released", "silent", "skipped", "loaded", "unknown"):
        assert Counting.reached[what] >= 10, Counting.reached


def test_the_shadow_notices_a_ledger_that_is_a_little_too_low() -> None:
    machine = InstantMachine()
    machine.begin(PLANS[0])
    machine.release_one("a")
    machine.ledger_is_that_of_the_shadow_rounded_up()
    spent = machine.state.ledger
    assert spent.sip > 0.1
    low = type(spent)(spent.count, spent.sip * (1 - 1e-12), spent.ldp)
    machine.state = StreamState(
        machine.state.plan, "u", machine.state.sequence, machine.state.belief, low
    )
    with pytest.raises(AssertionError):
        machine.ledger_is_that_of_the_shadow_rounded_up()
