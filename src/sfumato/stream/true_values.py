"""True values beside released ones: what a release cost, and what a constant would have cost.

They stay on this machine: an audit may compare, but no certificate depends on them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.core.alphabet import Label
from sfumato.core.arrays import Floats, Ints
from sfumato.core.events import Event
from sfumato.core.loss import Loss
from sfumato.models.encoding import StreamModel, Symbols, Unreadable
from sfumato.stream.silence import Silence
from sfumato.tables.cells import MISSING_SYMBOL, Missing, is_missing, stream_name
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Chunk, Table


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


@dataclass(frozen=True, slots=True, eq=False)
class TruthColumns:
    """The true values of many rows.

    Attributes:
        truths: Those that differ.
        codes: Which of them each row has.
    """

    truths: list[Truth]
    codes: Ints


class Truths:
    """The true symbols of each stream, in order; those read ahead are kept."""

    def __init__(self, tables: Sequence[Table], model: StreamModel, missing: Missing) -> None:
        self._path = ", ".join(table.path for table in tables)
        self._rows = (
            row
            for table in tables
            for chunk in table.chunks([model.stream, *model.values])
            for row in _chunk_truths(table, chunk, model, missing)
        )
        self._ahead: dict[str, deque[Truth]] = {}

    def at(self, stream: str, row: int) -> Truth:
        """The true symbol of the next row, which must be of that stream."""
        found = next(self._rows, ("", Truth(None)))
        if found[0] != stream:
            rule = "the true table must have the same streams, row by row"
            raise BadTable(self._path, row, rule)
        return found[1]

    def of(self, stream: str, row: int) -> Truth:
        """The next true symbol of a stream, wherever it stands."""
        waiting = self._ahead.setdefault(stream, deque())
        while not waiting:
            found = next(self._rows, None)
            if found is None:
                rule = "the true table must have the same values of each stream, in order"
                raise BadTable(self._path, row, rule)
            self._ahead.setdefault(found[0], deque()).append(found[1])
        return waiting.popleft()

    def check_used_up(self) -> None:
        """Refuse a true table with more values than were released."""
        if next(self._rows, None) is not None or any(self._ahead.values()):
            raise BadTable(self._path, None, "the true table must not have more rows")


def _chunk_truths(
    table: Table, chunk: Chunk, model: StreamModel, missing: Missing
) -> Iterator[tuple[str, Truth]]:
    values = zip(*(chunk.columns[name] for name in model.values), strict=True)
    for offset, (owner, value) in enumerate(zip(chunk.columns[model.stream], values, strict=True)):
        row = chunk.first + offset
        gone = missing is not Missing.REFUSE and any(is_missing(cell) for cell in value)
        if gone and missing is Missing.DROP:
            continue
        try:
            truth = Truth(MISSING_SYMBOL) if gone else Truth.of(model, value)
        except Unreadable as problem:
            raise BadTable(table.path, row, f"the value {problem}") from None
        yield stream_name(owner, model.stream, table.path, row), truth


class RealisedLoss:
    """Losses of released values, moment by moment.

    A value that was repeated costs what the repeated one does; one that was withheld costs what
    the receiver's guess does who was told nothing. Values in bins and cells are compared as they
    were, so that rounding and clipping count.

    Attributes:
        loss: Summed loss.
        silent: What the best constant of each moment would have lost.
        count: Values that were compared.
        compared: The same, those in batches that have one loss together included.
    """

    def __init__(self, model: StreamModel, loss: Loss | None) -> None:
        self._alphabet, self._loss = model.alphabet, loss
        self._silence = Silence(model.chain, loss) if loss is not None else None
        self._released = np.zeros(len(model.alphabet), dtype=np.bool_)
        self.loss, self.silent, self.count = 0.0, 0.0, 0
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
        return self.silent / self.count if self.count else None

    def tell(self, event: Event) -> None:
        """One more output."""
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
        guess, _ = self._silence.at(event.sequence)
        left = guess if event.released is None else self._alphabet.index(event.released)
        self.loss, self.silent = self.loss + float(row[left]), self.silent + float(row[guess])
        self.count += 1
        return float(row[left])

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


def in_turn(total: float, amounts: Floats) -> float:
    """A sum to which amounts are added one after the other: as if each came alone."""
    return float(np.add.accumulate(np.append(total, amounts))[-1])
