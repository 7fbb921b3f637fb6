r"""Outputs that keep a bound for every belief in a box, each made to keep it by itself.

The bound of an output with ratios $r(x)$ asks $\max_x r(x) \le k\,p$ and $q \le k \min_x r(x)$,
where its mean lies between $p$ and $q$ over the box and $k = e^\epsilon$. It names no other output,
so a mixture of columns that keep it is a channel that does, and a small linear program finds the
best one. Where a whole channel is mixed with its own outputs until it keeps the bound
(`robust_design.py`), all outputs pay for the worst one.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Floats
from sfumato.core.channel import Channel
from sfumato.models.belief_sets import mean_ranges
from sfumato.models.prior_sets import PriorBox
from sfumato.solver.column_mixture import mixed_columns
from sfumato.solver.far_sighted import FarSight

_LISTED = 8
"""Symbols up to which every set of them has an output that it makes more probable."""
_HAIR = 1e-7
"""Part of the budget that rounding, and what a mixture leaves out, may take."""


def columns_mixed(
    sight: FarSight,
    share: Floats,
    beliefs: PriorBox,
    epsilon: float,
    channels: Iterable[Channel],
) -> Channel:
    """The channel of least cost to go that is a mixture of columns which keep the bound.

    Nothing is proven here but for the program: the bound is asked of the integers of the channel by
    whoever uses it.

    Args:
        sight: What beliefs about single values are worth.
        share: The belief that costs are expected under; it sums to 1.
        beliefs: What the adversary may believe.
        epsilon: Budget for the leakage under every belief.
        channels: Whose outputs are made to keep the bound.
    """
    excess = portable.expm1(epsilon * (1 - _HAIR))
    found = [_drawn_in(made.probabilities, share, beliefs, excess) for made in channels]
    if share.size <= _LISTED:
        found.append(two_levels(share, beliefs, excess))
    columns = np.hstack(found)
    nothing = sight.column_costs(share, np.ones((share.size, 1)))
    rows = mixed_columns(share, columns, sight.column_costs(share, columns), float(nothing[0]))
    made = Channel.from_probabilities(rows)
    return Channel(made.weights, np.arange(made.weights.shape[1]))


def two_levels(share: Floats, beliefs: PriorBox, excess: float) -> Floats:
    r"""For each set of symbols, the output that tells most of all whether the value lies in it.

    With ratios in proportion to $1 + g$ on a set whose probability lies between $p$ and $q$, and to
    1 elsewhere, the bound asks $1 + g \le k (1 + g p)$ and $1 + g q \le k$.
    """
    size = share.size
    inside = (np.arange(1, 2**size - 1) >> np.arange(size)[:, None] & 1).astype(np.float64)
    rarest, commonest = mean_ranges(beliefs, inside)
    more = excess / np.maximum(commonest, 1 - (1 + excess) * rarest)
    ratios = 1 + more * inside
    return np.asarray(ratios / (share[:, None] * ratios).sum(axis=0))


def _drawn_in(rows: Floats, share: Floats, beliefs: PriorBox, excess: float) -> Floats:
    """Columns, each with as little of a constant mixed in as makes it keep the bound."""
    ratios = rows / (share[:, None] * rows).sum(axis=0)
    rarest, commonest = mean_ranges(beliefs, ratios)
    above = ratios.max(axis=0) - (1 + excess) * rarest
    below = commonest - (1 + excess) * ratios.min(axis=0)
    odds = np.maximum(np.maximum(above, below) / excess, 0.0)
    return np.asarray((ratios + odds) / (1 + odds))
