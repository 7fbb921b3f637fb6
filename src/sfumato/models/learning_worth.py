r"""How much of what hidden values would have told is left in their outputs.

Near its end a pass of EM shrinks an error by the share of information that is missing: its Jacobian
is $J = I - I_c^{-1} I_o$, where $I_c$ is the Fisher information of the values and $I_o$ that of the
outputs. The mean over directions, $\mathrm{tr}(I_c^{-1} I_o) / d$, is found from a few of them.

References: [Dempster1977]
"""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.models.emissions import Emissions
from sfumato.models.expectation import Guess, maximised
from sfumato.models.output_sums import OutputSums, sums_of

_PROBES = 3
_STEP = 1e-3


def information_share(
    outputs: Emissions | OutputSums, guess: Guess, order: int, smoothing: float
) -> float:
    """Share of the information about moves that outputs keep, on average over directions.

    Args:
        outputs: What they told; or sums over it, wherever it lies.
        guess: The chain that was learnt.
        order: Its order; 0 for values that are independent.
        smoothing: Pseudo-counts with which it was learnt.

    Examples:
        >>> from sfumato.models.expectation import even
        >>> seen = Emissions.of_rows([np.eye(2)[[0, 0, 1, 1, 0, 1, 1, 0]]])
        >>> round(information_share(seen, even(2, 1), 1, 0.0), 6)
        1.0
    """
    sums = sums_of(outputs)
    coins = np.random.default_rng(0)
    total = 0.0
    for _ in range(_PROBES):
        signs = 2.0 * coins.integers(2, size=guess.moves.shape) - 1
        if order == 0:
            signs = np.repeat(signs[:1], len(signs), axis=0)
        # Rows keep their sums; a step in units of the standard deviation stays within [0, 1].
        root = np.sqrt(guess.moves)
        across = signs - root * (signs * root).sum(axis=1, keepdims=True)
        ends = [
            maximised(sums.passed(_moved(guess, sign * across * root)), smoothing, order)
            for sign in (_STEP, -_STEP)
        ]
        shrunk = (ends[0].moves - ends[1].moves) / (2 * _STEP) / np.maximum(root, _STEP)
        total += float((across * shrunk).sum()) / float((across * across).sum())
    return float(np.clip(1 - total / _PROBES, 0.0, 1.0))


def _moved(guess: Guess, by: Floats) -> Guess:
    moves = np.maximum(guess.moves + by, 0.0)
    return guess._replace(moves=moves / moves.sum(axis=1, keepdims=True))
