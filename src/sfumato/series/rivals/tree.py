r"""Running sums under event-level privacy: the binary tree, and the square root that followed it.

Both protect one value of the series at a time, and both are made for sums. What leaves here is,
by default, the difference of two sums that follow each other, $b_t = B_t - B_{t-1}$: a released
series, so that the two can be set beside methods that release one.

Values are moved to a lattice first, at random up or down so that sums of many are not biased: the
fraction of a step is the chance of going up. With the same coin, two values that are at most the
sensitivity apart stay at most that many whole steps apart, so this costs no privacy. From there
on everything is counted in whole numbers until the result leaves, and nothing depends on how
floating point rounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, assert_never

import numpy as np
from scipy import signal

from sfumato.core import checks
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import ApproxDP, PureDP
from sfumato.core.guard import Guarded, guarded
from sfumato.core.numerics import UNIT, up
from sfumato.core.randomness import Randomness, StreamCoins
from sfumato.noise.series_noise import GaussianNoise, LaplaceNoise, on_lattice
from sfumato.series.series_account import gaussian_delta, gaussian_ratio
from sfumato.series.series_release import Releasing, SeriesMethod, Unit

HAIR = 2.0**-36
"""What a budget gives up so that integers rounded from it keep to it."""
_PART_BITS = 10
"""A step is divided by this many bits before a value goes up or down."""
_FOR_SLACK = 1e-3
"""The share of delta that the rounding of probabilities may take."""
_MOST_STEPS = 2.0**17
"""Steps of the lattice in a deviation of the noise, at most: its table stays small."""
_LEAST_BITS = 6
"""Bits of the first coefficient, at least; more where the last ones are small."""
_LEAST_HALVINGS, _MOST_HALVINGS, _INFLATED = 3, 8, 0.01
"""Of the sensitivity, so that values are rounded finely and it is not much enlarged."""
_LARGEST_SUM = 2**50


class Told(StrEnum):
    """What leaves at each step: the sum so far, or its difference to the one before."""

    VALUES = "values"
    SUMS = "sums"


class _Sums(SeriesMethod[Releasing]):
    """A method of releasing running sums of at most `length` values."""

    unit = Unit.EVENT
    length: int
    told: Told

    def _released(self, values: Floats, coins: StreamCoins) -> Floats:
        _within(values.size, self.length)
        return super()._released(values, coins)


@dataclass(frozen=True)
class BinaryTree(_Sums):
    r"""Running sums by a binary tree: pure, and little to remember.

    After $t$ values the sum is made of one noisy node for each 1 in the binary digits of $t$. A
    value lies in at most one node of each of $\lfloor \log_2 T \rfloor + 1$ levels, so every node
    may leak that part of the budget. A step draws one number and costs $O(\log T)$; only the noise
    of one node a level is kept (with the sum so far, if sums are told): as secret as the values.

    Attributes:
        noise: What a node gets.
        length: The number of values at most, $T$.
        told: What leaves.

    Examples:
        >>> from sfumato.core.randomness import seeded
        >>> from sfumato.core.purpose import Purpose
        >>> tree = BinaryTree.at(sensitivity=1.0, epsilon=2.0, length=100)
        >>> tree.levels, tree.guarantee <= PureDP(2.0)
        (7, True)
        >>> tree.release(np.ones(100), seeded(1), Purpose.SIMULATION).shape
        (100,)
        >>> sums = BinaryTree.at(1.0, 2.0, 100, told=Told.SUMS)
        >>> np.sqrt(sums.variances()[[0, 62, 63]])  # nodes: 1, 6 and 1
        array([ 4.94..., 12.1..., 4.94...])

    References:
        [Chan2011, Alg. 2]
    """

    name: ClassVar[str] = "binary tree"

    noise: LaplaceNoise
    length: int
    told: Told = Told.VALUES

    def __post_init__(self) -> None:
        checks.count("length", self.length)
        object.__setattr__(self, "told", _told(self.told))

    @property
    def sensitivity(self) -> float:
        """How far one value may be from what it could be instead."""
        return self.noise.sensitivity

    @classmethod
    def at(
        cls, sensitivity: float, epsilon: float, length: int, told: Told = Told.VALUES
    ) -> BinaryTree:
        """The tree with a given pure leakage of each value.

        Args:
            sensitivity: How far one value may be from what it could be instead.
            epsilon: The whole budget of a value.
            length: The number of values at most.
            told: What leaves.
        """
        levels = checks.count("length", length).bit_length()
        budget = checks.epsilon("epsilon", epsilon) * (1 - HAIR)
        return cls(LaplaceNoise.at(sensitivity, budget / levels), length, told)

    @property
    def levels(self) -> int:
        """Levels of the tree, and nodes that a value lies in at most."""
        return self.length.bit_length()

    @property
    def guarantee(self) -> PureDP:
        """What all that leaves tells of one value: all levels together."""
        return PureDP(up(self.levels * self.noise.leakage.epsilon))

    def variances(self) -> Floats:
        """Variance of the noise in what leaves at each step."""
        steps = np.arange(1, self.length + 1)
        match self.told:
            case Told.SUMS:
                nodes = _ones(steps)
            case Told.VALUES:
                # One node comes; below it, those of all lower levels go.
                nodes = _ones(steps ^ (steps - 1))
            case _:
                assert_never(self.told)
        return np.asarray(nodes * self.noise.variance)

    def _begin(self, coins: StreamCoins) -> Releasing:
        """Begin a series."""
        return _Tree(self, coins.at(0))


class _Tree(Guarded):
    """A tree that grows: the noise of its open nodes, one a level."""

    def __init__(self, method: BinaryTree, randomness: Randomness) -> None:
        self._method, self._randomness = method, randomness
        self._nodes = [0] * method.levels
        self._time = self._total = self._sum = 0

    @guarded
    def step(self, value: float) -> float:
        """Release one value."""
        noise = self._method.noise
        _within(self._time + 1, self._method.length)
        place = randomly_placed(value, noise.step, self._randomness)
        self._time += 1
        # The node that ends now takes the place of all lower ones.
        level = (self._time & -self._time).bit_length() - 1
        self._nodes[:level] = [0] * level
        self._nodes[level] = int(noise.noise.draw(1, self._randomness)[0])
        before, self._total = self._total, sum(self._nodes)
        match self._method.told:
            case Told.SUMS:
                self._sum += place
                return noise.step * (self._sum + self._total)
            case Told.VALUES:
                return noise.step * (place + self._total - before)
            case _:
                assert_never(self._method.told)


@dataclass(frozen=True, eq=False)
class SquareRootTree(_Sums):
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
        >>> round(short.column, 2), short.memory, tree.memory
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
        object.__setattr__(self, "told", _told(self.told))

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
            steps = parts * float(np.linalg.norm(whole)) / ratio * (1 + 64 * UNIT)
            if 64 <= steps <= _MOST_STEPS:
                unit = step / float(whole[0])
                made = cls(GaussianNoise.at(unit, unit * steps), whole, parts, count, level, told)
                if made.guarantee.delta <= failing:
                    return made
        rule = f"be larger, or the band of {reach} smaller, for {count} values"
        raise InvalidParameter("delta", delta, rule)

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
    def memory(self) -> int:
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

    def _begin(self, coins: StreamCoins) -> Releasing:
        """Begin a series."""
        return _Root(self, coins.at(0))


class _Root(Guarded):
    """A series on its way through the square root, noise, and the root's inverse and sums."""

    def __init__(self, method: SquareRootTree, randomness: Randomness) -> None:
        self._method, self._randomness = method, randomness
        self._step = method.noise.step * float(method.coefficients[0])
        self._limit = _LARGEST_SUM // int(method.coefficients.sum())
        self._places = np.zeros(method.memory, dtype=np.int64)
        self._results = np.zeros(method.memory)
        self._time, self._sum = 0, 0.0

    @guarded
    def step(self, value: float) -> float:
        """Release one value."""
        method = self._method
        _within(self._time + 1, method.length)
        place = randomly_placed(value, self._step, self._randomness)
        if abs(place) > self._limit:
            raise InvalidParameter("value", "a larger one", f"be within {self._limit} steps of 0")
        now = self._time % method.memory
        self._places[now] = place
        mixed = method.noise.step * float(self._mix(self._places, now, 0))
        noisy = float(method.noise.perturb(mixed, self._randomness)) / method.noise.step
        result = (noisy - float(self._mix(self._results, now, 1))) / float(method.coefficients[0])
        self._results[now] = result
        self._time += 1
        self._sum += result
        match method.told:
            case Told.SUMS:
                return self._step * self._sum
            case Told.VALUES:
                return self._step * result
            case _:
                assert_never(method.told)

    def _mix(self, ring: Ints | Floats, now: int, start: int) -> np.int64 | np.float64:
        """The last entries of a ring by the coefficients, from the newest or the one before."""
        weights = self._method.coefficients
        recent, older = ring[: now + 1 - start][::-1], ring[:now:-1]
        known = start + recent.size
        first = np.dot(weights[start:known], recent)
        second = np.dot(weights[known : known + older.size], older)
        return first + second  # type: ignore[no-any-return]


def randomly_placed(value: float, step: float, randomness: Randomness) -> int:
    """A value in whole steps, up or down at random so that the mean is right.

    Examples:
        >>> from sfumato.core.randomness import seeded
        >>> coins = seeded(1)
        >>> sum(randomly_placed(0.3, 1.0, coins) for _ in range(1000)) / 1000
        0.29...
    """
    parts = int(on_lattice(value, step / 2**_PART_BITS))
    return (parts + (randomness.word() >> (64 - _PART_BITS))) >> _PART_BITS


def _lattices(width: float, count: int, spread: float) -> Iterator[tuple[Ints, float]]:
    """Coefficients, and steps of values: finest first, until values are as coarse as they may."""
    largest = 2.0 ** math.floor(math.log2(width))
    bits = max(_LEAST_BITS, math.ceil(0.5 * math.log2(count)) + 2)
    for whole in (_coefficients(count, fewer) for fewer in range(bits, bits - 3, -1)):
        # Values rounded at random must not blur a sum more than the noise does.
        wanted = spread * float(whole[0]) / (2 * float(np.linalg.norm(whole)))
        halvings = max(_LEAST_HALVINGS, math.ceil(math.log2(wanted)))
        while halvings < _MOST_HALVINGS and math.ceil(width / largest * 2**halvings) > (
            width / largest * 2**halvings * (1 + _INFLATED)
        ):
            halvings += 1
        yield from ((whole, largest / 2**each) for each in range(halvings, -1, -1))


def _ones(numbers: Ints) -> Ints:
    """How many binary digits of each number are 1."""
    digits = range(int(numbers.max()).bit_length())
    return np.asarray(sum(numbers >> place & 1 for place in digits))


def _told(told: Told) -> Told:
    if told not in tuple(Told):
        raise InvalidParameter("told", told, f"be one of {', '.join(Told)}")
    return Told(told)


def _within(count: int, length: int) -> None:
    if count > length:
        raise InvalidParameter("series", f"value {count}", f"have at most {length} values")


def _coefficients(count: int, bits: int) -> Ints:
    """The square root's coefficients in whole parts, so many bits for the first."""
    k = np.arange(1, count)
    exact = np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])
    return np.asarray(np.rint(np.ldexp(exact, bits)), dtype=np.int64)
