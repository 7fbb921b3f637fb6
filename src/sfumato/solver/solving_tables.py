"""Tables of a policy that keeps no channels: its small program, solved at each step.

`sfumato.stream.solved_channel_loops` says what they hold and how a solved channel is written down.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from sfumato.core.arrays import Ints
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


class PolicyKind(StrEnum):
    """Where the channels of a policy come from.

    Attributes:
        KEPT: Solved when it was compiled, for beliefs that are alike, and mended at each step.
        SOLVED: A small program at each step, for the belief of the moment.
    """

    KEPT = "kept"
    SOLVED = "solved"


def _words(size: int, outputs: int) -> int:
    return HEADER + outputs * (SOLVED_ROWS + 1) - (-size // PACKED)


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
        loss.matrix.T[None],
        np.zeros((0, _LANES)),
        np.zeros(0, np.int64),
        np.zeros((0, 2)),
        # A tree that leads to no channel: loops that know kept ones alone find each belief missed.
        np.array([[-1, 0, 0]]),
        np.zeros(1),
        near.ravel(),
    )


def solved_rows(tables: Tables, words: Ints) -> tuple[Ints, Ints]:
    """The channel in the words of a step: weights, a row for each symbol, and its outputs."""
    (_, most, _, _, outputs), size = tables[0][0], tables[2].shape[1]
    width, count = int(words[0]), int(words[1])
    first = HEADER + outputs * (most + 1)
    rows = words[HEADER + outputs : first].reshape(most, outputs)[:count, :width]
    packed = words[first : first - (-size // PACKED)]
    row_of = (packed[:, None] >> (8 * np.arange(PACKED))) & 255
    return rows[row_of.ravel()[:size]], words[HEADER : HEADER + width].copy()


def are_solving(tables: Tables) -> bool:
    """Whether these are tables of a policy that solves at each step."""
    nodes = tables[0]
    return nodes.ndim == 2 and nodes.shape == (1, 5) and int(nodes[0, 2]) == -1


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
