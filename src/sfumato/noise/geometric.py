r"""Two-sided geometric noise for whole numbers, exact: no float is drawn and no tail is cut.

A geometric number is $K J + R$ with independent parts: $J$ geometric with ratio $r^K$, and $R$
geometric but less than $K$. $R$ is drawn from a table of integer weights, all of them large, and
$J$ by tossing one coin until it fails. Both are exactly what their integers say, on all whole
numbers, so the leakage is the largest quotient of neighbouring probabilities, and pure. The noise
is the difference of two such numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Self

import numpy as np

from sfumato.core import checks, portable
from sfumato.core.arrays import Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import PureDP
from sfumato.core.numerics import UNIT, log_up, up
from sfumato.core.randomness import BITS, Randomness, integer_weights

_WHOLE = 2**BITS
# The table spans a factor of e^6 in probability: few repeats, and every weight is large.
_SPAN = 6.0
_MOST_CELLS = 2**21
LEAST_EPSILON = _SPAN / _MOST_CELLS * (1 + 2.0**-30)
"""The smallest leakage that a table can be made for."""
_HAIR = 2.0**-40
_ATTEMPTS = 20


@dataclass(frozen=True, slots=True, eq=False)
class DiscreteLaplace:
    """Noise on whole numbers whose probability falls by one factor with each step from 0.

    Attributes:
        weights: Of the remainders, summing to `2**62`.
        repeat: Weight of one block more, out of `2**62`.

    Examples:
        >>> noise = DiscreteLaplace.at(0.5)
        >>> noise.leakage(1) <= PureDP(0.5), noise.leakage(2) <= PureDP(1.0)
        (True, True)
        >>> noise.variance
        7.835

    References:
        [Ghosh2009, Def. 2.1]
    """

    weights: Ints
    repeat: int
    _cumulative: Ints = field(init=False, repr=False)

    def __post_init__(self) -> None:
        table = np.array(self.weights, dtype=np.int64)
        # A sum of 64-bit integers may wrap around to the right one; that of floats does not.
        near = abs(float(table.sum(dtype=np.float64)) - _WHOLE) < 0.5 * _WHOLE
        if table.ndim != 1 or not near or table.min() <= 0 or int(table.sum()) != _WHOLE:
            raise InvalidParameter("weights", table.shape, "be positive and sum to 2**62")
        if not 0 < checks.count("repeat", self.repeat) < _WHOLE:
            raise InvalidParameter("repeat", self.repeat, "lie strictly between 0 and 2**62")
        table.setflags(write=False)
        object.__setattr__(self, "weights", table)
        object.__setattr__(self, "repeat", int(self.repeat))
        object.__setattr__(self, "_cumulative", table.cumsum())

    @classmethod
    def at(cls, epsilon: float) -> Self:
        """The noise with a given leakage for values that differ by 1.

        Args:
            epsilon: At least 3e-6; divide the budget by the sensitivity.
        """
        wanted = checks.epsilon("epsilon", epsilon)
        budget = wanted * (1 - _HAIR)
        for _ in range(_ATTEMPTS):
            made = cls._near(budget, epsilon)
            if made.step <= wanted:
                return made
            # Rounding to integers came out over it: aim lower by twice as much.
            budget -= 2 * (made.step - wanted)
        raise InvalidParameter("epsilon", epsilon, "be larger: its weights are too coarse")

    @classmethod
    def _near(cls, budget: float, epsilon: float) -> Self:
        cells = max(1, math.ceil(_SPAN / budget))
        if cells > _MOST_CELLS:
            raise InvalidParameter("epsilon", epsilon, f"be at least {LEAST_EPSILON:.2g}")
        shares = portable.exp(-budget * np.arange(cells))
        # Rounded up: a heavier tail leaks less.
        repeat = math.ceil(_WHOLE * portable.exp(-budget * cells))
        return cls(integer_weights(shares[None, :] / shares.sum())[0], repeat)

    @property
    def step(self) -> float:
        """Leakage for values that differ by 1, exact and rounded up."""
        return _steepest(self)

    def leakage(self, sensitivity: int) -> PureDP:
        """Leakage for values, or vectors of them, that differ by at most so much in all."""
        apart = checks.count("sensitivity", sensitivity, at_least=0)
        return PureDP(up(apart * self.step) if apart else 0.0)

    @property
    def variance(self) -> float:
        """Variance of the noise, about."""
        ratio = portable.exp(-self.step)
        return 2 * ratio / (1 - ratio) ** 2

    def draw(self, count: int, randomness: Randomness) -> Ints:
        """Independent draws of the noise."""
        size = checks.count("count", count, at_least=0)
        return self._geometric(size, randomness) - self._geometric(size, randomness)

    def _geometric(self, count: int, randomness: Randomness) -> Ints:
        coins = _coins(count, randomness)
        found = np.searchsorted(self._cumulative, coins, side="right").astype(np.int64)
        tossing = np.arange(count)
        while tossing.size:
            tossing = tossing[_coins(tossing.size, randomness) < self.repeat]
            found[tossing] += self.weights.size
        return found


@lru_cache(maxsize=256)
def _steepest(noise: DiscreteLaplace) -> float:
    """Log of the largest quotient of neighbouring probabilities; releases ask for it every time."""
    table = noise.weights.astype(np.float64)
    within = float((table[:-1] / table[1:]).max()) if table.size > 1 else 1.0
    across = table[-1] / table[0] / (noise.repeat / _WHOLE)
    return log_up(max(within, across), 8 * UNIT)


def _coins(count: int, randomness: Randomness) -> Ints:
    return (randomness.words(count) >> np.uint64(64 - BITS)).astype(np.int64)
