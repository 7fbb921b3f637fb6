r"""Noise for numbers of any size, on a lattice fine against the noise: exact, and fast for many.

A value is moved to the nearest multiple of a step, a power of two, and a whole number of steps is
added. Dividing by a power of two is exact, so two values that differ by at most the sensitivity
differ by at most a known whole number of steps, whatever floating point does, and the outputs
that can occur are the same for all of them.

Laplace noise is two-sided geometric: pure, on all whole numbers. Gaussian noise is the normal
distribution rounded to the lattice, which is a function of the Gaussian mechanism's output; so
the exact curve of that mechanism holds, but for the rounding of its probabilities to integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _checks
from sfumato._numerics import up
from sfumato.errors import InvalidParameter
from sfumato.guarantees import PureDP
from sfumato.mechanisms.discrete_laplace import LEAST_EPSILON, DiscreteLaplace
from sfumato.randomness import BITS, Randomness, integer_weights

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_FINE = 64.0
"""Steps of the lattice in a deviation of the noise, at least."""
_TAIL = 9.0
"""Deviations that a table reaches; what lies beyond has less than one unit of weight."""
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
        budget = _checks.epsilon("epsilon", epsilon)
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

    __slots__ = ()
    step: float
    steps: int
    _cumulative: Ints

    @property
    def sensitivity(self) -> float:
        """How far apart two values may be: what the leakage is for."""
        return self.step * self.steps

    @property
    def slack(self) -> float:
        """Total variation between what is sampled and the noise that it stands for, at most."""
        # Half a unit for each cell, what is left over of them, and errors of the probabilities.
        return (self._cumulative.size + 4) * 2.0**-BITS + 2.0**-50

    def perturb(self, values: ArrayLike, randomness: Randomness) -> Floats:
        """Values with noise, one draw each."""
        places = on_lattice(values, self.step)
        coins = (randomness.words(places.size) >> np.uint64(64 - BITS)).astype(np.int64)
        drawn = np.searchsorted(self._cumulative, coins, side="right") - self._cumulative.size // 2
        return self.step * (places + drawn.reshape(places.shape))


@dataclass(frozen=True, slots=True, eq=False)
class GaussianNoise(TableNoise):
    """Normal noise, rounded to a lattice.

    Attributes:
        step: Distance of the points of the lattice.
        steps: How many steps two values may be apart.
        deviation: Standard deviation of the noise before it is rounded, in steps.

    Examples:
        >>> noise = GaussianNoise.at(sensitivity=1.0, deviation=4.0)
        >>> noise.ratio, noise.slack < 1e-14
        (0.25, True)
        >>> noise.variance
        16.0
    """

    step: float
    steps: int
    deviation: float
    _cumulative: Ints = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_lattice(self.step, self.steps)
        _checks.positive("deviation", self.deviation)
        # Made here, from what the ratio is computed from: the two cannot differ.
        object.__setattr__(self, "_cumulative", _normal_table(self.deviation))

    @classmethod
    def at(cls, sensitivity: float, deviation: float) -> GaussianNoise:
        """The noise of a given standard deviation, for values that far apart."""
        size = _checks.positive("deviation", deviation)
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

    def perturb_one(self, value: float, randomness: Randomness) -> float:
        """One value with noise: what `perturb` gives with the same coins, without arrays."""
        exact = value / self.step
        if not abs(exact) < _LARGEST:
            raise InvalidParameter("values", "something else", "be finite numbers, not too large")
        whole = math.floor(exact)
        place = whole + (exact - whole >= 0.5)
        coin = randomness.word() >> (64 - BITS)
        drawn = int(self._cumulative.searchsorted(coin, side="right"))
        return self.step * (place + drawn - self._cumulative.size // 2)


def check_lattice(step: float, steps: int) -> None:
    """Say that a lattice must have a power of two for its step: division by it is exact."""
    if _checks.positive("step", step) != 2.0 ** math.floor(math.log2(step)):
        raise InvalidParameter("step", step, "be a power of two")
    _checks.count("steps", steps)


def on_lattice(values: ArrayLike, step: float) -> Floats:
    """The nearest whole number of steps, a power of two, for each value; halves go up.

    Examples:
        >>> on_lattice([0.3, 0.25, -0.25, 0.24999999999999997], 0.5)
        array([1., 1., 0., 0.])
    """
    given = _checks.numbers("values", values)
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
    width = _checks.positive("sensitivity", sensitivity)
    if not (min(width, _checks.positive("spread", spread)) > 1e-150 and width < 1e150):
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


def noise_table(shares: Floats) -> Ints:
    """Running sums of integer weights of whole numbers around 0, in proportion to some shares."""
    if shares.size > _MOST_CELLS:
        raise InvalidParameter("deviation", shares.size, "be smaller against the sensitivity")
    cumulative = integer_weights((shares / shares.sum())[None, :])[0].cumsum()
    cumulative.setflags(write=False)
    return np.asarray(cumulative)


@lru_cache(maxsize=32)
def _geometric(epsilon: float) -> DiscreteLaplace:
    return DiscreteLaplace.at(epsilon)


@lru_cache(maxsize=16)
def _normal_table(deviation: float) -> Ints:
    """Running sums of the weights of the cells around whole numbers of steps, in order."""
    reach = math.ceil(_TAIL * deviation)
    if 2 * reach + 1 > _MOST_CELLS:
        raise InvalidParameter("deviation", deviation, "be smaller against the sensitivity")
    # The density, integrated over each cell: differences of probabilities would cancel.
    offsets, shares = np.polynomial.legendre.leggauss(5)
    places = np.arange(reach + 1)
    half = np.zeros(reach + 1)
    for offset, share in zip(offsets, shares, strict=True):
        half += share * np.exp(-0.5 * ((places + 0.5 * offset) / deviation) ** 2)
    return noise_table(np.concatenate([half[:0:-1], half]))
