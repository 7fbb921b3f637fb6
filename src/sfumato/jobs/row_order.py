"""The order of rows leaves too: a table that is sorted by a column tells it, whatever the noise."""

from __future__ import annotations

import math
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from sfumato.jobs.beside import FEWEST_ROWS

_FAR = 5.0
"""Standard deviations of chance: a table in no order is found to be in one once in a million."""
_PLAIN = 0.1
"""Least correlation that is called plain: in a large table the faintest one is beyond chance."""


class Order(StrEnum):
    """In which order rows leave.

    Attributes:
        CHECKED: As they came, unless that order is seen to tell of the column: then nothing leaves.
        KEPT: As they came; the user declares that their order tells nothing.
        SHUFFLED: In a random order.

    Examples:
        >>> Order("shuffled")
        <Order.SHUFFLED: 'shuffled'>
    """

    CHECKED = "checked"
    KEPT = "kept"
    SHUFFLED = "shuffled"


def order_tells(values: NDArray[np.float64]) -> bool:
    """Whether values plainly hang together with their rows: sorted, drifting or in blocks.

    Two tests of ranks, with the row number and with the row before. What they do not see, such as a
    period, may still be there.

    Examples:
        >>> order_tells(np.arange(50.0)), order_tells(np.repeat([2.0, 1.0, 3.0], 20))
        (True, True)
        >>> order_tells(np.random.default_rng(1).normal(size=500))
        False
    """
    count = values.size
    if count < FEWEST_ROWS or np.ptp(values) == 0:
        return False
    ranks = stats.rankdata(values)
    ranks = (ranks - ranks.mean()) / ranks.std()
    rows = np.arange(count) - 0.5 * (count - 1)
    drift = abs(float(ranks @ rows)) / (count * float(rows.std()))
    beside = float(ranks[1:] @ ranks[:-1]) / count + 1 / count
    return max(drift, beside) > max(_PLAIN, _FAR / math.sqrt(count))
