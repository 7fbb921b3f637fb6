"""The finite set of values a stream can take."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks, limits
from sfumato.core.arrays import Floats, Ints
from sfumato.core.digest import digest
from sfumato.core.errors import InvalidParameter, UnknownSymbol

Label = str | int


# What a missing value is called where it is a symbol of its own.
MISSING_SYMBOL = "(missing)"


@dataclass(frozen=True, slots=True, eq=False)
class Alphabet:
    """Symbols in a fixed order, each with a place in space if distances matter.

    Args:
        labels: The symbols: distinct strings or whole numbers.
        coordinates: One row per symbol. Whole-number labels are their own coordinate.

    Examples:
        >>> rooms = Alphabet(["kitchen", "hall", "garden"])
        >>> rooms.index("hall"), len(rooms)
        (1, 3)
        >>> Alphabet([10, 20, 40]).coordinates.ravel()
        array([10., 20., 40.])
    """

    labels: tuple[Label, ...]
    coordinates: Floats | None
    _places: dict[Hashable, int] = field(repr=False)

    def __init__(self, labels: Iterable[Label], coordinates: ArrayLike | None = None) -> None:
        symbols = tuple(_label(label) for label in labels)
        if len(set(symbols)) != len(symbols) or not symbols:
            raise InvalidParameter("labels", len(symbols), "be distinct, and at least one")
        object.__setattr__(self, "labels", symbols)
        object.__setattr__(self, "coordinates", _coordinates(symbols, coordinates))
        object.__setattr__(self, "_places", {symbol: i for i, symbol in enumerate(symbols)})

    @classmethod
    def of_size(cls, size: int) -> Self:
        """The numbers 0, 1, ..., size - 1.

        Examples:
            >>> Alphabet.of_size(3).labels
            (0, 1, 2)
        """
        return cls(range(checks.count("size", size)))

    @classmethod
    def grid(cls, rows: int, columns: int) -> Self:
        """Cells of a rectangular grid, named "row,column", one unit apart.

        Examples:
            >>> Alphabet.grid(2, 2).labels
            ('0,0', '0,1', '1,0', '1,1')
        """
        height, width = checks.count("rows", rows), checks.count("columns", columns)
        cells = [(row, column) for row in range(height) for column in range(width)]
        return cls([f"{row},{column}" for row, column in cells], cells)

    @classmethod
    def occurring(cls, sequences: Iterable[Sequence[Label]]) -> Self:
        """The symbols that occur in recorded sequences, sorted: numbers first, then names.

        Examples:
            >>> Alphabet.occurring([["b", "a"], ["a", 3]]).labels
            (3, 'a', 'b')
        """
        labels = {label for sequence in sequences for label in sequence}
        # What is no label is refused by its type, before it is compared with others.
        return cls(sorted(map(_label, labels), key=lambda label: (isinstance(label, str), label)))

    def __len__(self) -> int:
        return len(self.labels)

    def __contains__(self, label: object) -> bool:
        return self.place(label) >= 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Alphabet):
            return NotImplemented
        return self.labels == other.labels and np.array_equal(
            _or_empty(self.coordinates), _or_empty(other.coordinates)
        )

    def __hash__(self) -> int:
        return hash(self.labels)

    @property
    def fingerprint(self) -> str:
        """Identifies the alphabet: labels, their order and their places."""
        kinds = (f"{type(label).__name__} {label}" for label in self.labels)
        return digest("alphabet", *kinds, self.coordinates)

    def index(self, label: object) -> int:
        """Return the place of a symbol.

        Raises:
            UnknownSymbol: If the symbol is not in the alphabet. The message does not quote it.
        """
        place = self.place(label)
        if place < 0:
            raise UnknownSymbol(len(self))
        return place

    def place(self, label: object) -> int:
        """Return the place of a symbol, or -1 if it is not in the alphabet."""
        # True equals 1 in Python, and is no label.
        is_label = isinstance(label, str | int | np.integer) and not isinstance(label, bool)
        return self._places.get(label, -1) if is_label else -1

    def indices(self, labels: Sequence[object]) -> Ints:
        """Return the places of many symbols."""
        return np.array([self.index(label) for label in labels], dtype=np.int64)


def _label(label: object) -> Label:
    if isinstance(label, np.integer):
        label = int(label)
    if isinstance(label, bool) or not isinstance(label, str | int):
        raise InvalidParameter("labels", type(label).__name__, "be strings or whole numbers")
    if isinstance(label, int) and not -(2**63) <= label < 2**63:
        raise InvalidParameter("labels", "a larger number", "fit into 64 bits")
    if isinstance(label, str) and len(label) > limits.LABEL:
        rule = f"have at most {limits.LABEL:,} characters each"
        raise InvalidParameter("labels", f"one of {len(label):,} characters", rule)
    return label


def _or_empty(coordinates: Floats | None) -> Floats:
    return np.empty(0) if coordinates is None else coordinates


def _coordinates(labels: tuple[Label, ...], given: ArrayLike | None) -> Floats | None:
    if given is None:
        if not all(isinstance(label, int) for label in labels):
            return None
        given = np.array(labels, dtype=np.float64)
    places = np.asarray(given, dtype=np.float64)
    if places.ndim == 1:
        places = places[:, None]
    if places.ndim != 2 or len(places) != len(labels) or not np.all(np.isfinite(places)):
        raise InvalidParameter(
            "coordinates", places.shape, f"be {len(labels)} rows of finite numbers"
        )
    return checks.read_only(places)
