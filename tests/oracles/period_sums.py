"""What streams leaked in each period of time, from released rows alone and in exact fractions.

Calendars are counted by names here (years, days of the year, weeks of ISO 8601), not by the number
of microseconds since a moment.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from fractions import Fraction

Sums = dict[tuple[str, str], Fraction]


def period_name(kind: str, text: str) -> str:
    """A name of the period that a time lies in; equal ones have equal names."""
    if kind.isdecimal():
        return _multiple(int(kind), text)
    moment = _moment(text)
    forms = {"hour": "%Y-%j %H", "day": "%Y-%j", "week": "%G-W%V", "month": "%Y-%m"}
    return moment.strftime(forms[kind])


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is None else moment.astimezone(UTC)


def _multiple(length: int, text: str) -> str:
    try:
        seconds = Fraction(text)
    except ValueError:
        moment = _moment(text)
        days = moment.toordinal() - datetime(1970, 1, 1).toordinal()
        clock = (moment.hour * 60 + moment.minute) * 60 + moment.second
        seconds = days * 86_400 + clock + Fraction(moment.microsecond, 1_000_000)
    return str(seconds // length)


def period_sums(kind: str, rows: Iterable[tuple[str, str, float]]) -> Sums:
    """The exact sum of the leakages of each stream in each period.

    Args:
        kind: `hour`, `day`, `week`, `month` or a number of seconds.
        rows: Stream, time as text, and leakage of each released row.
    """
    found: Sums = defaultdict(Fraction)
    for stream, time, leakage in rows:
        found[stream, period_name(kind, time)] += Fraction(leakage)
    return dict(found)
