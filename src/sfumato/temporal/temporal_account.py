"""What the next release of correlated moments may leak: accounts of endless and of planned streams.

A moment's leakage grows with every later release, so an account looks both ways: `past` is what the
releases so far tell of the last moment, and `room` how much forward leakage of the next moment
those so far can bear.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.errors import BudgetExceeded
from sfumato.core.guarantees import TemporalDP
from sfumato.core.numerics import UNIT, up
from sfumato.core.search import largest
from sfumato.temporal.loss_function import LossFunction
from sfumato.temporal.temporal_budgets import allocate

# Less than alpha by this part: what is left of it is rounded several times.
_HAIR = 64 * UNIT


@dataclass(frozen=True, slots=True)
class EndlessAccount:
    """A stream whose end is not known.

    Every allowance leaves room for an endless future of constant budgets. The first release gets
    more than the constant, and so does one after moments at which nothing was released.

    Attributes:
        backward: Loss function of the backward matrix.
        forward: Loss function of the forward matrix.
        alpha: What no moment may leak more than.
        future: Bound on the forward leakage of the next moment that is always left room for.
        past: Backward leakage of the last moment.
        room: How much forward leakage the moments so far can bear of the next one.
        count: Moments so far.
        stream: Whose it is, for messages.

    Examples:
        >>> chain = LossFunction.of([[0.8, 0.2], [0.2, 0.8]])
        >>> account, spent = EndlessAccount.begin(chain, chain, 1.0), []
        >>> for _ in range(3):
        ...     spent.append(round(account.allowance, 4))
        ...     account = account.charged(account.allowance)
        >>> spent
        [0.6299, 0.2598, 0.2598]
    """

    backward: LossFunction
    forward: LossFunction
    alpha: float
    future: float
    past: float = 0.0
    room: float = math.inf
    count: int = 0
    stream: str = "temporal"

    @classmethod
    def begin(cls, backward: LossFunction, forward: LossFunction, alpha: float) -> EndlessAccount:
        """Before the first release."""
        constant = allocate(backward, forward, alpha).constant
        return cls(backward, forward, alpha, forward.supremum(constant))

    @property
    def allowance(self) -> float:
        """The largest budget for the next release that leaves room for any future."""
        return self._within(self.forward(self.future))

    @property
    def last_allowance(self) -> float:
        """The largest budget for the next release if nothing follows it."""
        return self._within(0.0)

    def covers(self, cost: float) -> bool:
        """Whether no moment would leak more than alpha, as far as the releases so far go."""
        return checks.leakage("epsilon", cost) <= self.last_allowance

    def charged(self, cost: float) -> EndlessAccount:
        """After a release of this leakage by itself; 0 for a moment without one.

        Raises:
            BudgetExceeded: If it is more than the last allowance.
        """
        if not self.covers(cost):
            left = TemporalDP(self.last_allowance)
            raise BudgetExceeded(self.stream, self.count, TemporalDP(cost), left)
        past = self.backward.after(self.past, cost)
        # What earlier moments, and this one, can still bear of what is to come.
        bearable = max(0.0, min(self.room - cost, self.alpha * (1 - _HAIR) - past))
        room = _inverse(self.forward, bearable)
        return replace(self, past=past, room=room, count=self.count + 1)

    def _within(self, later: float) -> float:
        """The largest budget such that, with `later` to come, no moment leaks over alpha."""
        return _largest_budget(self.alpha, self.backward(self.past), self.room, later)


# Streams of one plan that released as often stand at the same place: most searches come again.


@lru_cache(maxsize=1 << 14)
def _largest_budget(alpha: float, carried: float, room: float, later: float) -> float:
    def kept(epsilon: float) -> bool:
        here = up(up(carried + epsilon) + later) <= alpha * (1 - _HAIR)
        return here and up(epsilon + later) <= room

    return largest(kept, alpha)


@lru_cache(maxsize=1 << 14)
def _inverse(loss: LossFunction, value: float) -> float:
    return loss.inverse(value)


@dataclass(frozen=True, slots=True)
class PlannedAccount:
    """A stream of a known number of releases, with a budget for each of them.

    What a release leaves of its budget is not handed on: the others are certified together.

    Attributes:
        budgets: With which no moment leaks more than alpha.
        count: Moments so far.
        stream: Whose it is, for messages.

    Examples:
        >>> import numpy as np
        >>> PlannedAccount(np.array([0.6, 0.3])).charged(0.5).allowance
        0.3
    """

    budgets: Floats = field(repr=False)
    count: int = 0
    stream: str = "temporal"

    @property
    def allowance(self) -> float:
        """The budget of the next release; nothing after the last one."""
        return float(self.budgets[self.count]) if self.count < self.budgets.size else 0.0

    def covers(self, cost: float) -> bool:
        """Whether there is a release left, and its budget is no less."""
        planned = self.count < self.budgets.size
        return checks.leakage("epsilon", cost) <= self.allowance and planned

    def charged(self, cost: float) -> PlannedAccount:
        """After a release of this leakage by itself; 0 for a moment without one.

        Raises:
            BudgetExceeded: If its budget is less, or all planned releases have happened.
        """
        if not self.covers(cost):
            left = TemporalDP(self.allowance)
            raise BudgetExceeded(self.stream, self.count, TemporalDP(cost), left)
        return replace(self, count=self.count + 1)


TemporalAccount = EndlessAccount | PlannedAccount
