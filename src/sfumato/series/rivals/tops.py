r"""ToPS: threshold, perturb, smooth.

Noise for values up to a far maximum drowns values that are mostly small. The first values are
spent on finding a threshold $\theta$ privately, later ones are cut off at it, and need noise for
$\theta$ only. No value is used twice, so a value pays for one stage, not for all.

Stages are those of Wang et al.; three things differ. What leaves is a series, not answers to range
queries: so the upper levels of the hierarchy, which serve long ranges, are left out, and only its
lowest, the sums of blocks, is kept; and a threshold is judged by the error of one value. And the
first values leave, too: with noise for the full range, from a part of their budget (ToPS), or as
the very reports that the threshold is found from (`topl`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import PureDP
from sfumato.core.numerics import UNIT, add_up, log_up
from sfumato.core.randomness import Randomness
from sfumato.noise.laplace_noise import LaplaceNoise
from sfumato.noise.number_noise import on_lattice
from sfumato.series.memory import Memory
from sfumato.series.rivals.tree import HAIR
from sfumato.series.series_release import Held, SeriesMethod, Unit
from sfumato.series.series_spec import SeriesSpec

_RATIO_BITS = 30
_PENALTY_BITS = 52
_MOST_WARMUP = 10_000
# By how much a value above the threshold is beyond it, in parts of the ceiling: nothing is known.
_EXCESS = 0.5
# Values that a threshold is found from in a comparison, or a quarter of them all.
_WARMUP = 64


@dataclass(frozen=True)
class ThresholdChoice:
    r"""A private choice of a threshold: the exponential mechanism, in whole numbers.

    Each candidate has a weight $p_j r^{k_j}$, where $k_j$ counts the values above it and $p_j$ is
    public. The ratio $r$ is a whole number of parts, so weights and their sum are integers, and a
    candidate is drawn exactly. If one value changes, the counts of all candidates move the same
    way, by at most 1; so probabilities change by a factor of at most $1/r$.

    Attributes:
        candidates: Thresholds, growing.
        penalties: Public weights $p_j$, whole numbers.
        ratio: The ratio $r$, out of 2**30.

    Examples:
        >>> choice = ThresholdChoice.at([1.0, 2.0, 3.0], [0.0, 0.5, 1.0], epsilon=0.5)
        >>> choice.leakage <= PureDP(0.5)
        True
        >>> [round(float(each), 3) for each in choice.probabilities([5, 1, 0])]
        [0.071, 0.407, 0.522]

    References:
        [Wang2021]
    """

    candidates: Floats
    penalties: tuple[int, ...]
    ratio: int

    def __post_init__(self) -> None:
        kept = _growing(self.candidates)
        if len(self.penalties) != kept.size or min(self.penalties) <= 0:
            rule = "be above 0, one for each candidate"
            raise InvalidParameter("penalties", len(self.penalties), rule)
        if not 1 <= checks.count("ratio", self.ratio) <= 2**_RATIO_BITS:
            raise InvalidParameter("ratio", self.ratio, "lie in [1, 2**30]")
        object.__setattr__(self, "candidates", kept)

    @classmethod
    def at(cls, candidates: list[float], costs: list[float], epsilon: float) -> ThresholdChoice:
        """The choice with a given pure leakage; a cost of 1 weighs as much as one value above."""
        budget = checks.epsilon("epsilon", epsilon)
        ratio = max(1, math.ceil(math.ldexp(portable.exp(-budget), _RATIO_BITS) * (1 + 8 * UNIT)))
        kept = _growing(candidates)
        powers = budget / portable.log(2) * checks.numbers("costs", costs)
        return cls(kept, _powers_of_two(powers), min(ratio, 2**_RATIO_BITS))

    @property
    def leakage(self) -> PureDP:
        """What the choice tells of one value, from its integers."""
        if self.ratio == 2**_RATIO_BITS:
            return PureDP(0.0)
        return PureDP(log_up(2**_RATIO_BITS / self.ratio, UNIT))

    def weights(self, above: list[int]) -> list[int]:
        """The weight of each candidate, given how many values lie above it."""
        counts = [int(count) for count in above]  # of any size: numpy's would wrap around
        least, most = min(counts), max(counts)
        return [
            penalty * self.ratio ** (count - least) << _RATIO_BITS * (most - count)
            for penalty, count in zip(self.penalties, counts, strict=True)
        ]

    def probabilities(self, above: list[int]) -> Floats:
        """The same as probabilities."""
        weights = self.weights(above)
        whole = sum(weights)
        return np.array([weight / whole for weight in weights])

    def draw(self, above: list[int], randomness: Randomness) -> float:
        """A threshold, drawn exactly by the weights."""
        weights = self.weights(above)
        coin = _uniform(sum(weights), randomness)
        for candidate, weight in zip(self.candidates, weights, strict=True):
            coin -= weight
            if coin < 0:
                return float(candidate)
        raise AssertionError("a coin below the sum of the weights falls on one of them")


@dataclass(slots=True)
class Counts(Memory):
    """Counts above the candidates, then the sum of the open block.

    Attributes:
        above: How many values were above each candidate.
        sum: Of the open block, in steps.
        threshold: NaN until it is found.
        smooth: The mean of blocks; NaN before the first is complete.
    """

    above: Floats
    sum: int = 0
    threshold: float = math.nan
    smooth: float = math.nan


@dataclass(frozen=True)
class Capped(SeriesMethod[Held]):
    """Values in [0, ceiling], of which the first ones are spent on a threshold.

    Attributes:
        ceiling: Values beyond it are taken for it, and negative ones for 0.
        warmup: How many values the threshold is found from.
    """

    unit = Unit.EVENT

    ceiling: float
    warmup: int

    def __post_init__(self) -> None:
        checks.positive("ceiling", self.ceiling)
        if checks.count("warmup", self.warmup) > _MOST_WARMUP:
            raise InvalidParameter("warmup", self.warmup, f"be at most {_MOST_WARMUP}")

    @property
    def sensitivity(self) -> float:
        """How far one value may be from what it could be instead: the whole range."""
        return self.ceiling

    @classmethod
    @abstractmethod
    def at(cls, ceiling: float, epsilon: float, warmup: int) -> Self:
        """The method with a given leakage of each value."""

    @classmethod
    def of(cls, spec: SeriesSpec) -> Self:
        """With a ceiling and a warm-up from the true series; not private."""
        series = spec.true_series
        ceiling, warmup = float(np.abs(series).max()) or 1.0, min(_WARMUP, series.size // 4)
        return cls.at(ceiling, spec.pure(1), max(1, warmup))

    def inside(self, value: float) -> float:
        """A value within [0, ceiling]."""
        return min(max(float(checks.numbers("value", value)), 0.0), self.ceiling)


@dataclass(frozen=True)
class Tops(Capped[Counts]):
    r"""ToPS: values in [0, ceiling], cut off at a threshold; event level, and pure.

    The first values leave with noise for the whole range and are counted for the threshold.
    Later ones are cut off, summed in blocks, and each sum gets noise once; what leaves at every
    step is the smoothed mean of the blocks that are complete. A block of 1 is plain noise; a
    weight of 1 is the paper's smoother, the most recent block.

    Attributes:
        choice: How the threshold is found.
        early: Noise of the first values, in parts of the ceiling.
        later: Noise of the sum of a block, in parts of the threshold.
        block: How many values share one noise.
        weight: What the newest block weighs in the exponential mean.

    Examples:
        >>> from sfumato.core.randomness import seeded
        >>> from sfumato.core.purpose import Purpose
        >>> method = Tops.at(ceiling=100.0, epsilon=1.0, warmup=200)
        >>> method.guarantee <= PureDP(1.0), method.choice.leakage <= PureDP(0.5)
        (True, True)
        >>> told = method.release(np.full(1000, 5.0), seeded(1), Purpose.SIMULATION)
        >>> bool(told[200:].std() < 0.2 * told[:200].std())
        True

    References:
        [Wang2021]
    """

    name: ClassVar[str] = "ToPS"
    secret: ClassVar[bool] = True

    choice: ThresholdChoice = field(repr=False)
    early: LaplaceNoise
    later: LaplaceNoise
    block: int = 1
    weight: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.count("block", self.block)
        if not 0 < self.weight <= 1:
            raise InvalidParameter("weight", self.weight, "be above 0 and at most 1")
        if self.choice.candidates[-1] > self.ceiling:
            raise InvalidParameter("candidates", "larger ones", "not lie beyond the ceiling")
        for name, noise in (("early", self.early), ("later", self.later)):
            # Values come in parts of ceiling or threshold: any two are up to 1 apart.
            if noise.sensitivity < 1:
                raise InvalidParameter(name, noise.sensitivity, "be made for a sensitivity of 1")

    @classmethod
    def at(
        cls,
        ceiling: float,
        epsilon: float,
        warmup: int,
        *,
        share: float = 0.5,
        block: int = 1,
        weight: float = 1.0,
        candidates: int = 128,
    ) -> Self:
        r"""The method with a given pure leakage of each value.

        A threshold costs $\sqrt{2}\,\theta / \epsilon$ in noise, less by blocks and smoothing,
        and half of the ceiling in bias for each value above it: only their number is looked at.

        Args:
            ceiling: The largest value that can occur.
            epsilon: The whole budget of a value.
            warmup: How many values the threshold is found from.
            share: What the threshold gets of their budget; their own noise gets the rest.
            block: How many later values share one noise.
            weight: What the newest block weighs in the exponential mean; 1 for no memory.
            candidates: How many thresholds to choose from, evenly spaced up to the ceiling.
        """
        most, count = checks.positive("ceiling", ceiling), checks.count("candidates", candidates)
        budget = checks.epsilon("epsilon", epsilon) * (1 - HAIR)
        # Early values pay for the threshold and for their own noise.
        part = checks.proper_fraction("share", share)
        many = checks.count("block", block)
        if not 0 < weight <= 1:
            raise InvalidParameter("weight", weight, "be above 0 and at most 1")
        beyond = _EXCESS * many / math.sqrt(weight / (2 - weight))
        whole = math.sqrt(2) / budget / beyond * checks.count("warmup", warmup)
        shares = np.arange(1, count + 1) / count
        choice = ThresholdChoice.at(
            (most * shares).tolist(), (whole * shares).tolist(), part * budget
        )
        early, later = LaplaceNoise.at(1.0, (1 - part) * budget), LaplaceNoise.at(1.0, budget)
        return cls(most, warmup, choice, early, later, many, weight)

    @property
    def guarantee(self) -> PureDP:
        """What all that leaves tells of one value: of the first ones, or of the later ones."""
        warming = self.choice.leakage + self.early.leakage
        return PureDP(max(warming.epsilon, self.later.leakage.epsilon))

    def memory(self) -> Counts:
        """Nothing was counted yet."""
        return Counts(np.zeros(self.choice.candidates.size))

    def answer(
        self, memory: Counts, time: int, value: float, coins: Randomness
    ) -> tuple[float, float]:
        """A noisy value while the threshold is looked for; then the mean of blocks cut off."""
        inside = self.inside(value)
        if time < self.warmup:
            return self._warming(memory, time, inside, coins)
        # Parts of the threshold, in [0, 1] whatever floats do: sensitivity 1, summed exactly.
        part = min(inside, memory.threshold) / memory.threshold
        memory.sum += int(on_lattice(part, self.later.step))
        if (time + 1 - self.warmup) % self.block == 0:
            drawn = int(self.later.noise.draw(1, coins)[0])
            mean = memory.threshold * self.later.step * (memory.sum + drawn) / self.block
            before = mean if math.isnan(memory.smooth) else memory.smooth
            memory.smooth, memory.sum = before + self.weight * (mean - before), 0
        unknown = math.isnan(memory.smooth)
        released = 0.5 * memory.threshold if unknown else memory.smooth
        return released, self.later.charge

    def _warming(
        self, memory: Counts, time: int, value: float, coins: Randomness
    ) -> tuple[float, float]:
        noisy = self.early.perturb_one(value / self.ceiling, coins)
        memory.above += value > self.choice.candidates
        if time + 1 == self.warmup:
            memory.threshold = self.choice.draw(memory.above.tolist(), coins)
            # Counts of true values are forgotten once they have been used.
            memory.above[:] = 0
        return self.ceiling * noisy, add_up(self.choice.leakage.epsilon, self.early.charge)


def _growing(candidates: ArrayLike) -> Floats:
    kept = checks.read_only(checks.numbers("candidates", candidates))
    if kept.ndim != 1 or kept.size == 0 or np.any(np.diff(kept, prepend=0.0) <= 0):
        raise InvalidParameter("candidates", kept.shape, "grow from above 0")
    return kept


def _powers_of_two(powers: Floats) -> tuple[int, ...]:
    """Whole numbers in the ratio of 2 to each negative power, however small."""
    whole = np.floor(powers - powers.min())
    parts = np.ldexp(portable.exp2(-(powers - powers.min() - whole)), _PENALTY_BITS)
    most = int(whole.max())
    return tuple(round(part) << most - int(place) for part, place in zip(parts, whole, strict=True))


def _uniform(below: int, randomness: Randomness) -> int:
    """A whole number from 0 to one less, all alike: too large ones are drawn again."""
    bits = (below - 1).bit_length()
    while True:
        words = randomness.words(-(-bits // 64))
        drawn = int.from_bytes(words.astype("<u8").tobytes(), "little") >> (-bits % 64)
        if drawn < below:
            return drawn
