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
from scipy import linalg

from sfumato.core.arrays import Floats
from sfumato.core.digest import digest
from sfumato.core.errors import InvalidParameter
from sfumato.series.autoregressive import Autoregressive
from sfumato.series.filter_loops import kalman_filter, one_lag_filter
from sfumato.series.memory import Memory
from sfumato.series.risk import Risk


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
        measured = np.ascontiguousarray(measured)  # each layout would be compiled for itself
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
class _Kalman(Filter):
    mean: float
    innovation: float
    transition: Floats
    means: Floats
    covariance: Floats
    # What is known of the process is not learnt, so it is not stored.
    parameters: ClassVar[frozenset[str]] = frozenset({"mean", "innovation", "transition"})

    def update(self, measured: Floats, weights: Floats, variances: Floats) -> Floats:
        parts = (self.transition, self.innovation, self.means, self.covariance)
        return kalman_filter(measured - self.mean, variances, *parts) + self.mean


def kalman(model: Autoregressive) -> Estimate:
    """The Kalman filter of a known process: no estimate has less mean squared error."""
    parts = (model.mean, model.innovation, np.ascontiguousarray(model.transition))

    def begin(series: int) -> Filter:
        stationary = linalg.toeplitz(model.leading[:-1])
        return _Kalman(*parts, np.zeros((series, model.order)), stationary)

    return Estimate(f"kalman {_named(model)}", begin)


def _named(model: Autoregressive) -> str:
    return f"{model.mean} {list(model.coefficients)} {model.innovation}"


def _all_measured(measured: Floats) -> None:
    if np.isnan(measured).any():
        rule = "be a value at every time for this estimate; use the Kalman filter or a bank"
        raise InvalidParameter("measured", "gaps", rule)
