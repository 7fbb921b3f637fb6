"""True values read beside released ones: many rows at once, or one by one, as is asked."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato.core.arrays import Ints
from sfumato.models.encoding import Unreadable
from sfumato.models.stream_model import StreamModel
from sfumato.stream.released_columns import as_batch
from sfumato.stream.true_values import Truth, TruthColumns
from sfumato.tables.batches import Batch
from sfumato.tables.cells import MISSING_SYMBOL, Missing, Time, is_missing, stream_name
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Chunk, Table

_Row = tuple[str, Truth]


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """Successive rows: names of streams and which each row has, and the same of true values."""

    names: list[str]
    owners: Ints
    values: TruthColumns

    def __len__(self) -> int:
        return len(self.owners)

    def of(self, rows: slice) -> _Block:
        codes = self.values.codes[rows]
        return _Block(self.names, self.owners[rows], TruthColumns(self.values.truths, codes))

    def then(self, other: _Block) -> _Block:
        """These rows and others after them."""
        owners = np.concatenate([self.owners, other.owners + len(self.names)])
        mine, theirs = self.values, other.values
        codes = np.concatenate([mine.codes, theirs.codes + len(mine.truths)])
        values = TruthColumns([*mine.truths, *theirs.truths], codes)
        return _Block([*self.names, *other.names], owners, values)

    def row(self, place: int) -> _Row:
        values = self.values
        return self.names[self.owners[place]], values.truths[values.codes[place]]


_NOTHING = _Block([], np.empty(0, np.int64), TruthColumns([], np.empty(0, np.int64)))


class Truths:
    """The true symbols of each stream, in order; those read ahead are kept.

    Args:
        tables: The true tables, in order.
        model: How their values become symbols.
        missing: What the release did with missing values.
        time: The column of times that is compared with what was released, if any.
    """

    def __init__(
        self, tables: Sequence[Table], model: StreamModel, missing: Missing, time: str | None = None
    ) -> None:
        self._path = ", ".join(table.path for table in tables)
        columns = [model.stream, *model.values, *([] if time is None else [time])]
        self._parts = (
            _read(table, rows, model, missing, time)
            for table in tables
            for rows in table.batches(columns)
        )
        self._block, self._done = _NOTHING, 0
        self._alone: Iterator[_Row] | None = None
        self._ahead: dict[str, deque[Truth]] = {}

    def _next(self) -> _Row | None:
        """The next row; None after the last."""
        while True:
            if self._done < len(self._block):
                self._done += 1
                return self._block.row(self._done - 1)
            found = None if self._alone is None else next(self._alone, None)
            if found is not None:
                return found
            self._alone, part = None, next(self._parts, None)
            if part is None:
                return None
            if isinstance(part, _Block):
                self._block, self._done = part, 0
            else:
                self._alone = part

    def at(self, stream: str, row: int) -> Truth:
        """The true symbol of the next row, which must be of that stream."""
        found = self._next() or ("", Truth(None))
        if found[0] != stream:
            rule = "the true table must have the same streams, row by row"
            raise BadTable(self._path, row, rule)
        return found[1]

    def ahead(self, names: Sequence[str], owners: Ints) -> TruthColumns | None:
        """The true values of the next rows, if they are of these streams; they stay the next.

        None where rows must be asked for one by one: that says what is wrong.

        Args:
            names: Names of streams.
            owners: Which of them each row has.
        """
        self._block, self._done = self._block.of(slice(self._done, None)), 0
        while len(self._block) < len(owners) and self._alone is None:
            part = next(self._parts, None)
            if part is None:
                return None
            if isinstance(part, _Block):
                self._block = self._block.then(part) if len(self._block) else part
            else:
                self._alone = part
        if len(self._block) < len(owners):
            return None
        places = {name: place for place, name in enumerate(names)}
        there = np.array([places.get(name, -1) for name in self._block.names], dtype=np.int64)
        rows = self._block.of(slice(len(owners)))
        return rows.values if (there[rows.owners] == owners).all() else None

    def pass_by(self, rows: int) -> None:
        """Go on after rows that were looked at."""
        self._done += rows

    def of(self, stream: str, row: int) -> Truth:
        """The next true symbol of a stream, wherever it stands."""
        waiting = self._ahead.setdefault(stream, deque())
        while not waiting:
            found = self._next()
            if found is None:
                rule = "the true table must have the same values of each stream, in order"
                raise BadTable(self._path, row, rule)
            self._ahead.setdefault(found[0], deque()).append(found[1])
        return waiting.popleft()

    def check_used_up(self) -> None:
        """Refuse a true table with more values than were released."""
        if self._next() is not None or any(self._ahead.values()):
            raise BadTable(self._path, None, "the true table must not have more rows")


def _read(
    table: Table, rows: Batch | Chunk, model: StreamModel, missing: Missing, time: str | None
) -> _Block | Iterator[_Row]:
    """Rows of a true table; one by one where one of them cannot be read."""
    batch = as_batch(rows)
    try:
        if batch is not None and time is None:
            return _block(batch, model, missing)
    except (Unreadable, BadTable):
        pass  # reading the rows one by one says which it is
    chunk = rows.chunk() if isinstance(rows, Batch) else rows
    return _rows(table, chunk, model, missing, time)


def _block(batch: Batch, model: StreamModel, missing: Missing) -> _Block:
    owners, streams = batch.columns[model.stream].coded()
    names = [stream_name(owner, model.stream, "", 0) for owner in streams]
    codes = np.zeros(len(batch), dtype=np.int64)
    values: list[tuple[Any, ...]] = [()]
    for name in model.values:
        own, words = batch.columns[name].coded()
        pairs, codes = np.unique(codes * len(words) + own, return_inverse=True)
        values = [
            (*values[pair // len(words)], words[pair % len(words)]) for pair in pairs.tolist()
        ]
    truths = [_truth(value, model, missing) for value in values]
    known = [truth for truth in truths if truth is not None]
    there = np.array([truth is not None for truth in truths], dtype=np.bool_)
    kept, numbers = there[codes], np.cumsum(there) - 1
    return _Block(names, owners[kept], TruthColumns(known, numbers[codes[kept]]))


def _rows(
    table: Table, chunk: Chunk, model: StreamModel, missing: Missing, time: str | None
) -> Iterator[_Row]:
    values = zip(*(chunk.columns[name] for name in model.values), strict=True)
    for offset, (owner, value) in enumerate(zip(chunk.columns[model.stream], values, strict=True)):
        row = chunk.first + offset
        try:
            truth = _truth(value, model, missing)
        except Unreadable as problem:
            raise BadTable(table.path, row, f"the value {problem}") from None
        if truth is None:
            continue
        if time is not None:
            truth = replace(truth, time=_time(table, row, time, chunk.columns[time][offset]))
        yield stream_name(owner, model.stream, table.path, row), truth


def _time(table: Table, row: int, column: str, cell: object) -> Time:
    try:
        return Time.of(cell)
    except Unreadable as problem:
        raise BadTable(table.path, row, f"column {column!r} {problem}") from None


def _truth(value: tuple[Any, ...], model: StreamModel, missing: Missing) -> Truth | None:
    """The truth in the cells of a row; None where it is dropped."""
    if missing is not Missing.REFUSE and any(is_missing(cell) for cell in value):
        return None if missing is Missing.DROP else Truth(MISSING_SYMBOL)
    return Truth.of(model, value)
