"""What rules say of chains: the set that a budget is kept for, or how one is learnt."""

from __future__ import annotations

import msgspec
import numpy as np

from sfumato.models.markov import MarkovChain
from sfumato.models.plausible import PlausibleChains
from sfumato.stream.learning_rules import CONFIDENCE, EDITIONS, FIRST, READY, SCOUTS

_BOUNDS = ("low", "high", "first_low", "first_high")


class ChainBounds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The bounds of a set of chains around the model: what `learn --plausible` wrote.

    Attributes:
        low: Least probability of each transition.
        high: Greatest probability of it.
        first_low: Least probability of each value to begin with.
        first_high: Greatest probability of it.
        confidence: Probability that the true chain is one of them.
    """

    low: list[list[float]]
    high: list[list[float]]
    first_low: list[float]
    first_high: list[float]
    confidence: float

    @classmethod
    def of(cls, chains: PlausibleChains) -> ChainBounds:
        """Those of a set."""
        bounds = {name: getattr(chains, name).tolist() for name in _BOUNDS}
        return cls(**bounds, confidence=chains.confidence)

    def around(self, chain: MarkovChain) -> PlausibleChains:
        """The set, around the chain that it was put around."""
        low, high, first_low, first_high = (
            np.array(getattr(self, name), dtype=np.float64) for name in _BOUNDS
        )
        return PlausibleChains(chain, low, high, first_low, first_high, self.confidence)


class LearningSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a release that starts from nothing learns; see `LearningRules`.

    Attributes:
        first: Values of all streams before the first version; each later one at twice as many.
        scouts: One stream in so many stays context-free for ever; 0 for none.
        confidence: Probability that the true chain is in the sets of all versions.
        ready: Streams move once they save this part of what knowing the chain would.
        edition: By which rules it learns; documents of before there were others name none.
    """

    first: int = FIRST
    scouts: int = SCOUTS
    confidence: float = CONFIDENCE
    ready: float = READY
    edition: int = EDITIONS[0]
