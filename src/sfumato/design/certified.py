r"""From float probabilities to an integer channel that keeps its budget, proven.

Mixing a channel with its own output marginal, $(1-t)\,a(y|x) + t\,P(y)$, leaves $P$ as it is and
turns every ratio $r$ into $(1-t)\,r + t$. So the least $t$ that restores a bound is known in closed
form, and rounding to integers costs a $t$ of about $10^{-15}$.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _checks
from sfumato._numerics import UNIT
from sfumato.errors import SolverFailed
from sfumato.leakage.information import information_leakage
from sfumato.leakage.local import local_leakage
from sfumato.mechanisms.channel import Channel
from sfumato.randomness import integer_weights

_ROUNDS = 200


def certified(
    probabilities: ArrayLike,
    belief: ArrayLike,
    epsilon: float,
    *,
    ldp: float | None = None,
    outputs: ArrayLike | None = None,
) -> Channel:
    """The integer channel next to `probabilities` whose exact leakage is within the budget.

    Args:
        probabilities: One row per true symbol, one column per output.
        belief: The adversary's distribution of the true symbol, full support.
        epsilon: The exact leakage under the belief must not exceed this.
        ldp: Neither may the model-free leakage exceed this, if given.
        outputs: The symbol that each column releases.

    Examples:
        >>> honest = certified([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5], epsilon=0.5)
        >>> information_leakage(honest, [0.5, 0.5]).epsilon <= 0.5
        True
    """
    prior = _checks.belief("belief", belief)
    budget = _checks.epsilon("epsilon", epsilon)
    cap = None if ldp is None else _checks.epsilon("ldp", ldp)
    rows = _checks.row_stochastic("probabilities", probabilities)
    marginal = prior @ rows / prior.sum()
    # Aim below the budget by the error that the certificate itself allows for.
    margin = (4 * prior.size + 32) * UNIT
    weight = 0.0
    for _ in range(_ROUNDS):
        mixed = (1 - weight) * rows + weight * marginal
        channel = Channel(integer_weights(mixed / mixed.sum(axis=1, keepdims=True)), outputs)
        if keeps(channel, prior, budget, cap):
            return channel
        needed = _mixing_weight(channel, prior, budget - margin, cap and cap - margin)
        weight = min(1.0, weight + (1 - weight) * needed)
        margin *= 2
    raise SolverFailed(f"no channel within epsilon={epsilon:g} was found by mixing")


def keeps(channel: Channel, belief: NDArray[np.float64], epsilon: float, ldp: float | None) -> bool:
    """Whether the exact leakage, rounded up, is within the budget and the optional cap."""
    if information_leakage(channel, belief).epsilon > epsilon:
        return False
    return ldp is None or local_leakage(channel).epsilon <= ldp


def _mixing_weight(
    channel: Channel, belief: NDArray[np.float64], epsilon: float, ldp: float | None
) -> float:
    """Least weight of the output marginal that brings every ratio back within bounds."""
    if epsilon <= 0 or (ldp is not None and ldp <= 0):
        return 1.0
    weights = channel.weights.astype(np.float64)
    ratios = weights / (belief @ weights / belief.sum())
    most, least = ratios.max(axis=0), ratios.min(axis=0)
    limit = math.exp(epsilon)
    needed = [0.0]
    if most.max() > limit:
        needed.append((most.max() - limit) / (most.max() - 1))
    if least.min() < 1 / limit:
        needed.append((1 / limit - least.min()) / (1 - least.min()))
    if ldp is not None:
        excess = np.maximum(most - math.exp(ldp) * least, 0.0)
        needed.append(float((excess / (excess + math.expm1(ldp))).max()))
    # At least one unit of weight, or rounding would undo the step.
    return min(1.0, max(max(needed) * (1 + 1e-12), 2 * UNIT))
