"""Many rows of a live table by columns: who, when and what; as `RowReader` reads each of them."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from sfumato.core.arrays import Ints
from sfumato.core.periods import Period
from sfumato.models.encoding import Unreadable, text
from sfumato.models.stream_model import StreamModel
from sfumato.store.answer_columns import Coded
from sfumato.store.protocol import Identity
from sfumato.stream.column_times import TimeKeys, time_keys, time_texts
from sfumato.stream.column_values import Irregular, encoded_values
from sfumato.stream.input_rows import Reading, period_of
from sfumato.stream.kept_columns import kept_column
from sfumato.tables.arrow_arrays import number_array
from sfumato.tables.batches import Batch, Column
from sfumato.tables.cells import Missing, Time


@dataclass(frozen=True, slots=True)
class RowColumns:
    """Rows that need an answer.

    Attributes:
        places: Their numbers in the table.
        streams: Whose values they are; each word has a row, in the order of the first ones.
        cells: Places of the values in the alphabet, as `EncodedValues` has them.
        ids: Event ids, if a column holds them.
        times: When they were measured, if a column says so.
        beside: Columns that leave beside the answers.
        missing: How many values were missing, those of rows that are left out included.
        clipped: How many lie beyond the range of the model.
    """

    places: Ints
    streams: Coded[str]
    cells: Ints
    ids: list[str] | None
    times: TimeKeys | None
    beside: dict[str, Coded[str] | Column]
    missing: int
    clipped: int

    def __len__(self) -> int:
        return len(self.places)


class ColumnReader:
    """Reads rows by columns.

    Args:
        model: How values become symbols.
        reading: Which columns mean what.
        label: Of the input in the ledger: with the number of a row it is an id.
    """

    def __init__(self, model: StreamModel, reading: Reading, label: str) -> None:
        self._model, self._reading, self._label = model, reading, label

    def read(self, batch: Batch) -> RowColumns:
        """The rows of a batch.

        Raises:
            Irregular: If a cell cannot be read, or an event stands there twice.
        """
        reading, columns = self._reading, batch.columns
        values = [columns[name] for name in self._model.values]
        found = encoded_values(self._model.encoding, reading.missing, values)
        codes, names = _texts(columns[self._model.stream])
        kept = np.ones(len(batch), dtype=np.bool_)
        if reading.missing is Missing.DROP:
            kept = ~found.gone
        rows = np.flatnonzero(kept)
        times = None
        if reading.time is not None:
            read = time_keys(columns[reading.time], kept)
            times = TimeKeys(read.clock, read.keys[rows])
        ids = None if reading.event is None else _ids(columns[reading.event], rows)
        return RowColumns(
            places=batch.first + rows,
            streams=_in_order(codes[rows], names),
            cells=found.cells[rows],
            ids=ids,
            times=times,
            beside={name: kept_column(columns[name], rows) for name in reading.keep},
            missing=int(found.gone.sum()),
            clipped=int(found.clipped[rows].sum()),
        )

    def texts_of_times(self, batch: Batch, rows: RowColumns) -> list[str] | None:
        """The one way to write the time of each row; None without a time column."""
        if self._reading.time is None:
            return None
        column = batch.columns[self._reading.time]
        return time_texts(Column(column.array.take(_arrow(rows.places - batch.first))))

    def periods(self, batch: Batch, rows: RowColumns, period: Period) -> Ints:
        """The period that each row lies in, as `RowReader` has it.

        Raises:
            Irregular: If one of them has none.
        """
        assert self._reading.time is not None  # `Reading.check` saw to it
        column = batch.columns[self._reading.time]
        codes, words = Column(column.array.take(_arrow(rows.places - batch.first))).coded()
        try:
            found = [period_of(period, Time.of(word)) for word in words]
        except Unreadable:
            raise Irregular from None
        return np.array(found, dtype=np.int64)[codes]

    def ids(self, rows: RowColumns, times: list[str] | None) -> list[str]:
        """What tells the event of each row from all others.

        Raises:
            Irregular: If an event stands there twice.
        """
        if rows.ids is not None:
            return rows.ids
        if self._reading.identity is Identity.ROW or times is None:
            return [f"{self._label}:{place}" for place in rows.places.tolist()]
        names = rows.streams.cells()
        pairs = zip(names, times, strict=True)
        ids = [json.dumps([name, time], ensure_ascii=False) for name, time in pairs]
        if len(set(ids)) < len(ids):
            raise Irregular
        return ids


def _texts(column: Column) -> tuple[Ints, list[str]]:
    codes, words = column.coded()
    try:
        return codes, [text(word) for word in words]
    except Unreadable:
        raise Irregular from None


def _ids(column: Column, rows: Ints) -> list[str]:
    codes, words = Column(column.array.take(_arrow(rows))).coded()
    try:
        ids = [text(word) for word in words]
    except Unreadable:
        raise Irregular from None
    if len(set(ids)) < len(codes):
        raise Irregular
    return [ids[code] for code in codes.tolist()]


def _in_order(codes: Ints, names: list[str]) -> Coded[str]:
    """Different names, each with a row, in the order of their first rows."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    if len(numbers) < len(names):
        codes = np.array([numbers[name] for name in names], dtype=np.int64)[codes]
        names = [*numbers]
    used, first = np.unique(codes, return_index=True)
    if len(used) == len(names) and (np.diff(first) > 0).all():
        return Coded(codes, names)
    used = used[np.argsort(first)]
    moved = np.empty(len(names), dtype=np.int64)
    moved[used] = np.arange(len(used))
    return Coded(moved[codes], [names[code] for code in used.tolist()])


def _arrow(rows: Ints) -> object:
    import pyarrow as pa

    return number_array(rows, pa.int64())
