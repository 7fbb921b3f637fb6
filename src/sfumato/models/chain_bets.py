r"""A box that holds the true chain with a stated probability, from outputs alone, at any size.

Let every value leave through one channel $a$ with an inverse: weights $g$ of the outputs whose mean
is the value, $\sum_y a(y \mid x)\, g_i(y) = 1[x = i]$. For a chain $P$ and every past,

$$E[ w\, g_i(y_t)\, (g_j(y_{t+1}) - P_{ij}) \mid y_1 \dots y_{t-1}, x_1 \dots x_t ] = 0$$

where the stake $w$ is any function of $y_1 \dots y_{t-1}$. So nobody who bets on the sign of this
for every other $t$ can get rich if $P_{ij}$ is right: the capital
$\prod_t (1 + \lambda w g_i(y_t)(g_j(y_{t+1}) - v))$ has mean at most 1 for $v = P_{ij}$ and reaches
$1/\delta$ with probability at most $\delta$ (Ville). A value $v$ for which it does is ruled out.
That holds for one stream or many, however short, stationary or not; no limit theorem is used. It
does not hold if a stream ends because of $y_t$: the bets that are settled are then chosen by it.
Bets up and down, for odd and even $t$, at some rates $\lambda$ and for all $i, j$ share the
probability of failure.

Stakes follow a chain that guides the bets, the better the narrower the box. It must come from other
streams, or from nowhere: a stake that has seen its own outcome proves nothing.

References: [Ville1939], [Waudby2024]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sfumato.core import checks, portable
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.numerics import UNIT
from sfumato.models.chain_bet_loops import count_pairs, gather_cells, ruled_out
from sfumato.models.markov import MarkovChain
from sfumato.models.plausible import PlausibleChains, tightened

SYMBOLS = 64
"""Symbols up to which every pair of outputs is counted."""
_LEVELS, _RATES = 8, 12
_EXACT = 1e-9
"""What a mean may be off before outputs count as telling too little."""
ALIKE = 1e-12
"""What the channels of two steps may be off each other where nothing else is said."""
STARTS = 0.2
"""Share of the failure probability that is for how streams begin."""


@dataclass(frozen=True, slots=True, eq=False)
class FixedOutputs:
    """Outputs of streams whose values all left through the same channel.

    Attributes:
        channel: Probability of each output for each value: row = value, column = output.
        starts: Where the outputs of each stream begin, and the end.
        columns: The output of every value, as a column of the channel.
        begun: Whether the first output of each stream here is the first of all; of others nothing
            is inferred of how streams begin. None if all are.
        alike: What a probability of the channel of any step may be off, at most: allowances are
            rounded step by step, the more the longer a stream is.
    """

    channel: Floats
    starts: Ints
    columns: Ints
    begun: Bools | None = None
    alike: float = ALIKE

    def __post_init__(self) -> None:
        checks.row_stochastic("channel", self.channel)
        if self.begun is not None and self.begun.size != self.starts.size - 1:
            raise InvalidParameter("begun", self.begun.size, "be one for each stream")
        if self.columns.size != self.starts[-1]:
            raise InvalidParameter("starts", int(self.starts[-1]), "end where the outputs do")
        if self.columns.size and not 0 <= self.columns.min() <= self.columns.max() < len(
            self.channel.T
        ):
            rule = "be columns of the channel: a value that did not leave cannot be left out"
            raise InvalidParameter("columns", "others", rule)

    def of_streams(self, chosen: Ints) -> FixedOutputs:
        """Those of some streams."""
        parts = [self.columns[self.starts[one] : self.starts[one + 1]] for one in chosen.tolist()]
        starts = np.append(0, np.cumsum([part.size for part in parts], dtype=np.int64))
        begun = None if self.begun is None else self.begun[chosen]
        columns = np.concatenate([np.empty(0, np.int64), *parts])
        return FixedOutputs(self.channel, starts, columns, begun, self.alike)

    @property
    def beginnings(self) -> Floats:
        """How often each output was the first of a stream."""
        own = np.diff(self.starts) > 0
        if self.begun is not None:
            own &= self.begun
        first = self.columns[self.starts[:-1][own]]
        return np.bincount(first, minlength=self.channel.shape[1]).astype(np.float64)


def inverse_weights(channel: Floats) -> Floats | None:
    """Weights of outputs whose mean is the value, whatever it is: a row per output; None if none.

    Examples:
        >>> inverse_weights(np.array([[0.75, 0.25], [0.25, 0.75]]))
        array([[ 1.5, -0.5],
               [-0.5,  1.5]])
    """
    symbols, outputs = channel.shape
    if outputs < symbols:
        return None
    scaled = channel / np.maximum(channel.sum(axis=0) / symbols, UNIT)
    # Weights on a coarse lattice are few, so that like outputs are counted together.
    found = np.round(portable.solved(portable.dot(scaled, channel.T), scaled).T * 2.0**32) / 2.0**32
    return found if np.isfinite(found).all() and residual(channel, found) <= _EXACT else None


class BetCounts(NamedTuple):
    """All that bets on a chain need of outputs: whole numbers, which parts add up to.

    Attributes:
        channel: The one channel that all outputs left through.
        tables: How often each output followed each, by parity, value and level of the bet on it.
        beginnings: How often each output was the first of a stream.
        alike: What a probability of the channel of any step may be off, at most.
    """

    channel: Floats
    tables: Floats
    beginnings: Floats
    alike: float = ALIKE


def bet_counts(outputs: FixedOutputs, guide: MarkovChain | None) -> BetCounts:
    """What bets need of some streams.

    Args:
        outputs: What left.
        guide: A chain that says which bets are worth while. It must not come from these outputs.
    """
    tables = pair_tables(outputs, inverted(outputs.channel), guide)
    return BetCounts(outputs.channel, tables, outputs.beginnings, outputs.alike)


def inverted(channel: Floats) -> Floats:
    """The weights of a channel that must have an inverse."""
    weights = inverse_weights(channel)
    if weights is None or len(channel) > SYMBOLS:
        rule = f"tell apart all values of at most {SYMBOLS} symbols: it must have an inverse"
        raise InvalidParameter("channel", channel.shape, rule)
    return weights


def plausible_chains(
    outputs: FixedOutputs,
    estimate: MarkovChain,
    *,
    guide: MarkovChain | None = None,
    confidence: float = 0.95,
) -> PlausibleChains:
    """All chains of order 1 that outputs have not ruled out, as a box.

    Args:
        outputs: What left.
        estimate: A chain to put in the middle of the report; no bound rests on it.
        guide: A chain that says which bets are worth while. It must not come from these outputs.
        confidence: Probability that the true chain lies in the box, at least, if all streams
            follow one chain of order 1, do not depend on each other, and end without regard to
            their last output and to what would have come next. An end may depend on true values
            and on earlier outputs; one that the last output brings about makes the bet on it
            unfair, and the box wrong.

    Raises:
        InvalidParameter: If the channel has no inverse, or no chain of order 1 is left.
    """
    checks.proper_fraction("confidence", confidence)
    return chains_left(bet_counts(outputs, guide), estimate, confidence)


def chains_left(counts: BetCounts, estimate: MarkovChain, confidence: float) -> PlausibleChains:
    """The same, from what bets need of all streams."""
    checks.proper_fraction("confidence", confidence)
    weights, failure = inverted(counts.channel), 1 - confidence
    low, high = _moves(counts, weights, (1 - STARTS) * failure)
    first_low, first_high = begin_bounds(
        counts.channel, counts.beginnings, weights, STARTS * failure, counts.alike
    )
    if np.any(low > high) or np.any(first_low > first_high):
        rule = "come from streams that follow one chain of order 1: no such chain is left"
        raise InvalidParameter("released", "another", rule)
    return PlausibleChains(estimate, low, high, first_low, first_high, confidence)


def pair_tables(outputs: FixedOutputs, weights: Floats, guide: MarkovChain | None) -> Floats:
    """How often each output followed each, by parity, value and level of the bet on it."""
    channel, symbols = outputs.channel, len(outputs.channel)
    tables = np.zeros((2, symbols, _LEVELS, channel.shape[1], channel.shape[1]))
    evenly = np.full(symbols, 1 / symbols)
    initial = evenly if guide is None else guide.initial.ravel()
    moves = np.repeat(evenly[None], symbols, axis=0) if guide is None else guide.transition()
    spread = weight_spread(channel, weights)
    starts, columns = outputs.starts, outputs.columns
    count_pairs(initial, np.array(moves), channel, starts, columns, spread, tables)
    return tables


def weight_spread(channel: Floats, weights: Floats) -> Floats:
    """Mean square of the weight of each value where it is the value, and where it is not."""
    squares = portable.dot(channel, weights * weights)
    own = np.diagonal(squares)
    others = (squares.sum(axis=0) - own) / max(len(channel) - 1, 1)
    return np.asarray(np.maximum(np.stack([own, others]), UNIT))


def _moves(counted: BetCounts, weights: Floats, failure: float) -> tuple[Floats, Floats]:
    symbols, tables = len(counted.channel), counted.tables
    bets, off = 4 * symbols**2, residual(counted.channel, weights, counted.alike)
    low, high = np.empty((symbols, symbols)), np.empty((symbols, symbols))
    for i in range(symbols):
        for j in range(symbols):
            ends = [
                _ends(*cells(tables[parity, i], weights[:, i], weights[:, j]), bets / failure, off)
                for parity in range(2)
            ]
            low[i, j], high[i, j] = max(e[0] for e in ends), min(e[1] for e in ends)
    return tightened(low, high) if np.all(low <= high) else (low, high)


def begin_bounds(
    channel: Floats, counts: Floats, weights: Floats, failure: float, alike: float
) -> tuple[Floats, Floats]:
    """Between which probabilities streams may begin with each value.

    Args:
        channel: The one channel that all outputs left through.
        counts: How often each output was the first of a stream.
        weights: Of the outputs.
        failure: Probability that the bounds miss the truth, at most; as the rates of bets are the
            same whenever one asks, that is of all times together.
        alike: What a probability of the channel of any step may be off, at most.
    """
    symbols, stakes, off = len(channel), np.ones_like(counts), residual(channel, weights, alike)
    ends = [
        _ends(counts, stakes, weights[:, i], 2 * symbols / failure, off) for i in range(symbols)
    ]
    low, high = np.array([e[0] for e in ends]), np.array([e[1] for e in ends])
    return tightened(low, high) if np.all(low <= high) else (low, high)


def cells(table: Floats, first: Floats, second: Floats) -> tuple[Floats, Floats, Floats]:
    """Counts of like outcomes of a bet, what was staked on each, and what it showed."""
    given, which = np.unique(first, return_inverse=True)
    shown, what = np.unique(second, return_inverse=True)
    counts = np.zeros((_LEVELS, given.size, shown.size))
    gather_cells(table, which.ravel(), what.ravel(), counts)
    levels = (np.arange(_LEVELS) + 0.5) / _LEVELS
    stakes = np.repeat(np.outer(levels, given).ravel(), shown.size)
    return counts.ravel(), stakes, np.tile(shown, _LEVELS * given.size)


def bet_rates(stakes: Floats, shown: Floats, number: int) -> Floats:
    """Parts of a capital that are put on a bet: none of them can lose all of it."""
    most = float(np.abs(stakes).max() * np.maximum(np.abs(shown), np.abs(shown - 1)).max())
    return np.asarray(0.75 / most / 2.0 ** np.arange(number), dtype=np.float64)


def rounding(number: float, off: float, rate: float) -> float:
    """What means that are off, and rounding, may have added to the logarithm of a capital."""
    return number * (4 * off * rate + 64 * UNIT)


def _ends(
    counts: Floats, stakes: Floats, shown: Floats, odds: float, off: float
) -> tuple[float, float]:
    """Between which values no bet ruled out that they are the mean; all bets share `1/odds`."""
    needed, number = portable.log(odds * _RATES), float(counts.sum())
    low, high = 0.0, 1.0
    for rate in bet_rates(stakes, shown, _RATES).tolist():
        # Means that are off by rounding, and rounding itself, must not make anybody rich.
        limit = needed + rounding(number, off, rate)
        low = max(low, ruled_out(counts, stakes, shown, rate, limit, 0.0))
        high = min(high, ruled_out(counts, -stakes, shown, rate, limit, 1.0))
    return low, high


def residual(channel: Floats, weights: Floats, alike: float = ALIKE) -> float:
    """How far the means of weights may be from what they stand for.

    Args:
        channel: Probability of each output for each value, as it is written down.
        weights: Of the outputs.
        alike: What each of these probabilities may really have been off.
    """
    off = np.abs(portable.dot(channel, weights) - np.eye(len(channel))).max()
    return float(off) + len(weights) * alike * float(np.abs(weights).max())
