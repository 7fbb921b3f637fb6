"""Laplace noise on a lattice: two-sided geometric, pure, on all whole numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Self

from numpy.typing import ArrayLike

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.guarantees import PureDP
from sfumato.core.randomness import Randomness
from sfumato.noise.geometric import LEAST_EPSILON, DiscreteLaplace
from sfumato.noise.number_noise import INFLATED, NumberNoise, on_lattice, series_lattice


@dataclass(frozen=True, slots=True, eq=False)
class LaplaceNoise(NumberNoise):
    """Two-sided geometric noise on a lattice.

    Attributes:
        noise: The noise, in steps.

    Examples:
        >>> noise = LaplaceNoise.at(sensitivity=1.0, epsilon=0.5)
        >>> noise.leakage <= PureDP(0.5), noise.variance  # 2 / epsilon^2
        (True, 8.0)
    """

    pure: ClassVar[bool] = True

    noise: DiscreteLaplace

    @classmethod
    def at(cls, sensitivity: float, epsilon: float) -> Self:
        """The noise with a given pure leakage for values that far apart."""
        budget = checks.epsilon("epsilon", epsilon)
        for inflated in INFLATED:
            step, steps = series_lattice(sensitivity, sensitivity / budget, inflated)
            if budget / steps >= LEAST_EPSILON:
                break
        each = budget / steps
        while (noise := cls(step, steps, _geometric(each))).leakage.epsilon > budget:
            each *= 1 - 2.0**-48  # a product that was rounded up over it
        return noise

    @classmethod
    def together(cls, counts: Counter[NumberNoise], delta: float) -> PureDP:
        """The sum of the pure leakages."""
        return sum((PureDP(noise.charge) for noise in counts.elements()), PureDP(0.0))

    @property
    def leakage(self) -> PureDP:
        """Exact leakage, rounded up."""
        return self.noise.leakage(self.steps)

    @property
    def charge(self) -> float:
        """Epsilons add up."""
        return self.leakage.epsilon

    @property
    def variance(self) -> float:
        """Variance of what is added."""
        return self.step**2 * self.noise.variance

    def perturb(self, values: ArrayLike, randomness: Randomness) -> Floats:
        """Values with noise, one draw each."""
        places = on_lattice(values, self.step)
        return self.step * (places + self.noise.draw(places.size, randomness).reshape(places.shape))


@lru_cache(maxsize=32)
def _geometric(epsilon: float) -> DiscreteLaplace:
    return DiscreteLaplace.at(epsilon)
