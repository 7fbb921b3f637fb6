r"""What one notion of privacy implies under another, and notions without a unit of their own.

Every function maps a guarantee to the strongest one that follows from it, rounded up.
`k` stands for $e^\epsilon$ and `least` for the smallest prior probability.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import LDP, LIP
from sfumato.core.numerics import UNIT, up
from sfumato.models.prior_sets import PriorBall, PriorBox, PriorList, PriorSet

# Beyond this e**epsilon leaves the floats; the plain bounds are good enough there.
_LARGEST = 700.0


def lip_from_ldp(guarantee: LDP, prior: ArrayLike) -> LIP:
    r"""$\ln(p_{\min} + e^\epsilon (1 - p_{\min}))$-LIP; an approximate guarantee carries over.

    Examples:
        >>> lip_from_ldp(LDP(1.0), [0.5, 0.5]).epsilon
        0.6201145

    References:
        [LIP, Thm. 1 and Cor. 3]
    """
    if guarantee.delta > 0:
        return LIP(guarantee.epsilon, guarantee.delta)
    if guarantee.epsilon > _LARGEST:
        return LIP(guarantee.epsilon)
    # log(p + k (1 - p)) = log1p((k - 1)(1 - p)), which keeps its digits for a small epsilon.
    excess = portable.expm1(guarantee.epsilon) * (1 - _least(prior))
    return LIP(min(guarantee.epsilon, _outward(portable.log1p(excess))))


def ldp_from_lip(guarantee: LIP, prior: ArrayLike) -> LDP:
    r"""The largest model-free leakage that any channel with this LIP can have under the prior.

    An output's ratios $r$ lie in $[1/k, k]$ and average to 1. The largest quotient of two of them
    is $k^2$ if a symbol of mass at most $1/(k+1)$ can be high while one of mass at most
    $k/(k+1)$ is low; otherwise one of the two ends is given by the average. The program of
    the paper has this closed form.

    Examples:
        >>> ldp_from_lip(LIP(1.0), [0.5, 0.5]).epsilon
        1.4898801

    References:
        [LIP, Thm. 1, Eq. 9]
    """
    _pure("guarantee", guarantee)
    mass = np.sort(_shares(prior))
    if mass.size == 1 or guarantee.epsilon == 0:
        return LDP(0.0)
    if guarantee.epsilon > _LARGEST:
        return LDP(2 * guarantee.epsilon)
    k, excess = portable.exp(guarantee.epsilon), portable.expm1(guarantee.epsilon)
    quotients = []
    for low, high in ((i, j) for i in range(mass.size) for j in range(2) if i != j):
        # The average of the ratios, solved for one end; rounded so that the quotient grows.
        least = 1 - excess * (1 - mass[low]) / mass[low]
        least = max(1 / k, least - 16 * UNIT * (1 + excess / mass[low]))
        most = min(k, (excess + mass[high]) / (k * mass[high]))
        quotients.append(most / least)
    # The quotient is right within a few units, which its logarithm feels when it is near 1.
    return LDP(min(2 * guarantee.epsilon, _outward(portable.log(max(quotients)) + 8 * UNIT)))


def ldp_from_lip_closed_form(guarantee: LIP, prior: ArrayLike) -> LDP:
    r"""$\min\{2\epsilon, \ln((e^\epsilon - 1 + p_{\min})/p_{\min})\}$-LDP, a looser bound.

    References:
        [LIP, Prop. 1]
    """
    _pure("guarantee", guarantee)
    if guarantee.epsilon > _LARGEST:
        return LDP(2 * guarantee.epsilon)
    bound = portable.log1p(portable.expm1(guarantee.epsilon) / _least(prior))
    return LDP(min(2 * guarantee.epsilon, _outward(bound)))


def identifiability_from_lip(guarantee: LIP, prior: ArrayLike) -> float:
    r"""Bound on the log quotient of two posteriors: $2\epsilon + D_\infty$.

    References:
        [LIP, Thm. 3]
    """
    _pure("guarantee", guarantee)
    return _outward(2 * guarantee.epsilon + _spread(prior))


def information_from_lip(guarantee: LIP) -> float:
    r"""Bound on the mutual information, in nats: $\epsilon \tanh(\epsilon/2)$.

    The paper gives $\epsilon$; two distributions whose log ratio stays within $\pm\epsilon$ are
    never further apart than this.

    References:
        [LIP, Thm. 3]
    """
    _pure("guarantee", guarantee)
    if math.isinf(guarantee.epsilon):
        return math.inf
    return _outward(guarantee.epsilon * portable.tanh(guarantee.epsilon / 2))


def maximal_leakage_from_lip(guarantee: LIP) -> float:
    """Bound on the maximal leakage, in nats.

    References:
        [LIP, Thm. 3]
    """
    _pure("guarantee", guarantee)
    return guarantee.epsilon


def bounded_lip_from_ldp(guarantee: LDP, priors: PriorSet) -> LIP:
    r"""$\ln(p + e^\epsilon (1 - p))$-LIP under every prior of a set.

    where $p$ is the least probability that any prior of the set gives to any symbol. An approximate
    guarantee carries over. Of a larger set less can be said: the paper prints the opposite
    inequality, $p + e^\epsilon (1 - p) \le P_{\min} + e^\epsilon (1 - P_{\min})$ for a prior $P$ of
    the set, in its remark on the theorem.

    Examples:
        >>> from sfumato.models.prior_sets import PriorList
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
        >>> from sfumato.models.prior_sets import PriorList
        >>> ldp_from_bounded_lip(LIP(1.0), PriorList([[0.4, 0.6], [0.2, 0.8]])).epsilon
        1.6668960

    References:
        [LIP, Thm. 2]
    """
    _pure("guarantee", guarantee)
    if priors.size == 1:
        return LDP(0.0)
    least = _evenest(priors) - _error(priors)
    if least <= 0.0:
        return LDP(2 * guarantee.epsilon)
    return ldp_from_lip_closed_form(guarantee, [least, 1 - least])


def mutual_information(channel: Channel, belief: ArrayLike) -> float:
    r"""Mutual information of truth and output, in nats: $\sum b(x) a(y|x) \log r(x,y)$.

    Examples:
        >>> mutual_information(Channel.constant(2, 0), [0.5, 0.5])
        0.0

    References:
        [LIP, Def. 2]
    """
    prior = checks.probabilities("belief", belief, channel.size)
    rows, ratios = channel.probabilities, channel.ratios(prior)
    logs = portable.log(np.where(ratios > 0, ratios, 1.0))
    return max(0.0, float((prior[:, None] * rows * logs).sum()))


def maximal_leakage(channel: Channel) -> float:
    r"""Maximal leakage in nats: $\ln \sum_y \max_x a(y|x)$.

    Examples:
        >>> maximal_leakage(Channel.from_probabilities(np.eye(4)))
        1.3862944

    References:
        [LIP, Def. 4]
    """
    return max(0.0, float(portable.log(channel.probabilities.max(axis=0).sum())))


def _shares(prior: ArrayLike) -> Floats:
    mass = checks.belief("prior", prior)
    return np.asarray(mass / mass.sum())


def _least(prior: ArrayLike) -> float:
    """The smallest prior probability, rounded down."""
    mass = _shares(prior)
    return float(mass.min()) * (1 - (mass.size + 2) * UNIT)


def _spread(prior: ArrayLike) -> float:
    mass = _shares(prior)
    ratio = float(mass.max() / mass.min())
    return _outward(portable.log(ratio) + 4 * UNIT) if ratio > 1 else 0.0


def _outward(value: float) -> float:
    """A few units up, in proportion."""
    return up(value * (1 + 32 * UNIT)) if value > 0 else 0.0


def _pure(name: str, guarantee: LIP) -> None:
    if guarantee.delta != 0.0:
        raise InvalidParameter(name, guarantee, "have delta 0")


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
            return min(float(priors.upper.min()), _lifted(priors.lower, free))
        case PriorBall():
            return min(1 / priors.size, _lifted(priors.centre, priors.radius))
    # Any prior of the set is on the safe side.
    return float(priors.nominal.min())


def _lifted(masses: Floats, added: float) -> float:
    """How high the least of some masses can be made by adding so much to them in all.

    To lift the j least of them to t takes j t minus their sum.
    """
    counts = np.arange(1, masses.size + 1)
    return float(((added + np.cumsum(np.sort(masses))) / counts).min())


def _evenest_mixture(rows: Floats) -> Floats:
    """The mixture of rows whose least entry is largest: the value of a matrix game."""
    count, size = rows.shape
    solution = linprog(
        np.append(np.zeros(count), -1.0),
        np.column_stack([-rows.T, np.ones(size)]),
        np.zeros(size),
        np.append(np.ones(count), 0.0)[None, :],
        [1.0],
        method="highs",
    )
    candidates = [*rows]
    if solution.x is not None and (weights := np.clip(solution.x[:count], 0.0, None)).sum() > 0:
        # Clipped, the weights are those of a mixture, whatever the solver's tolerance was.
        candidates.append(portable.dot(weights, rows) / weights.sum())
    return max(candidates, key=lambda row: float(row.min()))
