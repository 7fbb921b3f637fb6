"""What far-sighted channels cost at other beliefs than their own: this step and all that follow.

Everything is known but for one constant, which all channels share.
"""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit
from sfumato.solver.far_sighted import channels_of
from sfumato.solver.sight_loops import best_vector, channel_leakage
from sfumato.solver.value_function import ValueFunction

Sight = tuple[Floats, Floats, Floats, Floats, Floats, float, float]
"""Chain, loss, vectors, their channels and the extremes of those, the leakage up to which they
count, the price of a nat."""


def sight_arrays(value: ValueFunction) -> Sight:
    """What the loops read of a value function."""
    limit = value.trust * value.epsilon
    tables = (value.transition, value.losses, value.vectors, *channels_of(value))
    return (*tables, limit, value.price)


@njit(cache=True, nogil=True, error_model="numpy")
def column_costs(belief: Floats, rows: Floats, symbols: Ints, sight: Sight) -> Floats:
    """What each column costs when each symbol is true, by the vector that is believed after it.

    Args:
        belief: Where the channel is used; its sum does not matter.
        rows: The channel.
        symbols: The symbol that each column releases.
        sight: The value function.

    Returns:
        A table in the shape of the channel.
    """
    transition, losses, vectors, likelihoods, extremes, limit, _ = sight
    size = belief.size
    costs, following = np.empty(rows.shape), np.empty(size)
    for y in range(symbols.size):
        following[:] = 0.0
        for x in range(size):
            for u in range(size):
                following[u] += belief[x] * rows[x, y] * transition[x, u]
        following /= following.sum()
        if likelihoods.shape[1] == 0:
            # Two symbols: the piece of the line over the cell of an even grid.
            ahead = min(int(following[1] * len(vectors)), len(vectors) - 1)
        else:
            ahead = best_vector(following, vectors, likelihoods, extremes, limit)[0]
        for x in range(size):
            after = losses[x, symbols[y]]
            for u in range(size):
                after += transition[x, u] * vectors[ahead, u]
            costs[x, y] = after
    return costs


@njit(cache=True, nogil=True, error_model="numpy")
def channel_cost(belief: Floats, rows: Floats, symbols: Ints, sight: Sight) -> float:
    """What a channel costs under a belief, the price of its leakage included."""
    costs = column_costs(belief, rows, symbols, sight)
    total, whole = 0.0, 0.0
    for x in range(belief.size):
        whole += belief[x]
        for y in range(symbols.size):
            total += belief[x] * rows[x, y] * costs[x, y]
    if sight[6] > 0.0:
        total += whole * sight[6] * channel_leakage(rows, belief / whole)
    return float(total / whole)
