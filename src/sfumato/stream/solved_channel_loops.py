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

from sfumato.core.arrays import Ints
from sfumato.core.compiled import IN_PLACE, njit
from sfumato.solver.solving_tables import HEADER, PACKED


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
def column_of_signal(words: Ints, symbol: int, signal: int) -> int:
    """The column that a signal names; -1 if there is none, or it releases another symbol."""
    fits = 0 <= signal < words[0] and words[HEADER + signal] == symbol
    return signal if fits else -1
