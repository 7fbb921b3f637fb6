"""The order of rows leaves too: a table that is sorted by a column tells it, whatever the noise."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Floats
from sfumato.tables.pass_through import FEWEST_ROWS

_CHANCE = 1e-7
"""Of each test, that a table in no order is found to be in one; there are 13 tests."""
_PERIODS = range(2, 13)
_TURNS = 4
"""Rows that each place of a period must have to be tested."""
_PLAIN = 0.1
"""Least correlation that is called plain: in a large table the faintest one is beyond chance."""


ORDER_TESTED = (
    "rows leave in the order in which they came: it was tested for drift, blocks and short "
    "periods, not proven to tell nothing; shuffle the rows (order: shuffled) to be safe"
)


class Order(StrEnum):
    """In which order rows leave.

    Attributes:
        CHECKED: As they came, if tests do not see that order tell of the column; else not.
        KEPT: As they came; the user declares that their order tells nothing.
        SHUFFLED: In a random order.

    Examples:
        >>> Order("shuffled")
        <Order.SHUFFLED: 'shuffled'>
    """

    CHECKED = "checked"
    KEPT = "kept"
    SHUFFLED = "shuffled"


def order_tells(values: Floats) -> bool:
    """Whether values plainly hang together with their rows: sorted, drifting, in blocks, in turn.

    Tests of ranks: with the row number, with the row before, and with the place of the row in every
    period of 2 to 12 rows. They are tests and no proof: what they do not see may still be there.

    Examples:
        >>> order_tells(np.arange(50.0)), order_tells(np.repeat([2.0, 1.0, 3.0], 20))
        (True, True)
        >>> order_tells(np.tile([1.0, 0.0], 50)), order_tells(np.tile([0.0, 0.0, 1.0], 50))
        (True, True)
        >>> order_tells(np.random.default_rng(1).normal(size=500))
        False
    """
    count = values.size
    if count < FEWEST_ROWS or np.ptp(values) == 0:
        return False
    from scipy import stats  # at first use: it takes half a second to load

    ranks = stats.rankdata(values)
    ranks = (ranks - ranks.mean()) / ranks.std()
    rows = np.arange(count) - 0.5 * (count - 1)
    drift = float(portable.dot(ranks, rows)) / (count * float(rows.std()))
    beside = float(portable.dot(ranks[1:], ranks[:-1])) / count + 1 / count
    if _beyond(max(drift**2, beside**2), 1, count):
        return True
    periods = (period for period in _PERIODS if _TURNS * period <= count)
    return any(_beyond(_explained(ranks, period), period - 1, count) for period in periods)


def _explained(ranks: Floats, period: int) -> float:
    """Part of the variance of standardised ranks that their place in a period explains."""
    turn = np.arange(ranks.size) % period
    sums, sizes = np.bincount(turn, ranks), np.bincount(turn)
    return float((sums**2 / sizes).sum() / ranks.size)


def _beyond(share: float, freedom: int, count: int) -> bool:
    """Whether a part of the variance is plain, and more than chance explains."""
    from scipy import stats  # at first use: it takes half a second to load

    chance = float(stats.beta.isf(_CHANCE, freedom / 2, (count - 1 - freedom) / 2))
    return share > max(_PLAIN**2, chance)
