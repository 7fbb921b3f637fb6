r"""Budgets that are spent in bursts, with pauses between them.

What is learnt about a value that stays is good for the values after it: on sticky data a few large
channels tell far more than many small ones at the same total. After a step that was charged
anything, the next `every - 1` steps pause: the best constant under the belief leaves, which costs
exactly 0, and nothing is exhausted. A step that may tell something and does not, since no channel
of its size would lower the loss, ends no pause and begins none: the next step tries again. So a
burst waits for a value that is missing, too. All of this is known to whoever sees the outputs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.core import checks, limits
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.budgets import Allowance, Budget, Horizon, Part, Window, all_left, what_is_left
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import LDP, SIP
from sfumato.core.ledger import Ledger, Ledgers
from sfumato.core.numerics import UNIT

# A burst so many times the others leaves them a part of the budget that is far above rounding.
_MOST_FIRST = 1_000


@dataclass(frozen=True, slots=True)
class Bursts(Horizon):
    r"""A total over a known number of steps, spent in bursts that lie `every` steps apart.

    With $m$ bursts still to come, the next one may leak $1/m$ of what is left; the very first one,
    which meets a belief that knows nothing yet, $f/(f + m - 1)$ of it, where $f$ is `first`.

    Attributes:
        every: Steps from one burst to the next.
        first: How many times what the others get is for the first burst.
        cap: The most that a single value may leak; what it holds back goes to the later bursts.

    Examples:
        >>> from sfumato.core.ledger import Charge
        >>> budget, ledger = Bursts(SIP(3.0), steps=12, every=6), Ledger()
        >>> budget.allowance(ledger).sip
        1.5
        >>> after = ledger.charged(Charge(1.5, 2.0), budget.memory)
        >>> budget.allowance(after).pause, budget.allowance(after).exhausted
        (True, False)
    """

    every: int = 2
    first: float = 1.0
    cap: SIP | None = None

    def __post_init__(self) -> None:
        Horizon.__post_init__(self)
        _check_every(self.every)
        if checks.positive("first", self.first) > _MOST_FIRST:
            rule = f"be at most {_MOST_FIRST:,}, so that something is left for the others"
            raise InvalidParameter("first", self.first, rule)
        _check_cap(self.cap)

    @property
    def memory(self) -> int:
        """The steps of a pause."""
        return self.every - 1

    def allowance(self, ledger: Ledger, values: int = 1, longest: int | None = None) -> Allowance:
        """What the next step may leak, or a batch of `values`: nothing in a pause."""
        if ledger.count < self.steps and _pauses(ledger, self.every - values):
            return _silence(self.ldp)
        return _capped(Horizon.allowance(self, ledger, values, longest), self.cap, values)

    def _share(self, limit: float, ledger: Ledger, part: Part, values: int, longest: int) -> float:
        steps, spent = self.steps - ledger.count, part(ledger)
        if steps <= 0:
            return 0.0
        left, bursts = what_is_left(limit, spent), -(-steps // max(self.every, values))
        if bursts == 1:
            return left
        parts = bursts if spent else (self.first + (bursts - 1)) / self.first
        return math.nextafter(left / parts, 0.0)

    def allowances(self, ledgers: Ledgers, which: Ints, values: int = 1) -> Floats:
        """The same for many streams: one row each, infinite where there is no cap."""
        steps, spent = (self.steps - ledgers.counts[which])[:, None], ledgers.spent[which]
        left, bursts = all_left(self.limits, spent), -(-steps // max(self.every, values))
        parts = np.where(spent > 0, bursts, (self.first + (bursts - 1)) / self.first)
        share = left / np.where(bursts <= 1, 1, parts)
        share = np.where((bursts == 1) | np.isinf(share), left, np.nextafter(share, 0.0))
        share[:, 0] = np.minimum(share[:, 0], _most(self.cap, values))
        silent = (steps <= 0) | self.pauses(ledgers, which, values)[:, None]
        return np.where(silent & np.isfinite(share), 0.0, share)

    def pauses(self, ledgers: Ledgers, which: Ints, values: int = 1) -> Bools:
        """Which of many streams are between two bursts."""
        waiting = _all_pause(ledgers, which, self.every - values)
        return waiting & (ledgers.counts[which] < self.steps)

    def most_at_once(self, batch: int = 1) -> float:
        """The most that a single value, or a batch, may ever leak under the model."""
        return min(self.sip.epsilon, _most(self.cap, batch))


@dataclass(frozen=True, slots=True)
class WindowBursts(Window):
    r"""A total over **any** `width` successive steps, spent in bursts `every` steps apart.

    A batch is charged at its last value, and two charges lie at least $N$ = `every` values apart. A
    window of $W$ values meets batches whose last values lie within $W + L - 1$ of each other, where
    $L$ is the longest batch: at most $k = \lceil (W + L - 1)/N \rceil$ charges, each of at most
    $1/k$ of the total. So no window is passed, and every burst finds the same share, for ever.

    Attributes:
        every: Steps from one burst to the next.
        cap: The most that a single value may leak.

    Examples:
        >>> WindowBursts(SIP(5.0), width=10, every=5).allowance(Ledger()).sip
        2.5
    """

    every: int = 2
    cap: SIP | None = None

    def __post_init__(self) -> None:
        Window.__post_init__(self)
        _check_every(self.every)
        _check_cap(self.cap)

    @property
    def memory(self) -> int:
        """The steps of a pause."""
        return self.every - 1

    def allowance(self, ledger: Ledger, values: int = 1, longest: int | None = None) -> Allowance:
        """What the next step may leak, or a batch of `values`: nothing in a pause."""
        if _pauses(ledger, self.every - values):
            return _silence(self.ldp)
        return _capped(Window.allowance(self, ledger, values, longest), self.cap, values)

    def _share(self, limit: float, ledger: Ledger, part: Part, values: int, longest: int) -> float:
        return self._even(limit, longest)

    def _even(self, limit: float, longest: int) -> float:
        bursts = self._bursts(longest)
        if bursts == 1 or math.isinf(limit):
            return limit
        # A few units less, so that the sum of a window, rounded up, stays within the total.
        return limit / bursts - 8 * UNIT * limit

    def _bursts(self, longest: int) -> int:
        return -(-(self.width + longest - 1) // self.every)

    def allowances(self, ledgers: Ledgers, which: Ints, values: int = 1) -> Floats:
        """The same for many streams: one row each, infinite where there is no cap."""
        shares = [self._even(float(limit), values) for limit in self.limits]
        shares[0] = min(shares[0], _most(self.cap, values))
        share = np.tile(shares, (len(which), 1))
        return np.where(self.pauses(ledgers, which, values)[:, None] & np.isfinite(share), 0, share)

    def pauses(self, ledgers: Ledgers, which: Ints, values: int = 1) -> Bools:
        """Which of many streams are between two bursts."""
        return _all_pause(ledgers, which, self.every - values)

    def most_at_once(self, batch: int = 1) -> float:
        """The most that a single value, or a batch, may ever leak under the model."""
        share = self.sip.epsilon / self._bursts(batch)
        return min(share, _most(self.cap, batch))


def spread_out(
    budget: Horizon | Window, every: int, first: float = 1.0, cap: SIP | None = None
) -> Horizon | Window:
    """The same total in bursts; with `every` at 1, as it is.

    Examples:
        >>> spread_out(Window(SIP(5.0), 10), every=5)
        WindowBursts(sip=SIP(epsilon=5.0, delta=0.0), width=10, ldp=None, every=5, cap=None)
    """
    if every == 1 and first == 1.0 and cap is None:
        return budget
    match budget:
        case Horizon():
            return Bursts(budget.sip, budget.steps, budget.ldp, every, first, cap)
        case Window():
            if first != 1.0:
                raise InvalidParameter("first", first, "be 1: a window has no first burst")
            return WindowBursts(budget.sip, budget.width, budget.ldp, every, cap)


def total_of(budget: Horizon | Window) -> Horizon | Window:
    """The same total without bursts, spread evenly."""
    match budget:
        case Horizon():
            return Horizon(budget.sip, budget.steps, budget.ldp)
        case Window():
            return Window(budget.sip, budget.width, budget.ldp)


def _check_every(every: int) -> None:
    if checks.count("every", every) > limits.WINDOW:
        rule = f"be at most {limits.WINDOW:,}: every stream keeps what each step of a pause cost"
        raise InvalidParameter("every", every, rule)


def _check_cap(cap: SIP | None) -> None:
    if cap is not None:
        checks.positive("cap", cap.epsilon)
        if cap.delta:
            raise InvalidParameter("cap.delta", cap.delta, "be 0: every step is pure")


def _silence(ldp: LDP | None) -> Allowance:
    return Allowance(0.0, None if ldp is None else 0.0, pause=True)


def _most(cap: SIP | None, values: int) -> float:
    return math.inf if cap is None else cap.epsilon * values


def _capped(due: Allowance, cap: SIP | None, values: int) -> Allowance:
    return due if cap is None else Allowance(min(due.sip, _most(cap, values)), due.ldp)


def pause_left(budget: Budget, ledger: Ledger) -> int:
    """How many of the coming steps belong to a pause, if values leave one by one.

    Examples:
        >>> from sfumato.core.ledger import Charge
        >>> budget = Bursts(SIP(3.0), steps=12, every=6)
        >>> pause_left(budget, Ledger().charged(Charge(1.5, 2.0), budget.memory))
        5
    """
    match budget:
        case Bursts():
            left = budget.steps - ledger.count
            return min(_pause(ledger, budget.every - 1), left) if left > 0 else 0
        case WindowBursts():
            return _pause(ledger, budget.every - 1)
        case _:
            return 0


def _pause(ledger: Ledger, back: int) -> int:
    """How long one of the last `back` steps still is among them that was charged anything."""
    recent = ledger.recent[-back:] if back > 0 else ()
    for ago, charge in enumerate(reversed(recent)):
        if charge.sip > 0 or charge.ldp > 0:
            return back - ago
    return 0


def _pauses(ledger: Ledger, back: int) -> bool:
    """Whether one of the last steps was charged anything."""
    return _pause(ledger, back) > 0


def _all_pause(ledgers: Ledgers, which: Ints, back: int) -> Bools:
    """`_pauses` for many streams."""
    if back <= 0:
        return np.zeros(len(which), dtype=np.bool_)
    return np.asarray((ledgers.recent[which, -back:] > 0).any(axis=(1, 2)))
