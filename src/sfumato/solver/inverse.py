"""The other way round: the least leakage that a bound on the loss can be had for."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from sfumato.core import checks
from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter
from sfumato.core.loss import Loss, as_loss
from sfumato.core.printed import shown_up
from sfumato.core.search import least_above
from sfumato.solver.design_result import Design, measured
from sfumato.solver.optimal_channel import optimal

_FEW = 64
# Part of epsilon that the search leaves open, with few symbols and with many, where designs are
# themselves only near the optimum.
_TOLERANCE, _NEAR = 1e-9, 1e-4


def least_leakage(belief: ArrayLike, loss: Loss | ArrayLike, max_loss: float) -> Design:
    """The design of least epsilon whose expected loss is at most `max_loss`.

    The optimal loss falls as epsilon grows, so epsilon is found by bisection; the returned
    channel keeps the bound on the loss and carries its exact certificates.

    Args:
        belief: The adversary's distribution of the true symbol, full support.
        loss: What it costs to release one symbol when another is true.
        max_loss: The expected loss that is still accepcosts.

    Examples:
        >>> least_leakage([0.5, 0.5], [[0, 1], [1, 0]], max_loss=0.25).sip.epsilon
        0.6931472
        >>> least_leakage([0.9, 0.1], [[0, 1], [1, 0]], max_loss=0.1).sip.epsilon
        0.0

    References:
        [SIP, Figs. 3 and 4]
    """
    prior = checks.belief("belief", belief)
    costs = as_loss(loss, prior.size)
    bound = checks.finite("max_loss", max_loss)
    constant = int(costs.means(prior).argmin())
    best = measured(Channel.constant(prior.size, constant), prior, costs, 0.0)
    if best.cost <= bound:
        return best

    def enough(epsilon: float) -> bool:
        nonlocal best
        design = optimal(prior, costs, epsilon)
        # The search comes from above: the last design that keeps the bound has the least epsilon.
        best = design if (good := design.cost <= bound) else best
        return good

    near = _TOLERANCE if prior.size <= _FEW else _NEAR
    most = checks.MAX_EPSILON / 2
    if math.isinf(least_above(enough, 1.0, most, relative=near)):
        least = optimal(prior, costs, most).cost
        rule = f"be at least {shown_up(least, 3)}, the loss of hiding nothing"
        raise InvalidParameter("max_loss", max_loss, rule)
    return best
