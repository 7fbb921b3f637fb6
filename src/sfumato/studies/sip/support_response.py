r"""Randomised response on the values that can follow the true one: the paper's temporal rival.

The paper draws from "the realizations with non-zero conditional probabilities given the previous
values". Read literally, the previous values are the true ones: then an output rules out every
stream whose previous value it cannot follow, and the leakage about the stream is infinite, whatever
epsilon is. It is here because the paper compares with it, and is shown apart from what keeps a
promise.

References:
    [SIP, Sec. VI-B]
"""

from __future__ import annotations

import math

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.loss import Loss, as_matrix
from sfumato.models.markov import MarkovChain


class SupportResponse:
    """Randomised response on what was seen to follow the true past.

    Args:
        chain: Whose known rows say what follows what.
        epsilon: What it claims per value.

    Examples:
        >>> chain = MarkovChain.fit([[0, 1, 1, 2, 2, 0, 0]])
        >>> rival = SupportResponse(chain, math.log(2))
        >>> rival.row(0, 1)  # a 2 was never seen to follow a 0
        array([0.333, 0.667, 0.   ])
        >>> rival.leakage
        inf
    """

    def __init__(self, chain: MarkovChain, epsilon: float) -> None:
        self._size, self._order = chain.size, chain.order
        self._keep = math.exp(checks.epsilon("epsilon", epsilon))
        self._known = chain.known

    def followers(self, context: int) -> Bools:
        """What was seen to follow the last values; everything where they never occurred."""
        known = self._known
        row = known[context] if isinstance(known, np.ndarray) else known[[context]].toarray()[0]
        seen = np.asarray(row > 0)
        return seen if seen.any() else np.ones(self._size, dtype=np.bool_)

    def row(self, context: int, true: int) -> Floats:
        """Probabilities of the outputs, given the true past and present.

        Args:
            context: The last values as one number, oldest most significant.
            true: The value itself; one that never followed is drawn for evenly.
        """
        weights = self.followers(context).astype(np.float64)
        weights[true] *= self._keep
        return np.asarray(weights / weights.sum())

    @property
    def leakage(self) -> float:
        """About the stream: infinite as soon as two pasts have different followers."""
        known = self._known
        rows = known if isinstance(known, np.ndarray) else known.toarray()
        patterns = np.unique(rows > 0, axis=0)
        return math.inf if len(patterns) > 1 else math.log(self._keep)

    def losses(self, loss: Loss | Floats, streams: Ints) -> Floats:
        """Mean loss of each stream, value by value; the first ones are drawn from everything."""
        costs = as_matrix(loss, self._size)
        everything = np.ones(self._size)
        lost = np.zeros(len(streams))
        for place, stream in enumerate(streams.tolist()):
            for moment, true in enumerate(stream):
                if moment < self._order:
                    row = np.where(np.arange(self._size) == true, self._keep, everything)
                    row = row / row.sum()
                else:
                    row = self.row(self._context(stream[moment - self._order : moment]), true)
                lost[place] += float(row @ costs[true])
        return np.asarray(lost / streams.shape[1])

    def _context(self, past: list[int]) -> int:
        number = 0
        for value in past:
            number = number * self._size + value
        return number
