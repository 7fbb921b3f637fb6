"""A release under any mixture of steps, pauses and restarts, against a shadow in fractions."""

import itertools
from collections import Counter
from dataclasses import replace
from fractions import Fraction
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

from sfumato import LDP, SIP, Alphabet, Event, Horizon, PerStep, Plan, Window, loss, secure
from sfumato.core.budgets import Budget
from sfumato.core.errors import BudgetExceeded, UnknownSymbol
from sfumato.store import from_bytes, to_bytes
from sfumato.stream import Geometric, Outcome, StreamState
from sfumato.stream.partition.batch_loss import additive
from tests.compiled import exact_leakages
from tests.oracles import batches as oracle

LETTERS = oracle.random_process(3, 1, np.random.default_rng(7), sticky=2.0)
BITS = oracle.random_process(2, 1, np.random.default_rng(6), sticky=2.0)
TOLERANCE = 1e-11
DIGITS = 60


def plans(process: oracle.Process, width: int, *rules: tuple[Budget, int]) -> list[Plan]:
    chain = oracle.chain_of(process, alphabet=Alphabet("abc"[: process.size]))
    each = loss.hamming(chain.alphabet)
    return [
        Plan(chain, budget, each if width == 1 else additive(each), width, listed=listed)
        for budget, listed in rules
    ]


class Shadow:
    """What the ledger should be: leakages by brute force, under the exact belief."""

    def __init__(self, process: oracle.Process) -> None:
        self.process = process
        self.batches: list[tuple[int, Any, Any]] = []

    def release(self, rows: list[list[int]], column: int, length: int) -> None:
        chances = oracle.batch_chances(self.process, 0, length)
        self.batches.append((length, *exact_leakages(rows, chances)))
        batches = oracle.every(self.process.size, length)
        self._move({o: Fraction(row[column], 2**62) for o, row in zip(batches, rows, strict=True)})

    def wait(self, length: int) -> None:
        self.batches.append((length, mpmath.mpf(0), mpmath.mpf(0)))
        self._move(dict.fromkeys(oracle.every(self.process.size, length), Fraction(1)))

    def _move(self, told: dict[oracle.Symbols, Fraction]) -> None:
        joint = oracle.belief_after(self.process, 0, len(next(iter(told))), told)
        total = sum(joint.values())
        # 300 bits keep the fractions short; the error is far below what is compared.
        rounded = {c: Fraction(int(p / total * 2**300), 2**300) for c, p in joint.items()}
        self.process = replace(self.process, initial=rounded)

    @property
    def marginal(self) -> list[float]:
        return [float(self.process.initial[(x,)]) for x in range(self.process.size)]

    def totals(self) -> tuple[Any, Any]:
        return _sums(self.batches)

    def within(self, budget: Budget) -> bool:
        """Whether the exact sums keep the promise of a budget."""
        limits = budget.sip.epsilon, np.inf if budget.ldp is None else budget.ldp.epsilon
        ends = list(itertools.accumulate(length for length, *_ in self.batches))
        groups, times = [self.batches], [1]
        match budget:
            case PerStep():
                groups = [[batch] for batch in self.batches]
                times = [length for length, *_ in self.batches]
            case Window():
                groups = [
                    [
                        batch
                        for batch, end in zip(self.batches, ends, strict=True)
                        if end > t and end - batch[0] < t + budget.width
                    ]
                    for t in range(ends[-1] if ends else 0)
                ]
                times = [1] * len(groups)
            case Horizon() | Geometric():
                pass
        with mpmath.workdps(DIGITS):
            return all(
                total <= many * mpmath.mpf(limit)
                for group, many in zip(groups, times, strict=True)
                for total, limit in zip(_sums(group), limits, strict=True)
            )


def _sums(batches: list[tuple[int, Any, Any]]) -> tuple[Any, Any]:
    with mpmath.workdps(DIGITS):
        return mpmath.fsum(one for _, one, _ in batches), mpmath.fsum(one for *_, one in batches)


class ReleaseMachine(RuleBasedStateMachine):
    """What a plan of any width does; subclasses name the plans."""

    process: ClassVar[oracle.Process] = LETTERS
    plans: ClassVar[list[Plan]] = []
    reached: ClassVar[Counter[str]] = Counter()

    @initialize(place=st.integers(0, 7))
    def begin(self, place: int) -> None:
        self.plan = self.plans[place % len(self.plans)]
        self.state, self.shadow = self.plan.begin("u"), Shadow(self.process)

    def note(self, what: str) -> None:
        if currently_in_test_context():
            event(what)
        self.reached[what] += 1

    @rule(places=st.lists(st.integers(0, 5), min_size=1, max_size=3))
    def release_one(self, places: list[int]) -> None:
        labels, before = self.plan.model.alphabet.labels, self.state
        values = [labels[place % len(labels)] for place in places[: self.plan.width]]
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
        released = [labels.index(str(one.released)) for one in told]
        names = prepared.patterns[channel.outputs].tolist()
        assert names.count(released) == 1
        batches = oracle.every(self.process.size, len(values))
        rows = [channel.weights[prepared.partition.cell(o)].tolist() for o in batches]
        self.note("silent" if channel.is_constant else "released")
        self.note("short" if len(values) < self.plan.width else "whole")
        self.shadow.release(rows, names.index(released), len(values))
        self.compare(told)

    @rule(many=st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=3), max_size=5))
    def release_many(self, many: list[list[int]]) -> None:
        for places in many:
            self.release_one(places)

    @rule(length=st.integers(1, 3))
    def skip_some(self, length: int) -> None:
        told, self.state = self.plan.skip(self.state, min(length, self.plan.width))
        self.note("skipped")
        self.shadow.wait(len(told))
        self.compare(told)

    @rule(place=st.integers(0, 2))
    def offer_an_unknown_value(self, place: int) -> None:
        before = self.state
        values = ["a"] * self.plan.width
        values[place % self.plan.width] = "secret"
        with pytest.raises((UnknownSymbol, BudgetExceeded)) as refusal:
            self.plan.step(before, values, secure())
        self.note("unknown")
        assert "secret" not in str(refusal.value)
        assert self.state is before

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
            assert total <= spent <= total + TOLERANCE * max(1, len(self.shadow.batches))

    @invariant()
    def promise_of_the_budget_is_kept(self) -> None:
        assert self.shadow.within(self.plan.budget)

    @invariant()
    def belief_is_that_of_the_shadow(self) -> None:
        assert self.state.belief.marginal == pytest.approx(self.shadow.marginal, rel=1e-12)


class ValuesMachine(ReleaseMachine):
    reached: ClassVar[Counter[str]] = Counter()
    plans: ClassVar[list[Plan]] = plans(
        LETTERS,
        1,
        (Horizon(SIP(2.0), 4), 4096),
        (Horizon(SIP(3.0), 6, LDP(3.5)), 4096),
        (Window(SIP(1.5), 3), 4096),
        (Window(SIP(2.0), 2, LDP(2.0)), 4096),
        (Geometric(SIP(3.0), 0.01), 4096),
        (PerStep(SIP(0.7), LDP(1.0)), 4096),
    )


class BatchesMachine(ReleaseMachine):
    reached: ClassVar[Counter[str]] = Counter()
    process: ClassVar[oracle.Process] = BITS
    plans: ClassVar[list[Plan]] = plans(
        BITS,
        3,
        (Horizon(SIP(2.0), 6), 4096),
        (Horizon(SIP(3.0), 5, LDP(3.5)), 4096),
        (Window(SIP(1.5), 3), 4096),
        (Window(SIP(2.0), 4, LDP(2.5)), 4096),
        (Geometric(SIP(3.0), 0.01), 4096),
        (PerStep(SIP(0.7), LDP(1.0)), 4096),
        (Horizon(SIP(3.0), 6), 1),
        (Window(SIP(2.5), 5), 1),
    )


MACHINES = [ValuesMachine, BatchesMachine]
RANDOM = settings(max_examples=16, stateful_step_count=15, deadline=None)
ValuesMachine.TestCase.settings = BatchesMachine.TestCase.settings = RANDOM
TestValues, TestBatches = ValuesMachine.TestCase, BatchesMachine.TestCase


@pytest.mark.parametrize("machine", MACHINES)
def test_the_machine_reaches_refusals_restarts_pauses_and_silence(
    machine: type[ReleaseMachine],
) -> None:
    machine.reached.clear()
    fixed = settings(RANDOM, max_examples=40, derandomize=True, database=None)
    run_state_machine_as_test(machine, settings=fixed)
    short = {"short"} if machine is BatchesMachine else set()
    for what in {"refused", "released", "silent", "whole", "skipped", "loaded", "unknown"} | short:
        assert machine.reached[what] >= 5, machine.reached


@pytest.mark.parametrize("machine", MACHINES)
def test_the_shadow_notices_a_ledger_that_is_a_little_too_low(
    machine: type[ReleaseMachine],
) -> None:
    running = machine()
    running.begin(0)
    running.release_one([0, 1, 1])
    running.ledger_is_that_of_the_shadow_rounded_up()
    spent = running.state.ledger
    assert spent.sip > 0.1
    running.state = replace(running.state, ledger=replace(spent, sip=spent.sip * (1 - 1e-12)))
    with pytest.raises(AssertionError):
        running.ledger_is_that_of_the_shadow_rounded_up()
