r"""Budgets for single releases such that no moment leaks more than $\alpha$ under correlation.

Two moments apart, leakage through the past settles at `backward.supremum(epsilon)` and through the
future at `forward.supremum(epsilon)`. A constant budget for ever is the one for which both
together, counted once, are $\alpha$. The first and the last release of a finite sequence may have
more, since nothing comes before the one and after the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.numerics import up
from sfumato.core.search import largest
from sfumato.temporal.loss_function import LossFunction
from sfumato.temporal.over_time import temporal_leakage


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
        # Both directions count the release of the moment itself, which counts once.
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
    # At the ends one direction is missing: they may have more than the others.
    before, after = backward.supremum(constant), forward.supremum(constant)
    first = largest(lambda e: e <= before and up(e + forward(after)) <= level, before)
    last = largest(lambda e: e <= after and up(e + backward(before)) <= level, after)
    return TemporalBudgets(constant, first, middle, last)


def paper_budgets(
    backward: LossFunction, forward: LossFunction, alpha: float, steps: int
) -> Floats:
    """Budgets for a known number of releases, each moment leaking `alpha`, as the paper has them.

    Examples:
        >>> chain = LossFunction.of([[0.8, 0.2], [0.2, 0.8]])
        >>> paper_budgets(chain, chain, 1.0, 1)
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


def scaled_budgets(
    epsilons: Floats, backward: LossFunction, forward: LossFunction, alpha: float
) -> Floats:
    """Budgets, lowered by one factor as far as needed for no moment to leak more than alpha."""

    def kept(factor: float) -> bool:
        return temporal_leakage(factor * epsilons, backward, forward).event.alpha <= alpha

    return np.asarray(largest(kept, 1.0) * epsilons)
