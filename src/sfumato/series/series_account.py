"""What measurements promise together, and a Gaussian budget for those chosen as one goes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from scipy import special

from sfumato.core.errors import BudgetExceeded, InvalidParameter
from sfumato.core.guarantees import ApproxDP, PureDP
from sfumato.core.numerics import UNIT, up
from sfumato.noise.curves import gaussian_epsilon, gaussian_ratio, least_level
from sfumato.noise.gaussian_noise import GaussianNoise
from sfumato.noise.number_noise import NumberNoise

_FOR_ROUNDING = 1e-5
"""Part of a fixed budget that is set aside for the tables of noise."""
_LEVELS = 16
"""Halvings of a budget at which what was spent is said."""


def check_one_kind(noises: Sequence[NumberNoise]) -> type[NumberNoise]:
    """The one kind of some noises, or say that they must be of one."""
    kinds = {type(noise) for noise in noises}
    if len(kinds) != 1:
        raise InvalidParameter("noises", f"{len(kinds)} kinds", "be of one kind")
    return kinds.pop()


def series_guarantee(noises: Sequence[NumberNoise], delta: float) -> PureDP | ApproxDP:
    """What measurements with these noises promise together, to a person who is in all of them.

    Args:
        noises: Of one kind, which says how its draws compose.
        delta: For approximate guarantees.

    Examples:
        >>> series_guarantee([GaussianNoise.at(1.0, 10.0)] * 4, 1e-6).epsilon
        0.8341
    """
    return check_one_kind(noises).together(Counter(noises), delta)


@dataclass(frozen=True, slots=True)
class GaussianAccount:
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
        >>> begun = GaussianAccount(1.0, 1e-5).charged(GaussianNoise.at(1.0, 10.0))
        >>> begun.covers(GaussianNoise.at(1.0, 10.0)), begun.covers(GaussianNoise.at(1.0, 1.0))
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
    def allowance(self) -> float:
        """The sum of squared ratios that is left."""
        return max(0.0, self.most - self.squares)

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
        passed = least_level(lambda x: _passing(math.sqrt(level), x) <= part)
        return ApproxDP(up(passed + 2 * _FOR_ROUNDING * self.epsilon), self.delta)

    def covers(self, noise: GaussianNoise) -> bool:
        """Whether one more release with this noise keeps the budget."""
        more = self._with(noise)
        rounded = more.slack <= _FOR_ROUNDING * self.delta
        exact = more.error <= min(_FOR_ROUNDING, _FOR_ROUNDING * self.epsilon)
        return more.squares <= self.most and rounded and exact

    def charged(self, noise: GaussianNoise) -> GaussianAccount:
        """After one more release.

        Raises:
            BudgetExceeded: If it does not fit; nothing was drawn.
        """
        more = self._with(noise)
        if not self.covers(noise):
            ratio = up(math.sqrt(more.squares) * (1 + 4 * UNIT))
            asked = ApproxDP(gaussian_epsilon(ratio, self.delta), self.delta)
            raise BudgetExceeded("series", self.count, asked, self.guarantee)
        return more

    def _with(self, noise: GaussianNoise) -> GaussianAccount:
        squares = up(self.squares + up(noise.ratio**2 * (1 + 4 * UNIT)))
        slack, error = up(self.slack + noise.slack), up(self.error + noise.error)
        return GaussianAccount(self.epsilon, self.delta, squares, slack, error, self.count + 1)


@lru_cache(maxsize=64)
def _filter_squares(epsilon: float, delta: float) -> float:
    rounding = (_FOR_ROUNDING * delta, min(_FOR_ROUNDING, _FOR_ROUNDING * epsilon))
    return gaussian_ratio(epsilon, delta, *rounding) ** 2 * (1 - 4 * UNIT)


def _passing(root: float, level: float) -> float:
    """Probability that a loss passes a level before the sum of squares is that of the root."""
    high, low = 0.5 * root - level / root, -0.5 * root - level / root
    second = math.exp(min(0.0, level + float(special.log_ndtr(low))))
    return up((float(special.ndtr(high)) + second) * (1 + 1e-12))
