"""Chains that bet against a model: some that are near it, and some learnt from what left before.

A bet is how probable each block of outputs was under another chain, given all that left before it.
A learner's chain of a block comes from earlier blocks alone: whoever had seen the block itself
would get rich under any model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.numerics import UNIT
from sfumato.core.progress import Progress
from sfumato.models.drift_learner import DriftLearner
from sfumato.models.expectation import Guess, value_scores
from sfumato.models.markov import MarkovChain
from sfumato.models.output_blocks import OutputBlocks

_NEAR, _FAR = 0.1, 0.4
"""How far chains are moved to where values stay, or forget: a bet at a wrong rate wins less."""
_KEPT = 0.875
"""Share of what was learnt that is left a block later: about 8 blocks are remembered."""
_LEARNER_SHARE = 0.25


@dataclass(frozen=True, slots=True, eq=False)
class Bettor:
    """One who bets against the model.

    Attributes:
        name: What is different under it, for people.
        share: Of the capital at the beginning; all shares sum to 1.
        scores: Log probability of each block, given all that left before.
    """

    name: str
    share: float
    scores: Floats


def bettors(
    blocks: OutputBlocks, model: MarkovChain, progress: Progress | None = None
) -> tuple[Bettor, ...]:
    """All who bet against a model, and what they said of each block.

    Args:
        blocks: What left.
        model: The chain they bet against; they stay near it, or begin with it.
        progress: Called with the number of values done so far.
    """
    near = near_chains(model)
    share = (1 - 2 * _LEARNER_SHARE) / len(near)
    found = [
        Bettor(name, share, blocks.summed(value_scores(one, blocks.emissions)))
        for name, one in near
    ]
    learners = [DriftLearner(model, blocks, kept) for kept in (_KEPT, 1.0)]
    told: list[list[float]] = [[] for _ in learners]
    for block, end in zip(blocks.each(), blocks.ends.tolist(), strict=True):
        for learner, scores in zip(learners, told, strict=True):
            scores.append(learner.bet(block))
        if progress:
            progress(end)
    for name, scores in zip(("as learnt lately", "as learnt since the start"), told, strict=True):
        found.append(Bettor(name, _LEARNER_SHARE, np.array(scores)))
    return tuple(found)


def near_chains(model: MarkovChain) -> list[tuple[str, Guess]]:
    """Chains near a model: values stay longer or less long, or depend less on those before.

    Examples:
        >>> sticky = MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> name, chain = near_chains(sticky)[0]
        >>> name, chain.moves[0]
        ('values stay longer', array([0.91, 0.09]))
    """
    guess = Guess(model.initial.ravel(), np.array(model.transition()))
    contexts, symbols = guess.moves.shape
    stay = np.tile(np.eye(symbols), (contexts // symbols, 1))
    long_run = model.stationary().reshape(-1, symbols).sum(axis=0)
    even = np.full(symbols, 1 / symbols)
    gone = np.where(stay > 0, 0.0, guess.moves) + UNIT * even
    leave = gone / gone.sum(axis=1, keepdims=True)
    towards = [
        ("values stay longer", _NEAR, stay),
        ("values stay much longer", _FAR, stay),
        ("values move on sooner", _NEAR, leave),
        ("values move on much sooner", _FAR, leave),
        ("values depend less on the ones before", _NEAR, long_run),
        ("values depend much less on the ones before", _FAR, long_run),
        ("values are spread more evenly", _FAR, even),
    ]
    return [
        (name, guess._replace(moves=(1 - rate) * guess.moves + rate * other))
        for name, rate, other in towards
    ]
