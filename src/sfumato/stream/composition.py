r"""How the leakages of many steps add up when a small failure probability is allowed.

Given the true sequence, step $k$ contributes a log ratio $c_k$ to the adversary's gain with
$|c_k| \le \epsilon_k$ and $E[e^{-c_k} \mid \text{past}] = 1$. Of all such laws the two-point one on
$\pm\epsilon_k$ (randomised response) has the largest moment generating function and dominates
every other in the sense of hypothesis testing; the two numerical bounds rest on that, so they
hold for adaptive releases too. All bounds are two-sided: they bound $|\sum_k c_k|$.

The leakages given to these functions must be **fixed before the first step** (bounds that every
step keeps, such as a budget per step). Charges that depend on earlier outputs, as a ledger holds,
may only be summed: who can stop when he is ahead beats any tail bound on realised charges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import SIP
from sfumato.core.numerics import UNIT, add_up, up
from sfumato.core.search import boundary

_LATTICE = 64
"""Points of the lattice up to the largest leakage: rounding up costs at most a 64th of it."""
_MAX_CONVOLVED = 2_000
"""Steps that are convolved one by one, in some seconds."""
_MAX_EXPONENT = 600.0
"""Sums whose exponentials are still floats."""
_SAFETY = 1 + 1e-9
"""More than thousands of roundings in a row can take away."""


def composed(leakages: Sequence[float], delta: float = 0.0) -> SIP:
    """The best bound on the leakage of a sequence of steps.

    Without a failure probability the plain sum. With one, the smaller of a Chernoff bound with the
    exact moments and, for up to 2000 steps, a convolution, which is often well below it. The
    Chernoff bound is never above the sum, nor above the rule of the paper, also with the exact
    largest mean of a step in it.

    Args:
        leakages: What each step leaks at most, fixed before the first step.
        delta: Probability with which the bound may fail.

    Examples:
        >>> composed([0.1] * 400).epsilon
        40.000000
        >>> composed([0.1] * 400, delta=1e-6).epsilon < 13
        True

    References:
        [SIP, Thms. 1 and 2], [Kairouz2017, Thm. 3.3]
    """
    steps, total = _steps(leakages), 0.0
    for leakage in steps.tolist():
        total = add_up(total, leakage)
    if delta == 0.0:
        return SIP(total)
    allowed = checks.proper_fraction("delta", delta)
    if total == 0.0:
        return SIP(0.0, allowed)
    return SIP(_best_level(steps.tobytes(), total, allowed), allowed)


@lru_cache(maxsize=1_000)  # whoever looks at many streams of one plan asks for the same lengths
def _best_level(content: bytes, total: float, delta: float) -> float:
    steps = np.frombuffer(content)
    best = _least_level(lambda level: chernoff_tail(steps, level), steps, delta, total)
    if steps.size <= _MAX_CONVOLVED and total <= _MAX_EXPONENT:
        best = min(best, _least_level(_convolved_tail(steps), steps, delta, total))
    return best


def paper_composition(leakages: Sequence[float], delta: float) -> SIP:
    r"""The advanced composition of the paper, corrected.

    $$\sum_k \epsilon_k (e^{\epsilon_k} - 1) + \sqrt{2 \ln(2/\delta) \sum_k \epsilon_k^2}$$

    The square root of the number of steps also for batches, and $\delta$ split over both tails.

    References:
        [SIP, Thm. 2]
    """
    steps, allowed = _steps(leakages), checks.proper_fraction("delta", delta)
    mean = float((steps * portable.expm1(steps)).sum())
    spread = math.sqrt(2 * portable.log(2 / allowed) * float((steps**2).sum()))
    return SIP((mean + spread) * _SAFETY, allowed)


def chernoff_tail(steps: Floats, level: float, side: int = 1) -> float:
    r"""Bound on the probability that the summed log ratio passes `level` on one side.

    $$\min_{\lambda > 0} e^{-\lambda s} \prod_k
      \frac{e^{(1 \pm \lambda) \epsilon_k} + e^{\mp\lambda\epsilon_k}}{e^{\epsilon_k} + 1}$$

    where $s$ is `level` and the sign is `side`. Any $\lambda$ gives a valid bound on the upper
    side. On the lower side $\lambda \ge 1$ is needed: below that the power of a likelihood ratio is
    concave, and the two-point law no longer the worst.
    """
    total, norms = float(steps.sum()), _log_sum(steps, 0.0)

    def exponent(power: float) -> float:
        rise = _log_sum((1 + side * power) * steps, -side * power * steps)
        error = 16 * UNIT * (1 + power) * (total + steps.size + level)
        return float((rise - norms).sum() - power * level + error)

    # The exponent is convex in the power: double until it rises, then the minimum lies below.
    top, here = 1.0, exponent(1.0)
    while (further := exponent(2 * top)) < here:
        top, here = 2 * top, further
    least = 0.0 if side > 0 else 1.0
    from scipy.optimize import minimize_scalar  # at first use: it takes long to load

    found = minimize_scalar(exponent, bounds=(least, 2 * top), method="bounded")
    return min(1.0, portable.exp(min(0.0, float(found.fun))) * _SAFETY)


def _log_sum(one: Floats, other: Floats | float) -> Floats:
    """log(e^one + e^other), without leaving the floats."""
    return np.maximum(one, other) + portable.log1p(portable.exp(-np.abs(one - other)))


def _convolved_tail(steps: Floats) -> Callable[[float], float]:
    r"""Tail bound from the exact law of a sum of dominating two-point losses.

    Each leakage is rounded up to a multiple of a 64th of the largest, so the sums live on a
    lattice and the convolution is exact up to rounding. With $\delta(s)$ the hockey-stick
    divergence of the sum, $\Pr(\sum c > s) \le \delta(s') / (1 - e^{s'-s})$ for every $s' < s$.
    """
    # A hair wider than needed, so that rounding never lands a step on a smaller multiple.
    width = float(steps.max()) / _LATTICE * (1 + 1e-12)
    multiples = np.ceil(steps / width).astype(np.int64)
    reach = int(multiples.sum())
    law = np.zeros(2 * reach + 1)
    law[reach] = 1.0
    for multiple in multiples[multiples > 0]:
        up_share = 1 / (1 + portable.exp(-multiple * width))
        law = up_share * _shifted(law, multiple) + (1 - up_share) * _shifted(law, -multiple)
    losses = np.arange(-reach, reach + 1) * width
    mass = law[::-1].cumsum()[::-1]
    tilted = (law * portable.exp(-losses))[::-1].cumsum()[::-1]
    divergence = np.maximum(mass - portable.exp(losses) * tilted, 0.0)

    def tail(level: float) -> float:
        below = losses < level
        bounds = divergence[below] / -portable.expm1(losses[below] - level)
        return min(1.0, float(bounds.min(initial=1.0)) * _SAFETY)

    return tail


def _shifted(law: Floats, steps: int) -> Floats:
    moved = np.zeros_like(law)
    if steps > 0:
        moved[steps:] = law[:-steps]
    else:
        moved[:steps] = law[-steps:]
    return moved


def _least_level(
    upper_tail: Callable[[float], float], steps: Floats, delta: float, total: float
) -> float:
    """The least level that fails with probability at most `delta`, on both sides together."""

    def holds(level: float) -> bool:
        above = upper_tail(level)
        # What one side alone forbids needs no search on the other.
        return above <= delta and above + chernoff_tail(steps, level, side=-1) <= delta

    return min(total, up(boundary(holds, total, 0.0, absolute=1e-10 * total)))


def _steps(leakages: Sequence[float]) -> Floats:
    steps = np.asarray(leakages, dtype=np.float64)
    if steps.ndim != 1 or not np.all(np.isfinite(steps)) or not np.all(steps >= 0):
        raise InvalidParameter("leakages", steps.shape, "be finite numbers of at least 0")
    return steps
