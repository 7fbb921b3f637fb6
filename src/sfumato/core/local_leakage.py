"""Leakage without a model: what holds however wrong the belief is."""

from __future__ import annotations

import numpy as np

from sfumato.core.channel import Channel
from sfumato.core.guarantees import LDP
from sfumato.core.numerics import UNIT, log_up


def local_leakage(channel: Channel) -> LDP:
    r"""Exact local-differential-privacy leakage of a channel, rounded up.

    $$\max_{y, x, x'} \log \frac{a(y \mid x)}{a(y \mid x')}$$

    where $a$ is `channel`. Infinite when an output is possible for one symbol and not for another.

    Examples:
        >>> local_leakage(Channel.from_probabilities([[0.75, 0.25], [0.25, 0.75]])).epsilon
        1.0986122886681

    References:
        [LIP, Def. 1]
    """
    if channel.is_constant:
        return LDP(0.0)
    least, most = (weights.astype(np.float64) for weights in channel.extremes)
    if least.min() == 0.0:
        return LDP(np.inf)
    # Two conversions and a division.
    return LDP(max(0.0, log_up(float((most / least).max()), 3 * UNIT)))
