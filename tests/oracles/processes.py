"""Processes and linear estimates of the paper, beside the ones that a release needs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, special

from sfumato.core import checks
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter, SolverFailed
from sfumato.core.randomness import Randomness
from sfumato.series.autoregressive import (
    _RELATIVE,
    Autoregressive,
    sample_autocovariances,
    standardised,
)

_COINS = 1 << 20
"""Coins that a simulation of counts holds at a time."""
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


class Stationary(Protocol):
    """What a linear estimate needs to know of a series."""

    @property
    def mean(self) -> float:
        """Mean of every value."""

    @property
    def variance(self) -> float:
        """Variance of every value."""

    def autocovariances(self, lags: ArrayLike) -> Floats:
        """Covariances of values some steps apart."""


@dataclass(frozen=True, slots=True)
class BinomialAutoregressive:
    r"""Counts of people in a state that each of them enters and leaves independently.

    $$Z_t = \alpha \circ Z_{t-1} + \beta \circ (n - Z_{t-1})$$

    where $n$ is `people`, $\beta = \pi (1 - \rho)$ the probability of entering the state, $\alpha =
    \beta + \rho$ that of staying in it, $\pi$ is `share`, $\rho$ is `correlation`, and $a \circ m$
    keeps each of $m$ people with probability $a$.

    Attributes:
        people: How many there are.
        share: Mean part of them that is in the state.
        correlation: Of neighbouring counts; at most 1, and at least minus the odds of `share` or
            minus their inverse, whichever is nearer to 0.

    Examples:
        >>> rooms = BinomialAutoregressive(100, 0.3, 0.8)
        >>> rooms.mean, rooms.variance, rooms.staying, rooms.entering
        (30.0, 21.0, 0.86, 0.06)

    References:
        [RTR, Def. A.1]
    """

    people: int
    share: float
    correlation: float

    def __post_init__(self) -> None:
        checks.count("people", self.people)
        least = _least_correlation(checks.proper_fraction("share", self.share))
        if not least <= self.correlation <= 1:
            rule = f"lie in [{least:.6g}, 1] for a share of {self.share:g}"
            raise InvalidParameter("correlation", self.correlation, rule)

    @classmethod
    def fit(cls, series: ArrayLike, people: int) -> Self:
        """Fit by moments: the mean, and the correlation of neighbours, moved into its range."""
        limit = checks.count("people", people)
        counts = checks.numbers("series", series)
        if not np.all((counts == np.rint(counts)) & (counts >= 0) & (counts <= limit)):
            raise InvalidParameter("series", "others", f"be whole numbers from 0 to {limit}")
        centre, _, scaled = standardised(counts)
        share = centre / limit
        neighbours = float(sample_autocovariances(scaled, 1)[1])
        return cls(limit, share, max(neighbours, _least_correlation(share)))

    @property
    def entering(self) -> float:
        """Probability that a person outside the state is in it one step later."""
        return min(self.share * (1 - self.correlation), 1.0)

    @property
    def staying(self) -> float:
        """Probability that a person in the state is in it one step later."""
        return max(self.share * (1 - self.correlation) + self.correlation, 0.0)

    @property
    def mean(self) -> float:
        """Mean of every count."""
        return self.people * self.share

    @property
    def variance(self) -> float:
        """Variance of every count."""
        return self.people * self.share * (1 - self.share)

    def autocovariances(self, lags: ArrayLike) -> Floats:
        """Covariances of counts some steps apart; the sign of a lag does not matter."""
        return np.asarray(self.variance * float(self.correlation) ** np.abs(_whole(lags)))

    def as_linear(self) -> Process:
        """The normal series with the same first two moments; a count that never moves has none.

        Examples:
            >>> BinomialAutoregressive(100, 0.3, 0.8).as_linear()
            Process(mean=30.0, coefficients=(0.8,), innovation=7.56)
        """
        return Process.first_order(self.mean, self.correlation, self.variance)

    def sample(self, length: int, randomness: Randomness) -> Ints:
        """Draw a series of counts, for simulations only: one coin per person and step."""
        counts = np.empty(checks.count("length", length), dtype=np.int64)
        rows = max(1, _COINS // self.people)
        inside = np.zeros(self.people, dtype=np.bool_)
        for first in range(0, length, rows):
            block = min(rows, length - first)
            coins = _uniforms(randomness.words(block * self.people)).reshape(block, self.people)
            for place, row in enumerate(coins, start=first):
                moves = np.where(inside, self.staying, self.entering) if place else self.share
                inside = row < moves
                counts[place] = inside.sum()
        return counts


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


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate of a value, and its mean squared error."""

    value: float
    squared_error: float


@dataclass(frozen=True, slots=True, eq=False)
class LagWeights:
    """Weights of deviations from the mean in a linear estimate, and its mean squared error."""

    weights: Floats
    squared_error: float


def noisy_estimate(
    model: Stationary, lag: int, noise_variance: float, observation: float
) -> Estimate:
    r"""The best linear estimate of a value from one noisy value before it.

    $$\hat Z = \mu + \frac{\gamma_l}{\gamma_0 + \sigma_n^2} (x - \mu), \qquad
    E(\hat Z - Z)^2 = \gamma_0 - \frac{\gamma_l^2}{\gamma_0 + \sigma_n^2}$$

    where $\gamma$ are the autocovariances of `model`, $l$ is `lag` and $x$ is `observation`.

    Args:
        model: The series.
        lag: Steps from the observation to the value; 0 for the value itself.
        noise_variance: Of the noise in the observation.
        observation: A value with noise.

    Examples:
        >>> noisy_estimate(Process.first_order(0.0, 0.9, 1.0), 1, 4.0, 2.0)
        Estimate(value=0.36, squared_error=0.838)

    References:
        [RTR, Prop. 2.4 and A.2]
    """
    steps = checks.count("lag", lag, at_least=0)
    found = lag_estimates(model, [steps], noise_variance)
    deviation = float(checks.numbers("observation", observation)) - model.mean
    return Estimate(model.mean + float(found.weights[0]) * deviation, found.squared_error)


def lag_estimates(
    model: Stationary, lags: Sequence[int], noise_variance: float | ArrayLike
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


def kalman_bound(model: Autoregressive | BinomialAutoregressive, noise_variance: float) -> float:
    """Mean squared error of the Kalman filter of the current value, in the long run.

    No linear estimate of a value from all noisy values up to it has less error; for a normal
    series no estimate at all has. For counts it is the best error of a linear one.

    Args:
        model: The series.
        noise_variance: Of the independent noise in each value.

    Examples:
        >>> kalman_bound(Process.first_order(0.0, 0.9, 1.0), 4.0)
        0.546

    References:
        [RTR, Sec. 2.3]
    """
    series = model if isinstance(model, Autoregressive) else model.as_linear()
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


def _least_correlation(share: float) -> float:
    return max(-share / (1 - share), -(1 - share) / share)
