r"""Estimates of a series from noisy measurements of it: functions of what is released anyway.

Whatever is computed from private measurements costs no privacy. The best such estimate of a known
process is the Kalman filter's; where the process is not known, `filter_banks` comes near it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.digest import digest
from sfumato.core.errors import InvalidParameter
from sfumato.series.autoregressive import Autoregressive, lag_estimates
from sfumato.series.filter_loops import kalman_filter, one_lag_filter
from sfumato.series.memory import Memory
from sfumato.series.risk import Risk

_FIRST_GUESS = 0.9
"""Correlation of neighbours before anything was learnt."""
_LARGEST_ROOT, _LEAST_FRESH = 0.998, 1e-3
"""A learnt process stays stationary, and something of every value is new."""
_LEAST_VALUES, _EVERY = 20, 8
"""Values for each coefficient before anything is fitted, and how often it is fitted again."""


class Filter(Memory, ABC):
    """A running estimate of several series at once."""

    __slots__ = ("_scratch",)  # no field: arrays that one value goes through
    _scratch: tuple[Floats, Floats, Floats]

    @abstractmethod
    def update(self, measured: Floats, weights: Floats, variances: Floats) -> Floats:
        """Estimates at some further times.

        Args:
            measured: Time by series, unbiased measurements; NaN at times without one.
            weights: Weight of the measurement at each time, for rules that use one.
            variances: Variance of the measurement's noise at each time.
        """

    def one(self, measured: float, weight: float, variance: float) -> float:
        """The estimate at the next time, of one series."""
        try:
            seen, weights, variances = self._scratch
        except AttributeError:
            seen, weights, variances = self._scratch = np.empty((1, 1)), np.empty(1), np.empty(1)
        seen[0, 0], weights[0], variances[0] = measured, weight, variance
        return self.update(seen, weights, variances).item(0)

    def skip(self, weight: float) -> None:
        """A time without a measurement."""
        self.one(math.nan, weight, 1.0)

    @property
    def risk(self) -> Risk | None:
        """What is expected of the estimates so far; None if that cannot be said."""
        return None


@dataclass(frozen=True, slots=True)
class Estimate:
    """How measurements are turned into estimates.

    Attributes:
        name: Identifies the rule and its parameters.
        begin: Begins a filter for so many series.
        shifted: Makes the same for rows that begin so many times later; None if all rows are alike.
    """

    name: str
    begin: Callable[[int], Filter] = field(repr=False)
    shifted: Callable[[int], Estimate] | None = field(default=None, repr=False)

    def later(self, times: int) -> Estimate:
        """The same, for rows that begin so many times later."""
        return self if self.shifted is None else self.shifted(times)

    @property
    def fingerprint(self) -> str:
        """Identifies the rule and its parameters; a filter is a function of what is released."""
        return digest("estimate", self.name)


@dataclass(slots=True)
class _Plain(Filter):
    """The measurements themselves; the last one where there is none."""

    last: Floats

    def update(self, measured: Floats, weights: Floats, variances: Floats) -> Floats:
        found = np.empty_like(measured)
        for time, row in enumerate(measured):
            self.last = np.where(np.isnan(row), self.last, row)
            found[time] = self.last
        return found

    def one(self, measured: float, weight: float, variance: float) -> float:
        if measured == measured:  # not NaN
            self.last[0] = measured
        return self.last.item(0)


def plain() -> Estimate:
    """No estimate: what was measured."""
    return Estimate("plain", lambda series: _Plain(np.zeros(series)))


@dataclass(slots=True)
class _OneLag(Filter):
    """The rule of the paper, from releases alone."""

    parameters: ClassVar[frozenset[str]] = frozenset({"favoured"})

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
    return Estimate(f"one lag {sign}", lambda series: _OneLag(sign, np.zeros((series, 6))))


@dataclass(slots=True)
class _ModelLag(Filter):
    """The same with the true parameters."""

    parameters: ClassVar[frozenset[str]] = frozenset({"mean", "correlation", "variance"})

    mean: float
    correlation: float
    variance: float
    last: Floats

    def update(self, measured: Floats, weights: Floats, variances: Floats) -> Floats:
        _all_measured(measured)
        found = np.empty_like(measured)
        for time, row in enumerate(measured):
            weight, noise = float(weights[time]), float(weights[time] ** 2 * variances[time])
            slope = self.correlation * self.variance / (self.variance + noise)
            guess = self.mean + slope * (self.last - self.mean)
            # Before the first release there is no guess, and the measurement leaves as it is.
            row = np.where(np.isnan(guess), row, (1 - weight) * guess + weight * row)
            self.last = found[time] = row
        return found


def model_lag(model: Autoregressive) -> Estimate:
    """The published estimate from the last release, with known parameters.

    References:
        [RTR, Prop. 2.4 and Alg. 2]
    """
    linked = float(model.autocovariances([1])[0])
    parts = (model.mean, linked / model.variance, model.variance)
    return Estimate(f"known lag {parts}", lambda series: _ModelLag(*parts, np.full(series, np.nan)))


@dataclass(slots=True)
class _Lags(Filter):
    """The best linear estimate from the last few measurements."""

    parameters: ClassVar[frozenset[str]] = frozenset({"series", "model", "lags"})
    growing: ClassVar[frozenset[str]] = frozenset({"past", "noises"})

    series: int
    model: Autoregressive
    lags: int
    past: Floats = field(init=False)
    noises: Floats = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        self.past = np.empty((0, self.series))

    def consistent(self) -> bool:
        count = self.noises.size
        return count <= self.lags and self.past.shape == (count, self.series)

    def update(self, measured: Floats, weights: Floats, variances: Floats) -> Floats:
        _all_measured(measured)
        found = np.empty_like(measured)
        for time, row in enumerate(measured):
            self.past = np.vstack([row[None, :], self.past[: self.lags - 1]])
            self.noises = np.concatenate([variances[time : time + 1], self.noises[: self.lags - 1]])
            best = lag_estimates(self.model, range(len(self.past)), self.noises)
            found[time] = self.model.mean + best.weights @ (self.past - self.model.mean)
        return found


def several_lags(model: Autoregressive, lags: int) -> Estimate:
    """The best linear estimate from the last so many measurements of a known process."""
    count = checks.count("lags", lags)
    name = f"{count} lags {_named(model)}"
    return Estimate(name, lambda series: _Lags(series, model, count))


@dataclass(slots=True)
class _Kalman(Filter):
    parameters: ClassVar[frozenset[str]] = frozenset({"mean", "innovation", "transition"})

    mean: float
    innovation: float
    transition: Floats
    means: Floats
    covariance: Floats

    def update(self, measured: Floats, weights: Floats, variances: Floats) -> Floats:
        parts = (self.transition, self.innovation, self.means, self.covariance)
        return kalman_filter(measured - self.mean, variances, *parts) + self.mean


def kalman(model: Autoregressive) -> Estimate:
    """The Kalman filter of a known process: no estimate has less mean squared error."""
    parts = (model.mean, model.innovation, np.ascontiguousarray(model.companion()[0]))

    def begin(series: int) -> Filter:
        return _Kalman(*parts, np.zeros((series, model.order)), _stationary(model))

    return Estimate(f"kalman {_named(model)}", begin)


def _named(model: Autoregressive) -> str:
    return f"{model.mean} {list(model.coefficients)} {model.innovation}"


def _stationary(model: Autoregressive) -> Floats:
    lags = model.autocovariances(np.arange(model.order))
    return np.array([[lags[abs(i - j)] for j in range(model.order)] for i in range(model.order)])


@dataclass(slots=True)
class _Recursive(Filter):
    """Running moments of the measurements, and the filter of the process that they fit."""

    parameters: ClassVar[frozenset[str]] = frozenset({"order"})

    order: int
    totals: Floats
    products: Floats
    recent: Floats
    coefficients: Floats
    innovations: Floats
    means: Floats
    states: Floats
    covariances: Floats

    def update(self, measured: Floats, weights: Floats, variances: Floats) -> Floats:
        found = np.empty_like(measured)
        for time, row in enumerate(measured):
            for series, value in enumerate(row):
                found[time, series] = self._next(series, float(value), float(variances[time]))
        return found

    def _next(self, series: int, value: float, noise: float) -> float:
        if self.totals[series, 0] == 0 and not np.isnan(value):
            # Nothing is known yet: a process as wide as the noise, around the first value.
            self.means[series] = value
            self.innovations[series] = (1 - _FIRST_GUESS**2) * noise
            self.covariances[series] = noise * np.eye(self.order)
        state, spread = self._predicted(series)
        if not np.isnan(value):
            gain = spread[:, 0] / (spread[0, 0] + noise)
            state = state + gain * (value - self.means[series] - state[0])
            spread = spread - np.outer(gain, spread[0])
            self._learn(series, value, noise)
        self.states[series], self.covariances[series] = state, spread
        return float(self.means[series] + state[0])

    def _predicted(self, series: int) -> tuple[Floats, Floats]:
        transition = np.eye(self.order, k=-1)
        transition[0] = self.coefficients[series]
        spread = transition @ self.covariances[series] @ transition.T
        spread[0, 0] += self.innovations[series]
        return transition @ self.states[series], spread

    def _learn(self, series: int, value: float, noise: float) -> None:
        count, total, taken = self.totals[series] + (1.0, value, noise)
        self.totals[series] = count, total, taken
        recent = np.concatenate([[value], self.recent[series, :-1]])
        known = min(int(count), recent.size)
        self.products[series, :known] += value * recent[:known]
        self.recent[series] = recent
        if count >= _LEAST_VALUES * self.order and count % _EVERY == 0:
            self._fit(series)

    def _fit(self, series: int) -> None:
        """Fit the process to the moments: their noise is on the first one alone, and is known."""
        count, total, taken = self.totals[series]
        mean = total / count
        lags = np.arange(self.products.shape[1])
        moments = self.products[series] / (count - lags) - mean**2
        moments[0] -= taken / count
        if moments[0] <= 0:
            return
        rows = [[moments[abs(k - j)] for j in range(1, self.order + 1)] for k in lags[1:]]
        found = np.linalg.lstsq(np.array(rows), moments[1:], rcond=1e-6)[0]
        radius = float(np.abs(np.roots(np.concatenate([[1.0], -found]))).max())
        if radius > _LARGEST_ROOT:
            found = found * (_LARGEST_ROOT / radius) ** np.arange(1, self.order + 1)
        fresh = moments[0] - float(found @ moments[1 : self.order + 1])
        # The state is about deviations from a mean that has moved.
        self.states[series] += self.means[series] - mean
        self.means[series] = mean
        self.coefficients[series] = found
        self.innovations[series] = max(fresh, _LEAST_FRESH * moments[0])


def learned_order(order: int) -> Estimate:
    """The Kalman filter of an autoregressive process whose parameters are learnt on the way.

    From running moments of the measurements, by the Yule-Walker equations of twice as many lags
    as the order has. Needs more signal than `learned`, and knows periods, which that does not.

    Args:
        order: How many past values the next one depends on.
    """
    size = checks.count("order", order)
    guess = np.zeros(size)
    guess[0] = _FIRST_GUESS

    def begin(series: int) -> Filter:
        return _Recursive(
            order=size,
            totals=np.zeros((series, 3)),
            products=np.zeros((series, 2 * size + 1)),
            recent=np.zeros((series, 2 * size + 1)),
            coefficients=np.tile(guess, (series, 1)),
            innovations=np.ones(series),
            means=np.zeros(series),
            states=np.zeros((series, size)),
            covariances=np.tile(np.eye(size), (series, 1, 1)),
        )

    return Estimate(f"learned order {size}", begin)


def _all_measured(measured: Floats) -> None:
    if np.isnan(measured).any():
        rule = "be a value at every time for this estimate; use the Kalman filter or a bank"
        raise InvalidParameter("measured", "gaps", rule)
