"""Rows of correlated streams as they are read, and answers as they are written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sfumato.core.errors import InvalidParameter
from sfumato.models.encoding import Raw, Unreadable, text
from sfumato.store.protocol import Answer
from sfumato.tables.cells import is_missing
from sfumato.tables.input_groups import EventColumns, EventReader, EventRow, until_broken
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Chunk
from sfumato.tables.writers import Columns, Record
from sfumato.temporal.temporal_spec import Released, TemporalSpec

RELEASED, SKIPPED = "released", "skipped"
# Larger whole numbers are not all floats: files of numbers would change them.
_MOST_COUNT = 2**53


@dataclass(frozen=True, slots=True)
class Row(EventRow):
    """One row.

    Attributes:
        value: The true value; None if it is missing.
    """

    value: list[int] | str | None

    @property
    def written(self) -> str:
        """The true value as one text, for the digest that tells a retry from other data."""
        return json.dumps(self.value)


class RowReader:
    """Reads the rows of one input, chunk by chunk."""

    def __init__(self, path: str, spec: TemporalSpec, columns: EventColumns, label: str) -> None:
        self._path, self._spec = path, spec
        self._events = EventReader(path, columns, label)

    def read(self, chunk: Chunk) -> tuple[list[Row], BadTable | None]:
        """The rows up to the first that breaks a rule, and what it broke."""
        return until_broken(self._row(chunk, offset) for offset in range(len(chunk)))

    def _row(self, chunk: Chunk, offset: int) -> Row:
        events, spec = self._events, self._spec
        stream = events.cell(text, spec.stream, chunk, offset)
        time = events.time(chunk, offset)
        id_ = events.id(chunk, offset, stream, time)
        cells = [chunk.columns[name][offset] for name in spec.values]
        place = chunk.first + offset
        return Row(id_, stream, place, time, self._value(cells, place))

    def _value(self, cells: Sequence[Raw], place: int) -> list[int] | str | None:
        try:
            return true_value(cells, self._spec)
        except Unreadable as problem:
            raise BadTable(self._path, place, str(problem)) from None


def true_value(cells: Sequence[Raw], spec: TemporalSpec) -> list[int] | str | None:
    """The true value in some cells, None if it is missing; an `Unreadable` says what is wrong."""
    if any(is_missing(cell) for cell in cells):
        if spec.missing == "refuse":
            raise Unreadable("a value is missing; let such moments pass with --missing skip")
        return None
    if spec.released is Released.RESPONSE:
        try:
            symbol = text(cells[0])
        except Unreadable as problem:
            raise Unreadable(f"the value {problem}") from None
        if symbol not in spec.symbols:
            raise Unreadable(f"the value must be one of the {len(spec.symbols)} symbols")
        return symbol
    try:
        counts = [whole_number(cell) for cell in cells]
    except (ValueError, TypeError, OverflowError):
        counts = [-1]
    if min(counts) < 0:
        raise Unreadable(f"a count must be a whole number from 0 to {_MOST_COUNT:,}")
    return counts


def whole_number(cell: object) -> int:
    """A cell as a whole number; a `ValueError` if it is none."""
    number = float(str(cell))
    if isinstance(cell, bool) or not number.is_integer() or abs(number) > _MOST_COUNT:
        raise ValueError("no whole number")
    return int(number)


def written_value(value: object) -> str | int | None:
    """What left, as one cell of the ledger: several counts are a list in JSON."""
    if value is None or isinstance(value, str):
        return value
    counts = [int(count) for count in value]  # type: ignore[attr-defined]
    return counts[0] if len(counts) == 1 else json.dumps(counts)


def read_value(written: object, spec: TemporalSpec) -> list[int] | str | None:
    """The same turned back; counts are a list."""
    if written is None:
        return None
    if spec.released is Released.RESPONSE:
        return str(written)
    return json.loads(written) if isinstance(written, str) else [int(written)]  # type: ignore


def output_columns(spec: TemporalSpec, columns: EventColumns) -> Columns:
    """Columns of a released table, and what they hold."""
    counts = spec.released is Released.COUNTS
    kind: type = int if counts else str
    values = {"released": kind} if len(spec.values) == 1 else dict.fromkeys(spec.values, kind)
    names: dict[str, type] = {} if columns.event is None else {"event": str}
    rest = {"sequence": int, **values, "outcome": str, "epsilon": float}
    own = [spec.stream, *([] if columns.time is None else [columns.time])]
    for name in own:
        if name in names or name in rest:
            taken = ", ".join(sorted({*names, *rest}))
            raise InvalidParameter(
                "column", name, f"not have the name of an output column ({taken})"
            )
    return {**names, **dict.fromkeys(own, str), **rest}


def records(
    answers: Iterable[Answer], spec: TemporalSpec, columns: EventColumns
) -> Iterator[Record]:
    """Answers as rows of the output: public things only."""
    for answer in answers:
        told = read_value(answer.released, spec)
        values = [None] * len(spec.values) if told is None else told
        record: list[str | int | float | None] = [] if columns.event is None else [answer.id]
        record += [answer.stream, *([] if columns.time is None else [answer.time])]
        record += [answer.sequence, *([values] if isinstance(values, str) else values)]
        yield [*record, answer.outcome, answer.leakage]
