r"""Noise for numbers of any size, on a lattice fine against the noise: exact, and fast for many.

A value is moved to the nearest multiple of a step, a power of two, and a whole number of steps is
added. Dividing by a power of two is exact, so two values that differ by at most the sensitivity
differ by at most a known whole number of steps, whatever floating point does, and the outputs
that can occur are the same for all of them.

Noises other than Laplace are drawn from tables of integer weights. These are as long as the
smallest probability asks for, so that rounding changes every probability by a tiny *factor*: it
adds a tiny term to epsilon, whatever epsilon is.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import ApproxDP, PureDP
from sfumato.core.numerics import UNIT
from sfumato.core.randomness import BITS, Randomness
from sfumato.noise.long_weights import first_digits, settled

# Steps of the lattice in a deviation of the noise, at least.
_FINE = 64.0
# Deviations of noise that a table covers around every value that the true one could be: beyond lies
# less than 2e-22.
_TAIL = 10.1
# Deviations that values may be apart: all tables cover the one, none more than the other.
_NEAR, _FAR = 4.0, 26.0
# Steps from 0 up to which every whole number is a float, and its half too.
_LARGEST = 2.0**52
_FINER, _MOST_STEPS = 8, 2**40
INFLATED = (0.01, 0.03, 0.1, 0.5)
"""How much larger whole steps may make the sensitivity; more where a budget is tiny."""
# Cells of a table: 128 MB of integers.
_MOST_CELLS = 2**24
_HAIR = 1 + 2.0**-40


@dataclass(frozen=True, slots=True, eq=False)
class NumberNoise(ABC):
    """Noise for numbers that are at most some steps of a lattice apart.

    Attributes:
        step: Distance of the points of the lattice, a power of two: division by it is exact.
        steps: How many steps two values may be apart.
    """

    pure: ClassVar[bool] = False
    scaled_by_curve: ClassVar[bool] = False
    """Whether the Gaussian curve gives its scale at once, but for whole steps."""
    step: float
    steps: int

    def __post_init__(self) -> None:
        if checks.positive("step", self.step) != 2.0 ** math.floor(portable.log2(self.step)):
            raise InvalidParameter("step", self.step, "be a power of two")
        checks.count("steps", self.steps)

    @classmethod
    @abstractmethod
    def at(cls, sensitivity: float, size: float, /) -> Self:
        """The noise for values that far apart: of an epsilon if it is pure, else of a deviation."""

    @classmethod
    @abstractmethod
    def together(cls, counts: Counter[NumberNoise], delta: float) -> PureDP | ApproxDP:
        """What draws from noises of this kind promise to a person who is in all of them."""

    @property
    def sensitivity(self) -> float:
        """How far apart two values may be: what the leakage is for."""
        return self.step * self.steps

    @property
    @abstractmethod
    def variance(self) -> float:
        """Variance of what is added."""

    @property
    @abstractmethod
    def charge(self) -> float:
        """What one draw adds to an account of its kind, rounded up."""

    @abstractmethod
    def perturb(self, values: ArrayLike, randomness: Randomness) -> Floats:
        """Values with noise, one draw each."""

    def perturb_one(self, value: float, randomness: Randomness) -> float:
        """One value with noise: what `perturb` gives with the same coins."""
        return float(self.perturb(value, randomness))


class TableNoise(NumberNoise):
    """Noise that is drawn from a table of integer weights."""

    __slots__ = ("_table",)  # no field: all of it follows from those
    _table: Ints

    @property
    @abstractmethod
    def spread(self) -> float:
        """Deviation in steps: noise beyond `z` of them has at most `2 exp(-z^2/2)` of the mass."""

    @abstractmethod
    def shares(self) -> Floats:
        """The masses that the weights of the table stand for, in order."""

    @property
    def reach(self) -> int:
        """How many steps the table goes to both sides."""
        return table_reach(self.spread, self.steps)

    @property
    def error(self) -> float:
        """Bound on the log quotient of any weight in the table and the mass it stands for.

        For a mass that is an exponential of a square: of the exponent, of five points of a cell,
        and of a weight that is cut after 54 bits.
        """
        far = self.reach / self.spread
        # The tenth derivative is what five points miss; on a fine lattice it is nothing.
        missed = 4e-12 * ((far * far + 10) / self.spread**2) ** 5
        return (16 + 2 * far * far) * 2.0**-50 + missed

    @property
    def slack(self) -> float:
        """Probability of noise that the table does not hold for all values it could come from."""
        return self.beyond(self.steps)

    def beyond(self, steps: int) -> float:
        """The same for values that are another number of steps apart."""
        near = (self.reach - steps - 1) / (self.spread * _HAIR)
        return min(1.0, 2.0 * portable.exp(-0.5 * near * near) * _HAIR) if near > 0 else 1.0

    @property
    def _cumulative(self) -> Ints:
        """First digits of the running sums of the weights; made when noise is first drawn."""
        try:
            return self._table
        except AttributeError:
            object.__setattr__(self, "_table", _table(type(self), *self._parameters))
            return self._table

    @property
    def _parameters(self) -> tuple[float, ...]:
        """All fields but the step: what the table depends on."""
        return tuple(getattr(self, part.name) for part in fields(self))[1:]

    def perturb(self, values: ArrayLike, randomness: Randomness) -> Floats:
        """Values with noise, one draw each."""
        places, table = on_lattice(values, self.step), self._cumulative
        coins = (randomness.words(places.size) >> np.uint64(64 - BITS)).astype(np.int64)
        drawn = np.searchsorted(table, coins, side="right")
        tied = (drawn > 0) & (table[np.maximum(drawn, 1) - 1] == coins)
        for place in np.flatnonzero(tied).tolist():
            drawn[place] = settled(self.shares(), table, int(coins[place]), randomness)
        return self.step * (places + (drawn - table.size // 2).reshape(places.shape))

    def perturb_one(self, value: float, randomness: Randomness) -> float:
        """One value with noise: what `perturb` gives with the same coins, without arrays."""
        exact, table = value / self.step, self._cumulative
        if not abs(exact) < _LARGEST:
            raise InvalidParameter("values", "something else", "be finite numbers, not too large")
        whole = math.floor(exact)
        coin = randomness.word() >> (64 - BITS)
        drawn = int(table.searchsorted(coin, side="right"))
        if drawn and table.item(drawn - 1) == coin:
            drawn = settled(self.shares(), table, coin, randomness)
        return self.step * (whole + (exact - whole >= 0.5) + drawn - table.size // 2)


def summed(counts: Counter[NumberNoise], *names: str) -> list[float]:
    """Sums of some properties over draws, rounded up."""
    # Sums of some thousand terms are right within some thousand units.
    more = 1 + (len(counts) + 16) * 2 * UNIT
    return [more * sum(n * getattr(noise, name) for noise, n in counts.items()) for name in names]


@lru_cache(maxsize=64)
def _table(kind: type[TableNoise], *parameters: float) -> Ints:
    """Equal noises share a table, whatever the step of their lattice is."""
    return first_digits(kind(1.0, *parameters).shares())  # type: ignore[arg-type]


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
    # Squares of what lies between stay clear of the ends of the floats.
    if not (min(width, checks.positive("spread", spread)) > 1e-150 and width < 1e150):
        raise InvalidParameter("sensitivity", sensitivity, "be neither tiny nor huge")
    step = 2.0 ** math.floor(portable.log2(min(width, spread / _FINE)))
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
