r"""Bounds of a chain from bets on blocks of outputs, valid at all times at once.

As in `chain_bets.py`, $w_t\, g_i(y_t)\,(g_j(y_{t+1}) - P_{ij})$ has mean 0 given the true value
$x_t$ and all outputs before $y_t$, whatever the stake $w_t \in [0, 1]$ made of those. So has the
sum $S(P_{ij}) = A - P_{ij} B$ of such products over the moves of a *block*, $m + 1$ outputs in a
row, given all that left before the block: one move in $m + 1$ is lost between blocks, where single
moves that share no output would lose every other one. With $c \ge |S|$ and $0 < \lambda < 1$

$$E\Big[\exp\Big(\frac{\lambda S}{c} - \psi(\lambda) \frac{S^2}{c^2}\Big)\Big]
  \le E\Big[1 + \frac{\lambda S}{c}\Big] = 1, \qquad \psi(\lambda) = -\log(1 - \lambda) - \lambda$$

(Fan, Grama and Liu: $e^{\lambda x - \psi(\lambda) x^2} \le 1 + \lambda x$ for $x \ge -1$). The
product over blocks is a supermartingale if each block's stakes are made of what left before it, so
it ever reaches $1/\delta$ with probability at most $\delta$ (Ville): the bounds of all versions of
a release hold at once for one $\delta$, and each version may guide the bets of the next. All that
is needed of outputs are five sums for each pair of values, which add up over blocks and streams.

References: [Ville1939], [Waudby2024], [Fan2015]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.numerics import UNIT
from sfumato.models.block_bet_loops import add_blocks, ruled_out_by_blocks
from sfumato.models.chain_bets import (
    STARTS,
    FixedOutputs,
    begin_bounds,
    inverted,
    residual,
    weight_spread,
)
from sfumato.models.markov import MarkovChain
from sfumato.models.plausible import tightened

LENGTHS = (1, 3, 7, 15, 31)
"""Moves of a block, at most. Long blocks lose few moves between them, but a bet on one that could
lose all is small: they are for the many values that low rates are for."""
_LADDER = (
    *((0, 3 / 4), (0, 3 / 8), (1, 1 / 2), (1, 1 / 4), (2, 7 / 24), (3, 15 / 48), (3, 15 / 96)),
    *((4, 31 / 192 / 2**step) for step in range(5)),
)
"""Which blocks are bet on, and the part of all that is put on one: what is put on a move is about
halved from each bet to the next."""


@dataclass(frozen=True, slots=True, eq=False)
class BlockSums:
    """What blocks of outputs showed of each move: sums, which add up.

    Attributes:
        sums: For each length of blocks and pair of values the sums of A, B, A^2, AB and B^2.
        blocks: How many blocks of the shortest length there are; of others there are fewer.
        moves: How many moves the blocks of the longest length have in all; those of others fewer.

    Examples:
        >>> nothing = BlockSums.none(2)
        >>> (nothing + nothing).moves
        0
    """

    sums: Floats
    blocks: int
    moves: int

    @classmethod
    def none(cls, symbols: int) -> BlockSums:
        """Of no blocks."""
        return cls(np.zeros((len(LENGTHS), symbols, symbols, 5)), 0, 0)

    def __add__(self, other: BlockSums) -> BlockSums:
        return BlockSums(
            self.sums + other.sums, self.blocks + other.blocks, self.moves + other.moves
        )


def block_sums(
    outputs: FixedOutputs, guide: MarkovChain | None, skipped: Ints | None = None
) -> BlockSums:
    """What the blocks of some streams show.

    Args:
        outputs: What left: of each stream, outputs that follow each other.
        guide: A chain that says which bets are worth while; it must be made of what left before
            the blocks. None for a chain that knows nothing.
        skipped: How many outputs of each stream come before its first block: they are part of what
            is believed, and are not bet on.

    Examples:
        >>> half = np.array([[0.75, 0.25], [0.25, 0.75]])
        >>> turns = FixedOutputs(half, np.array([0, 34]), np.arange(34) % 2)
        >>> found = block_sums(turns, None)
        >>> found.blocks, found.moves
        (17, 32)
    """
    channel, weights = outputs.channel, inverted(outputs.channel)
    symbols = len(channel)
    evenly = np.full(symbols, 1 / symbols)
    initial = evenly if guide is None else guide.initial.ravel()
    moves = np.repeat(evenly[None], symbols, axis=0) if guide is None else guide.transition()
    none = np.zeros(outputs.starts.size - 1, dtype=np.int64)
    sums = np.zeros((len(LENGTHS), symbols, symbols, 5))
    blocks, counted = add_blocks(
        np.ascontiguousarray(initial),
        np.ascontiguousarray(moves),
        channel,
        weights,
        outputs.starts,
        none if skipped is None else skipped,
        outputs.columns,
        weight_spread(channel, weights),
        np.array(LENGTHS),
        sums,
    )
    return BlockSums(sums, blocks, counted)


def bounds_left(
    found: BlockSums, channel: Floats, beginnings: Floats, failure: float, alike: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """The least and largest probability of each move, and of each beginning, not ruled out.

    Args:
        found: What all blocks so far showed.
        channel: The one channel that all outputs left through.
        beginnings: How often each output was the first of a stream.
        failure: Probability that any of these bounds, at whatever time they are asked for, misses
            the truth, at most.
        alike: What a probability of the channel of any step may be off, at most.

    Raises:
        InvalidParameter: If no chain of order 1 is left.
    """
    weights = inverted(channel)
    low, high = _moves(found, channel, weights, (1 - STARTS) * failure, alike)
    first = begin_bounds(channel, beginnings, weights, STARTS * failure, alike)
    if np.any(low > high) or np.any(first[0] > first[1]):
        rule = "come from streams that follow one chain of order 1: no such chain is left"
        raise InvalidParameter("released", "another", rule)
    return low, high, *first


def _moves(
    found: BlockSums, channel: Floats, weights: Floats, failure: float, alike: float
) -> tuple[Floats, Floats]:
    symbols = len(channel)
    # Of two symbols the second column says what the first does: its bets would be the same.
    asked = 1 if symbols == 2 else symbols
    needed = portable.log(2 * symbols * asked * len(_LADDER) / failure)
    off = residual(channel, weights, alike)
    low, high = np.zeros((symbols, symbols)), np.ones((symbols, symbols))
    given = np.abs(weights).max(axis=0)
    shown = np.maximum(np.abs(weights), np.abs(weights - 1)).max(axis=0)
    for i in range(symbols):
        for j in range(asked):
            told = _rates(found, needed, off, float(given[i] * shown[j]) * (1 + 64 * UNIT))
            own = np.ascontiguousarray(found.sums[:, i, j])
            low[i, j] = ruled_out_by_blocks(own, 1.0, *told)
            high[i, j] = ruled_out_by_blocks(own, -1.0, *told)
    return tightened(low, high) if np.all(low <= high) else (low, high)


def _rates(
    found: BlockSums, needed: float, off: float, most: float
) -> tuple[Ints, Floats, Floats, Floats]:
    """Bets: the blocks of each, its rate, what squares cost, the log at which values are out.

    Args:
        found: What blocks showed.
        needed: Log of the capital that rules a value out.
        off: What means may be off.
        most: What a move can show at most.
    """
    which = np.array([length for length, _ in _LADDER])
    parts = np.array([part for _, part in _LADDER])
    largest = most * np.array(LENGTHS, dtype=np.float64)[which]
    costs = np.array([-portable.log1p(-part) - part for part in parts.tolist()]) * (1 + 8 * UNIT)
    # Means that are off by rounding, and the rounding of sums, must not make anybody rich.
    mean = 4 * off * found.moves * parts / largest
    sums = 8 * UNIT * (found.blocks + 64.0) ** 2 * parts
    return which, parts / largest, costs / largest**2, needed + mean + sums
