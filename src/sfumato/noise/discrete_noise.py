r"""Other noises on a lattice: discrete Gaussian and binomial, from tables of integer weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Floats, Ints
from sfumato.core.numerics import up
from sfumato.core.search import least_above
from sfumato.noise.long_weights import first_digits
from sfumato.noise.series_noise import (
    TableNoise,
    check_lattice,
    series_lattice,
    table_error,
    table_reach,
)

_MOST_EPSILON = 600.0
"""Beyond this e**epsilon times a probability leaves the floats."""


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

    def __post_init__(self) -> None:
        check_lattice(self.step, self.steps)
        checks.positive("deviation", self.deviation)
        table_reach(self.deviation, self.steps)

    @classmethod
    def at(cls, sensitivity: float, deviation: float) -> DiscreteGaussianNoise:
        """The noise of a given deviation, for values that far apart."""
        size = checks.positive("deviation", deviation)
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

    @property
    def deviation_bound(self) -> float:
        """The deviation: its tails are no heavier than those of the normal.

        References:
            [Canonne2020, Prop. 25]
        """
        return self.deviation

    @property
    def error(self) -> float:
        """Of an exponential of a large number, and of its rounding."""
        return table_error(self.reach, self.deviation)

    @property
    def reach(self) -> int:
        """How many steps the table goes to both sides."""
        return table_reach(self.deviation, self.steps)

    def _made(self) -> Ints:
        return _discrete_table(self.deviation, self.steps)

    def _shares(self) -> Floats:
        return _discrete_shares(self.deviation, self.reach)


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

    def __post_init__(self) -> None:
        check_lattice(self.step, self.steps)
        checks.count("trials", self.trials)
        table_reach(self.deviation_bound, self.steps)

    @classmethod
    def at(cls, sensitivity: float, variance: float) -> BinomialNoise:
        """The noise of at least a given variance, for values that far apart."""
        size = checks.positive("variance", variance)
        step, steps = series_lattice(sensitivity, math.sqrt(size))
        trials = math.ceil(2 * size / step**2)
        return cls(step, steps, trials)

    @property
    def variance(self) -> float:
        """Variance of what is added."""
        return self.step**2 * self.trials / 2

    @property
    def deviation_bound(self) -> float:
        """Of a sum of coins, by Hoeffding's inequality: its own deviation."""
        return math.sqrt(self.trials / 2)

    @property
    def error(self) -> float:
        """Of a sum of logarithms, one for each step, and of its rounding."""
        return (16 + self.reach * (2 + self.reach**2 / self.trials)) * 2.0**-51

    @property
    def reach(self) -> int:
        """How many steps the table goes to both sides; all of them, if they are few."""
        return min(self.trials, table_reach(self.deviation_bound, self.steps))

    def beyond(self, steps: int) -> float:
        """Nothing, where the table holds all that can be."""
        return 0.0 if self.reach == self.trials else super(BinomialNoise, self).beyond(steps)

    def _made(self) -> Ints:
        return _binomial_table(self.trials, self.steps)

    def _shares(self) -> Floats:
        return _binomial(self.reach, self.trials)

    def delta(self, epsilon: float) -> float:
        """The exact delta of one release, of the very weights that are drawn from; rounded up."""
        level = min(checks.leakage("epsilon", epsilon), 700.0)
        here, there = _shifted(self.reach, self.trials, self.steps)
        over = here - math.exp(level) * there
        # A difference is wrong by units of what it is taken from.
        wrong = 2.0**-49 * float(here[over > 0].sum())
        return min(1.0, up(float(over[over > 0].sum()) * (1 + 2.0**-40) + wrong))

    def epsilon(self, delta: float) -> float:
        """The least epsilon of one release at a delta, rounded up; infinite if there is none."""
        allowed = checks.proper_fraction("delta", delta)
        return least_above(lambda level: self.delta(level) <= allowed, 1e-3, _MOST_EPSILON)

    def published_delta(self, epsilon: float) -> float:
        """The bound of the paper, with the whole-number sensitivity it needs.

        References:
            [RTR, Lem. A.4]
        """
        level = checks.positive("epsilon", epsilon)
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
def _shifted(reach: int, trials: int, steps: int) -> tuple[Floats, Floats]:
    """Probabilities in the table, and those of values some steps on."""
    shares = np.concatenate([np.zeros(steps), _binomial(reach, trials), np.zeros(steps)])
    return shares[:-steps], shares[steps:]


@lru_cache(maxsize=64)
def _discrete_table(deviation: float, steps: int) -> Ints:
    return first_digits(_discrete_shares(deviation, table_reach(deviation, steps)))


def _discrete_shares(deviation: float, reach: int) -> Floats:
    return np.asarray(np.exp(-0.5 * (np.arange(-reach, reach + 1) / deviation) ** 2))


@lru_cache(maxsize=64)
def _binomial_table(trials: int, steps: int) -> Ints:
    reach = min(trials, table_reach(math.sqrt(trials / 2), steps))
    return first_digits(_binomial(reach, trials))
