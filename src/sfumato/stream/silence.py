"""Saying nothing: the best constant of each moment for somebody who knows the model alone."""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.belief import Belief, Model
from sfumato.core.errors import InvalidParameter
from sfumato.core.loss import Loss
from sfumato.models.library import PatternLibrary
from sfumato.models.periodic import PeriodicChain

_SETTLED = 1e-15
"""Once a belief moves by less than this in a moment, guesses and costs stay what they are."""


class Silence:
    """The best guess of each moment, and what it costs on average.

    Under a library it is one for all moments; under a chain that changes with time it follows the
    phases of each stream.
    """

    def __init__(self, model: Model | PatternLibrary | PeriodicChain, loss: Loss) -> None:
        self._loss = loss
        self._moments: list[tuple[int, float]] = []
        self._phased: PeriodicChain | None = None
        self._streams: dict[str, tuple[int, Belief]] = {}
        self._chain: Model | None = None
        if isinstance(model, PatternLibrary):
            self._add(_values(model))
        elif isinstance(model, PeriodicChain):
            self._phased = model
        else:
            self._chain, self._belief = model, model.first()

    def at(self, moment: int, phase: int | None = None, stream: str = "") -> tuple[int, float]:
        """Place of the symbol, and its expected loss.

        Args:
            moment: Counted from 0.
            phase: That of the moment, under a model that changes with time; then also
            stream: whose moment it is. All of a stream are asked for in turn; one whose earlier
                moments are not known begins as streams do in this phase.
        """
        if self._phased is not None:
            return self._loss.best_constant(self._in_phase(self._phased, moment, phase, stream))
        while self._chain is not None and len(self._moments) <= moment:
            before, self._belief = self._belief, self._chain.following(self._belief)
            self._add(before.marginal)
            # All that is remembered must stand still: of a longer chain the first values may be
            # alike, and those after them not.
            moved = np.abs(self._belief.joint - before.joint).max()
            if before.axis == self._belief.axis and moved < _SETTLED:
                self._chain = None
        return self._moments[min(moment, len(self._moments) - 1)]

    def _in_phase(
        self, model: PeriodicChain, moment: int, phase: int | None, stream: str
    ) -> Floats:
        """What is believed of a value if nothing leaves."""
        if phase is None:
            raise InvalidParameter("phase", None, "be given: the model changes with time")
        stood, belief = self._streams.get(stream, (-1, None))
        if belief is None or stood != moment:
            belief = model.arrived(belief if moment and stood == moment - 1 else None, phase)
            self._streams[stream] = moment, belief
        return belief.marginal

    def places(self, moments: Ints) -> Ints:
        """Places of the symbols of many moments."""
        self.at(int(moments.max(initial=0)))
        guesses = np.array([guess for guess, _ in self._moments], dtype=np.int64)
        return np.asarray(guesses[np.minimum(moments, len(guesses) - 1)])

    def _add(self, marginal: Floats) -> None:
        self._moments.append(self._loss.best_constant(marginal))


def _values(library: PatternLibrary) -> Floats:
    """How often each symbol stands in the patterns of a library."""
    patterns = library.patterns
    shares = np.repeat(library.chain.stationary(), (patterns >= 0).sum(axis=1))
    counts = np.bincount(patterns[patterns >= 0], shares, minlength=len(library.alphabet))
    return np.asarray(counts / counts.sum())
