"""From what a table holds to the symbols of an alphabet, and back.

Three ways: values that are symbols already, numbers cut into bins, and points cut into the cells of
a grid. An encoding is public; it never keeps or quotes a value.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from sfumato.core import checks, limits, portable
from sfumato.core.alphabet import MISSING_SYMBOL, Alphabet, Label
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.loss import EARTH, on_earth

Raw: TypeAlias = str | int | float | bool | None

# The unit of a grid of longitude (first) and latitude.
DEGREES = "degrees"


class Unreadable(ValueError):
    """A raw value breaks a rule; the rule is said, the value is not."""


@dataclass(frozen=True, slots=True, eq=False)
class Symbols:
    """Values that are symbols already: words, or whole numbers.

    Examples:
        >>> levels = Symbols.of(["3", "1", "2", "1"])
        >>> levels.alphabet.labels, levels.encode("2")
        ((1, 2, 3), 2)
    """

    alphabet: Alphabet
    inputs: ClassVar[int] = 1  # columns that a value comes from

    @classmethod
    def of(cls, values: Iterable[Raw]) -> Symbols:
        """The alphabet of the values that occur, sorted; whole numbers if all of them are."""
        words = {text(value) for value in values}
        if all(_is_whole(word) for word in words):
            return cls(Alphabet(sorted(int(word) for word in words)))
        return cls(Alphabet(sorted(words)))

    def encode(self, value: Raw) -> Label | None:
        """The symbol of a raw value; None when it is outside the alphabet."""
        if MISSING_SYMBOL in self.alphabet and _is_empty(value):
            return MISSING_SYMBOL
        word = text(value)
        label: Label = word
        if isinstance(self.alphabet.labels[0], int):
            if not _is_whole(word):
                return None
            label = int(word)
        return label if label in self.alphabet else None


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """Numbers cut into bins of equal width, named by their middles.

    Attributes:
        edges: Where bins begin and end.
        alphabet: Their names and middles.
        clip: Whether a number beyond all bins is taken for the nearest one.

    Examples:
        >>> speed = Bins.covering([0.0, 30.0], count=3)
        >>> speed.alphabet.labels, speed.encode("12.5")
        (('5', '15', '25'), '15')
    """

    edges: Floats
    alphabet: Alphabet
    clip: bool
    inputs: ClassVar[int] = 1

    def __init__(self, edges: Sequence[float] | Floats, *, clip: bool = False) -> None:
        object.__setattr__(self, "edges", _edges("edges", edges))
        object.__setattr__(self, "clip", clip)
        middles = _middles(self.edges)
        object.__setattr__(self, "alphabet", Alphabet([f"{m:.10g}" for m in middles], middles))

    @classmethod
    def covering(cls, values: Iterable[float], count: int) -> Bins:
        """Bins of equal width over the range of some values."""
        return cls(_even_edges("bins", values, count))

    def encode(self, value: Raw) -> Label | None:
        """The symbol of a raw value; None when it lies outside all bins and is not clipped."""
        place = _cell(self.edges, number(value), self.clip)
        return None if place is None else self.alphabet.labels[place]

    def cells(self, values: Floats) -> Ints:
        """Places of the symbols of many finite numbers, as `encode` finds them; -1 for None.

        Examples:
            >>> Bins([0.0, 1.0, 2.0]).cells(np.array([0.5, 2.0, 2.5]))
            array([ 0,  1, -1])
        """
        return _cells(self.edges, values, self.clip)

    def beyond(self, values: Floats) -> Bools:
        """Which of many numbers lie outside all bins."""
        return _cells(self.edges, values, False) < 0

    def outside(self, value: Raw) -> bool:
        """Whether a number lies outside all bins."""
        return _cell(self.edges, number(value), False) is None

    def places(self, value: Raw) -> tuple[float, ...]:
        """The raw value itself, on the scale of the alphabet's coordinates."""
        return (number(value),)


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Points cut into the cells of a rectangular grid, named "column,row" of the cell.

    Attributes:
        x_edges: Where columns begin and end.
        y_edges: Where rows begin and end.
        alphabet: The cells and their middles.
        clip: Whether a point beyond the grid is taken for the nearest cell.

    Examples:
        >>> town = Grid.covering([0.0, 4.0], [0.0, 2.0], columns=2, rows=2)
        >>> town.encode("3.5", "0.1"), town.alphabet.coordinates[1]
        ('1,0', array([1. , 1.5]))
    """

    x_edges: Floats
    y_edges: Floats
    alphabet: Alphabet
    clip: bool
    inputs: ClassVar[int] = 2

    def __init__(
        self,
        x_edges: Sequence[float] | Floats,
        y_edges: Sequence[float] | Floats,
        *,
        clip: bool = False,
    ) -> None:
        object.__setattr__(self, "clip", clip)
        object.__setattr__(self, "x_edges", _edges("x_edges", x_edges))
        object.__setattr__(self, "y_edges", _edges("y_edges", y_edges))
        xs, ys = _middles(self.x_edges), _middles(self.y_edges)
        names = [f"{i},{j}" for i in range(xs.size) for j in range(ys.size)]
        places = np.stack([np.repeat(xs, ys.size), np.tile(ys, xs.size)], axis=1)
        object.__setattr__(self, "alphabet", Alphabet(names, places))

    @classmethod
    def covering(cls, xs: Iterable[float], ys: Iterable[float], columns: int, rows: int) -> Grid:
        """A grid of equal cells over the range of some points."""
        checks.count("grid", columns * rows, at_most=limits.SYMBOLS)
        return cls(_even_edges("grid", xs, columns), _even_edges("grid", ys, rows))

    def encode(self, x: Raw, y: Raw) -> Label | None:
        """The symbol of a point; None when it lies outside the grid and is not clipped."""
        column = _cell(self.x_edges, number(x), self.clip)
        row = _cell(self.y_edges, number(y), self.clip)
        if column is None or row is None:
            return None
        return self.alphabet.labels[column * (self.y_edges.size - 1) + row]

    def cells(self, xs: Floats, ys: Floats) -> Ints:
        """Places of the symbols of many finite points, as `encode` finds them; -1 for None."""
        columns = _cells(self.x_edges, xs, self.clip)
        rows = _cells(self.y_edges, ys, self.clip)
        places = columns * (self.y_edges.size - 1) + rows
        return np.where((columns < 0) | (rows < 0), -1, places)

    def beyond(self, xs: Floats, ys: Floats) -> Bools:
        """Which of many points lie outside the grid."""
        return (_cells(self.x_edges, xs, False) < 0) | (_cells(self.y_edges, ys, False) < 0)

    def outside(self, x: Raw, y: Raw) -> bool:
        """Whether a point lies outside the grid."""
        beyond = (_cell(self.x_edges, number(x), False), _cell(self.y_edges, number(y), False))
        return None in beyond

    def places(self, x: Raw, y: Raw) -> tuple[float, ...]:
        """The raw point itself, on the scale of the alphabet's coordinates."""
        return number(x), number(y)


Encoding: TypeAlias = Symbols | Bins | Grid


def check_degrees(encoding: Encoding) -> None:
    """Refuse what cannot be longitude and latitude."""
    if not isinstance(encoding, Grid):
        raise InvalidParameter("--units", DEGREES, "be that of a grid of longitude and latitude")
    for name, edges, most in (("x", encoding.x_edges, 180.0), ("y", encoding.y_edges, 90.0)):
        if edges[0] < -most or edges[-1] > most:
            what = "longitude" if name == "x" else "latitude"
            raise InvalidParameter(f"--{name}", "a wider range", f"be {what}, within {most:g}")


def apart(here: Floats, there: Floats, unit: str) -> Floats:
    """Distances of places, row by row: along the earth, in km, if they are in degrees."""
    if unit == DEGREES:
        here, there = on_earth(here), on_earth(there)
    # Squares of the widest range of floats would overflow.
    straight = np.hypot.reduce(np.abs(here - there), axis=1)
    if unit != DEGREES:
        return np.asarray(straight)
    return np.asarray(2 * EARTH * portable.arc_sine(np.minimum(straight / (2 * EARTH), 1.0)))


def clipped(encoding: Encoding, value: tuple[Raw, ...]) -> bool:
    """Whether a value lies beyond the range and is taken for its edge."""
    return not isinstance(encoding, Symbols) and encoding.clip and encoding.outside(*value)


def number(value: Raw) -> float:
    """A finite number, or the rule that was broken."""
    if value is None or value == "":
        raise Unreadable("must not be empty")
    try:
        read = float(value)
    except (ValueError, TypeError, OverflowError):
        raise Unreadable("must be a number") from None
    if not math.isfinite(read):
        raise Unreadable("must be a finite number")
    return read


def is_missing(value: Raw) -> bool:
    """Whether a cell holds no value: empty, blank, or no number (NaN).

    Examples:
        >>> [is_missing(cell) for cell in (None, "", " ", "NaN", math.nan)], is_missing("none")
        ([True, True, True, True, True], False)
        >>> is_missing(0), is_missing(False)
        (False, False)
    """
    if value is None:
        return True
    if isinstance(value, str):
        word = value.strip()
        return not word or word.lower() == "nan"
    return isinstance(value, float) and math.isnan(value)


def text(value: Raw) -> str:
    """The text of a symbol, or the rule that was broken."""
    if value is None or value == "":
        raise Unreadable("must not be empty")
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Unreadable("must be a finite number")
        return str(int(value)) if value.is_integer() else repr(value)
    if not isinstance(value, str | int):
        raise Unreadable("must be a text or a number")
    try:
        word = str(value)
    except ValueError:  # a whole number of thousands of digits
        raise Unreadable("must have fewer digits") from None
    if len(word) > limits.LABEL:
        raise Unreadable(f"must have at most {limits.LABEL:,} characters")
    if word.lower() == "nan":
        raise Unreadable("must not be missing")
    return word


def _is_empty(value: Raw) -> bool:
    try:
        return not text(value).strip()
    except Unreadable:
        return value is None or isinstance(value, str | float)


def _is_whole(word: str) -> bool:
    """Whether a word is how a whole number is written: no blanks, no leading zeros."""
    digits = word.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 16 and str(int(word)) == word


def _cell(edges: Floats, value: float, clip: bool) -> int | None:
    """The bin of a value; the last one includes its upper edge."""
    if clip:
        value = min(max(value, float(edges[0])), float(edges[-1]))
    elif not edges[0] <= value <= edges[-1]:
        return None
    return min(bisect_right(edges.tolist(), value), edges.size - 1) - 1


def _cells(edges: Floats, values: Floats, clip: bool) -> Ints:
    """The bins of many values, as `_cell` finds them; -1 for None."""
    found = np.searchsorted(edges, np.clip(values, edges[0], edges[-1]), side="right")
    places = np.minimum(found, edges.size - 1) - 1
    return places if clip else np.where((values < edges[0]) | (values > edges[-1]), -1, places)


def _edges(name: str, edges: Sequence[float] | Floats) -> Floats:
    checked = np.asarray(edges, dtype=np.float64)
    if checked.ndim != 1 or checked.size < 2 or not np.all(np.diff(checked) > 0):
        raise InvalidParameter(name, checked.shape, "be at least two numbers in rising order")
    return checks.read_only(checked)


def _middles(edges: Floats) -> Floats:
    # Halves first: the sum of two ends may overflow.
    return 0.5 * edges[1:] + 0.5 * edges[:-1]


def _even_edges(name: str, values: Iterable[float], count: int) -> Floats:
    sample = np.fromiter(values, dtype=np.float64)
    parts = checks.count(name, count, at_most=limits.SYMBOLS)
    if sample.size == 0 or not np.all(np.isfinite(sample)):
        raise InvalidParameter(name, sample.size, "be cut from at least one finite number")
    low, high = float(sample.min()), float(sample.max())
    if low == high:
        low, high = low - 0.5, high + 0.5
    # Halves, so that the width of the widest range does not overflow.
    steps = np.linspace(-1.0, 1.0, parts + 1)
    edges = (0.5 * low + 0.5 * high) + steps * (0.5 * high - 0.5 * low)
    names = {f"{middle:.10g}" for middle in _middles(edges)}
    if not np.all(np.diff(edges) > 0) or len(names) < parts or not np.all(np.isfinite(edges)):
        raise InvalidParameter(name, count, "be fewer: the values are too close together")
    edges[0], edges[-1] = low, high
    return edges
