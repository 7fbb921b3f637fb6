r"""Leakage under every prior of a set.

$$\max_{P \in \mathcal P} \max_{x,y} \left|\log \frac{a(y \mid x)}{P(y)}\right|$$

For one output the extreme ratios are those of the largest entry of its column to the least $P(y)$
that the set allows, and of the least entry to the largest. Over all priors that is the model-free
leakage.
"""

from __future__ import annotations

import numpy as np

from sfumato._numerics import expected_error, log_up
from sfumato.errors import InvalidParameter
from sfumato.guarantees import LIP
from sfumato.mechanisms.channel import Channel
from sfumato.models.prior_sets import PriorSet


def bounded_leakage(channel: Channel, priors: PriorSet) -> LIP:
    """Exact leakage of one release under the worst prior of a set, rounded up.

    Examples:
        >>> from sfumato.models.prior_sets import PriorBox
        >>> noisy = Channel.from_probabilities([[0.75, 0.25], [0.25, 0.75]])
        >>> bounded_leakage(noisy, PriorBox([0.0, 0.0], [1.0, 1.0])).epsilon
        1.098612288668

    References:
        [LIP, Def. 6 and Cor. 2]
    """
    if priors.size != channel.size:
        raise InvalidParameter("priors", priors.size, f"be about {channel.size} symbols")
    if channel.is_constant:
        return LIP(0.0)
    weights = channel.weights.astype(np.float64)
    least, most = weights.min(axis=0), weights.max(axis=0)
    rarest, commonest = priors.least_means(weights), priors.most_means(weights)
    if least.min() == 0.0 or rarest.min() <= 0.0:
        return LIP(float(np.inf))
    ratio = max(float((most / rarest).max()), float((commonest / least).max()))
    # Sums of differences may cancel: they are of the size of the largest entry of a column.
    spread = float((most / rarest).max())
    error = 4 * expected_error(channel.size) * max(1.0, spread)
    return LIP(max(0.0, log_up(ratio, error)))
