"""Amounts of leakage with their unit, for people who have read no paper."""

from __future__ import annotations

from sfumato.core import portable
from sfumato.core.guarantees import LDP, LIP, SIP, ApproxDP, PureDP, TemporalDP
from sfumato.core.printed import shown_up

Amount = SIP | LIP | LDP | PureDP | ApproxDP | TemporalDP

NO_PROMISE = "It promises nothing by itself"
"""How the words about a file begin that takes part in a promise and makes none."""


def amount(guarantee: Amount) -> str:
    """A guarantee as a number with its unit, and the notion that it is measured by.

    Examples:
        >>> amount(SIP(1.0)), amount(LDP(0.5))
        ('1 nat (SIP)', '0.5 nats (LDP)')
        >>> amount(ApproxDP(2.0, 1e-6))
        '2 nats (ApproxDP), except with probability 1e-06'
    """
    number = guarantee.alpha if isinstance(guarantee, TemporalDP) else guarantee.epsilon
    shown = shown_up(number)
    failing = 0.0 if isinstance(guarantee, TemporalDP) else guarantee.delta
    unit = "nat" if shown == "1" else "nats"
    told = f"{shown} {unit} ({type(guarantee).__name__})"
    return f"{told}, except with probability {shown_up(failing)}" if failing else told


def factor(nats: float) -> str:
    """The factor by which odds change at most.

    Examples:
        >>> factor(1.0)
        'a factor of 2.72'
    """
    # Beyond, nothing is promised, and the exponential would overflow.
    return f"a factor of {shown_up(portable.exp(min(nats, 700.0)), 3)}"
