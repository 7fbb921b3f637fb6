r"""What a whole series of Gaussian releases leaks of one person who may be in all of them.

A release of $z_t$ with noise of deviation $\sigma_t$ and sensitivity $\Delta$ is a Gaussian
mechanism of ratio $\mu_t = \Delta/\sigma_t$. All of them together, chosen one after another from
what was released before, are no worse than one Gaussian mechanism of ratio
$\sqrt{\sum_t \mu_t^2}$, whose curve is known exactly.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from sfumato.core import checks
from sfumato.core.errors import BudgetExceeded, InvalidParameter
from sfumato.core.guarantees import ApproxDP, PureDP
from sfumato.core.numerics import UNIT, up
from sfumato.core.search import largest_above, least_above
from sfumato.noise.densities import local_gaussian_delta
from sfumato.noise.discrete_noise import BinomialNoise, DiscreteGaussianNoise
from sfumato.noise.series_noise import GaussianNoise, LaplaceNoise

_MOST_EPSILON = 2000.0
_FOR_ROUNDING = 1e-5
"""Part of a fixed budget that is set aside for the tables of noise."""
_LEVELS = 16
"""Halvings of a budget at which what was spent is told."""


def gaussian_delta(ratio: float, epsilon: float, slack: float = 0.0, error: float = 0.0) -> float:
    r"""The delta of a Gaussian mechanism that is sampled from tables, rounded up.

    $$e^\eta\,\delta(\epsilon - 2\eta) + s$$

    where $\delta$ is the exact curve, $\eta$ is `error` and $s$ is `slack`: unless noise leaves
    the tables, what is sampled and what it stands for are within a factor $e^\eta$ of each other,
    under either of two neighbouring series.

    Args:
        ratio: Sensitivity over deviation, of all releases together.
        epsilon: The level.
        slack: Probability that some noise leaves its table.
        error: Log quotient of what is sampled and what it stands for, of all releases together.

    Examples:
        >>> gaussian_delta(1.0, 1.0)
        0.12693674
    """
    level = checks.leakage("epsilon", epsilon) - 2 * checks.finite("error", error)
    told = local_gaussian_delta(ratio, 1.0, max(0.0, level)) if ratio else 0.0
    told = told * (1 + 1e-12) + 8 * UNIT - math.expm1(min(0.0, level))
    return min(1.0, up(up(told * math.exp(min(error, 700.0))) * (1 + 4 * UNIT) + slack))


def gaussian_epsilon(ratio: float, delta: float, slack: float = 0.0, error: float = 0.0) -> float:
    """The least epsilon of a Gaussian mechanism at a delta, rounded up.

    Args:
        ratio: Sensitivity over deviation, of all releases together.
        delta: Probability with which it may be more.
        slack: Probability that some noise leaves its table.
        error: Log quotient of what is sampled and what it stands for, of all releases together.

    Examples:
        >>> gaussian_epsilon(1.0, 1e-5)
        4.37717
    """
    allowed = checks.proper_fraction("delta", delta)
    size = checks.finite("ratio", ratio)
    if size == 0.0 and error == 0.0:
        return 0.0
    return _least(lambda epsilon: gaussian_delta(size, epsilon, slack, error) <= allowed)


def _least(kept: Callable[[float], bool]) -> float:
    """The least level that keeps a rule; infinite if none does."""
    return least_above(kept, 1e-6, _MOST_EPSILON)


def gaussian_ratio(epsilon: float, delta: float, slack: float = 0.0, error: float = 0.0) -> float:
    """The largest ratio of sensitivity to deviation that keeps a budget, rounded down.

    Raises:
        InvalidParameter: If no ratio keeps it.

    Examples:
        >>> gaussian_ratio(1.0, 1e-5)
        0.2680512
    """
    budget, allowed = checks.positive("epsilon", epsilon), checks.proper_fraction("delta", delta)
    low = largest_above(
        lambda ratio: gaussian_delta(ratio, budget, slack, error) <= allowed, 1.0, math.inf
    )
    if low == 0.0:
        raise InvalidParameter("delta", delta, "be larger: what is rounded takes all of it")
    less = 2.0**-44
    while gaussian_epsilon(low, allowed, slack, error) > budget:
        low, less = low * (1 - less), 4 * less  # the curve is rounded, and wavers by some units
    return low


@dataclass(frozen=True, slots=True)
class GaussianFilter:
    r"""A budget, fixed in advance, for Gaussian releases that are chosen as one goes.

    The noise of each release, and whether there is another one, may depend on all that was
    released before. All together keep the budget: the loss of privacy is a Brownian motion with
    drift in the sum of the squared ratios, and one that is stopped early, by whatever rule, has no
    larger delta at the budget's epsilon than one that goes on to the end.

    That is so at the fixed budget only. What was spent so far, read as if it had been the budget,
    is no guarantee for someone who stops when ahead; `spent` is one.

    Attributes:
        epsilon: Budget.
        delta: Budget.
        squares: Sum of the squared ratios so far, rounded up.
        slack: Probability that some noise so far left its table.
        error: Log quotient of what was sampled so far and what it stands for.
        count: Number of releases so far.

    Examples:
        >>> begun = GaussianFilter(1.0, 1e-5).after(GaussianNoise.at(1.0, 10.0))
        >>> begun.fits(GaussianNoise.at(1.0, 10.0)), begun.fits(GaussianNoise.at(1.0, 1.0))
        (True, False)
        >>> begun.guarantee
        ApproxDP(epsilon=1.0, delta=1e-05)

    References:
        [Smith2022]
    """

    epsilon: float
    delta: float
    squares: float = 0.0
    slack: float = 0.0
    error: float = 0.0
    count: int = 0

    @property
    def guarantee(self) -> ApproxDP:
        """What all releases together keep, so far and ever."""
        return ApproxDP(self.epsilon, self.delta)

    @property
    def most(self) -> float:
        """The sum of squared ratios at which the budget is gone; it does not change."""
        return _filter_squares(self.epsilon, self.delta)

    @property
    def spent(self) -> ApproxDP:
        r"""What the releases so far have cost, however it was decided to stop at them.

        With probability at least `1 - delta` the loss of privacy has at no time been more than
        what `spent` said at that time. On levels $B_j = B/2^j$ of the sum of squared ratios, each
        with an even part of delta, a Brownian motion with drift passes $x$ before $B_j$ with
        probability $\Phi(\sqrt{B_j}/2 - x/\sqrt{B_j}) + e^x\,\Phi(-\sqrt{B_j}/2 - x/\sqrt{B_j})$.
        It can be more than the budget, which is for the end alone.

        References:
            [Rogers2016]
        """
        if not self.count:
            return ApproxDP(0.0, self.delta)
        level = self.most
        for _ in range(_LEVELS - 1):
            if self.squares > 0.5 * level:
                break
            level *= 0.5
        part = (1 - 2 * _FOR_ROUNDING) * self.delta / _LEVELS
        passed = _least(lambda x: _passing(math.sqrt(level), x) <= part)
        return ApproxDP(up(passed + 2 * _FOR_ROUNDING * self.epsilon), self.delta)

    def fits(self, noise: GaussianNoise) -> bool:
        """Whether one more release with this noise keeps the budget."""
        more = self._with(noise)
        rounded = more.slack <= _FOR_ROUNDING * self.delta
        exact = more.error <= min(_FOR_ROUNDING, _FOR_ROUNDING * self.epsilon)
        return more.squares <= self.most and rounded and exact

    def after(self, noise: GaussianNoise) -> GaussianFilter:
        """After one more release.

        Raises:
            BudgetExceeded: If it does not fit; nothing was drawn.
        """
        more = self._with(noise)
        if not self.fits(noise):
            ratio = up(math.sqrt(more.squares) * (1 + 4 * UNIT))
            asked = ApproxDP(gaussian_epsilon(ratio, self.delta), self.delta)
            raise BudgetExceeded("series", self.count, asked, self.guarantee)
        return more

    def _with(self, noise: GaussianNoise) -> GaussianFilter:
        squares = up(self.squares + up(noise.ratio**2 * (1 + 4 * UNIT)))
        slack, error = up(self.slack + noise.slack), up(self.error + noise.error)
        return GaussianFilter(self.epsilon, self.delta, squares, slack, error, self.count + 1)


@lru_cache(maxsize=64)
def _filter_squares(epsilon: float, delta: float) -> float:
    rounding = (_FOR_ROUNDING * delta, min(_FOR_ROUNDING, _FOR_ROUNDING * epsilon))
    return gaussian_ratio(epsilon, delta, *rounding) ** 2 * (1 - 4 * UNIT)


def _passing(root: float, level: float) -> float:
    """Probability that a loss passes a level before the sum of squares is that of the root."""
    high, low = 0.5 * root - level / root, -0.5 * root - level / root
    second = math.exp(min(0.0, level + float(special.log_ndtr(low))))
    return up((float(special.ndtr(high)) + second) * (1 + 1e-12))


def published_epsilon(squares: float, delta: float) -> float:
    r"""The bound of the paper for $\sum_t (w_t \Delta/\sigma)^2$: valid, and looser than the curve.

    Examples:
        >>> published_epsilon(1.0, 1e-5)
        5.2985

    References:
        [RTR, Thm. 5.1]
    """
    half = 0.5 * checks.finite("squares", squares)
    return 2 * math.sqrt(half * math.log(1 / checks.proper_fraction("delta", delta))) + half


def published_delta(squares: float, epsilon: float) -> float:
    r"""The same bound solved for delta, for $\epsilon \ge \frac12 \sum_t (w_t\Delta/\sigma)^2$.

    References:
        [RTR, Thm. 5.1]
    """
    total, level = checks.positive("squares", squares), checks.positive("epsilon", epsilon)
    if level < 0.5 * total:
        return 1.0
    return math.exp((total / 4 - level / 2) * (level / total - 0.5))


def published_deviation(
    weights: ArrayLike, sensitivity: float, epsilon: float, delta: float
) -> float:
    """The noise that the paper asks for.

    Examples:
        >>> published_deviation([1.0], 1.0, 1.0, 1e-5)
        4.90055

    References:
        [RTR, Cor. 5.2]
    """
    squares = float(np.square(checks.numbers("weights", weights)).sum())
    level, tail = checks.positive("epsilon", epsilon), math.log(1 / delta)
    room = 2 * level + 4 * tail - 4 * math.sqrt(tail**2 + level * tail)
    return checks.positive("sensitivity", sensitivity) * math.sqrt(squares / room)


def concentrated_epsilon(rho: float, delta: float, slack: float = 0.0, error: float = 0.0) -> float:
    r"""The epsilon that follows from concentrated privacy (zCDP) at a delta, rounded up.

    `slack` and `error` are those of `gaussian_delta`.

    $$\delta = \min_{\alpha > 1} \frac{e^{(\alpha - 1)(\alpha\rho - \epsilon)}}{\alpha - 1}
      \left(1 - \frac1\alpha\right)^\alpha$$

    Examples:
        >>> concentrated_epsilon(0.5, 1e-5)
        4.72839

    References:
        [Canonne2020, Prop. 7]
    """
    allowed, size = checks.proper_fraction("delta", delta), checks.finite("rho", rho)
    if size == 0.0:
        return 0.0
    orders = 1 + np.geomspace(1e-3, 1e6, 4000)

    def kept(epsilon: float) -> bool:
        logs = (orders - 1) * (orders * size - (epsilon - 2 * error)) - np.log(orders - 1)
        logs = logs + orders * np.log1p(-1 / orders)
        told = math.exp(min(0.0, float(logs.min())) + min(error, 700.0))
        return up(told * (1 + 1e-12) + slack) <= allowed

    return _least(kept)


def composed_epsilon(epsilons: ArrayLike, deltas: ArrayLike, slack: float) -> ApproxDP:
    r"""Approximate releases together, by the composition that the paper uses.

    The least of the plain sum and two tail bounds, at the price of `slack` in delta.

    Examples:
        >>> composed_epsilon([0.1] * 100, [0.0] * 100, 1e-6)
        ApproxDP(epsilon=5.75610, delta=1e-06)

    References:
        [RTR, Thm. A.6], [Kairouz2017, Thm. 3.5]
    """
    each, failures = checks.numbers("epsilons", epsilons), checks.numbers("deltas", deltas)
    if each.shape != failures.shape or each.ndim != 1 or float(each.min(initial=0.0)) < 0:
        raise InvalidParameter("epsilons", each.shape, "be at least 0, and as many as deltas")
    if not np.all((failures >= 0) & (failures < 1)):
        raise InvalidParameter("deltas", "others", "lie in [0, 1)")
    extra = checks.proper_fraction("slack", slack)
    total = float(each.sum())
    drift = float((each * np.tanh(each / 2)).sum())
    square = float(np.square(each).sum())
    first = drift + math.sqrt(2 * square * math.log(math.e + math.sqrt(square) / extra))
    second = drift + math.sqrt(2 * square * math.log(1 / extra))
    kept = math.log1p(-extra) + float(np.log1p(-failures).sum())
    failed = min(1.0, up(-math.expm1(kept) * (1 + 1e-14))) if failures.any() else extra
    return ApproxDP(up(min(total, first, second) * (1 + 1e-12)), failed)


AnyNoise: TypeAlias = LaplaceNoise | GaussianNoise | DiscreteGaussianNoise | BinomialNoise


def check_one_kind(noises: Sequence[AnyNoise]) -> set[type[AnyNoise]]:
    """The one kind of some noises, or say that they must be of one."""
    kinds = {type(noise) for noise in noises}
    if len(kinds) > 1:
        raise InvalidParameter("noises", "several kinds", "be of one kind")
    return kinds


def series_guarantee(noises: Sequence[AnyNoise], delta: float) -> PureDP | ApproxDP:
    """What measurements with these noises promise together, to a person who is in all of them.

    Laplace noise: the sum of the pure leakages. Gaussian: the exact curve. Discrete Gaussian: the
    sum of the concentrated privacies, converted. Binomial: the exact curve of each measurement at
    half of delta, evenly, composed at the price of the other half.

    Args:
        noises: Of one kind.
        delta: For approximate guarantees.

    Examples:
        >>> series_guarantee([GaussianNoise.at(1.0, 10.0)] * 4, 1e-6).epsilon
        0.8341
    """
    counts = Counter(noises)
    kinds = check_one_kind(list(counts))
    if kinds <= {LaplaceNoise}:
        return sum(
            (noise.leakage for noise in noises if isinstance(noise, LaplaceNoise)), PureDP(0)
        )
    if kinds == {BinomialNoise}:
        part = delta / (2 * len(noises))
        each = [n.epsilon(part) for n in counts if isinstance(n, BinomialNoise)]
        spread = np.repeat(each, list(counts.values()))
        return composed_epsilon(spread, [part] * len(noises), delta / 2)
    squares = shared = slack = error = 0.0
    for noise, count in counts.items():
        match noise:
            case GaussianNoise():
                squares += count * noise.ratio**2
            case DiscreteGaussianNoise():
                shared += count * noise.concentrated
            case _:
                raise InvalidParameter("noises", "several kinds", "be of one kind")
        slack, error = slack + count * noise.slack, error + count * noise.error
    # Sums of some thousand terms are right within some thousand units.
    more = 1 + (len(counts) + 16) * 2 * UNIT
    rounding = (slack * more, error * more)
    if kinds == {DiscreteGaussianNoise}:
        return ApproxDP(concentrated_epsilon(shared * more, delta, *rounding), delta)
    return ApproxDP(gaussian_epsilon(up(math.sqrt(squares * more)), delta, *rounding), delta)
