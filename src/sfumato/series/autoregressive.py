r"""Real-valued series that depend linearly on their own past.

$$Z_t - \mu = \sum_{k=1}^{p} \phi_k (Z_{t-k} - \mu) + U_t, \qquad U_t \sim N(0, \sigma_u^2)$$

where $\mu$ is `mean`, $\phi$ is `coefficients` and $\sigma_u^2$ is `innovation`. A linear estimate
needs the mean and the autocovariances alone, so a series of counts is as good as the normal one
with the same two moments.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter

_RELATIVE = 1e-9


@dataclass(frozen=True, slots=True)
class Autoregressive:
    """A stationary normal series of order p; see the module for its form.

    Attributes:
        mean: Mean of every value.
        coefficients: Weight of each earlier value, the latest first.
        innovation: Variance of what each value adds to the past.

    Examples:
        >>> series = Autoregressive(20.0, [0.5, 0.3], 2.0)
        >>> series.order, series.leading
        (2, array([4.487, 3.205, 2.949]))

    References:
        [RTR, Def. 2.1]
    """

    mean: float
    coefficients: tuple[float, ...]
    innovation: float

    def __init__(self, mean: float, coefficients: ArrayLike, innovation: float) -> None:
        weights = checks.numbers("coefficients", coefficients)
        if weights.ndim != 1 or weights.size == 0:
            raise InvalidParameter("coefficients", weights.shape, "be a vector of at least one")
        object.__setattr__(self, "mean", float(checks.numbers("mean", mean)))
        object.__setattr__(self, "coefficients", tuple(weights.tolist()))
        object.__setattr__(self, "innovation", checks.positive("innovation", innovation))
        if not self._stationary:
            rule = "be those of a stationary series: all roots inside the unit circle"
            raise InvalidParameter("coefficients", self.coefficients, rule)

    @classmethod
    def fit(cls, series: ArrayLike, order: int | None = None, *, most: int = 8) -> Self:
        """Fit by the Yule-Walker equations of the biased autocovariances: always stationary.

        Args:
            series: A history of numbers, in order of time.
            order: Number of coefficients; the one with the least BIC if not given.
            most: Largest order to try.

        Examples:
            >>> Autoregressive.fit([3.0, 4.0, 4.5, 4.0, 3.0, 2.5, 3.0, 4.0]).order
            2
        """
        centre, spread, scaled = _standardised(series)
        tried: Sequence[int] = range(1, min(checks.count("most", most), scaled.size - 2) + 1)
        if order is not None:
            tried = [checks.count("order", order)]
            if order > scaled.size - 2:
                raise InvalidParameter("order", order, f"be at most {scaled.size - 2} for so few")
        moments = _sample_autocovariances(scaled, tried[-1])
        price = portable.log(scaled.size)
        solved = [_yule_walker(moments[: tries + 1]) for tries in tried]
        scores = [scaled.size * portable.log(left) + len(phi) * price for phi, left in solved]
        weights, left = solved[int(np.argmin(scores))]
        return cls(centre, weights, left * spread**2)

    @property
    def order(self) -> int:
        """How many past values the next one depends on."""
        return len(self.coefficients)

    @property
    def _stationary(self) -> bool:
        """Whether all roots lie inside the unit circle and the variance is finite."""
        weights = np.array(self.coefficients)
        # Levinson's recursion backwards: a shorter series each time, of the same roots' place.
        while weights.size:
            last, weights = float(weights[-1]), weights[:-1]
            if not abs(last) < 1:
                return False
            weights = (weights + last * weights[::-1]) / (1 - last * last)
        # What the past explains only adds to the innovation; else rounding has eaten the root.
        return self.innovation * (1 - _RELATIVE) <= float(self.leading[0]) < math.inf

    @property
    def leading(self) -> Floats:
        """Autocovariances at lags 0 to p, by the Yule-Walker system; infinite if it has none."""
        size = self.order + 1
        system, right = np.eye(size), np.zeros(size)
        right[0] = self.innovation
        for lag in range(size):
            for back, weight in enumerate(self.coefficients, start=1):
                system[lag, abs(lag - back)] -= weight
        found = portable.solved(system, right)
        return found if np.isfinite(found).all() else np.full(size, math.inf)

    @property
    def transition(self) -> Floats:
        """Companion matrix of the last p deviations, the latest first."""
        matrix = np.eye(self.order, k=-1)
        matrix[0] = self.coefficients
        return matrix


def _standardised(series: ArrayLike) -> tuple[float, float, Floats]:
    """Mean, standard deviation and what is left of a series; its values are not quoted."""
    history = checks.numbers("series", series)
    if history.ndim != 1 or history.size < 3 or np.all(history == history[0]):
        rule = "be a vector of at least three numbers, not all equal"
        raise InvalidParameter("series", f"one of shape {history.shape}", rule)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        centre, spread = float(history.mean()), float(history.std())
        least = math.sqrt(np.finfo(np.float64).tiny)
    if not least < spread < 1 / least:
        raise InvalidParameter("series", "a range", "have a variance that floats can hold")
    return centre, spread, (history - centre) / spread


def _sample_autocovariances(scaled: Floats, furthest: int) -> Floats:
    """Biased autocovariances, which are those of some stationary series."""
    size = scaled.size
    sums = [portable.dot(scaled[lag:], scaled[: size - lag]) for lag in range(furthest + 1)]
    return np.array(sums) / size


def _yule_walker(moments: Floats) -> tuple[Floats, float]:
    """Coefficients and innovation from autocovariances at lags 0 to p."""
    weights = portable.solved(linalg.toeplitz(moments[:-1]), moments[1:])
    return weights, float(moments[0] - portable.dot(weights, moments[1:]))
