"""A far-sighted channel that keeps its budget for every belief in a box.

What a channel leaks over a box of beliefs does not depend on how it was found. So channels are
found far-sighted for the belief in the middle, at several parts of the budget, and step-wise beside
them; each is mixed with its own outputs until it keeps the bound over the box (`robust_design.py`),
and the one with the least cost to go from the middle is taken. An output is a symbol with a signal:
both leave, and both are certified. `Repair.BY_OUTPUT` also makes each of their outputs keep the
bound by itself, and mixes these (`robust_columns.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.channel import Channel
from sfumato.core.guarantees import SIP
from sfumato.core.randomness import BITS
from sfumato.models.prior_sets import PriorBox
from sfumato.solver.design_methods import Method, design
from sfumato.solver.design_result import measured
from sfumato.solver.far_sighted import FarSight, SightedDesign
from sfumato.stream.partition.robust_columns import columns_mixed
from sfumato.stream.partition.robust_design import mixed_within

_PARTS = (1.0, 0.875, 0.75, 0.5)
"""Parts of the budget that a far-sighted channel is made for at the middle; at a half nothing is
mixed in, since it is model-free within the whole."""


class Repair(StrEnum):
    """How channels for one belief are made to keep a bound for a set.

    `WHOLE` mixes each with its own outputs. `BY_OUTPUT` also draws in each output alone and takes
    the best mixture of all. Channels depend on it, so a release keeps the one it began with.

    Examples:
        >>> [str(repair) for repair in Repair]
        ['whole', 'by-output']
    """

    WHOLE = "whole"
    BY_OUTPUT = "by-output"


def robust_sighted(
    sight: FarSight,
    masses: Floats,
    beliefs: PriorBox,
    epsilon: float,
    ldp: float | None = None,
    repair: Repair = Repair.WHOLE,
) -> SightedDesign:
    """The channel of least cost to go, of some that leak at most `epsilon` for a box of beliefs.

    Args:
        sight: What beliefs about single values are worth under the chain in the middle.
        masses: The belief that costs are expected under, and channels made for.
        beliefs: What the adversary may believe.
        epsilon: Budget for the leakage under every belief of the box.
        ldp: Cap on the leakage under any belief at all. A mixture of outputs would not keep it, so
            with one no outputs are mixed.
        repair: How channels are made to keep the bound.

    Returns:
        A design whose `sip` is the leakage under the worst belief of the box, rounded up.

    Examples:
        >>> from sfumato.solver.value_iteration import value_function
        >>> value = value_function([[0.95, 0.05], [0.05, 0.95]], [[0, 1], [1, 0]], 0.5)
        >>> near = PriorBox([0.75, 0.15], [0.85, 0.25])
        >>> found = robust_sighted(FarSight(value), np.array([0.8, 0.2]), near, 0.5)
        >>> found.symbols, found.design.sip <= SIP(0.5)
        (array([0, 0]), True)
    """
    share = masses / masses.sum()
    symbols, least = sight.going_on(share, np.ones((share.size, 1)))
    channel, told = Channel(np.full((share.size, 1), 2**BITS, dtype=np.int64), [0]), 0.0
    candidates = list(_candidates(sight, masses, epsilon, ldp))
    if repair is Repair.BY_OUTPUT and ldp is None:
        candidates.append(columns_mixed(sight, share, beliefs, epsilon, candidates))
    for made in candidates:
        kept = None if made.is_constant else mixed_within(made, masses, beliefs, epsilon)
        if kept is None:
            continue
        found, cost = sight.going_on(share, kept[0].probabilities)
        cost += sight.value.price * kept[1]
        if cost < least:
            (channel, told), symbols, least = kept, found, cost
    own = measured(channel, masses, sight.outlook.losses[:, symbols])
    return SightedDesign(replace(own, sip=SIP(told)), symbols)


def _candidates(
    sight: FarSight, masses: Floats, epsilon: float, ldp: float | None
) -> Iterator[Channel]:
    """Channels to mix, from values to signals 0, 1, ..."""
    for part in _PARTS:
        yield sight.design(masses, part * epsilon, ldp, masses).design.channel
    # Where the box is wide, what looks at one step, or at no belief at all, is the better start.
    for how in (Method.OPTIMAL, Method.CONTEXT_FREE):
        made = design(how, masses, sight.outlook.losses, epsilon, ldp=ldp).channel
        yield Channel(made.weights, np.arange(made.weights.shape[1]))
