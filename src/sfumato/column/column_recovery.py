r"""What a released column says about all its rows together: free of privacy cost.

Shares of symbols, the mean and spread of their numbers, and the slope on a column that is public. A
report is weighted so that its mean is the truth, whatever that is: $g$ with
$\sum_y a(y \mid x)\, g_z(y) = [x = z]$. For a function $h$ of the symbols, $\hat h = \sum_z h(z)
g_z(y)$ then estimates $h(x)$ without bias, and $\hat h^2 - \sum_z h(z)^2 g_z(y)$ its variance.

A channel that tells few outputs, as the optimal one does, has no such weights. Then the prior
stands in: expectations given each output, right on average if the prior is. A slope cannot be had
that way: a prior that does not know the other column would flatten it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter
from sfumato.core.unbiased import unbiased_weights
from sfumato.noise.frequency import Reporting

MODEL_FREE = "nothing about the values: the mechanism alone"
BY_PRIOR = "values follow the prior"


@dataclass(frozen=True, slots=True)
class Inferred:
    """A number with its standard error."""

    value: float
    error: float

    def interval(self, deviations: float = 1.96) -> tuple[float, float]:
        """So many standard errors to either side."""
        reach = deviations * self.error
        return self.value - reach, self.value + reach


@dataclass(frozen=True, slots=True, eq=False)
class ColumnRecovery:
    """What is known of the rows of a released column.

    Attributes:
        weights: For each row, an estimate of which symbol it had.
        assumes: What must hold for it to be right on average.
    """

    weights: Floats
    assumes: str

    def shares(self) -> list[Inferred]:
        """The part of the rows that has each symbol."""
        return [self._mean(one) for one in np.eye(self.weights.shape[1])]

    def mean(self, numbers: ArrayLike) -> Inferred:
        """Mean of the symbols' numbers over the rows."""
        return self._mean(self._numbers(numbers))

    def spread(self, numbers: ArrayLike) -> Inferred:
        """Variance of the symbols' numbers over the rows."""
        points = self._numbers(numbers)
        mean, square = self._mean(points), self._mean(points * points)
        # The square of an estimate is too large by its variance, or by the prior too small.
        off = mean.error**2 if self.assumes == MODEL_FREE else -(mean.error**2)
        error = self._mean(points * points - 2 * mean.value * points).error
        return Inferred(square.value - mean.value**2 + off, error)

    def slope(self, numbers: ArrayLike, beside: ArrayLike) -> Inferred:
        """Slope of the symbols' numbers on a public column, by least squares over the rows.

        Args:
            numbers: One for each symbol.
            beside: The public column, one number for each row.
        """
        if self.assumes != MODEL_FREE:
            rule = "come from a mechanism whose outputs tell every symbol apart"
            raise InvalidParameter("slope", "one by the prior", rule)
        points = self._numbers(numbers)
        other = np.asarray(beside, dtype=np.float64)
        if other.shape != (len(self.weights),) or not np.isfinite(other).all():
            rule = f"be {len(self.weights)} finite numbers"
            raise InvalidParameter("beside", other.shape, rule)
        apart = other - other.mean()
        squares = float(apart @ apart)
        if squares <= 0:
            raise InvalidParameter("beside", "one number", "differ from row to row")
        value = float(apart @ (self.weights @ points)) / squares
        variance = float((apart * apart) @ self._variances(points))
        return Inferred(value, math.sqrt(max(variance, 0.0)) / squares)

    def _mean(self, function: Floats) -> Inferred:
        rows = len(self.weights)
        variance = max(float(self._variances(function).sum()), 0.0)
        return Inferred(float((self.weights @ function).mean()), math.sqrt(variance) / rows)

    def _variances(self, function: Floats) -> Floats:
        """Of the estimate of a function, row by row: without bias, so some may be negative."""
        found = self.weights @ function
        squares = self.weights @ (function * function)
        return found * found - squares if self.assumes == MODEL_FREE else squares - found * found

    def _numbers(self, numbers: ArrayLike) -> Floats:
        points = np.asarray(numbers, dtype=np.float64)
        if points.shape != (self.weights.shape[1],) or not np.isfinite(points).all():
            rule = f"be {self.weights.shape[1]} finite numbers, one for each symbol"
            raise InvalidParameter("numbers", points.shape, rule)
        return points


def recover_column(
    released: ArrayLike, mechanism: Channel | Reporting, prior: ArrayLike | None = None
) -> ColumnRecovery:
    """What released values say about all rows together.

    Args:
        released: Places of the symbols that left; for a `Reporting`, which symbols each report has.
        mechanism: The channel that they went through: that of `optimal`, say, or
            `UnaryEncoding.at(size, epsilon)`.
        prior: Stands in where the outputs of a channel do not tell every symbol apart.

    Raises:
        InvalidParameter: If the mechanism could not have released this, or a prior is needed.

    Examples:
        >>> from sfumato.core.randomness import seeded
        >>> noisy = Channel.from_probabilities([[0.8, 0.2], [0.2, 0.8]])
        >>> left = noisy.draw(np.repeat([0, 1], [700, 300]), seeded(3).words(1000))
        >>> first, _ = recover_column(left, noisy).shares()
        >>> bool(abs(first.value - 0.7) < 2 * first.error)
        True
    """
    if isinstance(mechanism, Reporting):
        reports = np.asarray(released)
        if reports.ndim != 2 or reports.shape[1] != mechanism.size or not len(reports):
            rule = f"be rows of {mechanism.size} truth values"
            raise InvalidParameter("released", reports.shape, rule)
        shown, false = mechanism.shown
        return ColumnRecovery((reports.astype(np.float64) - false) / (shown - false), MODEL_FREE)
    places = np.asarray(released)
    if places.ndim != 1 or not places.size or not np.isin(places, mechanism.outputs).all():
        raise InvalidParameter("released", "others", "be outputs of the channel, at least one")
    order = np.argsort(mechanism.outputs)
    columns = order[np.searchsorted(mechanism.outputs[order], places)]
    rows, size = mechanism.probabilities, mechanism.size
    known = None if prior is None else checks.belief("prior", prior, size)
    marginal = (np.full(size, 1 / size) if known is None else known) @ rows
    weights = unbiased_weights(rows, marginal, np.eye(size))
    if weights is not None:
        return ColumnRecovery(weights[columns], MODEL_FREE)
    if known is None:
        rule = "be given: the outputs of this channel do not tell every symbol apart"
        raise InvalidParameter("prior", None, rule)
    posterior = (known[:, None] * rows / marginal).T
    return ColumnRecovery(posterior[columns], BY_PRIOR)
