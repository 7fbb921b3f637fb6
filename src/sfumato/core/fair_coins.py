r"""Whether outputs fit their channels: a bet that an honest release wins at most once in K.

Before each output somebody who knows the true value bets that, in a share $s$ of the rows, it is
not drawn from its channel $a(\cdot \mid x)$ but given by some way to cheat, $c(\cdot \mid x)$. His
fortune is multiplied by $1 - s + s\,c(y \mid x) / a(y \mid x)$, which is 1 on average under fair
coins, so that a mixture of such fortunes ever reaches K with probability at most 1/K (Ville).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from sfumato.core.arrays import Floats

LEVEL = 1e-4
"""How often an honest release may be accused."""
SHARES = np.array([0.02, 0.05, 0.1, 0.2, 0.5, 1.0])
"""Shares of rows in which somebody may cheat."""


def winnings(ratios: Floats) -> Floats:
    """Logarithms of what a fortune is multiplied by, for each share, as a last axis.

    Args:
        ratios: Probability of each output under a way to cheat, over that under fair coins.

    Examples:
        >>> np.exp(winnings(np.array([2.0, 0.0]))).round(2)
        array([[1.02, 1.05, 1.1 , 1.2 , 1.5 , 2.  ],
               [0.98, 0.95, 0.9 , 0.8 , 0.5 , 0.  ]])
    """
    with np.errstate(divide="ignore"):
        return np.asarray(np.log1p(SHARES * (ratios[..., None] - 1.0)))


def log_sum(logs: Floats) -> Floats:
    """Logarithm of the sum of each row's exponentials."""
    most = logs.max(axis=1)
    return np.asarray(most + np.log(np.exp(logs - most[:, None]).sum(axis=1)))


def largest_fortune(rows: Iterable[tuple[bool, float]]) -> float:
    """Logarithm of the largest fortune of one who bets that the nearest possible output is given.

    Args:
        rows: Whether each output is one of the nearest that its true value can have, and the
            probability that fair coins give one of them.

    Examples:
        >>> round(largest_fortune([(True, 0.5)] * 20), 1)  # always the truth: 20 coins, all heads
        12.1
        >>> largest_fortune([(True, 0.5), (False, 0.5)] * 200) < -math.log(LEVEL)
        True
    """
    ratios = np.array([1 / chance if hit else 0.0 for hit, chance in rows])
    if not ratios.size:
        return 0.0
    path = log_sum(np.cumsum(winnings(ratios), axis=0) - math.log(SHARES.size))
    return max(0.0, float(path.max()))
