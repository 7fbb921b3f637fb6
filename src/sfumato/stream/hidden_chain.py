"""What the receiver knows before anything is released, laid out for the loops that infer tracks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.models.clustered_chain import ClusteredChain
from sfumato.models.markov import MarkovChain
from sfumato.models.pair_chain import PairChain
from sfumato.models.value_chains import ValueChain
from sfumato.stream.recovery_loops import ChainArrays

_CONTEXTS = 2_000_000
"""Contexts of which the loops hold messages: some 16 MB for each value of a stream."""
_CLUSTERED = 2_000
"""States of a mixture of chains, which are followed by their matrix: 32 MB."""
DENSE = 400
"""States up to which a chain is followed by its matrix; a sparse one of more stays sparse."""


@dataclass(frozen=True, slots=True, eq=False)
class HiddenChain:
    """A chain of states, each of which shows a symbol.

    Attributes:
        symbols: How many symbols there are.
        span: Values of a context: at least the order of the chain, and what one output tells of.
        arrays: What the loops read; see `sfumato.stream.recovery_loops`.
    """

    symbols: int
    span: int
    arrays: ChainArrays

    @classmethod
    def of(cls, model: ValueChain, span: int = 1) -> HiddenChain:
        """The states of a model, in contexts of at least `span` values.

        Examples:
            >>> sticky = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
            >>> HiddenChain.of(sticky).contexts, HiddenChain.of(sticky, span=3).contexts
            (2, 8)
        """
        if isinstance(model, PairChain):
            if span > 1:
                rule = "be a chain of order 1 for batches"
                raise InvalidParameter("model", "a chain over the pairs that occur", rule)
            return cls(model.size, 1, _pair_arrays(model))
        if isinstance(model, ClusteredChain):
            return cls(model.size, 1, _cluster_arrays(model, span))
        span = max(span, model.order)
        if model.size**span > _CONTEXTS:
            rule = f"have at most {_CONTEXTS:,} combinations of the values of a batch"
            raise InvalidParameter("batch", f"{model.size}^{span}", rule)
        return cls(model.size, span, _arrays(model.lifted(span)))

    @classmethod
    def in_parts(cls, chains: Sequence[MarkovChain]) -> HiddenChain:
        """Chains of order 1 of which one holds in each part of a stream; parts are public.

        A state is a pair of part and symbol, and a value moves as the chain of its own part says.
        All parts are as probable here: what is told of each value names its part
        (`Evidence.in_parts`).

        Examples:
            >>> sticky, loose = (
            ...     MarkovChain.from_matrix([[p, 1 - p], [1 - p, p]]) for p in (0.9, 0.3)
            ... )
            >>> HiddenChain.in_parts([sticky, loose]).contexts
            4
        """
        if len(chains) == 1:
            return cls.of(chains[0])
        size, parts = chains[0].size, len(chains)
        rows = np.hstack([chain.transition() for chain in chains]) / parts
        first = np.concatenate([chain.initial.ravel() for chain in chains]) / parts
        none, places = np.empty(0), np.empty(0, dtype=np.int32)
        moves, still = np.tile(rows, (parts, 1)), np.zeros(parts * size)
        shown = np.arange(parts * size)
        arrays = _laid_out(first, moves, (none, places, places), still, still, shown)
        return cls(parts * size, 1, arrays)

    @property
    def observable(self) -> bool:
        """Whether each state shows a symbol of its own, so that a path is its values."""
        return self.arrays[7].size == self.symbols

    @property
    def contexts(self) -> int:
        """How many contexts there are."""
        return int(self.arrays[0].size)

    @property
    def dense(self) -> bool:
        """Whether the matrix of the chain is at hand."""
        return len(self.arrays[1]) > 0


def _arrays(chain: MarkovChain) -> ChainArrays:
    known, shown = chain.known, np.arange(chain.size)
    none, places = np.empty(0), np.empty(0, dtype=np.int32)
    if isinstance(known, np.ndarray) or chain.size <= DENSE:
        moves, sparse = np.array(chain.transition()), (none, places, places)
    else:
        moves, sparse = np.empty((0, 0)), (known.data, known.indices, known.indptr)
    return _laid_out(chain.initial.ravel(), moves, sparse, chain.backoff, chain.background, shown)


def _pair_arrays(model: PairChain) -> ChainArrays:
    """The hidden states of a chain over pairs: known moves, and the background to single values."""
    known, backoff, background, shown = model.hidden_moves()
    sparse = (known.data, known.indices, known.indptr)
    first = model.first().joint
    return _laid_out(first, np.empty((0, 0)), sparse, backoff, background, shown)


def _cluster_arrays(model: ClusteredChain, span: int) -> ChainArrays:
    """The pairs of value and cluster, by the matrix of their moves."""
    states = model.size * len(model.chains)
    if span > 1 or states > _CLUSTERED:
        rule = f"leave value by value, with at most {_CLUSTERED:,} pairs of value and cluster"
        raise InvalidParameter("model", f"a mixture of {states:,} such pairs", rule)
    moves, shown = model.hidden_moves()
    none, places = np.empty(0), np.empty(0, dtype=np.int32)
    sparse, still = (none, places, places), np.zeros(states)
    return _laid_out(model.first().joint, moves, sparse, still, still, shown)


def _laid_out(
    initial: Floats,
    moves: Floats,
    sparse: tuple[Floats, Any, Any],
    backoff: Floats,
    background: Floats,
    shown: Ints,
) -> ChainArrays:
    values, columns, rows = sparse
    return (
        np.array(initial, dtype=np.float64),
        np.array(moves, dtype=np.float64),
        np.array(values, dtype=np.float64),
        np.array(columns, dtype=np.int32),
        np.array(rows, dtype=np.int32),
        np.array(backoff, dtype=np.float64),
        np.array(background, dtype=np.float64),
        np.array(shown, dtype=np.int64),
    )
