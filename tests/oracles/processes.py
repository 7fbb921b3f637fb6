"""Processes and linear estimates of the paper, beside the ones that a release needs."""

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
from sfumato.core.errors import InvalidParameter, SolverFailed
from sfumato.core.randomness import Randomness
from sfumato.series.autoregressive import _RELATIVE, Autoregressive

_POLISHES = 3


class Process(Autoregressive):
    """A series that can be drawn, and all of its autocovariances."""

    __slots__ = ()

    @classmethod
    def first_order(cls, mean: float, correlation: float, variance: float) -> Self:
        """The series of order 1 with a stationary variance."""
        rho = _correlation(correlation)
        return cls(mean, [rho], checks.positive("variance", variance) * (1 - rho) * (1 + rho))

    @property
    def variance(self) -> float:
        """Variance of every value."""
        return float(self.leading[0])

    def autocovariances(self, lags: ArrayLike) -> Floats:
        """Covariances of values some steps apart, by the recursion of the series."""
        places = np.abs(_whole(lags))
        beyond = [0.0] * (int(places.max(initial=0)) - self.order)
        return np.array(_continued(self.leading.tolist(), self.coefficients, beyond))[places]

    def sample(self, length: int, randomness: Randomness) -> Floats:
        """Draw a series; the first values are stationary as well."""
        drawn = _normals(randomness.words(max(length, self.order)))
        sizes, axes = np.linalg.eigh(linalg.toeplitz(self.leading[:-1]))
        start = (axes * np.sqrt(np.maximum(sizes, 0.0))) @ drawn[: self.order]
        inputs = math.sqrt(self.innovation) * drawn[self.order :]
        path = _continued(start.tolist(), self.coefficients, inputs.tolist())
        return self.mean + np.array(path[:length])


def _continued(
    start: Sequence[float], coefficients: Sequence[float], inputs: Iterable[float]
) -> list[float]:
    """Start values, and after them the recursion with the inputs."""
    path = list(start)
    for given in inputs:
        path.append(given + sum(map(mul, coefficients, reversed(path[-len(coefficients) :]))))
    return path


def _uniforms(words: NDArray[np.uint64]) -> Floats:
    """Centres of 2**52 equal cells of the unit interval: neither 0 nor 1."""
    return np.asarray(np.ldexp((words >> np.uint64(12)).astype(np.float64) + 0.5, -52))


def _normals(words: NDArray[np.uint64]) -> Floats:
    return np.asarray(special.ndtri(_uniforms(words)))


def _whole(lags: ArrayLike) -> Ints:
    places = np.asarray(lags)
    if places.size and not np.issubdtype(places.dtype, np.integer):
        raise InvalidParameter("lags", places.dtype.name, "be whole numbers")
    return places.astype(np.int64)


def _correlation(value: float) -> float:
    if not -1 < value < 1:
        raise InvalidParameter("correlation", value, "lie strictly between -1 and 1")
    return float(value)


@dataclass(frozen=True, slots=True)
class Drifting:
    r"""A series that is pushed harder at every step, and so is not stationary.

    $$Z_t = \rho Z_{t-1} + U_t + \eta t, \qquad Z_0 = 0$$

    where $\rho$ is `correlation`, `innovation` the variance of $U_t$ and $\eta$ is `drift`. The
    mean approaches a line of slope $\eta / (1 - \rho)$, the variance that of the series of order 1.

    Examples:
        >>> pushed = Drifting(0.8, 10.0, 0.05)
        >>> pushed.mean_path(3), pushed.variance_path(3)
        (array([0.05 , 0.14 , 0.262]), array([10.   , 16.4  , 20.496]))

    References:
        [RTR, Eq. 4]
    """

    correlation: float
    innovation: float
    drift: float

    def __post_init__(self) -> None:
        _correlation(self.correlation)
        checks.positive("innovation", self.innovation)
        checks.numbers("drift", self.drift)

    def mean_path(self, length: int) -> Floats:
        """Means at times 1 to `length`."""
        return self._path(self.correlation, self.drift * self._times(length))

    def variance_path(self, length: int) -> Floats:
        """Variances at times 1 to `length`."""
        inputs = np.full(self._times(length).size, float(self.innovation))
        return self._path(self.correlation**2, inputs)

    def sample(self, length: int, randomness: Randomness) -> Floats:
        """Draw times 1 to `length`, for simulations only."""
        pushes = self.drift * self._times(length)
        noise = math.sqrt(self.innovation) * _normals(randomness.words(length))
        return self._path(self.correlation, pushes + noise)

    @staticmethod
    def _times(length: int) -> Floats:
        return np.arange(1.0, checks.count("length", length) + 1.0)

    @staticmethod
    def _path(factor: float, inputs: Floats) -> Floats:
        return np.array(_continued([0.0], (factor,), inputs.tolist())[1:])


@dataclass(frozen=True, slots=True, eq=False)
class LagWeights:
    """Weights of deviations from the mean in a linear estimate, and its mean squared error."""

    weights: Floats
    squared_error: float


def lag_estimates(
    model: Process, lags: Sequence[int], noise_variance: float | ArrayLike
) -> LagWeights:
    r"""The best linear estimate of the current value from noisy values at some lags.

    $$(\Gamma + \sigma_n^2 I)\, w = c, \qquad \Gamma_{ij} = \gamma_{l_i - l_j}, \quad
    c_i = \gamma_{l_i}$$

    where $\gamma$ are the autocovariances of `model`, $l$ is `lags` and $w$ the weights.

    Args:
        model: The series.
        lags: Different whole numbers; 0 is the current noisy value, those below 0 come later.
        noise_variance: Of the independent noise in each value; one for all, or one for each.

    Examples:
        >>> lag_estimates(Process.first_order(0.0, 0.9, 1.0), [0, 1, 2], 4.0).weights
        array([0.158, 0.131, 0.113])

    References:
        [RTR, Sec. 2.3]
    """
    noise = np.asarray(noise_variance, dtype=np.float64)
    for variance in np.atleast_1d(noise).tolist():
        checks.finite("noise_variance", variance)
    places = _whole(lags)
    if places.ndim != 1 or places.size == 0 or np.unique(places).size < places.size:
        raise InvalidParameter("lags", lags, "be at least one, all different")
    signal = model.autocovariances(places[:, None] - places)
    shared = model.autocovariances(places)
    observed = signal + noise * np.eye(places.size)  # a vector goes along the diagonal
    try:
        weights = linalg.cho_solve(linalg.cho_factor(observed), shared)
    except np.linalg.LinAlgError:
        raise SolverFailed("the covariance of the observations is singular in floats") from None
    # The error that these weights have, whatever rounding did to them.
    error = model.variance - 2 * weights @ shared + weights @ observed @ weights
    return LagWeights(checks.read_only(weights), max(float(error), 0.0))


def kalman_bound(series: Autoregressive, noise_variance: float) -> float:
    """Mean squared error of the Kalman filter of the current value, in the long run.

    No linear estimate of a value from all noisy values up to it has less error; for a normal
    series no estimate at all has.

    Args:
        series: The series.
        noise_variance: Of the independent noise in each value.

    Examples:
        >>> kalman_bound(Process.first_order(0.0, 0.9, 1.0), 4.0)
        0.546

    References:
        [RTR, Sec. 2.3]
    """
    noise = checks.finite("noise_variance", noise_variance)
    if noise == 0:
        return 0.0
    transition, driving = series.transition, np.zeros((series.order, series.order))
    # In units of the innovation, so that the scale of the series does not matter.
    driving[0, 0], ratio = 1.0, noise / series.innovation
    reading = np.eye(series.order, 1)
    try:
        # Balancing overflows on coefficients that are all but 0, and the Newton steps need none.
        prior = linalg.solve_discrete_are(
            transition.T, reading, driving, np.array([[ratio]]), balanced=False
        )
        for _ in range(_POLISHES):
            before, prior = prior, _polished(prior, transition, driving, ratio)
    except np.linalg.LinAlgError as problem:
        raise SolverFailed(f"the Riccati equation was not solved: {problem}") from None
    moved = float(np.abs(prior - before).max() / prior[0, 0])
    if not moved <= _RELATIVE:
        raise SolverFailed(f"the Riccati equation was solved only up to {moved:g} of the error")
    return float(noise * prior[0, 0] / (prior[0, 0] + ratio))


def _polished(prior: Floats, transition: Floats, driving: Floats, ratio: float) -> Floats:
    """One Newton step for the Riccati equation: the prior covariance under the present gain.

    Near the unit circle a small residual says little; a step that stands still says all.
    """
    gain = transition @ prior[:, :1] / (prior[0, 0] + ratio)
    loop = transition.copy()
    loop[:, :1] -= gain
    return np.asarray(linalg.solve_discrete_lyapunov(loop, driving + ratio * gain @ gain.T))
