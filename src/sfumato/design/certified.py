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
from sfumato.errors import InvalidParameter, SolverFailed
from sfumato.leakage.information import information_leakage
from sfumato.leakage.local import local_leakage
from sfumato.mechanisms.channel import Channel
from sfumato.randomness import integer_weights

_ROUNDS = 200
_NEGLIGIBLE = 1e-9
"""Outputs rarer than this are dust."""


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
    if len(rows) != prior.size:
        raise InvalidParameter("belief", prior.size, f"have one entry per row, {len(rows)}")
    share = prior / prior.sum()
    # Aim below the budget by the error that the certificate itself allows for.
    margin = (4 * prior.size + 32) * UNIT
    for _ in range(_ROUNDS):
        marginal = share @ rows
        weight = _mixing_weight(rows, marginal, budget - margin, cap and cap - margin)
        rows = (1 - weight) * rows + weight * marginal
        rows /= rows.sum(axis=1, keepdims=True)
        channel = Channel(integer_weights(rows), outputs)
        if keeps(channel, prior, budget, cap):
            return channel
        rows = channel.probabilities
        outputs = channel.outputs
        margin *= 2
    raise SolverFailed(f"no channel within epsilon={epsilon:g} was found by mixing")


def without_dust(
    rows: NDArray[np.float64],
    belief: NDArray[np.float64],
    loss: NDArray[np.float64],
    outputs: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Merge outputs that hardly occur into their cheapest stand-ins.

    They are a float solver's dust, not part of the optimum, and their ratios are noise. Merging is
    a function of the output, so it can only lower the leakage.
    """
    marginal = belief @ rows
    kept = np.flatnonzero(marginal > _NEGLIGIBLE)
    merged = rows[:, kept].copy()
    for column in np.flatnonzero(marginal <= _NEGLIGIBLE):
        spent = (belief * rows[:, column]) @ loss[:, outputs[kept]]
        merged[:, int(spent.argmin())] += rows[:, column]
    return merged / merged.sum(axis=1, keepdims=True), outputs[kept]


def keeps(channel: Channel, belief: NDArray[np.float64], epsilon: float, ldp: float | None) -> bool:
    """Whether the exact leakage, rounded up, is within the budget and the optional cap."""
    if information_leakage(channel, belief).epsilon > epsilon:
        return False
    return ldp is None or local_leakage(channel).epsilon <= ldp


def _mixing_weight(
    rows: NDArray[np.float64],
    marginal: NDArray[np.float64],
    epsilon: float,
    ldp: float | None,
) -> float:
    """Least weight of the output marginal that brings every ratio within bounds."""
    if epsilon <= 0 or (ldp is not None and ldp <= 0):
        return 1.0
    possible = marginal > 0
    most = rows.max(axis=0)[possible] / marginal[possible]
    least = rows.min(axis=0)[possible] / marginal[possible]
    limit = math.exp(epsilon)
    highest, lowest = float(most.max()), float(least.min())
    weight = 0.0
    if highest > limit:
        weight = (highest - limit) / (highest - 1)
    if lowest < 1 / limit:
        weight = max(weight, (1 / limit - lowest) / (1 - lowest))
    if ldp is not None:
        excess = np.maximum(most - math.exp(ldp) * least, 0.0)
        weight = max(weight, float((excess / (excess + math.expm1(ldp))).max()))
    return min(1.0, weight * (1 + 1e-12))
