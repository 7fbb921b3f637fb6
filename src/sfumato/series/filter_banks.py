r"""Estimates of a series of which nothing is known: a bank of filters, averaged by their success.

Filters with different correlations and signal variances run side by side. Each is weighted by how
well it has predicted the measurements so far, so that what fits the series soon speaks alone. With
a period, filters with an offset for every phase of it run beside those without: a week, a day or
an hour of the week is learnt as the series goes, and costs little where there is none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.series.bank_loops import bank_filter, bank_step
from sfumato.series.filters import Estimate, Filter
from sfumato.series.risk import Risk, believed, risk_of_sums

CORRELATIONS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
"""Those of the filters of a bank."""
# Signal variances of the filters of a bank, as multiples of the noise variance. The last ones are
# for noise that hardly matters: an estimate is then never worse than a measurement.
_SIGNALS = tuple(4.0**power for power in (*range(-5, 6), 8, 11, 14))
# Variances of the offsets of phases, likewise.
_OFFSETS = (1 / 64, 1 / 4, 4.0, 64.0)
# What an offset gains in variance from one visit to the next, as parts of its first one.
_DRIFTS = (0.0, 0.01)
# Variance of a mean of which nothing is known, against those of signal and noise.
_DIFFUSE = 1e6
# Numbers that are summed up of each series.
_SUMS = 8
# More would take too much memory: a number for every filter and phase.
_MOST_PHASES = 2_000


@dataclass(slots=True)
class Bank(Filter):
    """A bank that runs: what its filters know of some series.

    Until the first measurement nothing is known, not even the scale: then all arrays are empty.
    """

    parameters: ClassVar[frozenset[str]] = frozenset({"forgetting", "series", "phases"})
    growing: ClassVar[frozenset[str]] = frozenset({"grid", "shared", "own", "sums"})

    forgetting: float
    series: int
    phases: Phases
    clock: int = 0
    grid: Floats = field(default_factory=lambda: np.empty(0))
    shared: Floats = field(default_factory=lambda: np.empty(0))
    own: Floats = field(default_factory=lambda: np.empty(0))
    sums: Floats = field(default_factory=lambda: np.empty(0))

    def update(self, measured: Floats, weights: Floats, variances: Floats) -> Floats:
        """Estimates at some further times."""
        if not self.begun:
            self._begin(measured[0], float(variances[0]))
        phases = self.phases.between(self.clock, self.clock + len(measured))
        self.clock += len(measured)
        measured = np.ascontiguousarray(measured)  # each layout would be compiled for itself
        return bank_filter(measured, variances, phases, self.forgetting, *self._arrays)

    def one(self, measured: float, weight: float, variance: float) -> float:
        """The estimate at the next time, of one series."""
        if not self.begun:
            self._begin(np.array([measured]), variance)
        phase = self.phases.at(self.clock)
        self.clock += 1
        return bank_step(
            measured, variance, phase, self.forgetting, self.grid, self.shared, self.own, self.sums
        )

    def skip(self, weight: float) -> None:
        """A time without a measurement; before the first one only the clock goes on."""
        if self.begun:
            self.one(math.nan, weight, 1.0)
        else:
            self.clock += 1

    @property
    def _arrays(self) -> tuple[Floats, Floats, Floats, Floats]:
        return self.grid, self.shared, self.own, self.sums

    def _begin(self, measured: Floats, noise: float) -> None:
        """The filters are spread around the variance of the noise, the only scale that is known."""
        if np.isnan(measured).any():
            raise InvalidParameter("measured", "nothing", "begin with a measurement")
        rows = noise * np.array(_rows(self.phases.period))
        rows[:, 0] /= noise
        count, period = len(rows), self.phases.period
        self.grid = np.ascontiguousarray(rows[:, [0, 1, 3]])
        # The mean may be anywhere: its variance is far above all others.
        wide = _DIFFUSE * (rows[:, 1] + noise)
        offsets = np.repeat(rows[:, 2:3], period, axis=1)
        self.shared = np.column_stack([rows[:, 1], np.zeros(count), wide, offsets])
        self.own = np.zeros((self.series, count, 3 + period))
        # It begins at the first measurement, so that no digit is lost far from 0.
        self.own[:, :, 1] = measured[:, None]
        self.sums = np.zeros((self.series, _SUMS))

    def restore(self, arrays: Mapping[str, Floats]) -> None:
        """Go on from what was stored, also before measurements were asked what they show."""
        sums = arrays.get("sums", np.empty(0))
        if sums.ndim == 2 and sums.shape[1] == _SUMS - 1:
            arrays = {**arrays, "sums": np.column_stack([sums, sums[:, 1]])}
        # Named, for a class with slots is made anew and has no cell for `super()`.
        Filter.restore(self, arrays)

    def consistent(self) -> bool:
        """Whether restored arrays have the shapes that compiled loops rely on."""
        size, wide = len(_rows(self.phases.period)), 3 + self.phases.period
        begun = [(size, 3), (size, wide), (self.series, size, wide), (self.series, _SUMS)]
        return self.clock >= 0 and [part.shape for part in self._arrays] in (begun, [(0,)] * 4)

    @property
    def risk(self) -> Risk | None:
        """What is expected of the estimates so far, of the first series; None before any."""
        if not self.begun:
            return None
        times, errors, count, _, total, squares, noises, shown = self.sums[0].tolist()
        squared = believed(errors / times, shown / times, noises / count, count)
        return risk_of_sums(squared, count, total, squares, noises)

    @property
    def begun(self) -> bool:
        """Whether there was a measurement."""
        return bool(self.grid.size)


@dataclass(frozen=True, slots=True)
class Phases:
    """Which phase of a period each time is: in turn, or as given."""

    period: int
    given: Ints | None = None

    def at(self, time: int) -> int:
        """The phase of one time."""
        return time % self.period if self.given is None else int(self.between(time, time + 1)[0])

    def between(self, start: int, end: int) -> Ints:
        """The phases of some successive times."""
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
    return Estimate(f"bank {factor}", lambda series: Bank(factor, series, Phases(1)))


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
    if count > _MOST_PHASES:
        raise InvalidParameter("period", period, f"be at most {_MOST_PHASES}")
    given = None
    if phases is not None:
        given = np.asarray(phases)
        if given.ndim != 1 or given.dtype.kind not in "iu" or not np.all(given < count):
            raise InvalidParameter("phases", given.shape, f"be whole numbers below {count}")
        if given.size and given.min() < 0:
            raise InvalidParameter("phases", "negative ones", "be at least 0")
        given = given.astype(np.int64)
    label = f"bank {factor} of {count} phases{' by ' if name else ''}{name}"
    turns = Phases(count, given)
    return _seasonal(label, factor, turns)


def _seasonal(label: str, factor: float, turns: Phases) -> Estimate:
    def shifted(times: int) -> Estimate:
        if turns.given is None:
            return _seasonal(label, factor, turns)
        # Phases of times that have passed are not asked for again.
        later = np.concatenate([np.zeros(times, dtype=np.int64), turns.given])
        return _seasonal(label, factor, Phases(turns.period, later))

    return Estimate(label, lambda series: Bank(factor, series, turns), shifted)


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
