"""Bets against the model on one stream that is followed, output by output.

Each output multiplies the capital of every bettor by how much likelier it was under his chain,
given all that left of the stream before it; under the model that factor is 1 on average. Factors of
several streams are multiplied, block by block of moments, whenever somebody looks. A bet on blocks
from one on is a martingale of all that left, in whatever order streams go on: so for streams that
are looked at as often as anybody likes, the capital of all bets ever reaches 100 with probability
at most .01 if the model is right (`models/drift_capital.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Floats
from sfumato.models.drift_bets import Bettor, near_chains
from sfumato.models.drift_capital import DriftCapital, drift_capital
from sfumato.models.markov import MarkovChain

ALPHA = 0.01
_BLOCK = 32
"""Moments of a stream that are counted together; a change begins with one."""
_SYMBOLS = 64
"""Symbols up to which some chains are followed beside the model."""
_ROUNDING = 1e-9
"""Above what some thousand logarithms may be off, and far below an alarm."""


@dataclass(frozen=True, slots=True, eq=False)
class StreamBets:
    """What bettors made of one stream.

    Attributes:
        names: What is different under each chain that bets.
        moves: The model, and these chains.
        beliefs: What is known of the next value under each.
        moments: How many there were.
        gains: Log of the factors of each block of moments, one for each bettor.
    """

    names: tuple[str, ...]
    moves: Floats
    beliefs: Floats
    moments: int = 0
    gains: tuple[Floats, ...] = ()

    @classmethod
    def against(cls, model: object, *, in_batches: bool) -> StreamBets | None:
        """Bets on single values of a small chain of order 1; None for what is not followed so."""
        if in_batches or not isinstance(model, MarkovChain):
            return None
        if model.order > 1 or model.size > _SYMBOLS:
            return None
        near = near_chains(model)
        moves = np.stack([model.transition(), *(chain.moves for _, chain in near)])
        beliefs = np.repeat(model.initial[None], len(moves), axis=0)
        return cls(tuple(name for name, _ in near), moves, beliefs)

    def passed(self, likelihood: Floats | None) -> StreamBets:
        """After a moment: how likely each symbol made what left; None if nothing was told."""
        begins = self.moments % _BLOCK == 0
        before = self.gains if begins else self.gains[:-1]
        gain = np.zeros(len(self.names)) if begins else self.gains[-1]
        beliefs = self.beliefs
        if likelihood is not None:
            beliefs = beliefs * likelihood
            chances = beliefs.sum(axis=1)
            logs = portable.log(chances)
            gain, beliefs = gain + (logs[1:] - logs[0]), beliefs / chances[:, None]
        moved = (beliefs[:, :, None] * self.moves).sum(axis=1)
        return replace(self, beliefs=moved, moments=self.moments + 1, gains=(*before, gain))


def capital_of(streams: Sequence[StreamBets]) -> DriftCapital | None:
    """The capital of bets on several streams at this look, the last of its blocks; None if none."""
    blocks = max((len(one.gains) for one in streams), default=0)
    if not blocks:
        return None
    names, total = streams[0].names, np.zeros((blocks, len(streams[0].names)))
    for one in streams:
        for block, gain in enumerate(one.gains):
            total[block] += gain
    bets = [
        Bettor(name, 1 / len(names), total[:, place].copy()) for place, name in enumerate(names)
    ]
    return drift_capital(np.zeros(blocks), bets, ALPHA, np.full(blocks, _ROUNDING))
