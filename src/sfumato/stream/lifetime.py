r"""What a budget over time lets out about one value, in all: a bound that is known in advance.

A total (`Horizon`, `Geometric`) bounds it by itself. A budget per step or per window is spent
again and again. The plain sum over all steps is a bound; a chain that forgets gives a
smaller one, which is finite even for ever: an output tells about a value of another batch at most
`leakage_about_another(epsilon, tau)`, where `tau` is how far `influence` lets it move the law of
that batch. Earlier batches count by moments, later ones by batches.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.core.budgets import Budget, Geometric, Horizon, PerPeriod, PerStep, Window
from sfumato.core.guarantees import SIP
from sfumato.core.numerics import up
from sfumato.models.markov import MarkovChain
from sfumato.stream.one_value import Influence, influence, leakage_about_another

_LISTED = 4096
"""Blocks to each side that are looked at one by one."""
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
        checks.count("length", length)
    if isinstance(budget, PerPeriod):
        # Each value may lie in a period of its own: no more is known than the most of a value.
        budget = PerStep(SIP(budget.most_at_once()), budget.ldp)
    plain = _plain_sum(budget, length)
    if isinstance(budget, Horizon | Geometric) or chain is None:
        return LifetimeBound(SIP(plain), "the sum of all steps")
    mixing = _by_forgetting(chain, budget, length, checks.count("batch", batch))
    if mixing < plain:
        return LifetimeBound(SIP(mixing), "how fast the chain forgets")
    return LifetimeBound(SIP(plain), "the sum of all steps")


def _amount(budget: Budget) -> float:
    """A charge under the model is never above the model-free one."""
    return budget.sip.epsilon if budget.ldp is None else min(budget.sip.epsilon, budget.ldp.epsilon)


def _plain_sum(budget: PerStep | Horizon | Window | Geometric, length: int | None) -> float:
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

    A block is the values of a window, or one value. A batch is charged at its last value, by
    windows, and at each of its values, by steps; so the own block is a window that begins with the
    charge of the value's batch, or this batch.
    """
    known, amount = influence(chain), _amount(budget)
    if known is None or math.isinf(amount):
        return math.inf
    width = budget.width if isinstance(budget, Window) else 1
    most = min(budget.most_at_once(batch), amount * batch)
    earlier, later = _earlier(known, most, width, batch), _later(known, most, width, batch)
    own = batch if isinstance(budget, PerStep) else 1
    if length is None:
        return amount * (own + earlier.first(math.inf) + later.first(math.inf)) * _OUTWARD
    others = -(-(length - 1) // width)
    alike = _alike(width, batch)
    groups = -(-others // alike)
    if groups > _LISTED:
        return amount * (own + earlier.first(others) + later.first(groups)) * _OUTWARD
    # With m groups after the value, of which the last may be a single block, the rest is before it.
    told = [earlier.first(others)]
    for m in range(1, groups + 1):
        told.append(earlier.first(others - 1 - (m - 1) * alike) + later.first(m))
    return amount * (own + max(told)) * _OUTWARD


@dataclass(frozen=True, slots=True)
class _Side:
    """What blocks on one side of a value tell about it, as parts of their price.

    Attributes:
        extra: Blocks that are as near as the nearest listed one, besides it.
        parts: The part that each of the following tells; it never grows.
        sums: Of these parts, beginning with none.
        beyond: A bound on all blocks that are not listed; infinite where none is proven.
    """

    extra: int
    parts: Floats
    sums: Floats
    beyond: float

    def first(self, count: float) -> float:
        """What the nearest `count` tell."""
        near = min(count, self.extra)
        listed = int(min(count - near, len(self.parts)))
        rest, last = count - near - listed, float(self.parts[-1])
        unlisted = min(self.beyond, rest * last) if rest and last else 0.0
        return near * float(self.parts[0]) + float(self.sums[listed]) + unlisted


def _earlier(known: Influence, most: float, width: int, batch: int) -> _Side:
    """Blocks before the value: a batch reaches up to `batch - 1` values nearer than its charge."""
    extra = (batch - 1) // width
    further = np.arange(1.0, _LISTED) * width + (extra * width + 2 - batch)
    distances = known.earlier(np.concatenate([[1.0], further]))
    return _side(extra, most, distances, distances[-1:], known.shrink**width)


def _later(known: Influence, most: float, width: int, batch: int) -> _Side:
    """Groups of blocks after the value, by the number of batches that must lie before them.

    The charges of batches that follow each other are at most `batch` values apart.
    """
    alike = _alike(width, batch)
    values = (np.arange(_LISTED, dtype=np.float64) * alike + 1) * width
    distances = known.later(np.ceil(values / batch))
    # Whole batches grow unevenly with values; a fraction of one is below them, and grows evenly.
    edge = known.later(values[-1:] / batch)
    return _side(0, most, distances, edge, known.shrink ** (alike * width / batch), alike)


def _alike(width: int, batch: int) -> int:
    """Blocks after the value that one batch can put at the same distance."""
    return -(-batch // width)


def _side(
    extra: int, most: float, distances: Floats, edge: Floats, ratio: float, alike: int = 1
) -> _Side:
    """What is told at these distances of laws; beyond, they shrink by `ratio` from `edge` on."""
    # What is told grows faster than the leakage: the largest charge tells most for its price.
    parts = alike * leakage_about_another(most, portable.tanh(distances / 4) * (1 + 1e-12)) / most
    # tanh(d/4) is below d/4, and what is told is convex in it: it shrinks as fast as distances.
    last = float(leakage_about_another(most, edge / 4)[0])
    proven = last < most and ratio < 1
    beyond = alike * last / most * ratio / (1 - ratio) if proven else math.inf
    sums = np.concatenate([[0.0], np.cumsum(parts)])
    return _Side(extra, parts, sums, beyond)
