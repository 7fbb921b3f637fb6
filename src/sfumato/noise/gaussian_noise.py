"""Normal noise, rounded to a lattice.

What is rounded is a function of the Gaussian mechanism's output; so the exact curve of that
mechanism holds, but for the rounding of its probabilities to integers.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.guarantees import ApproxDP
from sfumato.core.numerics import UNIT, up
from sfumato.noise.curves import gaussian_epsilon
from sfumato.noise.number_noise import (
    INFLATED,
    NumberNoise,
    TableNoise,
    check_lattice,
    series_lattice,
    summed,
    table_reach,
)

_WIDEST = 2.0**16
"""Deviations in steps up to which the lattice is as fine as it may be."""
_POINTS = 5
"""Of the quadrature within a cell; `TableNoise.error` counts what so many miss."""


@dataclass(frozen=True, slots=True, eq=False)
class GaussianNoise(TableNoise):
    """Normal noise, rounded to a lattice.

    Attributes:
        step: Distance of the points of the lattice.
        steps: How many steps two values may be apart.
        deviation: Standard deviation of the noise before it is rounded, in steps.

    Examples:
        >>> noise = GaussianNoise.at(sensitivity=1.0, deviation=4.0)
        >>> noise.ratio, noise.slack < 1e-21, noise.error < 1e-12
        (0.25, True, True)
        >>> noise.variance
        16.0
    """

    scaled_by_curve: ClassVar[bool] = True

    step: float
    steps: int
    deviation: float

    def __post_init__(self) -> None:
        check_lattice(self.step, self.steps)
        checks.positive("deviation", self.deviation)
        table_reach(self.deviation, self.steps)

    @classmethod
    def at(cls, sensitivity: float, deviation: float) -> Self:
        """The noise of a given standard deviation, for values that far apart."""
        size = checks.positive("deviation", deviation)
        for inflated in INFLATED:
            step, steps = series_lattice(sensitivity, size, inflated)
            if size / step <= _WIDEST:
                break
        return cls(step, steps, size / step)

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
    def spread(self) -> float:
        """The deviation; rounding to whole steps adds less than a hair."""
        return self.deviation

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
            half += weight * np.exp(-0.5 * ((places + 0.5 * offset) / self.deviation) ** 2)
        return np.concatenate([half[:0:-1], half])
