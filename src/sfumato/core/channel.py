r"""A channel: for each true symbol, the integer weights of the released ones.

The weights of a row sum to $2^{62}$. They are what the sampler uses and what every certificate
is computed from; a float probability never stands between the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats, Ints
from sfumato.core.digest import digest
from sfumato.core.errors import InvalidParameter, UnknownSymbol
from sfumato.core.loss import Loss, as_loss
from sfumato.core.randomness import BITS, categorical, integer_weights


@dataclass(frozen=True, slots=True, eq=False)
class Channel:
    """A randomised map on a finite alphabet.

    Attributes:
        weights: One row per true symbol, one column per output that can occur; int64,
            each row summing to `2**62`.
        outputs: The symbol that each column releases.
        is_constant: Whether all rows are the same, so that an output says nothing about the truth.

    Examples:
        >>> noisy = Channel.from_probabilities([[0.75, 0.25], [0.25, 0.75]])
        >>> noisy.probabilities
        array([[0.75, 0.25],
               [0.25, 0.75]])
        >>> noisy.posterior([0.9, 0.1], output=1)
        array([0.75, 0.25])
    """

    weights: Ints
    outputs: Ints
    is_constant: bool = field(init=False)
    _cumulative: Ints = field(init=False, repr=False)

    def __init__(self, weights: ArrayLike, outputs: ArrayLike | None = None) -> None:
        table = _exact_weights(weights)
        symbols = checked_outputs(outputs, table.shape[1])
        if (unused := ~table.any(axis=0)).any():
            table, symbols = table[:, ~unused], symbols[~unused]
        for name, array in (
            ("weights", table),
            ("outputs", symbols.astype(np.int64)),
            ("_cumulative", table.cumsum(axis=1)),
        ):
            copy = np.array(array, order="C")
            copy.setflags(write=False)
            object.__setattr__(self, name, copy)
        object.__setattr__(self, "is_constant", bool((self.weights == self.weights[0]).all()))

    @classmethod
    def trusted(cls, weights: Ints, outputs: Ints, *, is_constant: bool) -> Self:
        """Take over arrays that compiled code has just made, without checking or copying them.

        The caller vouches for what the constructor checks: fresh C-ordered int64 arrays, rows that
        sum to `2**62`, no empty column, outputs named once.
        """
        channel = object.__new__(cls)
        cumulative = weights.cumsum(axis=1)
        for array in (weights, outputs, cumulative):
            array.setflags(write=False)
        object.__setattr__(channel, "weights", weights)
        object.__setattr__(channel, "outputs", outputs)
        object.__setattr__(channel, "_cumulative", cumulative)
        object.__setattr__(channel, "is_constant", is_constant)
        return channel

    @classmethod
    def from_probabilities(cls, rows: ArrayLike, outputs: ArrayLike | None = None) -> Self:
        """The channel nearest to given float probabilities.

        Rounding may raise the leakage by a hair; `design.certified` makes a channel that keeps a
        budget.
        """
        checked = checks.row_stochastic("rows", rows)
        return cls(integer_weights(checked / checked.sum(axis=1, keepdims=True)), outputs)

    @classmethod
    def constant(cls, size: int, output: int) -> Self:
        """Release one fixed symbol whatever is true: it tells nothing and costs nothing."""
        if not 0 <= output < size:
            raise InvalidParameter("output", output, f"lie in range({size})")
        return cls(np.full((size, 1), 2**BITS, dtype=np.int64), [output])

    @property
    def size(self) -> int:
        """Number of true symbols."""
        return len(self.weights)

    @property
    def fingerprint(self) -> str:
        """Identifies the channel by what is sampled."""
        return digest("channel", self.weights, self.outputs)

    @property
    def probabilities(self) -> Floats:
        """The weights as floats: row = true symbol, column = place in `outputs`."""
        return np.ldexp(self.weights.astype(np.float64), -BITS)

    @property
    def extremes(self) -> tuple[Ints, Ints]:
        """The least and the largest weight of each output over all true symbols."""
        return self.weights.min(axis=0), self.weights.max(axis=0)

    def mean_weights(self, belief: Floats) -> Floats:
        """Mean weight of each output under a belief that need not sum to 1."""
        return np.asarray(portable.dot(belief, self.weights.astype(np.float64)) / belief.sum())

    def marginal(self, belief: ArrayLike) -> Floats:
        r"""Distribution of the outputs, $P(y) = \sum_x b(x)\,a(y \mid x)$."""
        prior = self._belief(belief)
        return np.asarray(np.ldexp(self.mean_weights(prior) * prior.sum(), -BITS))

    def ratios(self, belief: ArrayLike) -> Floats:
        """How much more likely each output is when each symbol is true."""
        marginal = self.marginal(belief)
        ones = np.ones(self.weights.shape)
        return np.divide(self.probabilities, marginal, where=marginal > 0, out=ones)

    def posterior(self, belief: ArrayLike, output: int) -> Floats:
        """Belief after seeing an output (a symbol, not a column)."""
        weighted = self._belief(belief) * self.likelihood(output)
        if weighted.sum() == 0.0:
            raise InvalidParameter("output", output, "be possible under the belief")
        return np.asarray(weighted / weighted.sum())

    def likelihood(self, output: int) -> Floats:
        """Probability of an output (a symbol, not a column) for each true symbol."""
        return np.ldexp(self.weights[:, self.column(output)].astype(np.float64), -BITS)

    def column(self, output: int) -> int:
        """The column that releases a symbol."""
        columns = np.flatnonzero(self.outputs == output)
        if columns.size == 0:
            raise InvalidParameter("output", output, "be one that the channel can release")
        return int(columns[0])

    def expected_loss(self, belief: ArrayLike, loss: Loss | ArrayLike) -> float:
        """Mean loss when the truth follows the belief."""
        if self.outputs.max() >= self.size:
            raise InvalidParameter("outputs", int(self.outputs.max()), f"lie in range({self.size})")
        return self.mean_loss(self._belief(belief), as_loss(loss, self.size))

    def mean_loss(self, prior: Floats, loss: Loss) -> float:
        """Mean loss when the truth follows a checked belief."""
        per_row = (self.probabilities * loss.columns(self.outputs)).sum(axis=1)
        return float(portable.dot(prior, per_row) / prior.sum())

    def merged(self, told: Sequence[int]) -> Self:
        """Rename outputs after the draw: column `j` releases `told[j]`; equal names add up.

        A function of the output alone can only lower the leakage.

        Examples:
            >>> fine = Channel.from_probabilities([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
            >>> fine.merged([0, 1, 1]).probabilities
            array([[0.5, 0.5],
                   [0.2, 0.8]])
        """
        symbols, places = self.renamed(told)
        table = np.zeros((self.size, symbols.size), dtype=np.int64)
        np.add.at(table.T, places, self.weights.T)
        return type(self)(table, symbols)

    def renamed(self, told: Sequence[int]) -> tuple[Ints, Ints]:
        """The different new names of the columns, and which of them each column gets."""
        names = np.asarray(told)
        if names.shape != self.outputs.shape or names.dtype.kind not in "iu":
            raise InvalidParameter("told", names.shape, f"name {len(self.outputs)} outputs")
        return np.unique(names, return_inverse=True)

    def draw(self, values: ArrayLike, words: NDArray[np.uint64]) -> Ints:
        """Release many symbols, one uniformly random 64-bit word each.

        Args:
            values: Places of the true symbols.
            words: Coins, from `sfumato.core.randomness`.

        Raises:
            UnknownSymbol: If a value is no symbol of the alphabet; it is not quoted.
        """
        rows = checked_places(values, words, self.size)
        return np.asarray(self.outputs[categorical(self._cumulative, rows, words)])

    def _belief(self, belief: ArrayLike) -> Floats:
        return checks.probabilities("belief", belief, self.size)


def _exact_weights(weights: ArrayLike) -> Ints:
    table = np.asarray(weights)
    if table.ndim != 2 or 0 in table.shape or table.dtype.kind not in "iu":
        raise InvalidParameter("weights", (table.shape, table.dtype), "be a matrix of integers")
    if table.min() < 0 or table.max() > 2**BITS:
        raise InvalidParameter("weights", (int(table.min()), int(table.max())), "lie in [0, 2**62]")
    exact = table.astype(np.int64)
    # The float sum rules out a row that wraps around to the right integer.
    about = exact.astype(np.float64).sum(axis=1)
    if np.any(exact.sum(axis=1) != 2**BITS) or np.any(about > 2.0 ** (BITS + 1)):
        raise InvalidParameter("weights", "another sum", "sum to 2**62 in every row")
    return exact


def checked_outputs(outputs: ArrayLike | None, columns: int) -> Ints:
    """The symbols that columns release: each a place, none twice; 0, 1, ... if not given."""
    symbols = np.arange(columns) if outputs is None else np.asarray(outputs)
    if symbols.shape != (columns,) or symbols.dtype.kind not in "iu":
        raise InvalidParameter("outputs", symbols.shape, "be one whole number per column")
    if len(np.unique(symbols)) != len(symbols):
        raise InvalidParameter("outputs", symbols.shape, "name each column once")
    if symbols.min() < 0:
        raise InvalidParameter("outputs", int(symbols.min()), "be places of symbols, at least 0")
    return symbols


def checked_places(values: ArrayLike, words: NDArray[np.uint64], size: int) -> Ints:
    """Places of true symbols, one word of coins each; a wrong one is not quoted."""
    # One place, as in a live stream, is compared in a tenth of the time that arrays take.
    if type(values) is int and 0 <= values < size and words.shape == (1,):
        return np.array([values])
    rows = np.atleast_1d(np.asarray(values))
    if (rows.size and rows.dtype.kind not in "iu") or not np.all((rows >= 0) & (rows < size)):
        raise UnknownSymbol(size, "values")
    if words.shape != rows.shape:
        raise InvalidParameter("words", words.shape, f"be one per value, {rows.shape}")
    return rows.astype(np.int64)
