"""Channels with a formula: randomised response, plain and calibrated, and the published rule."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.core.local_leakage import local_leakage
from sfumato.core.loss import Loss, as_loss
from sfumato.core.numerics import UNIT
from sfumato.core.randomness import BITS, integer_weights
from sfumato.core.response_channel import ResponseChannel
from sfumato.core.search import boundary
from sfumato.solver.certify import keeps
from sfumato.solver.design_result import Design, measured

_HALVINGS = 60
_NEAR = 2.0**-36
_ROUNDING = 1e-12


def randomized_response(belief: ArrayLike, loss: Loss | ArrayLike, epsilon: float) -> Design:
    r"""Keep the truth as often as a model-free budget of `epsilon` allows.

    $$a(y \mid x) = \frac{e^{\epsilon\,[y = x]}}{e^\epsilon + n - 1}$$

    Guarantee:
        `LDP(epsilon)`; its leakage under the belief is smaller.

    Examples:
        >>> import math
        >>> design = randomized_response([0.5, 0.5], [[0, 1], [1, 0]], epsilon=math.log(3))
        >>> design.cost, design.sip.epsilon
        (0.25, 0.69314718)

    References:
        [Warner1965], [Kairouz2016, Sec. 4]
    """
    prior, costs, budget = _arguments(belief, loss, epsilon)
    return measured(_local_response(prior.size, budget), prior, costs)


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
    prior, costs, budget = _arguments(belief, loss, epsilon)
    # The root in closed form, but for rounding, which the certificate settles.
    low, high = (
        min(_local_budget(prior, budget) * (1 + side), checks.MAX_EPSILON)
        for side in (-_NEAR, _NEAR)
    )

    def within(level: float) -> bool:
        return keeps(_response(prior.size, level), prior, budget, None)

    if not within(low):
        low, high = 0.0, low
    while high < checks.MAX_EPSILON and within(high):
        low, high = high, min(2 * high, checks.MAX_EPSILON)
    level = boundary(within, low, high, steps=_HALVINGS)
    return measured(_response(prior.size, level), prior, costs)


def paper_response(belief: ArrayLike, loss: Loss | ArrayLike, epsilon: float) -> Design:
    r"""The closed form of the paper, for comparison only: it does not keep its own bound.

    $$a(y|x) = b(y)\,e^{-\epsilon}\ (y \ne x), \qquad a(x|x) = 1 - (1 - b(x))\,e^{-\epsilon}$$

    The lower bound on the ratios holds; the upper one fails once some $b(x) < 1/(e^\epsilon+1)$.
    The returned certificates are those of the channel, not of the claim.

    Examples:
        >>> claim = paper_response([0.02, 0.49, 0.49], 1 - np.eye(3), epsilon=0.5)
        >>> claim.sip.epsilon
        3.009635064

    References:
        [SIP, Thm. 4 and Alg. 1], [LIP, Eq. 19]
    """
    prior, costs, budget = _arguments(belief, loss, epsilon)
    shared = integer_weights((prior / prior.sum())[None, :])[0]
    # Rounding must not lift the sum above 2**62.
    shared = np.minimum(np.rint(shared * portable.exp(-budget)).astype(np.int64), shared)
    claim = ResponseChannel(shared, np.arange(prior.size))
    if keeps(claim, prior, budget + _ROUNDING, None):
        claim = _repaired(claim, prior, budget)  # it holds here, but for the rounding
    return measured(claim, prior, costs)


def _arguments(
    belief: ArrayLike, loss: Loss | ArrayLike, epsilon: float
) -> tuple[Floats, Loss, float]:
    prior = checks.belief("belief", belief)
    return prior, as_loss(loss, prior.size), checks.epsilon("epsilon", epsilon)


@lru_cache(maxsize=256)
def _local_response(size: int, epsilon: float) -> ResponseChannel:
    """Randomised response within a model-free budget; the same for every belief."""
    extra = _extra_weight(size, epsilon)
    # Less and less of the truth until the certificate, rounded up, is within the budget.
    for back in range(BITS):
        channel = ResponseChannel.keeping(size, extra)
        if local_leakage(channel).epsilon <= epsilon:
            return channel
        extra = max(0, extra - (1 << back))
    return ResponseChannel.keeping(size, 0)


def _local_budget(prior: Floats, epsilon: float) -> float:
    r"""The model-free leakage of randomised response that leaks `epsilon` under a belief.

    Its ratios lie between $1/(1 + o\,b(y))$ and $(1 + o)/(1 + o\,b(y))$, with $1 + o$ the odds.
    """
    share, gain = prior / prior.sum(), portable.expm1(epsilon)
    rest = 1 - portable.exp(epsilon) * float(share.min())
    odds = gain / float(share.max())
    return portable.log1p(min(odds, gain / rest) if rest > 0 else odds)


def _response(size: int, epsilon: float) -> ResponseChannel:
    return ResponseChannel.keeping(size, _extra_weight(size, epsilon))


def _extra_weight(size: int, epsilon: float) -> int:
    """How much more than the others the true symbol weighs, of `2**62`."""
    # e^epsilon - 1 without cancellation; it may exceed what an integer holds, its part does not.
    odds = portable.expm1(epsilon)
    return 0 if epsilon <= 4 * UNIT else int(2.0**BITS * (odds / (odds + size)))


def _repaired(claim: ResponseChannel, prior: Floats, epsilon: float) -> ResponseChannel:
    """The channel with just enough of its output marginal mixed in to keep the budget."""
    part = UNIT
    repaired = claim
    while not keeps(repaired, prior, epsilon, None):
        repaired, part = claim.mixed(prior, part), 2 * part
    return repaired
