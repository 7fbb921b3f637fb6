"""Numbers told by their owners: finite channels on a lattice, with the usual shapes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats, Ints
from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter
from sfumato.core.local_leakage import local_leakage
from sfumato.core.randomness import Randomness

# A part of the budget that is left for the rounding to integers.
_HAIR = 2.0**-36
_TRIES = 24
# A far sign with less probability than this is not told: its weight would be a few units.
_LEAST_WEIGHT = 2.0**-40
_MOST_POINTS = 1024
# Steps of expectation-maximisation.
_ROUNDS = 500
_SETTLED = 1e-6
ONLY_SIGNS = 0.61
"""Up to this epsilon the hybrid mechanism tells a sign and nothing more."""


class LocalNumbers(ABC):
    """Reports of a number in [0, 1] by a finite channel.

    Attributes:
        channel: Reports by true points.
    """

    channel: Channel

    @classmethod
    @abstractmethod
    def near(cls, epsilon: float, points: int) -> Self:
        """Reports for a budget, before what rounding to integers adds is taken off it."""

    @classmethod
    def at(cls, epsilon: float, points: int) -> Self:
        """Reports of a given model-free leakage, for as much of it as their integers keep to."""
        if checks.count("points", points, at_least=2) > _MOST_POINTS:
            raise InvalidParameter("points", points, f"be at most {_MOST_POINTS}")
        budget = checks.epsilon("epsilon", epsilon)
        asked = budget * (1 - _HAIR)
        for attempt in range(_TRIES):
            made = cls.near(checks.epsilon("epsilon", asked), points)
            excess = local_leakage(made.channel).epsilon - budget
            if excess <= 0:
                return made
            # The rounding is another one each time; infinite if a weight was rounded to none.
            asked -= min(1.5**attempt * excess, 1.0)
        raise InvalidParameter("epsilon", epsilon, "be smaller: weights of 62 bits do not hold it")

    def drawn(self, share: float, randomness: Randomness) -> int:
        """The place of a report of a number."""
        place = math.floor(share * (self.channel.size - 1) + 0.5)
        return int(self.channel.draw([place], randomness.words(1))[0])


@dataclass(frozen=True, eq=False)
class SquareWave(LocalNumbers):
    r"""Reports that are near the truth with one probability and far with another.

    Of $d$ points, the true one being $i$, the reports $i, \dots, i + 2b$ out of $d + 2b$ have
    probability $e^\epsilon q$ each and all others $q$; report $j$ means point $j - b$.

    Attributes:
        channel: Reports by true points.
        reach: The $b$.

    Examples:
        >>> wave = SquareWave.at(1.0, 100)
        >>> wave.channel.weights.shape, wave.reach
        ((100, 150), 25)

    References:
        [Li2020]
    """

    channel: Channel
    reach: int

    def __post_init__(self) -> None:
        if checks.count("reach", self.reach, at_least=0) * 2 >= self.channel.outputs.size:
            raise InvalidParameter("reach", self.reach, "be less than half of the reports")

    @classmethod
    def near(cls, epsilon: float, points: int) -> Self:
        """The wave that is as wide as tells most of the truth."""
        large = portable.exp(epsilon)
        # Below this the formula loses its digits; its limit is a half.
        width = (
            (epsilon * large - large + 1) / (2 * large * (large - 1 - epsilon))
            if epsilon > 1e-3
            else 0.5
        )
        reach = math.floor(width * points)
        return cls(_window(epsilon, points, 2 * reach + 1), reach)

    def amount(self, report: int) -> float:
        """The number in [0, 1] that is nearest to what a report means."""
        return min(max((report - self.reach) / (self.channel.size - 1), 0.0), 1.0)

    def distribution(self, reports: Ints) -> Floats:
        """Shares of the points, from counts of reports: most likely, and smooth."""
        counted = np.asarray(reports, dtype=np.float64)
        if counted.shape != self.channel.outputs.shape or counted.sum() <= 0:
            raise InvalidParameter("reports", counted.shape, "count each report")
        rows = self.channel.probabilities
        shares = np.full(self.channel.size, 1 / self.channel.size)
        for _ in range(_ROUNDS):
            moved = shares * (portable.dot(rows, counted / (portable.dot(shares, rows))))
            padded = np.pad(moved / moved.sum(), 1, mode="edge")
            before, shares = shares, 0.25 * (padded[:-2] + 2 * padded[1:-1] + padded[2:])
            shares = shares / shares.sum()
            if np.abs(shares - before).sum() < _SETTLED:
                break
        return np.asarray(shares)


@dataclass(frozen=True, eq=False)
class HybridMechanism(LocalNumbers):
    r"""Reports of a number without bias: a far sign, or a point near the truth.

    With probability $1 - e^{-\epsilon/2}$ (0 up to an epsilon of 0.61) the piecewise mechanism
    tells a point, within a window around the truth with one density and beyond it with another;
    else one of two far signs is told, whose chances have the truth as their mean. On a lattice
    of $d$ points the window is of $w \approx (d-1) e^{-\epsilon/2}$ of $d - 1 + w$ outputs and
    moves by one with the truth, so that the mean stays linear in it, and amounts are scaled to fit.

    Attributes:
        channel: Reports by true points; the first two are the signs.
        amounts: What each report stands for, where the true points span [-1, 1].

    Examples:
        >>> hybrid = HybridMechanism.at(1.0, 65)
        >>> means = hybrid.channel.probabilities @ hybrid.amounts
        >>> bool(np.allclose(means, np.linspace(-1, 1, 65)))
        True
        >>> float(hybrid.variances.max()) ** 0.5, float(hybrid.variances.min()) ** 0.5
        (2.1..., 2.1...)

    References:
        [Wang2019]
    """

    channel: Channel
    amounts: Floats

    def __post_init__(self) -> None:
        amounts = checks.read_only(checks.numbers("amounts", self.amounts))
        if amounts.shape != self.channel.outputs.shape:
            raise InvalidParameter("amounts", amounts.shape, "be one for each report")
        object.__setattr__(self, "amounts", amounts)

    @classmethod
    def near(cls, epsilon: float, points: int) -> Self:
        """Signs alone, both, or points alone where a sign would have hardly any weight."""
        budget, count = epsilon, points
        truth = np.linspace(-1.0, 1.0, count)
        far = 1 / portable.tanh(budget / 2)
        # As sums: a difference from 1 would leave nothing of the unlikely sign.
        least = 1 / (1 + portable.exp(budget))
        signs = np.stack([0.5 * (1 - truth) / far + least, 0.5 * (1 + truth) / far + least], axis=1)
        if budget <= ONLY_SIGNS:
            return cls(Channel.from_probabilities(signs), np.array([-far, far]))
        width = max(1, round((count - 1) * portable.exp(-budget / 2)))
        pieces = _window(budget, count, width).probabilities
        places = np.arange(pieces.shape[1]) - 0.5 * (pieces.shape[1] - 1)
        near, beyond = pieces[0, 0], pieces[0, -1]
        scale = 2 / ((count - 1) * width * (near - beyond))
        rarely = portable.exp(-budget / 2)
        if rarely * least < _LEAST_WEIGHT:
            return cls(_window(budget, count, width), scale * places)
        often = 1 - rarely
        rows = np.concatenate([(1 - often) * signs, often * pieces], axis=1)
        amounts = np.concatenate([[-far, far], scale * places])
        return cls(Channel.from_probabilities(rows), amounts)

    @property
    def variances(self) -> Floats:
        """Variance of what is reported, for each true point."""
        rows = self.channel.probabilities
        return np.asarray(
            portable.dot(rows, self.amounts**2) - (portable.dot(rows, self.amounts)) ** 2
        )

    def report(self, share: float, randomness: Randomness) -> float:
        """A report of a number in [0, 1], on the same scale; it may lie outside."""
        return 0.5 + 0.5 * float(self.amounts[self.drawn(share, randomness)])


@lru_cache(maxsize=64)
def _window(epsilon: float, points: int, width: int) -> Channel:
    """A channel whose likely outputs are a window that moves by one with the true point."""
    large = portable.exp(epsilon)
    outputs = points - 1 + width
    far = np.arange(outputs) - np.arange(points)[:, None]
    rows = np.where((far >= 0) & (far < width), large, 1.0)
    return Channel.from_probabilities(rows / (width * large + points - 1))
