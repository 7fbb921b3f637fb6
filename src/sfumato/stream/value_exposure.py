"""What the outputs of each stream told about single values, while it fits into memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from sfumato.core.arrays import Floats
from sfumato.models.encoding import StreamModel
from sfumato.models.markov import MarkovChain
from sfumato.stream.one_value import one_value_leakage, one_value_leakage_of_batches
from sfumato.stream.plan import Plan

_MOST_CELLS = 20_000_000
"""Probabilities that are held at one time: 160 MB."""


class ValueExposure:
    """The likelihoods of all outputs of each stream.

    Only plain chains are followed, and in batches only chains of order 1 whose batches can be
    listed: of the others the sum of all steps is known.
    """

    def __init__(self, model: StreamModel, plan: Plan) -> None:
        self._in_batches = plan.in_batches
        self._chain = model.chain if isinstance(model.chain, MarkovChain) else None
        if self._chain is not None and plan.in_batches:
            listed = self._chain.order == 1 and plan.memory == 1
            self._chain = self._chain if listed else None
        self._streams: dict[str, list[tuple[int, Floats | None]]] = {}
        self._cells = 0

    def add(self, stream: str, length: int, likelihood: Floats | None) -> None:
        """One more batch; `likelihood` is how likely every batch of its length made its output."""
        if self._chain is None:
            return
        each = self._chain.size**length if self._in_batches else self._chain.initial.size + 1
        self._cells += each
        if self._cells > _MOST_CELLS:
            self.give_up()
            return
        tells = likelihood is not None and likelihood.min() < likelihood.max()
        self._streams.setdefault(stream, []).append((length, likelihood if tells else None))

    def give_up(self) -> None:
        """Only the sum of all steps will be known: outputs cannot be listed, or not be held."""
        self._chain, self._streams = None, {}

    @property
    def chain(self) -> MarkovChain | None:
        """The chain that outputs are followed through; None where they are not."""
        return self._chain

    @property
    def outputs(self) -> Mapping[str, Sequence[tuple[int, Floats | None]]]:
        """What each stream told, batch by batch."""
        return self._streams

    def about_one_value(self, stream: str) -> float:
        """The exact leakage about one value; infinite where it is not known."""
        if self._chain is None or stream not in self._streams:
            return math.inf
        outputs = self._streams[stream]
        if self._in_batches:
            return one_value_leakage_of_batches(self._chain, outputs)
        return one_value_leakage(self._chain, [likelihood for _, likelihood in outputs])
