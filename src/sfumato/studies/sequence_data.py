"""Real sequences for the studies of streams, read from a folder that the user names.

Every set is parted by people (or sessions, bikes, recordings): a model is learnt from one half, and
losses are those of the other. Nothing here is part of the product; a file that is missing is named
with its source.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sfumato.core.alphabet import Alphabet, Label
from sfumato.core.arrays import Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.loss import Loss, euclidean, hamming
from sfumato.models.markov import MarkovChain
from sfumato.studies import town

Streams = list[list[Label]]

SOURCES = {
    "uci_har_activity.csv.gz": "UCI 'Human Activity Recognition Using Smartphones' (Anguita)",
    "msnbc_spmf.txt.gz": "UCI 'msnbc.com anonymous web data', in the form of SPMF",
    "kosarak_20k.txt.gz": "FIMI repository, 'kosarak' (F. Bodon), 20,000 sessions",
    "bike_stations.txt.gz": "Metro Bike Share open data, in the form of SPMF",
    "gaze_lund2013_500hz.csv.gz": "Lund 2013 gaze recordings (Andersson et al. 2017)",
}
"""Files that are read, and where they come from."""

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
    """

    name: str
    learnt: Streams
    kept: Ints
    alphabet: Alphabet
    unit: str

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
        file: Of the folder; None for what is made up.
        read: People or sessions, each with all its sequences, and where symbols lie, if anywhere.
        unit: What a loss is in.
    """

    name: str
    file: str | None
    read: Callable[[Path], tuple[list[Streams], Alphabet]]
    unit: str = "wrong"


def halves(source: Source, folder: Path | None, length: int, most: int) -> SequenceSet | None:
    """The set in pieces of one length; None where there is no folder to read its file from.

    Args:
        source: Where it comes from.
        folder: That holds the files.
        length: Values of a piece; shorter ones are left out.
        most: Pieces that losses are measured on.
    """
    if source.file is not None and folder is None:
        return None
    people, alphabet = source.read(_path(folder, source.file))
    order = np.random.default_rng(1).permutation(len(people))
    cut = [[_pieces(path, length) for path in people[place]] for place in order]
    per = [[piece for pieces in one for piece in pieces] for one in cut]
    half = len(per) // 2
    learnt = [piece for one in per[:half] for piece in one]
    kept = [piece for one in per[half:] for piece in one]
    chosen = np.random.default_rng(2).permutation(len(kept))[:most]
    places = np.array([alphabet.indices(kept[place]) for place in np.sort(chosen)])
    return SequenceSet(source.name, learnt, places, alphabet, source.unit)


def _path(folder: Path | None, file: str | None) -> Path:
    if folder is None or file is None:
        return Path()
    path = folder / file
    if not path.is_file():
        raise InvalidParameter("--data", str(folder), f"hold {file}: {SOURCES[file]}")
    return path


def _pieces(path: Sequence[Label], length: int) -> Streams:
    starts = range(0, len(path) - length + 1, length)
    return [list(path[start : start + length]) for start in starts]


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", newline="") as text:
        yield from csv.DictReader(text)


def _lines(path: Path) -> Iterator[list[str]]:
    with gzip.open(path, "rt") as text:
        for line in text:
            yield line.split()


def _named(people: list[Streams]) -> tuple[list[Streams], Alphabet]:
    return people, Alphabet.occurring([path for streams in people for path in streams])


def _activities(path: Path) -> tuple[list[Streams], Alphabet]:
    people: dict[str, list[Label]] = {}
    for row in _rows(path):
        people.setdefault(row["subject"], []).append(row["activity"])
    return _named([[stream] for stream in people.values()])


def _visits(path: Path) -> tuple[list[Streams], Alphabet]:
    return _named([[list[Label](line)] for line in _lines(path)])


def _clicks(path: Path) -> tuple[list[Streams], Alphabet]:
    lines = list(_lines(path))
    items, times = np.unique([item for line in lines for item in line], return_counts=True)
    kept = set(items[np.argsort(-times, kind="stable")[:_ITEMS]].tolist())
    return _named([[[item if item in kept else "other" for item in line]] for line in lines])


def _gaze(path: Path) -> tuple[list[Streams], Alphabet]:
    people: dict[str, dict[tuple[str, str], list[Label]]] = {}
    for row in _rows(path):
        x, y = float(row["x"]), float(row["y"])
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


ACTIVITIES = Source("activities (HAR)", "uci_har_activity.csv.gz", _activities)
TOWN = Source("the demo's town", None, _town(7), "km")
VISITS = Source("page visits (msnbc)", "msnbc_spmf.txt.gz", _visits)
CLICKS = Source("clicks (kosarak)", "kosarak_20k.txt.gz", _clicks)
GAZE = Source("gaze (12 cells, 25 Hz)", "gaze_lund2013_500hz.csv.gz", _gaze, "cells")
BIKES = Source("bikes (67 stations)", "bike_stations.txt.gz", _visits)
