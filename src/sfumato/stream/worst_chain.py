r"""A bad chain within bounds, found by search: what a release leaked to who knows it, at least.

A set of beliefs bounds what outputs told under *every* chain of a set, from above. Here one chain
is sought that they told much: its leakage, with its own belief carried through all outputs,

$$\sum_t \max_{x,y} \left|\log \frac{a_t(y \mid x)}{\sum_z b_t(z)\, a_t(y \mid z)}\right|,$$

is exact but for rounding, and the worst chain leaks no less. Rows are moved one at a time, mass
from one entry to another as far as bounds allow, as long as that helps, from several starts. The
search may miss the worst chain: it is a lower bound, and never mixed with the upper one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Floats
from sfumato.core.channel import Channel
from sfumato.models.plausible import PlausibleChains

_STARTS, _TRIES, _SEED = 4, 1_500, 1
"""Chains that the search begins with, and chains that are tried in all."""
_PARTS = (1.0, 0.5)
"""Parts of what may be moved between two entries that are tried."""
_ROUNDING = 1e-9
"""What a sum in floating point may be too large, of itself and besides: far more than it is."""

Told = tuple[Channel, int] | None
"""A step: its channel and which of its outputs left; None where nothing was told."""


@dataclass(frozen=True, slots=True)
class BadChain:
    """A chain near another one, and what a stream leaked to an adversary who knows it.

    Attributes:
        stream: The stream.
        at_least: What its outputs leaked under the chain, rounded down: a lower bound of what they
            leaked under the worst chain of the set.
        initial: How the chain begins.
        transition: How it moves.
        tried: How many chains were tried.
    """

    stream: str
    at_least: float
    initial: tuple[float, ...]
    transition: tuple[tuple[float, ...], ...]
    tried: int


def bad_chain(stream: str, steps: Sequence[Told], chains: PlausibleChains) -> BadChain:
    """The worst chain of a set that a search finds for one stream.

    Args:
        stream: Its name.
        steps: What left, from the first moment on.
        chains: The set, of order 1.

    Examples:
        >>> import sfumato as sf
        >>> sticky = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> noisy = Channel.from_probabilities([[0.75, 0.25], [0.25, 0.75]])
        >>> near = PlausibleChains.from_radius(sticky, 0.05)
        >>> found = bad_chain("ann", [(noisy, 0)] * 3, near)
        >>> found.transition[0][0], 2.6 < found.at_least < 2.8
        (0.95, True)
    """
    search = _Search(steps, chains)
    best, most = search.rows[0], -np.inf
    for begin in search.rows:
        found, told = search.climbed(begin)
        if told > most:
            best, most = found, told
    first, *moves = (tuple(row) for row in best.tolist())
    least = max(most - _ROUNDING * (1 + most), 0.0)
    return BadChain(stream, least, first, tuple(moves), search.tried)


class _Search:
    """Chains as tables: the first row is how they begin, the others how they move."""

    def __init__(self, steps: Sequence[Told], chains: PlausibleChains) -> None:
        self._low = np.vstack([chains.first_low, chains.low])
        self._high = np.vstack([chains.first_high, chains.high])
        tables: dict[int, tuple[Floats, Floats, Floats]] = {}
        self._steps: list[tuple[Floats, Floats, Floats, Floats] | None] = []
        for step in steps:
            if step is None:
                self._steps.append(None)
                continue
            channel, output = step
            if id(channel) not in tables:
                rows = channel.probabilities
                tables[id(channel)] = (rows, rows.max(axis=0), rows.min(axis=0))
            self._steps.append((*tables[id(channel)], channel.likelihood(output)))
        middle = np.vstack([chains.estimate.initial.ravel(), chains.estimate.transition()])
        own = np.clip(middle, self._low, self._high)
        rng, self.tried = np.random.default_rng(_SEED), 0
        self.rows = [own / own.sum(axis=1, keepdims=True)]
        for _ in range(_STARTS - 1):
            self.rows.append(np.array([self._corner(place, rng) for place in range(len(own))]))

    def _corner(self, place: int, rng: np.random.Generator) -> Floats:
        """A row at an end of its bounds: entries are filled up in any order."""
        row, free = self._low[place].copy(), 1 - float(self._low[place].sum())
        for entry in rng.permutation(row.size).tolist():
            moved = min(max(free, 0.0), float(self._high[place, entry] - row[entry]))
            row[entry] += moved
            free -= moved
        return np.asarray(row / row.sum())

    def told(self, rows: Floats) -> float:
        """What the outputs leaked to who knows a chain."""
        self.tried += 1
        belief, moves, total = rows[0], rows[1:], 0.0
        for step in self._steps:
            if step is not None:
                table, most, least, likelihood = step
                mean = (belief[:, None] * table).sum(axis=0)
                total += portable.log(float(np.maximum(most / mean, mean / least).max()))
                belief = belief * likelihood
                belief = belief / belief.sum()
            belief = (belief[:, None] * moves).sum(axis=0)
        return total

    def climbed(self, rows: Floats) -> tuple[Floats, float]:
        """From a chain to one that no move makes worse, or until enough were tried."""
        most, better = self.told(rows), True
        last = self.tried + _TRIES // _STARTS
        while better and self.tried < last:
            better = False
            for moved in self._moves(rows):
                told = self.told(moved)
                if told > most * (1 + 1e-12) + 1e-12:
                    rows, most, better = moved, told, True
                    break
                if self.tried >= last:
                    break
        return rows, most

    def _moves(self, rows: Floats) -> Iterator[Floats]:
        """Chains with mass of one row moved from an entry to another."""
        for place, (whence, where) in (
            (place, pair)
            for place in range(len(rows))
            for pair in permutations(range(rows.shape[1]), 2)
        ):
            room = min(
                rows[place, whence] - self._low[place, whence],
                self._high[place, where] - rows[place, where],
            )
            for part in _PARTS if room > 1e-9 else ():
                moved = rows.copy()
                moved[place, whence] -= part * room
                moved[place, where] += part * room
                yield moved
