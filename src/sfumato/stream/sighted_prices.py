"""What far-sighted channels cost at other beliefs than their own: this step and all that follow.

Everything is known but for one constant, which all channels share.
"""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit
from sfumato.solver.far_sighted import channels_of
from sfumato.solver.policy import LANES, PART_BITS, Tables
from sfumato.solver.sight_loops import best_vector, channel_leakage
from sfumato.solver.value_function import ValueFunction
from sfumato.stream.kept_channel_loops import least_repair, output_marginal

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


@njit(cache=True, nogil=True, error_model="numpy")
def sighted_prices(tables: Tables, beliefs: Floats, k: float, h: float, sight: Sight) -> Floats:
    """What each kept channel costs at each belief, repaired as far as that belief demands."""
    nodes, _, row_of, _, weights, outputs, extremes, _, _, _ = tables
    size = beliefs.shape[1]
    mass, out = np.empty(max(size, nodes[:, 1].max())), np.empty(nodes[:, 3].max())
    prices = np.empty((len(beliefs), len(nodes)))
    for c in range(len(nodes)):
        first, count, column, width = nodes[c, 0], nodes[c, 1], nodes[c, 2], nodes[c, 4]
        symbols, mixed = outputs[column : column + width], np.empty((size, width))
        for row in range(len(beliefs)):
            belief = beliefs[row]
            output_marginal(nodes, row_of, weights, c, belief, mass, out)
            part = least_repair(nodes, extremes, c, out, 1.0, k, h)
            for x in range(size):
                for y in range(width):
                    at = first + (y // LANES) * count + row_of[c, x]
                    whole = (1 - part) * weights[at, y % LANES] + part * out[y]
                    mixed[x, y] = whole * 2.0**-PART_BITS
            prices[row, c] = channel_cost(belief, mixed, symbols, sight)
    return prices
