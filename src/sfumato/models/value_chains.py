"""The models of single values: chains, plain or with hidden states."""

from __future__ import annotations

from typing import TypeAlias

from sfumato.models.clustered_chain import ClusteredChain
from sfumato.models.markov import MarkovChain
from sfumato.models.pair_chain import PairChain

ValueChain: TypeAlias = MarkovChain | PairChain | ClusteredChain
"""What a stream may be released with value by value."""
