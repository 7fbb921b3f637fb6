"""All that learning asks of outputs: sums over streams, wherever these lie.

A learner never looks at one output. It asks what a chain makes of all of them, and gets sums that
are the same in whatever parts and order streams were gone through: here those of arrays in memory,
in an engine those of its workers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.fixed_sums import FixedSum
from sfumato.models.chain_bets import BetCounts, FixedOutputs, bet_counts
from sfumato.models.emissions import Emissions
from sfumato.models.expectation import Counted, Guess, chain_scores, order_of, pass_sums
from sfumato.models.markov import MarkovChain


class OutputSums(Protocol):
    """Outputs of many streams, in an order of streams that is fixed by their names."""

    @property
    def symbols(self) -> int:
        """How many symbols a value can take."""

    @property
    def span(self) -> int:
        """The most values that one output tells about together."""

    @property
    def streams(self) -> int:
        """How many streams there are."""

    @property
    def values(self) -> int:
        """How many values they have."""

    @property
    def telling(self) -> int:
        """How many of these have an output that tells anything."""

    def passed(self, guess: Guess) -> Counted:
        """What is expected of hidden values under a chain, given all outputs."""

    def score(self, guess: Guess) -> float:
        """Log probability of all outputs, up to factors that are those of no chain."""

    def scores(self, guess: Guess) -> Floats:
        """The same of each stream."""

    def lengths(self) -> Floats:
        """How many values each stream has."""

    def cut(self, pieces: int) -> Self:
        """Streams cut into at least so many pieces, as `Emissions.cut` does."""

    def every(self, number: int, rest: int) -> tuple[Self, Self]:
        """Each stream whose place, divided by a number, leaves a rest; and all others."""

    def bets(self, channel: Floats, guide: MarkovChain | None) -> BetCounts:
        """What bets on a chain need of outputs that all left through one channel."""


@dataclass(frozen=True, slots=True)
class EmissionSums:
    """Sums over outputs that lie in memory.

    Attributes:
        emissions: What they told.

    Examples:
        >>> from sfumato.models.expectation import even
        >>> two = Emissions.of_rows([np.array([[0.8, 0.2], [0.2, 0.8]]), np.array([[0.8, 0.2]])])
        >>> EmissionSums(two).passed(even(2, 1)).starts
        array([1.6, 0.4])
    """

    emissions: Emissions

    @property
    def symbols(self) -> int:
        """How many symbols a value can take."""
        return self.emissions.symbols

    @property
    def span(self) -> int:
        """The most values that one output tells about together."""
        return self.emissions.span

    @property
    def streams(self) -> int:
        """How many streams there are."""
        return self.emissions.streams

    @property
    def values(self) -> int:
        """How many values they have."""
        return len(self.emissions)

    @property
    def telling(self) -> int:
        """How many of these have an output that tells anything."""
        return self.emissions.telling

    def passed(self, guess: Guess) -> Counted:
        """What is expected of hidden values under a chain, given all outputs."""
        found = pass_sums(guess, self.emissions)
        return found.counted(self.symbols, order_of(guess, self.symbols))

    def score(self, guess: Guess) -> float:
        """Log probability of all outputs, up to factors that are those of no chain."""
        return float(FixedSum.of(self.scores(guess)).value())

    def scores(self, guess: Guess) -> Floats:
        """The same of each stream."""
        return chain_scores(guess, self.emissions)

    def lengths(self) -> Floats:
        """How many values each stream has."""
        return np.diff(self.emissions.starts).astype(np.float64)

    def cut(self, pieces: int) -> EmissionSums:
        """Streams cut into at least so many pieces, as `Emissions.cut` does."""
        return EmissionSums(self.emissions.cut(pieces))

    def every(self, number: int, rest: int) -> tuple[EmissionSums, EmissionSums]:
        """Each stream whose place, divided by a number, leaves a rest; and all others."""
        places = np.arange(self.streams)
        own = places % number == rest
        chosen = [self.emissions.of_streams(places[which]) for which in (own, ~own)]
        return EmissionSums(chosen[0]), EmissionSums(chosen[1])

    def bets(self, channel: Floats, guide: MarkovChain | None) -> BetCounts:
        """What bets on a chain need of outputs that all left through one channel."""
        return bet_counts(channel_outputs(self.emissions, channel), guide)


def channel_outputs(emissions: Emissions, channel: Floats) -> FixedOutputs:
    """Outputs that all left through one channel, as its columns.

    Args:
        emissions: What they told: the columns of the channel, once or several times.
        channel: The channel.
    """
    columns = emissions.begins // emissions.symbols % channel.shape[1]
    return FixedOutputs(channel, emissions.starts, columns)


def sums_of(outputs: Emissions | OutputSums) -> OutputSums:
    """Sums over outputs, given as such or in memory."""
    return EmissionSums(outputs) if isinstance(outputs, Emissions) else outputs
