"""Where people look, as cells of a grid: recordings that are read, or a simulated stand-in.

The gaze set of the paper (MOJO: ten people, five hours each, 50 samples a second) is not public.
The recordings of Lund 2013 stand in for it: thirty people, 13 minutes in all. They are thinned to
50 samples a second, put on a screen of 1 by 1 and then on a grid. Each recording is cut in the
middle: the first halves teach models and attackers, the second halves are released and attacked.

References:
    [SIP, Sec. VI-B]
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sfumato.core import checks
from sfumato.core.alphabet import Alphabet, Label
from sfumato.core.arrays import Floats
from sfumato.models.markov import MarkovChain
from sfumato.studies.data import data_files
from sfumato.studies.data.gzipped_rows import finite_number, gzipped_rows, reading

Streams = list[list[Label]]

_SCREEN = (1024.0, 768.0)
_SLOT = 20
"""Milliseconds of a sample: the paper's 50 a second. Some people were recorded at 200, not 500."""
_SIMULATED = 10
"""People of the stand-in, as many as in the paper's set."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells of equal size on a screen of 1 by 1.

    Attributes:
        columns: Cells from left to right.
        lines: Cells from top to bottom.

    Examples:
        >>> grid = Grid(4, 2)
        >>> grid.cell(0.3, 0.9), grid.cell(-1.0, 0.0), len(grid.alphabet)
        ('1 1', '0 0', 8)
    """

    columns: int
    lines: int

    def __post_init__(self) -> None:
        checks.count("columns", self.columns)
        checks.count("lines", self.lines)

    @property
    def alphabet(self) -> Alphabet:
        """The cells, with their centres."""
        cells = [(column, line) for line in range(self.lines) for column in range(self.columns)]
        centres = [((c + 0.5) / self.columns, (n + 0.5) / self.lines) for c, n in cells]
        return Alphabet([f"{column} {line}" for column, line in cells], centres)

    def cell(self, x: float, y: float) -> str:
        """The cell of a point; of one beside the screen, the nearest one in each direction."""
        column, line = math.floor(x * self.columns), math.floor(y * self.lines)
        return f"{min(max(column, 0), self.columns - 1)} {min(max(line, 0), self.lines - 1)}"


@dataclass(frozen=True, slots=True, eq=False)
class Viewer:
    """A person, with the cells that she looked at.

    Attributes:
        name: In the file.
        trials: One stream a recording, 50 values a second.
    """

    name: str
    trials: Streams

    @property
    def training(self) -> Streams:
        """The first half of every recording."""
        return [trial[: len(trial) // 2] for trial in self.trials]

    @property
    def testing(self) -> Streams:
        """The second half of every recording."""
        return [trial[len(trial) // 2 :] for trial in self.trials]


@dataclass(frozen=True, slots=True, eq=False)
class Gaze:
    """Everybody's gaze on one grid.

    Attributes:
        viewers: The people, by name.
        alphabet: The cells, with their centres on a screen of 1 by 1.
        simulated: Whether nobody was recorded.
    """

    viewers: tuple[Viewer, ...]
    alphabet: Alphabet
    simulated: bool

    def chain(self, order: int = 1) -> MarkovChain:
        """What an adversary knows: the chain of everybody's first halves."""
        paths = [path for viewer in self.viewers for path in viewer.training]
        return MarkovChain.fit(paths, alphabet=self.alphabet, order=order)

    def of(self, viewer: Viewer) -> Gaze:
        """One person alone."""
        return replace(self, viewers=(viewer,))

    def pieces(self, length: int) -> Streams:
        """The second halves in pieces of one length, person after person; what is left over goes.

        Examples:
            >>> seen = simulated_gaze(Grid(4, 3), people=2, seconds=10)
            >>> len(seen.pieces(50)), {len(piece) for piece in seen.pieces(50)}
            (40, {50})
        """
        checks.count("length", length)
        return [
            path[start : start + length]
            for viewer in self.viewers
            for path in viewer.testing
            for start in range(0, len(path) - length + 1, length)
        ]


def gaze(path: Path | None, grid: Grid, *, least: int = 100) -> Gaze:
    """The recordings of a file, or a simulated stand-in where there is none.

    Args:
        path: The file of recordings (`data_files.GAZE`).
        grid: The cells.
        least: Values of a recording; shorter ones are left out.
    """
    if path is None:
        return simulated_gaze(grid)
    people: dict[str, dict[tuple[str, str], list[Label]]] = {}
    with reading(data_files.GAZE, path):
        for name, trial, x, y in _samples(path):
            people.setdefault(name, {}).setdefault(trial, []).append(grid.cell(x, y))
    trials = {
        name: [cells for cells in streams.values() if len(cells) >= least]
        for name, streams in sorted(people.items())
    }
    viewers = tuple(Viewer(name, streams) for name, streams in trials.items() if streams)
    return Gaze(viewers, grid.alphabet, simulated=False)


def _samples(path: Path) -> Iterator[tuple[str, tuple[str, str], float, float]]:
    """One sample of each slot, on a screen of 1 by 1; lost ones are left out."""
    last: tuple[str, str, str, int] | None = None
    for row in gzipped_rows(path):
        x, y = finite_number(row["x"]), finite_number(row["y"])
        slot = (row["user"], row["kind"], row["stimulus"], int(row["t_ms"]) // _SLOT)
        if slot != last and (x, y) != (0.0, 0.0):
            yield row["user"], (row["kind"], row["stimulus"]), x / _SCREEN[0], y / _SCREEN[1]
            last = slot


def simulated_gaze(
    grid: Grid, people: int = _SIMULATED, seconds: int = 30, trials: int = 4, seed: int = 9
) -> Gaze:
    """People who rest on a few points and leap between them, each in her own way.

    Args:
        grid: The cells.
        people: How many.
        seconds: Of a recording.
        trials: Recordings of each.
        seed: Of all that is drawn.
    """
    draw = np.random.default_rng(seed)
    viewers = []
    for number in range(checks.count("people", people)):
        habit = _Habit(
            draw.uniform(0.15, 0.85, (6, 2)), draw.uniform(8, 25), draw.uniform(0.2, 0.9)
        )
        streams = [habit.stream(50 * seconds, grid, draw) for _ in range(trials)]
        viewers.append(Viewer(f"simulated {number + 1}", streams))
    return Gaze(tuple(viewers), grid.alphabet, simulated=True)


@dataclass(frozen=True, slots=True, eq=False)
class _Habit:
    """How one person looks: where, how long she rests, how often a leap goes to the next point."""

    points: Floats
    rest: float
    next_one: float

    def stream(self, values: int, grid: Grid, draw: np.random.Generator) -> list[Label]:
        cells: list[Label] = []
        target = 0
        while len(cells) < values:
            stays = 1 + int(draw.geometric(1 / self.rest))
            wandering = self.points[target] + draw.normal(0.0, 0.015, (stays, 2))
            cells += [grid.cell(x, y) for x, y in wandering.tolist()]
            follows = draw.random() < self.next_one
            target = (target + 1) % 6 if follows else int(draw.integers(6))
        return cells[:values]
