"""Several releases of one value, or of correlated values, each by a mechanism of its own.

Unlike the steps of a stream, these mechanisms do not know what was released before; their joint
leakage is that of the product channel, which is exact for a few of them and bounded for many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike

from sfumato.column.notion_relations import (
    bounded_lip_from_ldp,
    ldp_from_bounded_lip,
    ldp_from_lip,
    lip_from_ldp,
)
from sfumato.core import checks, portable
from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import LDP, LIP
from sfumato.core.numerics import expected_error, log_up
from sfumato.models.prior_sets import PriorSet

_MOST_CELLS = 20_000_000


def repeated_leakage(channels: Sequence[Channel], prior: ArrayLike) -> LIP:
    r"""Exact leakage of independent releases of one value, rounded up.

    $$\max_{x, y_1 \dots y_n} \left|\log \frac{\prod_i a_i(y_i|x)}
      {\sum_{x'} P(x') \prod_i a_i(y_i|x')}\right|$$

    Examples:
        >>> noisy = Channel.from_probabilities([[0.75, 0.25], [0.25, 0.75]])
        >>> repeated_leakage([noisy], [0.5, 0.5]).epsilon
        0.69314718056
        >>> repeated_leakage([noisy, noisy], [0.5, 0.5]).epsilon
        1.60943791244

    References:
        [LIP, Sec. III-B]
    """
    size = channels[0].size if channels else 0
    belief = checks.belief("prior", prior, size or None)
    outputs = math.prod(channel.outputs.size for channel in channels)
    if not channels or any(channel.size != size for channel in channels):
        raise InvalidParameter("channels", len(channels), "be about one alphabet, at least one")
    if outputs * size > _MOST_CELLS:
        rule = f"have at most {_MOST_CELLS // size:,} joint outputs to be listed"
        raise InvalidParameter("channels", outputs, rule)
    tables = [channel.probabilities for channel in channels]
    rows = reduce(lambda a, b: (a[:, :, None] * b[:, None, :]).reshape(size, -1), tables)
    rows = rows[:, rows.max(axis=0) > 0]
    if rows.min() == 0.0:
        return LIP(math.inf)
    mean = portable.dot(belief, rows) / belief.sum()
    ratio = max(float((rows / mean).max()), float((mean / rows).max()))
    return LIP(max(0.0, log_up(ratio, expected_error(size) + 2 * len(channels) * 2.0**-52)))


def repeated_bound(guarantees: Sequence[LIP], prior: ArrayLike) -> LIP:
    r"""A bound on the leakage of independent releases of one value.

    Each guarantee implies a model-free one; those add up, and imply one under the prior again.

    Examples:
        >>> repeated_bound([LIP(0.5), LIP(0.5)], [0.5, 0.5]).epsilon
        1.1439429

    References:
        [LIP, Thm. 4]
    """
    free = sum((ldp_from_lip(guarantee, prior) for guarantee in guarantees), start=LDP(0.0))
    return lip_from_ldp(free, prior)


def correlated_bound(guarantees: Sequence[LIP], priors: Sequence[ArrayLike], least: float) -> LIP:
    r"""A bound on the leakage about a whole sequence, each value released by itself.

    Args:
        guarantees: That of each release, under the prior of its own value.
        priors: Those priors.
        least: The least probability of any whole sequence.

    Examples:
        >>> even = [0.5, 0.5]
        >>> correlated_bound([LIP(0.5), LIP(0.5)], [even, even], least=0.1).epsilon
        1.5790649

    References:
        [LIP, Cor. 5]
    """
    if len(guarantees) != len(priors):
        raise InvalidParameter("priors", len(priors), f"be one per guarantee, {len(guarantees)}")
    pairs = zip(guarantees, priors, strict=True)
    free = sum((ldp_from_lip(one, prior) for one, prior in pairs), start=LDP(0.0))
    mass = checks.proper_fraction("least", least)
    # The rarest sequence against all others together: two symbols of these probabilities.
    return lip_from_ldp(free, np.array([mass, 1 - mass]) if mass < 0.5 else [0.5, 0.5])


def repeated_bound_of_set(guarantees: Sequence[LIP], priors: PriorSet) -> LIP:
    r"""A bound on the leakage of independent releases of one value, under every prior of a set.

    $$\ln\left(p + (1 - p) \exp \sum_k \min\left\{2\epsilon_k,
      \ln\frac{e^{\epsilon_k} - 1 + q}{q}\right\}\right)$$

    where $p$ is the least probability of a symbol under any prior of the set, and $q$ that
    under the prior for which it is largest.

    Args:
        guarantees: That of each release, under every prior of the set.
        priors: What the adversary may believe.

    Examples:
        >>> from sfumato.models.prior_sets import PriorList
        >>> pair = PriorList([[0.5, 0.5], [0.2, 0.8]])
        >>> repeated_bound_of_set([LIP(0.5), LIP(0.5)], pair).epsilon
        1.4867263

    References:
        [LIP, Cor. 4]
    """
    free = (ldp_from_bounded_lip(guarantee, priors) for guarantee in guarantees)
    return bounded_lip_from_ldp(sum(free, start=LDP(0.0)), priors)
