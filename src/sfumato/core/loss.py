"""What it costs to release one symbol when another is true.

A loss is a matrix: rows are true symbols, columns are released ones. The papers write it
$D(Q(x), Q(y))$ for a query $Q$ that the receiver will ask and a distance $D$ of its answers.
Losses that measure a distance are computed from places where they are needed: ten thousand cells
of a map would fill 800 MB as a matrix, and a design looks at a few dozen columns of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Self, TypeVar, assert_never

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks, portable
from sfumato.core.alphabet import Alphabet, Label
from sfumato.core.arrays import Floats, Ints
from sfumato.core.digest import digest
from sfumato.core.errors import InvalidParameter

Answer = TypeVar("Answer")

# Mean radius of the earth in kilometres; the same number stands in the compiled loops.
EARTH = 6371.0088

_BLOCK = 64
# Symbols up to which a design works on the matrix of a loss that could be computed; and up to
# which it is made at all, when asked for.
_TABULATED, _STORED = 600, 5000


class Measure(Enum):
    """How two places are compared; the values are those of the compiled loops."""

    HAMMING = 0
    ABSOLUTE = 1
    SQUARED = 2
    EUCLIDEAN = 3
    GREAT_CIRCLE = 4


@dataclass(frozen=True, slots=True, eq=False)
class Loss:
    """A named loss on an alphabet.

    Attributes:
        name: What messages and reports call it.
        measure: How it compares the places of two symbols; None for a loss given as a table.
        places: One row of coordinates per symbol, where there is a measure.

    Examples:
        >>> hamming(Alphabet("ab")).matrix
        array([[0., 1.],
               [1., 0.]])
        >>> absolute(Alphabet.of_size(10_000)).columns([3])[:5].ravel()
        array([3., 2., 1., 0., 1.])
    """

    name: str
    measure: Measure | None
    places: Floats | None = field(repr=False)
    _size: int
    _matrix: Floats | None = field(repr=False)

    def __init__(self, name: str, matrix: ArrayLike) -> None:
        table = checks.loss_matrix("loss", matrix)
        self._set(name, None, None, len(table), table)

    @classmethod
    def between(cls, measure: Measure, places: ArrayLike) -> Self:
        """A loss that compares places, one row of coordinates per symbol."""
        loss = cls.__new__(cls)
        where = checks.read_only(np.asarray(places, dtype=np.float64))
        loss._set(measure.name.lower().replace("_", "-"), measure, where, len(where), None)
        with np.errstate(over="ignore", invalid="ignore"):
            if not np.isfinite(loss.bound):
                raise InvalidParameter("loss", loss.bound, "be finite and nowhere negative")
        return loss

    def _set(self, *values: object) -> None:
        for name, value in zip(self.__slots__, values, strict=True):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return self._size

    @property
    def all_alike(self) -> bool:
        """Whether every error costs 1, by the form of the loss; a table is not looked into."""
        one = self.places is not None and self.places.shape[1] == 1
        return one and self.measure is Measure.HAMMING

    @property
    def stored(self) -> bool:
        """Whether a design should work on the whole table: it is given, or small."""
        return self.measure is None or self._size <= _TABULATED

    @property
    def storable(self) -> bool:
        """Whether the whole table exists or may be made."""
        return self.measure is None or self._size <= _STORED

    @property
    def matrix(self) -> Floats:
        """The whole table, computed once; refused where it would fill the memory."""
        if self._matrix is None:
            if not self.storable:
                raise InvalidParameter(
                    "loss", f"{self._size} symbols", f"have at most {_STORED} to be a matrix"
                )
            table = np.empty((self._size, self._size))
            for start in range(0, self._size, 256):
                block = np.arange(start, min(start + 256, self._size))
                table[:, block] = self.columns(block)
            table.setflags(write=False)
            object.__setattr__(self, "_matrix", table)
        return np.asarray(self._matrix)

    @property
    def fingerprint(self) -> str:
        """Identifies the loss by what it is made of, not by its entries."""
        if self.measure is None:
            return digest("loss table", self.matrix)
        return digest("loss between places", self.measure.name, self.places)

    @property
    def bound(self) -> float:
        """A number that no entry exceeds by more than rounding."""
        if self.measure is None or self.places is None:
            return float(self.matrix.max())
        corners = self.places.min(axis=0)[None, :], self.places.max(axis=0)[None, :]
        return float(_compared(self.measure, *corners)[0, 0])

    def columns(self, outputs: ArrayLike) -> Floats:
        """Losses of given outputs: row = true symbol."""
        released = np.asarray(outputs, dtype=np.int64)
        if self._matrix is not None:
            return np.ascontiguousarray(self._matrix[:, released])
        return self._pairs(np.arange(self._size), released)

    def rows(self, trues: ArrayLike) -> Floats:
        """Losses of given true symbols: column = released symbol."""
        chosen = np.asarray(trues, dtype=np.int64)
        if self._matrix is not None:
            return np.ascontiguousarray(self._matrix[chosen])
        return self._pairs(chosen, np.arange(self._size))

    def paired(self, told: Ints) -> Floats:
        """Loss of each true symbol when its own entry of `told` is released.

        Examples:
            >>> absolute(Alphabet.of_size(3)).paired(np.array([1, 1, 0]))
            array([1., 0., 2.])
        """
        if self._matrix is not None:
            return np.asarray(self._matrix[np.arange(self._size), told])
        losses = np.empty(self._size)
        for start in range(0, self._size, _BLOCK):
            trues = np.arange(start, min(start + _BLOCK, self._size))
            losses[trues] = np.diagonal(self._pairs(trues, told[trues]))
        return losses

    def from_point(self, point: Sequence[float]) -> Floats | None:
        """Losses of every output for a truth at a point between symbols; None for a table.

        Examples:
            >>> absolute(Alphabet.of_size(3)).from_point([0.4])
            array([0.4, 0.6, 1.6])
        """
        if self.measure in (None, Measure.HAMMING) or self.places is None:
            return None
        where = np.asarray(point, dtype=np.float64)[None, :]
        if self.measure is Measure.GREAT_CIRCLE:
            where = on_earth(where)
        assert self.measure is not None
        return np.asarray(_compared(self.measure, where, self.places)[0])

    def means(self, belief: Floats) -> Floats:
        """Mean loss of every constant output.

        By one formula for each loss, whether or not its table was ever asked for: last digits
        decide ties between constants, and an audit must decide them as the release did.
        """
        if self.stored or self.measure is None or self.places is None:
            return np.asarray(portable.dot(belief, self.matrix))
        if self.all_alike:
            return np.asarray(belief.sum() - belief)
        from sfumato.core.coordinate_losses import mean_losses

        return mean_losses(np.ascontiguousarray(self.places.T), self.measure.value, belief)

    def best_constant(self, belief: Floats) -> tuple[int, float]:
        """Where the symbol stands that loses least if it is released whatever is true; its loss.

        The loss is as heavy as the belief is.
        """
        means = self.means(belief)
        place = int(np.argmin(means))
        return place, float(means[place])

    def _pairs(self, trues: Ints, released: Ints) -> Floats:
        assert self.measure is not None
        assert self.places is not None
        return _compared(self.measure, self.places[trues], self.places[released])


def as_loss(loss: Loss | ArrayLike, size: int | None = None) -> Loss:
    """Return a loss, checked against the size of the alphabet."""
    if isinstance(loss, Loss) and size in (None, len(loss)):
        return loss  # checked when it was made
    if isinstance(loss, Loss):
        raise InvalidParameter("loss", len(loss), f"be {size} by {size}, like the belief")
    return Loss("matrix", checks.loss_matrix("loss", loss, size))


def as_matrix(loss: Loss | ArrayLike, size: int | None = None) -> Floats:
    """Return the matrix of a loss, checked against the size of the alphabet."""
    if isinstance(loss, Loss):
        return as_loss(loss, size).matrix
    return checks.loss_matrix("loss", loss, size)


def hamming(alphabet: Alphabet) -> Loss:
    """1 for every wrong symbol."""
    return Loss.between(Measure.HAMMING, np.arange(len(alphabet))[:, None])


def absolute(alphabet: Alphabet) -> Loss:
    """Distance on a line, or summed over the axes of a space.

    Examples:
        >>> absolute(Alphabet([1, 2, 4])).matrix[0]
        array([0., 1., 3.])
    """
    return Loss.between(Measure.ABSOLUTE, _places(alphabet))


def squared(alphabet: Alphabet) -> Loss:
    """Squared Euclidean distance."""
    return Loss.between(Measure.SQUARED, _places(alphabet))


def euclidean(alphabet: Alphabet) -> Loss:
    """Euclidean distance.

    Examples:
        >>> euclidean(Alphabet.grid(2, 2)).matrix[0]
        array([0.  , 1.  , 1.  , 1.414])
    """
    return Loss.between(Measure.EUCLIDEAN, _places(alphabet))


def great_circle(alphabet: Alphabet) -> Loss:
    """Distance in kilometres along the earth, for places given as longitude and latitude.

    Examples:
        >>> cities = Alphabet(["Oslo", "Rome"], [[10.75, 59.91], [12.5, 41.9]])
        >>> great_circle(cities).matrix[0]
        array([   0.        , 2006.2067384])
    """
    places = _places(alphabet)
    if places.shape[1] != 2 or not np.all(np.abs(places) <= [360.0, 90.0]):
        rule = "be longitudes and latitudes in degrees"
        raise InvalidParameter("alphabet.coordinates", places.shape, rule)
    return Loss.between(Measure.GREAT_CIRCLE, on_earth(places))


def on_earth(degrees: ArrayLike) -> Floats:
    """Longitudes and latitudes as points in space, in kilometres from the middle of the earth.

    A latitude beyond a pole, as only a mistake has it, is taken for the pole.
    """
    longitude, latitude = np.radians(np.asarray(degrees, dtype=np.float64)).T
    latitude = np.clip(latitude, -np.pi / 2, np.pi / 2)
    flat = portable.cosine(latitude)
    axes = (
        flat * portable.cosine(longitude),
        flat * portable.sine(longitude),
        portable.sine(latitude),
    )
    return EARTH * np.stack(axes, axis=1)


def matrix(values: ArrayLike, name: str = "matrix") -> Loss:
    """Any table of non-negative losses: row = true symbol, column = released symbol."""
    return Loss(name, np.asarray(values, dtype=np.float64))


def query(
    alphabet: Alphabet,
    answer: Callable[[Label], Answer],
    distance: Callable[[Answer, Answer], float],
    name: str = "query",
) -> Loss:
    """Loss of an answer: `distance(answer(true), answer(released))`.

    Examples:
        >>> parity = query(Alphabet.of_size(3), lambda x: int(x) % 2, lambda a, b: abs(a - b))
        >>> parity.matrix[0]
        array([0., 1., 0.])

    References:
        [SIP, Eq. 10]
    """
    answers = [answer(label) for label in alphabet.labels]
    return Loss(name, np.array([[distance(true, other) for other in answers] for true in answers]))


def histogram(alphabet: Alphabet, groups: Mapping[Label, str]) -> Loss:
    """Error of a histogram over groups of symbols: 2 when the group is wrong, else 0.

    A value counted in the wrong bar makes one bar too low and another too high.

    Args:
        alphabet: The symbols.
        groups: The bar that each symbol is counted in.

    References:
        [SIP, Sec. IV-A]
    """
    missing = [label for label in alphabet.labels if label not in groups]
    if missing:
        raise InvalidParameter("groups", missing, "name a group for every symbol")
    return query(
        alphabet, lambda label: groups[label], lambda a, b: 2.0 * (a != b), name="histogram"
    )


def _places(alphabet: Alphabet) -> Floats:
    if alphabet.coordinates is None:
        raise InvalidParameter(
            "alphabet.coordinates", None, "be given for a loss that measures distance"
        )
    return alphabet.coordinates


def _compared(measure: Measure, trues: Floats, released: Floats) -> Floats:
    """Losses of all pairs of places, added up axis by axis."""
    total = np.zeros((len(trues), len(released)))
    for axis in range(trues.shape[1]):
        difference = trues[:, axis, None] - released[None, :, axis]
        match measure:
            case Measure.HAMMING:
                total += difference != 0.0
            case Measure.ABSOLUTE:
                total += np.abs(difference)
            case Measure.SQUARED | Measure.EUCLIDEAN | Measure.GREAT_CIRCLE:
                total += difference * difference
            case _:
                assert_never(measure)
    match measure:
        case Measure.EUCLIDEAN:
            return np.sqrt(total)
        case Measure.GREAT_CIRCLE:
            # The straight way through the earth, bent along its surface.
            return 2 * EARTH * portable.arc_sine(np.minimum(np.sqrt(total) / (2 * EARTH), 1.0))
        case _:
            return total
