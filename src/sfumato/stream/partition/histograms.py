r"""Batches of which only the histogram counts: the cells are the histograms.

If the loss looks at histograms alone, a channel that looks at more is no better: averaged over
the batches of each histogram it has the same expected loss and no larger ratio. So the optimum
over all $|X|^w$ batches is found on the histograms, of which there are few: 51 for 50 bits. Their
probabilities are exact, by the forward algorithm on pairs of a context and the counts so far.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.belief import Belief
from sfumato.core.numerics import UNIT
from sfumato.models.markov import MarkovChain
from sfumato.stream.partition.forward import Forward

Counts = tuple[int, ...]

_LEAST_MASS = 1e-30
"""Histograms of less than this part of the likeliest one share the cell of a neighbour."""


class Histograms(Forward):
    """Histograms of a batch, with exact masses.

    Args:
        chain: How values follow each other.
        belief: Belief about the first value of the batch.
        width: Values of the batch.
        bars: The bar that each symbol is counted in.

    Attributes:
        counts: The histogram of each cell; those that hardly ever occur belong to a neighbour's.
        masses: Its probability.
        error: Bound on the log ratio of `masses` to the exact ones, up to a common factor.

    Examples:
        >>> fair = MarkovChain.from_matrix([[0.5, 0.5], [0.5, 0.5]])
        >>> histograms = Histograms(fair, fair.first(), 2, np.array([0, 1]))
        >>> histograms.counts, histograms.masses
        ([(0, 2), (1, 1), (2, 0)], array([0.25, 0.5 , 0.25]))
    """

    def __init__(self, chain: MarkovChain, belief: Belief, width: int, bars: Ints) -> None:
        super().__init__(chain, belief, width)
        self._bars = bars
        told: dict[Counts, Floats] = {(0,) * (int(bars.max()) + 1): belief.joint.ravel()}
        for position in range(width):
            if self._carried(position):
                told = {counts: chain.spread(weights) for counts, weights in told.items()}
            told = self._counted(told, bars[self._at[position]])
        self.counts, self._places = _cells(told)
        tails = [np.zeros(belief.joint.size) for _ in self.counts]
        for counts, cell in self._places.items():
            tails[cell] += told[counts]
        self._tails = tails
        self.masses: Floats = np.array([tail.sum() for tail in tails])
        # Batches with the same counts are added up at each position, a bar at a time.
        self._drift += (width * len(self.counts[0]) + len(told)) * UNIT
        self.error: float = self._drift + belief.joint.size * UNIT

    def cell(self, places: Sequence[int]) -> int:
        """The histogram of a batch."""
        bars = np.bincount(self._bars[np.array(places)], minlength=len(self.counts[0]))
        return self._places[tuple(bars.tolist())]

    def patterns(self) -> Ints:
        """A batch with each histogram: the bars in turn, by their first symbols."""
        first = np.array(
            [int(np.flatnonzero(self._bars == bar)[0]) for bar in np.unique(self._bars)]
        )
        return np.stack([np.repeat(first, counts) for counts in self.counts])

    def _counted(self, told: dict[Counts, Floats], current: Ints) -> dict[Counts, Floats]:
        """Tell apart the bars that the current value falls into."""
        found: dict[Counts, Floats] = {}
        for counts, weights in told.items():
            for bar in range(len(counts)):
                more = (*counts[:bar], counts[bar] + 1, *counts[bar + 1 :])
                inside = np.where(current == bar, weights, 0.0)
                found[more] = found[more] + inside if more in found else inside
        return found


def _cells(told: dict[Counts, Floats]) -> tuple[list[Counts], dict[Counts, int]]:
    """Histograms that are cells, and the cell of every one: next to nothing goes to a neighbour."""
    masses = {counts: float(weights.sum()) for counts, weights in told.items()}
    least = _LEAST_MASS * max(masses.values())
    kept = sorted(counts for counts, mass in masses.items() if mass >= least)
    table = np.array(kept)
    places = {counts: cell for cell, counts in enumerate(kept)}
    for counts in told.keys() - places.keys():
        places[counts] = int(np.abs(table - np.array(counts)).sum(axis=1).argmin())
    return kept, places


def histogram_count(bars: int, width: int) -> int:
    """How many histograms a batch can have.

    Examples:
        >>> histogram_count(2, 50)
        51
    """
    return math.comb(width + bars - 1, bars - 1)
