r"""Estimates of a series from noisy measurements of it: functions of what is released anyway.

Whatever is computed from private measurements costs no privacy. The best such estimate of a known
process is the Kalman filter's; where the process is not known, a bank of filters with different
correlations and signal variances is averaged by how well each has predicted the measurements
so far, which comes near it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato import _checks
from sfumato.errors import InvalidParameter
from sfumato.kernels.filters import bank_filter, known_filter, one_lag_filter
from sfumato.models.autoregressive import Autoregressive, lag_estimates

Floats = NDArray[np.float64]

CORRELATIONS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
"""Those of the filters of a bank."""
_SIGNALS = tuple(4.0**power for power in range(-5, 6))
"""Signal variances of the filters of a bank, as multiples of the noise variance."""
_DIFFUSE = 1e6
"""Variance of a mean of which nothing is known, against those of signal and noise."""


class Filter(Protocol):
    """A running estimate of several series at once."""

    def update(self, measured: Floats, weights: Floats, variances: Floats) -> Floats:
        """Estimates at some further times.

        Args:
            measured: Time by series, unbiased measurements; NaN at times without one.
            weights: Weight of the measurement at each time, for rules that use one.
            variances: Variance of the measurement's noise at each time.
        """


@dataclass(frozen=True, slots=True)
class Estimate:
    """How measurements are turned into estimates.

    Attributes:
        name: Identifies the rule and its parameters.
        begin: Begins a filter for so many series.
    """

    name: str
    begin: Callable[[int], Filter] = field(repr=False)


def filter_arrays(running: Filter) -> dict[str, Floats]:
    """All that a running filter remembers, by name."""
    kept = (part.name for part in fields(running))  # type: ignore[arg-type]
    found = {name: getattr(running, name) for name in kept}
    return {name: value.copy() for name, value in found.items() if isinstance(value, np.ndarray)}


def resume_filter(estimate: Estimate, series: int, arrays: Mapping[str, Floats]) -> Filter:
    """A filter that goes on from what it remembered.

    Raises:
        InvalidParameter: If that was another kind of filter.
    """
    running = estimate.begin(series)
    if set(arrays) != set(filter_arrays(running)):
        raise InvalidParameter("arrays", sorted(arrays), "be those of this estimate")
    for name, value in arrays.items():
        setattr(running, name, np.array(value, dtype=np.float64))
    return running


@dataclass(slots=True)
class _Plain:
    """The measurements themselves; the last one where there is none."""

    last: Floats

    def update(self, measured: Floats, weights: Floats, variances: Floats) -> Floats:
        found = np.empty_like(measured)
        for time, row in enumerate(measured):
            self.last = np.where(np.isnan(row), self.last, row)
            found[time] = self.last
        return found


def plain() -> Estimate:
    """No estimate: what was measured."""
    return Estimate("plain", lambda series: _Plain(np.zeros(series)))


@dataclass(slots=True)
class _OneLag:
    """The rule of the paper, from releases alone."""

    favoured: float
    sums: Floats

    def update(self, measured: Floats, weights: Floats, variances: Floats) -> Floats:
        _all_measured(measured)
        # A release has the noise of a measurement times its weight.
        released = np.square(weights) * variances
        return one_lag_filter(measured, weights, released, self.favoured, self.sums)


def one_lag(*, positive: bool = True) -> Estimate:
    """The published estimate from the last release, parameters learnt from all releases.

    Args:
        positive: Whether the correlation is known to be positive, as the paper assumes.

    References:
        [RTR, Alg. 1 and Alg. 2]
    """
    sign = float(positive)
    return Estimate(f"one lag {sign}", lambda series: _OneLag(sign, np.zeros((series, 7))))


@dataclass(slots=True)
class _KnownLag:
    """The same with the true parameters."""

    mean: float
    correlation: float
    variance: float
    last: Floats = field(default_factory=lambda: np.empty(0))

    def update(self, measured: Floats, weights: Floats, variances: Floats) -> Floats:
        _all_measured(measured)
        found = np.empty_like(measured)
        for time, row in enumerate(measured):
            weight, noise = float(weights[time]), float(weights[time] ** 2 * variances[time])
            if self.last.size:
                slope = self.correlation * self.variance / (self.variance + noise)
                guess = self.mean + slope * (self.last - self.mean)
                row = (1 - weight) * guess + weight * row
            self.last = found[time] = row
        return found


def known_lag(model: Autoregressive) -> Estimate:
    """The published estimate from the last release, with known parameters.

    References:
        [RTR, Prop. 2.4 and Alg. 2]
    """
    linked = float(model.autocovariances([1])[0])
    parts = (model.mean, linked / model.variance, model.variance)
    return Estimate(f"known lag {parts}", lambda series: _KnownLag(*parts))


@dataclass(slots=True)
class _Lags:
    """The best linear estimate from the last few measurements."""

    model: Autoregressive
    lags: int
    past: Floats

    def update(self, measured: Floats, weights: Floats, variances: Floats) -> Floats:
        _all_measured(measured)
        found = np.empty_like(measured)
        for time, row in enumerate(measured):
            self.past = np.vstack([row[None, :], self.past[: self.lags - 1]])
            count = len(self.past)
            best = lag_estimates(self.model, range(count), float(variances[time]))
            found[time] = self.model.mean + best.weights @ (self.past - self.model.mean)
        return found


def several_lags(model: Autoregressive, lags: int) -> Estimate:
    """The best linear estimate from the last so many measurements of a known process."""
    count = _checks.count("lags", lags)
    name = f"{count} lags {_named(model)}"
    return Estimate(name, lambda series: _Lags(model, count, np.empty((0, series))))


@dataclass(slots=True)
class _Kalman:
    model: Autoregressive
    means: Floats
    covariance: Floats

    def update(self, measured: Floats, weights: Floats, variances: Floats) -> Floats:
        transition, _ = self.model.companion()
        around = measured - self.model.mean
        parts = (np.ascontiguousarray(transition), self.model.innovation)
        found = known_filter(around, variances, *parts, self.means, self.covariance)
        return np.asarray(found + self.model.mean)


def kalman(model: Autoregressive) -> Estimate:
    """The Kalman filter of a known process: no estimate has less mean squared error."""
    return Estimate(
        f"kalman {_named(model)}",
        lambda series: _Kalman(model, np.zeros((series, model.order)), _stationary(model)),
    )


def _named(model: Autoregressive) -> str:
    return f"{model.mean} {list(model.coefficients)} {model.innovation}"


def _stationary(model: Autoregressive) -> Floats:
    lags = model.autocovariances(np.arange(model.order))
    return np.array([[lags[abs(i - j)] for j in range(model.order)] for i in range(model.order)])


@dataclass(slots=True)
class _Bank:
    forgetting: float
    series: int
    correlations: Floats = field(default_factory=lambda: np.empty(0))
    signals: Floats = field(default_factory=lambda: np.empty(0))
    means: Floats = field(default_factory=lambda: np.empty(0))
    logs: Floats = field(default_factory=lambda: np.empty(0))
    covariances: Floats = field(default_factory=lambda: np.empty(0))

    def update(self, measured: Floats, weights: Floats, variances: Floats) -> Floats:
        if not self.correlations.size:
            self._begin(measured, variances)
        return np.asarray(
            bank_filter(
                measured,
                variances,
                self.correlations,
                self.signals,
                self.forgetting,
                self.means,
                self.logs,
                self.covariances,
            )
        )

    def _begin(self, measured: Floats, variances: Floats) -> None:
        """The filters are spread around the variance of the noise, the only scale that is known."""
        if np.isnan(measured[0]).any():
            raise InvalidParameter("measured", "nothing", "begin with a measurement")
        noise = float(variances[0])
        pairs = [(rho, size * noise) for rho in CORRELATIONS for size in _SIGNALS]
        self.correlations = np.array([rho for rho, _ in pairs])
        self.signals = np.array([signal for _, signal in pairs])
        count = len(pairs)
        self.means = np.zeros((self.series, count, 2))
        self.means[:, :, 1] = measured[0][:, None]
        self.logs = np.zeros((self.series, count))
        wide = _DIFFUSE * (self.signals + noise)
        self.covariances = np.stack([self.signals, np.zeros(count), wide], axis=1)


def learned(*, forgetting: float = 1.0) -> Estimate:
    """A bank of filters of first order, weighted by their predictions: nothing has to be known.

    The cost of a step does not grow, and everything is learnt from measurements alone.

    Args:
        forgetting: Factor on what was learnt at each step: 1 for a process that stays as it is,
            .999 for one that changes within some thousand steps.
    """
    factor = _checks.finite("forgetting", forgetting)
    if not 0 < factor <= 1:
        raise InvalidParameter("forgetting", forgetting, "lie in (0, 1]")
    return Estimate(f"bank {factor}", lambda series: _Bank(factor, series))


def _all_measured(measured: Floats) -> None:
    if np.isnan(measured).any():
        rule = "be a value at every time for this estimate; use the Kalman filter or a bank"
        raise InvalidParameter("measured", "gaps", rule)
