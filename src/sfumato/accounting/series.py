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
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from sfumato import _checks
from sfumato._numerics import UNIT, up
from sfumato.errors import BudgetExceeded, InvalidParameter
from sfumato.guarantees import ApproxDP, PureDP
from sfumato.leakage.densities import local_gaussian_delta
from sfumato.mechanisms.discrete_noise import BinomialNoise, DiscreteGaussianNoise
from sfumato.mechanisms.series_noise import GaussianNoise, LaplaceNoise

_HALVINGS = 100


def gaussian_epsilon(ratio: float, delta: float, slack: float = 0.0) -> float:
    """The least epsilon of a Gaussian mechanism at a delta, rounded up.

    Args:
        ratio: Sensitivity over deviation, of all releases together.
        delta: Probability with which it may be more.
        slack: Total variation between what is sampled and normal noise, of all releases together.

    Examples:
        >>> gaussian_epsilon(1.0, 1e-5)
        4.37717
    """
    allowed = _checks.proper_fraction("delta", delta)
    size = _checks.finite("ratio", ratio)
    if size == 0.0:
        return 0.0

    def kept(epsilon: float) -> bool:
        missed = (1 + math.exp(min(epsilon, 700.0))) * slack
        told = local_gaussian_delta(size, 1.0, epsilon)
        return up(told * (1 + 1e-12) + 8 * UNIT + missed) <= allowed

    return _least(kept)


def _least(kept: Callable[[float], bool]) -> float:
    """The least level from which a rule is kept; infinite if it never is.

    In small strides, for rounding makes very large levels worse again.
    """
    low, high = 0.0, 1e-6
    while not kept(high):
        low, high = high, 1.1 * high
        if high > 2000:
            return math.inf
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if kept(middle):
            high = middle
        else:
            low = middle
    return high


def gaussian_ratio(epsilon: float, delta: float, slack: float = 0.0) -> float:
    """The largest ratio of sensitivity to deviation that keeps a budget, rounded down.

    Examples:
        >>> gaussian_ratio(1.0, 1e-5)
        0.2680512
    """
    budget = _checks.positive("epsilon", epsilon)
    low, high = 0.0, 1.0
    while gaussian_epsilon(high, delta, slack) <= budget:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if gaussian_epsilon(middle, delta, slack) <= budget:
            low = middle
        else:
            high = middle
    return low


@dataclass(frozen=True, slots=True)
class GaussianOdometer:
    """What adaptive Gaussian releases have leaked so far, and whether one more fits.

    The noise of each release may depend on what was released before.

    Attributes:
        epsilon: Budget.
        delta: Budget.
        squares: Sum of the squared ratios so far, rounded up.
        slack: Sum of the total variations so far.
        count: Number of releases so far.

    Examples:
        >>> spent = GaussianOdometer(1.0, 1e-5).after(GaussianNoise.at(1.0, 10.0))
        >>> spent.spent.epsilon < 1.0, spent.fits(GaussianNoise.at(1.0, 1.0))
        (True, False)
    """

    epsilon: float
    delta: float
    squares: float = 0.0
    slack: float = 0.0
    count: int = 0

    @property
    def spent(self) -> ApproxDP:
        """The guarantee of all releases so far, at the delta of the budget."""
        ratio = up(math.sqrt(self.squares) * (1 + 4 * UNIT))
        return ApproxDP(gaussian_epsilon(ratio, self.delta, self.slack), self.delta)

    def fits(self, noise: GaussianNoise) -> bool:
        """Whether one more release with this noise keeps the budget."""
        return self._with(noise).spent.epsilon <= self.epsilon

    def after(self, noise: GaussianNoise) -> GaussianOdometer:
        """After one more release.

        Raises:
            BudgetExceeded: If it does not fit; nothing was drawn.
        """
        more = self._with(noise)
        if more.spent.epsilon > self.epsilon:
            budget = ApproxDP(self.epsilon, self.delta)
            raise BudgetExceeded("series", self.count, more.spent, budget)
        return more

    def _with(self, noise: GaussianNoise) -> GaussianOdometer:
        squares = up(self.squares + up(noise.ratio**2 * (1 + 4 * UNIT)))
        slack = up(self.slack + noise.slack)
        return GaussianOdometer(self.epsilon, self.delta, squares, slack, self.count + 1)


def published_epsilon(squares: float, delta: float) -> float:
    r"""The bound of the paper for $\sum_t (w_t \Delta/\sigma)^2$: valid, and looser than the curve.

    Examples:
        >>> published_epsilon(1.0, 1e-5)
        5.2985

    References:
        [RTR, Thm. 5.1]
    """
    half = 0.5 * _checks.finite("squares", squares)
    return 2 * math.sqrt(half * math.log(1 / _checks.proper_fraction("delta", delta))) + half


def published_delta(squares: float, epsilon: float) -> float:
    r"""The same bound solved for delta, for $\epsilon \ge \frac12 \sum_t (w_t\Delta/\sigma)^2$.

    References:
        [RTR, Thm. 5.1]
    """
    total, level = _checks.positive("squares", squares), _checks.positive("epsilon", epsilon)
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
    squares = float(np.square(_checks.numbers("weights", weights)).sum())
    level, tail = _checks.positive("epsilon", epsilon), math.log(1 / delta)
    room = 2 * level + 4 * tail - 4 * math.sqrt(tail**2 + level * tail)
    return _checks.positive("sensitivity", sensitivity) * math.sqrt(squares / room)


def concentrated_epsilon(rho: float, delta: float, slack: float = 0.0) -> float:
    r"""The epsilon that follows from concentrated privacy (zCDP) at a delta, rounded up.

    $$\delta = \min_{\alpha > 1} \frac{e^{(\alpha - 1)(\alpha\rho - \epsilon)}}{\alpha - 1}
      \left(1 - \frac1\alpha\right)^\alpha$$

    Examples:
        >>> concentrated_epsilon(0.5, 1e-5)
        4.72839

    References:
        [Canonne2020, Prop. 7]
    """
    allowed, size = _checks.proper_fraction("delta", delta), _checks.finite("rho", rho)
    if size == 0.0:
        return 0.0
    orders = 1 + np.geomspace(1e-3, 1e6, 4000)

    def kept(epsilon: float) -> bool:
        logs = (orders - 1) * (orders * size - epsilon) - np.log(orders - 1)
        logs = logs + orders * np.log1p(-1 / orders)
        missed = (1 + math.exp(min(epsilon, 700.0))) * slack
        return up(math.exp(min(0.0, float(logs.min()))) * (1 + 1e-12) + missed) <= allowed

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
    each, failures = _checks.numbers("epsilons", epsilons), _checks.numbers("deltas", deltas)
    if each.shape != failures.shape or each.ndim != 1 or float(each.min(initial=0.0)) < 0:
        raise InvalidParameter("epsilons", each.shape, "be at least 0, and as many as deltas")
    if not np.all((failures >= 0) & (failures < 1)):
        raise InvalidParameter("deltas", "others", "lie in [0, 1)")
    extra = _checks.proper_fraction("slack", slack)
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
    squares = shared = slack = 0.0
    each: list[float] = []
    for noise, count in counts.items():
        match noise:
            case GaussianNoise():
                squares += count * noise.ratio**2
            case DiscreteGaussianNoise():
                shared += count * noise.concentrated
            case BinomialNoise():
                each += [noise.epsilon(delta / (2 * len(noises)))] * count
            case LaplaceNoise():
                raise InvalidParameter("noises", "several kinds", "be of one kind")
        slack += count * noise.slack
    # Sums of some thousand terms are right within some thousand units.
    more = 1 + (len(counts) + 16) * 2 * UNIT
    if kinds == {BinomialNoise}:
        return composed_epsilon(each, [delta / (2 * len(noises))] * len(noises), delta / 2)
    if kinds == {DiscreteGaussianNoise}:
        return ApproxDP(concentrated_epsilon(shared * more, delta, slack * more), delta)
    ratio = up(math.sqrt(squares * more))
    return ApproxDP(gaussian_epsilon(ratio, delta, slack * more), delta)
