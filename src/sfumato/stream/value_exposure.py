"""What the outputs of each stream told, kept while it fits into memory, for an audit."""

from __future__ import annotations

import math

from sfumato.core.arrays import Floats
from sfumato.models.encoding import StreamModel
from sfumato.models.markov import MarkovChain
from sfumato.stream.one_value import one_value_leakage, one_value_leakage_of_batches

_KEPT_CELLS = 20_000_000
"""Probabilities that are kept to compute what streams told about single values in all."""


class ToldValues:
    """What the outputs of each stream told, moment by moment, while it fits into memory."""

    def __init__(self, model: StreamModel) -> None:
        self._chain = model.chain
        self._streams: dict[str, list[Floats | None]] = {}
        self._cells = 0
        # Other models than plain chains are not followed: the sum of all steps is reported.
        whole = isinstance(self._chain, MarkovChain)
        self._each = model.single_values.initial.size + 1 if whole else _KEPT_CELLS + 1

    def add(self, stream: str, likelihood: Floats | None) -> None:
        """One more moment of a stream."""
        tells = likelihood is not None and likelihood.min() < likelihood.max()
        self._cells += self._each
        if self._cells > _KEPT_CELLS:
            self._streams = {}
        else:
            self._streams.setdefault(stream, []).append(likelihood if tells else None)

    def about_one_value(self, stream: str) -> float:
        """The exact leakage about one value; infinite where it is not known."""
        if not isinstance(self._chain, MarkovChain) or stream not in self._streams:
            return math.inf
        return one_value_leakage(self._chain, self._streams[stream])


class ToldBatches:
    """What the batches of each stream told, while every batch can be listed and kept."""

    def __init__(self, model: StreamModel, memory: int) -> None:
        chain = model.chain
        plain = isinstance(chain, MarkovChain) and chain.order == 1 and memory == 1
        self._chain = chain if plain and isinstance(chain, MarkovChain) else None
        self._streams: dict[str, list[tuple[int, Floats | None]]] = {}
        self._cells = 0

    def add(self, stream: str, length: int, told: Floats | None) -> None:
        """One more batch; `told` is how likely every batch of its length made its output."""
        if self._chain is None:
            return
        self._cells += self._chain.size**length
        if self._cells > _KEPT_CELLS:
            self.give_up()
        else:
            self._streams.setdefault(stream, []).append((length, told))

    def give_up(self) -> None:
        """Only the sum of all steps will be known: batches cannot be listed, or not be kept."""
        self._chain, self._streams = None, {}

    def about_one_value(self, stream: str) -> float:
        """The exact leakage about one value; infinite where it is not known."""
        if self._chain is None or stream not in self._streams:
            return math.inf
        return one_value_leakage_of_batches(self._chain, self._streams[stream])
