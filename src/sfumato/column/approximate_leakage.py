r"""Approximate leakage of a channel: what holds up to a probability, exactly and rounded up.

$E_k(p \| q) = \sum_y \max\{p(y) - k\,q(y), 0\}$ is the least $\delta$ with
$p(S) \le k\,q(S) + \delta$ for every set of outputs. A channel $a$ is $(\epsilon, \delta)$-LIP
when $E_k(a_x \| P) \le \delta$ and $E_k(P \| a_x) \le \delta$ for every symbol, with
$k = e^\epsilon$ and $P$ the output marginal, and $(\epsilon, \delta)$-LDP when
$E_k(a_x \| a_{x'}) \le \delta$ for every two. All of it is computed from the integers that are
sampled.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.core.channel import Channel
from sfumato.core.compiled import njit
from sfumato.core.guarantees import LDP, LIP
from sfumato.core.information_leakage import information_leakage
from sfumato.core.local_leakage import local_leakage
from sfumato.core.numerics import UNIT, expected_error, up
from sfumato.core.portable_loops import exp
from sfumato.core.randomness import BITS
from sfumato.core.search import boundary

# To the last bits of a level between 0 and some hundred.
_HALVINGS, _PAIR_HALVINGS = 50, 52
_WHOLE = 2.0**BITS
# Beyond this e**epsilon leaves the floats; the delta at a smaller level is an upper bound.
_LARGEST = 700.0


def approximate_leakage(channel: Channel, belief: ArrayLike, epsilon: float) -> LIP:
    """The exact delta of a channel at a level under a belief, rounded up.

    Examples:
        >>> noisy = Channel.from_probabilities([[0.75, 0.25], [0.25, 0.75]])
        >>> approximate_leakage(noisy, [0.5, 0.5], epsilon=0.5).delta
        0.0878196
        >>> approximate_leakage(noisy, [0.5, 0.5], epsilon=0.6931471805599454).delta
        0.0

    References:
        [LIP, Def. 5 and Cor. 9]
    """
    level = checks.leakage("epsilon", epsilon)
    return LIP(level, float(deltas(channel, belief, level).max()))


def deltas(channel: Channel, belief: ArrayLike, epsilon: float) -> Floats:
    """The same for each true symbol by itself."""
    prior = checks.belief("belief", belief, channel.size)
    level = checks.leakage("epsilon", epsilon)
    if channel.is_constant or information_leakage(channel, prior).epsilon <= level:
        return np.zeros(channel.size)
    weights = channel.weights.astype(np.float64) / _WHOLE
    mean = portable.dot(prior, weights) / prior.sum()
    # Everything that is subtracted is rounded down, the rest up.
    error = expected_error(channel.size)
    k = portable.exp(min(level, _LARGEST)) * (1 - 8 * UNIT)
    above = np.maximum(weights - (k * (1 - error)) * mean, 0).sum(axis=1)
    below = np.maximum((1 + error) * mean - (k * (1 - 2 * UNIT)) * weights, 0).sum(axis=1)
    outward = 1 + (weights.shape[1] + 8) * UNIT
    return np.asarray(np.minimum(1.0, np.maximum(above, below) * outward))


def leakage_within(channel: Channel, belief: ArrayLike, delta: float) -> LIP:
    """The least level at which a channel needs no more than `delta`, rounded up.

    Examples:
        >>> noisy = Channel.from_probabilities([[0.75, 0.25], [0.25, 0.75]])
        >>> leakage_within(noisy, [0.5, 0.5], delta=0.1).epsilon
        0.4700036
    """
    allowed = checks.fraction("delta", delta)
    high = information_leakage(channel, belief).epsilon
    if allowed == 0.0 or high == 0.0:
        return LIP(high)
    if allowed == 1.0:
        return LIP(0.0, 1.0)
    # Where a ratio is infinite, so is the pure level: any larger delta has a finite one.
    pure, high = high, min(high, checks.MAX_EPSILON)

    def enough(level: float) -> bool:
        return approximate_leakage(channel, belief, level).delta <= allowed

    if not enough(high):
        return LIP(pure, allowed)
    return LIP(boundary(enough, inside=high, outside=0.0, steps=_HALVINGS), allowed)


def local_leakage_within(channel: Channel, delta: float) -> LDP:
    """The least level at which a channel needs no more than `delta` without a model, rounded up.

    Examples:
        >>> noisy = Channel.from_probabilities([[0.75, 0.25], [0.25, 0.75]])
        >>> local_leakage_within(noisy, delta=0.1).epsilon
        0.9555114
    """
    allowed = checks.fraction("delta", delta)
    pure = local_leakage(channel)
    if allowed == 0.0 or pure.epsilon == 0.0:
        return pure
    if allowed == 1.0:
        return LDP(0.0, 1.0)
    table = channel.weights.astype(np.float64) / _WHOLE
    # A hair less is allowed to each pair, and more claimed, than the sums may be wrong by.
    slack = 1 - (table.shape[1] + 16) * UNIT
    level = _worst_pair_level(table, allowed * slack, checks.MAX_EPSILON)
    return LDP(min(pure.epsilon, up(level * (1 + 16 * UNIT) + 16 * UNIT)), allowed)


@njit(cache=True)
def _pair_delta(first: Floats, second: Floats, factor: float) -> float:
    """The sum of what one row has over a multiple of another."""
    total = 0.0
    for place in range(first.size):
        total += max(first[place] - factor * second[place], 0.0)
    return total


@njit(cache=True)
def _worst_pair_level(rows: Floats, delta: float, limit: float) -> float:
    """The least logarithm of a factor at which no pair has more than `delta`.

    One level is kept for all pairs: most of them are seen to be under it at once, and only
    those that are over it raise it. The far pairs come first, since they tend to be the worst.
    Infinite if it would be over the limit.
    """
    level = 0.0
    for apart in range(len(rows) - 1, 0, -1):
        for i in range(len(rows) - apart):
            for swap in range(2):
                first, second = (i, i + apart) if swap == 0 else (i + apart, i)
                if _pair_delta(rows[first], rows[second], exp(level)) <= delta:
                    continue
                if _pair_delta(rows[first], rows[second], exp(limit)) > delta:
                    return math.inf
                # Compiled: `core.search` asks a rule in Python. The upper end is the safe one.
                low, high = level, limit
                for _ in range(_PAIR_HALVINGS):
                    middle = 0.5 * (low + high)
                    if _pair_delta(rows[first], rows[second], exp(middle)) > delta:
                        low = middle
                    else:
                        high = middle
                level = high
    return level
