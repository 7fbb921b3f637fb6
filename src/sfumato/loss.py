"""What it costs to release one symbol when another is true.

A loss is a matrix: rows are true symbols, columns are released ones. The papers write it
$D(Q(x), Q(y))$ for a query $Q$ that the receiver will ask and a distance $D$ of its answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _checks
from sfumato.alphabet import Alphabet, Label
from sfumato.errors import InvalidParameter

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, eq=False)
class Loss:
    """A named loss on an alphabet.

    Examples:
        >>> hamming(Alphabet("ab")).matrix
        array([[0., 1.],
               [1., 0.]])
    """

    name: str
    matrix: NDArray[np.float64]

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", _checks.loss_matrix("loss", self.matrix))

    def __len__(self) -> int:
        return len(self.matrix)


def as_matrix(loss: Loss | ArrayLike, size: int | None = None) -> NDArray[np.float64]:
    """Return the matrix of a loss, checked against the size of the alphabet."""
    if isinstance(loss, Loss) and size in (None, len(loss)):
        return loss.matrix  # checked when it was made
    given = loss.matrix if isinstance(loss, Loss) else loss
    return _checks.loss_matrix("loss", given, size)


def hamming(alphabet: Alphabet) -> Loss:
    """1 for every wrong symbol."""
    return Loss("hamming", 1.0 - np.eye(len(alphabet)))


def absolute(alphabet: Alphabet) -> Loss:
    """Distance on a line, or summed over the axes of a space.

    Examples:
        >>> absolute(Alphabet([1, 2, 4])).matrix[0]
        array([0., 1., 3.])
    """
    return Loss("absolute", np.abs(_differences(alphabet)).sum(axis=2))


def squared(alphabet: Alphabet) -> Loss:
    """Squared Euclidean distance."""
    return Loss("squared", (_differences(alphabet) ** 2).sum(axis=2))


def euclidean(alphabet: Alphabet) -> Loss:
    """Euclidean distance.

    Examples:
        >>> euclidean(Alphabet.grid(2, 2)).matrix[0]
        array([0.  , 1.  , 1.  , 1.414])
    """
    return Loss("euclidean", np.sqrt((_differences(alphabet) ** 2).sum(axis=2)))


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
    return Loss(name, np.array([[distance(true, told) for told in answers] for true in answers]))


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


def _differences(alphabet: Alphabet) -> NDArray[np.float64]:
    if alphabet.coordinates is None:
        raise InvalidParameter(
            "alphabet.coordinates", None, "be given for a loss that measures distance"
        )
    places = alphabet.coordinates
    return np.asarray(places[:, None, :] - places[None, :, :])
