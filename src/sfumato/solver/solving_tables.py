"""Tables of a policy that keeps no channels: its small program, solved at each step.

`sfumato.stream.solved_channel_loops` says what they hold and how a solved channel is written down,
`sfumato.stream.sighted_solve_loops` what those of far-sighted ones hold.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.loss import Loss

if TYPE_CHECKING:
    from sfumato.solver.policy import Tables

# A channel that is solved at its step is written to words: two of its own, the outputs, the rows,
# and the row of each symbol, so many symbols a word. It has no more rows than this.
HEADER, PACKED, SOLVED_ROWS = 2, 8, 40
NEAR = 9
"""How many outputs around one it may move to: itself and, on a grid, the eight cells around it."""
_LANES = 4
EXCHANGED = 8
"""Symbols up to which far-sighted steps are solved by exchanges of columns: beyond, these are too
many, and an interior-point method on few outputs takes a third of the time or less."""


class PolicyKind(StrEnum):
    """Where the channels of a policy come from.

    Attributes:
        KEPT: Solved when it was compiled, for beliefs that are alike, and mended at each step.
        SOLVED: A small program at each step, for the belief of the moment; far-sighted ones with
            the outputs that were best at beliefs like it.
    """

    KEPT = "kept"
    SOLVED = "solved"


def _words(size: int, outputs: int, rows: int = SOLVED_ROWS) -> int:
    return HEADER + outputs * (rows + 1) - (-size // PACKED)


def solving_tables(loss: Loss, outputs: int) -> Tables:
    """Tables of a policy that keeps no channels, but solves each with so many outputs at most.

    Args:
        loss: What it costs to release one symbol when another is true; at most 2,048 symbols.
        outputs: The most columns that a channel may have.
    """
    size = len(loss)
    words = _words(size, outputs)
    # Stable: of outputs that cost the same the first ones are the same on every machine.
    near = np.argsort(loss.matrix, axis=1, kind="stable")[:, np.arange(NEAR) % size]
    return (
        np.array([[0, SOLVED_ROWS, -1, words, outputs]]),
        np.zeros(0),
        np.zeros((0, size), np.uint16),
        # Laid out as those of a policy that keeps channels: each layout is compiled for itself.
        np.ascontiguousarray(loss.matrix.T)[None],
        np.zeros((0, _LANES)),
        np.zeros(0, np.int64),
        np.zeros((0, 2)),
        # A tree that leads to no channel: loops that know kept ones alone find each belief missed.
        np.array([[-1, 0, 0]]),
        np.zeros(1),
        near.ravel(),
    )


def sighted_solving_tables(
    costs: Floats,
    symbols: Ints,
    splits: Ints,
    thresholds: Floats,
    candidates: Ints,
    orders: NDArray[np.uint16],
) -> Tables:
    """Tables of a far-sighted policy that keeps no channels, but the outputs worth trying.

    Args:
        costs: Row = output, a symbol with what follows it; column = true symbol.
        symbols: The symbol of each output.
        splits: A tree over beliefs, whose leaves lead to ranges of `candidates`, by
        thresholds: of sums of beliefs.
        candidates: Outputs, and after those of a leaf the columns to begin with, as many as there
            are symbols: their places among those outputs.
        orders: Symbols in the order in which the column of each entry is high on them.
    """
    size = costs.shape[1]
    return (
        np.array([_sighted_node(size, splits)]),
        np.zeros(0),
        orders,
        costs[None],
        np.zeros((0, _LANES)),
        # Laid out as those that are read from a file: loops are compiled for a layout.
        np.ascontiguousarray(symbols),
        np.zeros((0, 2)),
        splits,
        thresholds,
        candidates,
    )


def _sighted_node(size: int, splits: Ints) -> list[int]:
    """The node of tables whose channels have a row for each symbol, and no more columns."""
    leaves = splits[splits[:, 0] < 0]
    outputs = min(size, int((leaves[:, 2] - leaves[:, 1]).max()))
    return [0, size, -1, _words(size, outputs, size), outputs]


def solved_symbols(words: Ints) -> Ints:
    """What the columns of the channel in the words of a step release."""
    return words[HEADER : HEADER + int(words[0])].copy()


def solved_rows(tables: Tables, words: Ints) -> tuple[Ints, Ints]:
    """The channel in the words of a step: weights, a row for each symbol, and its outputs."""
    (_, most, _, _, outputs), size = tables[0][0], tables[2].shape[1]
    width, count = int(words[0]), int(words[1])
    first = HEADER + outputs * (most + 1)
    rows = words[HEADER + outputs : first].reshape(most, outputs)[:count, :width]
    packed = words[first : first - (-size // PACKED)]
    row_of = (packed[:, None] >> (8 * np.arange(PACKED))) & 255
    return rows[row_of.ravel()[:size]], solved_symbols(words)


def are_solving(tables: Tables) -> bool:
    """Whether these are tables of a policy that solves at each step."""
    nodes = tables[0]
    return nodes.ndim == 2 and nodes.shape == (1, 5) and int(nodes[0, 2]) == -1


def check_sighted_solving(tables: Tables) -> None:
    """Refuse tables from which the loops could not solve far-sighted steps.

    The tree is checked by `Policy`, as every other one.
    """
    nodes, _, orders, costs, _, outputs, _, splits, _, candidates = tables
    size, pairs = orders.shape[-1], outputs.size
    entries = (candidates.size, size)
    due = [(1, 5), (0,), entries, (1, pairs, size), (0, _LANES), (pairs,), (0, 2)]
    leaves = splits[splits[:, 0] < 0]
    laid_out = (
        [array.shape for array in tables[:7]] == due
        and pairs > 0
        and 2 <= size < 2**PACKED
        and nodes[0].tolist() == _sighted_node(size, splits)
        and bool(np.isfinite(costs).all())
        and bool(((outputs >= 0) & (outputs < size)).all())
        and bool((np.sort(orders, axis=1) == np.arange(size)).all())
        and bool((leaves[:, 2] + size <= candidates.size).all())
        and all(
            bool((candidates[end : end + size] < end - begin).all()) for _, begin, end in leaves
        )
    )
    if not laid_out:
        raise InvalidParameter("policy.tables", "another layout", "be those of a compiled policy")


def check_solving(tables: Tables) -> None:
    """Refuse tables from which the loops could not solve."""
    nodes, _, row_of, losses, *_, splits, _, near = tables
    shapes = [array.shape for array in tables]
    size, outputs = row_of.shape[-1], int(nodes[0, -1])
    words = _words(size, outputs)
    due = [(1, 5), (0,), (0, size), (1, size, size), (0, _LANES), (0,), (0, 2), (1, 3), (1,)]
    laid_out = (
        shapes == [*due, (size * NEAR,)]
        and 1 < outputs <= SOLVED_ROWS
        and nodes[0].tolist() == [0, SOLVED_ROWS, -1, words, outputs]
        and splits.tolist() == [[-1, 0, 0]]
        and bool(np.isfinite(losses).all() and (losses >= 0).all())
        and bool(((near >= 0) & (near < size)).all())
    )
    if not laid_out:
        raise InvalidParameter("policy.tables", "another layout", "be those of a compiled policy")
