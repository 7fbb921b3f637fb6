r"""A channel that keeps its budget for every belief in a box, made from one for a single belief.

Mixing a channel with a fixed distribution of outputs, $(1-t)\,a(y|x) + t\,Q(y)$, moves every
probability of an output under any belief in the same way. With $P(y)$ between $p_y$ and $q_y$ over
the box and $k = e^\epsilon$ the bound holds once

$$\frac{t}{1-t} \ge \frac{\max_x a(y|x) - k\,p_y}{(k-1)\,Q(y)}, \qquad
  \frac{t}{1-t} \ge \frac{q_y - k \min_x a(y|x)}{(k-1)\,Q(y)}$$

for every output: the least $t$ is known in closed form, and no solver has to be trusted, nor to
give the same bits elsewhere but for the channel that is mixed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Floats
from sfumato.core.channel import Channel
from sfumato.core.guarantees import SIP
from sfumato.core.loss import Loss
from sfumato.models.belief_sets import mean_ranges
from sfumato.models.prior_sets import PriorBox
from sfumato.solver.bounded_prior_channel import bounded_leakage
from sfumato.solver.design_methods import Method, design
from sfumato.solver.design_result import Design, measured, silent

_PARTS = (1.0, 0.875, 0.75, 0.625, 0.5)
"""Parts of the budget that a channel is made for at the estimate; at a half nothing is mixed in,
since it is model-free within the whole."""
_HAIRS = (0.0, 1e-12, 1e-9, 1e-6, 1e-3)
"""What is mixed in besides, until the integers keep the bound."""


def robust_design(
    method: Method,
    masses: Floats,
    beliefs: PriorBox,
    loss: Loss,
    epsilon: float,
    ldp: float | None = None,
) -> Design:
    """The cheapest of some channels that leak at most `epsilon` under every belief of a box.

    Args:
        method: How channels are made before they are mixed.
        masses: The belief that losses are expected under, and channels made for.
        beliefs: What the adversary may believe.
        loss: Of single values.
        epsilon: Budget for the leakage under every belief of the box.
        ldp: Cap on the leakage under any belief at all.

    Returns:
        A design whose `sip` is the leakage under the worst belief of the box, rounded up.

    Examples:
        >>> from sfumato.core.alphabet import Alphabet
        >>> from sfumato.core.loss import hamming
        >>> near = PriorBox([0.6, 0.2], [0.8, 0.4])
        >>> found = robust_design(
        ...     Method.OPTIMAL, np.array([0.7, 0.3]), near, hamming(Alphabet.of_size(2)), 0.5
        ... )
        >>> found.sip <= SIP(0.5), found.cost < 0.3
        (True, False)
    """
    best = silent(masses, loss)
    asked = [(method, part * epsilon) for part in _PARTS]
    # Where the box is wide, what needs no belief at all is the better start.
    for how, budget in (*asked, (Method.CONTEXT_FREE, epsilon)):
        made = design(how, masses, loss, budget, ldp=ldp).channel
        kept = None if made.is_constant else mixed_within(made, masses, beliefs, epsilon)
        if kept is None:
            continue
        channel, told = kept
        found = measured(channel, masses, loss)
        if found.cost < best.cost:
            best = replace(found, sip=SIP(told))
    return best


def mixed_within(
    channel: Channel, masses: Floats, beliefs: PriorBox, epsilon: float
) -> tuple[Channel, float] | None:
    """The channel with as little of its own outputs mixed in as keeps the bound; what it leaks."""
    rows, excess = channel.probabilities, portable.expm1(epsilon)
    rarest, commonest = mean_ranges(beliefs, rows)
    blend = channel.marginal(masses / masses.sum())
    beyond = np.maximum(
        rows.max(axis=0) - (1 + excess) * rarest, commonest - (1 + excess) * rows.min(axis=0)
    )
    odds = max(float((beyond / (excess * blend)).max()), 0.0)
    for hair in _HAIRS:
        part = min(odds / (1 + odds) + hair, 1.0)
        mixed = (1 - part) * rows + part * blend
        made = Channel.from_probabilities(mixed / mixed.sum(axis=1, keepdims=True), channel.outputs)
        told = 0.0 if made.is_constant else bounded_leakage(made, beliefs).epsilon
        if told <= epsilon:
            return made, told
    return None
