"""Filters that no command offers: the paper's with known parameters, a few lags, a learnt order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.series.filters import Estimate, Filter, _all_measured, _named
from tests.oracles.processes import Process, lag_estimates

_FIRST_GUESS = 0.9
"""Correlation of neighbours before anything was learnt."""
_LARGEST_ROOT, _LEAST_FRESH = 0.998, 1e-3
"""A learnt process stays stationary, and something of every value is new."""
_LEAST_VALUES, _EVERY = 20, 8
"""Values for each coefficient before anything is fitted, and how often it is fitted again."""


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


def model_lag(model: Process) -> Estimate:
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
    model: Process
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


def several_lags(model: Process, lags: int) -> Estimate:
    """The best linear estimate from the last so many measurements of a known process."""
    count = checks.count("lags", lags)
    name = f"{count} lags {_named(model)}"
    return Estimate(name, lambda series: _Lags(series, model, count))


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
