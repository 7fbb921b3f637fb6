r"""What it costs to release one batch of values when another is true.

The papers write $D(Q(o), Q(r))$ for a query $Q$ of a whole batch. Most losses add up over the
positions of the batch (`additive`); a histogram compares how often each value occurs; any other
query or any function of two batches will do as long as the batches can be listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks
from sfumato.core.alphabet import Alphabet, Label
from sfumato.core.arrays import Ints
from sfumato.core.digest import digest
from sfumato.core.errors import InvalidParameter
from sfumato.core.loss import Loss, Measure, as_loss

_COMPARED = 600
"""Batches up to which a Python function is called for every pair of them."""


class Form(Enum):
    """What a loss looks at; decides how batches may be put together without listing them."""

    ADDITIVE = "additive"
    HISTOGRAM = "histogram"
    ANY = "any"


@dataclass(frozen=True, slots=True, eq=False)
class BatchLoss:
    """A loss between batches of one length.

    Attributes:
        name: What messages and reports call it.
        form: What it looks at.
        symbols: How many symbols the values can take.
        each: The loss of one position, where losses add up.
        groups: The bar of each symbol, where histograms are compared.

    Examples:
        >>> from sfumato.core.loss import absolute
        >>> summed = additive(absolute(Alphabet.of_size(3)))
        >>> summed.between(np.array([[0, 0], [2, 1]])).matrix
        array([[0., 3.],
               [3., 0.]])
    """

    name: str
    form: Form
    symbols: int
    each: Loss | None
    groups: Ints | None
    _between: Callable[[Ints], Loss]

    def between(self, patterns: Ints) -> Loss:
        """The loss between given batches, one row of symbol places each."""
        return self._between(patterns)

    def fingerprint(self, batches: Callable[[], Iterable[Ints]]) -> str:
        """Identifies the loss; one of any form by what it says about the batches in question.

        Args:
            batches: The batches of each length; only asked for where they are needed.
        """
        if self.each is not None:
            return digest("additive batch loss", self.each.fingerprint)
        if self.groups is not None:
            return digest("histogram batch loss", self.groups)
        return digest("batch loss", *(self.between(some).fingerprint for some in batches()))


def listed(symbols: int, width: int) -> Ints:
    """Every batch of `width` values, one row each, the first value most significant.

    Examples:
        >>> listed(2, 2).tolist()
        [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    codes = np.arange(symbols**width)
    table = np.empty((codes.size, width), dtype=np.int64)
    for position in reversed(range(width)):
        codes, table[:, position] = np.divmod(codes, symbols)
    return table


def as_batch_loss(loss: BatchLoss | Loss | ArrayLike, symbols: int) -> BatchLoss:
    """A loss of single values adds up over the positions of a batch."""
    if isinstance(loss, BatchLoss):
        if loss.symbols != symbols:
            raise InvalidParameter("loss", loss.symbols, f"be for {symbols} symbols")
        return loss
    return additive(as_loss(loss, symbols))


def additive(each: Loss) -> BatchLoss:
    """The sum over the positions of a batch of a loss of single values."""

    def between(patterns: Ints) -> Loss:
        # A sum of straight distances is not the straight distance of joined places.
        bent = each.measure in (Measure.EUCLIDEAN, Measure.GREAT_CIRCLE)
        summed = not bent or patterns.shape[1] == 1
        if each.measure is not None and each.places is not None and summed:
            return Loss.between(each.measure, each.places[patterns].reshape(len(patterns), -1))
        total = np.zeros((len(patterns), len(patterns)))
        for position in patterns.T:
            values, where = np.unique(position, return_inverse=True)
            total += each.rows(values)[:, values][np.ix_(where, where)]
        return Loss(each.name, total)

    return BatchLoss(each.name, Form.ADDITIVE, len(each), each, None, between)


def histogram(alphabet: Alphabet, groups: Mapping[Label, str] | None = None) -> BatchLoss:
    """How far the histograms of two batches are apart, summed over the bars.

    Args:
        alphabet: The symbols.
        groups: The bar that each symbol is counted in; each its own if not given.

    Examples:
        >>> counts = histogram(Alphabet.of_size(2))
        >>> counts.between(np.array([[0, 1], [1, 0], [1, 1]])).matrix
        array([[0., 0., 2.],
               [0., 0., 2.],
               [2., 2., 0.]])
    """
    bars = np.arange(len(alphabet))
    if groups is not None:
        missing = sum(label not in groups for label in alphabet.labels)
        if missing:
            raise InvalidParameter("groups", f"{missing} missing", "name a bar for every symbol")
        names = [groups[label] for label in alphabet.labels]
        bars = np.unique(names, return_inverse=True)[1].astype(np.int64)

    def between(patterns: Ints) -> Loss:
        counts = np.stack([(bars[patterns] == bar).sum(axis=1) for bar in range(bars.max() + 1)])
        return Loss.between(Measure.ABSOLUTE, counts.T)

    return BatchLoss("histogram", Form.HISTOGRAM, len(alphabet), None, bars, between)


def query(
    alphabet: Alphabet,
    answer: Callable[[tuple[Label, ...]], float | Sequence[float]],
    measure: Measure = Measure.ABSOLUTE,
    name: str = "query",
) -> BatchLoss:
    """How far the answers of two batches to a query are apart.

    Args:
        alphabet: The symbols.
        answer: From a batch to a number, or to several.
        measure: How two answers are compared.
        name: What reports call it.

    Examples:
        >>> peak = query(Alphabet([1, 5]), max)
        >>> peak.between(np.array([[0, 0], [0, 1]])).matrix[0]
        array([0., 4.])

    References:
        [SIP, Eq. 17]
    """

    def between(patterns: Ints) -> Loss:
        answers = [np.atleast_1d(answer(batch)) for batch in _labelled(alphabet, patterns)]
        return Loss.between(measure, np.array(answers, dtype=np.float64))

    return BatchLoss(name, Form.ANY, len(alphabet), None, None, between)


def compared(
    alphabet: Alphabet,
    distance: Callable[[tuple[Label, ...], tuple[Label, ...]], float],
    name: str = "compared",
) -> BatchLoss:
    """Any function of a true and a released batch.

    Examples:
        >>> late = compared(Alphabet.of_size(2), lambda true, told: float(true[-1] != told[-1]))
        >>> late.between(np.array([[0, 0], [1, 0], [0, 1]])).matrix[0]
        array([0., 0., 1.])
    """

    def between(patterns: Ints) -> Loss:
        if len(patterns) > _COMPARED:
            rule = f"be used with at most {_COMPARED} batches; a query works with more"
            raise InvalidParameter("loss", f"{len(patterns)} batches", rule)
        batches = _labelled(alphabet, patterns)
        return Loss(name, np.array([[distance(o, r) for r in batches] for o in batches]))

    return BatchLoss(name, Form.ANY, len(alphabet), None, None, between)


def _labelled(alphabet: Alphabet, patterns: Ints) -> list[tuple[Label, ...]]:
    checks.count("patterns", len(patterns))
    return [tuple(alphabet.labels[place] for place in row) for row in patterns.tolist()]
