"""Running sums with normal noise that is correlated through a square root of summing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, assert_never

import numpy as np

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import ApproxDP
from sfumato.core.numerics import UNIT, up
from sfumato.core.randomness import Randomness
from sfumato.noise.curves import gaussian_delta, gaussian_ratio
from sfumato.noise.gaussian_noise import GaussianNoise
from sfumato.series.memory import Memory
from sfumato.series.rivals.tree import Told, randomly_placed, told_of
from sfumato.series.series_release import SecretEvents
from sfumato.series.series_spec import SeriesSpec

# The share of delta that the rounding of probabilities may take.
_FOR_SLACK = 1e-3
# Steps of the lattice in a deviation of the noise, at most: its table stays small.
_MOST_STEPS = 2.0**17
# Bits of the first coefficient, at least; more where the last ones are small.
_LEAST_BITS = 6
# Of the sensitivity, so that values are rounded finely and it is not much enlarged.
_LEAST_HALVINGS, _MOST_HALVINGS, _INFLATED = 3, 8, 0.01
_LARGEST_SUM = 2**50


@dataclass(slots=True)
class Rings(Memory):
    """The last values, in steps, and the last results; as secret as the values.

    Attributes:
        places: Of the values.
        results: After the root's inverse.
        sum: Of all results.
    """

    places: Ints
    results: Floats
    sum: float = 0.0


@dataclass(frozen=True, eq=False)
class SquareRootTree(SecretEvents[Rings]):
    r"""Running sums with normal noise that is correlated through a square root of summing.

    The matrix of running sums is $A = C C$ with $C$ lower triangular and Toeplitz, its
    coefficients those of $(1-x)^{-1/2}$: $c_0 = 1$, $c_k = c_{k-1}(2k-1)/(2k)$. Independent
    normal noise $z$ is added to $C x$, and the rest is done to the result: $C(Cx + z) = Ax + Cz$.
    One value moves $Cx$ by its sensitivity times the norm of a column, $\sqrt{\sum_k c_k^2}$.

    Here $C$ has its coefficients rounded to whole parts, so that $C x$ lies on the lattice of the
    noise exactly, and what follows the noise is $A C^{-1}$ for this very $C$: sums stay unbiased,
    the guarantee is that of the integers, and the error is within 1 % of the exact root's (3 %
    where a small epsilon or delta, or a long series, allows coarser parts only).

    Without a band the last `length` values and results are remembered: $O(T)$ memory and time a
    step. With one, $C$ has that many coefficients and no more; $C^{-1}$ is then a recursion over
    as many results, so memory and time a step are bounded, the column is shorter (less noise at
    first), and the error of sums grows with $\sqrt{T / \text{band}}$ once series are much longer.

    Attributes:
        noise: What each entry of $Cx$ gets; its step is that of the lattice.
        coefficients: Of $C$, in whole parts of the first.
        parts: Steps that the sensitivity has for values; each is `coefficients[0]` steps of noise.
        length: The number of values at most, $T$.
        epsilon: Where the curve of the noise is read.
        told: What leaves.

    Examples:
        >>> from sfumato.core.randomness import seeded
        >>> from sfumato.core.purpose import Purpose
        >>> tree = SquareRootTree.at(1.0, epsilon=1.0, delta=1e-6, length=100)
        >>> tree.guarantee <= ApproxDP(1.0, 1e-6), round(tree.column, 2)
        (True, 1.59)
        >>> short = SquareRootTree.at(1.0, epsilon=1.0, delta=1e-6, length=100, band=4)
        >>> round(short.column, 2), short.band, tree.band
        (1.22, 4, 100)
        >>> short.release(np.ones(100), seeded(1), Purpose.SIMULATION).shape
        (100,)

    References:
        [Fichtenberger2023]
    """

    name: ClassVar[str] = "square-root tree"

    noise: GaussianNoise
    coefficients: Ints = field(repr=False)
    parts: int
    length: int
    epsilon: float
    told: Told = Told.VALUES

    def __post_init__(self) -> None:
        checks.count("length", self.length)
        checks.count("parts", self.parts)
        checks.epsilon("epsilon", self.epsilon)
        given = np.array(self.coefficients)
        if given.ndim != 1 or given.dtype.kind != "i" or not 0 < given.size <= self.length:
            rule = f"be from 1 to {self.length} whole numbers"
            raise InvalidParameter("coefficients", given.shape, rule)
        if given[-1] < 0 or np.any(np.diff(given) > 0) or given[0] <= 0:
            raise InvalidParameter("coefficients", "others", "fall from above 0, not below 0")
        if self.noise.steps != 1:
            raise InvalidParameter("noise", self.noise.steps, "be made for one step")
        given.setflags(write=False)
        object.__setattr__(self, "coefficients", given)
        object.__setattr__(self, "told", told_of(self.told))

    @property
    def sensitivity(self) -> float:
        """How far one value may be from what it could be instead."""
        return self.parts * float(self.coefficients[0]) * self.noise.step

    @classmethod
    def at(
        cls,
        sensitivity: float,
        epsilon: float,
        delta: float,
        length: int,
        band: int | None = None,
        told: Told = Told.VALUES,
    ) -> SquareRootTree:
        """The method that promises a given approximate privacy of each value.

        Args:
            sensitivity: How far one value may be from what it could be instead.
            epsilon: The level.
            delta: What may fail at that level.
            length: The number of values at most.
            band: How many coefficients to keep; all, if none is given.
            told: What leaves.

        Raises:
            InvalidParameter: If the rounding of probabilities alone would take too much of delta.
        """
        width = checks.positive("sensitivity", sensitivity)
        level = checks.epsilon("epsilon", epsilon)
        failing = checks.proper_fraction("delta", delta)
        count = checks.count("length", length)
        reach = count if band is None else min(count, checks.count("band", band))
        ratio = gaussian_ratio(level, (1 - _FOR_SLACK) * failing)
        for whole, step in _lattices(width, reach, ratio * math.sqrt(count)):
            parts = math.ceil(width / step)
            steps = parts * math.sqrt(portable.dot(whole, whole)) / ratio * (1 + 64 * UNIT)
            if 64 <= steps <= _MOST_STEPS:
                unit = step / float(whole[0])
                made = cls(GaussianNoise.at(unit, unit * steps), whole, parts, count, level, told)
                if made.guarantee.delta <= failing:
                    return made
        rule = f"be larger, or the band of {reach} smaller, for {count} values"
        raise InvalidParameter("delta", delta, rule)

    @classmethod
    def of(cls, spec: SeriesSpec) -> SquareRootTree:
        """For a spec."""
        return cls.at(spec.sensitivity, spec.epsilon, spec.delta, spec.length)

    @property
    def column(self) -> float:
        """Euclidean norm of a column of the matrix, its first coefficient being 1."""
        return self._norm / float(self.coefficients[0])

    @property
    def _norm(self) -> float:
        return up(math.sqrt(sum(int(each) ** 2 for each in self.coefficients)))

    @property
    def ratio(self) -> float:
        """How far one value moves all that is noised, over the deviation; rounded up."""
        return self.parts * self._norm * self.noise.ratio * (1 + 4 * UNIT)

    @property
    def band(self) -> int:
        """How many values and results are remembered at most."""
        return int(self.coefficients.size)

    @property
    def guarantee(self) -> ApproxDP:
        """What all that leaves tells of one value, from the noise that is drawn."""
        moved = self.parts * int(self.coefficients[0])
        slack, error = self.length * self.noise.beyond(moved), self.length * self.noise.error
        return ApproxDP(self.epsilon, gaussian_delta(self.ratio, self.epsilon, slack, error))

    def variances(self) -> Floats:
        """Variance of the noise in what leaves at each step."""
        from scipy import signal  # at first use: it takes half a second to load

        impulse = np.zeros(self.length)
        impulse[0] = 1.0
        row = signal.lfilter([1.0], self.coefficients / self.coefficients[0], impulse)
        match self.told:
            case Told.SUMS:
                row = np.cumsum(row)
            case Told.VALUES:
                pass
            case _:
                assert_never(self.told)
        return np.asarray(np.cumsum(row**2) * self.noise.variance)

    @property
    def error_variances(self) -> Floats:
        """All of the error is noise."""
        return self.variances()

    def memory(self) -> Rings:
        """Nothing was mixed yet."""
        return Rings(np.zeros(self.band, dtype=np.int64), np.zeros(self.band))

    def answer(
        self, memory: Rings, time: int, value: float, coins: Randomness
    ) -> tuple[float, float]:
        """The value through the square root, noise, and the root's inverse."""
        first, limit = int(self.coefficients[0]), _LARGEST_SUM // int(self.coefficients.sum())
        place = randomly_placed(value, self.noise.step * first, coins)
        if abs(place) > limit:
            raise InvalidParameter("value", "a larger one", f"be within {limit} steps of 0")
        # Rings: only as many values are remembered as the matrix has coefficients.
        now = time % self.band
        memory.places[now] = place
        mixed = self.noise.step * float(self._mix(memory.places, now, 0))
        # The mixture is a whole number of steps: rounding to the lattice moves nothing.
        noisy = float(self.noise.perturb(mixed, coins)) / self.noise.step
        result = (noisy - float(self._mix(memory.results, now, 1))) / first
        memory.results[now] = result
        memory.sum += result
        whole = memory.sum if self.told is Told.SUMS else result
        return self.noise.step * first * whole, self.epsilon

    def _mix(self, ring: Ints | Floats, now: int, start: int) -> np.int64 | np.float64:
        """The last entries of a ring by the coefficients, from the newest or the one before."""
        weights = self.coefficients
        recent, older = ring[: now + 1 - start][::-1], ring[:now:-1]
        known = start + recent.size
        first = (weights[start:known] * recent).sum()
        second = (weights[known : known + older.size] * older).sum()
        return first + second  # type: ignore[no-any-return]


def _lattices(width: float, count: int, spread: float) -> Iterator[tuple[Ints, float]]:
    """Coefficients, and steps of values: finest first, until values are as coarse as they may."""
    largest = 2.0 ** math.floor(portable.log2(width))
    bits = max(_LEAST_BITS, math.ceil(0.5 * portable.log2(count)) + 2)
    for whole in (_coefficients(count, fewer) for fewer in range(bits, bits - 3, -1)):
        # Values rounded at random must not blur a sum more than the noise does.
        wanted = spread * float(whole[0]) / (2 * math.sqrt(portable.dot(whole, whole)))
        halvings = max(_LEAST_HALVINGS, math.ceil(portable.log2(wanted)))
        while halvings < _MOST_HALVINGS and math.ceil(width / largest * 2**halvings) > (
            width / largest * 2**halvings * (1 + _INFLATED)
        ):
            halvings += 1
        yield from ((whole, largest / 2**each) for each in range(halvings, -1, -1))


def _coefficients(count: int, bits: int) -> Ints:
    """The square root's coefficients in whole parts, so many bits for the first."""
    k = np.arange(1, count)
    exact = np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])
    return np.asarray(np.rint(np.ldexp(exact, bits)), dtype=np.int64)
