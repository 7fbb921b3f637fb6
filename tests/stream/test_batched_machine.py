"""A batched release under any mixture of lengths, pauses and restarts, against an exact shadow."""

import itertools
from collections import Counter
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import currently_in_test_context, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from sfumato import LDP, SIP, Alphabet, Event, Horizon, PerStep, Plan, Window, loss, secure
from sfumato.core.budgets import Budget
from sfumato.core.errors import BudgetExceeded, UnknownSymbol
from sfumato.core.ledger import Ledger
from sfumato.store import from_bytes, to_bytes
from sfumato.stream import Geometric, Outcome, StreamState
from sfumato.stream.partition.batch_loss import additive
from tests.oracles.batches import (
    Symbols,
    batch_chances,
    belief_after,
    chain_of,
    every,
    exact_leakages,
    random_process,
)

PROCESS = random_process(2, 1, np.random.default_rng(6), sticky=2.0)
CHAIN = chain_of(PROCESS, alphabet=Alphabet("ab"))
LOSS = additive(loss.hamming(CHAIN.alphabet))
WIDTH = 3
PLANS = [
    Plan(CHAIN, budget, LOSS, WIDTH, listed=listed)
    for budget, listed in (
        (Horizon(SIP(2.0), 6), 4096),
        (Horizon(SIP(3.0), 5, LDP(3.5)), 4096),
        (Window(SIP(1.5), 3), 4096),
        (Window(SIP(2.0), 4, LDP(2.5)), 4096),
        (Geometric(SIP(3.0), 0.01), 4096),
        (PerStep(SIP(0.7), LDP(1.0)), 4096),
        (Horizon(SIP(3.0), 6), 1),
        (Window(SIP(2.5), 5), 1),
    )
]
TOLERANCE = 1e-11


class Shadow:
    """What the ledger should be: leakages of batches by brute force, under the exact belief."""

    def __init__(self) -> None:
        self.process = PROCESS
        self.batches: list[tuple[int, float, float]] = []

    def release(self, rows: list[list[int]], column: int, length: int) -> None:
        chances = batch_chances(self.process, 0, length)
        self.batches.append((length, *exact_leakages(rows, chances)))
        batches = every(2, length)
        self._move({o: Fraction(row[column], 2**62) for o, row in zip(batches, rows, strict=True)})

    def wait(self, length: int) -> None:
        self.batches.append((length, 0.0, 0.0))
        self._move(dict.fromkeys(every(2, length), Fraction(1)))

    def _move(self, told: dict[Symbols, Fraction]) -> None:
        joint = belief_after(self.process, 0, len(next(iter(told))), told)
        total = sum(joint.values())
        # 300 bits keep the fractions short; the error is far below what is compared.
        kept = {c: Fraction(int(p / total * 2**300), 2**300) for c, p in joint.items()}
        self.process = type(PROCESS)(2, 1, kept, PROCESS.known, PROCESS.backoff, PROCESS.background)

    @property
    def marginal(self) -> list[float]:
        return [float(self.process.initial[(x,)]) for x in range(2)]

    def totals(self) -> tuple[float, float]:
        return sum(sip for _, sip, _ in self.batches), sum(ldp for *_, ldp in self.batches)

    def within(self, budget: Budget) -> bool:
        """Whether the exact sums keep the promise of a budget."""
        limit = budget.sip.epsilon, np.inf if budget.ldp is None else budget.ldp.epsilon
        ends = list(itertools.accumulate(length for length, *_ in self.batches))
        groups: list[list[tuple[int, float, float]]] = [self.batches]
        times = [1]
        match budget:
            case PerStep():
                groups = [[batch] for batch in self.batches]
                times = [length for length, *_ in self.batches]
            case Window():
                moments = range(ends[-1] if ends else 0)
                groups = [
                    [
                        batch
                        for batch, end in zip(self.batches, ends, strict=True)
                        if end > t and end - batch[0] < t + budget.width
                    ]
                    for t in moments
                ]
                times = [1] * len(groups)
            case Horizon() | Geometric():
                pass
        return all(
            sum(sip for _, sip, _ in group) <= many * limit[0] * (1 + 1e-12)
            and sum(ldp for *_, ldp in group) <= many * limit[1] * (1 + 1e-12)
            for group, many in zip(groups, times, strict=True)
        )


class BatchedMachine(RuleBasedStateMachine):
    reached: ClassVar[Counter[str]] = Counter()

    @initialize(plan=st.sampled_from(PLANS))
    def begin(self, plan: Plan) -> None:
        self.plan, self.state, self.shadow = plan, plan.begin("u"), Shadow()

    def note(self, what: str) -> None:
        if currently_in_test_context():
            event(what)
        self.reached[what] += 1

    @rule(values=st.lists(st.sampled_from("ab"), min_size=1, max_size=WIDTH))
    def release_one(self, values: list[str]) -> None:
        before = self.state
        prepared = self.plan.prepare(before, len(values))
        try:
            told, self.state = self.plan.step(before, values, secure())
        except BudgetExceeded:
            self.note("refused")
            assert prepared is None
            assert self.state is before
            return
        assert prepared is not None
        assert {one.outcome for one in told} == {Outcome.RELEASED}
        channel = prepared.design.channel
        released = ["ab".index(str(one.released)) for one in told]
        names = prepared.patterns[channel.outputs].tolist()
        assert names.count(released) == 1
        rows = [channel.weights[prepared.partition.cell(o)].tolist() for o in every(2, len(values))]
        self.note("silent" if channel.is_constant else "released")
        self.note("short" if len(values) < WIDTH else "whole")
        self.shadow.release(rows, names.index(released), len(values))
        self.compare(told)

    @rule(batches=st.lists(st.lists(st.sampled_from("ab"), min_size=1, max_size=3), max_size=3))
    def release_many(self, batches: list[list[str]]) -> None:
        for values in batches:
            self.release_one(values)

    @rule(length=st.integers(1, WIDTH))
    def skip_some(self, length: int) -> None:
        told, self.state = self.plan.skip(self.state, length)
        self.note("skipped")
        self.shadow.wait(length)
        self.compare(told)

    @rule(place=st.integers(0, 2))
    def offer_an_unknown_value(self, place: int) -> None:
        before = self.state
        values = ["a"] * place + ["secret"] + ["b"] * (2 - place)
        with pytest.raises((UnknownSymbol, BudgetExceeded)) as refusal:
            self.plan.step(before, values, secure())
        self.note("unknown")
        assert "secret" not in str(refusal.value)
        assert self.state is before

    @precondition(lambda self: self.state.sequence > 0)
    @rule()
    def save_and_load(self) -> None:
        loaded = from_bytes(to_bytes(self.state), StreamState)
        self.note("loaded")
        assert np.array_equal(loaded.belief.joint, self.state.belief.joint)
        assert loaded.ledger == self.state.ledger
        self.state = loaded

    def compare(self, told: tuple[Event, ...]) -> None:
        length, sip, ldp = self.shadow.batches[-1]
        assert len(told) == length
        assert all(one.sip == SIP(0.0) and one.ldp == LDP(0.0) for one in told[:-1])
        assert sip <= told[-1].sip.epsilon <= sip + TOLERANCE
        assert ldp <= told[-1].ldp.epsilon <= ldp + TOLERANCE

    @invariant()
    def ledger_is_that_of_the_shadow_rounded_up(self) -> None:
        ledger, exact = self.state.ledger, self.shadow.totals()
        assert ledger.count == self.state.sequence == sum(n for n, *_ in self.shadow.batches)
        for spent, total in zip((ledger.sip, ledger.ldp), exact, strict=True):
            assert total * (1 - 1e-15) <= spent <= total + TOLERANCE * (1 + len(exact))

    @invariant()
    def promise_of_the_budget_is_kept(self) -> None:
        assert self.shadow.within(self.plan.budget)

    @invariant()
    def belief_is_that_of_the_shadow(self) -> None:
        assert self.state.belief.marginal == pytest.approx(self.shadow.marginal, rel=1e-12)


BatchedMachine.TestCase.settings = settings(max_examples=20, stateful_step_count=15, deadline=None)
TestBatched = BatchedMachine.TestCase


def test_the_machine_reaches_refusals_restarts_pauses_and_short_batches() -> None:
    class Counting(BatchedMachine):
        reached: ClassVar[Counter[str]] = Counter()

    run_state_machine_as_test(
        Counting,
        settings=settings(
            max_examples=60, stateful_step_count=15, deadline=None, derandomize=True, database=None
        ),
    )
    for what in ("refused", "released", "silent", "short", "whole", "skipped", "loaded", "unknown"):
        assert Counting.reached[what] >= 5, Counting.reached


def test_the_shadow_notices_a_ledger_that_is_a_little_too_low() -> None:
    machine = BatchedMachine()
    machine.begin(PLANS[0])
    machine.release_one(["a", "b", "b"])
    machine.ledger_is_that_of_the_shadow_rounded_up()
    spent = machine.state.ledger
    assert spent.sip > 0.1
    low = Ledger(spent.count, spent.sip * (1 - 1e-12), spent.ldp)
    machine.state = StreamState(
        machine.state.plan, "u", machine.state.sequence, machine.state.belief, low
    )
    with pytest.raises(AssertionError):
        machine.ledger_is_that_of_the_shadow_rounded_up()
