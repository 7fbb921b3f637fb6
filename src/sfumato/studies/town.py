"""A small made-up town and the days of its people: data for demonstrations and examples.

Twelve named places lie on a map. Every person has a home, a work place or school, and habits:
when to leave, where to eat, what to do in the evening, and what is different at the weekend. A
day is told in half hours. People stay where they are for long, move along habits, and
sometimes do something else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.core import checks
from sfumato.core.alphabet import Alphabet

SLOTS_PER_DAY = 48
PLACES: dict[str, tuple[float, float]] = {
    "north homes": (2.0, 8.5),
    "south homes": (3.0, 1.5),
    "hill homes": (8.5, 7.0),
    "factory": (9.0, 1.0),
    "offices": (5.5, 5.5),
    "school": (3.5, 6.0),
    "market": (5.0, 4.0),
    "bakery": (4.2, 5.0),
    "clinic": (6.5, 6.8),
    "park": (2.0, 4.5),
    "gym": (7.2, 4.2),
    "old town": (5.8, 2.6),
}
_HOMES = ("north homes", "south homes", "hill homes")
_JOBS = ("factory", "offices", "school", "market")
_EVENINGS = ("park", "gym", "old town", "market")


@dataclass(frozen=True, slots=True)
class Habits:
    """What one person's days look like: places by role, and half hours of a day."""

    home: str
    job: str
    lunch: str
    evening: str
    leaves: int
    returns: int
    evening_share: float
    restless: float


def alphabet() -> Alphabet:
    """The places of the town and where they lie, in kilometres.

    Examples:
        >>> len(alphabet())
        12
    """
    return Alphabet(list(PLACES), list(PLACES.values()))


def people(count: int, days: int, seed: int) -> dict[str, list[str]]:
    """Where each person is, half hour by half hour.

    Args:
        count: Number of people.
        days: Days told, beginning with a Monday.
        seed: The same seed, the same town.

    Examples:
        >>> days = people(count=2, days=1, seed=7)
        >>> list(days), len(days["p001"])
        (['p001', 'p002'], 48)
    """
    rng = np.random.default_rng(checks.count("seed", seed, at_least=0))
    town = {}
    for number in range(1, checks.count("count", count) + 1):
        habits = _habits(rng)
        town[f"p{number:03d}"] = [
            place for day in range(days) for place in _day(habits, day % 7, rng)
        ]
    return town


def _habits(rng: np.random.Generator) -> Habits:
    job = str(rng.choice(_JOBS, p=[0.3, 0.4, 0.2, 0.1]))
    leaves = int(rng.integers(12, 17)) if job == "factory" else int(rng.integers(15, 19))
    return Habits(
        home=str(rng.choice(_HOMES, p=[0.45, 0.35, 0.2])),
        job=job,
        lunch=str(rng.choice(["bakery", "market", job], p=[0.3, 0.2, 0.5])),
        evening=str(rng.choice(_EVENINGS)),
        leaves=leaves,
        returns=leaves + int(rng.integers(16, 20)),
        evening_share=float(rng.uniform(0.2, 0.7)),
        restless=float(rng.uniform(0.005, 0.03)),
    )


def _day(habits: Habits, weekday: int, rng: np.random.Generator) -> list[str]:
    plan = _weekend(habits, rng) if weekday >= 5 else _workday(habits, rng)
    places = list(PLACES)
    slot = 0
    while slot < SLOTS_PER_DAY:
        if rng.random() < habits.restless and 14 <= slot < 44:
            errand = str(rng.choice(places))
            for late in range(slot, min(slot + int(rng.integers(1, 4)), SLOTS_PER_DAY)):
                plan[late] = errand
                slot = late
        slot += 1
    return plan


def _workday(habits: Habits, rng: np.random.Generator) -> list[str]:
    plan = [habits.home] * SLOTS_PER_DAY
    start = habits.leaves + int(rng.integers(-1, 2))
    end = min(habits.returns + int(rng.integers(-1, 3)), SLOTS_PER_DAY)
    plan[start:end] = [habits.job] * (end - start)
    noon = 25 + int(rng.integers(-1, 2))
    plan[noon : noon + 2] = [habits.lunch] * 2
    if rng.random() < habits.evening_share:
        out = min(end + int(rng.integers(0, 3)), SLOTS_PER_DAY - 1)
        back = min(out + int(rng.integers(2, 6)), SLOTS_PER_DAY)
        plan[out:back] = [habits.evening] * (back - out)
    return plan


def _weekend(habits: Habits, rng: np.random.Generator) -> list[str]:
    plan = [habits.home] * SLOTS_PER_DAY
    for earliest in (18, 30):
        if rng.random() < 0.7:
            place = str(rng.choice(["park", "old town", "market", habits.evening]))
            out = earliest + int(rng.integers(0, 6))
            back = out + int(rng.integers(2, 8))
            plan[out:back] = [place] * (back - out)
    return plan
