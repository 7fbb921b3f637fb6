r"""FAST: measure with noise, filter, and measure less often while nothing happens.

The series is taken for a random walk, and the noise for normal: then the Kalman filter predicts
the next value from what was released, and corrects the prediction by a noisy measurement. Filter
and control see noisy measurements only, so what is paid for is their number, and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import PureDP
from sfumato.core.numerics import up
from sfumato.core.randomness import Randomness
from sfumato.noise.laplace_noise import LaplaceNoise
from sfumato.series.memory import Memory
from sfumato.series.rivals.windowed import noise_within
from sfumato.series.series_release import SeriesMethod, checked_series
from sfumato.series.series_spec import SeriesSpec

# An exponent above this shortens any interval to 1.
_STEEPEST = 50.0
_RATIOS = (1e-12, 1e12, 97)


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
        return max(1.0, interval + self.theta * (1 - portable.exp(exponent)))


@dataclass(slots=True)
class Prediction(Memory):
    """A series that is being filtered: noisy measurements only.

    Attributes:
        estimate: Of the next value.
        variance: Of the estimate, over that of the noise; NaN while nothing is known.
        interval: Distance to the next measurement, in steps; its whole part counts.
        latest: Time of the last measurement.
        measured: How many measurements were made.
        errors: Of the last measurements, relative to the estimates.
    """

    growing: ClassVar[frozenset[str]] = frozenset({"errors"})

    estimate: float = 0.0
    variance: float = math.nan
    interval: float = 1.0
    latest: int = 0
    measured: int = 0
    errors: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Fast(SeriesMethod[Prediction]):
    """A filtered series, measured at every step or at a few.

    Attributes:
        length: How many values a series may have.
        measurements: How many of them are measured, at most; each costs the same.
        noise: What is added to a measurement.
        ratio: Variance of the walk in a step, over the variance the filter expects of the noise.
        sanity: Estimates below this count as this when an error is put in relation to them.
        control: When to measure again; None measures always.

    Examples:
        >>> from sfumato.core.purpose import Purpose
        >>> from sfumato.core.randomness import seeded
        >>> method = Fast.at(sensitivity=1.0, epsilon=2.0, length=6, process_variance=4.0)
        >>> method.release([50.0] * 6, seeded(2), Purpose.SIMULATION).round(1)
        array([55.8, 52.4, 51.9, 51.1, 50.2, 52.1])

    References:
        [Fan2014, Alg. 1]
    """

    length: int
    measurements: int
    noise: LaplaceNoise
    ratio: float
    sanity: float
    control: Control | None = None
    name: ClassVar[str] = "fast"

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
            control: When to measure again; only with `samples`.
        """
        budget = checks.positive("epsilon", epsilon)
        steps = checks.count("length", length)
        if samples is None and control is not None:
            raise InvalidParameter("control", control, "come with a number of samples")
        allowed = steps if samples is None else checks.count("samples", samples)
        noise = noise_within(sensitivity, budget / allowed)
        ratio = checks.finite("process_variance", process_variance) / noise.variance
        control = control if samples is None else control or Control()
        return cls(steps, allowed, noise, ratio, float(sensitivity), control)

    @classmethod
    def of(cls, spec: SeriesSpec, samples: int | None = None) -> Self:
        """With the walk that is best for the true series; not private."""
        each = (spec.sensitivity, spec.pure(spec.length))
        variance = best_process_variance(spec.true_series, *each)
        return cls.at(*each, spec.length, process_variance=variance, samples=samples)

    @classmethod
    def sampling(cls, spec: SeriesSpec) -> Self:
        """The same, with a quarter of the values measured."""
        return cls.of(spec, max(1, spec.length // 4))

    @property
    def guarantee(self) -> PureDP:
        """What all measurements leak together; no run makes more of them."""
        return PureDP(up(self.measurements * self.noise.leakage.epsilon))

    def memory(self) -> Prediction:
        """Nothing is known of the series."""
        return Prediction()

    def answer(
        self, memory: Prediction, time: int, value: float, coins: Randomness
    ) -> tuple[float, float]:
        """The corrected prediction, or the prediction."""
        due = math.isnan(memory.variance) or time - memory.latest + 1 > memory.interval
        charge = 0.0
        if due and memory.measured < self.measurements:
            measurement = self.noise.perturb_one(value, coins)
            memory.measured += 1
            self.correct(memory, time, measurement)
            charge = self.noise.charge
        memory.variance += self.ratio
        return memory.estimate, charge

    def correct(self, memory: Prediction, time: int, measurement: float) -> None:
        """Correct the prediction by a measurement that is noisy already."""
        first = math.isnan(memory.variance)
        gain = 1.0 if first else memory.variance / (memory.variance + 1)
        change = gain * (measurement - memory.estimate)
        memory.estimate += change
        # In units of the noise, the variance that is left is the gain.
        memory.variance = gain
        if not first and self.control is not None:
            relative = abs(change) / max(abs(memory.estimate), self.sanity)
            # The derivative needs two errors, the integral as many as it remembers.
            memory.errors = [*memory.errors, relative][-max(2, self.control.memory) :]
            gap = time - memory.latest
            memory.interval = self.control.interval(memory.interval, memory.errors, gap)
        memory.latest = time


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
    ratios = portable.geometric(*_RATIOS)
    place = int(filter_errors(values, ratios, noise).argmin())
    low, high = ratios[max(place - 1, 0)], ratios[min(place + 1, ratios.size - 1)]
    finer = portable.geometric(float(low), float(high), ratios.size)
    return float(finer[filter_errors(values, finer, noise).argmin()] * noise)


def filter_errors(values: Floats, ratios: Floats, noise: float) -> Floats:
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
