"""True values beside released ones: what a release cost, and what a constant would have cost.

They stay on this machine: an audit may compare, but no certificate depends on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.core.alphabet import Alphabet, Label
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.events import Event
from sfumato.core.loss import Loss
from sfumato.models.encoding import Symbols
from sfumato.models.markov import MarkovChain
from sfumato.models.stream_model import StreamModel
from sfumato.stream.silence import Silence
from sfumato.tables.cells import Time


@dataclass(frozen=True, slots=True)
class Truth:
    """A true value: its symbol, and where it lies itself if it was cut into a bin or cell.

    Attributes:
        symbol: Its symbol; None if it has none.
        point: Where it lies itself.
        time: When it was, where that is compared.
    """

    symbol: Label | None
    point: tuple[float, ...] | None = None
    time: Time | None = None

    @classmethod
    def of(cls, model: StreamModel, value: tuple[Any, ...]) -> Truth:
        """The truth in a row of a table."""
        encoding = model.encoding
        symbol = encoding.encode(*value)
        return cls(symbol, None if isinstance(encoding, Symbols) else encoding.places(*value))


@dataclass(frozen=True, slots=True, eq=False)
class TruthColumns:
    """The true values of many rows.

    Attributes:
        truths: Those that differ.
        codes: Which of them each row has.
    """

    truths: list[Truth]
    codes: Ints

    def of(self, rows: slice | Bools) -> TruthColumns:
        """The same for some of the rows."""
        used, codes = np.unique(self.codes[rows], return_inverse=True)
        return TruthColumns([self.truths[code] for code in used.tolist()], codes)

    def places(self, alphabet: Alphabet) -> Ints:
        """The place of the true symbol of each row; -1 where it is none."""
        known = [alphabet.place(truth.symbol) for truth in self.truths]
        return np.array(known, dtype=np.int64)[self.codes]

    def are(self, *symbols: Label | None) -> Bools:
        """Which rows have one of these symbols."""
        those = [truth.symbol in symbols for truth in self.truths]
        return np.array(those, dtype=np.bool_)[self.codes]


class RealisedLoss:
    """Losses of released values, moment by moment.

    A value that was repeated costs what the repeated one does; one that was withheld costs what
    the receiver's guess does who was told nothing. Values in bins and cells are compared as they
    were, so that rounding and clipping count.

    Under a model that knows nothing all constants may be alike, and one that is chosen blindly is
    no rival: silence is then the constant that fits the true values best.

    Attributes:
        loss: Summed loss.
        silent: What the best constant of each moment under the model would have lost.
        count: Values that were compared.
        compared: The same, those in batches that have one loss together included.
    """

    def __init__(self, model: StreamModel, loss: Loss | None) -> None:
        self._alphabet, self._loss = model.alphabet, loss
        self._silence = Silence(model.chain, loss) if loss is not None else None
        self._released = np.zeros(len(model.alphabet), dtype=np.bool_)
        self.loss, self.silent, self.count = 0.0, 0.0, 0
        self._constants = np.zeros(len(model.alphabet)) if knows_nothing(model.chain) else None
        self._batch_loss, self._in_batches = 0.0, 0

    @property
    def compared(self) -> int:
        """Values that were compared."""
        return self.count + self._in_batches

    @property
    def mean(self) -> float | None:
        """Loss per value; None if nothing was compared."""
        if self.count:
            return self.loss / self.count
        return self._batch_loss / self._in_batches if self._in_batches else None

    @property
    def mean_of_silence(self) -> float | None:
        """The same of the best constants; None where losses are of whole batches."""
        if not self.count:
            return None
        lost = self.silent if self._constants is None else float(self._constants.min())
        return lost / self.count

    def tell(self, event: Event) -> None:
        """One more output; those of a stream come in order."""
        if self._silence is not None and event.phase is not None:
            self._silence.at(event.sequence, event.phase, event.stream)
        if event.released is not None:
            self._released[self._alphabet.index(event.released)] = True

    def tell_places(self, places: Ints) -> None:
        """Many more, as places in the alphabet; -1 for none."""
        self._released[places[places >= 0]] = True

    @property
    def never(self) -> tuple[Label, ...]:
        """Symbols that were never released."""
        return tuple(self._alphabet.labels[place] for place in np.flatnonzero(~self._released))

    def add_batch(self, loss: float, values: int) -> None:
        """What a batch cost, where a loss looks at whole batches."""
        self._batch_loss, self._in_batches = self._batch_loss + loss, self._in_batches + values

    def add(self, event: Event, truth: Truth) -> float | None:
        """What a moment cost; None where the truth has no symbol, or losses are of batches."""
        row = self.costs(truth)
        if row is None or self._silence is None:
            return None
        guess, _ = self._silence.at(event.sequence, event.phase, event.stream)
        if self._constants is not None:
            self._constants += row
        left = guess if event.released is None else self._alphabet.index(event.released)
        self.loss, self.silent = self.loss + float(row[left]), self.silent + float(row[guess])
        self.count += 1
        return float(row[left])

    def add_columns(self, sequences: Ints, released: Ints, truths: TruthColumns) -> Floats:
        """What many moments cost, as `add`; not a number where the truth has no symbol."""
        none = np.full(len(self._alphabet), np.nan)
        rows = [self.costs(truth) for truth in truths.truths]
        costs = np.array([none if row is None else row for row in rows])
        if self._silence is None or not len(sequences):
            return np.full(len(sequences), np.nan)
        guesses = self._silence.places(sequences)
        lost = costs[truths.codes, np.where(released < 0, guesses, released)]
        known = ~np.isnan(lost)
        self.loss = in_turn(self.loss, lost[known])
        self.silent = in_turn(self.silent, costs[truths.codes, guesses][known])
        self.count += int(known.sum())
        if self._constants is not None:
            times = np.bincount(truths.codes[known], minlength=len(costs))
            self._constants += (times[:, None] * np.nan_to_num(costs)).sum(axis=0)
        return np.asarray(lost)

    @property
    def priced(self) -> Loss:
        """The loss of single values."""
        assert self._loss is not None  # a truth has costs only where there is one
        return self._loss

    def costs(self, truth: Truth) -> Floats | None:
        """What each symbol would have cost; None where it has none, or losses are of batches."""
        place = -1 if truth.symbol is None else self._alphabet.place(truth.symbol)
        if self._loss is None or place < 0:
            return None
        exact = None if truth.point is None else self._loss.from_point(truth.point)
        return self._loss.rows([place])[0] if exact is None else exact


def knows_nothing(chain: object) -> bool:
    """Whether all values are alike, whatever came before, as in a model of `fit --uniform`."""
    if not isinstance(chain, MarkovChain) or not isinstance(chain.known, np.ndarray):
        return False
    return not any(np.ptp(part) for part in (chain.known, chain.initial, chain.background))


def in_turn(total: float, amounts: Floats) -> float:
    """A sum to which amounts are added one after the other: as if each came alone."""
    return float(np.add.accumulate(np.append(total, amounts))[-1])
