r"""PeGaSus: perturb every value, group values that are alike, smooth within a group.

The Perturber adds noise to each value. The Grouper looks at the true values and decides, without
telling more than its budget, whether the newest still resembles the open group: it compares
their deviation $\sum_i |c_i - \bar c|$ with a threshold, both noisy (a sparse vector). The
Smoother only sees what these two tell, and releases the median or mean of the noisy values of
the current group. A long calm stretch is averaged, and a jump is followed at once.
"""

from __future__ import annotations

import math
from bisect import insort
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, assert_never

import numpy as np

from sfumato.core import checks
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import PureDP
from sfumato.core.guard import Guarded, guarded
from sfumato.core.randomness import Randomness, StreamCoins
from sfumato.noise.geometric import DiscreteLaplace
from sfumato.noise.series_noise import LaplaceNoise, on_lattice
from sfumato.series.rivals.tree import HAIR
from sfumato.series.series_release import Releasing, SeriesMethod, Unit

_LARGEST = 2.0**40
"""Steps that a value may be away from 0, so that sums of a group stay exact."""
_AT_FIRST = 16


class Smoothing(StrEnum):
    """How the noisy values of a group become one."""

    MEDIAN = "median"
    MEAN = "mean"


@dataclass(frozen=True, slots=True)
class Grouper:
    r"""Closes a group when its deviation passes a threshold, both with noise.

    One value that moves by the sensitivity $\Delta$ moves a deviation of $n$ values by at most
    $2\Delta(1 - 1/n)$: its own distance from the mean by $(1 - 1/n)\Delta$, the $n - 1$ others by
    $\Delta/n$ each. In whole steps, rounded down, that is at most $2\Delta$. A value is looked at
    in one group only: the one that closes a group begins one that is closed already. So one run
    of the sparse vector is all that a value pays for: the threshold's noise hides a shift by
    $2\Delta$, and the noise of the one comparison that ended the group hides $4\Delta$.

    Attributes:
        threshold: The deviation at which a group ends.
        level: Noise of the threshold, drawn once a group; its steps are those of one sensitivity.
        query: Noise of each comparison, on the same lattice.

    References:
        [Chen2017, Alg. 2]
    """

    threshold: float
    level: LaplaceNoise
    query: LaplaceNoise

    def __post_init__(self) -> None:
        checks.finite("threshold", self.threshold)
        if (self.level.step, self.level.steps) != (self.query.step, self.query.steps):
            steps = (self.level.steps, self.query.steps)
            raise InvalidParameter("steps", steps, "be the same, on one lattice")

    @classmethod
    def at(cls, sensitivity: float, epsilon: float, threshold: float) -> Grouper:
        """The grouper of a given pure leakage: half of it for the threshold, half for queries."""
        budget = checks.epsilon("epsilon", epsilon) * (1 - HAIR)
        query = LaplaceNoise.at(sensitivity, budget / 8)
        level = DiscreteLaplace.at(budget / 4 / query.steps)
        return cls(threshold, LaplaceNoise(query.step, query.steps, level), query)

    @property
    def sensitivity(self) -> float:
        """How far one value may be from what it could be instead."""
        return self.query.sensitivity

    @property
    def leakage(self) -> PureDP:
        """What all its decisions tell of one value."""
        level, query = self.level, self.query
        return level.noise.leakage(2 * level.steps) + query.noise.leakage(4 * query.steps)

    def limit(self, randomness: Randomness) -> int:
        """A noisy threshold, in steps."""
        place = int(on_lattice(self.threshold, self.level.step))
        return place + int(self.level.noise.draw(1, randomness)[0])

    def over(self, deviation: int, limit: int, randomness: Randomness) -> bool:
        """Whether a deviation, in steps, seems to have reached the threshold."""
        return deviation + int(self.query.noise.draw(1, randomness)[0]) >= limit


@dataclass(frozen=True)
class Pegasus(SeriesMethod[Releasing]):
    r"""Noise for each value, smoothed over groups of like values; event level, and pure.

    A series may be of any length. A step costs time in proportion to the current group.

    Attributes:
        noise: The Perturber's.
        grouper: Decides where groups end.
        smoothing: How a group is smoothed.

    Examples:
        >>> from sfumato.core.randomness import seeded
        >>> from sfumato.core.purpose import Purpose
        >>> method = Pegasus.at(sensitivity=1.0, epsilon=1.0)
        >>> method.guarantee <= PureDP(1.0), method.grouper.threshold
        (True, 25.0)
        >>> patient = Pegasus.at(sensitivity=1.0, epsilon=1.0, threshold=200.0)
        >>> calm = patient.release(np.full(400, 50.0), seeded(2), Purpose.SIMULATION)
        >>> bool(np.std(calm) < 0.5 * patient.noise.variance**0.5)
        True

    References:
        [Chen2017, Alg. 1], [Chen2017, Alg. 2]
    """

    name: ClassVar[str] = "PeGaSus"
    unit = Unit.EVENT

    noise: LaplaceNoise
    grouper: Grouper
    smoothing: Smoothing = Smoothing.MEDIAN

    def __post_init__(self) -> None:
        if self.smoothing not in tuple(Smoothing):
            raise InvalidParameter("smoothing", self.smoothing, f"be of {', '.join(Smoothing)}")
        object.__setattr__(self, "smoothing", Smoothing(self.smoothing))

    @property
    def sensitivity(self) -> float:
        """How far one value may be from what it could be instead: as both of its parts allow."""
        return min(self.noise.sensitivity, self.grouper.sensitivity)

    @classmethod
    def at(
        cls,
        sensitivity: float,
        epsilon: float,
        share: float = 0.8,
        threshold: float | None = None,
        smoothing: Smoothing = Smoothing.MEDIAN,
    ) -> Pegasus:
        """The method with a given pure leakage of each value.

        Args:
            sensitivity: How far one value may be from what it could be instead.
            epsilon: The whole budget of a value.
            share: What the Perturber gets of it; the Grouper gets the rest.
            threshold: The deviation at which a group ends; 5 sensitivities over the Grouper's
                budget, if none is given.
            smoothing: How a group is smoothed.
        """
        width = checks.positive("sensitivity", sensitivity)
        budget = checks.epsilon("epsilon", epsilon) * (1 - HAIR)
        part = checks.proper_fraction("share", share)
        grouping = (1 - part) * budget
        most = 5 * width / grouping * (1 - HAIR) if threshold is None else threshold
        grouper = Grouper.at(width, grouping, most)
        return cls(LaplaceNoise.at(width, part * budget), grouper, smoothing)

    @property
    def guarantee(self) -> PureDP:
        """What all that leaves tells of one value: Perturber and Grouper together."""
        return self.noise.leakage + self.grouper.leakage

    def _begin(self, coins: StreamCoins) -> Releasing:
        """Begin a series."""
        return _Grouping(self, coins.at(0))


class _Grouping(Guarded):
    """A series that is being grouped: the true values of the open group, and the noisy ones."""

    def __init__(self, method: Pegasus, randomness: Randomness) -> None:
        self._method, self._randomness = method, randomness
        self._group = _Deviations()
        self._limit: int | None = None  # none while the last group is closed
        self._noisy: list[float] = []

    @guarded
    def step(self, value: float) -> float:
        """Release one value."""
        grouper = self._method.grouper
        place = float(on_lattice(value, grouper.query.step))
        if abs(place) > _LARGEST:
            raise InvalidParameter("value", "a larger one", f"be within {_LARGEST:.3g} steps of 0")
        noisy = float(self._method.noise.perturb(value, self._randomness))
        if self._limit is None:
            self._group, self._noisy = _Deviations(), []
            self._group.add(int(place))
            self._limit = grouper.limit(self._randomness)
        else:
            self._group.add(int(place))
            if grouper.over(self._group.deviation, self._limit, self._randomness):
                # The newest stands alone, in a group that is closed.
                self._limit, self._noisy = None, []
        insort(self._noisy, noisy)
        return self._smoothed()

    def _smoothed(self) -> float:
        match self._method.smoothing:
            case Smoothing.MEDIAN:
                middle, odd = divmod(len(self._noisy), 2)
                here = self._noisy[middle]
                return here if odd else 0.5 * (self._noisy[middle - 1] + here)
            case Smoothing.MEAN:
                return math.fsum(self._noisy) / len(self._noisy)
            case _:
                assert_never(self._method.smoothing)


class _Deviations:
    """Whole numbers, and the sum of their distances from their mean, rounded down."""

    def __init__(self) -> None:
        self._places = np.zeros(_AT_FIRST, dtype=np.int64)
        self._count = self._sum = 0

    def add(self, place: int) -> None:
        """One number more."""
        if self._count == self._places.size:
            self._places = np.concatenate([self._places, np.zeros_like(self._places)])
        self._places[self._count] = place
        self._count += 1
        self._sum += place

    @property
    def deviation(self) -> int:
        """Twice what lies below the mean: exact until it is divided, in whole numbers."""
        places = self._places[: self._count]
        low = places[places <= self._sum // self._count]
        return 2 * (low.size * self._sum - self._count * int(low.sum())) // self._count
