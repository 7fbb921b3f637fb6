r"""What all outputs of a stream together tell about one of its values.

A budget per step or per window bounds what single outputs tell; a value that stays the same for
long is told again and again, so what is told about it in all has no such bound. It is measured
here: exactly for outputs that were seen, and in advance by how fast the chain forgets.

For a moment $t$ and a symbol $x$ the measure is
$|\log \Pr(x_t = x \mid y_1, \dots, y_T) / \Pr(x_t = x)|$.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Floats
from sfumato.core.numerics import UNIT, up
from sfumato.models.markov import MarkovChain

_PAIRED = 400
"""Symbols up to which all pairs of rows of a chain are compared."""
_POWERS = 64
"""Powers of a chain that are computed; beyond them its contraction is enough."""


def one_value_leakage(chain: MarkovChain, likelihoods: Sequence[Floats | None]) -> float:
    """The largest change of the adversary's belief about any one value, given all outputs.

    Args:
        chain: What he knows.
        likelihoods: For each moment, how likely its output was under each symbol, up to a factor;
            None where nothing was told.

    Returns:
        The largest log ratio over all moments and symbols, in absolute value, rounded up.

    Examples:
        >>> chain = MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> told = np.array([0.6, 0.4])
        >>> one_value_leakage(chain, [told]), one_value_leakage(chain, [told] * 3)
        (0.2231435, 0.6576609)
    """
    steps, order, size = len(likelihoods), chain.order, chain.size
    told = [None if one is None else one / one.max() for one in likelihoods]
    if all(one is None for one in told):
        return 0.0
    later = _later(chain, told)
    prior, joint = chain.initial.ravel(), chain.initial
    for axis, one in enumerate(told[:order]):
        if one is not None:
            joint = joint * one.reshape([-1 if axis == k else 1 for k in range(order)])
    worst, joint = 0.0, joint.ravel()
    for axis in range(min(order, steps)):
        worst = max(worst, _moved(prior, joint * later[0], size, order, axis))
    for moment in range(order, steps):
        prior, joint = chain.spread(prior), chain.spread(joint)
        if (one := told[moment]) is not None:
            joint = (joint.reshape(-1, size) * one).ravel()
        joint = joint / joint.sum()
        worst = max(worst, _moved(prior, joint * later[moment - order + 1], size, order, order - 1))
    # Forward and back, every sum and product of a step; then the sums over contexts.
    rounding = (32 * (steps + 1) * (size + 8) + 8 * prior.size) * UNIT
    return up(worst + rounding)


def one_value_leakage_of_batches(
    chain: MarkovChain, batches: Sequence[tuple[int, Floats | None]]
) -> float:
    """The same where values left in batches.

    Args:
        chain: Of order 1.
        batches: For each batch its length, and how likely its output was under every batch of that
            length, the first value most significant; None where nothing was told.

    Examples:
        >>> chain = MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> told = np.array([0.6, 0.4])
        >>> one_value_leakage_of_batches(chain, [(2, np.outer(told, told).ravel()), (1, told)])
        0.6576609
    """
    move, size = chain.transition(), chain.size
    paths = [_conditional(move, length, told) for length, told in batches]
    later = [np.ones(size)]
    for path in reversed(paths[1:]):
        ahead = (path * later[-1]).reshape(size, -1).sum(axis=1)
        later.append(portable.dot(move, ahead / ahead.max()))
    prior = belief = chain.initial
    worst = 0.0
    for (length, _told), path, ahead in zip(batches, paths, reversed(later), strict=True):
        weights = path * belief.reshape(-1, *[1] * (length - 1))
        for axis in range(length):
            others = tuple(k for k in range(length) if k != axis)
            after = (weights * ahead).sum(axis=others)
            worst = max(worst, _moved(prior, after, size, 1, 0))
            prior = portable.dot(prior, move)
        last = weights.reshape(-1, size).sum(axis=0)
        belief = portable.dot(last / last.sum(), move)
    if all(told is None for _, told in batches):
        return 0.0
    steps = sum(length for length, _ in batches)
    most = max(path.size for path in paths)
    return up(worst + (32 * (steps + 1) * (size + 8) + 8 * most) * UNIT)


def _conditional(move: Floats, length: int, told: Floats | None) -> Floats:
    """Probability of every batch given its first value, times how likely its output was."""
    size = len(move)
    path = (
        np.ones((size,) * length) if told is None else (told / told.max()).reshape((size,) * length)
    )
    for axis in range(length - 1):
        path = path * move.reshape([size if k in (axis, axis + 1) else 1 for k in range(length)])
    return path


def _later(chain: MarkovChain, told: Sequence[Floats | None]) -> list[Floats]:
    """For each context from the first one on: how likely the outputs after it are."""
    ahead = np.ones(chain.initial.size)
    found, everywhere = [ahead], np.ones(chain.initial.size)
    for one in reversed(told[chain.order :]):
        if one is not None:
            ahead = (ahead.reshape(-1, chain.size) * one).ravel()
        ahead = chain.expect(ahead, everywhere)
        ahead = ahead / ahead.max()
        found.append(ahead)
    return found[::-1]


def _moved(prior: Floats, joint: Floats, size: int, order: int, axis: int) -> float:
    """Largest log ratio of two distributions of the value at one axis of a context."""
    others = tuple(k for k in range(order) if k != axis)
    before = prior.reshape((size,) * order).sum(axis=others)
    after = joint.reshape((size,) * order).sum(axis=others)
    with np.errstate(divide="ignore"):
        ratios = portable.log(after / after.sum()) - portable.log(before / before.sum())
    return float(np.abs(ratios[before > 0]).max())


@dataclass(frozen=True, slots=True)
class Influence:
    r"""How far knowing one value moves the laws of others: Hilbert's distance, a bound.

    Two laws at distance $d$ differ by at most $\tanh(d/4)$ in total variation.

    Attributes:
        columns: For values 1, 2, ... moments earlier, as far as powers of the chain are computed.
        rows: For the batch right after that of the value.
        shrink: What is left of a distance one moment earlier, or one batch later.
    """

    columns: Floats
    rows: float
    shrink: float

    def earlier(self, moments: Floats) -> Floats:
        """Distances of laws of a value that many moments earlier."""
        listed = np.minimum(moments, len(self.columns))
        near = self.columns[listed.astype(np.int64) - 1]
        return near * self.shrink ** (moments - listed) * (1 + 1e-9)

    def later(self, batches: Floats) -> Floats:
        """Distances of laws of the values of a batch that many batches later."""
        return self.rows * self.shrink ** (batches - 1) * (1 + 1e-9)


def influence(chain: MarkovChain) -> Influence | None:
    r"""How far knowing one value can move the law of others.

    **Earlier** values, of which the last is $s$ moments before it, given what was released before
    them: Bayes' rule weighs them by the column $M^s(\cdot, x)$, so $d$ is at most the largest log
    quotient within a column.

    **Later** values, given what was released before them. The output of a batch may depend on its
    first and last value together, in any way: from its first value to the first one of the next
    batch leads $K M$, where $K$ is any matrix without negative entries. $K$ does not widen
    Hilbert's projective distance, and $M$ shrinks it by Birkhoff's coefficient $\tanh(\Delta/4)$,
    where $\Delta$ is the largest distance of two rows of $M$. So a **batch** shrinks it once,
    however long it is, and $d \le \Delta \tanh(\Delta/4)^{k-1}$ for the $k$-th batch after that of
    the value. Only where single values leave is a batch a moment.

    Returns:
        None where nothing is known: for chains of a higher order, with zeros, or with more than 400
        symbols.

    Examples:
        >>> found = influence(MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]]))
        >>> np.tanh(found.earlier(np.array([1, 2, 3])) / 4).round(6)
        array([0.5     , 0.361914, 0.275419])
    """
    if chain.order != 1 or chain.size > _PAIRED or chain.floor <= 0:
        return None
    move = chain.transition()
    logs, widest = portable.log(move), 0.0
    for row in logs:
        gaps = logs - row
        widest = max(widest, float((gaps.max(axis=1) - gaps.min(axis=1)).max()))
    widest = widest * (1 + 1e-12) + 1e-12
    columns, power = np.empty(_POWERS), move
    for s in range(_POWERS):
        columns[s] = portable.log(power.max(axis=0) / power.min(axis=0)).max()
        columns[s] += 8 * (s + 1) * (chain.size + 2) * UNIT
        power = portable.dot(power, move)
    shrink = min(portable.tanh(widest / 4) * (1 + 1e-12), 1.0)
    return Influence(np.minimum.accumulate(columns), widest, shrink)


def leakage_about_another(epsilon: float, influences: Floats) -> Floats:
    r"""What an output of leakage `epsilon` about its own value tells about another one.

    $$\min\big(\epsilon, -\log(1 - 2 \tau \sinh \epsilon)\big)$$

    where $\tau$ is the `influences`: the likelihood of the output under each symbol is within
    $e^{\pm\epsilon}$ of its mean, and means of it under two laws differ by at most $\tau$ times its
    range.
    """
    with np.errstate(over="ignore"):
        share = 2 * influences * portable.sinh(epsilon)
        bound = np.where(share < 1, -portable.log1p(-np.minimum(share, 1 - 1e-16)), np.inf)
    return np.minimum(epsilon, bound * (1 + 1e-12))
