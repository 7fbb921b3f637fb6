r"""Bets that streams have left a set of chains: what those win who bet on its very ends.

The bets are those that bounds come from (`chain_bets.py`), on the same weights $g$ of outputs of
one channel. For every chain $P$ of the set, $P_{ij} \le h_{ij}$, and so

$$E[ 1 + \lambda w\, g_i(y_t)\, (g_j(y_{t+1}) - h_{ij}) \mid y_1 \dots y_{t-1}, x_1 \dots x_t ]
  = 1 + \lambda w\, 1[x_t = i]\, (P_{ij} - h_{ij}) \le 1$$

where $w \ge 0$ is any function of $y_1 \dots y_{t-1}$. So nobody gets rich who bets that $P_{ij}$
is larger than its upper end, or by the same sum smaller than its lower one, whichever chain of the
set is true: no likelihood is maximised over the set, and its width costs nothing at each step.

A pair counts if both outputs left in one block. Given all that left before the block, streams do
not depend on each other, and the pairs of one bettor in a stream have no output in common: what he
wins in the block has mean at most 1, and his capital over blocks is a supermartingale. Sets, and
the chains that guide bets, may change from block to block, by what left before.

References: [Ville1939], [Waudby2024]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.numerics import UNIT
from sfumato.models.chain_bet_loops import capitals
from sfumato.models.chain_bets import (
    FixedOutputs,
    bet_rates,
    cells,
    inverse_weights,
    pair_tables,
    residual,
    rounding,
)
from sfumato.models.drift_bets import Bettor
from sfumato.models.drift_capital import DriftCapital, drift_capital
from sfumato.models.plausible import PlausibleChains

_RATES = 6
"""Bets at lower rates win by changes only that are small beside what no set can tell."""
_STARTS = 0.1
"""Share of the capital that is on how streams begin."""
_SIDES = ("oftener", "more seldom")


def set_gains(outputs: FixedOutputs, chains: PlausibleChains) -> Floats:
    """Log of what the capital of each bettor is multiplied by in a block of outputs.

    Args:
        outputs: What left in the block through the one channel, the part of each stream by itself.
        chains: The set, which must not come from this block; its estimate guides the bets.

    Returns:
        One row for each bet (a move, or a beginning; more often or more seldom than the set says;
        of moves both parities), one column for each rate.
    """
    weights = inverse_weights(outputs.channel)
    assert weights is not None  # no set would have been proven
    tables, counts = pair_tables(outputs, weights, chains.estimate), outputs.beginnings
    symbols, off = len(outputs.channel), residual(outputs.channel, weights, outputs.alike)
    found = []
    for i in range(symbols):
        for j in range(symbols):
            ends = float(chains.low[i, j]), float(chains.high[i, j])
            for parity in range(2):
                bets = cells(tables[parity, i], weights[:, i], weights[:, j])
                found += _both_sides(*bets, ends, off)
    for i in range(symbols):
        ends = float(chains.first_low[i]), float(chains.first_high[i])
        found += _both_sides(counts, np.ones_like(counts), weights[:, i], ends, off)
    return np.array(found)


def _both_sides(
    counts: Floats, stakes: Floats, shown: Floats, ends: tuple[float, float], off: float
) -> list[Floats]:
    """What those won who bet on more than the upper end, and on less than the lower one."""
    rates, number = bet_rates(stakes, shown, _RATES), float(counts.sum())
    lost = np.array([rounding(number, off, rate) for rate in rates.tolist()])
    more, less = np.empty(_RATES), np.empty(_RATES)
    capitals(counts, stakes, shown, rates, ends[1], more)
    capitals(counts, -stakes, shown, rates, ends[0], less)
    return [more - lost, less - lost]


def left_set(gains: Sequence[Floats], labels: Sequence[object], alpha: float) -> DriftCapital:
    r"""The capital of all who bet that streams have left the set, after each block.

    Args:
        gains: What `set_gains` says of each block.
        labels: The symbols, for what the best bettor is called.
        alpha: Probability that the capital ever reaches `1/alpha` although one chain of order 1 is
            true that lies in the sets of all blocks, at most.

    Examples:
        >>> import sfumato as sf
        >>> channel = np.array([[0.75, 0.25], [0.25, 0.75]])
        >>> sticky = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> near = PlausibleChains.from_radius(sticky, 0.05)
        >>> turns = FixedOutputs(channel, np.array([0, 400]), np.arange(400) % 2)
        >>> found = left_set([set_gains(turns, near)], "ab", 0.01)
        >>> found.alarm, found.best.name
        (0, "'a' follows 'a' more seldom")
    """
    moves = 4 * len(labels) ** 2
    parts = {True: (1 - _STARTS) / moves / _RATES, False: _STARTS / (2 * len(labels)) / _RATES}
    bets = [
        Bettor(
            _name(place, labels),
            parts[place < moves],
            np.array([each[place, rate] for each in gains]),
        )
        for place in range(len(gains[0]))
        for rate in range(_RATES)
    ]
    sizes = np.array([float(np.abs(each).max()) for each in gains])
    allowance = 64 * UNIT * (np.cumsum(sizes) + np.arange(1.0, len(gains) + 1.0))
    return drift_capital(np.zeros(len(gains)), bets, alpha, len(gains) * allowance)


def _name(place: int, labels: Sequence[object]) -> str:
    """What a bettor bets on, for people."""
    side, size = _SIDES[place % 2], len(labels)
    if place >= 4 * size**2:
        return f"streams begin with {labels[(place - 4 * size**2) // 2]!r} {side}"
    first, second = divmod(place // 4, size)
    return f"{labels[second]!r} follows {labels[first]!r} {side}"
