"""How many past values matter: the order that predicts the outputs of streams it has not seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.core.alphabet import Alphabet
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.progress import Progress
from sfumato.models.emissions import Emissions
from sfumato.models.expectation import CELLS, as_guess
from sfumato.models.learning import FLOOR, SMOOTHING, learn_chain
from sfumato.models.markov import MarkovChain
from sfumato.models.output_sums import OutputSums, sums_of

_PIECES = 12
"""Streams, or pieces of streams, that there must be to hold some out."""
_EVERY = 3
"""Every so many of them are held out."""


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """How well chains that were learnt from some streams predict the outputs of others.

    Attributes:
        scores: For each order that was tried, the log probability of each stream held out.
        lengths: How many values each of them has.
        rival: The same for a chain that was given, not learnt.
    """

    scores: dict[int, Floats]
    lengths: Floats
    rival: Floats

    @property
    def order(self) -> int:
        """The order to release with.

        That the past matters is believed as soon as it gains anything: taking values for
        independent that are not would understate the adversary. More than one past value must
        gain two standard errors.
        """
        chosen, *others = sorted(self.scores)
        for order in others:
            gain, error = self.gain(self.scores[order], self.scores[chosen])
            if gain > (2 * error if chosen else 0.0):
                chosen = order
        return chosen

    def gain(self, scores: Floats, others: Floats) -> tuple[float, float]:
        """Nats that a value gains on average, stream by stream, and the standard error of that."""
        ahead, values = scores - others, float(self.lengths.sum())
        mean = float(ahead.sum()) / values
        off = ahead - mean * self.lengths
        spread = float((off * off).sum()) * ahead.size / max(ahead.size - 1, 1)
        return mean, float(np.sqrt(spread)) / values


def held_out(
    outputs: Emissions | OutputSums,
    alphabet: Alphabet,
    rival: MarkovChain,
    *,
    orders: tuple[int, ...] = (0, 1, 2),
    smoothing: float = SMOOTHING,
    floor: float = FLOOR,
    progress: Progress | None = None,
) -> HeldOut:
    """Learn from two thirds of the streams, and look at the other third.

    Few streams are cut into pieces first. An order whose chain would be too large is left out.

    Args:
        outputs: What they told; or sums over it, wherever it lies.
        alphabet: The symbols.
        rival: A chain to compare with, such as the one that streams were released with.
        orders: Those to try.
        smoothing: As in `learn_chain`.
        floor: As in `learn_chain`.
        progress: As in `learn_chain`; passes of all orders are counted.
    """
    sums = sums_of(outputs)
    parts = sums.cut(_PIECES)
    if parts.streams < 2:
        raise InvalidParameter("released", parts.streams, "have streams enough to hold some out")
    every = min(parts.streams, _EVERY)
    other, seen = parts.every(every, every - 1)
    scores, done = dict[int, Floats](), 0
    for order in orders:
        if sums.symbols ** (max(order, sums.span, 1) + 1) > CELLS:
            continue
        count = [0]

        def passed(passes: int, before: int = done, count: list[int] = count) -> None:
            count[0] = passes
            if progress:
                progress(before + passes)

        found = learn_chain(
            seen, alphabet, order=order, smoothing=smoothing, floor=floor, progress=passed
        )
        done += count[0]
        scores[order] = other.scores(as_guess(found.chain))
    if not scores:
        rule = f"leave at most {CELLS:,} probabilities to {sums.symbols:,} symbols"
        raise InvalidParameter("order", orders[0], rule)
    return HeldOut(scores, other.lengths(), other.scores(as_guess(rival)))
