r"""Estimates of a series of which nothing is known: a bank of filters, averaged by their success.

Filters with different correlations and signal variances run side by side. Each is weighted by how
well it has predicted the measurements so far, so that what fits the series soon speaks alone. With
a period, filters with an offset for every phase of it run beside those without: a week, a day or
an hour of the week is learnt as the series goes, and costs little where there is none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.series.bank_loops import bank_filter
from sfumato.series.filters import Estimate

CORRELATIONS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
"""Those of the filters of a bank."""
_SIGNALS = tuple(4.0**power for power in (*range(-5, 6), 8, 11, 14))
"""Signal variances of the filters of a bank, as multiples of the noise variance.

The last ones are for noise that hardly matters: an estimate is then never worse than a measurement.
"""
_OFFSETS = (1 / 64, 1 / 4, 4.0, 64.0)
"""Variances of the offsets of phases, likewise."""
_DRIFTS = (0.0, 0.01)
"""What an offset gains in variance from one visit to the next, as parts of its first one."""
_DIFFUSE = 1e6
"""Variance of a mean of which nothing is known, against those of signal and noise."""
MOST_PHASES = 2_000
"""More would take too much memory: a number for every filter and phase."""


@dataclass(frozen=True, slots=True)
class Risk:
    """What a filter expects of its own estimates; a function of what is released.

    Attributes:
        error: Root of the mean squared error that it expects of them.
        silence: The same of the best constant: how far the series varies, from the variance of
            the measurements less that of their noise.
        least: The same less two standard errors; 0 where the series may be constant.
    """

    error: float
    silence: float
    least: float

    @property
    def doubtful(self) -> bool:
        """Whether a constant may be as near to the series as the estimates are."""
        return self.error >= self.least


@dataclass(slots=True)
class Bank:
    """A bank that runs: what its filters know of some series."""

    forgetting: float
    series: int
    phases: _Phases
    grid: Floats = field(default_factory=lambda: np.empty(0))
    means: Floats = field(default_factory=lambda: np.empty(0))
    logs: Floats = field(default_factory=lambda: np.empty(0))
    covariances: Floats = field(default_factory=lambda: np.empty(0))
    offsets: Floats = field(default_factory=lambda: np.empty(0))
    spreads: Floats = field(default_factory=lambda: np.empty(0))
    sums: Floats = field(default_factory=lambda: np.empty(0))
    clock: Floats = field(default_factory=lambda: np.zeros(1))

    def update(self, measured: Floats, weights: Floats, variances: Floats) -> Floats:
        """Estimates at some further times."""
        if not self.grid.size:
            self._begin(measured, variances)
        start = int(self.clock[0])
        found = bank_filter(
            measured,
            variances,
            self.phases.between(start, start + len(measured)),
            self.forgetting,
            self.grid,
            self.means,
            self.logs,
            self.covariances,
            self.offsets,
            self.spreads,
            self.sums,
        )
        self.clock[0] += len(measured)
        return np.asarray(found)

    def _begin(self, measured: Floats, variances: Floats) -> None:
        """The filters are spread around the variance of the noise, the only scale that is known."""
        if np.isnan(measured[0]).any():
            raise InvalidParameter("measured", "nothing", "begin with a measurement")
        noise = float(variances[0])
        rows = noise * np.array(_rows(self.phases.period))
        rows[:, 0] /= noise
        count = len(rows)
        self.grid = np.ascontiguousarray(rows[:, [0, 1, 3]])
        self.means = np.zeros((self.series, count, 2))
        self.means[:, :, 1] = measured[0][:, None]
        self.logs = np.zeros((self.series, count))
        wide = _DIFFUSE * (rows[:, 1] + noise)
        self.covariances = np.stack([rows[:, 1], np.zeros(count), wide], axis=1)
        self.offsets = np.zeros((self.series, count, self.phases.period))
        self.spreads = np.repeat(rows[:, 2:3], self.phases.period, axis=1)
        self.sums = np.zeros((self.series, 7))

    def consistent(self, series: int) -> bool:
        """Whether restored arrays have the shapes that compiled loops rely on."""
        size, period = len(_rows(self.phases.period)), self.phases.period
        parts = (self.grid, self.means, self.logs, self.covariances)
        found = [part.shape for part in (*parts, self.offsets, self.spreads, self.sums)]
        begun: list[tuple[int, ...]] = [(size, 3), (series, size, 2), (series, size), (size, 3)]
        begun += [(series, size, period), (size, period), (series, 7)]
        timed = self.clock.shape == (1,) and math.isfinite(self.clock[0]) and self.clock[0] >= 0
        return timed and found in (begun, [(0,)] * 7)

    @property
    def risk(self) -> Risk | None:
        """What is expected of the estimates so far, of the first series; None before any."""
        if not self.sums.size or not self.sums[0, 0]:
            return None
        times, errors, count, _, total, squares, noises = self.sums[0]
        return measured_risk(errors / times, count, total, squares, noises)

    @property
    def begun(self) -> bool:
        """Whether there was a measurement."""
        return bool(self.grid.size)


def measured_risk(
    squared: float, count: float, total: float, squares: float, noises: float
) -> Risk:
    """The risk of estimates, and of a constant as measurements show it.

    Args:
        squared: Mean squared error that is expected of the estimates.
        count: Number of measurements.
        total: Their sum, about any number.
        squares: The sum of their squares, about the same.
        noises: The sum of the variances of their noise.

    Examples:
        >>> measured_risk(1.0, 100, 0.0, 1000.0, 100.0)
        Risk(error=1.0, silence=3.00..., least=2.8...)
    """
    noise = noises / count
    around = squares / count - (total / count) ** 2 - noise * (1 - 1 / count)
    varies = max(around, 0.0)
    # Standard error of the sample variance of values that are fixed, with normal noise.
    unsure = math.sqrt((2 * noise + 4 * varies) * noise / count)
    least = math.sqrt(max(varies - 2 * unsure, 0.0))
    return Risk(math.sqrt(squared), math.sqrt(varies), least)


@dataclass(frozen=True, slots=True)
class _Phases:
    """Which phase of a period each time is: in turn, or as given."""

    period: int
    given: Ints | None = None

    def between(self, start: int, end: int) -> Ints:
        if self.given is None:
            return np.arange(start, end) % self.period
        if end > self.given.size:
            raise InvalidParameter("phases", self.given.size, f"be given for {end} times")
        return self.given[start:end]


def learned(*, forgetting: float = 1.0) -> Estimate:
    """A bank of filters of first order, weighted by their predictions: nothing has to be known.

    The cost of a step does not grow, and everything is learnt from measurements alone.

    Args:
        forgetting: Factor on what was learnt at each step: 1 for a process that stays as it is,
            .999 for one that changes within some thousand steps.

    Examples:
        >>> learned().name
        'bank 1.0'
    """
    factor = _forgetting(forgetting)
    return Estimate(f"bank {factor}", lambda series: Bank(factor, series, _Phases(1)))


def seasonal(
    period: int,
    *,
    phases: Sequence[int] | Ints | None = None,
    name: str = "",
    forgetting: float = 1.0,
) -> Estimate:
    """The same with an offset for every phase of a period, learnt as the series goes.

    Args:
        period: Phases there are: 7 for the days of a week.
        phases: Which phase each time is, from 0; in turn if not given. They must be public, as the
            date of a row is.
        name: Of the calendar that the phases come from, for the fingerprint: a series that goes
            on has more of them.
        forgetting: As in `learned`.

    Examples:
        >>> weekly = seasonal(7)
        >>> weekly.name
        'bank 1.0 of 7 phases'
    """
    count, factor = checks.count("period", period, at_least=2), _forgetting(forgetting)
    if count > MOST_PHASES:
        raise InvalidParameter("period", period, f"be at most {MOST_PHASES}")
    given = None
    if phases is not None:
        given = np.asarray(phases)
        if given.ndim != 1 or given.dtype.kind not in "iu" or not np.all(given < count):
            raise InvalidParameter("phases", given.shape, f"be whole numbers below {count}")
        if given.size and given.min() < 0:
            raise InvalidParameter("phases", "negative ones", "be at least 0")
        given = given.astype(np.int64)
    turns = _Phases(count, given)
    label = f"bank {factor} of {count} phases{' by ' if name else ''}{name}"
    return Estimate(label, lambda series: Bank(factor, series, turns))


def _rows(period: int) -> list[tuple[float, float, float, float]]:
    """Correlation, variance of the signal, of the offsets, and what they gain, of each filter."""
    plain = [(rho, size, 0.0, 0.0) for rho in CORRELATIONS for size in _SIGNALS]
    if period == 1:
        return plain
    return plain + [
        (rho, size, offset, drift * offset)
        for rho, size, _, _ in plain
        for offset in _OFFSETS
        for drift in _DRIFTS
    ]


def _forgetting(forgetting: float) -> float:
    factor = checks.finite("forgetting", forgetting)
    if not 0 < factor <= 1:
        raise InvalidParameter("forgetting", forgetting, "lie in (0, 1]")
    return factor
