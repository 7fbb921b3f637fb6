r"""Threshold, perturb, smooth: ToPS, and ToPL where every value is reported by its own owner.

Noise for values up to a far maximum drowns values that are mostly small. Both methods spend the
first values on finding a threshold $\theta$ privately, cut later ones off at it, and need noise
for $\theta$ only. No value is used twice, so a value pays for one stage, not for all.

Both follow Wang et al. in their stages and differ in three things. What leaves is a series, not
answers to range queries: so the upper levels of the hierarchy, which serve long ranges, are left
out, and only its lowest, the sums of blocks, is kept; and a threshold is judged by the error of one
value. And the first values leave, too: with noise for the full range, from a part of their budget
(ToPS), or as the very reports that the threshold is found from (ToPL).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import LDP, PureDP
from sfumato.core.guard import Guarded, guarded
from sfumato.core.local_leakage import local_leakage
from sfumato.core.numerics import UNIT, log_up
from sfumato.core.randomness import Randomness, StreamCoins
from sfumato.noise.series_noise import LaplaceNoise, on_lattice
from sfumato.series.rivals.local_numbers import HybridMechanism, SquareWave
from sfumato.series.rivals.tree import HAIR
from sfumato.series.series_release import Releasing, SeriesMethod, Unit

_RATIO_BITS = 30
_PENALTY_BITS = 52
_MOST_WARMUP = 10_000


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
        ratio = max(1, math.ceil(math.ldexp(math.exp(-budget), _RATIO_BITS) * (1 + 8 * UNIT)))
        kept = _growing(candidates)
        powers = budget / math.log(2) * checks.numbers("costs", costs)
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


@dataclass(frozen=True)
class Tops(SeriesMethod[Releasing]):
    r"""ToPS: values in [0, ceiling], cut off at a threshold; event level, and pure.

    The first values leave with noise for the whole range and are counted for the threshold.
    Later ones are cut off, summed in blocks, and each sum gets noise once; what leaves at every
    step is the smoothed mean of the blocks that are complete. A block of 1 is plain noise; a
    weight of 1 is the paper's smoother, the most recent block.

    Attributes:
        ceiling: Values beyond it are taken for it, and negative ones for 0.
        warmup: How many values the threshold is found from.
        choice: How it is found.
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
    unit = Unit.EVENT

    ceiling: float
    warmup: int
    choice: ThresholdChoice = field(repr=False)
    early: LaplaceNoise
    later: LaplaceNoise
    block: int = 1
    weight: float = 1.0

    def __post_init__(self) -> None:
        checks.positive("ceiling", self.ceiling)
        checks.count("block", self.block)
        if checks.count("warmup", self.warmup) > _MOST_WARMUP:
            raise InvalidParameter("warmup", self.warmup, f"be at most {_MOST_WARMUP}")
        if not 0 < self.weight <= 1:
            raise InvalidParameter("weight", self.weight, "be above 0 and at most 1")
        if self.choice.candidates[-1] > self.ceiling:
            raise InvalidParameter("candidates", "larger ones", "not lie beyond the ceiling")
        for name, noise in (("early", self.early), ("later", self.later)):
            # Values come in parts of ceiling or threshold: any two are up to 1 apart.
            if noise.sensitivity < 1:
                raise InvalidParameter(name, noise.sensitivity, "be made for a sensitivity of 1")

    @property
    def sensitivity(self) -> float:
        """How far one value may be from what it could be instead: the whole range."""
        return self.ceiling

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
        excess: float = 0.5,
        span: int = 1,
    ) -> Tops:
        r"""The method with a given pure leakage of each value.

        A threshold costs $\sqrt{2}\,\theta / \epsilon$ in noise, less by blocks and smoothing,
        and `excess` in bias for each value above it: only how many there are is looked at.

        Args:
            ceiling: The largest value that can occur.
            epsilon: The whole budget of a value.
            warmup: How many values the threshold is found from.
            share: What the threshold gets of their budget; their own noise gets the rest.
            block: How many later values share one noise.
            weight: What the newest block weighs in the exponential mean; 1 for no memory.
            candidates: How many thresholds to choose from, evenly spaced up to the ceiling.
            excess: By how much a value above the threshold is beyond it, in parts of the ceiling.
            span: Of how many values the mean should be right; more lower the noise, not the bias.
        """
        most, count = checks.positive("ceiling", ceiling), checks.count("candidates", candidates)
        budget = checks.epsilon("epsilon", epsilon) * (1 - HAIR)
        part = checks.proper_fraction("share", share)
        many = checks.count("block", block)
        if not 0 < weight <= 1:
            raise InvalidParameter("weight", weight, "be above 0 and at most 1")
        beyond = checks.positive("excess", excess) * many / math.sqrt(weight / (2 - weight))
        noise = math.sqrt(2 / checks.count("span", span)) / budget
        whole = noise / beyond * checks.count("warmup", warmup)
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

    def _begin(self, coins: StreamCoins) -> Releasing:
        """Begin a series."""
        return _Tops(self, coins.at(0))


class _Tops(Guarded):
    """A series by ToPS: counts above the candidates, then the sum of the open block."""

    def __init__(self, method: Tops, randomness: Randomness) -> None:
        self._method, self._randomness = method, randomness
        self._above = np.zeros(method.choice.candidates.size, dtype=np.int64)
        self._time = self._sum = 0
        self._threshold: float | None = None
        self._smooth: float | None = None

    @guarded
    def step(self, value: float) -> float:
        """Release one value."""
        known = _clamped(value, self._method.ceiling)
        self._time += 1
        if self._threshold is None:
            return self._warming(known)
        return self._cut_off(known, self._threshold)

    def _warming(self, value: float) -> float:
        method = self._method
        noisy = float(method.early.perturb(value / method.ceiling, self._randomness))
        self._above += value > method.choice.candidates
        if self._time == method.warmup:
            self._threshold = method.choice.draw(self._above.tolist(), self._randomness)
            self._above[:] = 0
        return method.ceiling * noisy

    def _cut_off(self, value: float, threshold: float) -> float:
        method, noise = self._method, self._method.later
        # Parts of the threshold, in [0, 1] whatever floats do: sensitivity 1, summed exactly.
        self._sum += int(on_lattice(min(value, threshold) / threshold, noise.step))
        if (self._time - method.warmup) % method.block == 0:
            noisy = noise.step * (self._sum + int(noise.noise.draw(1, self._randomness)[0]))
            mean, self._sum = threshold * noisy / method.block, 0
            before = mean if self._smooth is None else self._smooth
            self._smooth = before + method.weight * (mean - before)
        return 0.5 * threshold if self._smooth is None else self._smooth


@dataclass(frozen=True)
class Topl(SeriesMethod[Releasing]):
    r"""ToPL: each value is reported by its own owner, who trusts nobody; pure and local.

    The first values are reported by a square wave: near the truth with one probability, and far
    from it with a smaller one. Their distribution is estimated from the reports, and with it
    the threshold that has the least expected square error. Later values are cut off and reported
    by the hybrid mechanism, without bias: either a far sign, or a point of the piecewise
    mechanism. Both are finite channels on a lattice, and both leakages those of their integers.

    Attributes:
        ceiling: Values beyond it are taken for it, and negative ones for 0.
        warmup: How many values the threshold is found from.
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
    unit = Unit.EVENT

    ceiling: float
    warmup: int
    wave: SquareWave
    hybrid: HybridMechanism
    span: int = 1

    def __post_init__(self) -> None:
        checks.positive("ceiling", self.ceiling)
        checks.count("warmup", self.warmup)
        checks.count("span", self.span)
        if not math.isfinite(self.local.epsilon):
            raise InvalidParameter("channel", "reports that name a value", "keep all possible")

    @property
    def sensitivity(self) -> float:
        """How far one value may be from what it could be instead: the whole range."""
        return self.ceiling

    @classmethod
    def at(
        cls, ceiling: float, epsilon: float, warmup: int, points: int = 128, span: int = 1
    ) -> Topl:
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
        bias = beyond @ shares
        spread = beyond**2 @ shares - bias**2
        noise = (0.5 * points) ** 2 * float(self.hybrid.variances.max())
        error = bias**2 + (spread + noise) / self.span
        return float(points[1:][np.argmin(error[1:])])

    def _begin(self, coins: StreamCoins) -> Releasing:
        """Begin a series."""
        return _Topl(self, coins.at(0))


class _Topl(Guarded):
    """A series by ToPL: counts of the first reports, then the threshold; no true value."""

    def __init__(self, method: Topl, randomness: Randomness) -> None:
        self._method, self._randomness = method, randomness
        self._reports = np.zeros(method.wave.channel.outputs.size, dtype=np.int64)
        self._time = 0
        self._threshold: float | None = None

    @guarded
    def step(self, value: float) -> float:
        """Release one value."""
        method = self._method
        known = _clamped(value, method.ceiling)
        self._time += 1
        if self._threshold is None:
            report = method.wave.report(known / method.ceiling, self._randomness)
            self._reports[report] += 1
            if self._time == method.warmup:
                self._threshold = method.threshold(self._reports)
            return method.ceiling * method.wave.amount(report)
        cut = min(known, self._threshold) / self._threshold
        return self._threshold * method.hybrid.report(cut, self._randomness)


def _growing(candidates: ArrayLike) -> Floats:
    kept = checks.read_only(checks.numbers("candidates", candidates))
    if kept.ndim != 1 or kept.size == 0 or np.any(np.diff(kept, prepend=0.0) <= 0):
        raise InvalidParameter("candidates", kept.shape, "grow from above 0")
    return kept


def _clamped(value: float, ceiling: float) -> float:
    return min(max(float(checks.numbers("value", value)), 0.0), ceiling)


def _powers_of_two(powers: Floats) -> tuple[int, ...]:
    """Whole numbers in the ratio of 2 to each negative power, however small."""
    whole = np.floor(powers - powers.min())
    parts = np.ldexp(np.exp2(-(powers - powers.min() - whole)), _PENALTY_BITS)
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
