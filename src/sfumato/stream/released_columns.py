"""Rows of a released table as arrays, where every cell is spelled as a release spells it.

Where one is not, there is nothing to read here: the rows go one by one, and the audit says which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.errors import UnknownSymbol
from sfumato.core.events import OUTCOMES, Outcome
from sfumato.models.encoding import Unreadable
from sfumato.models.stream_model import StreamModel
from sfumato.stream.audit_rows import read_signal, released_symbol, same_cell
from sfumato.tables.arrow_arrays import cell_array, number_array, numbers_of, text_array
from sfumato.tables.batches import Batch, Column
from sfumato.tables.columnar import is_text
from sfumato.tables.readers import Chunk

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedRows:
    """Successive rows of a released table.

    Attributes:
        first: Number of the first row.
        names: The streams that have any, in the order in which they appear.
        owners: The stream of each row, as a place in `names`.
        sequences: Its moment.
        released: The place of its symbol in the alphabet; -1 for none.
        outcomes: What left, as places in `OUTCOMES`.
        signals: Which output of its channel left; -1 if it does not say.
        leakages: Both certificates that it states.
        ids: Its event ids; None if there are none.
    """

    first: int
    names: list[str]
    owners: Ints
    sequences: Ints
    released: Ints
    outcomes: Ints
    signals: Ints
    leakages: Floats
    ids: Column | None

    def __len__(self) -> int:
        return len(self.owners)


def as_batch(rows: Batch | Chunk) -> Batch | None:
    """The same rows as arrays; None where cells of one column are of different types."""
    if isinstance(rows, Batch):
        return rows
    columns = {name: _column(cells) for name, cells in rows.columns.items()}
    known = {name: column for name, column in columns.items() if column is not None}
    return Batch(rows.first, known) if len(known) == len(columns) else None


def _column(cells: Sequence[Any]) -> Column | None:
    import pyarrow as pa

    types = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    found = {type(cell) for cell in cells} - {type(None)}
    if len(found) > 1 or not found <= types.keys():
        return None
    kind = types[found.pop()] if found else pa.string()
    try:
        return Column(cell_array(cells, kind))
    except (pa.ArrowException, OverflowError, UnicodeError):
        return None  # a number beyond 64 bits, or half of a letter


def read_released(batch: Batch, model: StreamModel, *, text: bool) -> ReleasedRows | None:
    """Some rows of a released table; None where one of them must be looked at by itself.

    Args:
        batch: The rows, with all columns that are due.
        model: The model.
        text: Whether cells are texts, as in CSV.
    """
    cells = _Cells(batch, model, text=text)
    owners = cells.coded(model.stream)
    if owners is None or not all(isinstance(name, str) for name in owners[1]):
        return None
    released = cells.read("released", cells.symbol)
    outcomes = cells.read("outcome", lambda cell: OUTCOMES.index(Outcome(cell)))
    signals = cells.read("signal", cells.signal)
    sequences, sip, ldp = (cells.numbers(name) for name in ("sequence", "sip", "ldp"))
    if released is None or outcomes is None or signals is None:
        return None
    if sequences is None or sip is None or ldp is None or not cells.others_are_sound(released):
        return None
    return ReleasedRows(
        first=batch.first,
        names=owners[1],
        owners=owners[0],
        sequences=np.asarray(sequences, dtype=np.int64),
        released=released,
        outcomes=outcomes,
        signals=signals,
        leakages=np.stack([sip, ldp], axis=1).astype(np.float64),
        ids=batch.columns.get("event"),
    )


class _Cells:
    """Cells of a batch, read column by column."""

    def __init__(self, batch: Batch, model: StreamModel, *, text: bool) -> None:
        self._batch, self._model, self._text = batch, model, text

    def coded(self, name: str) -> tuple[Ints, list[Any]] | None:
        column = self._batch.columns[name]
        plain = _is_words(column.array) or _is_whole(column.array)
        return column.coded() if plain else None

    def read(self, name: str, meant: Callable[[Any], int]) -> Ints | None:
        """What each cell means; None if one means nothing, or is misspelled."""
        if name not in self._batch.columns:
            return np.full(len(self._batch), -1, dtype=np.int64)
        coded = self.coded(name)
        if coded is None:
            return None
        try:
            known = [meant(cell) for cell in coded[1]]
        except (Unreadable, UnknownSymbol, ValueError, TypeError):
            return None
        return np.array(known, dtype=np.int64)[coded[0]]

    def symbol(self, cell: Any) -> int:
        """The place of a released symbol; -1 for none."""
        label = released_symbol(cell, self._model)
        self._check(cell, label)
        return -1 if label is None else self._model.alphabet.index(label)

    def signal(self, cell: Any) -> int:
        """The output that a cell names; -1 for none."""
        signal = read_signal(cell)
        self._check(cell, signal)
        return -1 if signal is None else signal

    def _check(self, cell: Any, due: Any) -> None:
        if not same_cell(cell, due, text=self._text):
            raise Unreadable("must be written as the release writes it")

    def numbers(self, name: str) -> Floats | Ints | None:
        """Moments, or certificates; None if one is missing or misspelled."""
        column, whole = self._batch.columns[name], name == "sequence"
        if self._text:
            return self._spelled(column, int if whole else float)
        array = column.array
        fits = _is_whole(array) if whole else str(array.type) == "double"
        if not fits or array.null_count:
            return None
        found = numbers_of(array)
        if whole and found.dtype == np.uint64 and found.max() >= 2**63:
            return None
        return np.asarray(found)

    def _spelled(self, column: Column, kind: type) -> Floats | Ints | None:
        codes, words = column.coded()
        try:
            values = [kind(word) for word in words]
            if list(map(str, values)) != words:
                return None
            if kind is int:
                return np.array(values, dtype=np.int64)[codes]
            return np.array(values, dtype=np.float64)[codes]
        except (ValueError, TypeError, OverflowError):
            return None

    def others_are_sound(self, released: Ints) -> bool:
        """Whether centres of cells are right, and all other columns hold texts."""
        own = ("sequence", "released", "signal", "x", "y", "outcome", "sip", "ldp")
        others = [column for name, column in self._batch.columns.items() if name not in own]
        if not all(_is_words(column.array) for column in others):
            return False
        return "x" not in self._batch.columns or self._centred(released)

    def _centred(self, released: Ints) -> bool:
        import pyarrow as pa

        places = self._model.alphabet.coordinates
        if places is None:
            return False
        for axis, name in enumerate(("x", "y")):
            array = self._batch.columns[name].array
            if self._text:
                words = [*map(str, places[:, axis].tolist()), ""]
                due = text_array(words).take(number_array(released % len(words), pa.int64()))
                if not _unpacked(array).equals(due):
                    return False
                continue
            if str(array.type) != "double":
                return False
            empty, centres = released < 0, places[released, axis]
            bits = numbers_of(array.fill_null(0.0)).view(np.int64)
            missing = numbers_of(array.is_null().cast(pa.uint8())) == 1
            if (missing != empty).any() or (bits != centres.view(np.int64))[~empty].any():
                return False
        return True


def same_floats(left: Floats, right: Floats) -> Bools:
    """Which numbers are the same to the last bit; the sign of 0 counts."""
    first, second = np.ascontiguousarray(left), np.ascontiguousarray(right)
    return np.asarray(first.view(np.int64) == second.view(np.int64))


def _is_words(array: pa.Array) -> bool:
    import pyarrow as pa

    kind = array.type.value_type if isinstance(array, pa.DictionaryArray) else array.type
    return is_text(kind)


def _is_whole(array: pa.Array) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(array.type))


def _unpacked(array: pa.Array) -> pa.Array:
    import pyarrow as pa

    return array.dictionary_decode() if isinstance(array, pa.DictionaryArray) else array
