r"""Budgets for single releases such that no moment leaks more than $\alpha$ under correlation.

Two moments apart, leakage through the past settles at `backward.supremum(epsilon)` and through the
future at `forward.supremum(epsilon)`. A constant budget for ever is the one for which both
together, counted once, are $\alpha$. The first and the last release of a finite sequence may have
more, since nothing comes before the one and after the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.numerics import UNIT, shown_down, up
from sfumato.core.search import largest
from sfumato.temporal.over_time import temporal_leakage
from sfumato.temporal.temporal_leakage import LossFunction


@dataclass(frozen=True, slots=True)
class TemporalBudgets:
    """Budgets for a sequence of releases.

    Attributes:
        constant: For every release, for ever.
        first: For the first of a sequence whose others have `middle`.
        middle: For all releases but the first and the last; the same as `constant`.
        last: For the last one.

    References:
        [TPL, Alg. 7 and Alg. 8]
    """

    constant: float
    first: float
    middle: float
    last: float

    def of_length(self, steps: int) -> Floats:
        """Budgets of a sequence of so many releases."""
        length = checks.count("steps", steps)
        if length == 1:
            raise InvalidParameter("steps", 1, "be at least 2; a single release has all of alpha")
        return np.array([self.first, *[self.middle] * (length - 2), self.last])


def allocate(backward: LossFunction, forward: LossFunction, alpha: float) -> TemporalBudgets:
    """The largest constant budget with which no moment ever leaks more than `alpha`.

    Raises:
        InvalidParameter: If two rows of a matrix share no column: then every release is one of
            the same secret, and no constant budget lasts.

    Examples:
        >>> backward = LossFunction.of([[0.8, 0.2], [0.2, 0.8]])
        >>> forward = LossFunction.of([[0.8, 0.2], [0.1, 0.9]])
        >>> allocate(backward, forward, 1.0)
        TemporalBudgets(constant=0.2038721, first=0.4998062, middle=0.2038721, last=0.7040658)

    References:
        [TPL, Alg. 7 and Alg. 8]
    """
    level = checks.positive("alpha", alpha)
    for name, loss in (("backward", backward), ("forward", forward)):
        if loss.disjoint is not None:
            one, other = loss.disjoint
            raise InvalidParameter(
                name,
                f"rows {one} and {other} with no common column",
                "have no two rows that exclude each other: what is told once is told of every "
                "moment, so only a finite number of releases can share alpha",
            )

    def kept(epsilon: float) -> bool:
        both = backward.supremum(epsilon) + forward.supremum(epsilon)
        return up(both) - epsilon <= level

    constant = largest(kept, level)
    if constant == 0.0:
        steepest = max((backward, forward), key=lambda loss: loss(level))
        one, other = steepest.pairs[0]
        raise InvalidParameter(
            "backward" if steepest is backward else "forward",
            f"rows {one} and {other} with almost none in common",
            "have no two rows that all but exclude each other: no constant budget is left",
        )
    middle = constant
    before, after = backward.supremum(constant), forward.supremum(constant)
    first = largest(lambda e: e <= before and up(e + forward(after)) <= level, before)
    last = largest(lambda e: e <= after and up(e + backward(before)) <= level, after)
    return TemporalBudgets(constant, first, middle, last)


def finite_budgets(
    backward: LossFunction, forward: LossFunction, alpha: float, steps: int
) -> Floats:
    """Budgets for a known number of releases, each moment leaking `alpha`, as published.

    Examples:
        >>> chain = LossFunction.of([[0.8, 0.2], [0.2, 0.8]])
        >>> finite_budgets(chain, chain, 1.0, 1)
        array([1.])

    References:
        [TPL, Alg. 8]
    """
    length, level = checks.count("steps", steps), checks.positive("alpha", alpha)
    if length == 1:
        return np.array([level])
    try:
        each = allocate(backward, forward, level).of_length(length)
    except InvalidParameter:
        each = np.full(length, level / length)  # one secret, told so many times
    return scaled_budgets(each, backward, forward, level)


@dataclass(frozen=True, slots=True)
class OnlineBudget:
    """Budgets release by release, for a stream whose end is not known.

    Every budget leaves room for an endless future of constant ones. The first release gets more
    than the constant, and so does one after moments at which nothing was released.

    Attributes:
        backward: Loss function of the backward matrix.
        forward: Loss function of the forward matrix.
        alpha: What no moment may leak more than.
        future: Bound on the forward leakage of the next moment that is always left room for.
        told: Backward leakage of the last moment.
        room: How much forward leakage the moments so far can bear of the next one.

    Examples:
        >>> chain = LossFunction.of([[0.8, 0.2], [0.2, 0.8]])
        >>> stream = OnlineBudget.begin(chain, chain, 1.0)
        >>> spent = []
        >>> for _ in range(3):
        ...     spent.append(stream.offered)
        ...     stream = stream.spend(stream.offered)
        >>> np.round(spent, 4)
        array([0.6299, 0.2598, 0.2598])
    """

    backward: LossFunction
    forward: LossFunction
    alpha: float
    future: float
    told: float = 0.0
    room: float = math.inf

    @classmethod
    def begin(cls, backward: LossFunction, forward: LossFunction, alpha: float) -> OnlineBudget:
        """Before the first release."""
        constant = allocate(backward, forward, alpha).constant
        return cls(backward, forward, alpha, forward.supremum(constant))

    @property
    def offered(self) -> float:
        """The largest budget for the next release that leaves room for any future."""
        return self._within(self.forward(self.future))

    @property
    def offered_last(self) -> float:
        """The largest budget for the next release if nothing follows it."""
        return self._within(0.0)

    def spend(self, epsilon: float) -> OnlineBudget:
        """After a release with a budget of at most what was offered; 0 for a moment without one."""
        budget = checks.leakage("epsilon", epsilon)
        if budget > max(self.offered, self.offered_last):
            raise InvalidParameter(
                "epsilon", epsilon, f"be at most {shown_down(self.offered_last)}"
            )
        told = self.backward.after(self.told, budget)
        left = min(self.room - budget, self.alpha * (1 - 64 * UNIT) - told)
        return replace(self, told=told, room=self.forward.inverse(max(0.0, left)))

    def _within(self, later: float) -> float:
        """The largest budget such that, with `later` to come, no moment leaks over alpha."""

        def kept(epsilon: float) -> bool:
            carried = self.backward(self.told)
            # A hair less than alpha, for what is left of it is rounded several times.
            here = up(up(carried + epsilon) + later) <= self.alpha * (1 - 64 * UNIT)
            return here and up(epsilon + later) <= self.room

        return largest(kept, self.alpha)


def scaled_budgets(
    epsilons: Floats, backward: LossFunction, forward: LossFunction, alpha: float
) -> Floats:
    """Budgets, lowered by one factor as far as needed for no moment to leak more than alpha."""

    def kept(factor: float) -> bool:
        return temporal_leakage(factor * epsilons, backward, forward).event.alpha <= alpha

    return np.asarray(largest(kept, 1.0) * epsilons)
