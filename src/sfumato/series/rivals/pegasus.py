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
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, assert_never

import numpy as np

from sfumato.core import checks
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import PureDP
from sfumato.core.randomness import Randomness
from sfumato.noise.geometric import DiscreteLaplace
from sfumato.noise.laplace_noise import LaplaceNoise
from sfumato.noise.number_noise import on_lattice
from sfumato.series.memory import Memory
from sfumato.series.rivals.tree import HAIR
from sfumato.series.series_release import SecretEvents
from sfumato.series.series_spec import SeriesSpec

# Steps that a value may be away from 0, so that sums of a group stay exact.
_LARGEST = 2.0**40


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


@dataclass(slots=True)
class Groups(Memory):
    """The open group.

    Attributes:
        limit: Its noisy threshold, in steps; NaN while the last group is closed.
        places: Its true values, in steps.
        noisy: Its noisy values, sorted.
    """

    growing: ClassVar[frozenset[str]] = frozenset({"places", "noisy"})

    limit: float = math.nan
    places: list[int] = field(default_factory=list)
    noisy: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Pegasus(SecretEvents[Groups]):
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

    @classmethod
    def of(cls, spec: SeriesSpec) -> Pegasus:
        """For a spec."""
        return cls.at(spec.sensitivity, spec.pure(1))

    @property
    def guarantee(self) -> PureDP:
        """What all that leaves tells of one value: Perturber and Grouper together."""
        return self.noise.leakage + self.grouper.leakage

    def memory(self) -> Groups:
        """No group is open."""
        return Groups()

    def answer(
        self, memory: Groups, time: int, value: float, coins: Randomness
    ) -> tuple[float, float]:
        """The smoothed noisy values of the group that this one belongs to."""
        place = int(on_lattice(value, self.grouper.query.step))
        if abs(place) > _LARGEST:
            raise InvalidParameter("value", "a larger one", f"be within {_LARGEST:.3g} steps of 0")
        noisy = self.noise.perturb_one(value, coins)
        # The last group was closed, so this value begins one and is compared with nothing.
        if math.isnan(memory.limit):
            memory.places, memory.noisy = [place], []
            memory.limit = float(self.grouper.limit(coins))
        else:
            memory.places.append(place)
            if self.grouper.over(deviation(memory.places), int(memory.limit), coins):
                # The newest stands alone, in a group that is closed.
                memory.limit, memory.places, memory.noisy = math.nan, [], []
        insort(memory.noisy, noisy)
        return self._smoothed(memory.noisy), self.guarantee.epsilon

    def _smoothed(self, noisy: list[float]) -> float:
        match self.smoothing:
            case Smoothing.MEDIAN:
                middle, odd = divmod(len(noisy), 2)
                return noisy[middle] if odd else 0.5 * (noisy[middle - 1] + noisy[middle])
            case Smoothing.MEAN:
                return math.fsum(noisy) / len(noisy)
            case _:
                assert_never(self.smoothing)


def deviation(places: list[int]) -> int:
    """The sum of the distances of whole numbers from their mean, rounded down.

    Twice what lies below the mean: exact until it is divided.
    """
    given, total = np.array(places, dtype=np.int64), sum(places)
    # Whole numbers: a float mean would put values at the mean on either side.
    low = given[given <= total // len(places)]
    return 2 * (low.size * total - len(places) * int(low.sum())) // len(places)
