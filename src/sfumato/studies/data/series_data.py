"""Real series of numbers: rented bikes, traffic, speeds of a car; and what stands in for them.

A stand-in is drawn from the seed and looks somewhat like the real series: a day, a week, and what
is left of yesterday's deviation. It shows what a study computes, and says nothing about a city.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.studies.data import data_files
from sfumato.studies.data.gzipped_rows import finite_number, gzipped_rows, reading
from sfumato.studies.study import DataFile, Setting

HOURS = 24
_WEEK = 7
_COUNTS = 7
"""Column of the traffic table where the 24 counts of a day begin."""


@dataclass(frozen=True, slots=True, eq=False)
class SeriesData:
    """A series, and whether it is real.

    Attributes:
        name: What tables and pictures call it.
        values: In the order of time.
        stand_in: Whether it was made up for want of the real one.
        period: Hours of a day or days of a week; 0 if values have no such phase.
        phases: Which of them each value is, which is public; None if they come in turn.
    """

    name: str
    values: Floats
    stand_in: bool
    period: int = 0
    phases: Ints | None = None


def hourly_rentals(setting: Setting, year: int | None = 2011) -> SeriesData:
    """Bikes rented in each hour; hours without a rental have no row and are left out.

    Args:
        setting: Where the file is.
        year: 2011, as in the paper, 2012, or None for both.
    """
    return _rentals("bike rentals, hourly", data_files.BIKES_HOURLY, setting, year, HOURS)


def daily_rentals(setting: Setting, year: int | None = 2011) -> SeriesData:
    """Bikes rented on each day.

    Args:
        setting: Where the file is.
        year: 2011, as in the paper, 2012, or None for both.
    """
    return _rentals("bike rentals, daily", data_files.BIKES_DAILY, setting, year, 1)


def hourly_traffic(setting: Setting, hours: int = HOURS) -> SeriesData:
    """Counts of all roadways together, hour by hour, one day after another.

    How many roadways were counted differs from day to day, and some detectors stop at noon: a
    count that is missing adds nothing, as in the paper's sum.

    Args:
        setting: Where the file is.
        hours: Of each day, from midnight on; the paper says "from 12AM to 1PM", which are 13.
    """
    path = setting.path(data_files.TRAFFIC)
    if path is None:
        whole = _made_up(setting.seed, days=47, per_day=HOURS, level=9_000.0)
        values = whole.reshape(-1, HOURS)[:, :hours].ravel()
        return SeriesData("traffic, hourly", values, True, hours)
    days: dict[datetime, Floats] = {}
    with reading(data_files.TRAFFIC, path):
        for row in gzipped_rows(path):
            day = datetime.strptime(row["Date"], "%m/%d/%Y")
            counts = [finite_number(text or "0") for text in list(row.values())[_COUNTS:]]
            days[day] = days.get(day, np.zeros(HOURS)) + counts
    values = np.concatenate([days[day][:hours] for day in sorted(days)])
    return SeriesData("traffic, hourly", values, False, hours)


def ftp_speeds(setting: Setting) -> SeriesData:
    """Speeds of the FTP-75 drive cycle, second by second, in miles an hour."""
    return _speeds("FTP-75", data_files.FTP_75, setting, seconds=1875)


def udds_speeds(setting: Setting) -> SeriesData:
    """Speeds of the UDDS drive cycle, second by second, in miles an hour."""
    return _speeds("UDDS", data_files.UDDS, setting, seconds=1370)


def _rentals(
    name: str, file: DataFile, setting: Setting, year: int | None, per_day: int
) -> SeriesData:
    path, period = setting.path(file), HOURS if per_day > 1 else _WEEK
    if path is None:
        days = 731 if year is None else 365
        level = 3_400.0 / per_day
        return SeriesData(name, _made_up(setting.seed, days, per_day, level), True, period)
    wanted = "" if year is None else f"{year}-"
    with reading(file, path):
        rows = [row for row in gzipped_rows(path) if row["dteday"].startswith(wanted)]
        counts = np.array([finite_number(row["cnt"]) for row in rows])
        phases = np.array([int(row["hr"]) for row in rows]) if per_day > 1 else None
        if not rows:
            raise EOFError
    return SeriesData(name, counts, False, period, phases)


def _speeds(name: str, file: DataFile, setting: Setting, seconds: int) -> SeriesData:
    path = setting.path(file)
    if path is None:
        return SeriesData(name, _made_up_drive(setting.seed, seconds), True)
    with reading(file, path):
        speeds = np.array([finite_number(row["speed_mph"]) for row in gzipped_rows(path)])
    return SeriesData(name, speeds, False)


def _made_up(seed: int, days: int, per_day: int, level: float) -> Floats:
    """Counts with a day, a week, a year, and a deviation that dies away slowly."""
    draw, count = np.random.default_rng(seed), days * per_day
    moment = np.arange(count) / per_day
    shape = 1.0 + 0.35 * np.sin(2 * np.pi * (moment / 365 - 0.25))
    shape += 0.15 * np.sin(2 * np.pi * moment / 7)
    if per_day > 1:
        shape *= 1.0 + 0.8 * np.sin(2 * np.pi * (moment - 0.4))
    deviation, rest = np.zeros(count), 0.0
    for place, shock in enumerate(draw.normal(0.0, 0.12, count)):
        rest = 0.8 * rest + shock
        deviation[place] = rest
    return np.asarray(draw.poisson(level * np.clip(shape + deviation, 0.05, None)), np.float64)


def _made_up_drive(seed: int, seconds: int) -> Floats:
    """Speeds up from a stop, on, and down to a stop, again and again."""
    draw, speeds = np.random.default_rng(seed), list[float]()
    while len(speeds) < seconds:
        top, on = draw.uniform(18, 56), int(draw.integers(20, 140))
        climb, brake = top / draw.uniform(1.5, 3.0), top / draw.uniform(2.0, 3.3)
        speeds += [0.0] * int(draw.integers(5, 40))
        speeds += np.linspace(0, top, int(climb)).tolist()
        speeds += (top + np.cumsum(draw.normal(0, 0.4, on))).clip(0, 57).tolist()
        speeds += np.linspace(speeds[-1], 0, int(brake)).tolist()
    return np.round(speeds[:seconds], 1)
