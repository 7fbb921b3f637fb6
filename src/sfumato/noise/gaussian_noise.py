"""Normal noise on a lattice: rounded to it, or discrete.

What is rounded is a function of the Gaussian mechanism's output; so the exact curve of that
mechanism holds, but for the rounding of its probabilities to integers. The discrete Gaussian is
accounted by concentrated privacy.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.core.guarantees import ApproxDP
from sfumato.core.numerics import UNIT, up
from sfumato.noise.curves import concentrated_epsilon, gaussian_epsilon
from sfumato.noise.number_noise import (
    INFLATED,
    NumberNoise,
    TableNoise,
    series_lattice,
    summed,
    table_reach,
)

# Deviations in steps up to which the lattice is as fine as it may be.
_WIDEST = 2.0**16
# Of the quadrature within a cell; `TableNoise.error` counts what so many miss.
_POINTS = 5


@dataclass(frozen=True, slots=True, eq=False)
class _Normal(TableNoise):
    """Noise of a deviation, given in steps."""

    inflated: ClassVar[tuple[float, ...]] = INFLATED[:1]
    """How much larger whole steps may make the sensitivity, until the table is small enough."""

    deviation: float

    def __post_init__(self) -> None:
        # Named, for a class with slots is made anew and has no cell for `super()`.
        TableNoise.__post_init__(self)
        checks.positive("deviation", self.deviation)
        table_reach(self.deviation, self.steps)

    @classmethod
    def at(cls, sensitivity: float, deviation: float) -> Self:
        """The noise of a given deviation, for values that far apart."""
        size = checks.positive("deviation", deviation)
        for inflated in cls.inflated:
            step, steps = series_lattice(sensitivity, size, inflated)
            if size / step <= _WIDEST:
                break
        return cls(step, steps, size / step)

    @property
    def spread(self) -> float:
        """The deviation; rounding to whole steps adds less than a hair."""
        return self.deviation


@dataclass(frozen=True, slots=True, eq=False)
class GaussianNoise(_Normal):
    """Normal noise, rounded to a lattice; its deviation is that before it is rounded.

    Examples:
        >>> noise = GaussianNoise.at(sensitivity=1.0, deviation=4.0)
        >>> noise.ratio, noise.slack < 1e-21, noise.error < 1e-12
        (0.25, True, True)
        >>> noise.variance
        16.0
    """

    scaled_by_curve: ClassVar[bool] = True
    inflated: ClassVar[tuple[float, ...]] = INFLATED

    @classmethod
    def together(cls, counts: Counter[NumberNoise], delta: float) -> ApproxDP:
        """The exact curve of one mechanism whose squared ratio is the sum of theirs."""
        squares, *rounding = summed(counts, "squared_ratio", "slack", "error")
        return ApproxDP(gaussian_epsilon(up(math.sqrt(squares)), delta, *rounding), delta)

    @property
    def ratio(self) -> float:
        """Sensitivity over deviation, rounded up: all that the privacy of the noise depends on."""
        return up(self.steps / self.deviation)

    @property
    def squared_ratio(self) -> float:
        """Squared ratios add up; this one is a float, rounded somehow."""
        return self.ratio**2

    @property
    def charge(self) -> float:
        """The squared ratio, rounded up."""
        return up(self.squared_ratio * (1 + 4 * UNIT))

    @property
    def variance(self) -> float:
        """Variance of what is added."""
        return self.step**2 * (self.deviation**2 + 1 / 12)

    def shares(self) -> Floats:
        """The density, integrated over each cell: differences of probabilities would cancel."""
        offsets, weights = np.polynomial.legendre.leggauss(_POINTS)
        places = np.arange(self.reach + 1)
        half = np.zeros(places.size)
        for offset, weight in zip(offsets, weights, strict=True):
            half += weight * portable.exp(-0.5 * ((places + 0.5 * offset) / self.deviation) ** 2)
        return np.concatenate([half[:0:-1], half])


@dataclass(frozen=True, slots=True, eq=False)
class DiscreteGaussianNoise(_Normal):
    r"""Whole numbers with probabilities proportional to $e^{-k^2/2\sigma^2}$, times a step.

    Its tails are no heavier than those of the normal; $\sigma$ is `deviation`.

    Examples:
        >>> noise = DiscreteGaussianNoise.at(sensitivity=1.0, deviation=4.0)
        >>> noise.charge, noise.variance  # 1 / (2 * 16)
        (0.03125, 16.0)

    References:
        [Canonne2020, Def. 1], [Canonne2020, Prop. 25]
    """

    @classmethod
    def together(cls, counts: Counter[NumberNoise], delta: float) -> ApproxDP:
        """The sum of the concentrated privacies, converted."""
        shared, *rounding = summed(counts, "charge", "slack", "error")
        return ApproxDP(concentrated_epsilon(shared, delta, *rounding), delta)

    @property
    def charge(self) -> float:
        """Concentrated privacy (zCDP) of one release, which adds up; rounded up.

        References:
            [Canonne2020, Thm. 4]
        """
        return up(0.5 * (self.steps / self.deviation) ** 2 * (1 + 2.0**-50))

    @property
    def variance(self) -> float:
        """Variance of what is added, about: on a fine lattice it is that of the normal."""
        return (self.step * self.deviation) ** 2

    def shares(self) -> Floats:
        """The masses of the table."""
        places = np.arange(-self.reach, self.reach + 1)
        return np.asarray(portable.exp(-0.5 * (places / self.deviation) ** 2))
