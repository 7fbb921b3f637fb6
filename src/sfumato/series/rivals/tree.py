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

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, assert_never

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import PureDP
from sfumato.core.numerics import up
from sfumato.core.randomness import Randomness
from sfumato.noise.laplace_noise import LaplaceNoise
from sfumato.noise.number_noise import on_lattice
from sfumato.series.memory import Memory
from sfumato.series.series_release import SecretEvents
from sfumato.series.series_spec import SeriesSpec

HAIR = 2.0**-36
"""What a budget gives up so that integers rounded from it keep to it."""
# A step is divided by this many bits before a value goes up or down.
_PART_BITS = 10


class Told(StrEnum):
    """What leaves at each step: the sum so far, or its difference to the one before."""

    VALUES = "values"
    SUMS = "sums"


@dataclass(slots=True)
class Nodes(Memory):
    """A tree that grows: as secret as the values.

    Attributes:
        noise: That of the open nodes, one a level, in steps.
        sum: Of all values, in steps; only if sums are told.
    """

    noise: list[int]
    sum: int = 0


@dataclass(frozen=True)
class BinaryTree(SecretEvents[Nodes]):
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
        object.__setattr__(self, "told", told_of(self.told))

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

    @classmethod
    def of(cls, spec: SeriesSpec) -> BinaryTree:
        """For a spec."""
        return cls.at(spec.sensitivity, spec.pure(1), spec.length)

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

    @property
    def error_variances(self) -> Floats:
        """All of the error is noise."""
        return self.variances()

    def memory(self) -> Nodes:
        """No node is open."""
        return Nodes([0] * self.levels)

    def answer(
        self, memory: Nodes, time: int, value: float, coins: Randomness
    ) -> tuple[float, float]:
        """The sum so far, or its last difference, with the noise of its nodes."""
        place = randomly_placed(value, self.noise.step, coins)
        # The node that ends now takes the place of all lower ones.
        level = ((time + 1) & -(time + 1)).bit_length() - 1
        # A difference of two sums: nodes that stay open cancel.
        before = sum(memory.noise)
        memory.noise[: level + 1] = [0] * level + [int(self.noise.noise.draw(1, coins)[0])]
        total = sum(memory.noise)
        match self.told:
            case Told.SUMS:
                memory.sum += place
                whole = memory.sum + total
            case Told.VALUES:
                whole = place + total - before
            case _:
                assert_never(self.told)
        return self.noise.step * whole, self.guarantee.epsilon


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


def _ones(numbers: Ints) -> Ints:
    """How many binary digits of each number are 1."""
    digits = range(int(numbers.max()).bit_length())
    return np.asarray(sum(numbers >> place & 1 for place in digits))


def told_of(told: Told) -> Told:
    """What leaves, by name."""
    if told not in tuple(Told):
        raise InvalidParameter("told", told, f"be one of {', '.join(Told)}")
    return Told(told)
