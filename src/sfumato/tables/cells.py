"""Cells of a table: names, missing values and times. What breaks a rule is named, never quoted.

One rule for every command: the same cell means the same in every format and every job.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import TypeVar

from sfumato.core.alphabet import MISSING_SYMBOL as MISSING_SYMBOL
from sfumato.models.encoding import Raw, Unreadable, text
from sfumato.models.encoding import is_missing as is_missing
from sfumato.tables.problems import BadTable

Value = TypeVar("Value")
_DIGITS = 28
"""What a decimal keeps; nanoseconds since 1970 have 19."""
_DAY = 10
_RULE = "must be a number or a time as in 2024-05-01T08:00:00"


def stream_name(owner: Raw, column: str, source: str, row: int) -> str:
    """The name of a stream as text, the same in every format, or the rule that it breaks."""
    try:
        return text(owner)
    except Unreadable as problem:
        raise BadTable(source, row, f"column {column!r} {problem}") from None


def read_each(column: Sequence[Raw], read: Callable[[Raw], Value], source: str) -> list[Value]:
    """Read every value of a column, or name the row that breaks the rule."""
    found: list[Value] = []
    try:
        for value in column:
            found.append(read(value))
    except Unreadable as problem:
        raise BadTable(source, len(found) + 1, f"the value {problem}") from None
    return found


class Missing(StrEnum):
    """What becomes of a missing value.

    Attributes:
        REFUSE: Nothing is released, and the row is named.
        DROP: The row leaves out; how many rows are left shows.
        SYMBOL: It is a symbol of its own, `(missing)`, as private as any other.
        SKIP: Nothing leaves for it, but its moment passes: for values over time.

    Examples:
        >>> Missing("drop"), ", ".join(Missing)
        (<Missing.DROP: 'drop'>, 'refuse, drop, symbol, skip')
    """

    REFUSE = "refuse"
    DROP = "drop"
    SYMBOL = "symbol"
    SKIP = "skip"


def missing_rows(*columns: Sequence[Raw]) -> list[int]:
    """The rows, counted from 0, in which a cell of any of the columns is missing.

    Examples:
        >>> missing_rows([1, None, 3, 4], ["a", "b", "", "d"])
        [1, 2]
    """
    rows = zip(*columns, strict=True)
    return [row for row, cells in enumerate(rows) if any(is_missing(cell) for cell in cells)]


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
        clock: Whether the cell told more than a day; the beginning of the day is meant without.

    Examples:
        >>> Time.of("2024-05-01 08:00").text, Time.of(7.0).text, Time.of("7").text
        ('2024-05-01T08:00:00', '7', '7')
        >>> Time.of("2024-05-01T10:00+02:00").text
        '2024-05-01T08:00:00+00:00'
    """

    text: str
    value: Decimal | datetime
    clock: bool = field(default=True, compare=False)

    @classmethod
    def of(cls, raw: object) -> Time:
        """The time in a cell, or the rule that was broken."""
        if isinstance(raw, bool) or raw is None or raw == "":
            raise Unreadable("must not be empty" if not isinstance(raw, bool) else _RULE)
        if isinstance(raw, datetime):
            return cls._of_calendar(raw)
        if isinstance(raw, date):
            return cls._of_calendar(datetime(raw.year, raw.month, raw.day), clock=False)
        if isinstance(raw, int | float):
            return cls._of_number(repr(raw))
        if not isinstance(raw, str):
            raise Unreadable(_RULE)
        try:
            return cls._of_number(raw.strip())
        except InvalidOperation:
            return cls._of_text(raw.strip())

    @classmethod
    def _of_number(cls, word: str) -> Time:
        number = Decimal(word)
        finite = number.is_finite() and abs(number.adjusted()) < _DIGITS
        if not finite or len(number.as_tuple().digits) > _DIGITS:
            raise Unreadable(f"must be a finite number of at most {_DIGITS} digits")
        # Adding 0 takes the sign off -0.
        return cls(f"{(number + 0).normalize():f}", number)

    @classmethod
    def _of_text(cls, word: str) -> Time:
        try:
            # The longest way to write a day alone is 2024-05-01, or 2024-W18-3.
            return cls._of_calendar(datetime.fromisoformat(word), clock=len(word) > _DAY)
        except (ValueError, OverflowError):  # in the year 1 a zone may lead out of the calendar
            raise Unreadable(_RULE) from None

    @classmethod
    def _of_calendar(cls, time: datetime, *, clock: bool = True) -> Time:
        if time.tzinfo is not None:
            time = time.astimezone(UTC)
        return cls(time.isoformat(), time, clock)

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
