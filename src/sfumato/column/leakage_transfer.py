"""What a guarantee under one prior is worth under another, or under one that was estimated.

How far leakage can move from prior to prior stands in `core/prior_transfer.py`.
"""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from sfumato.column.notion_relations import ldp_from_lip
from sfumato.core import checks, portable
from sfumato.core.guarantees import LIP
from sfumato.core.numerics import UNIT, up
from sfumato.core.prior_transfer import transfer_gap


def transferred(guarantee: LIP, prior: ArrayLike, other: ArrayLike) -> LIP:
    """What a pure guarantee under one prior is worth under another: the best of two bounds.

    The gap between the priors is added, or the model-free leakage is taken that the guarantee
    implies, which holds under any prior.

    Examples:
        >>> transferred(LIP(1.0), [0.5, 0.5], [0.52, 0.48]).epsilon
        1.0408220
        >>> transferred(LIP(1.0), [0.5, 0.5], [0.9, 0.1]).epsilon
        1.4898801

    References:
        [LIP, Eq. 12]
    """
    near = up(guarantee.epsilon + transfer_gap(prior, other))
    return LIP(min(near, ldp_from_lip(LIP(guarantee.epsilon), prior).epsilon))


def estimated(guarantee: LIP, estimate: ArrayLike, samples: int, failure: float) -> LIP:
    r"""What a pure guarantee under an estimated prior is worth under the true one.

    The true prior is within $\bar\Delta/2$ of the estimate in total variation, so its least
    probability is no less than that of the estimate less $\bar\Delta/2$; where nothing is left of
    it, the model-free leakage stands. Holds but for a probability over the samples.

    Args:
        guarantee: Under the estimate.
        estimate: The prior that was estimated, full support.
        samples: From so many independent samples.
        failure: Probability with which this may fail.

    Examples:
        >>> estimated(LIP(1.0), [0.5, 0.5], samples=10_000, failure=0.01).epsilon
        1.0370230

    References:
        [LIP, Cor. 7 and Eq. 12]
    """
    prior = checks.belief("estimate", estimate)
    free = ldp_from_lip(LIP(guarantee.epsilon), prior).epsilon
    least = float(prior.min()) - 0.5 * _spread(samples, prior.size, failure)
    if least <= 0:
        return LIP(free)
    gap = estimation_gap(samples, prior.size, least, failure)
    return LIP(min(free, up(guarantee.epsilon + gap)))


def estimation_gap(samples: int, symbols: int, least: float, failure: float) -> float:
    r"""The same gap for a prior that was estimated, with a probability of failure.

    $$\eta = \ln\left(1 + \frac{\bar\Delta}{2c}\right), \qquad
      \bar\Delta = \sqrt{\tfrac2n (|\mathcal X| - \ln\beta)}$$

    where $n$ is `samples`, $c$ is `least`, a bound on the probabilities of the true and of the
    estimated prior, and $\beta$ is `failure`.

    Examples:
        >>> estimation_gap(10_000, 2, least=0.3, failure=0.01)
        0.0588128

    References:
        [LIP, Cor. 7]
    """
    apart = _spread(samples, symbols, failure)
    gap = portable.log1p(apart / (2 * checks.proper_fraction("least", least)))
    return up(gap * (1 + 16 * UNIT))


def _spread(samples: int, symbols: int, failure: float) -> float:
    """The most, but for a failure, by which all frequencies together miss the probabilities."""
    count, size = checks.count("samples", samples), checks.count("symbols", symbols)
    beta = checks.proper_fraction("failure", failure)
    return up(math.sqrt(2 / count * (size - portable.log(beta))) * (1 + 8 * UNIT))
