"""How a budget is spread over the steps of a stream.

Every rule answers one question from public things alone: how much may the next step leak?
Steps are charged what they really leak, so what one leaves over is there for the others.

A step is a value of the stream. A batch of several values is charged at its last value, and may
leak what its values could have leaked one by one; under a `Window` every batch counts that has
a value in the window.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato import _checks
from sfumato._numerics import UNIT, add_up
from sfumato.accounting.ledger import Ledger, Ledgers, sum_up
from sfumato.errors import InvalidParameter
from sfumato.guarantees import LDP, SIP

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EXHAUSTED_BELOW = 1e-9
"""An allowance below this buys nothing: the budget is gone."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What the next step may leak: under the model, and whatever the model (None: no cap)."""

    sip: float
    ldp: float | None

    @property
    def exhausted(self) -> bool:
        """Whether nothing useful may be released any more."""
        return self.sip < EXHAUSTED_BELOW or (self.ldp is not None and self.ldp < EXHAUSTED_BELOW)

    def __str__(self) -> str:
        cap = "" if self.ldp is None else f" and {LDP(self.ldp)}"
        return f"{SIP(self.sip)}{cap}"

    def covers(self, sip: float, ldp: float) -> bool:
        """Whether a step with these leakages is within bounds."""
        return sip <= self.sip and (self.ldp is None or ldp <= self.ldp)


@dataclass(frozen=True, slots=True)
class PerStep:
    """The same bound for every step, for ever; the sum grows without limit.

    Examples:
        >>> PerStep(SIP(0.2)).allowance(Ledger()).sip
        0.2
    """

    sip: SIP
    ldp: LDP | None = None

    def __post_init__(self) -> None:
        _check_limits(self.sip, self.ldp)

    @property
    def memory(self) -> int:
        """How many past charges must be known one by one."""
        return 0

    def allowance(self, ledger: Ledger, values: int = 1, longest: int | None = None) -> Allowance:
        """What the next step may leak, or a batch of `values`, of which none has over `longest`."""
        cap = None if self.ldp is None else _times(self.ldp.epsilon, values)
        return Allowance(_times(self.sip.epsilon, values), cap)

    def allowances(self, ledgers: Ledgers, which: Ints, values: int = 1) -> Floats:
        """The same for many streams: one row each, infinite where there is no cap."""
        return np.tile([_times(limit, values) for limit in _limits(self)], (len(which), 1))


@dataclass(frozen=True, slots=True)
class Horizon:
    """A total over a known number of steps; what is left is shared evenly by those to come.

    Examples:
        >>> Horizon(SIP(10.0), steps=50).allowance(Ledger()).sip
        0.2
    """

    sip: SIP
    steps: int
    ldp: LDP | None = None

    def __post_init__(self) -> None:
        _check_limits(self.sip, self.ldp)
        _checks.count("steps", self.steps)

    @property
    def memory(self) -> int:
        """How many past charges must be known one by one."""
        return 0

    def allowance(self, ledger: Ledger, values: int = 1, longest: int | None = None) -> Allowance:
        """What the next step may leak, or a batch of `values`, of which none has over `longest`."""
        left = self.steps - ledger.count
        return Allowance(
            _even_share(self.sip.epsilon, ledger.sip, left, values),
            None if self.ldp is None else _even_share(self.ldp.epsilon, ledger.ldp, left, values),
        )

    def allowances(self, ledgers: Ledgers, which: Ints, values: int = 1) -> Floats:
        """The same for many streams: one row each, infinite where there is no cap."""
        left = (self.steps - ledgers.counts[which])[:, None]
        whole = _all_left(_limits(self), ledgers.spent[which])
        share = whole / np.maximum(left, 1) * values
        share = np.where((left <= values) | np.isinf(share), whole, np.nextafter(share, 0.0))
        return np.where((left > 0) | np.isinf(share), share, 0.0)


@dataclass(frozen=True, slots=True)
class Window:
    """A total over **any** `width` successive steps, for ever.

    A step may use its even share and an even part of what the last `width - 1` steps left over.

    Examples:
        >>> Window(SIP(1.0), width=4).allowance(Ledger()).sip
        0.25
    """

    sip: SIP
    width: int
    ldp: LDP | None = None

    def __post_init__(self) -> None:
        _check_limits(self.sip, self.ldp)
        _checks.count("width", self.width)

    @property
    def memory(self) -> int:
        """How many past charges must be known one by one."""
        return self.width - 1

    def allowance(self, ledger: Ledger, values: int = 1, longest: int | None = None) -> Allowance:
        """What the next step may leak, or a batch of `values`, of which none has over `longest`."""
        recent = ledger.recent[-self.memory :] if self.memory else ()
        spent = (charge.sip for charge in recent)
        shape = (self.width, values, longest or values)
        sip = _window_share(self.sip.epsilon, spent, *shape)
        if self.ldp is None:
            return Allowance(sip, None)
        spent = (charge.ldp for charge in recent)
        return Allowance(sip, _window_share(self.ldp.epsilon, spent, *shape))

    def allowances(self, ledgers: Ledgers, which: Ints, values: int = 1) -> Floats:
        """The same for many streams: one row each, infinite where there is no cap."""
        limits, spent = _limits(self), np.zeros((len(which), 2))
        for place in range(self.memory):
            # Empty places hold 0, which adds nothing.
            spent = sum_up(spent, ledgers.recent[which, place])
        batches = _batches_within(self.width, values)
        each = limits / batches / values
        known = np.minimum(ledgers.counts[which], self.memory)[:, None]
        with np.errstate(invalid="ignore"):
            left_over = np.where(np.isinf(each), np.inf, each * known - spent)
            behind = np.minimum(0.0, each * (known + values - 1) - spent)
            behind = np.where(np.isinf(each), 0.0, behind)
        wish = each * values + np.where(left_over > 0, left_over / batches, behind)
        return np.minimum(wish, _all_left(limits, spent))


@dataclass(frozen=True, slots=True)
class Geometric:
    """A total over an endless stream: each step may use the same part of what is left.

    Examples:
        >>> Geometric(SIP(1.0), ratio=0.9).allowance(Ledger()).sip
        0.1
    """

    sip: SIP
    ratio: float
    ldp: LDP | None = None

    def __post_init__(self) -> None:
        _check_limits(self.sip, self.ldp)
        _checks.proper_fraction("ratio", self.ratio)

    @property
    def memory(self) -> int:
        """How many past charges must be known one by one."""
        return 0

    def allowance(self, ledger: Ledger, values: int = 1, longest: int | None = None) -> Allowance:
        """What the next step may leak, or a batch of `values`, of which none has over `longest`."""
        part = 1 - self.ratio**values
        return Allowance(
            part * _left(self.sip.epsilon, ledger.sip),
            None if self.ldp is None else part * _left(self.ldp.epsilon, ledger.ldp),
        )

    def allowances(self, ledgers: Ledgers, which: Ints, values: int = 1) -> Floats:
        """The same for many streams: one row each, infinite where there is no cap."""
        return (1 - self.ratio**values) * _all_left(_limits(self), ledgers.spent[which])


Budget = PerStep | Horizon | Window | Geometric


def as_budget(budget: Budget | SIP) -> Budget:
    """A plain `SIP` amount means that much for every step."""
    return PerStep(budget) if isinstance(budget, SIP) else budget


def _check_limits(sip: SIP, ldp: LDP | None) -> None:
    _checks.positive("budget.sip", sip.epsilon)
    for name, delta in (("budget.sip.delta", sip.delta), ("budget.ldp.delta", ldp and ldp.delta)):
        if delta:
            raise InvalidParameter(name, delta, "be 0: every step is pure")
    if ldp is not None:
        _checks.positive("budget.ldp", ldp.epsilon)


def _limits(budget: Budget) -> Floats:
    ldp = math.inf if budget.ldp is None else budget.ldp.epsilon
    return np.array([budget.sip.epsilon, ldp])


def _all_left(totals: Floats, spent: Floats) -> Floats:
    """`_left` for many streams."""
    with np.errstate(invalid="ignore"):
        left = np.maximum(0.0, totals - spent - 8 * UNIT * totals)
    return np.where((spent == 0.0) | np.isinf(totals), totals, left)


def _left(total: float, spent: float) -> float:
    # A few units less, so that the sum in a ledger, rounded up, stays within the total.
    return max(0.0, total - spent - 8 * UNIT * total) if spent else total


def _times(part: float, values: int) -> float:
    """A product that is never above the exact one."""
    return part if values == 1 else math.nextafter(part * values, 0.0)


def _even_share(total: float, spent: float, steps_left: int, values: int) -> float:
    if steps_left <= 0:
        return 0.0
    if steps_left <= values:
        return _left(total, spent)
    return math.nextafter(_left(total, spent) / steps_left * values, 0.0)


def _batches_within(width: int, values: int) -> int:
    """How many batches of this length can have a value in one window."""
    return 1 + -(-(width - 1) // values)


def _window_share(
    total: float, recent: Iterable[float], width: int, values: int, longest: int
) -> float:
    """An even share of a window, in which every batch counts that has a value there.

    A value gets the same part whatever the length of its batch, so that the window never runs dry:
    the batches of the last `width - 1` values have less than `width - 1 + longest` values.
    """
    charges = tuple(recent)
    spent = 0.0
    for charge in charges:
        spent = add_up(spent, charge)
    batches = _batches_within(width, longest)
    each = total / batches / longest
    left_over = each * len(charges) - spent
    behind = min(0.0, each * (len(charges) + longest - 1) - spent)
    wish = each * values + (left_over / batches if left_over > 0 else behind)
    return min(wish, _left(total, spent))
