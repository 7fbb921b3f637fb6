"""Discrete Gaussian noise on a lattice, accounted by concentrated privacy."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Self

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.guarantees import ApproxDP
from sfumato.core.numerics import up
from sfumato.noise.curves import concentrated_epsilon
from sfumato.noise.number_noise import (
    NumberNoise,
    TableNoise,
    check_lattice,
    series_lattice,
    summed,
    table_reach,
)


@dataclass(frozen=True, slots=True, eq=False)
class DiscreteGaussianNoise(TableNoise):
    r"""Whole numbers with probabilities proportional to $e^{-k^2/2\sigma^2}$, times a step.

    Its tails are no heavier than those of the normal.

    Attributes:
        step: Distance of the points of the lattice.
        steps: How many steps two values may be apart.
        deviation: The $\sigma$, in steps.

    Examples:
        >>> noise = DiscreteGaussianNoise.at(sensitivity=1.0, deviation=4.0)
        >>> noise.concentrated, noise.variance  # 1 / (2 * 16)
        (0.03125, 16.0)

    References:
        [Canonne2020, Def. 1], [Canonne2020, Prop. 25]
    """

    step: float
    steps: int
    deviation: float

    def __post_init__(self) -> None:
        check_lattice(self.step, self.steps)
        checks.positive("deviation", self.deviation)
        table_reach(self.deviation, self.steps)

    @classmethod
    def at(cls, sensitivity: float, deviation: float) -> Self:
        """The noise of a given deviation, for values that far apart."""
        size = checks.positive("deviation", deviation)
        step, steps = series_lattice(sensitivity, size)
        return cls(step, steps, size / step)

    @classmethod
    def together(cls, counts: Counter[NumberNoise], delta: float) -> ApproxDP:
        """The sum of the concentrated privacies, converted."""
        shared, *rounding = summed(counts, "charge", "slack", "error")
        return ApproxDP(concentrated_epsilon(shared, delta, *rounding), delta)

    @property
    def concentrated(self) -> float:
        """Concentrated differential privacy (zCDP) of one release, rounded up.

        References:
            [Canonne2020, Thm. 4]
        """
        return up(0.5 * (self.steps / self.deviation) ** 2 * (1 + 2.0**-50))

    @property
    def spread(self) -> float:
        """The deviation; rounding to whole steps adds less than a hair."""
        return self.deviation

    @property
    def charge(self) -> float:
        """Concentrated privacies add up."""
        return self.concentrated

    @property
    def variance(self) -> float:
        """Variance of what is added, about: on a fine lattice it is that of the normal."""
        return (self.step * self.deviation) ** 2

    def shares(self) -> Floats:
        """The masses of the table."""
        places = np.arange(-self.reach, self.reach + 1)
        return np.asarray(np.exp(-0.5 * (places / self.deviation) ** 2))
