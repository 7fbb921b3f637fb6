r"""Leakage under a model: how far one output can move the adversary's belief.

All of these are $\max |\log(a(y \mid x) / P(y))|$ for a suitable channel and belief; the names say
what the belief is about. Each value is an upper bound: the plain formula in floating point plus
its known error.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import LIP, SIP
from sfumato.core.numerics import expected_error, log_up


def information_leakage(channel: Channel, belief: ArrayLike) -> LIP:
    r"""Exact local-information-privacy leakage of one release, rounded up.

    $$\max_{x,y} \left|\log \frac{a(y \mid x)}{P(y)}\right|, \qquad
      P(y) = \sum_x b(x)\, a(y \mid x)$$

    where $a$ is `channel` and $b$ is `belief`, which must give every symbol some probability.

    Examples:
        >>> noisy = Channel.from_probabilities([[0.75, 0.25], [0.25, 0.75]])
        >>> information_leakage(noisy, [0.5, 0.5]).epsilon
        0.6931471805599
        >>> information_leakage(Channel.constant(2, 0), [0.5, 0.5])
        LIP(epsilon=0.0, delta=0.0)

    References:
        [LIP, Eq. 8]
    """
    return LIP(_largest_log_ratio(channel, checks.belief("belief", belief, channel.size)))


def instantaneous_leakage(channel: Channel, belief: ArrayLike) -> SIP:
    """Leakage of one step of a stream (IIL) under the belief of that moment.

    The channel acts on the current value alone, so the past of the stream cancels.

    Examples:
        >>> noisy = Channel.from_probabilities([[0.75, 0.25], [0.25, 0.75]])
        >>> instantaneous_leakage(noisy, [0.5, 0.5]).epsilon
        0.693147

    References:
        [SIP, Def. 2 and Eq. 59]
    """
    return SIP(information_leakage(channel, belief).epsilon)


def batch_leakage(channel: Channel, belief: ArrayLike) -> SIP:
    """Leakage of one batch (BIL): the channel acts on batches, the belief is about batches.

    Examples:
        >>> pairs = Channel.from_probabilities([[0.7, 0.1, 0.1, 0.1]] + 3 * [[0.1, 0.3, 0.3, 0.3]])
        >>> batch_leakage(pairs, [0.25, 0.25, 0.25, 0.25]).epsilon
        1.029619

    References:
        [SIP, Def. 3 and Thm. 5]
    """
    return instantaneous_leakage(channel, belief)


def sequence_leakage(channels: Sequence[Channel], beliefs: Sequence[ArrayLike]) -> SIP:
    r"""Leakage of a whole released sequence (SIL), bounded step by step.

    $$\mathcal{L}(Y_1^T \to X_1^T) \le \sum_k \max_{x,y} \left|\log\frac{a_k(y|x)}{P_k(y)}\right|$$

    where $a_k$ is `channels[k]` and $P_k$ its output marginal under `beliefs[k]`.

    Examples:
        >>> noisy = Channel.from_probabilities([[0.6, 0.4], [0.4, 0.6]])
        >>> sequence_leakage([noisy, noisy], [[0.5, 0.5], [0.6, 0.4]]).epsilon
        0.485507815781

    References:
        [SIP, Thm. 1]
    """
    if len(channels) != len(beliefs):
        raise InvalidParameter("beliefs", len(beliefs), f"be one per channel, {len(channels)}")
    steps = (instantaneous_leakage(c, b) for c, b in zip(channels, beliefs, strict=True))
    return sum(steps, start=SIP(0.0))


def _largest_log_ratio(channel: Channel, belief: Floats) -> float:
    if channel.is_constant:
        return 0.0
    mean = channel.mean_weights(belief)
    least, most = (weights.astype(np.float64) for weights in channel.extremes)
    if least.min() == 0.0:
        return float(np.inf)
    ratio = max(float((most / mean).max()), float((mean / least).max()))
    return max(0.0, log_up(ratio, expected_error(channel.size)))
