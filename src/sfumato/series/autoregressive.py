r"""Real-valued series that depend linearly on their own past.

$$Z_t - \mu = \sum_{k=1}^{p} \phi_k (Z_{t-k} - \mu) + U_t, \qquad U_t \sim N(0, \sigma_u^2)$$

where $\mu$ is `mean`, $\phi$ is `coefficients` and $\sigma_u^2$ is `innovation`. A linear estimate
needs the mean and the autocovariances alone, so a series of counts is as good as the normal one
with the same two moments.

Normal numbers are the normal quantile of a 52-bit coin: exact enough to simulate a series, and
never to be used as noise that protects one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, special

from sfumato.core import checks
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.randomness import Randomness

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
        >>> series.order, series.variance
        (2, 4.487)
        >>> series.autocovariances([0, 1, 2])
        array([4.487, 3.205, 2.949])

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
        object.__setattr__(self, "mean", _real("mean", mean))
        object.__setattr__(self, "coefficients", tuple(weights.tolist()))
        object.__setattr__(self, "innovation", checks.positive("innovation", innovation))
        if not self.stationary:
            rule = "be those of a stationary series: all roots inside the unit circle"
            raise InvalidParameter("coefficients", self.coefficients, rule)

    @classmethod
    def first_order(cls, mean: float, correlation: float, variance: float) -> Self:
        """The series of order 1 with a stationary variance.

        Args:
            mean: Mean of every value.
            correlation: Of neighbouring values; strictly between -1 and 1.
            variance: Of every value.

        Examples:
            >>> Autoregressive.first_order(0.0, 0.9, 1.0).innovation
            0.19

        References:
            [RTR, Def. 2.1]
        """
        rho = _correlation(correlation)
        return cls(mean, [rho], checks.positive("variance", variance) * (1 - rho) * (1 + rho))

    @classmethod
    def fit(cls, series: ArrayLike, order: int | None = None, *, most: int = 8) -> Self:
        """Fit by the Yule-Walker equations of the biased autocovariances: always stationary.

        Args:
            series: A history of numbers, in order of time.
            order: Number of coefficients; the one with the least BIC if not given.
            most: Largest order to try.

        Examples:
            >>> from sfumato.core.randomness import seeded
            >>> history = Autoregressive(20.0, [0.5, 0.3], 2.0).sample(5000, seeded(1))
            >>> Autoregressive.fit(history).order
            2
        """
        centre, spread, scaled = _standardised(series)
        tried: Sequence[int] = range(1, min(checks.count("most", most), scaled.size - 2) + 1)
        if order is not None:
            tried = [checks.count("order", order)]
            if order > scaled.size - 2:
                raise InvalidParameter("order", order, f"be at most {scaled.size - 2} for so few")
        moments = _sample_autocovariances(scaled, tried[-1])
        price = math.log(scaled.size)
        solved = [_yule_walker(moments[: tries + 1]) for tries in tried]
        scores = [scaled.size * math.log(left) + len(phi) * price for phi, left in solved]
        weights, left = solved[int(np.argmin(scores))]
        return cls(centre, weights, left * spread**2)

    @property
    def order(self) -> int:
        """How many past values the next one depends on."""
        return len(self.coefficients)

    @property
    def modulus(self) -> float:
        """Largest modulus of the roots of `z**p - phi_1 z**(p-1) - ... - phi_p`."""
        return float(np.abs(np.linalg.eigvals(self.companion()[0])).max())

    @property
    def stationary(self) -> bool:
        """Whether the modulus is below 1 and the variance finite: every model that exists."""
        if not self.modulus < 1:
            return False
        # What the past explains only adds to the innovation; else rounding has eaten the root.
        return self.innovation * (1 - _RELATIVE) <= self.variance < math.inf

    @property
    def variance(self) -> float:
        """Variance of every value: the Yule-Walker system, solved for the autocovariances."""
        return float(self._leading()[0])

    def autocovariances(self, lags: ArrayLike) -> Floats:
        """Covariances of values some steps apart.

        Args:
            lags: Whole numbers in any shape; their sign does not matter.
        """
        places = np.abs(_whole(lags))
        leading = self._leading().tolist()
        furthest = int(places.max(initial=0))
        known = _continued(leading, self.coefficients, [0.0] * (furthest - self.order))
        return np.asarray(np.array(known)[places])

    def companion(self) -> tuple[Floats, Floats]:
        """Transition matrix and noise covariance of the last p deviations, the latest first.

        Examples:
            >>> transition, noise = Autoregressive(20.0, [0.5, 0.3], 2.0).companion()
            >>> transition
            array([[0.5, 0.3],
                   [1. , 0. ]])
        """
        transition, noise = np.eye(self.order, k=-1), np.zeros((self.order, self.order))
        transition[0], noise[0, 0] = self.coefficients, self.innovation
        return transition, noise

    def sample(self, length: int, randomness: Randomness) -> Floats:
        """Draw a series, for simulations only; the first values are stationary as well."""
        checks.count("length", length)
        drawn = _normals(randomness.words(max(length, self.order)))
        near = np.arange(self.order)
        sizes, axes = np.linalg.eigh(self.autocovariances(near[:, None] - near))
        start = (axes * np.sqrt(np.maximum(sizes, 0.0))) @ drawn[: self.order]
        inputs = math.sqrt(self.innovation) * drawn[self.order :]
        path = _continued(start.tolist(), self.coefficients, inputs.tolist())
        return self.mean + np.array(path[:length])

    def _leading(self) -> Floats:
        """Autocovariances at lags 0 to p."""
        size = self.order + 1
        system, right = np.eye(size), np.zeros(size)
        right[0] = self.innovation
        for lag in range(size):
            for back, weight in enumerate(self.coefficients, start=1):
                system[lag, abs(lag - back)] -= weight
        try:
            return np.asarray(np.linalg.solve(system, right))
        except np.linalg.LinAlgError:
            return np.full(size, math.inf)


def _continued(
    start: Sequence[float], coefficients: Sequence[float], inputs: Iterable[float]
) -> list[float]:
    """Start values, and after them the recursion with the inputs."""
    path = list(start)
    for given in inputs:
        near = reversed(path[-len(coefficients) :])
        path.append(given + sum(map(mul, coefficients, near)))
    return path


def _uniforms(words: NDArray[np.uint64]) -> Floats:
    """Centres of 2**52 equal cells of the unit interval: neither 0 nor 1."""
    return np.asarray(np.ldexp((words >> np.uint64(12)).astype(np.float64) + 0.5, -52))


def _normals(words: NDArray[np.uint64]) -> Floats:
    return np.asarray(special.ndtri(_uniforms(words)))


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
    sums = [scaled[lag:] @ scaled[: size - lag] for lag in range(furthest + 1)]
    return np.array(sums) / size


def _yule_walker(moments: Floats) -> tuple[Floats, float]:
    """Coefficients and innovation from autocovariances at lags 0 to p."""
    weights = np.asarray(linalg.solve_toeplitz(moments[:-1], moments[1:]))
    return weights, float(moments[0] - weights @ moments[1:])


def _whole(lags: ArrayLike) -> Ints:
    places = np.asarray(lags)
    if places.size and not np.issubdtype(places.dtype, np.integer):
        raise InvalidParameter("lags", places.dtype.name, "be whole numbers")
    return places.astype(np.int64)


def _correlation(value: float) -> float:
    if not -1 < value < 1:
        raise InvalidParameter("correlation", value, "lie strictly between -1 and 1")
    return float(value)


def _real(name: str, value: float) -> float:
    if not math.isfinite(value):
        raise InvalidParameter(name, value, "be finite")
    return float(value)
