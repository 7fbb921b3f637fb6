r"""Channels that were solved at their step, as the stages of a step read them.

A policy of a large alphabet keeps no channels: the belief of the moment has its own. `solve_loops`
writes it to the words of its stream:

- two words: how many columns and how many rows it has;
- the symbol that each column releases;
- the rows, whose weights sum to $2^{62}$;
- the row of each symbol, eight symbols a word.

`Tables` of such a policy hold one node of -1 columns: how many rows, words and columns a channel
may have; `costs[0]`, the loss: row = output, column = true symbol; and `candidates`, the outputs
around each symbol. All else is empty.
"""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import IN_PLACE, njit
from sfumato.core.numerics import UNIT
from sfumato.solver.policy import WHOLE
from sfumato.solver.solving_tables import HEADER, PACKED
from sfumato.stream.kept_channel_loops import least_repair
from sfumato.stream.mixture_loops import log_up, mixed_within


@njit(**IN_PLACE, forceinline=True)
def are_solved(nodes: Ints) -> bool:
    """Whether the channels of these tables are solved at each step."""
    return bool(nodes[0, 2] < 0)


@njit(**IN_PLACE, forceinline=True)
def row_of_symbol(nodes: Ints, words: Ints, symbol: int) -> int:
    """The row that a symbol has in the channel that stands in some words."""
    first = HEADER + nodes[0, 4] * (nodes[0, 1] + 1)
    packed = words[first + symbol // PACKED]
    return int((packed >> (8 * (symbol % PACKED))) & 255)


@njit(**IN_PLACE, forceinline=True)
def weight_of(nodes: Ints, words: Ints, row: int, column: int) -> np.int64:
    """A weight of the channel that stands in some words."""
    return np.int64(words[HEADER + nodes[0, 4] * (row + 1) + column])


@njit(**IN_PLACE, forceinline=True)
def drawn_column(nodes: Ints, words: Ints, symbol: int, coin: np.int64) -> int:
    """The column that a coin of 62 bits draws for a true symbol."""
    row, reached = row_of_symbol(nodes, words, symbol), np.int64(0)
    for y in range(words[0]):
        reached += weight_of(nodes, words, row, y)
        if coin < reached:
            return y
    return int(words[0]) - 1


@njit(**IN_PLACE, forceinline=True)
def column_that_released(words: Ints, symbol: int) -> int:
    """The column that releases a symbol; -1 if none does."""
    for y in range(words[0]):
        if words[HEADER + y] == symbol:
            return y
    return -1


@njit(**IN_PLACE, forceinline=True)
def column_of_signal(words: Ints, signal: int) -> int:
    """The column that a signal names; -1 if there is none."""
    return signal if 0 <= signal < words[0] else -1


@njit(**IN_PLACE, forceinline=True)
def weigh_columns(
    weights: Ints,
    rows: int,
    width: int,
    mass: Floats,
    extremes: Floats,
    out: Floats,
    blends: Ints,
) -> tuple[float, bool]:
    """Find the extremes and the output marginal of a channel in integers.

    Args:
        weights: Integers that sum to `2**PART_BITS` in each row.
        rows: How many rows there are.
        width: How many columns.
        mass: Belief in the symbols of each row.
        extremes: Gets the largest and the least weight of each column.
        out: Gets the output marginal, in parts of the sum of the belief.
        blends: Gets the least weights: what a constant channel is mixed of.

    Returns:
        The largest ratio of two weights of a column; whether all rows are the same.
    """
    spread, constant = 1.0, True
    for y in range(width):
        highest = lowest = weights[0, y]
        out[y] = 0.0
        for row in range(rows):
            out[y] += mass[row] * np.float64(weights[row, y])
            highest, lowest = max(highest, weights[row, y]), min(lowest, weights[row, y])
        extremes[y, 0], extremes[y, 1] = highest, lowest
        spread = max(spread, extremes[y, 0] / extremes[y, 1])
        constant = constant and highest == lowest
        blends[0, y] = lowest
    return spread, constant


@njit(**IN_PLACE, forceinline=True)
def certify_solved(
    nodes: Ints,
    weights: Ints,
    rows: int,
    width: int,
    tells: bool,
    spread: float,
    own: Ints,
    extremes: Floats,
    out: Floats,
    total: float,
    within: float,
    apart: float,
    sip_allowed: float,
    ldp_allowed: float,
    error: float,
    blends: Ints,
    outputs: Ints,
    row_of: Ints,
    words: Ints,
) -> tuple[int, float, float]:
    """Mix a solved channel as far as its bound demands, certify it and write it to its words.

    Args beyond those of `weigh_columns` and `mixed_within`:
        nodes: How many rows, words and columns a channel may have.
        tells: Whether it may tell anything; else there is nothing to certify.
        spread: The largest ratio of two weights of a column.
        own: Room for the node of a channel.
        total: Sum of the belief.
        within: What ratios to the output marginal may be, less a margin for rounding.
        apart: What ratios of two weights of a column may be, likewise.
        outputs: The symbol that each column releases.
        row_of: The row of each symbol.
        words: Get the channel; its rows sum to `2**62`.

    Returns:
        Its mixing weight, and both certificates; the first is `WHOLE` if it tells nothing.
    """
    size = row_of.size
    used, sip, ldp = WHOLE, 0.0, 0.0
    if tells:
        own[0, 4] = width
        mixed = least_repair(own, extremes, 0, out, total, within, apart)
        used, sip, ldp = mixed_within(
            own,
            extremes,
            0,
            out,
            total,
            mixed,
            log_up(spread, 4 * UNIT),
            sip_allowed,
            ldp_allowed,
            error,
            blends,
            0,
            size,
        )
    words[0], words[1] = width, rows
    for y in range(width):
        words[HEADER + y] = outputs[y]
    for row in range(rows):
        for y in range(width):
            weight = (WHOLE - used) * weights[row, y] + used * blends[0, y]
            words[HEADER + nodes[0, 4] * (row + 1) + y] = weight
    first = HEADER + nodes[0, 4] * (nodes[0, 1] + 1)
    for x in range(0, size, PACKED):
        packed = np.int64(0)
        for i in range(min(PACKED, size - x)):
            packed |= row_of[x + i] << np.int64(8 * i)
        words[first + x // PACKED] = packed
    return used, sip, ldp
