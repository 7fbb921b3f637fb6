"""The design for a large alphabet: a channel on groups of symbols, certified and bounded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.channel import Channel
from sfumato.core.loss import Loss
from sfumato.solver.certify import certified, without_dust
from sfumato.solver.design_result import Design, measured
from sfumato.solver.dual import dual_bound
from sfumato.solver.grouped import Grouped
from sfumato.solver.medium_alphabets import solve_coarse, solve_whole

# Part of the cost: a channel on groups this near to its bound is taken.
_NEAR = 0.01
# A budget below this is too small for a solver: the best constant is returned.
_NOTHING = 1e-9


def design_large(belief: Floats, loss: Loss, epsilon: float, *, ldp: float | None = None) -> Design:
    """A certified channel near the optimum; its `gap` says how near.

    Only the columns of the loss that the channel releases are ever computed, unless the loss is
    small enough to be a table.

    Args:
        belief: The adversary's distribution of the true symbol, full support.
        loss: What errors cost.
        epsilon: Budget for the leakage under the belief.
        ldp: Cap on the model-free leakage.
    """
    share = belief / belief.sum()
    constant = measured(
        Channel.constant(belief.size, int(loss.means(share).argmin())), belief, loss
    )
    if min(epsilon, epsilon if ldp is None else ldp) < _NOTHING:
        return replace(constant, lower_bound=0.0)
    # A model-free leakage of twice the budget holds anyway: such a cap only guides the rounding.
    active = ldp if ldp is not None and ldp < 2 * epsilon else None
    designs, bound = [constant], 0.0
    for solve in (solve_coarse, solve_whole):
        solved = solve(share, loss, epsilon, active)
        if solved is None:
            break
        designs.append(_certified(solved, belief, loss, epsilon, ldp))
        bound = max(bound, _bound(solved, share, loss, epsilon, active))
        if designs[-1].cost - bound <= _NEAR * designs[-1].cost:
            break
    return replace(min(designs, key=lambda design: design.cost), lower_bound=bound)


def _certified(
    solved: Grouped, belief: Floats, loss: Loss, epsilon: float, ldp: float | None
) -> Design:
    """The channel in integers that keep the budget."""
    columns = loss.columns(solved.outputs)
    share = belief / belief.sum()
    rows, left = without_dust(
        solved.rows[solved.groups], share, columns, np.arange(solved.outputs.size)
    )
    channel = certified(rows, belief, epsilon, ldp=ldp, outputs=solved.outputs[left])
    return measured(channel, belief, loss)


def _bound(solved: Grouped, share: Floats, loss: Loss, epsilon: float, ldp: float | None) -> float:
    if solved.lower_bound is not None:
        return solved.lower_bound
    return dual_bound(solved.prices, share, loss, epsilon, ldp)
