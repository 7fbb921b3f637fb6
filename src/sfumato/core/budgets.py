"""How a budget is spread over the steps of a stream.

Every rule answers one question from public things alone: how much may the next step leak?
Steps are charged what they really leak, so what one leaves over is there for the others.

A step is a value of the stream. A batch of several values is charged at its last value, and may
leak what its values could have leaked one by one; under a `Window` every batch counts that has
a value in the window.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple, TypeVar

import numpy as np

from sfumato.core import checks, limits
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import LDP, SIP
from sfumato.core.ledger import Charge, Ledger, Ledgers, sum_up
from sfumato.core.numerics import UNIT, add_up
from sfumato.core.periods import Period

Amount = TypeVar("Amount", float, Floats)
_SIP, _LDP = attrgetter("sip"), attrgetter("ldp")
# Reads the sum, or the charge, under one of the two certificates.
Part = Callable[[Ledger | Charge], float]

# An allowance below this buys nothing: the step releases a constant, which is free.
USELESS_BELOW = 1e-9
# The part of its even share that every step of a window is sure of. What silent steps leave over
# is handed on as long as that much stays for each step to come.
FLOOR = 0.5


class Allowance(NamedTuple):
    """What the next step may leak: under the model, and whatever the model (None: no cap).

    In a pause between bursts it may leak nothing, and yet the budget is not gone.
    """

    sip: float
    ldp: float | None
    pause: bool = False

    @property
    def exhausted(self) -> bool:
        """Whether the budget is gone: not even something tiny is left."""
        gone = self.sip <= 0.0 or (self.ldp is not None and self.ldp <= 0.0)
        return gone and not self.pause

    @property
    def useful(self) -> bool:
        """Whether the step may tell anything; if not, a constant is all it can release."""
        return self.sip >= USELESS_BELOW and (self.ldp is None or self.ldp >= USELESS_BELOW)

    def __str__(self) -> str:
        cap = "" if self.ldp is None else f" and {LDP(self.ldp)}"
        return f"{SIP(self.sip)}{cap}"

    def covers(self, sip: float, ldp: float) -> bool:
        """Whether a step with these leakages is within bounds."""
        return sip <= self.sip and (self.ldp is None or ldp <= self.ldp)


class _Rule(ABC):
    """What all rules share: a limit under each certificate, of which a step gets a share."""

    __slots__ = ()
    sip: SIP
    ldp: LDP | None

    def __post_init__(self) -> None:
        checks.positive("budget.sip", self.sip.epsilon)
        if self.ldp is not None:
            checks.positive("budget.ldp", self.ldp.epsilon)
        for name, limit in (("budget.sip.delta", self.sip), ("budget.ldp.delta", self.ldp)):
            if limit is not None and limit.delta:
                raise InvalidParameter(name, limit.delta, "be 0: every step is pure")

    @property
    def memory(self) -> int:
        """How many past charges must be known one by one."""
        return 0

    @property
    def limits(self) -> Floats:
        """Both limits; infinite where there is no cap."""
        return np.array([self.sip.epsilon, math.inf if self.ldp is None else self.ldp.epsilon])

    def allowance(self, ledger: Ledger, values: int = 1, longest: int | None = None) -> Allowance:
        """What the next step may leak, or a batch of `values`, of which none has over `longest`."""
        most, cap = longest or values, self.ldp
        sip = self._share(self.sip.epsilon, ledger, _SIP, values, most)
        ldp = None if cap is None else self._share(cap.epsilon, ledger, _LDP, values, most)
        return Allowance(sip, ldp)

    @abstractmethod
    def _share(self, limit: float, ledger: Ledger, part: Part, values: int, longest: int) -> float:
        """What the next batch may leak under one of the certificates."""

    @abstractmethod
    def allowances(self, ledgers: Ledgers, which: Ints, values: int = 1) -> Floats:
        """The same for many streams: one row each, infinite where there is no cap."""

    def pauses(self, ledgers: Ledgers, which: Ints, values: int = 1) -> Bools:
        """Which of many streams are between two bursts; none, unless a rule has pauses."""
        return np.zeros(len(which), dtype=np.bool_)

    def most_at_once(self, batch: int = 1) -> float:
        """The most that a single value, or a batch, may ever leak under the model."""
        return self.sip.epsilon


@dataclass(frozen=True, slots=True)
class PerStep(_Rule):
    """The same bound for every step, for ever; the sum grows without limit.

    Examples:
        >>> PerStep(SIP(0.2)).allowance(Ledger()).sip
        0.2
    """

    sip: SIP
    ldp: LDP | None = None

    def _share(self, limit: float, ledger: Ledger, part: Part, values: int, longest: int) -> float:
        return _times(limit, values)

    def allowances(self, ledgers: Ledgers, which: Ints, values: int = 1) -> Floats:
        """The same for many streams: one row each, infinite where there is no cap."""
        return np.tile([_times(limit, values) for limit in self.limits], (len(which), 1))

    def most_at_once(self, batch: int = 1) -> float:
        """The most that a single value, or a batch, may ever leak under the model."""
        return self.sip.epsilon * batch


@dataclass(frozen=True, slots=True)
class Horizon(_Rule):
    """A total over a known number of steps; what is left is shared evenly by those to come.

    Examples:
        >>> Horizon(SIP(10.0), steps=50).allowance(Ledger()).sip
        0.2
    """

    sip: SIP
    steps: int
    ldp: LDP | None = None

    def __post_init__(self) -> None:
        _Rule.__post_init__(self)
        checks.count("steps", self.steps)

    def _share(self, limit: float, ledger: Ledger, part: Part, values: int, longest: int) -> float:
        return _even_share(limit, part(ledger), self.steps - ledger.count, values)

    def allowances(self, ledgers: Ledgers, which: Ints, values: int = 1) -> Floats:
        """The same for many streams: one row each, infinite where there is no cap."""
        left = (self.steps - ledgers.counts[which])[:, None]
        rest = all_left(self.limits, ledgers.spent[which])
        share = rest / np.maximum(left, 1) * values
        share = np.where((left <= values) | np.isinf(share), rest, np.nextafter(share, 0.0))
        return np.where((left > 0) | np.isinf(share), share, 0.0)


@dataclass(frozen=True, slots=True)
class Window(_Rule):
    r"""A total over **any** `width` successive steps, for ever; it never runs dry.

    A step may use its even share and an even part of what the last `width - 1` steps left over, or
    used beyond theirs, within two bounds. With $B$ the total, $W$ the width, $L$ the longest batch,
    $f$ a value's `FLOOR` and $S_j$ what was charged to the last $j$ values, a batch of $v$ values
    may leak at most

    $$\min\Big(B - R(W - 1),\ \min_{1 \le j < W} B - S_j - R(W - j - v)\Big), \quad
      R(n) = (n + L - 1) f \text{ for } n > 0, \text{ else } 0$$

    and is sure of $v f$. Here $R(n)$ is what those batches to come are sure of that have one of the
    next $n$ values. Before every batch $S_j + R(W - j) \le B$ for $1 \le j < W$: nothing was
    charged before the first one, and a batch within its bound keeps it so. Hence it is at least
    $v f$, because $R(W - j) - R(W - j - v) \ge v f$ and $(W + 2 L - 2) f \le B$. In floating point
    it is lower by at most $W + 8$ roundings of $B$, which is far below $f$.

    Examples:
        >>> from sfumato.core.ledger import Charge
        >>> budget, ledger = Window(SIP(1.0), width=4), Ledger()
        >>> budget.allowance(ledger).sip
        0.25
        >>> budget.allowance(ledger.charged(Charge(0.0, 0.0), budget.memory)).sip
        0.3125
    """

    sip: SIP
    width: int
    ldp: LDP | None = None

    def __post_init__(self) -> None:
        _Rule.__post_init__(self)
        if checks.count("width", self.width) > limits.WINDOW:
            rule = f"be at most {limits.WINDOW:,}: every stream keeps what each of these steps cost"
            raise InvalidParameter("window", self.width, f"{rule}; a horizon may be longer")

    @property
    def memory(self) -> int:
        """All of a window but the step to come."""
        return self.width - 1

    def _share(self, limit: float, ledger: Ledger, part: Part, values: int, longest: int) -> float:
        recent = ledger.recent[-self.memory :] if self.memory else ()
        charges = [part(charge) for charge in recent]
        return _window_share(limit, charges, self.width, values, longest)

    def allowances(self, ledgers: Ledgers, which: Ints, values: int = 1) -> Floats:
        """The same for many streams: one row each, infinite where there is no cap."""
        limits = self.limits
        steps = np.minimum(ledgers.counts[which], self.memory)[:, None]
        batches = _batches_within(self.width, values)
        each = limits / batches / values
        spent = np.zeros((len(which), 2))
        with np.errstate(invalid="ignore"):
            bound = limits - _reserve(self.width - 1, values, each)
            for back in range(1, self.width):
                # Empty places hold 0: they add nothing, and bound no more than the last charge did.
                spent = sum_up(spent, ledgers.recent[which, -back])
                reserved = _reserve(self.width - back - values, values, each)
                bound = np.minimum(bound, all_left(limits, spent) - reserved)
            left_over = each * steps - spent
            beyond = np.minimum(0.0, each * (steps + values - 1) - spent)
            wish = each * values + np.where(left_over > 0, left_over, beyond) / batches
            share = np.maximum(0.0, np.minimum(np.maximum(wish, FLOOR * each * values), bound))
        return np.where(np.isinf(limits), np.inf, share)

    def most_at_once(self, batch: int = 1) -> float:
        """Its even share, and an even part of the shares of a window that told nothing."""
        total, batches = self.sip.epsilon, _batches_within(self.width, batch)
        each = total / batches / batch
        return min(total, (each * batch + each * (self.width - 1) / batches) * (1 + 1e-12))


@dataclass(frozen=True, slots=True)
class Geometric(_Rule):
    """A total over an endless stream: each step may use the same part of what is left.

    Examples:
        >>> Geometric(SIP(1.0), ratio=0.9).allowance(Ledger()).sip
        0.1
    """

    sip: SIP
    ratio: float
    ldp: LDP | None = None

    def __post_init__(self) -> None:
        _Rule.__post_init__(self)
        checks.proper_fraction("ratio", self.ratio)

    def _share(self, limit: float, ledger: Ledger, part: Part, values: int, longest: int) -> float:
        return (1 - self.ratio**values) * what_is_left(limit, part(ledger))

    def allowances(self, ledgers: Ledgers, which: Ints, values: int = 1) -> Floats:
        """The same for many streams: one row each, infinite where there is no cap."""
        return (1 - self.ratio**values) * all_left(self.limits, ledgers.spent[which])


@dataclass(frozen=True, slots=True)
class PerPeriod(_Rule):
    """A total in each period of event time, such as a day; with the next one it begins anew.

    What is left of it is shared evenly by the values that are still expected. A value beyond them,
    or where no number is expected, may use all that is left, up to its cap. Two periods that meet
    may leak twice the total around the moment between them.

    Its ledger is that of the current period alone (`PeriodLedger`).

    Attributes:
        sip: The total of a period under the model.
        period: What it is for.
        steps: Values of a stream that are expected in a period.
        cap: The most that a single value may leak.
        ldp: The total of a period whatever the model.

    Examples:
        >>> PerPeriod(SIP(10.0), Period("day"), cap=SIP(0.5)).allowance(Ledger()).sip
        0.5
        >>> PerPeriod(SIP(10.0), Period("day"), steps=50).allowance(Ledger()).sip
        0.2
    """

    sip: SIP
    period: Period
    steps: int | None = None
    cap: SIP | None = None
    ldp: LDP | None = None

    def __post_init__(self) -> None:
        _Rule.__post_init__(self)
        if self.steps is None and self.cap is None:
            rule = "be given, or a cap: else the first value of a period may use all of it"
            raise InvalidParameter("steps", None, rule)
        if self.steps is not None:
            checks.count("steps", self.steps)
        if self.cap is not None:
            checks.positive("cap", self.cap.epsilon)
            if self.cap.delta:
                raise InvalidParameter("cap.delta", self.cap.delta, "be 0: every step is pure")

    def allowance(self, ledger: Ledger, values: int = 1, longest: int | None = None) -> Allowance:
        """What the next step may leak, given what was spent in its period."""
        due = _Rule.allowance(self, ledger, values, longest)
        return Allowance(min(due.sip, self.most_at_once(values)), due.ldp)

    def _share(self, limit: float, ledger: Ledger, part: Part, values: int, longest: int) -> float:
        left = what_is_left(limit, part(ledger))
        if left < USELESS_BELOW:
            return 0.0  # crumbs that rounding left over are no budget
        if self.steps is None:
            return left
        return _even_share(limit, part(ledger), max(self.steps - ledger.count, 1), values)

    def allowances(self, ledgers: Ledgers, which: Ints, values: int = 1) -> Floats:
        """The same for many streams: one row each, infinite where there is no cap."""
        told = (self.allowance(ledgers[stream], values) for stream in which.tolist())
        rows = [(due.sip, math.inf if due.ldp is None else due.ldp) for due in told]
        return np.array(rows, dtype=np.float64).reshape(-1, 2)

    def most_at_once(self, batch: int = 1) -> float:
        """The most that a single value, or a batch, may ever leak under the model."""
        cap = math.inf if self.cap is None else self.cap.epsilon * batch
        return min(self.sip.epsilon, cap)


Budget = PerStep | Horizon | Window | Geometric | PerPeriod


def as_budget(budget: Budget | SIP) -> Budget:
    """A plain `SIP` amount means that much for every step."""
    return PerStep(budget) if isinstance(budget, SIP) else budget


def all_left(totals: Floats, spent: Floats) -> Floats:
    """`what_is_left` for many streams."""
    with np.errstate(invalid="ignore"):
        left = np.maximum(0.0, totals - spent - 8 * UNIT * totals)
    return np.where((spent == 0.0) | np.isinf(totals), totals, left)


def what_is_left(total: float, spent: float) -> float:
    """What a total leaves after what was spent."""
    # A few units less, so that the sum in a ledger, rounded up, stays within the total.
    return max(0.0, total - spent - 8 * UNIT * total) if spent else total


def _times(part: float, values: int) -> float:
    """A product that is never above the exact one; no limit stays none."""
    if values == 1 or math.isinf(part):
        return part
    return math.nextafter(part * values, 0.0)


def _even_share(total: float, spent: float, steps_left: int, values: int) -> float:
    if steps_left <= 0:
        return 0.0
    if steps_left <= values:
        return what_is_left(total, spent)
    return math.nextafter(what_is_left(total, spent) / steps_left * values, 0.0)


def _batches_within(width: int, values: int) -> int:
    """How many batches of this length can have a value in one window."""
    return 1 + -(-(width - 1) // values)


def _reserve(values: int, longest: int, each: Amount) -> Amount:
    """What is kept for the batches to come that have one of the next `values` values."""
    return (values + longest - 1) * (FLOOR * each) if values > 0 else 0.0 * each


def _window_share(
    total: float, recent: Sequence[float], width: int, values: int, longest: int
) -> float:
    """What the next batch may leak in a window; see `Window` for the rule and its proof."""
    batches = _batches_within(width, longest)
    each = total / batches / longest
    bound = total - _reserve(width - 1, longest, each)
    spent = 0.0
    for back, charge in enumerate(reversed(recent), start=1):
        spent = add_up(spent, charge)
        reserved = _reserve(width - back - values, longest, each)
        bound = min(bound, what_is_left(total, spent) - reserved)
    left_over = each * len(recent) - spent
    # Batches of the last `width - 1` values may have begun before them.
    beyond = min(0.0, each * (len(recent) + longest - 1) - spent)
    wish = each * values + (left_over if left_over > 0 else beyond) / batches
    return max(0.0, min(max(wish, FLOOR * each * values), bound))
