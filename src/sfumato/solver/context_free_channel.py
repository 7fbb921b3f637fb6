"""The best channel for somebody who trusts no model."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks
from sfumato.core.loss import Loss, as_matrix
from sfumato.solver.certify import certified, without_dust
from sfumato.solver.design_result import Design, measured
from sfumato.solver.linear_programs import solve_minimax


def context_free(belief: ArrayLike, loss: Loss | ArrayLike, epsilon: float) -> Design:
    """The channel of model-free leakage `epsilon` whose worst expected loss is least.

    The channel does not depend on the belief; the belief only says what it costs and leaks here.

    Guarantee:
        `LDP(epsilon)`, hence also `SIP(epsilon)` under every belief.

    Examples:
        >>> design = context_free([0.9, 0.1], [[0, 1], [1, 0]], epsilon=1.0986122886681098)
        >>> design.cost, design.ldp.epsilon
        (0.25, 1.0986122)

    References:
        [Kairouz2016, Sec. 3]
    """
    prior = checks.belief("belief", belief)
    table = as_matrix(loss, prior.size)
    budget = checks.epsilon("epsilon", epsilon)
    even = np.full(prior.size, 1 / prior.size)
    rows, outputs = without_dust(solve_minimax(table, budget), even, table, np.arange(prior.size))
    channel = certified(rows, even, budget, ldp=budget, outputs=outputs)
    return measured(channel, prior, table)
