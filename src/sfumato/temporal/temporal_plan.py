"""The rule of releases under correlation, and its one step."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, assert_never

from sfumato.core.arrays import Floats
from sfumato.core.digest import content, digest
from sfumato.core.errors import BudgetExceeded, InvalidParameter
from sfumato.core.guarantees import TemporalDP
from sfumato.core.numerics import add_up
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Address, Domain, Randomness
from sfumato.temporal.least_noise import Allocation, allocated_budgets
from sfumato.temporal.loss_function import LossFunction
from sfumato.temporal.temporal_account import EndlessAccount, PlannedAccount, TemporalAccount
from sfumato.temporal.temporal_mechanisms import Maker, Mechanism


@dataclass(frozen=True, slots=True)
class TemporalState:
    """All that the next release of correlated moments needs: public, and of constant size.

    Attributes:
        plan: Fingerprint of the plan that made it.
        stream: Whose it is.
        sequence: Moments so far.
        past: What the releases so far tell of the last moment.
        room: How much forward leakage the moments so far can bear of the next one.
        spent: Sum of the leakages of all releases by themselves, rounded up.
    """

    plan: str
    stream: str = ""
    sequence: int = 0
    past: float = 0.0
    room: float = math.inf
    spent: float = 0.0


@dataclass(frozen=True, slots=True)
class TemporalEvent:
    """What left at one moment.

    Attributes:
        stream: Whose it is.
        sequence: Which moment, counted from 0.
        value: What was released; None at a moment without a release.
        epsilon: Exact leakage of this release by itself.
    """

    stream: str
    sequence: int
    value: Any
    epsilon: float


@dataclass(frozen=True, slots=True)
class TemporalPlan:
    """The rule of a sequence of releases.

    Attributes:
        backward: Loss function of the backward matrix, the worst over all people.
        forward: Loss function of the forward matrix.
        alpha: No moment of any person may leak more than this.
        steps: Number of releases, if it is known; else the stream is endless.
        allocation: How budgets are spread over a known number.
        make: Makes the mechanism of a moment; needed for steps only.
        context: What else shapes the answers: other coins for another one.
        purpose: Whether data leaves; coins of a simulation are others.

    Examples:
        >>> chain = LossFunction.of([[0.8, 0.2], [0.2, 0.8]])
        >>> TemporalPlan(chain, chain, alpha=1.0, steps=3).budgets.round(3)
        array([0.457, 0.457, 0.457])
        >>> TemporalPlan(chain, chain, 1.0, 3, Allocation.PAPER).budgets.round(3)
        array([0.63, 0.26, 0.63])
    """

    backward: LossFunction
    forward: LossFunction
    alpha: float
    steps: int | None = None
    allocation: Allocation = Allocation.PLAIN
    make: Maker | None = field(default=None, repr=False)
    context: str = ""
    purpose: Purpose = Purpose.RELEASE

    @property
    def fingerprint(self) -> str:
        """Identifies the rule; of mechanisms, what they draw is part of each address of coins."""
        rule = (self.backward, self.forward, self.alpha, self.steps, self.allocation)
        return _fingerprint(*rule, self.context, self.purpose)

    @property
    def budgets(self) -> Floats:
        """The budgets of a known number of releases."""
        if self.steps is None:
            raise InvalidParameter("steps", None, "be given")
        rule = (self.backward, self.forward, self.alpha, self.steps)
        return allocated_budgets(self.allocation, *rule)

    def begin(self, stream: str = "") -> TemporalState:
        """The state before the first moment; refuses a rule that no budget keeps."""
        self.account(state := TemporalState(self.fingerprint, stream))
        return state

    def account(self, state: TemporalState) -> TemporalAccount:
        """What the stream may leak from now on."""
        if state.plan != self.fingerprint:
            raise InvalidParameter("state", "that of another plan", "come from this plan")
        name = state.stream or "temporal"
        if self.steps is not None:
            return PlannedAccount(self.budgets, state.sequence, name)
        rule = (self.backward, self.forward, self.alpha)
        known = (state.past, state.room, state.sequence)
        return EndlessAccount(*rule, _future(*rule), *known, name)

    def ready(self, state: TemporalState, value: Any) -> tuple[Mechanism, float, TemporalState]:
        """The mechanism of the next moment, what it leaks, and the state once it was drawn from.

        Raises:
            BudgetExceeded: If all releases that were planned have happened, or the mechanism leaks
                more than the budget it was made for.
        """
        if self.make is None:
            raise InvalidParameter("make", None, "be given for a step")
        account = self.account(state)
        budget = account.allowance
        if budget == 0.0:
            raise BudgetExceeded(account.stream, account.count, "anything at all", TemporalDP(0.0))
        mechanism = self.make(budget)
        charge = mechanism.epsilon
        # An endless account would cover more, of a last release; another one is always to come.
        if charge > budget:
            raise BudgetExceeded(
                account.stream, account.count, TemporalDP(charge), TemporalDP(budget)
            )
        # Refused before it is charged: nothing was drawn for it.
        if (check := getattr(mechanism, "check", None)) is not None:
            check(value)
        return mechanism, charge, _after(state, account.charged(charge), charge)

    def step(
        self, state: TemporalState, value: Any, coins: Randomness
    ) -> tuple[tuple[TemporalEvent, ...], TemporalState]:
        """Release the value of the next moment: what leaves, and the state to go on from."""
        mechanism, charge, after = self.ready(state, value)
        drawn = mechanism(value, self.coins(mechanism, state, coins))
        return (TemporalEvent(state.stream, state.sequence, drawn, charge),), after

    def skip(self, state: TemporalState) -> tuple[tuple[TemporalEvent, ...], TemporalState]:
        """A moment at which nothing is released; later ones of an endless stream may get more."""
        after = self.charged(state, 0.0)
        return (TemporalEvent(state.stream, state.sequence, None, 0.0),), after

    def charged(self, state: TemporalState, charge: float) -> TemporalState:
        """The state after a release of this leakage by itself; refused if it is too much."""
        return _after(state, self.account(state).charged(charge), charge)

    def coins(self, mechanism: Mechanism, state: TemporalState, coins: Randomness) -> Randomness:
        """The coins of a moment: another plan, or another mechanism, has others."""
        if not coins.addressed:
            return coins
        try:
            plan = digest(self.fingerprint, content(mechanism))
        except TypeError:
            rule = "be a dataclass or have a fingerprint, with keyed coins"
            raise InvalidParameter("make", type(mechanism).__name__, rule) from None
        return coins.at(Address(Domain.TEMPORAL, plan, state.stream, state.sequence))


def _after(state: TemporalState, account: TemporalAccount, charge: float) -> TemporalState:
    """The state of an account that was charged."""
    spent = add_up(state.spent, charge)
    match account:
        case EndlessAccount():
            past, room = account.past, account.room
            return replace(state, sequence=account.count, past=past, room=room, spent=spent)
        case PlannedAccount():
            return replace(state, sequence=account.count, spent=spent)
        case _:
            assert_never(account)


@lru_cache(maxsize=4096)
def _fingerprint(*parts: object) -> str:
    return digest("temporal plan", content(parts))


@lru_cache(maxsize=4096)
def _future(backward: LossFunction, forward: LossFunction, alpha: float) -> float:
    return EndlessAccount.begin(backward, forward, alpha).future
