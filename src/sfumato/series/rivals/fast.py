r"""FAST: measure with noise, filter, and measure less often while nothing happens.

The series is taken for a random walk, and the noise for normal: then the Kalman filter predicts
the next value from what was released, and corrects the prediction by a noisy measurement. Filter
and control see noisy measurements only, so what is paid for is their number, and nothing else.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import PureDP
from sfumato.core.guard import Guarded, guarded
from sfumato.core.numerics import up
from sfumato.core.randomness import Randomness, StreamCoins
from sfumato.noise.series_noise import LaplaceNoise
from sfumato.series.rivals.windowed import noise_within
from sfumato.series.series_release import SeriesMethod, checked_series

_STEEPEST = 50.0
"""An exponent above this shortens any interval to 1."""
_RATIOS = np.geomspace(1e-12, 1e12, 97)


@dataclass(frozen=True, slots=True)
class Control:
    r"""How the distance between measurements follows the errors of prediction.

    $$\Delta = C_p E_n + \frac{C_i}{T_i} \sum_{j > n - T_i} E_j
        + C_d \frac{E_n - E_{n-1}}{t_n - t_{n-1}}, \qquad
      I' = \max\{1,\; I + \theta (1 - e^{(\Delta - \xi) / \xi})\}$$

    where $E_n$ is the error at measurement $n$, relative to the estimate, $t_n$ its time, and $I$
    the interval before it. Measurements wait for the whole part of the interval.

    Attributes:
        proportional: $C_p$, weight of the present error.
        integral: $C_i$, weight of the mean of recent errors.
        derivative: $C_d$, weight of the change of the error.
        memory: $T_i$, how many errors are recent.
        theta: How fast the interval changes.
        xi: The error that leaves the interval as it is.

    Examples:
        >>> Control().interval(4.0, errors=[0.0, 0.0], gap=4)  # nothing happens: wait longer
        10.321
        >>> Control().interval(4.0, errors=[0.0, 2.0], gap=4)
        1.0

    References:
        [Fan2014]
    """

    proportional: float = 0.9
    integral: float = 0.1
    derivative: float = 0.0
    memory: int = 5
    theta: float = 10.0
    xi: float = 0.1

    def __post_init__(self) -> None:
        for name in ("proportional", "integral", "derivative"):
            checks.finite(name, getattr(self, name))
        checks.count("memory", self.memory)
        checks.positive("theta", self.theta)
        checks.positive("xi", self.xi)

    def interval(self, interval: float, errors: Sequence[float], gap: int) -> float:
        """The next interval.

        Args:
            interval: The present one.
            errors: Of the measurements so far, or the last of them, in order.
            gap: Time between the last two measurements.
        """
        recent = list(errors)[-self.memory :]
        before = errors[-2] if len(errors) > 1 else errors[-1]
        feedback = self.proportional * errors[-1]
        feedback += self.integral / self.memory * math.fsum(recent)
        feedback += self.derivative * (errors[-1] - before) / gap
        exponent = min((feedback - self.xi) / self.xi, _STEEPEST)
        return max(1.0, interval + self.theta * (1 - math.exp(exponent)))


@dataclass(frozen=True, slots=True)
class Fast(SeriesMethod["Filtering"]):
    """A filtered series, measured at every step or at a few.

    Attributes:
        length: How many values a series may have.
        measurements: How many of them are measured, at most; each costs the same.
        noise: What is added to a measurement.
        ratio: Variance of the walk in a step, over the variance the filter expects of the noise.
        sanity: Estimates below this count as this when an error is put in relation to them.
        control: When to measure again; None measures always.

    Examples:
        >>> from sfumato.core.randomness import seeded
        >>> from sfumato.core.purpose import Purpose
        >>> method = Fast.at(sensitivity=1.0, epsilon=2.0, length=6, process_variance=4.0)
        >>> method.guarantee <= PureDP(2.0), method.measurements
        (True, 6)
        >>> method.release([50.0] * 6, seeded(2), Purpose.SIMULATION).round(1)
        array([51.4, 48. , 47.4, 50. , 50.7, 49.4])

    References:
        [Fan2014, Alg. 1]
    """

    name: ClassVar[str] = "fast"

    length: int
    measurements: int
    noise: LaplaceNoise
    ratio: float
    sanity: float
    control: Control | None = None

    def __post_init__(self) -> None:
        length = checks.count("length", self.length)
        if checks.count("measurements", self.measurements) > length:
            rule = f"be at most the length, {length}"
            raise InvalidParameter("measurements", self.measurements, rule)
        if self.control is None and self.measurements != length:
            rule = f"be {length}, the length: without a control every value is measured"
            raise InvalidParameter("measurements", self.measurements, rule)
        checks.finite("ratio", self.ratio)
        checks.positive("sanity", self.sanity)

    @property
    def sensitivity(self) -> float:
        """How far apart two values of a moment may be."""
        return self.noise.sensitivity

    @classmethod
    def at(
        cls,
        sensitivity: float,
        epsilon: float,
        length: int,
        *,
        process_variance: float,
        samples: int | None = None,
        measurement_variance: float | None = None,
        control: Control | None = None,
    ) -> Self:
        """The method for a budget, for a person who may be in every value.

        Args:
            sensitivity: How far apart two values of a moment may be.
            epsilon: Budget of the whole series.
            length: How many values it has, at most.
            process_variance: Of the change from one value to the next. It must come from public
                knowledge, for the data would have to pay for it; so it has no default.
            samples: Measurements at most; None measures every value.
            measurement_variance: What the filter expects of the noise; if not given, the true
                variance of the noise, which makes the filter the best linear one.
            control: When to measure again; only with `samples`.
        """
        budget = checks.positive("epsilon", epsilon)
        steps = checks.count("length", length)
        if samples is None and control is not None:
            raise InvalidParameter("control", control, "come with a number of samples")
        allowed = steps if samples is None else checks.count("samples", samples)
        if allowed > steps:
            raise InvalidParameter("samples", samples, f"be at most the length, {steps}")
        noise = noise_within(sensitivity, budget / allowed)
        expected = noise.variance if measurement_variance is None else measurement_variance
        ratio = _ratio(process_variance, expected)
        control = control if samples is None else control or Control()
        return cls(steps, allowed, noise, ratio, float(sensitivity), control)

    @property
    def guarantee(self) -> PureDP:
        """What all measurements leak together; no run makes more of them."""
        return PureDP(up(self.measurements * self.noise.leakage.epsilon))

    def _begin(self, coins: StreamCoins) -> Filtering:
        """Begin a series."""
        return Filtering(self, coins.at(0))

    def mean_squared_error(self, series: ArrayLike) -> float:
        """Expected squared error of a value, exactly. Not private: it depends on the series.

        Raises:
            InvalidParameter: If not every value is measured; the error then has no closed form.
        """
        if self.control is not None:
            raise InvalidParameter("samples", self.measurements, "be None for the error")
        values = self.checked(series)
        return float(_filter_errors(values, np.array([self.ratio]), self.noise.variance)[0])

    def checked(self, series: ArrayLike) -> Floats:
        """A series that is not too long."""
        values = checked_series(series)
        if values.size > self.length:
            raise InvalidParameter("series", values.size, f"have at most {self.length} values")
        return values

    def _released(self, values: Floats, coins: StreamCoins) -> Floats:
        series = self.checked(values)
        if self.control is not None:
            return SeriesMethod._released(self, series, coins)
        # Every value is measured, whatever comes out: the noise may be drawn at once.
        randomness = coins.at(0)
        filtering = Filtering(self, randomness)
        noisy = self.noise.perturb(series, randomness)
        return np.array([filtering._follow(measurement) for measurement in noisy.tolist()])


class Filtering(Guarded):
    """A series that is being filtered. It holds noisy measurements only.

    Attributes:
        measured: How many measurements were made.
        interval: Distance to the next one, in steps; its whole part counts.
    """

    def __init__(self, method: Fast, randomness: Randomness) -> None:
        self._method = method
        self._coins = randomness
        self._errors: deque[float] = deque(maxlen=1)
        if method.control is not None:
            self._errors = deque(maxlen=max(2, method.control.memory))
        self._time = 0
        self._latest = 0
        self._estimate = 0.0
        self._variance = math.inf  # of the estimate, over that of the noise: nothing is known
        self.measured = 0
        self.interval = 1.0

    @guarded
    def step(self, value: float) -> float:
        """Release one value: the corrected prediction, or the prediction.

        Raises:
            InvalidParameter: If the series is too long, or the value not finite or far too large;
                it is not quoted.
        """
        exact = float(checked_series([value])[0])
        if self._time >= self._method.length:
            wanted = f"have at most {self._method.length} values"
            raise InvalidParameter("series", self._time + 1, wanted)
        due = math.isinf(self._variance) or self._time - self._latest + 1 > self.interval
        if not due or self.measured >= self._method.measurements:
            return self._predict()
        # Counted before anything is drawn: an interrupted measurement is one that happened.
        self.measured += 1
        return self._follow(float(self._method.noise.perturb(exact, self._coins)))

    def _follow(self, measurement: float) -> float:
        """Correct the prediction by a measurement that is noisy already, and release it."""
        first = math.isinf(self._variance)
        gain = 1.0 if first else self._variance / (self._variance + 1)
        change = gain * (measurement - self._estimate)
        self._estimate += change
        # In units of the noise, the variance that is left is the gain.
        self._variance = gain
        if not first and self._method.control is not None:
            self._errors.append(abs(change) / max(abs(self._estimate), self._method.sanity))
            gap = self._time - self._latest
            self.interval = self._method.control.interval(self.interval, self._errors, gap)
        self._latest = self._time
        return self._predict()

    def _predict(self) -> float:
        self._time += 1
        self._variance += self._method.ratio
        return self._estimate


def best_process_variance(series: ArrayLike, sensitivity: float, epsilon: float) -> float:
    """The variance of the walk with which the error of this very series is least.

    **Not private**: it needs the true series, and tells about it. For studies, which give FAST
    this help; every value is measured. The search covers 24 decades around the noise's variance.

    Examples:
        >>> best_process_variance([0.0, 3.0, 6.0, 2.0, 9.0], 1.0, 10.0)
        20.097
    """
    values = checked_series(series)
    budget = checks.positive("epsilon", epsilon)
    noise = noise_within(sensitivity, budget / values.size).variance
    place = int(_filter_errors(values, _RATIOS, noise).argmin())
    low, high = _RATIOS[max(place - 1, 0)], _RATIOS[min(place + 1, _RATIOS.size - 1)]
    finer = np.geomspace(low, high, _RATIOS.size)
    return float(finer[_filter_errors(values, finer, noise).argmin()] * noise)


def _filter_errors(values: Floats, ratios: Floats, noise: float) -> Floats:
    r"""Mean squared error of the filter for each ratio of variances.

    The error of a step is $(1 - K_t)(e_{t-1} - (z_t - z_{t-1})) + K_t n_t$, with gains $K_t$ that
    depend on the ratio alone; bias and variance follow.
    """
    gain = np.ones_like(ratios)
    bias, variance = np.zeros_like(ratios), np.full_like(ratios, noise)
    total = variance.copy()
    for change in np.diff(values):
        gain = (gain + ratios) / (gain + ratios + 1)
        bias = (1 - gain) * (bias - change)
        variance = (1 - gain) ** 2 * variance + gain**2 * noise
        total += bias**2 + variance
    return np.asarray(total / values.size)


def _ratio(process: float, measurement: float) -> float:
    walk = checks.finite("process_variance", process)
    noise = checks.positive("measurement_variance", measurement)
    return checks.finite("process_variance / measurement_variance", walk / noise)
