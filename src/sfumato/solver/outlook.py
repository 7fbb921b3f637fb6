"""What a far-sighted step looks at: states, the symbol each shows, and how they move on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """A step as tables. Its states are what the belief of the moment is about.

    Attributes:
        symbols: The symbol, or whole batch, that each state shows: what the channel acts on.
        moves: Row = state, column = what vectors are about: the next value, or the last few.
        losses: Row = true symbol, column = released one.
        opens: Row = what vectors are about, column = state; None where both are the same.
    """

    symbols: Ints
    moves: Floats
    losses: Floats
    opens: Floats | None = None


def of_values(transition: Floats, losses: Floats, order: int, axis: int) -> Outlook:
    """Values one by one: states are contexts, the oldest value most significant.

    Args:
        transition: Row = context, column = next value.
        losses: Row = true symbol, column = released one.
        order: Values of a context.
        axis: Which of them is current; until the last one is, nothing moves.

    Examples:
        >>> second = np.array([[0.9, 0.1], [0.3, 0.7], [0.6, 0.4], [0.2, 0.8]])
        >>> of_values(second, 1 - np.eye(2), 2, 1).moves[1]
        array([0. , 0. , 0.3, 0.7])
    """
    contexts, size = transition.shape
    states = np.arange(contexts)
    symbols = states // size ** (order - 1 - axis) % size
    if axis < order - 1:
        return Outlook(symbols, checks.read_only(np.eye(contexts)), losses)
    if order == 1:
        return Outlook(symbols, transition, losses)
    moves = np.zeros((contexts, contexts))
    later = (states * size % contexts)[:, None] + np.arange(size)
    moves[states[:, None], later] = transition
    return Outlook(symbols, checks.read_only(moves), losses)


def of_batches(transition: Floats, losses: Floats, length: int) -> Outlook:
    """Batches of a chain of order 1: every batch is a state, its first value most significant.

    Examples:
        >>> of_batches(np.array([[0.9, 0.1], [0.2, 0.8]]), 1 - np.eye(4), 2).opens
        array([[0.9, 0.1, 0. , 0. ],
               [0. , 0. , 0.2, 0.8]])
    """
    size = len(transition)
    chances = np.eye(size)
    for _ in range(length - 1):
        last = np.arange(chances.shape[1]) % size
        chances = (chances[:, :, None] * transition[last]).reshape(size, -1)
    batches = np.arange(size**length)
    return Outlook(batches, checks.read_only(transition[batches % size]), losses, chances)
