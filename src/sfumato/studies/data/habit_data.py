"""Streams with a daily rhythm: the demo's town, a household's power, and check-ins at any hour.

Every set is parted by people (of the household, by days): models are learnt from one half, and what
they predict and lose is measured on the other. Each value has a phase, which is public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from sfumato.core.alphabet import Alphabet
from sfumato.core.arrays import Floats, Ints
from sfumato.core.loss import Loss, euclidean, hamming
from sfumato.models.cycle import Cycle
from sfumato.studies import town
from sfumato.studies.data import data_files
from sfumato.studies.data.gzipped_rows import finite_number, gzipped_lines, gzipped_rows, reading
from sfumato.studies.data.sequence_data import TOWN, halves
from sfumato.studies.study import Setting

_KILOWATTS = (0.15, 0.25, 0.4, 0.7, 1.2, 2.0, 3.0)
"""Edges of the levels of a household's power: about as many readings in each."""
_CELLS = 6
"""Columns and rows of the map of check-ins."""
CHECK_INS = 24
"""Check-ins of a piece of a stream."""
_EVERY_MINUTES = 10


@dataclass(frozen=True, slots=True, eq=False)
class HabitSet:
    """Streams of one kind whose values have phases, in two halves.

    Attributes:
        name: What a table calls it.
        cycle: What the phases are.
        alphabet: The symbols.
        learnt: Places of symbols of streams that models are fitted to.
        learnt_phases: The phases of their values.
        kept: Places of symbols of those that are measured on, one row each.
        kept_phases: The phases of their values.
        owners: Whose each row of `kept` is: people as numbers.
        unit: What a loss is in: share wrong, or a distance.
        stand_in: Whether they were made up because there are no real ones.
    """

    name: str
    cycle: Cycle
    alphabet: Alphabet
    learnt: list[Ints]
    learnt_phases: list[Ints]
    kept: Ints
    kept_phases: Ints
    owners: Ints
    unit: str
    stand_in: bool = False

    @property
    def loss(self) -> Loss:
        """Share wrong; distances where symbols have places."""
        return hamming(self.alphabet) if self.unit == "wrong" else euclidean(self.alphabet)


def town_days(setting: Setting, most: int) -> HabitSet:
    """Days of the demo's town, half hour by half hour."""
    found = halves(TOWN, setting, town.SLOTS_PER_DAY, most)
    cycle = Cycle.of(str(town.SLOTS_PER_DAY), 24)
    learnt = [found.alphabet.indices(path) for path in found.learnt]
    turns = np.array([cycle.turn(place) for place in range(town.SLOTS_PER_DAY)])
    return HabitSet(
        "the demo's town, days",
        cycle,
        found.alphabet,
        learnt,
        [turns] * len(learnt),
        found.kept,
        np.tile(turns, (len(found.kept), 1)),
        found.owners,
        found.unit,
    )


def power_days(setting: Setting, most: int) -> HabitSet:
    """Days of a household's power, every ten minutes, in eight levels."""
    path = setting.path(data_files.POWER)
    if path is None:
        days = _made_up_power(setting.seed)
    else:
        with reading(data_files.POWER, path):
            days = np.array(
                [
                    [finite_number(cell) for name, cell in row.items() if name != "season"]
                    for row in gzipped_rows(path)
                ]
            )
    levels = np.digitize(days, _KILOWATTS)
    alphabet = Alphabet.of_size(len(_KILOWATTS) + 1)
    placed = Alphabet(alphabet.labels, np.arange(len(alphabet), dtype=np.float64)[:, None])
    order = np.random.default_rng(setting.seed).permutation(len(levels))
    half, values = len(levels) // 2, levels.shape[1]
    cycle = Cycle.of(str(values), 24)
    turns = np.array([cycle.turn(place) for place in range(values)])
    kept = levels[order[half : half + most]]
    return HabitSet(
        "a household's power, days",
        cycle,
        placed,
        list(levels[order[:half]]),
        [turns] * half,
        kept,
        np.tile(turns, (len(kept), 1)),
        np.arange(len(kept)),
        "levels",
        path is None,
    )


def check_ins(setting: Setting, most: int) -> HabitSet:
    """Places where people say that they are, at any hour, whenever they say it."""
    path = setting.path(data_files.GOWALLA)
    if path is None:
        people, alphabet = _made_up_check_ins(setting.seed)
    else:
        with reading(data_files.GOWALLA, path):
            people, alphabet = _gowalla(path)
    order = np.random.default_rng(setting.seed).permutation(len(people))
    half = len(people) // 2
    cycle = Cycle.of("hour", 12)
    learnt = [people[place] for place in order[:half]]
    pieces = [
        (owner, row[:, start : start + CHECK_INS])
        for owner, row in enumerate(people[place] for place in order[half:])
        for start in range(0, row.shape[1] - CHECK_INS + 1, CHECK_INS)
    ][:most]
    rows = np.array([piece for _, piece in pieces])
    return HabitSet(
        "check-ins at any hour",
        cycle,
        alphabet,
        [row[0] for row in learnt],
        [row[1] // 2 for row in learnt],
        rows[:, 0],
        rows[:, 1] // 2,
        np.array([owner for owner, _ in pieces]),
        "wrong" if alphabet.coordinates is None else "km" if path is None else "cells",
        path is None,
    )


def _made_up_power(seed: int) -> Floats:
    """Days with a morning and an evening, each a little other than the last."""
    rng = np.random.default_rng(seed)
    hours = np.arange(0, 24, _EVERY_MINUTES / 60)
    base = 0.2 + 0.9 * np.exp(-((hours - 7.5) ** 2) / 2) + 1.6 * np.exp(-((hours - 19) ** 2) / 6)
    noise = np.cumsum(rng.normal(0, 0.12, (360, hours.size)), axis=1)
    swing = noise - noise.mean(axis=1, keepdims=True)
    return np.asarray(np.maximum(0.1, base * np.exp(0.4 * swing)))


def _made_up_check_ins(seed: int) -> tuple[list[Ints], Alphabet]:
    """People of the demo's town who say now and then where they are: when does not say where."""
    rng, alphabet = np.random.default_rng(seed), town.alphabet()
    days = 28
    people = []
    for path in town.people(160, days, seed + 6).values():
        places = alphabet.indices(path)
        awake = rng.random((days, town.SLOTS_PER_DAY)) < 0.12
        awake[:, : 2 * 6] = False
        slots = np.flatnonzero(awake.ravel())
        people.append(np.stack([places[slots], slots % town.SLOTS_PER_DAY // 2]))
    return people, alphabet


def _gowalla(path: Path) -> tuple[list[Ints], Alphabet]:
    """Check-ins of the square degree that has most of them, as cells of a map, oldest first."""
    rows = [_check_in(words) for words in gzipped_lines(path)]
    squares = np.floor(np.array([(row[2], row[3]) for row in rows]))
    found, times = np.unique(squares, axis=0, return_counts=True)
    corner = found[int(times.argmax())]
    people: dict[str, list[tuple[datetime, int]]] = {}
    for (user, when, *_), (x, y) in zip(rows, np.array([r[2:4] for r in rows]), strict=True):
        column, line = np.floor((np.array([x, y]) - corner) * _CELLS).astype(int)
        if 0 <= column < _CELLS and 0 <= line < _CELLS:
            people.setdefault(user, []).append((when, int(line * _CELLS + column)))
    places = [(float(x), float(y)) for y in range(_CELLS) for x in range(_CELLS)]
    alphabet = Alphabet([f"{x:g} {y:g}" for x, y in places], places)
    streams = [_sorted(told) for told in people.values() if len(told) >= CHECK_INS]
    if len(streams) < 2:
        raise EOFError  # nobody is left to learn from, or to measure on
    return streams, alphabet


def _check_in(words: Sequence[str]) -> tuple[str, datetime, float, float]:
    """User, time, longitude and latitude of a line of SNAP's file."""
    user, when, latitude, longitude, _ = words
    return user, datetime.fromisoformat(when), finite_number(longitude), finite_number(latitude)


def _sorted(told: list[tuple[datetime, int]]) -> Ints:
    ordered = sorted(told, key=lambda one: one[0])
    return np.array([[place for _, place in ordered], [when.hour for when, _ in ordered]])
