"""ToPL: ToPS where every value is reported by its own owner, who trusts nobody."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import LDP, PureDP
from sfumato.core.local_leakage import local_leakage
from sfumato.core.randomness import Randomness
from sfumato.series.memory import Memory
from sfumato.series.rivals.local_numbers import HybridMechanism, SquareWave
from sfumato.series.rivals.tops import Capped


@dataclass(slots=True)
class Reports(Memory):
    """Counts of the first reports, then the threshold; no true value."""

    counts: Floats
    threshold: float = math.nan


@dataclass(frozen=True)
class Topl(Capped[Reports]):
    r"""ToPL: each value is reported by its own owner, who trusts nobody; pure and local.

    The first values are reported by a square wave: near the truth with one probability, and far
    from it with a smaller one. Their distribution is estimated from the reports, and with it
    the threshold that has the least expected square error. Later values are cut off and reported
    by the hybrid mechanism, without bias: either a far sign, or a point of the piecewise
    mechanism. Both are finite channels on a lattice, and both leakages those of their integers.

    Attributes:
        wave: The square wave.
        hybrid: The hybrid mechanism.
        span: Of how many values the mean should be right; more lower the noise, not the bias.

    Examples:
        >>> from sfumato.core.randomness import seeded
        >>> from sfumato.core.purpose import Purpose
        >>> method = Topl.at(ceiling=100.0, epsilon=1.0, warmup=500, span=100)
        >>> method.guarantee <= PureDP(1.0), method.local <= LDP(1.0)
        (True, True)
        >>> told = method.release(np.full(3000, 10.0), seeded(3), Purpose.SIMULATION)
        >>> bool(abs(told[500:].mean() - 10.0) < 2.0)
        True

    References:
        [Wang2021], [Li2020], [Wang2019]
    """

    name: ClassVar[str] = "ToPL"

    wave: SquareWave
    hybrid: HybridMechanism
    span: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.count("span", self.span)
        if not math.isfinite(self.local.epsilon):
            raise InvalidParameter("channel", "reports that name a value", "keep all possible")

    @classmethod
    def at(
        cls, ceiling: float, epsilon: float, warmup: int, points: int = 128, span: int = 1
    ) -> Self:
        """The method with a given model-free leakage of each value.

        Args:
            ceiling: The largest value that can occur.
            epsilon: The whole budget of a value.
            warmup: How many values the threshold is found from.
            points: How many points of the lattice stand for the range.
            span: Of how many values the mean should be right.
        """
        wave, hybrid = SquareWave.at(epsilon, points), HybridMechanism.at(epsilon, points)
        return cls(ceiling, warmup, wave, hybrid, span)

    @property
    def local(self) -> LDP:
        """What a report tells of its value, however it is made; the larger of the two kinds."""
        kinds = (local_leakage(self.wave.channel), local_leakage(self.hybrid.channel))
        return LDP(max(each.epsilon for each in kinds))

    @property
    def guarantee(self) -> PureDP:
        """What all that leaves tells of one value, which is what its one report tells."""
        return PureDP(self.local.epsilon)

    def threshold(self, reports: Ints) -> float:
        """The threshold with the least expected square error of a mean of values, from reports."""
        shares = self.wave.distribution(reports)
        points = self.ceiling * np.linspace(0.0, 1.0, shares.size)
        beyond = np.maximum(0.0, points - points[:, None])
        # A mean of many values is off by what is cut away; spread and noise fall with their number.
        bias = portable.dot(beyond, shares)
        spread = portable.dot(beyond**2, shares) - bias**2
        noise = (0.5 * points) ** 2 * float(self.hybrid.variances.max())
        error = bias**2 + (spread + noise) / self.span
        return float(points[1:][np.argmin(error[1:])])

    def memory(self) -> Reports:
        """Nothing was reported yet."""
        return Reports(np.zeros(self.wave.channel.outputs.size))

    def answer(
        self, memory: Reports, time: int, value: float, coins: Randomness
    ) -> tuple[float, float]:
        """The report of one value."""
        inside = self.inside(value)
        if time >= self.warmup:
            part = min(inside, memory.threshold) / memory.threshold
            charge = local_leakage(self.hybrid.channel).epsilon
            return memory.threshold * self.hybrid.report(part, coins), charge
        report = self.wave.drawn(inside / self.ceiling, coins)
        memory.counts[report] += 1
        if time + 1 == self.warmup:
            # Made of reports alone, which have left: free of privacy cost.
            memory.threshold = self.threshold(memory.counts.astype(np.int64))
        return self.ceiling * self.wave.amount(report), local_leakage(self.wave.channel).epsilon
