r"""Noise for numbers of any size, on a lattice fine against the noise: exact, and fast for many.

A value is moved to the nearest multiple of a step, a power of two, and a whole number of steps is
added. Dividing by a power of two is exact, so two values that differ by at most the sensitivity
differ by at most a known whole number of steps, whatever floating point does, and the outputs
that can occur are the same for all of them.

Laplace noise is two-sided geometric: pure, on all whole numbers. Gaussian noise is the normal
distribution rounded to the lattice, which is a function of the Gaussian mechanism's output; so
the exact curve of that mechanism holds, but for the rounding of its probabilities to integers.
Integers are as long as the smallest probability asks for, so that rounding changes every
probability by a tiny *factor*: it adds a tiny term to epsilon, whatever epsilon is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import PureDP
from sfumato.core.numerics import up
from sfumato.core.randomness import BITS, Randomness
from sfumato.noise.geometric import LEAST_EPSILON, DiscreteLaplace
from sfumato.noise.long_weights import first_digits, settled

_FINE = 64.0
"""Steps of the lattice in a deviation of the noise, at least."""
_TAIL = 10.1
"""Deviations of noise that a table covers around every value that the true one could be: beyond
lies less than 2e-22."""
_NEAR, _FAR = 4.0, 26.0
"""Deviations that values may be apart: all tables cover the one, none more than the other."""
_LARGEST = 2.0**52
_WIDEST = 2.0**16
"""Deviations in steps up to which the lattice is as fine as it may be."""
_FINER, _MOST_STEPS = 8, 2**40
_INFLATED = (0.01, 0.03, 0.1, 0.5)
"""How much larger whole steps may make the sensitivity; more where a budget is tiny."""
_MOST_CELLS = 2**24


@dataclass(frozen=True, slots=True, eq=False)
class LaplaceNoise:
    """Two-sided geometric noise on a lattice.

    Attributes:
        step: Distance of the points of the lattice.
        steps: How many steps two values may be apart.
        noise: The noise, in steps.

    Examples:
        >>> noise = LaplaceNoise.at(sensitivity=1.0, epsilon=0.5)
        >>> noise.leakage <= PureDP(0.5), noise.variance  # 2 / epsilon^2
        (True, 8.0)
    """

    step: float
    steps: int
    noise: DiscreteLaplace

    def __post_init__(self) -> None:
        check_lattice(self.step, self.steps)

    @property
    def sensitivity(self) -> float:
        """How far apart two values may be: what the leakage is for."""
        return self.step * self.steps

    @classmethod
    def at(cls, sensitivity: float, epsilon: float) -> LaplaceNoise:
        """The noise with a given pure leakage for values that far apart."""
        budget = checks.epsilon("epsilon", epsilon)
        for inflated in _INFLATED:
            step, steps = series_lattice(sensitivity, sensitivity / budget, inflated)
            if budget / steps >= LEAST_EPSILON:
                break
        each = budget / steps
        while (noise := cls(step, steps, _geometric(each))).leakage.epsilon > budget:
            each *= 1 - 2.0**-48  # a product that was rounded up over it
        return noise

    @property
    def leakage(self) -> PureDP:
        """Exact leakage, rounded up."""
        return self.noise.leakage(self.steps)

    @property
    def variance(self) -> float:
        """Variance of what is added."""
        return self.step**2 * self.noise.variance

    def perturb(self, values: ArrayLike, randomness: Randomness) -> Floats:
        """Values with noise, one draw each."""
        places = on_lattice(values, self.step)
        return self.step * (places + self.noise.draw(places.size, randomness).reshape(places.shape))


class TableNoise:
    """What noises that are drawn from a table of integer weights have in common."""

    __slots__ = ("_table",)  # no field: all of it follows from those
    step: float
    steps: int
    _table: Ints

    @property
    def reach(self) -> int:
        """How many steps the table goes to both sides."""
        raise NotImplementedError

    @property
    def _cumulative(self) -> Ints:
        """First digits of the running sums of the weights; made when noise is first drawn."""
        try:
            return self._table
        except AttributeError:
            object.__setattr__(self, "_table", self._made())
            return self._table

    def _made(self) -> Ints:
        return first_digits(self._shares())

    @property
    def sensitivity(self) -> float:
        """How far apart two values may be: what the leakage is for."""
        return self.step * self.steps

    @property
    def deviation_bound(self) -> float:
        """A number of steps: noise beyond `z` of them has at most `2 exp(-z^2/2)` of the mass."""
        raise NotImplementedError

    @property
    def error(self) -> float:
        """Bound on the log quotient of any weight in the table and the mass it stands for."""
        raise NotImplementedError

    def _shares(self) -> Floats:
        """The masses that the weights of the table are made from."""
        raise NotImplementedError

    @property
    def slack(self) -> float:
        """Probability of noise that the table does not hold for all values it could come from."""
        return self.beyond(self.steps)

    def beyond(self, steps: int) -> float:
        """The same for values that are another number of steps apart."""
        near = (self.reach - steps - 1) / self.deviation_bound
        return min(1.0, 2.0 * math.exp(-0.5 * near * near) * (1 + 2.0**-40)) if near > 0 else 1.0

    def perturb(self, values: ArrayLike, randomness: Randomness) -> Floats:
        """Values with noise, one draw each."""
        places = on_lattice(values, self.step)
        coins = (randomness.words(places.size) >> np.uint64(64 - BITS)).astype(np.int64)
        drawn = np.searchsorted(self._cumulative, coins, side="right")
        tied = (drawn > 0) & (self._cumulative[np.maximum(drawn, 1) - 1] == coins)
        for place in np.flatnonzero(tied).tolist():
            drawn[place] = self._settled(int(coins[place]), randomness)
        return self.step * (places + (drawn - self._cumulative.size // 2).reshape(places.shape))

    def _settled(self, coin: int, randomness: Randomness) -> int:
        return settled(self._shares(), self._cumulative, coin, randomness)


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

    step: float
    steps: int
    deviation: float

    def __post_init__(self) -> None:
        check_lattice(self.step, self.steps)
        checks.positive("deviation", self.deviation)
        table_reach(self.deviation, self.steps)

    @classmethod
    def at(cls, sensitivity: float, deviation: float) -> GaussianNoise:
        """The noise of a given standard deviation, for values that far apart."""
        size = checks.positive("deviation", deviation)
        for inflated in _INFLATED:
            step, steps = series_lattice(sensitivity, size, inflated)
            if size / step <= _WIDEST:
                break
        return cls(step, steps, size / step)

    @property
    def ratio(self) -> float:
        """Sensitivity over deviation, rounded up: all that the privacy of the noise depends on."""
        return up(self.steps / self.deviation)

    @property
    def variance(self) -> float:
        """Variance of what is added."""
        return self.step**2 * (self.deviation**2 + 1 / 12)

    @property
    def deviation_bound(self) -> float:
        """The deviation itself, and a hair for the rounding to whole steps."""
        return self.deviation * (1 + 2.0**-40)

    @property
    def error(self) -> float:
        """Of an exponential of a large number, of a sum of five, and of its rounding."""
        return table_error(self.reach, self.deviation)

    @property
    def reach(self) -> int:
        """How many steps the table goes to both sides."""
        return table_reach(self.deviation, self.steps)

    def _made(self) -> Ints:
        return _normal_table(self.deviation, self.steps)

    def _shares(self) -> Floats:
        return _normal_shares(self.deviation, self.reach)

    def perturb_one(self, value: float, randomness: Randomness) -> float:
        """One value with noise: what `perturb` gives with the same coins, without arrays."""
        exact = value / self.step
        if not abs(exact) < _LARGEST:
            raise InvalidParameter("values", "something else", "be finite numbers, not too large")
        whole = math.floor(exact)
        place = whole + (exact - whole >= 0.5)
        coin = randomness.word() >> (64 - BITS)
        drawn = int(self._cumulative.searchsorted(coin, side="right"))
        if drawn and self._cumulative[drawn - 1] == coin:
            drawn = self._settled(coin, randomness)
        return self.step * (place + drawn - self._cumulative.size // 2)


def check_lattice(step: float, steps: int) -> None:
    """Say that a lattice must have a power of two for its step: division by it is exact."""
    if checks.positive("step", step) != 2.0 ** math.floor(math.log2(step)):
        raise InvalidParameter("step", step, "be a power of two")
    checks.count("steps", steps)


def on_lattice(values: ArrayLike, step: float) -> Floats:
    """The nearest whole number of steps, a power of two, for each value; halves go up.

    Examples:
        >>> on_lattice([0.3, 0.25, -0.25, 0.24999999999999997], 0.5)
        array([1., 1., 0., 0.])
    """
    given = checks.numbers("values", values)
    with np.errstate(over="ignore"):
        exact = given / step
    if exact.size and not float(np.abs(exact).max()) <= _LARGEST:
        raise InvalidParameter("values", "larger ones", f"be within {_LARGEST:.3g} steps of 0")
    whole = np.floor(exact)
    # Adding a half first could round up what lies just under it.
    return np.asarray(whole + (exact - whole >= 0.5))


def series_lattice(sensitivity: float, spread: float, inflated: float = 0.01) -> tuple[float, int]:
    """The step of the lattice, a power of two that is fine against the noise.

    Args:
        sensitivity: The most that two values may be apart.
        spread: Deviation of the noise.
        inflated: How much larger whole steps may make the sensitivity, as a part of it.

    Returns:
        The step, and how many of them two values may be apart.
    """
    width = checks.positive("sensitivity", sensitivity)
    if not (min(width, checks.positive("spread", spread)) > 1e-150 and width < 1e150):
        raise InvalidParameter("sensitivity", sensitivity, "be neither tiny nor huge")
    step = 2.0 ** math.floor(math.log2(min(width, spread / _FINE)))
    for _ in range(_FINER):
        if math.ceil(width / step) * step <= width * (1 + inflated):
            break
        step /= 2
    steps = math.ceil(width / step)
    if steps > _MOST_STEPS:
        raise InvalidParameter("deviation", spread, "be larger against the sensitivity")
    return step, steps


def table_reach(deviation: float, steps: int) -> int:
    """How far a table goes to both sides, for values that many steps apart."""
    apart = min(max(steps, _NEAR * deviation), _FAR * deviation)
    reach = math.ceil(_TAIL * deviation + apart) + 2
    if 2 * reach + 1 > _MOST_CELLS:
        raise InvalidParameter("deviation", deviation, "be smaller against the sensitivity")
    return reach


def table_error(reach: int, deviation: float) -> float:
    """Bound on the log quotient of a weight and a mass that is an exponential of a square.

    Of the exponent, of five points of a cell, and of a weight that is cut after 54 bits.
    """
    far = reach / deviation
    # The tenth derivative is what five points miss; on a fine lattice it is nothing.
    missed = 4e-12 * ((far * far + 10) / deviation**2) ** 5
    return (16 + 2 * far * far) * 2.0**-50 + missed


@lru_cache(maxsize=32)
def _geometric(epsilon: float) -> DiscreteLaplace:
    return DiscreteLaplace.at(epsilon)


@lru_cache(maxsize=16)
def _normal_table(deviation: float, steps: int) -> Ints:
    """Running sums of the weights of the cells around whole numbers of steps, in order."""
    return first_digits(_normal_shares(deviation, table_reach(deviation, steps)))


def _normal_shares(deviation: float, reach: int) -> Floats:
    """The density, integrated over each cell: differences of probabilities would cancel."""
    offsets, shares = np.polynomial.legendre.leggauss(5)
    places = np.arange(reach + 1)
    half = np.zeros(reach + 1)
    for offset, share in zip(offsets, shares, strict=True):
        half += share * np.exp(-0.5 * ((places + 0.5 * offset) / deviation) ** 2)
    return np.concatenate([half[:0:-1], half])
