"""The rules of a budget for periods of event time: what may come together, and what it promises."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sfumato.core.budgets import PerPeriod
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import LDP, SIP
from sfumato.core.periods import NAMES, Period

if TYPE_CHECKING:
    from sfumato.stream.release_spec import ReleaseSpec


def budget_by_time(spec: ReleaseSpec, period: Period) -> PerPeriod:
    """The budget of rules that are for each period of event time.

    Raises:
        InvalidParameter: If they ask for what such a budget does not have.

    Examples:
        >>> from sfumato.stream.release_spec import ReleaseSpec
        >>> budget_by_time(ReleaseSpec(budget=10.0, per="day", cap=0.5), Period("day")).cap
        SIP(epsilon=0.5, delta=0.0)
    """
    for name, value in (
        ("--every", spec.every),
        ("--first", spec.first),
        ("--batch", spec.batch),
        ("--window", spec.window),
        ("--epsilon", spec.epsilon),
    ):
        if value is not None:
            rule = "not come with --per, which has --budget, and --cap or --horizon"
            raise InvalidParameter(name, value, rule)
    if spec.budget is None or (spec.cap is None and spec.horizon is None):
        rule = (
            "come with --budget B, and with --cap C, the most that a value may leak, or --horizon "
            "N, the values of a stream that are expected in a period"
        )
        raise InvalidParameter("--per", period.name, rule)
    return PerPeriod(
        SIP(spec.budget),
        period,
        spec.horizon,
        None if spec.cap is None else SIP(spec.cap),
        None if spec.ldp is None else LDP(spec.ldp),
    )


def words(period: Period) -> str:
    """A period as a sentence names it.

    Examples:
        >>> words(Period("day")), words(Period("900"))
        ('day', '900 seconds')
    """
    return period.name if period.name in NAMES else f"{period.name} seconds"


def most_within(own: Period, total: float, asked: Period) -> float:
    """The most that a stream may leak within one period, if another one is what its budget is for.

    Hours, days and weeks lie within each other; of others nothing is promised.

    Args:
        own: What the budget is for.
        total: Its total.
        asked: What is asked about.

    Examples:
        >>> day, week = Period("day"), Period("week")
        >>> most_within(day, 2.0, week), most_within(week, 2.0, day)
        (14.0, 2.0)
    """
    if own == asked:
        return total
    if own.name not in NAMES or asked.name not in NAMES or None in (own.hours, asked.hours):
        return math.inf
    assert own.hours is not None and asked.hours is not None
    return total * max(1, math.ceil(asked.hours / own.hours))
