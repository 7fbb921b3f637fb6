"""What partitions share whose masses are found by the forward algorithm, one position at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.belief import Belief
from sfumato.core.numerics import UNIT
from sfumato.models.markov import MarkovChain


class Forward:
    """A chain, followed over the values of a batch.

    Args:
        chain: How values follow each other.
        belief: Belief about the first value of the batch.
        width: Values of the batch.
    """

    def __init__(self, chain: MarkovChain, belief: Belief, width: int) -> None:
        self._chain, self._belief, self._width = chain, belief, width
        self._tails: Sequence[Floats] = ()
        """For each cell, the probability of being in it and in each context at its end."""
        self._at = [self._symbol_at(position) for position in range(width)]
        moves = sum(map(self._carried, range(width)))
        self._drift = belief.drift + moves * (6 * chain.size + 16) * UNIT

    def after(self, likelihood: Floats) -> Belief:
        """Belief about the value after the batch, given the likelihood of each cell."""
        joint = np.zeros(self._belief.joint.size)
        for weight, tail in zip(likelihood, self._tails, strict=True):
            joint += weight * tail
        drift = self._drift + (len(self._tails) + 4) * UNIT
        order, axis = self._chain.order, self._belief.axis + self._width
        shape = self._belief.joint.shape
        if axis < order:
            # The chain's first values are known jointly: nothing has to be carried on.
            return Belief((joint / joint.sum()).reshape(shape), axis, drift + 2 * UNIT)
        return self._chain.following(Belief(joint.reshape(shape), order - 1, drift))

    def _carried(self, position: int) -> bool:
        """Whether the chain moves on before a position is read."""
        return position > 0 and self._belief.axis + position >= self._chain.order

    def _symbol_at(self, position: int) -> Ints:
        """The symbol at a position, for each context."""
        size, order = self._chain.size, self._chain.order
        axis = min(self._belief.axis + position, order - 1)
        return np.asarray(np.arange(size**order) // size ** (order - 1 - axis) % size)
