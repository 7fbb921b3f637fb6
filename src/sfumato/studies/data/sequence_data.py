"""Real sequences for the studies of streams, read from a folder that the user names.

Every set is parted by people (or sessions, bikes, recordings): a model is learnt from one half, and
losses are those of the other. Nothing here is part of the product; a file that is missing is named
with its source, and without a folder made-up people stand in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sfumato.core.alphabet import Alphabet, Label
from sfumato.core.arrays import Ints
from sfumato.core.loss import Loss, euclidean, hamming
from sfumato.models.markov import MarkovChain
from sfumato.studies import town
from sfumato.studies.data import data_files
from sfumato.studies.data.gzipped_rows import (
    finite_number,
    gzipped_lines,
    gzipped_rows,
    reading,
)
from sfumato.studies.data.simulated_sequences import Crowd, Streams, simulated_streams
from sfumato.studies.study import DataFile, Setting

_ITEMS = 15
"""Most clicked items that keep their names; the others are one symbol."""
_GAZE_EVERY = 20
"""Of 500 samples a second, 25 are taken."""
_CELL = 256.0
"""Pixels of a cell of the screen: 4 columns, 3 rows."""


@dataclass(frozen=True, slots=True, eq=False)
class SequenceSet:
    """Sequences of one kind, in two halves.

    Attributes:
        name: What a table calls it.
        learnt: Streams that a model is fitted to.
        kept: Places of the symbols of those that losses are measured on, one row each.
        alphabet: The symbols of both.
        unit: What a loss is in: share wrong, or a distance.
        stand_in: Whether they were made up because there are no real ones.
        owners: Whose each row of `kept` is: people as numbers.
    """

    name: str
    learnt: Streams
    kept: Ints
    alphabet: Alphabet
    unit: str
    stand_in: bool
    owners: Ints

    @property
    def model(self) -> MarkovChain:
        """The chain of the half that was learnt from."""
        return MarkovChain.fit(self.learnt, alphabet=self.alphabet)

    @property
    def loss(self) -> Loss:
        """Share wrong; distances where symbols have places."""
        return hamming(self.alphabet) if self.unit == "wrong" else euclidean(self.alphabet)


@dataclass(frozen=True, slots=True)
class Source:
    """Where sequences come from: people by people, whole.

    Attributes:
        name: What a table calls it.
        file: Of the folder; None for what is made up in any case.
        read: People or sessions, each with all its sequences, and where symbols lie, if anywhere.
        stand_in: Who is made up where there is no folder.
        unit: What a loss is in.
    """

    name: str
    file: DataFile | None
    read: Callable[[Path], tuple[list[Streams], Alphabet]]
    stand_in: Crowd | None = None
    unit: str = "wrong"


def people_of(source: Source, setting: Setting) -> tuple[list[Streams], Alphabet, bool]:
    """All people of a set, its symbols, and whether they stand in for real ones."""
    path = None if source.file is None else setting.path(source.file)
    if path is None and source.stand_in is not None:
        return *simulated_streams(source.stand_in, setting.seed), True
    if path is None or source.file is None:
        return *source.read(Path()), False
    with reading(source.file, path):
        return *source.read(path), False


def halves(source: Source, setting: Setting, length: int, most: int) -> SequenceSet:
    """The set in pieces of one length, in two halves.

    Args:
        source: Where it comes from.
        setting: Which folder holds the files, and which seed parts the people.
        length: Values of a piece; shorter ones are left out.
        most: Pieces that losses are measured on.
    """
    people, alphabet, made_up = people_of(source, setting)
    order = np.random.default_rng(setting.seed).permutation(len(people))
    cut = [[_pieces(path, length) for path in people[place]] for place in order]
    per = [[piece for pieces in one for piece in pieces] for one in cut]
    half = len(per) // 2
    learnt = [piece for one in per[:half] for piece in one]
    kept = [piece for one in per[half:] for piece in one]
    owners = np.repeat(np.arange(half, len(per)), [len(one) for one in per[half:]])
    chosen = np.sort(np.random.default_rng(setting.seed + 1).permutation(len(kept))[:most])
    places = np.array([alphabet.indices(kept[place]) for place in chosen])
    name, unit = source.name, source.unit
    return SequenceSet(name, learnt, places, alphabet, unit, made_up, owners[chosen])


def _pieces(path: Sequence[Label], length: int) -> Streams:
    starts = range(0, len(path) - length + 1, length)
    return [list(path[start : start + length]) for start in starts]


def _named(people: list[Streams]) -> tuple[list[Streams], Alphabet]:
    return people, Alphabet.occurring([path for streams in people for path in streams])


def _activities(path: Path) -> tuple[list[Streams], Alphabet]:
    people: dict[str, list[Label]] = {}
    for row in gzipped_rows(path):
        people.setdefault(row["subject"], []).append(row["activity"])
    return _named([[stream] for stream in people.values()])


def _visits(path: Path) -> tuple[list[Streams], Alphabet]:
    return _named([[list[Label](line)] for line in gzipped_lines(path)])


def _clicks(path: Path) -> tuple[list[Streams], Alphabet]:
    lines = list(gzipped_lines(path))
    items, times = np.unique([item for line in lines for item in line], return_counts=True)
    kept = set(items[np.argsort(-times, kind="stable")[:_ITEMS]].tolist())
    return _named([[[item if item in kept else "other" for item in line]] for line in lines])


def _gaze(path: Path) -> tuple[list[Streams], Alphabet]:
    people: dict[str, dict[tuple[str, str], list[Label]]] = {}
    for row in gzipped_rows(path):
        x, y = finite_number(row["x"]), finite_number(row["y"])
        if int(row["t_ms"]) % (2 * _GAZE_EVERY) == 0 and (x, y) != (0.0, 0.0):
            cell = f"{min(max(int(x // _CELL), 0), 3)} {min(max(int(y // _CELL), 0), 2)}"
            record = people.setdefault(row["user"], {})
            record.setdefault((row["kind"], row["stimulus"]), []).append(cell)
    places = [(float(column), float(line)) for line in range(3) for column in range(4)]
    cells = [f"{column:g} {line:g}" for column, line in places]
    return [list(streams.values()) for streams in people.values()], Alphabet(cells, places)


def _town(days: int) -> Callable[[Path], tuple[list[Streams], Alphabet]]:
    def read(_: Path) -> tuple[list[Streams], Alphabet]:
        whole = town.people(120, days, 7)
        return [[list[Label](stream)] for stream in whole.values()], town.alphabet()

    return read


ACTIVITIES = Source(
    "activities (HAR)", data_files.ACTIVITIES, _activities, Crowd(6, 30, 340, 0.94, 0.0)
)
TOWN = Source("the demo's town", None, _town(7), unit="km")
VISITS = Source(
    "page visits (msnbc)", data_files.VISITS, _visits, Crowd(17, 2000, 6, 0.0, sessions=True)
)
CLICKS = Source(
    "clicks (kosarak)", data_files.CLICKS, _clicks, Crowd(16, 2000, 8, 0.3, sessions=True)
)
GAZE = Source(
    "gaze (12 cells, 25 Hz)", data_files.GAZE, _gaze, Crowd(12, 30, 400, 0.9, 0.3, 4), "cells"
)
BIKES = Source(
    "bikes (67 stations)", data_files.BIKE_STATIONS, _visits, Crowd(67, 4000, 5, 0.1, sessions=True)
)
