r"""Leakage under every prior of a set.

$$\max_{P \in \mathcal P} \max_{x,y} \left|\log \frac{a(y \mid x)}{P(y)}\right|$$

For one output the extreme ratios are those of the largest entry of its column to the least $P(y)$
that the set allows, and of the least entry to the largest. Over all priors that is the model-free
leakage.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from sfumato.column.notion_relations import ldp_from_lip_closed_form, lip_from_ldp
from sfumato.column.prior_sets import PriorBall, PriorBox, PriorList, PriorSet
from sfumato.core.arrays import Floats
from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import LDP, LIP
from sfumato.core.numerics import UNIT, expected_error, log_up


def bounded_leakage(channel: Channel, priors: PriorSet) -> LIP:
    """Exact leakage of one release under the worst prior of a set, rounded up.

    Examples:
        >>> from sfumato.column.prior_sets import PriorBox
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


def bounded_lip_from_ldp(guarantee: LDP, priors: PriorSet) -> LIP:
    r"""$\ln(p + e^\epsilon (1 - p))$-LIP under every prior of a set.

    where $p$ is the least probability that any prior of the set gives to any symbol. An approximate
    guarantee carries over. Of a larger set less can be said: the paper prints the opposite
    inequality, $p + e^\epsilon (1 - p) \le P_{\min} + e^\epsilon (1 - P_{\min})$ for a prior $P$ of
    the set, in its remark on the theorem.

    Examples:
        >>> from sfumato.column.prior_sets import PriorList
        >>> bounded_lip_from_ldp(LDP(1.0), PriorList([[0.5, 0.5], [0.2, 0.8]])).epsilon
        0.8648397

    References:
        [LIP, Thm. 2]
    """
    if priors.size == 1:
        return LIP(0.0, guarantee.delta)
    least = float(priors.least_masses.min()) - _error(priors)
    if least <= 0.0:
        return LIP(guarantee.epsilon, guarantee.delta)
    return lip_from_ldp(guarantee, [least, 1 - least])


def ldp_from_bounded_lip(guarantee: LIP, priors: PriorSet) -> LDP:
    r"""$\min\{2\epsilon, \ln((e^\epsilon - 1 + p)/p)\}$-LDP from a guarantee for a set of priors.

    where $p$ is the least probability of a symbol under that prior of the set for which it is
    largest. Mixtures of listed priors are in the set; the paper takes the listed ones alone.

    This is what the evenest prior gives by itself and not the best for the set: over all priors
    a leakage of $\epsilon$ *is* a model-free one, while $p = 1/n$ still adds to it.

    Examples:
        >>> from sfumato.column.prior_sets import PriorList
        >>> ldp_from_bounded_lip(LIP(1.0), PriorList([[0.4, 0.6], [0.2, 0.8]])).epsilon
        1.6668960

    References:
        [LIP, Thm. 2]
    """
    if guarantee.delta != 0.0:
        raise InvalidParameter("guarantee", guarantee, "have delta 0")
    if priors.size == 1:
        return LDP(0.0)
    least = _evenest(priors) - _error(priors)
    if least <= 0.0:
        return LDP(2 * guarantee.epsilon)
    return ldp_from_lip_closed_form(guarantee, [least, 1 - least])


def _error(priors: PriorSet) -> float:
    """What a probability may be off: sums and differences of numbers up to 1."""
    return (4 * priors.size + 16) * UNIT


def _evenest(priors: PriorSet) -> float:
    """The largest least probability of a symbol under a prior of the set."""
    match priors:
        case PriorList():
            return float(_evenest_mixture(priors.priors).min())
        case PriorBox():
            free = max(0.0, 1 - float(priors.lower.sum()))
            return min(float(priors.upper.min()), _level(priors.lower, free))
        case PriorBall():
            return min(1 / priors.size, _level(priors.centre, priors.radius))
    # Any prior of the set is on the safe side.
    return float(priors.nominal.min())


def _level(masses: Floats, added: float) -> float:
    """How high the least of some masses can be made by adding so much to them in all.

    To lift the j least of them to t takes j t minus their sum.
    """
    counts = np.arange(1, masses.size + 1)
    return float(((added + np.cumsum(np.sort(masses))) / counts).min())


def _evenest_mixture(rows: Floats) -> Floats:
    """The mixture of rows whose least entry is largest: the value of a matrix game."""
    count, size = rows.shape
    found = linprog(
        np.append(np.zeros(count), -1.0),
        np.column_stack([-rows.T, np.ones(size)]),
        np.zeros(size),
        np.append(np.ones(count), 0.0)[None, :],
        [1.0],
        method="highs",
    )
    candidates = [*rows]
    if found.x is not None and (weights := np.clip(found.x[:count], 0.0, None)).sum() > 0:
        # Clipped, the weights are those of a mixture, whatever the solver's tolerance was.
        candidates.append(weights @ rows / weights.sum())
    return max(candidates, key=lambda row: float(row.min()))
