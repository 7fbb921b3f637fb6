"""The time of a row, which is public: its order, and its phase of a week, a day or a year."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from sfumato.core.errors import InvalidParameter
from sfumato.models.cycle import PERIODS, calendar_phase
from sfumato.models.cycle import Calendar as Calendar
from sfumato.models.encoding import Raw
from sfumato.series.filter_banks import seasonal
from sfumato.series.filters import Estimate
from sfumato.tables.problems import BadTable


@dataclass(frozen=True, slots=True)
class Season:
    """A period: so many rows in turn, or phases of a calendar.

    Attributes:
        period: How many phases there are.
        calendar: What they are; None if rows have them in turn.

    Examples:
        >>> Season.of("7").period, Season.of("hour-of-week").period
        (7, 168)
        >>> Season.of("weekday").phases(["2011-01-01", "2011-01-03"], "days.csv")  # Monday is 0
        [5, 0]
    """

    period: int
    calendar: Calendar | None = None

    @classmethod
    def of(cls, text: str) -> Season:
        """From a whole number or the name of a calendar."""
        if text in tuple(Calendar):
            return cls(PERIODS[Calendar(text)], Calendar(text))
        if not text.isdecimal():
            raise InvalidParameter(
                "period", text, f"be a whole number, or one of {', '.join(Calendar)}"
            )
        return cls(int(text))

    def phases(self, cells: Sequence[Raw], source: str) -> list[int]:
        """The phase of each row, from its time."""
        return [self._phase(moment) for moment in moments(cells, source)]

    def estimate(self, cells: Sequence[Raw] | None, source: str) -> Estimate:
        """A bank of filters that learns the phases."""
        if self.calendar is None:
            return seasonal(self.period)
        if cells is None:
            raise InvalidParameter(
                "period", self.calendar.value, "come with the times of the rows (--time)"
            )
        name = self.calendar.value
        return seasonal(self.period, phases=self.phases(cells, source), name=name)

    def _phase(self, moment: datetime) -> int:
        if self.calendar is None:
            raise InvalidParameter("period", self.period, "be the name of a calendar")
        return calendar_phase(self.calendar, moment)


def moments(cells: Sequence[Raw], source: str) -> list[datetime]:
    """Times of rows, which must not run backwards, or the row that breaks the rule."""
    found: list[datetime] = []
    for row, cell in enumerate(cells, start=1):
        moment = _moment(cell)
        if moment is None:
            rule = "the time must be a date or a moment, such as 2011-01-31 or 2011-01-31T07:00"
            raise BadTable(source, row, rule)
        if found and (moment.tzinfo is None) != (found[-1].tzinfo is None):
            raise BadTable(source, row, "the time must have a time zone in all rows, or in none")
        if found and moment < found[-1]:
            raise BadTable(source, row, "the time must not be before that of the row above")
        found.append(moment)
    return found


def are_moments(cells: Sequence[Raw]) -> bool:
    """Whether every cell is a date or a moment."""
    return bool(cells) and all(_moment(cell) is not None for cell in cells)


def _moment(cell: object) -> datetime | None:
    match cell:
        case datetime():
            return cell
        case date():
            return datetime(cell.year, cell.month, cell.day)
        case str():
            try:
                return datetime.fromisoformat(cell.strip())
            except ValueError:
                return None
        case _:
            return None
