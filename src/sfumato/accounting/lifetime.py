r"""What a budget over time lets out about one value, in all: a bound that is known in advance.

A total (`Horizon`, `Geometric`) bounds it by itself. A budget per step or per window is spent
again and again. The plain sum over all steps is a bound; a chain that forgets gives a
smaller one, which is finite even for ever: an output tells about a value $s$ moments away at most
`told_at_most(epsilon, influence)`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato import _checks
from sfumato._numerics import up
from sfumato.accounting.allocation import Budget, Geometric, Horizon, PerStep, Window, most_at_once
from sfumato.guarantees import SIP
from sfumato.leakage.one_value import influence, told_at_most
from sfumato.models.markov import MarkovChain

Floats = NDArray[np.float64]

_FARTHEST = 4096
"""Moments to each side that are looked at one by one."""
_OUTWARD = 1 + 1e-9


@dataclass(frozen=True, slots=True)
class LifetimeBound:
    """A bound on what all outputs of a stream tell about one of its values.

    Attributes:
        sip: The bound; infinite where none is known.
        rule: What it rests on.
    """

    sip: SIP
    rule: str


def one_value_bound(
    chain: MarkovChain | None, budget: Budget, length: int | None = None, batch: int = 1
) -> LifetimeBound:
    """What a stream may tell about one of its values in all, whatever is released.

    Args:
        chain: How values follow each other; None where only the plain sum is asked for.
        budget: What each step, or window, may leak.
        length: Values of the stream; None: it goes on for ever.
        batch: Values that leave together at most.

    Examples:
        >>> chain = MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> one_value_bound(chain, PerStep(SIP(0.1))).sip.epsilon < 1.4
        True
        >>> one_value_bound(None, PerStep(SIP(0.1)), length=50).sip.epsilon
        5.0000000
    """
    if length is not None:
        _checks.count("length", length)
    plain = _plain_sum(budget, length)
    if isinstance(budget, Horizon | Geometric) or chain is None:
        return LifetimeBound(SIP(plain), "the sum of all steps")
    mixing = _by_forgetting(chain, budget, length, _checks.count("batch", batch))
    if mixing < plain:
        return LifetimeBound(SIP(mixing), "how fast the chain forgets")
    return LifetimeBound(SIP(plain), "the sum of all steps")


def _amount(budget: Budget) -> float:
    """A charge under the model is never above the model-free one."""
    return budget.sip.epsilon if budget.ldp is None else min(budget.sip.epsilon, budget.ldp.epsilon)


def _plain_sum(budget: Budget, length: int | None) -> float:
    amount = _amount(budget)
    match budget:
        case Horizon() | Geometric():
            return amount
        case PerStep():
            return math.inf if length is None else _times_up(amount, length)
        case Window():
            return math.inf if length is None else _times_up(amount, -(-length // budget.width))


def _times_up(amount: float, count: int) -> float:
    """A product that is never below the exact one, and exact where it can be."""
    product = amount * count
    return product if Fraction(amount) * count <= Fraction(product) else up(product)


def _by_forgetting(
    chain: MarkovChain, budget: PerStep | Window, length: int | None, batch: int
) -> float:
    """The value's own block in full, and what blocks before and after it tell about it.

    A block is a value, or the values of a window; a batch counts as far as its nearest value.
    """
    width = budget.width if isinstance(budget, Window) else 1
    blocks = math.inf if length is None else -(-length // width)
    farthest = int(min((blocks + 2) * width + batch, _FARTHEST))
    known = influence(chain, farthest)
    if known is None:
        return math.inf
    amount, most = _amount(budget), min(most_at_once(budget, batch), _amount(budget) * batch)
    sides = []
    # The value stands first in its own block; a batch reaches nearer than its farthest value.
    for side, first in zip(known, (1, width), strict=True):
        nearest = np.maximum(np.arange(first, farthest + 1, width) - batch, 0)
        # What is told grows faster than the leakage: the largest charge tells most for its price.
        sides.append(amount * told_at_most(most, side[nearest]) / most)
    own = amount * (batch if isinstance(budget, PerStep) else 1)
    shown = min(len(side) for side in sides)
    if blocks > shown:
        tail = _beyond(known[1], width) * sum(float(side[shown - 1]) for side in sides)
        return (own + sum(float(side.sum()) for side in sides) + tail) * _OUTWARD
    count = int(blocks)
    earlier, later = (np.concatenate([[0.0], side.cumsum()]) for side in sides)
    return (own + float((earlier[: count + 1] + later[count::-1]).max())) * _OUTWARD


def _beyond(later: Floats, width: int) -> float:
    """All blocks beyond the last one, in terms of it; infinite where nothing was forgotten yet."""
    last, before = float(later[-1]), float(later[-2])
    if last == 0.0:
        return 0.0
    # Where the influence is tiny it shrinks by the same part from moment to moment.
    ratio = (last / before) ** width * (1 + 1e-6)
    return ratio / (1 - ratio) if last < 1e-3 and ratio < 1 else math.inf
