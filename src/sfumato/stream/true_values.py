"""The true values that an audit compares with, in the order in which they are asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from sfumato.models.encoding import StreamModel, Unreadable
from sfumato.stream.realised_loss import Truth
from sfumato.tables.cells import MISSING_SYMBOL, Missing, is_missing, stream_name
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Chunk, Table


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
