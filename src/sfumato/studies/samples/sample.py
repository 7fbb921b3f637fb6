"""What a sample is: tables that are made anew, the same everywhere, and what to do with them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.store.outputs import together

Cell: TypeAlias = str | int | float
Rows: TypeAlias = Iterable[Sequence[Cell]]


@dataclass(frozen=True, slots=True)
class Sample:
    """Made-up data of one kind, with the commands that a newcomer would try on it.

    Attributes:
        name: What it is asked for by.
        about: What the data are, and the question they raise, in one sentence.
        tables: File names and their rows, the first of which is the header.
        commands: To be run in the folder of the tables, in this order.
    """

    name: str
    about: str
    tables: Callable[[np.random.Generator], Mapping[str, Rows]]
    commands: tuple[str, ...]

    def write(self, folder: Path) -> list[Path]:
        """Write the tables into a folder; the same bytes whenever and wherever.

        Raises:
            InvalidParameter: If one of the files is there already: it may be yours.
        """
        made = self.tables(np.random.default_rng(_SEED))
        paths = [folder / name for name in made]
        for path in paths:
            if path.exists():
                rule = (
                    f"hold no file {path.name} yet: a sample overwrites nothing; -o names another"
                )
                raise InvalidParameter("folder", str(folder), rule)
        folder.mkdir(parents=True, exist_ok=True)
        with together(paths) as asides:
            for aside, rows in zip(asides, made.values(), strict=True):
                with aside.open("w", encoding="utf-8", newline="") as file:
                    csv.writer(file, lineterminator="\n").writerows(rows)
        return paths


_SEED = 2_026
"""Samples are the same for everybody, so that what a page shows is what its reader sees."""


def walk(rng: np.random.Generator, transition: Floats, length: int) -> list[int]:
    """A path of a Markov chain that begins anywhere."""
    cumulative = np.cumsum(transition, axis=1)
    place = int(rng.integers(len(transition)))
    path = [place]
    for luck in rng.random(length - 1):
        place = int(np.searchsorted(cumulative[place], luck * cumulative[place, -1]))
        path.append(place)
    return path
