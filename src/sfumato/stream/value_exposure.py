"""What the outputs of each stream told about single values, while it fits into memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sfumato.core.arrays import Floats
from sfumato.models.markov import MarkovChain
from sfumato.models.stream_model import StreamModel
from sfumato.stream.one_value import one_value_leakage_of_batches
from sfumato.stream.plan import Plan
from sfumato.stream.recovered_loss import RecoveredLoss
from sfumato.stream.true_values import RealisedLoss, Truth

MOST_CELLS = 20_000_000
"""Probabilities that are held at one time: 160 MB."""


class ValueExposure:
    """The likelihoods of all outputs of each stream, where values leave in batches.

    Only plain chains of order 1 are followed whose batches can be listed: of the others the sum of
    all steps is known. Single values have an `OutputLog`.
    """

    def __init__(self, model: StreamModel, plan: Plan) -> None:
        chain = model.chain if isinstance(model.chain, MarkovChain) else None
        listed = chain is not None and chain.order == 1 and plan.memory == 1
        self._chain = chain if listed else None
        self._streams: dict[str, list[tuple[int, Floats | None]]] = {}
        self._recovered = RecoveredLoss()
        self._cells = 0

    def add(self, stream: str, truths: Sequence[Truth | None], likelihood: Floats | None) -> None:
        """One more batch; `likelihood` is how likely every batch of its length made its output."""
        if self._chain is None:
            return
        self._cells += self._chain.size ** len(truths)
        if self._cells > MOST_CELLS:
            self.give_up()
            return
        tells = likelihood is not None and likelihood.min() < likelihood.max()
        told = (len(truths), likelihood if tells else None)
        self._streams.setdefault(stream, []).append(told)
        self._recovered.add(stream, truths)

    def give_up(self) -> None:
        """Only the sum of all steps will be known: outputs cannot be listed, or not be held."""
        self._chain, self._streams, self._recovered = None, {}, RecoveredLoss()

    def finish(
        self, losses: RealisedLoss, streams: Iterable[str]
    ) -> tuple[dict[str, float], float | None]:
        """What each stream told about any one value, and what best guesses lose per value.

        Nothing of streams that are not followed. As in `OutputLog`; streams keep their own order.
        """
        if self._chain is None:
            return {}, None
        exact = {
            stream: one_value_leakage_of_batches(self._chain, outputs)
            for stream, outputs in self._streams.items()
        }
        return exact, self._recovered.mean(self._chain, self._streams, losses)
