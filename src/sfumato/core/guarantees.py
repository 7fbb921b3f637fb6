r"""Units in which privacy is stated: frozen values, partially ordered, each its own kind.

`a <= b` reads "a leaks no more than b". Two guarantees of different kinds, or with
incomparable parameters, are simply not ordered: `a <= b` and `b <= a` are both False for the
same kind, and a `TypeError` across kinds. `+` composes two releases where the notion allows it.
`str()` is for people and rounds outward: what is printed is a promise that is kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self, TypeAlias

from sfumato.core import checks
from sfumato.core.errors import InvalidParameter
from sfumato.core.numerics import add_up
from sfumato.core.printed import shown_down, shown_up


class _Ordered(ABC):
    """`a <= b` between two of a kind; Python turns `b >= a` into it."""

    __slots__ = ()

    @abstractmethod
    def _within(self, other: Self) -> bool:
        """Whether the other promises no more than this one keeps."""

    def __le__(self, other: object) -> bool:
        return self._within(other) if isinstance(other, type(self)) else NotImplemented

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return self._within(other) and self != other


@dataclass(frozen=True, slots=True)
class _Approximate(_Ordered):
    """An amount `epsilon` that may fail with probability `delta`."""

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.leakage("epsilon", self.epsilon))
        object.__setattr__(self, "delta", checks.fraction("delta", self.delta))

    def __str__(self) -> str:
        tail = f", delta={shown_up(self.delta)}" if self.delta else ""
        return f"{type(self).__name__}({shown_up(self.epsilon)}{tail})"

    def _within(self, other: Self) -> bool:
        return self.epsilon <= other.epsilon and self.delta <= other.delta


class _Additive(_Approximate):
    """A notion under which the amounts of successive releases add up."""

    __slots__ = ()

    def __add__(self, other: Self) -> Self:
        if not isinstance(other, type(self)):
            return NotImplemented
        # Rounded up, or many small releases would add up to less than they tell.
        epsilon = add_up(self.epsilon, other.epsilon)
        return type(self)(epsilon, min(1.0, add_up(self.delta, other.delta)))


class SIP(_Additive):
    r"""Sequence information privacy: the adversary's belief moves by at most $e^{\pm\epsilon}$.

    $$\left|\log \frac{P(x_1^T \mid y_1^T)}{P(x_1^T)}\right| \le \epsilon$$

    for all sequences, except with probability $\delta$ over the outputs. The amounts of successive
    releases add up when each is measured against the belief of its own moment.

    Examples:
        >>> SIP(0.1) + SIP(0.2) <= SIP(0.31)
        True

    References:
        [SIP, Def. 1 and Thm. 1]
    """

    __slots__ = ()


class LIP(_Approximate):
    r"""Local information privacy of one release under one prior.

    $$P(y \in S \mid x) \le e^\epsilon P(y \in S) + \delta, \qquad
      P(y \in S) \le e^\epsilon P(y \in S \mid x) + \delta$$

    for every value and every set of outputs. (The paper's Definition 5 lets the first line fail
    by $e^\epsilon\delta$; its Corollaries 3 and 9 mean what is written here.)

    Two releases of the same value do **not** add up under this notion (the prior moves between
    them); measure the second against the moved belief and use `SIP`.

    Examples:
        >>> LIP(1.0) <= LIP(2.0), LIP(1.0) <= LIP(1.0, delta=0.01)
        (True, True)
        >>> LIP(0.5) + LIP(0.5)
        Traceback (most recent call last):
        TypeError: ...

    References:
        [LIP, Def. 5 and Cor. 9]
    """

    __slots__ = ()


class LDP(_Additive):
    r"""Local differential privacy: $P(y \mid x) \le e^\epsilon P(y \mid x') + \delta$, no model.

    Examples:
        >>> LDP(0.5) + LDP(0.25) <= LDP(0.76), LDP(1.0) <= LDP(0.5)
        (True, False)

    References:
        [LIP, Def. 1]
    """

    __slots__ = ()


class PureDP(_Additive):
    """Differential privacy of a database: neighbours differ in one record.

    Examples:
        >>> PureDP(0.5) + PureDP(0.25) <= PureDP(0.76)
        True

    References:
        [Dwork2006, Def. 1]
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        _Approximate.__post_init__(self)
        if self.delta != 0.0:
            raise InvalidParameter("delta", self.delta, "be 0; use ApproxDP")


class ApproxDP(_Additive):
    """Approximate differential privacy: pure up to a failure probability `delta`.

    Examples:
        >>> ApproxDP(1.0, 1e-6) <= ApproxDP(2.0, 1e-5)
        True
        >>> ApproxDP(1.0, 1e-5) <= ApproxDP(2.0, 1e-6)
        False
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class TemporalDP(_Ordered):
    r"""What one event of a correlated stream leaks in all, through its past and its future.

    Examples:
        >>> TemporalDP(1.0) <= TemporalDP(2.0)
        True

    References:
        [TPL, Def. 8]
    """

    alpha: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", checks.leakage("alpha", self.alpha))

    def __str__(self) -> str:
        return f"TemporalDP({shown_up(self.alpha)})"

    def _within(self, other: TemporalDP) -> bool:
        return self.alpha <= other.alpha


@dataclass(frozen=True, slots=True)
class Disclosure(_Ordered):
    """An attacker finds every attribute within `accuracy` with probability at most `delta`.

    A wider window with no more probability is the stronger promise.

    Examples:
        >>> Disclosure(accuracy=2.0, delta=0.1) <= Disclosure(accuracy=1.0, delta=0.1)
        True

    References:
        [MDDP, Def. 5]
    """

    accuracy: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "accuracy", checks.finite("accuracy", self.accuracy))
        object.__setattr__(self, "delta", checks.fraction("delta", self.delta))

    def __str__(self) -> str:
        # A wider window is the stronger promise, so its text is rounded the other way.
        near, share = shown_down(self.accuracy), shown_up(self.delta)
        return f"Disclosure(accuracy={near}, delta={share})"

    def _within(self, other: Disclosure) -> bool:
        return self.delta <= other.delta and self.accuracy >= other.accuracy


Guarantee: TypeAlias = SIP | LIP | LDP | PureDP | ApproxDP | TemporalDP | Disclosure
