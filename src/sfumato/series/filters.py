r"""Estimates of a series from noisy measurements of it: functions of what is released anyway.

Whatever is computed from private measurements costs no privacy. The best such estimate of a known
process is the Kalman filter's; where the process is not known, `banks` comes near it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Protocol

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.digest import digest
from sfumato.core.errors import InvalidParameter
from sfumato.series.autoregressive import Autoregressive, lag_estimates
from sfumato.series.filter_loops import known_filter, one_lag_filter


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

    @property
    def fingerprint(self) -> str:
        """Identifies the rule and its parameters; a filter is a function of what is released."""
        return digest("estimate", self.name)


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
    if not _consistent(running, series):
        raise InvalidParameter("arrays", "other shapes", "be those of this estimate")
    return running


def _consistent(running: Filter, series: int) -> bool:
    """Whether restored arrays have the shapes that compiled loops rely on."""
    match running:
        case _Plain():
            return running.last.shape == (series,)
        case _OneLag():
            return running.sums.shape == (series, 6)
        case _KnownLag():
            return running.last.shape in ((0,), (series,))
        case _Lags():
            count = len(running.noises)
            return count <= running.lags and running.past.shape == (count, series)
        case _Kalman():
            order = running.model.order
            shapes = (running.means.shape, running.covariance.shape)
            return shapes == ((series, order), (order, order))
        case _Recursive():
            return running.states.shape == (series, running.order)
        case _:
            check = getattr(running, "consistent", None)
            return check is None or bool(check(series))


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
    return Estimate(f"one lag {sign}", lambda series: _OneLag(sign, np.zeros((series, 6))))


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
            self.last = found[time] = np.array(row)
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
    noises: Floats

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
    return Estimate(name, lambda series: _Lags(model, count, np.empty((0, series)), np.empty(0)))


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
class _Recursive:
    """Running moments of the measurements, and the filter of the process that they fit."""

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


_FIRST_GUESS, _LARGEST_ROOT, _LEAST_FRESH = 0.9, 0.998, 1e-3
_LEAST_VALUES, _EVERY = 20, 8
"""Values for each coefficient before anything is fitted, and how often it is fitted again."""


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
