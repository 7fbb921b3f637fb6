"""Channels with a formula: randomised response, plain and calibrated, and the published rule."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _checks
from sfumato._numerics import UNIT
from sfumato.design.certified import certified, keeps
from sfumato.design.result import Design, measured
from sfumato.loss import Loss, as_matrix
from sfumato.mechanisms.channel import Channel

_HALVINGS = 60
_ROUNDING = 1e-12


def randomized_response(belief: ArrayLike, loss: Loss | ArrayLike, epsilon: float) -> Design:
    r"""Keep the truth as often as a model-free budget of `epsilon` allows.

    $$a(y \mid x) = \frac{e^{\epsilon\,[y = x]}}{e^\epsilon + n - 1}$$

    Guarantee:
        `LDP(epsilon)`; its leakage under the belief is smaller.

    Examples:
        >>> design = randomized_response([0.5, 0.5], [[0, 1], [1, 0]], epsilon=math.log(3))
        >>> design.cost, design.sip.epsilon
        (0.25, 0.69314718)

    References:
        [Warner1965], [Kairouz2016, Sec. 4]
    """
    prior, table, budget = _arguments(belief, loss, epsilon)
    return measured(_local_response(prior.size, budget), prior, table)


def calibrated_randomized_response(
    belief: ArrayLike, loss: Loss | ArrayLike, epsilon: float
) -> Design:
    """Randomised response whose exact leakage *under the belief* is `epsilon`.

    The fair rival of a context-aware design: both leak the same to the same adversary.

    Examples:
        >>> design = calibrated_randomized_response([0.5, 0.5], [[0, 1], [1, 0]], epsilon=0.4)
        >>> design.sip.epsilon
        0.400000

    References:
        [Warner1965]
    """
    prior, table, budget = _arguments(belief, loss, epsilon)
    low, high = 0.0, budget
    while high < _checks.MAX_EPSILON and keeps(_response(prior.size, high), prior, budget, None):
        low, high = high, min(2 * high, _checks.MAX_EPSILON)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if keeps(_response(prior.size, middle), prior, budget, None):
            low = middle
        else:
            high = middle
    return measured(_response(prior.size, low), prior, table)


def published(belief: ArrayLike, loss: Loss | ArrayLike, epsilon: float) -> Design:
    r"""The closed form of the paper, for comparison only: it does not keep its own bound.

    $$a(y|x) = b(y)\,e^{-\epsilon}\ (y \ne x), \qquad a(x|x) = 1 - (1 - b(x))\,e^{-\epsilon}$$

    The lower bound on the ratios holds; the upper one fails once some $b(x) < 1/(e^\epsilon+1)$.
    The returned certificates are those of the channel, not of the claim.

    Examples:
        >>> claim = published([0.02, 0.49, 0.49], 1 - np.eye(3), epsilon=0.5)
        >>> claim.sip.epsilon
        3.009635064

    References:
        [SIP, Thm. 4 and Alg. 1], [LIP, Eq. 19]
    """
    prior, table, budget = _arguments(belief, loss, epsilon)
    share = prior / prior.sum()
    shrink = math.exp(-budget)
    rows = np.tile(share * shrink, (prior.size, 1))
    rows[np.diag_indices(prior.size)] = 1 - (1 - share) * shrink
    told = Channel.from_probabilities(rows)
    if keeps(told, prior, budget + _ROUNDING, None):
        told = certified(rows, prior, budget)  # it holds here, but for the rounding
    return measured(told, prior, table)


def _arguments(
    belief: ArrayLike, loss: Loss | ArrayLike, epsilon: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    prior = _checks.belief("belief", belief)
    return prior, as_matrix(loss, prior.size), _checks.epsilon("epsilon", epsilon)


def _response_rows(size: int, epsilon: float) -> NDArray[np.float64]:
    odds = math.exp(epsilon)
    rows = np.full((size, size), 1.0)
    rows[np.diag_indices(size)] = odds
    return np.asarray(rows / (odds + size - 1))


@lru_cache(maxsize=256)
def _local_response(size: int, epsilon: float) -> Channel:
    """Randomised response within a model-free budget; the same for every belief."""
    # Certified under the even belief: mixing with it keeps the shape of randomised response.
    even = np.full(size, 1 / size)
    return certified(_response_rows(size, epsilon), even, epsilon, ldp=epsilon)


def _response(size: int, epsilon: float) -> Channel:
    if epsilon <= 4 * UNIT:
        return Channel.from_probabilities(np.full((size, size), 1 / size))
    return Channel.from_probabilities(_response_rows(size, epsilon))
