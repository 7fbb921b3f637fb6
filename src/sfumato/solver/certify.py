r"""From float probabilities to an integer channel that keeps its budget, proven.

Mixing a channel with its own output marginal, $(1-t)\,a(y|x) + t\,P(y)$, leaves $P$ as it is and
turns every ratio $r$ into $(1-t)\,r + t$. So the least $t$ that restores a bound is known in closed
form, and rounding to integers costs a $t$ of about $10^{-15}$.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks
from sfumato.core.arrays import Floats, Ints
from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter, SolverFailed
from sfumato.core.information_leakage import information_leakage
from sfumato.core.local_leakage import local_leakage
from sfumato.core.printed import shown_up
from sfumato.solver.certificate_loops import rounded, undusted


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
    prior = checks.belief("belief", belief)
    budget = checks.epsilon("epsilon", epsilon)
    cap = None if ldp is None else checks.epsilon("ldp", ldp)
    rows = checks.row_stochastic("probabilities", probabilities)
    if len(rows) != prior.size:
        raise InvalidParameter("belief", prior.size, f"have one entry per row, {len(rows)}")
    good, weights, columns, _, _ = rounded(
        rows / rows.sum(axis=1, keepdims=True), prior, budget, math.inf if cap is None else cap
    )
    if not good:
        raise SolverFailed(f"no channel within epsilon={shown_up(epsilon)} was found by mixing")
    symbols = np.arange(rows.shape[1]) if outputs is None else np.asarray(outputs)
    if symbols.shape != (rows.shape[1],):
        raise InvalidParameter("outputs", symbols.shape, "be one whole number per column")
    return Channel(weights, symbols[columns])


def without_dust(rows: Floats, belief: Floats, loss: Floats, outputs: Ints) -> tuple[Floats, Ints]:
    """Merge outputs that hardly occur into their cheapest stand-ins.

    They are a float solver's dust, not part of the optimum, and their ratios are noise. Merging is
    a function of the output, so it can only lower the leakage.
    """
    merged, columns = undusted(rows, belief, np.ascontiguousarray(loss[:, outputs]))
    return merged, outputs[columns]


def keeps(channel: Channel, belief: Floats, epsilon: float, ldp: float | None) -> bool:
    """Whether the exact leakage, rounded up, is within the budget and the optional cap."""
    if information_leakage(channel, belief).epsilon > epsilon:
        return False
    return ldp is None or local_leakage(channel).epsilon <= ldp
