"""A chain learnt block by block that begins with the model: what lately left, against it.

Expected counts of each block are added to those of the blocks before, a little forgotten, and to
some moves of the model itself, so that contexts that were hardly seen say what the model does.
"""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.models.expectation import Guess, expected, lifted, maximised
from sfumato.models.markov import MarkovChain
from sfumato.models.output_blocks import OutputBlock, OutputBlocks

_PASSES, _THOROUGH = 3, 50
"""Passes over a block, and over all at once. One alone learns slowly from what tells little."""
_PRIOR = 2.0
"""Moves of the model for each of its probabilities that a learner begins with."""


class DriftLearner:
    """What was learnt so far, and what is believed of each stream under it.

    Attributes:
        guess: The chain that was learnt.

    Args:
        model: What it begins with.
        blocks: All streams that it will see.
        kept: Share of what was learnt that is left a block later.
        passes: How often it goes over a block.
    """

    def __init__(
        self, model: MarkovChain, blocks: OutputBlocks, kept: float, passes: int = _PASSES
    ) -> None:
        self.guess = Guess(model.initial.ravel(), np.array(model.transition()))
        self._order, self._kept, self._passes = model.order, kept, passes
        self._span = max(blocks.emissions.span, model.order)
        long_run = model.stationary().ravel()
        self._prior = _PRIOR * self.guess.moves.size * long_run[:, None] * self.guess.moves
        self._prior_starts = _PRIOR * self.guess.initial.size * self.guess.initial
        self._starts, self._moves = np.zeros_like(long_run), np.zeros_like(self.guess.moves)
        held = lifted(self.guess._replace(initial=long_run), self._span).initial
        self._beliefs = np.repeat(held[None], blocks.emissions.streams, axis=0)

    def bet(self, block: OutputBlock) -> float:
        """Log probability of a block under what was learnt before it; learn from it then."""
        wide = lifted(self.guess, self._span)
        before = self._beliefs[block.streams]
        before[block.seen == 0] = wide.initial
        counts = expected(wide, block.emissions, block.seen, before)
        said = float(counts.scores.sum())
        for turn in range(self._passes):
            starts, moves = self._sums(counts.starts, counts.moves)
            whole = counts._replace(starts=starts + self._prior_starts, moves=moves + self._prior)
            guess = maximised(whole, 0.0, self._order)
            if turn < self._passes - 1:
                counts = expected(lifted(guess, self._span), block.emissions, block.seen, before)
        self.guess, self._starts, self._moves = guess, starts, moves
        self._beliefs[block.streams] = counts.after
        return said

    def _sums(self, starts: Floats, moves: Floats) -> tuple[Floats, Floats]:
        """What was expected before, a little forgotten, and what is expected of a block."""
        contexts, symbols = self._moves.shape
        begun = starts.reshape(contexts, -1).sum(axis=1)
        followed = moves.reshape(-1, contexts, symbols).sum(axis=0)
        return self._kept * self._starts + begun, self._kept * self._moves + followed


def distance_since(blocks: OutputBlocks, model: MarkovChain, block: int) -> float:
    """How far the probabilities of moves learnt from a block on are off the model's, at most.

    An estimate, no bound: of contexts that were hardly seen it says what the model does.
    """
    learner = DriftLearner(model, blocks, 1.0, _THOROUGH)
    learner.bet(blocks.since(block))
    return float(np.abs(learner.guess.moves - model.transition()).max())
