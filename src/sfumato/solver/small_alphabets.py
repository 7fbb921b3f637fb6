"""Designs for small and medium alphabets, by compiled loops from end to end."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Floats
from sfumato.core.channel import Channel
from sfumato.core.guarantees import LDP, SIP
from sfumato.solver.barrier import barrier
from sfumato.solver.design_loops import blended, finished, from_columns
from sfumato.solver.design_result import Design
from sfumato.solver.extreme_columns import pieces

Solved = tuple[Floats, Floats]

# Column generation alone up to so many symbols; first, up to so many, where the high mass of a
# column holds at most so many symbols of mean probability.
_FEW, _SOME, _WIDE = 12, 24, 2.0
# Gaps: from the first, a part of the cost, an interior solution will do as it is; the second is
# what it aims at otherwise; the third, a part of the largest loss, counts as none.
_ROUGH, _NEAR, _SETTLED = 1e-4, 5e-9, 1e-8
_STEPS = 60
# The optimum for a smaller budget is within the larger one.
_SOLVABLE = 20.0


def design_small(
    belief: Floats, loss: Floats, epsilon: float, *, ldp: float, tolerance: float
) -> Design | None:
    """The optimal channel without an active cap; None when no method came near enough.

    Arguments are those of `optimal`, checked; a cap is one that the optimum keeps anyway.
    """
    share = belief / belief.sum()
    for rows, prices in solutions(share, loss, epsilon, tolerance):
        fits, weights, outputs, sip, leakage, cost, bound = finished(
            belief, share, loss, rows, prices, epsilon, ldp
        )
        gap = cost - bound
        if fits and (gap <= tolerance * cost or gap <= _SETTLED * loss.max()):
            channel = Channel.trusted(weights, outputs, is_constant=sip == 0.0)
            return Design(channel, cost, bound, SIP(sip), LDP(leakage))
    return None


def solutions(share: Floats, loss: Floats, epsilon: float, tolerance: float) -> Iterator[Solved]:
    """Float rows and prices, the quickest method first; nothing rests on their accuracy.

    The simplex method ends at a vertex but loses its way in medium alphabets; an interior-point
    method comes near in a dozen steps, and its solution, taken apart, leads to the vertex.
    """
    size, k = share.size, portable.exp(min(epsilon, _SOLVABLE))
    if size <= _FEW or (size <= _SOME and size <= _WIDE * (k + 1)):
        pivots = 60 * size + 200 if size <= _FEW else 6 * size
        nothing = np.empty((size, 0)), np.empty(0, dtype=np.int64)
        good, rows, prices = from_columns(share, loss, epsilon, tolerance, pivots, *nothing)
        if good:
            yield rows, prices
    coupling, paid, _ = barrier(share, loss, k, max(_NEAR, 0.7 * tolerance), _STEPS)
    rows, prices = blended(share, coupling, k), paid / (1 - 1 / k)
    if size > _SOME or tolerance >= _ROUGH:
        yield rows, prices
    starts = pieces(share, coupling, 1 / (k + 1))
    exact, vertex, worth = from_columns(share, loss, epsilon, 0.0, 20 * size + 200, *starts)
    yield (vertex, worth) if exact else (rows, prices)
