"""What the receiver's best guesses lose, given everything that left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.loss import Loss
from sfumato.models.value_chains import ValueChain
from sfumato.stream.evidence import of_likelihoods
from sfumato.stream.hidden_chain import HiddenChain
from sfumato.stream.recovery_loops import posteriors
from sfumato.stream.remap import Guesser
from sfumato.stream.true_values import RealisedLoss, Truth

Told = Sequence[tuple[int, Floats | None]]
"""For each batch of a stream its length, and how likely every batch of it made its output."""


def smoothed(chain: ValueChain, batches: Told) -> Floats:
    """The distribution of every value of a stream given all outputs, one row each.

    Examples:
        >>> from sfumato.models.markov import MarkovChain
        >>> chain = MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> smoothed(chain, [(1, np.array([0.6, 0.4])), (1, None)]).round(3)
        array([[0.6 , 0.4 ],
               [0.58, 0.42]])
    """
    told = of_likelihoods([batches], chain.size)
    hidden = HiddenChain.of(chain, told.span)
    found = np.empty((len(told), chain.size))
    posteriors(hidden.arrays, told.arrays, told.starts, hidden.span, -1, found)
    return found


def guesses(found: Floats, loss: Loss) -> Ints:
    """The best guess under each row."""
    return Guesser(loss).best(found.T, found.argmax(axis=1))


class RecoveredLoss:
    """Losses of best guesses beside true values, stream by stream."""

    def __init__(self) -> None:
        self._truths: dict[str, list[Truth | None]] = {}

    def add(self, stream: str, truths: Sequence[Truth | None]) -> None:
        """The true values of the next moments; None where they are not known."""
        self._truths.setdefault(stream, []).extend(truths)

    def mean(
        self, chain: ValueChain, told: Mapping[str, Told], losses: RealisedLoss
    ) -> float | None:
        """Loss per value that is known; None if none is."""
        total, count = 0.0, 0
        for stream, truths in self._truths.items():
            rows = [None if truth is None else losses.costs(truth) for truth in truths]
            if stream not in told or all(row is None for row in rows):
                continue
            best = guesses(smoothed(chain, told[stream]), losses.priced)
            for row, guess in zip(rows, best.tolist(), strict=True):
                if row is not None:
                    total, count = total + float(row[guess]), count + 1
        return total / count if count else None
