"""What a release cost against the true values, and what a constant would have cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.core.alphabet import Label
from sfumato.core.arrays import Floats
from sfumato.core.events import Event
from sfumato.core.loss import Loss
from sfumato.models.encoding import StreamModel, Symbols
from sfumato.models.library import PatternLibrary


@dataclass(frozen=True, slots=True)
class Truth:
    """A true value: its symbol, and where it lies itself if it was cut into a bin or cell."""

    symbol: Label | None
    point: tuple[float, ...] | None = None

    @classmethod
    def of(cls, model: StreamModel, value: tuple[Any, ...]) -> Truth:
        """The truth in a row of a table."""
        encoding = model.encoding
        symbol = encoding.encode(*value)
        return cls(symbol, None if isinstance(encoding, Symbols) else encoding.places(*value))


class Realised:
    """Losses of released values, moment by moment.

    A value that was repeated costs what the repeated one does; one that was withheld costs what
    the receiver's guess does who was told nothing. Values in bins and cells are compared as they
    were, so that rounding and clipping count.

    Attributes:
        loss: Summed loss.
        silent: What the best constant of each moment would have lost.
        count: Values that were compared.
    """

    def __init__(self, model: StreamModel, loss: Loss | None) -> None:
        self._alphabet, self._loss = model.alphabet, loss
        self._silence = _Silence(model, loss) if loss is not None else None
        self._told = np.zeros(len(model.alphabet), dtype=np.bool_)
        self.loss, self.silent, self.count = 0.0, 0.0, 0

    def tell(self, event: Event) -> None:
        """One more output."""
        if event.released is not None:
            self._told[self._alphabet.index(event.released)] = True

    @property
    def never(self) -> tuple[Label, ...]:
        """Symbols that were never released."""
        return tuple(self._alphabet.labels[place] for place in np.flatnonzero(~self._told))

    def add(self, event: Event, truth: Truth) -> float | None:
        """What a moment cost; None where the truth has no symbol, or losses are of batches."""
        place = -1 if truth.symbol is None else self._alphabet.place(truth.symbol)
        if self._loss is None or self._silence is None or place < 0:
            return None
        row = self._row(truth, place, self._loss)
        guess = self._silence.guess(event.sequence)
        told = guess if event.released is None else self._alphabet.index(event.released)
        self.loss, self.silent = self.loss + float(row[told]), self.silent + float(row[guess])
        self.count += 1
        return float(row[told])

    def _row(self, truth: Truth, place: int, loss: Loss) -> Floats:
        exact = None if truth.point is None else loss.from_point(truth.point)
        return loss.rows([place])[0] if exact is None else exact


class _Silence:
    """The best constant of each moment for somebody who is told nothing."""

    def __init__(self, model: StreamModel, loss: Loss) -> None:
        self._loss, self._guesses = loss, list[int]()
        self._chain = None if isinstance(model.chain, PatternLibrary) else model.chain
        if self._chain is None:
            self._guesses.append(int(loss.means(_values(model)).argmin()))
        else:
            self._belief = self._chain.first()
        self._settled = self._chain is None

    def guess(self, moment: int) -> int:
        """Place of the symbol; once beliefs hardly move, it stays."""
        while not self._settled and len(self._guesses) <= moment:
            assert self._chain is not None
            marginal = self._belief.marginal
            self._guesses.append(int(self._loss.means(marginal).argmin()))
            self._belief = self._chain.following(self._belief)
            self._settled = bool(np.abs(self._belief.marginal - marginal).max() < 1e-12)
        return self._guesses[min(moment, len(self._guesses) - 1)]


def _values(model: StreamModel) -> Floats:
    """How often each symbol stands in the patterns of a library."""
    assert isinstance(model.chain, PatternLibrary)
    patterns = model.chain.patterns
    shares = np.repeat(model.chain.chain.stationary(), (patterns >= 0).sum(axis=1))
    found = np.bincount(patterns[patterns >= 0], shares, minlength=len(model.alphabet))
    return np.asarray(found / found.sum())
