"""Periods of event time that follow each other: hours, days, weeks, months, or so many seconds.

A period is public: it follows from the time of a value, which leaves beside it. Moments that have a
zone are counted in UTC. Those without one are taken as they are written, so that their days begin
at the midnight of the clock that wrote them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from sfumato.core import limits
from sfumato.core.errors import InvalidParameter

_EPOCH = datetime(1970, 1, 1)
_TICK = timedelta(microseconds=1)
_SECOND = 1_000_000
_HOURS = {"hour": 1, "day": 24, "week": 168}
_MONTH = "month"
NAMES = (*_HOURS, _MONTH)
_THURSDAY = 3 * 24 * 3600 * _SECOND
"""The first of January 1970 was a Thursday; weeks begin on Mondays."""


@dataclass(frozen=True, slots=True)
class Period:
    """A period of event time; each begins where the one before it ends.

    Attributes:
        name: `hour`, `day`, `week` (from Monday on), `month`, or a number of seconds from 1970 on.
            Where times are numbers it is a number of their units, from 0 on.

    Examples:
        >>> day = Period("day")
        >>> day.at(datetime(1970, 1, 2, 23, 59)), day.at(datetime(1970, 1, 3))
        (1, 2)
        >>> Period("week").at(datetime(1970, 1, 4)), Period("week").at(datetime(1970, 1, 5))
        (0, 1)
        >>> Period("900").at(Decimal("1799.5"))
        1
    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            self._length()

    def _length(self) -> int:
        """Seconds, or units of numbers."""
        word = self.name if isinstance(self.name, str) else ""
        if not (word.isascii() and word.isdecimal() and word[:1] != "0"):
            rule = f"be one of {', '.join(NAMES)}, or a whole number of seconds"
            raise InvalidParameter("the period", self.name, rule)
        if len(word) > len(str(limits.PERIOD)) or int(word) > limits.PERIOD:
            raise InvalidParameter("the period", self.name, f"be at most {limits.PERIOD:,} seconds")
        return int(word)

    @property
    def needs_clock(self) -> bool:
        """Whether a day alone does not tell the period."""
        return self.name not in ("day", "week", _MONTH)

    @property
    def hours(self) -> Fraction | None:
        """How long it is; None for months, which differ."""
        if self.name == _MONTH:
            return None
        named = _HOURS.get(self.name)
        return Fraction(self._length(), 3600) if named is None else Fraction(named)

    def at(self, moment: datetime | Decimal) -> int:
        """The number of the period that a moment lies in.

        Raises:
            InvalidParameter: If it is a number and the period one of the calendar.
        """
        if isinstance(moment, datetime):
            clock = moment if moment.tzinfo is None else moment.astimezone(UTC)
            return self.at_microsecond((clock.replace(tzinfo=None) - _EPOCH) // _TICK)
        if self.name in NAMES:
            rule = "be a date or a moment, such as 2024-05-01T08:00"
            raise InvalidParameter("time", "a number", f"{rule}: the budget is for each {self}")
        # Exact: a decimal would round the quotient of two numbers.
        return _stored(math.floor(Fraction(moment) / self._length()))

    def at_microsecond(self, moment: int) -> int:
        """The same for a moment in microseconds since 1970."""
        if self.name == _MONTH:
            try:
                day = _EPOCH + moment * _TICK
            except OverflowError:
                raise InvalidParameter("time", "another year", "lie in years 1 to 9999") from None
            return 12 * (day.year - 1970) + day.month - 1
        shift = _THURSDAY if self.name == "week" else 0
        hours = _HOURS.get(self.name)
        seconds = self._length() if hours is None else 3600 * hours
        return (moment + shift) // (seconds * _SECOND)

    def __str__(self) -> str:
        return self.name if self.name in NAMES else f"period of {self.name} s"


def _stored(number: int) -> int:
    """A number that a state can hold."""
    if not -(2**62) < number < 2**62:
        raise InvalidParameter("time", "another", "lie within 2^62 periods of 0")
    return number
