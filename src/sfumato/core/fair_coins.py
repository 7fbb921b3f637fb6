r"""Whether outputs fit their channels: a bet that an honest release wins at most once in K.

Before each output somebody who knows the true value bets that, in a share $s$ of the rows, the
nearest possible output is given instead of a draw. His fortune is multiplied by
$1 - s + s\,[y \text{ nearest}] / a(\text{nearest} \mid x)$, which is 1 on average under fair coins,
so that a mixture of such fortunes ever reaches K with probability at most 1/K (Ville).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

LEVEL = 1e-4
"""How often an honest release may be accused."""
_SHARES = np.array([0.02, 0.05, 0.1, 0.2, 0.5, 1.0])


def largest_fortune(rows: Iterable[tuple[bool, float]]) -> float:
    """Logarithm of the largest fortune that a bet against fair coins ever had.

    Args:
        rows: Whether each output is one of the nearest that its true value can have, and the
            probability that fair coins give one of them.

    Examples:
        >>> round(largest_fortune([(True, 0.5)] * 20), 1)  # always the truth: 20 coins, all heads
        12.1
        >>> largest_fortune([(True, 0.5), (False, 0.5)] * 200) < -math.log(LEVEL)
        True
    """
    logs, best = np.full(_SHARES.size, -math.log(_SHARES.size)), 0.0
    for hit, chance in rows:
        ratio = 1 / chance if hit else 0.0
        with np.errstate(divide="ignore"):
            logs = logs + np.log1p(_SHARES * (ratio - 1.0))
        best = max(best, float(np.logaddexp.reduce(logs)))
    return best
