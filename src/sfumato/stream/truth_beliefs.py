"""What an adversary with a chain of his own believes about a stream, and how he sees its batches.

The channels of a release act on cells: values, or groups of batches. What he is told follows from
the probability of each cell under his own belief. A chain that does not change with time carries a
belief about the next value; one that does, about the last value, until the phase of the next is
known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.belief import Belief, Model
from sfumato.core.numerics import UNIT
from sfumato.models.clustered_chain import ClusteredChain
from sfumato.models.markov import MarkovChain
from sfumato.models.periodic import PeriodicChain
from sfumato.stream.evidence import cells_of
from sfumato.stream.partition.cells import Partition
from sfumato.stream.partition.patterns import Patterns, PhasedValue, WholeBatches

_MOVE = 24
"""Roundings of an entry of a transition matrix, and of its product with a probability."""


class Cells(Protocol):
    """The cells of a channel, as an adversary sees them.

    Attributes:
        masses: Probability of each cell, up to a common factor.
        error: Bound on the rounding error of each, as a log ratio.
    """

    masses: Floats
    error: float

    def after(self, likelihood: Floats) -> Belief:
        """What is believed once an output is known that every cell makes with some probability."""


class SteadyBelief:
    """What an adversary believes whose chain does not change with time.

    Args:
        truth: That chain.
    """

    def __init__(self, truth: Model) -> None:
        self._truth, self._belief = truth, truth.first()

    def passed(self, length: int, phases: Sequence[int]) -> None:
        """Some moments told nothing."""
        for _ in range(length):
            self._belief = self._truth.following(self._belief)

    def cells(self, partition: Partition, length: int, phases: Sequence[int]) -> Cells:
        """What the channel of a batch looks at."""
        truth = self._truth
        if length == 1 and partition.masses.size == len(truth.alphabet):
            return WholeBatches(truth, self._belief, len(truth.alphabet))
        if isinstance(truth, ClusteredChain):
            moves, shown = truth.hidden_moves()
            batch = _HiddenBatch(self._belief, [moves] * (length - 1), shown)
            return _FollowedBatch(truth, batch, partition, length)
        assert isinstance(truth, MarkovChain)  # `other_truth` refuses others
        return _Grouped(truth, self._belief, length, partition)

    def told(self, cells: Cells, likelihood: Floats) -> None:
        """An output left."""
        self._belief = cells.after(likelihood)


class PhasedBelief:
    """What an adversary believes whose chain changes with time.

    Args:
        truth: That chain.
    """

    def __init__(self, truth: PeriodicChain) -> None:
        self._truth = truth
        self._last: Belief | None = None  # about the last value

    def passed(self, length: int, phases: Sequence[int]) -> None:
        """Some moments told nothing."""
        for phase in phases:
            self._last = self._truth.arrived(self._last, phase)

    def cells(self, partition: Partition, length: int, phases: Sequence[int]) -> Cells:
        """What the channel of a batch looks at, whose values have these phases."""
        truth, size = self._truth, self._truth.size
        arrived = truth.arrived(self._last, phases[0])
        if length == 1 and partition.masses.size == size:
            return PhasedValue(truth.at(phases[0]), arrived, size)
        moves = [truth.at(phase).transition() for phase in phases[1:]]
        batch = _HiddenBatch(arrived, moves, np.arange(size))
        return _GroupedBatch(batch, partition, length)

    def told(self, cells: Cells, likelihood: Floats) -> None:
        """An output left."""
        self._last = cells.after(likelihood)


class _Grouped:
    """Cells that several batches share, under a belief about their first value."""

    def __init__(self, chain: MarkovChain, belief: Belief, length: int, partition: Partition):
        self._patterns = Patterns(chain, belief, length)
        self._cells = cells_of(partition, length, chain.size)
        masses = self._patterns.masses
        sums = np.bincount(self._cells, masses, minlength=partition.masses.size)
        self.masses: Floats = sums.astype(np.float64)
        self.error = self._patterns.error + masses.size * UNIT

    def after(self, likelihood: Floats) -> Belief:
        """Belief about the value after the batch."""
        return self._patterns.after(likelihood[self._cells])


class _HiddenBatch:
    """All values of a batch jointly with the hidden state of the last one.

    Args:
        belief: About the hidden state of the first value, or the value itself.
        moves: How states follow each other, one matrix for each later value.
        shown: The value that each state shows.
    """

    def __init__(self, belief: Belief, moves: Sequence[Floats], shown: Ints) -> None:
        self.shown, self.symbols = shown, int(shown[-1]) + 1
        self.runs = belief.runs
        own = [np.flatnonzero(shown == symbol) for symbol in range(self.symbols)]
        # Axes: the values before the last one, as one number; the state of the last one.
        joint, drift = belief.joint.reshape(1, -1), belief.drift
        for matrix in moves:
            following = [
                (joint[:, states, None] * matrix[None, states, :]).sum(axis=1) for states in own
            ]
            joint = np.stack(following, axis=1).reshape(-1, shown.size)
            drift += (_MOVE + own[0].size) * UNIT
        self.joint, self.drift = joint, drift
        each = [joint[:, states].sum(axis=1) for states in own]
        self.masses: Floats = np.stack(each, axis=1).ravel()
        self.error = drift + own[0].size * UNIT

    def last(self, likelihood: Floats) -> Belief:
        """Belief about the last state, given how likely each batch made the output."""
        by_symbol = likelihood.reshape(-1, self.symbols)
        weighted = (self.joint * by_symbol[:, self.shown]).sum(axis=0)
        rounding = (len(self.joint) + 8) * UNIT
        return Belief(weighted / weighted.sum(), 0, self.drift + rounding, self.runs)


class _GroupedBatch:
    """Cells that several batches share; what is believed after them is about the last value."""

    def __init__(self, batch: _HiddenBatch, partition: Partition, length: int) -> None:
        self._batch = batch
        self._cells = cells_of(partition, length, batch.symbols)
        sums = np.bincount(self._cells, batch.masses, minlength=partition.masses.size)
        self.masses: Floats = sums.astype(np.float64)
        self.error = batch.error + batch.masses.size * UNIT

    def after(self, likelihood: Floats) -> Belief:
        """Belief about the last value of the batch."""
        return self._batch.last(likelihood[self._cells])


class _FollowedBatch(_GroupedBatch):
    """The same; what is believed after them is about the value that follows."""

    def __init__(
        self, truth: Model, batch: _HiddenBatch, partition: Partition, length: int
    ) -> None:
        super().__init__(batch, partition, length)
        self._truth = truth

    def after(self, likelihood: Floats) -> Belief:
        """Belief about the value after the batch."""
        return self._truth.following(super().after(likelihood))
