"""Loops of bets on blocks of outputs: what blocks showed of each move, and what that rules out."""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit

_HALVINGS = 30
"""Halvings of an interval: ends are found to 1e-9, outward."""


@njit(cache=True, nogil=True, error_model="numpy")
def add_blocks(
    initial: Floats,
    moves: Floats,
    channel: Floats,
    weights: Floats,
    starts: Ints,
    skipped: Ints,
    columns: Ints,
    spread: Floats,
    lengths: Ints,
    sums: Floats,
) -> tuple[int, int]:
    """Add up what the blocks of some streams showed.

    Args:
        initial: Distribution of first values under the chain that guides bets.
        moves: Its transitions.
        channel: Probability of each output for each value.
        weights: Of the outputs, whose mean is the value: row = output, column = value.
        starts: Where the outputs of each stream begin, and the end.
        skipped: How many outputs of each stream count for what is believed alone.
        columns: The outputs.
        spread: Mean square of the weight of each value where it is the value, and where not.
        lengths: Moves of a block, at most, from few to many; it has one output more.
        sums: Gets, for each length and pair of values, the sums of A, B, A^2, AB and B^2 over
            blocks, where A and B are the sums of w g_i g_j and w g_i over the moves of a block.

    Returns:
        How many blocks of the first length there are, and moves in those of the last.
    """
    symbols = initial.size
    belief, moved, stake = np.empty(symbols), np.empty(symbols), np.empty(symbols)
    kinds = lengths.size
    shown, staked = np.zeros((kinds, symbols, symbols)), np.zeros((kinds, symbols))
    within = np.zeros(kinds, np.int64)
    blocks, counted = 0, 0
    for stream in range(starts.size - 1):
        belief[:] = initial
        first, last = starts[stream] + skipped[stream], starts[stream + 1] - 1
        for place in range(starts[stream], last):
            y, following = columns[place], columns[place + 1]
            total = 0.0
            for value in range(symbols):
                # What is told by this output and the next decides no stake: only earlier ones do.
                p = belief[value]
                own = p * spread[0, value]
                stake[value] = own / (own + (1 - p) * spread[1, value])
                belief[value] = p * channel[value, y]
                total += belief[value]
            moved[:] = 0.0
            for value in range(symbols):
                held = belief[value] / total
                for after in range(symbols):
                    moved[after] += held * moves[value, after]
            belief[:] = moved
            if place < first:
                continue
            for kind in range(kinds):
                if within[kind] < lengths[kind]:
                    counted += kind == kinds - 1
                    for i in range(symbols):
                        put = stake[i] * weights[y, i]
                        staked[kind, i] += put
                        for j in range(symbols):
                            shown[kind, i, j] += put * weights[following, j]
                within[kind] += 1
                # The next block shares no output with this one: the move between is left out.
                if within[kind] > lengths[kind] or place == last - 1:
                    blocks += kind == 0
                    within[kind] = 0
                    _close(shown[kind], staked[kind], sums[kind])
    return blocks, counted


@njit(cache=True, nogil=True, error_model="numpy")
def _close(shown: Floats, staked: Floats, sums: Floats) -> None:
    """Add a block to the sums, and begin the next one."""
    for i in range(staked.size):
        b = staked[i]
        for j in range(staked.size):
            a = shown[i, j]
            sums[i, j, 0] += a
            sums[i, j, 1] += b
            sums[i, j, 2] += a * a
            sums[i, j, 3] += a * b
            sums[i, j, 4] += b * b
            shown[i, j] = 0.0
        staked[i] = 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def log_capital(sums: Floats, side: float, rate: float, cost: float, value: float) -> float:
    """Log of what a bettor has at least who put `rate` on a mean above `value` (side 1), or below.

    Args:
        sums: Of A, B, A^2, AB and B^2 over blocks.
        side: 1 or -1.
        rate: What is put on each unit that a block shows.
        cost: What the square of a unit costs.
        value: The probability that is bet against.
    """
    won = sums[0] - value * sums[1]
    squares = sums[2] - 2 * value * sums[3] + value * value * sums[4]
    return float(side * rate * won - cost * squares)


@njit(cache=True, nogil=True, error_model="numpy")
def ruled_out_by_blocks(
    sums: Floats, side: float, which: Ints, rates: Floats, costs: Floats, limits: Floats
) -> float:
    """How far values are ruled out: from 0 on by bets on more (side 1), from 1 down on less (-1).

    The log of a capital is concave in the value, so what one bet rules out is an interval. Where no
    value is left, the end lies beyond [0, 1].

    Args:
        sums: Of A, B, A^2, AB and B^2 over blocks of each length.
        side: 1 or -1.
        which: The length of the blocks of each bet.
        rates: What each puts on a unit that a block shows.
        costs: What the square of a unit costs it.
        limits: The log of a capital at which a value is ruled out.
    """
    end = 0.0 if side > 0 else 1.0
    other = 1.0 - end
    out = end
    for place in range(rates.size):
        own, rate, cost = sums[which[place]], rates[place], costs[place]
        if not log_capital(own, side, rate, cost, out) >= limits[place]:
            continue
        near, far = out, other
        if log_capital(own, side, rate, cost, far) >= limits[place]:
            return other + side  # nothing is left: an end beyond the other one
        for _ in range(_HALVINGS):
            middle = 0.5 * (near + far)
            if log_capital(own, side, rate, cost, middle) >= limits[place]:
                near = middle
            else:
                far = middle
        out = near
    return out
