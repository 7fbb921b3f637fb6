"""Every batch is a cell of its own: its probability follows from the belief about its values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sfumato.core.arrays import Floats
from sfumato.core.belief import Belief, Model
from sfumato.core.numerics import UNIT
from sfumato.models.markov import MarkovChain
from sfumato.stream.partition.batch_beliefs import unrolled


class Patterns:
    """Every batch is a cell, under a belief about its first value.

    Args:
        chain: How values follow each other.
        belief: Belief about the next value.
        width: Values of the batch.
        recalled: Past values that the channel looks at, too.
    """

    def __init__(self, chain: MarkovChain, belief: Belief, width: int, recalled: int = 0) -> None:
        self._batch = unrolled(chain, belief, width, recalled)
        self._size = chain.size
        self.masses: Floats = self._batch.masses
        self.error: float = self._batch.error

    def cell(self, places: Sequence[int]) -> int:
        """Number of the batch; the first value, or the oldest recalled one, most significant."""
        return _code(places, self._size)

    def after(self, likelihood: Floats) -> Belief:
        """Belief about the value after the batch."""
        return self._batch.after(likelihood)


class WholeBatches:
    """Every batch is a cell, and the belief is about whole batches already; a value is a batch.

    Args:
        chain: How values, or batches, follow each other.
        belief: Belief about the next one.
        symbols: How many symbols a value can take.
    """

    def __init__(self, chain: Model, belief: Belief, symbols: int) -> None:
        self._chain, self._belief, self._symbols = chain, belief, symbols
        self.masses: Floats = belief.marginal
        self.error: float = belief.error

    def cell(self, places: Sequence[int]) -> int:
        """Number of the batch, the first value most significant."""
        return _code(places, self._symbols)

    def after(self, likelihood: Floats) -> Belief:
        """Belief about the next batch."""
        return self._chain.following(self._belief.weighted(likelihood))


class PhasedValue(WholeBatches):
    """A value in a known phase: what follows it waits until the phase of the next is known."""

    def after(self, likelihood: Floats) -> Belief:
        """Belief about the value itself, after an output."""
        weighted = self._belief.weighted(likelihood)
        return replace(weighted, joint=weighted.joint / weighted.joint.sum())


class ShortBatches:
    """The first values of a batch that ends early, under a belief about whole batches.

    Args:
        chain: How values follow each other.
        belief: Belief about the next batch.
        width: Values of a whole batch.
        length: Values of this one.
    """

    def __init__(self, chain: MarkovChain, belief: Belief, width: int, length: int) -> None:
        # The next values that the chain looks back on, jointly; the first of them is current.
        joint = belief.joint.reshape((chain.size,) * width)
        later = tuple(range(chain.order, width))
        summed = chain.size ** (width - chain.order)
        first = Belief(joint.sum(axis=later), 0, belief.drift + summed * UNIT)
        self._chain, self._width = chain, width
        self._patterns = Patterns(chain, first, length)
        self.masses: Floats = self._patterns.masses
        self.error: float = self._patterns.error

    def cell(self, places: Sequence[int]) -> int:
        """Number of the batch, the first value most significant."""
        return self._patterns.cell(places)

    def after(self, likelihood: Floats) -> Belief:
        """Belief about the next whole batch."""
        ahead = unrolled(self._chain, self._patterns.after(likelihood), self._width)
        masses = ahead.masses
        return Belief(masses / masses.sum(), 0, ahead.error + 2 * UNIT)


def _code(places: Sequence[int], symbols: int) -> int:
    code = 0
    for place in places:
        code = code * symbols + place
    return code
