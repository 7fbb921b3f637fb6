"""Phases of time that come again: hours of a day, days of a week, or values in turn.

A phase is public: it follows from the time of a value, which leaves beside it, or from its place in
the stream. It must never follow from the value itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import assert_never

from sfumato.core import checks, limits
from sfumato.core.errors import InvalidParameter


class Calendar(StrEnum):
    """What of a moment comes again."""

    WEEKDAY = "weekday"
    HOUR = "hour"
    HOUR_OF_WEEK = "hour-of-week"
    MONTH = "month"


PERIODS = {
    Calendar.WEEKDAY: 7,
    Calendar.HOUR: 24,
    Calendar.HOUR_OF_WEEK: 168,
    Calendar.MONTH: 12,
}


def calendar_phase(calendar: Calendar, moment: datetime) -> int:
    """Which phase of a calendar a moment lies in, counted from 0; Monday is the first day.

    Examples:
        >>> calendar_phase(Calendar.HOUR, datetime(2024, 5, 1, 8, 59))
        8
    """
    match calendar:
        case Calendar.WEEKDAY:
            return moment.weekday()
        case Calendar.HOUR:
            return moment.hour
        case Calendar.HOUR_OF_WEEK:
            return 24 * moment.weekday() + moment.hour
        case Calendar.MONTH:
            return moment.month - 1
        case _:
            assert_never(calendar)


@dataclass(frozen=True, slots=True)
class Cycle:
    """What comes again, and how many phases of it are told apart.

    Attributes:
        period: Phases of the calendar; or values after which all begins anew.
        phases: Into how many equal parts the period is cut: successive ones count as one phase.
        calendar: What the phases are of; None if values have them in turn, from 0 on.
        zoned: Whether times have a zone: their phases are those of UTC then. A model knows one kind
            of times, since the same moment has two hours.

    Examples:
        >>> day = Cycle.of("hour", phases=4)
        >>> day.at(datetime(2024, 5, 1, 8, 30)), day.at(datetime(2024, 5, 1, 23))
        (1, 3)
        >>> [Cycle.of("3").turn(place) for place in range(5)]
        [0, 1, 2, 0, 1]
    """

    period: int
    phases: int
    calendar: Calendar | None = None
    zoned: bool = False

    def __post_init__(self) -> None:
        checks.count("period", self.period, at_most=limits.SYMBOLS)
        checks.count("phases", self.phases, at_most=self.period)
        if self.calendar is not None and self.period != PERIODS[self.calendar]:
            rule = f"be {PERIODS[self.calendar]} for {self.calendar.value}"
            raise InvalidParameter("period", self.period, rule)
        if self.period % self.phases:
            rule = f"cut a period of {self.period} into equal parts"
            raise InvalidParameter("phases", self.phases, rule)

    @classmethod
    def of(cls, period: str, phases: int | None = None) -> Cycle:
        """From a number of values, or the name of a calendar.

        Args:
            period: So many values in turn, or `hour`, `weekday`, `hour-of-week` or `month`.
            phases: Into how many equal parts the period is cut; all that it has if not given.
        """
        calendar = Calendar(period) if period in tuple(Calendar) else None
        if calendar is None and not (period.isascii() and period.isdecimal()):
            rule = f"be a number of values, or one of {', '.join(Calendar)}"
            raise InvalidParameter("period", period, rule)
        count = int(period) if calendar is None else PERIODS[calendar]
        return cls(count, count if phases is None else phases, calendar)

    @property
    def in_turn(self) -> bool:
        """Whether the place in the stream is the phase; else the time of a value tells it."""
        return self.calendar is None

    def turn(self, place: int) -> int:
        """The phase of a value by its place in the stream, counted from 0."""
        return self._joined(place % self.period)

    def at(self, moment: datetime | Decimal) -> int:
        """The phase of a moment.

        Raises:
            InvalidParameter: If it is none of a calendar, or has a zone where others have none.
        """
        if self.calendar is None:
            raise InvalidParameter("period", self.period, "be the name of a calendar")
        if not isinstance(moment, datetime):
            rule = "be a date or a moment, such as 2024-05-01T08:00"
            raise InvalidParameter("time", "a number", rule)
        if (moment.tzinfo is not None) != self.zoned:
            kinds = ("a zone", "no zone") if self.zoned else ("no zone", "a zone")
            rule = f"have {kinds[0]}, as those of the model's history"
            raise InvalidParameter("time", kinds[1], rule)
        return self._joined(calendar_phase(self.calendar, moment))

    def _joined(self, place: int) -> int:
        return place * self.phases // self.period

    def __str__(self) -> str:
        kind = "values in turn" if self.calendar is None else self.calendar.value
        of = "" if self.phases == self.period else f" of {self.period}"
        return f"{self.phases}{of} phases ({kind})"
