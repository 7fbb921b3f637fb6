"""Outputs of any kind as small whole numbers, so that events can be counted.

An output may be a symbol, a number, or several of either. Each part is a column of codes: symbols
have one each, numbers fall into bins whose edges are quantiles, with a bin of its own for a number
that occurs often. What is counted later are sets of codes, so bins cost resolution, never validity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.core.arrays import Floats, Ints

_SYMBOLS = 256
"""Symbols of a column that are told apart; all others are one."""
_PARTS = 64
"""Parts of an output that are looked at one by one."""
_OFTEN = 0.01
"""Share of outputs from which on a number is a symbol: where noise is clamped, for one."""
# Tails are where ratios of densities are largest, so bins are narrower there.
_TAILS = (0.001, 0.0025, 0.005, 0.01, 0.02)
_QUANTILES = np.array([*_TAILS, *np.linspace(0.03, 0.97, 41), *(1 - q for q in _TAILS[::-1])])


@dataclass(frozen=True, slots=True, eq=False)
class Symbols:
    """A column of symbols; code 0 is for those that were not seen."""

    codes: dict[Any, int]

    @property
    def size(self) -> int:
        """How many codes there are."""
        return len(self.codes) + 1

    def coded(self, parts: Sequence[Any]) -> Ints:
        """The code of each."""
        return np.array([self.codes.get(part, 0) for part in parts], dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """A column of numbers: bins between quantiles, and numbers that occur often by themselves."""

    edges: Floats
    often: Floats

    @property
    def size(self) -> int:
        """How many codes there are."""
        return len(self.edges) + 1 + len(self.often)

    def coded(self, parts: Sequence[Any]) -> Ints:
        """The code of each."""
        numbers = np.array(parts, dtype=np.float64)
        codes = np.searchsorted(self.edges, numbers, side="right")
        for place, number in enumerate(self.often):
            codes[numbers == number] = len(self.edges) + 1 + place
        return codes


@dataclass(frozen=True, slots=True, eq=False)
class OutputCodes:
    """How outputs are turned into columns of codes.

    Attributes:
        columns: What becomes of each part, the whole output last.
        parts: How many parts an output has; 0 if it is not taken apart.
    """

    columns: tuple[Symbols | Bins, ...]
    parts: int

    @classmethod
    def fitted(cls, outputs: Sequence[Any]) -> OutputCodes:
        """Codes for outputs like these.

        Examples:
            >>> codes = OutputCodes.fitted(["a", "b", "a"])
            >>> codes.coded(["b", "a", "c"]).T
            array([[2, 1, 0]])
            >>> [column.size for column in OutputCodes.fitted([(0, 1), (1, 1)]).columns]
            [3, 2, 3]
        """
        plain = [_plain(output) for output in outputs]
        lengths = {len(output) if isinstance(output, tuple) else 0 for output in plain}
        parts = lengths.pop() if len(lengths) == 1 else 0
        parts = parts if parts <= _PARTS else 0
        taken = [[output[part] for output in plain] for part in range(parts)]
        return cls(tuple(_column(column) for column in [*taken, plain]), parts)

    def coded(self, outputs: Sequence[Any]) -> Ints:
        """One row for each output, one column for each part and for the whole."""
        plain = [_plain(output) for output in outputs]
        table = np.zeros((len(plain), len(self.columns)), dtype=np.int64)
        for part in range(self.parts):
            # An output of another shape than all before it is an event by itself: code 0.
            values = [_part(output, part) for output in plain]
            table[:, part] = self.columns[part].coded(values)
        table[:, -1] = self.columns[-1].coded(plain)
        return table


def _part(output: Any, part: int) -> Any:
    return output[part] if isinstance(output, tuple) and len(output) > part else float("nan")


def _plain(output: Any) -> Any:
    """An output as Python values that can be looked up."""
    if isinstance(output, np.ndarray | np.generic):
        output = output.tolist()
    if isinstance(output, list | tuple):
        return tuple(_plain(part) for part in output)
    try:
        hash(output)
    except TypeError:
        return repr(output)
    return output


def _column(values: Sequence[Any]) -> Symbols | Bins:
    counted = Counter(values)
    numeric = all(isinstance(value, int | float) for value in counted)
    if len(counted) <= _SYMBOLS // 4 or not numeric:
        return Symbols({value: code + 1 for code, (value, _) in enumerate(_commonest(counted))})
    numbers = np.array(values, dtype=np.float64)
    often = [value for value, count in _commonest(counted) if count > _OFTEN * len(values)]
    return Bins(np.unique(np.nanquantile(numbers, _QUANTILES)), np.array(often, dtype=np.float64))


def _commonest(counted: Counter[Any]) -> list[tuple[Any, int]]:
    return counted.most_common(_SYMBOLS - 1)
