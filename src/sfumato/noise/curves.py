r"""Curves of noises, and what draws from one kind of noise promise together.

A release with noise of deviation $\sigma$ and sensitivity $\Delta$ is a Gaussian mechanism of ratio
$\mu = \Delta/\sigma$. Several of them, chosen one after another from what was released before, are
no worse than one of ratio $\sqrt{\sum_t \mu_t^2}$, whose curve is known exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks, portable, search
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import ApproxDP
from sfumato.core.numerics import UNIT, up
from sfumato.noise.densities import local_gaussian_delta

# Beyond these nothing is promised, and no search goes on.
_MOST_EPSILON, _MOST_RATIO = 2000.0, 1e6
# Where the search for a level begins: budgets below are found by halving.
_LEAST_EPSILON = 1e-6


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
    # Two normal probabilities are subtracted: what they are wrong by is added.
    told = told * (1 + 1e-12) + 8 * UNIT - portable.expm1(min(0.0, level))
    return min(1.0, up(up(told * portable.exp(min(error, 700.0))) * (1 + 4 * UNIT) + slack))


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
    return least_level(lambda epsilon: gaussian_delta(size, epsilon, slack, error) <= allowed)


def least_level(kept: Callable[[float], bool]) -> float:
    """The least level that keeps a rule that all larger ones keep; infinite if none does."""
    return search.least_above(kept, _LEAST_EPSILON, _MOST_EPSILON)


def gaussian_ratio(epsilon: float, delta: float, slack: float = 0.0, error: float = 0.0) -> float:
    """The largest ratio of sensitivity to deviation that keeps a budget, rounded down.

    Raises:
        InvalidParameter: If no ratio keeps it.

    Examples:
        >>> gaussian_ratio(1.0, 1e-5)
        0.2680512
    """
    budget, allowed = checks.positive("epsilon", epsilon), checks.proper_fraction("delta", delta)
    low = search.largest_above(
        lambda ratio: gaussian_delta(ratio, budget, slack, error) <= allowed, 1.0, _MOST_RATIO
    )
    if low == 0.0:
        raise InvalidParameter("delta", delta, "be larger: what is rounded takes all of it")
    less = 2.0**-44
    while gaussian_epsilon(low, allowed, slack, error) > budget:
        low, less = low * (1 - less), 4 * less  # the curve is rounded, and wavers by some units
    return low


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
    # Any order gives a bound, so a fixed grid of them is right, and nearly the best.
    orders = 1 + portable.geometric(1e-3, 1e6, 4000)

    def kept(epsilon: float) -> bool:
        logs = (orders - 1) * (orders * size - (epsilon - 2 * error)) - portable.log(orders - 1)
        logs = logs + orders * portable.log1p(-1 / orders)
        told = portable.exp(min(0.0, float(logs.min())) + min(error, 700.0))
        return up(told * (1 + 1e-12) + slack) <= allowed

    return least_level(kept)


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
    drift = float((each * portable.tanh(each / 2)).sum())
    square = float(np.square(each).sum())
    first = drift + math.sqrt(2 * square * portable.log(math.e + math.sqrt(square) / extra))
    second = drift + math.sqrt(2 * square * portable.log(1 / extra))
    kept = portable.log1p(-extra) + float(portable.log1p(-failures).sum())
    failed = min(1.0, up(-portable.expm1(kept) * (1 + 1e-14))) if failures.any() else extra
    return ApproxDP(up(min(total, first, second) * (1 + 1e-12)), failed)
