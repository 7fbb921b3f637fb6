"""Made-up people whose symbols stay and move somewhat like those of the real sets.

They stand in where no folder of real data is given: a study then shows what it computes, and says
nothing about people.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.core.alphabet import Alphabet, Label
from sfumato.core.arrays import Floats

Streams = list[list[Label]]


@dataclass(frozen=True, slots=True)
class Crowd:
    """How made-up people move.

    Attributes:
        symbols: How many values there are.
        people: How many people.
        values: Of each of them; of short sessions the mean.
        stay: Chance that a symbol comes again.
        skew: Symbol k is moved to as often as `1 / k**skew`.
        grid: Columns of a screen whose cells the symbols are; moves then go to near cells. 0: none.
        sessions: Whether lengths differ from person to person, few being long.
    """

    symbols: int
    people: int
    values: int
    stay: float
    skew: float = 1.0
    grid: int = 0
    sessions: bool = False

    @property
    def alphabet(self) -> Alphabet:
        """Numbers as names; cells of a screen lie where they are."""
        if not self.grid:
            return Alphabet([str(symbol + 1) for symbol in range(self.symbols)])
        places = [divmod(symbol, self.grid) for symbol in range(self.symbols)]
        cells = [(float(column), float(row)) for row, column in places]
        return Alphabet([f"{column:g} {row:g}" for column, row in cells], cells)

    def moves(self) -> Floats:
        """The chain that everybody follows."""
        pull = 1.0 / np.arange(1, self.symbols + 1) ** self.skew
        away = np.tile(pull, (self.symbols, 1))
        if self.grid:
            row, column = np.divmod(np.arange(self.symbols), self.grid)
            away *= np.exp(-np.hypot(row[:, None] - row, column[:, None] - column))
        np.fill_diagonal(away, 0.0)
        away /= away.sum(axis=1, keepdims=True)
        return self.stay * np.eye(self.symbols) + (1 - self.stay) * away


def simulated_streams(crowd: Crowd, seed: int) -> tuple[list[Streams], Alphabet]:
    """People, each with one stream, and the symbols.

    Examples:
        >>> people, alphabet = simulated_streams(Crowd(3, people=2, values=5, stay=0.9), seed=1)
        >>> people[0][0], len(alphabet)
        (['2', '2', '2', '2', '2'], 3)
    """
    draw, alphabet = np.random.default_rng(seed), crowd.alphabet
    ends = crowd.moves().cumsum(axis=1)
    labels = alphabet.labels
    people: list[Streams] = []
    for _ in range(crowd.people):
        values = 1 + int(draw.exponential(crowd.values)) if crowd.sessions else crowd.values
        place, path = int(draw.integers(min(3, crowd.symbols))), list[Label]()
        for point in draw.random(values):
            path.append(labels[place])
            place = min(int(np.searchsorted(ends[place], point)), crowd.symbols - 1)
        people.append([path])
    return people, alphabet
