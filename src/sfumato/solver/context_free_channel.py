"""The best channel for somebody who trusts no model."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks
from sfumato.core.channel import Channel
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
    return measured(_channel(table.tobytes(), prior.size, budget), prior, table)


# A robust step asks at every belief, and a program is two thirds of what it costs.
@lru_cache(maxsize=32)
def _channel(losses: bytes, size: int, budget: float) -> Channel:
    table = np.frombuffer(losses).reshape(size, size)
    even = np.full(size, 1 / size)
    rows, outputs = without_dust(solve_minimax(table, budget), even, table, np.arange(size))
    return certified(rows, even, budget, ldp=budget, outputs=outputs)
