"""Values of live events as places in the alphabet, as a table of them would be read.

Each spelling of a symbol is encoded once; numbers are cut into cells by array.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sfumato.core.alphabet import MISSING_SYMBOL
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import UnknownSymbol
from sfumato.core.purpose import Fallback
from sfumato.models.encoding import Bins, Grid, Raw, Symbols, Unreadable, is_missing
from sfumato.models.stream_model import StreamModel
from sfumato.store.live import Reason, Refused, Reply
from sfumato.store.live_intake import bad_value
from sfumato.store.protocol import Released
from sfumato.stream.column_values import PASSES
from sfumato.tables.cells import Missing

_SPELLINGS = 4096
"""Blank cells may be one symbol in many spellings: beyond so many they are forgotten."""
_UNREADABLE = -3


class LiveValues:
    """Reads the values of live events.

    Args:
        model: How raw values become symbols.
        missing: What becomes of a missing value.
        unknown: What leaves for a value outside the alphabet.

    Attributes:
        words: What a value is known by in digests, by the place of its symbol.
    """

    def __init__(self, model: StreamModel, missing: Missing, unknown: Fallback) -> None:
        self._model, self._missing = model, missing
        alphabet = model.alphabet
        # A value outside the alphabet stands at -1, a moment that passes at -2.
        self.words: tuple[Released, ...] = (*alphabet.labels, MISSING_SYMBOL, None)
        self._strict = unknown is Fallback.REFUSE
        self._unknown = Refused(Reason.VALUE, str(UnknownSymbol(len(alphabet), "the value")))
        self._spelled: dict[str, int] = {}

    def cells(self, values: Sequence[Any], refused: dict[int, Reply]) -> Ints:
        """Places of symbols: -1 outside the alphabet, -2 where a moment passes.

        Args:
            values: The true values, as they came.
            refused: Gets the refusals of those that cannot be read, by their places.
        """
        cells = self._numbers(values)
        if cells is None:
            spelled = self._spelled
            found = [
                spelled.get(value, _UNREADABLE) if value.__class__ is str else _UNREADABLE
                for value in values
            ]
            cells = np.array(found, dtype=np.int64)
            for place in np.flatnonzero(cells == _UNREADABLE).tolist():
                cells[place] = self._cell(values[place], place, refused)
        if self._strict:
            for place in np.flatnonzero(cells == -1).tolist():
                refused.setdefault(place, self._unknown)
        return cells

    def cell(self, value: Any) -> int:
        """The place of one symbol, as in `cells`.

        Raises:
            Unreadable: If the value breaks a rule.
        """
        raw = self._parts(value)
        encoding, alphabet = self._model.encoding, self._model.alphabet
        if any(is_missing(part) for part in raw):
            match self._missing:
                case Missing.SKIP:
                    return PASSES
                case Missing.SYMBOL:
                    return alphabet.index(MISSING_SYMBOL)
                case Missing.DROP:
                    raise Unreadable("must not be missing: such events are left out")
                case Missing.REFUSE:
                    pass
        return alphabet.place(encoding.encode(*raw))

    def _cell(self, value: Any, place: int, refused: dict[int, Reply]) -> int:
        try:
            cell = self.cell(value)
        except Unreadable as problem:
            refused.setdefault(place, bad_value(problem))
            return _UNREADABLE
        if cell >= 0 and isinstance(value, str) and isinstance(self._model.encoding, Symbols):
            if len(self._spelled) >= _SPELLINGS + 2 * len(self._model.alphabet):
                self._spelled.clear()
            self._spelled[value] = cell
        return cell

    def _parts(self, value: Any) -> tuple[Raw, ...]:
        """The raw cells of a value, in the order of the columns of the model."""
        names = self._model.values
        if isinstance(value, Mapping):
            if set(value) != set(names):
                raise Unreadable(f"must have the fields {', '.join(names)}")
            parts = tuple(value[name] for name in names)
        elif isinstance(value, list | tuple):
            parts = tuple(value)
        else:
            # One that is missing as a whole lacks each of its parts.
            parts = (value,) * (len(names) if value is None else 1)
        if len(parts) != len(names):
            raise Unreadable(f"must have {len(names)} parts")
        if not all(part is None or isinstance(part, str | int | float) for part in parts):
            raise Unreadable("must be a text or a number, or a list or mapping of them")
        return parts

    def _numbers(self, values: Sequence[Any]) -> Ints | None:
        """All of them by array, if all are finite numbers; else None."""
        match self._model.encoding:
            case Bins() as bins if {*map(type, values)} <= {int, float}:
                (points,) = _finite([values]) or (None,)
                return None if points is None else bins.cells(points)
            case Grid() as grid if {*map(type, values)} == {list} and {*map(len, values)} == {2}:
                parts = [[one[0] for one in values], [one[1] for one in values]]
                if {*map(type, parts[0]), *map(type, parts[1])} <= {int, float}:
                    found = _finite(parts)
                    return None if found is None else grid.cells(*found)
        return None


def _finite(parts: list[Any]) -> list[Floats] | None:
    """Columns of finite numbers; None if one of them is none."""
    try:
        columns = [np.array([float(one) for one in part]) for part in parts]
    except OverflowError:
        return None
    return columns if all(np.isfinite(column).all() for column in columns) else None
