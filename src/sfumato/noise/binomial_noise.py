"""Binomial noise on a lattice: sums of fair coins, with their exact curve."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np

from sfumato.core import checks, portable, search
from sfumato.core.arrays import Floats
from sfumato.core.guarantees import ApproxDP
from sfumato.core.numerics import up
from sfumato.noise.curves import composed_epsilon
from sfumato.noise.number_noise import NumberNoise, TableNoise, series_lattice, table_reach

# Beyond this e**epsilon times a probability leaves the floats.
_MOST_EPSILON = 600.0
_HALVINGS = 60


@dataclass(frozen=True, slots=True, eq=False)
class BinomialNoise(TableNoise):
    r"""Sums of fair coins, centred: $N + m \sim \text{Binomial}(2m, \tfrac12)$, times a step.

    Attributes:
        trials: The $m$; the variance is half of it, in squared steps.

    Examples:
        >>> noise = BinomialNoise.at(sensitivity=1.0, deviation=10.0)
        >>> noise.delta(0.3)
        4.44e-05

    References:
        [RTR, App. A.3]
    """

    trials: int

    def __post_init__(self) -> None:
        TableNoise.__post_init__(self)
        checks.count("trials", self.trials)
        table_reach(self.spread, self.steps)

    @classmethod
    def at(cls, sensitivity: float, deviation: float) -> Self:
        """The noise of at least a given standard deviation, for values that far apart."""
        size = checks.positive("deviation", deviation)
        step, steps = series_lattice(sensitivity, size)
        return cls(step, steps, math.ceil(2 * size**2 / step**2))

    @classmethod
    def together(cls, counts: Counter[NumberNoise], delta: float) -> ApproxDP:
        """The exact curve of each draw at half of delta, evenly, composed for the other half.

        References:
            [RTR, Thm. A.5]
        """
        # Half of delta for the draws, half for their composition, as the paper splits it.
        part = delta / (2 * counts.total())
        each = {noise: noise.epsilon(part) for noise in counts if isinstance(noise, cls)}
        epsilons = [each[noise] for noise in counts.elements()]  # type: ignore[index]
        return composed_epsilon(epsilons, [part] * len(epsilons), delta / 2)

    @property
    def variance(self) -> float:
        """Variance of what is added."""
        return self.step**2 * self.trials / 2

    @property
    def charge(self) -> float:
        """Its curve has no number that adds up: draws are counted, as the account asks."""
        return 1.0

    @property
    def spread(self) -> float:
        """Of a sum of coins; by Hoeffding's inequality its tails are those of the normal."""
        return math.sqrt(self.trials / 2)

    @property
    def error(self) -> float:
        """Of a sum of logarithms, one for each step, and of its rounding."""
        return (16 + self.reach * (2 + self.reach**2 / self.trials)) * 2.0**-51

    @property
    def reach(self) -> int:
        """How many steps the table goes to both sides; all of them, if they are few."""
        return min(self.trials, table_reach(self.spread, self.steps))

    def beyond(self, steps: int) -> float:
        """Nothing, where the table holds all that can be."""
        return 0.0 if self.reach == self.trials else super(BinomialNoise, self).beyond(steps)

    def shares(self) -> Floats:
        """The masses of the table."""
        return _binomial(self.reach, self.trials)

    def delta(self, epsilon: float) -> float:
        """The exact delta of one release, of the very weights that are drawn from; rounded up."""
        level = min(checks.leakage("epsilon", epsilon), 700.0)
        here, there = _shifted(self.reach, self.trials, self.steps)
        over = here - portable.exp(level) * there
        # A difference is wrong by units of what it is taken from.
        wrong = 2.0**-49 * float(here[over > 0].sum())
        return min(1.0, up(float(over[over > 0].sum()) * (1 + 2.0**-40) + wrong))

    def epsilon(self, delta: float) -> float:
        """The least epsilon of one release at a delta, rounded up; infinite if there is none."""
        allowed = checks.proper_fraction("delta", delta)
        return search.least_above(
            lambda level: self.delta(level) <= allowed, 1e-3, _MOST_EPSILON, steps=_HALVINGS
        )


def _binomial(reach: int, trials: int) -> Floats:
    """Probabilities of whole numbers up to `reach` from 0, both ways.

    From the ratio of neighbours outwards, and divided by their sum: logarithms of factorials
    would lose a digit for each digit of the trials.
    """
    steps = np.arange(min(reach, trials))
    logs = np.concatenate(
        [[0.0], np.cumsum(portable.log1p(-(2 * steps + 1) / (trials + steps + 1)))]
    )
    half = np.zeros(reach + 1)
    half[: logs.size] = portable.exp(logs)
    shares = np.concatenate([half[:0:-1], half])
    return np.asarray(shares / shares.sum())


@lru_cache(maxsize=8)
def _shifted(reach: int, trials: int, steps: int) -> tuple[Floats, Floats]:
    """Probabilities in the table, and those of values some steps on."""
    shares = np.concatenate([np.zeros(steps), _binomial(reach, trials), np.zeros(steps)])
    return shares[:-steps], shares[steps:]
