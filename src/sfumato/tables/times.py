"""Times of rows: numbers or ISO 8601, however they are written, and which of two comes first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum

from sfumato.models.encoding import Unreadable

_DIGITS = 28
"""What a decimal keeps; nanoseconds since 1970 have 19."""
_RULE = "must be a number or a time as in 2024-05-01T08:00:00"


class Late(StrEnum):
    """What becomes of a row whose time lies before that of the last row of its stream.

    Attributes:
        REFUSE: Nothing is released for it, and the row is named.
        ACCEPT: It is released as the next value of its stream, as it came.
    """

    REFUSE = "refuse"
    ACCEPT = "accept"


@dataclass(frozen=True, slots=True)
class Time:
    """A moment, written in one way only: the same time is the same event.

    Attributes:
        text: The one way to write it.
        value: To compare it with others of its kind.

    Examples:
        >>> Time.of("2024-05-01 08:00").text, Time.of(7.0).text, Time.of("7").text
        ('2024-05-01T08:00:00', '7', '7')
        >>> Time.of("2024-05-01T10:00+02:00").text
        '2024-05-01T08:00:00+00:00'
    """

    text: str
    value: Decimal | datetime

    @classmethod
    def of(cls, raw: object) -> Time:
        """The time in a cell, or the rule that was broken."""
        if isinstance(raw, bool) or raw is None or raw == "":
            raise Unreadable("must not be empty" if not isinstance(raw, bool) else _RULE)
        if isinstance(raw, datetime):
            return cls._of_calendar(raw)
        if isinstance(raw, date):
            return cls._of_calendar(datetime(raw.year, raw.month, raw.day))
        if isinstance(raw, int | float):
            return cls._of_number(repr(raw))
        if not isinstance(raw, str):
            raise Unreadable(_RULE)
        try:
            return cls._of_number(raw.strip())
        except InvalidOperation:
            return cls._of_text(raw.strip())

    @classmethod
    def _of_number(cls, text: str) -> Time:
        number = Decimal(text)
        finite = number.is_finite() and abs(number.adjusted()) < _DIGITS
        if not finite or len(number.as_tuple().digits) > _DIGITS:
            raise Unreadable(f"must be a finite number of at most {_DIGITS} digits")
        # Adding 0 takes the sign off -0.
        return cls(f"{(number + 0).normalize():f}", number)

    @classmethod
    def _of_text(cls, text: str) -> Time:
        try:
            return cls._of_calendar(datetime.fromisoformat(text))
        except ValueError:
            raise Unreadable(_RULE) from None

    @classmethod
    def _of_calendar(cls, time: datetime) -> Time:
        if time.tzinfo is not None:
            time = time.astimezone(UTC)
        return cls(time.isoformat(), time)

    def before(self, other: Time) -> bool:
        """Whether it is earlier; a number and a calendar, or clocks with and without zone, clash.

        Examples:
            >>> Time.of("2").before(Time.of("10"))
            True
        """
        try:
            return bool(self.value < other.value)  # type: ignore[operator]
        except TypeError:
            raise Unreadable(
                "must be of one kind throughout: numbers, or times all with or all without a zone"
            ) from None
