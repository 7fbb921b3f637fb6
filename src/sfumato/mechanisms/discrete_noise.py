r"""Other noises on a lattice: discrete Gaussian and binomial, from tables of integer weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sfumato import _checks
from sfumato._numerics import up
from sfumato.mechanisms.series_noise import (
    TableNoise,
    check_lattice,
    noise_table,
    series_lattice,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_TAIL = 9.5


@dataclass(frozen=True, slots=True, eq=False)
class DiscreteGaussianNoise(TableNoise):
    r"""Whole numbers with probabilities proportional to $e^{-k^2/2\sigma^2}$, times a step.

    Attributes:
        step: Distance of the points of the lattice.
        steps: How many steps two values may be apart.
        deviation: The $\sigma$, in steps.

    Examples:
        >>> noise = DiscreteGaussianNoise.at(sensitivity=1.0, deviation=4.0)
        >>> noise.concentrated, noise.variance  # 1 / (2 * 16)
        (0.03125, 16.0)

    References:
        [Canonne2020, Def. 1]
    """

    step: float
    steps: int
    deviation: float
    _cumulative: Ints = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_lattice(self.step, self.steps)
        _checks.positive("deviation", self.deviation)
        object.__setattr__(self, "_cumulative", _discrete_table(self.deviation))

    @classmethod
    def at(cls, sensitivity: float, deviation: float) -> DiscreteGaussianNoise:
        """The noise of a given deviation, for values that far apart."""
        size = _checks.positive("deviation", deviation)
        step, steps = series_lattice(sensitivity, size)
        return cls(step, steps, size / step)

    @property
    def concentrated(self) -> float:
        """Concentrated differential privacy (zCDP) of one release, rounded up.

        References:
            [Canonne2020, Thm. 4]
        """
        return up(0.5 * (self.steps / self.deviation) ** 2 * (1 + 2.0**-50))

    @property
    def variance(self) -> float:
        """Variance of what is added, about: on a fine lattice it is that of the normal."""
        return (self.step * self.deviation) ** 2


@dataclass(frozen=True, slots=True, eq=False)
class BinomialNoise(TableNoise):
    r"""Sums of fair coins, centred: $N + m \sim \text{Binomial}(2m, \tfrac12)$, times a step.

    Attributes:
        step: Distance of the points of the lattice.
        steps: How many steps two values may be apart: a whole number, also after weighting.
        trials: The $m$; the variance is half of it, in squared steps.

    Examples:
        >>> noise = BinomialNoise.at(sensitivity=1.0, variance=100.0)
        >>> noise.delta(0.3) < noise.published_delta(0.3)
        True

    References:
        [RTR, App. A.3]
    """

    step: float
    steps: int
    trials: int
    _cumulative: Ints = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_lattice(self.step, self.steps)
        _checks.count("trials", self.trials)
        object.__setattr__(self, "_cumulative", _binomial_table(self.trials))

    @classmethod
    def at(cls, sensitivity: float, variance: float) -> BinomialNoise:
        """The noise of at least a given variance, for values that far apart."""
        size = _checks.positive("variance", variance)
        step, steps = series_lattice(sensitivity, math.sqrt(size))
        trials = math.ceil(2 * size / step**2)
        return cls(step, steps, trials)

    @property
    def variance(self) -> float:
        """Variance of what is added."""
        return self.step**2 * self.trials / 2

    def delta(self, epsilon: float) -> float:
        """The exact delta of one release, rounded up."""
        level = min(_checks.leakage("epsilon", epsilon), 700.0)
        here, there = _shifted(self.trials, self.steps)
        found = float(np.maximum(here - math.exp(level) * there, 0).sum())
        return min(1.0, up(found * (1 + 1e-10) + (1 + math.exp(level)) * self.slack))

    def epsilon(self, delta: float) -> float:
        """The least epsilon of one release at a delta, rounded up; infinite if there is none."""
        allowed = _checks.proper_fraction("delta", delta)
        low, high = 0.0, 1e-3
        while self.delta(high) > allowed:
            low, high = high, 2 * high
            if high > 50:
                return math.inf
        for _ in range(40):
            middle = 0.5 * (low + high)
            if self.delta(middle) > allowed:
                low = middle
            else:
                high = middle
        return high

    def published_delta(self, epsilon: float) -> float:
        """The bound of the paper, with the whole-number sensitivity it needs.

        References:
            [RTR, Lem. A.4]
        """
        level = _checks.positive("epsilon", epsilon)
        share = (2 * self.trials + 1) / (math.exp(level / self.steps) + 1)
        if not 1 <= self.steps + share <= self.trials + 1:
            return 1.0
        return math.exp(-((self.trials - self.steps + 1 - share) ** 2) / self.trials)


def _binomial(reach: int, trials: int) -> Floats:
    """Probabilities of whole numbers up to `reach` from 0, both ways.

    From the ratio of neighbours outwards, and divided by their sum: logarithms of factorials
    would lose a digit for each digit of the trials.
    """
    steps = np.arange(min(reach, trials))
    logs = np.concatenate([[0.0], np.cumsum(np.log1p(-(2 * steps + 1) / (trials + steps + 1)))])
    half = np.zeros(reach + 1)
    half[: logs.size] = np.exp(logs)
    shares = np.concatenate([half[:0:-1], half])
    return np.asarray(shares / shares.sum())


@lru_cache(maxsize=8)
def _shifted(trials: int, steps: int) -> tuple[Floats, Floats]:
    """Probabilities, and those of values some steps on, wherever floats hold them."""
    reach = min(trials, 1 + math.ceil(40 * math.sqrt(trials / 2)))
    shares = np.concatenate([np.zeros(steps), _binomial(reach, trials), np.zeros(steps)])
    return shares[:-steps], shares[steps:]


@lru_cache(maxsize=64)
def _discrete_table(deviation: float) -> Ints:
    reach = math.ceil(_TAIL * deviation)
    return noise_table(np.exp(-0.5 * (np.arange(-reach, reach + 1) / deviation) ** 2))


@lru_cache(maxsize=64)
def _binomial_table(trials: int) -> Ints:
    reach = min(trials, math.ceil(_TAIL * math.sqrt(trials / 2)) + 1)
    return noise_table(_binomial(reach, trials))
