"""JSON lines: an object a line, and its fields are the columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from sfumato.tables.batches import Batch, as_batch
from sfumato.tables.chunks import Chunk
from sfumato.tables.headers import listed
from sfumato.tables.lines import Lines
from sfumato.tables.problems import BadTable


class JsonRows:
    """The rows of a file of JSON lines.

    Args:
        lines: The file, at its beginning.
        path: Its name, for messages.
        wanted: Fields that every object must have.
        optional: Fields that are read if the first object has them.
    """

    def __init__(
        self, lines: Lines, path: str, wanted: Sequence[str], optional: Sequence[str]
    ) -> None:
        self._lines, self._path = lines, path
        self._wanted, self._optional = wanted, optional
        self._decoder = msgspec.json.Decoder(dict[str, Any])
        self._names: tuple[str, ...] = ()
        self._number = 0

    def chunks(self, size: int) -> Iterator[Chunk]:
        """All rows, so many at a time; of a pipe those that are there, at most so many."""
        return self._chunks(size, block=False)

    def batches(self, rows: int) -> Iterator[Batch | Chunk]:
        """All rows of a file, about so many at a time, by array where all have one type."""
        for block in self._lines.blocks(rows):
            self._lines.give_back(block)
            # Twice as many: a few rows more than were guessed are no batch of their own.
            yield from map(as_batch, self._chunks(2 * rows, block=True))

    def _chunks(self, size: int, *, block: bool) -> Iterator[Chunk]:
        live, first = self._lines.live, self._number + 1
        columns: dict[str, list[Any]] = {}
        while not block or self._lines.in_block:
            waiting = self._number - first + 1
            if waiting == size or (live and waiting and not self._lines.in_block):
                yield Chunk(first, columns)
                columns, first = {}, self._number + 1
            try:
                self._lines.begin_row(self._number + 1)
                line = next(self._lines, None)
                record = self._record(line) if line and not line.isspace() else None
            except BadTable:
                if live and columns:
                    yield Chunk(first, columns)  # they came before it
                raise
            if line is None:
                break
            if record is None:
                continue  # a blank line is no object
            columns = columns or {name: [] for name in self._names}
            for name, cells in columns.items():
                cells.append(record[name])
        if columns:
            yield Chunk(first, columns)

    def _record(self, line: str) -> dict[str, Any]:
        """The object in a line, with all fields that it must have."""
        self._number += 1
        try:
            record = self._decoder.decode(line)
            repeats = _repeats_a_field(line, len(record))
        except RecursionError:
            rule = "a line must hold one JSON object that is not nested so deeply"
            raise BadTable(self._path, self._number, rule) from None
        except (msgspec.MsgspecError, json.JSONDecodeError):
            raise BadTable(self._path, self._number, "a line must hold one JSON object") from None
        if repeats:
            raise BadTable(self._path, self._number, "an object must not have a field twice")
        if not self._names:
            there = (name for name in self._optional if name in record)
            self._names = tuple(dict.fromkeys((*self._wanted, *there)))
        for name in self._names:
            if name not in record:
                rule = f"the object must have a field {name!r}; it has {listed([*record])}"
                raise BadTable(self._path, self._number, rule)
        return record


def _repeats_a_field(line: str, fields: int) -> bool:
    """Whether an object in a line of JSON has a field twice; so many are left of the outer one."""
    # A colon stands behind the name of a field, or in a text. As many as fields: none was lost.
    if line.count(":") == fields:
        return False
    between = "".join(line.split('"')[::2])  # what stands outside of texts
    if "\\" not in line and between.count(":") == fields:
        return False
    try:
        _STRICT.decode(line)
    except _RepeatedField:
        return True
    return False


class _RepeatedField(Exception):
    """A field of an object stands there twice."""


def _each_once(fields: list[tuple[str, Any]]) -> None:
    if len(dict(fields)) < len(fields):
        raise _RepeatedField


# Numbers stay text: that of thousands of digits is not for this rule to refuse.
_STRICT = json.JSONDecoder(
    strict=False, object_pairs_hook=_each_once, parse_int=str, parse_float=str
)
