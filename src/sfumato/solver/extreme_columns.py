r"""Extreme columns out of an interior solution, from which column generation ends quickly.

An interior-point method comes near the optimum in a dozen steps but not to it; the simplex
method would end there but loses its way. The coupling of each output is a mixture of extreme
columns (high on a mass of $1/(k+1)$, low elsewhere, one symbol between), and peeling them off
one by one yields about as many as a basis has.
"""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit

# Outputs and remainders of less mass than this are left to pricing.
_RARE = 1e-6
# Columns taken at most, for each output on average; a basis has about one.
_MOST = 3


@njit(cache=True, error_model="numpy")
def pieces(belief: Floats, coupling: Floats, share: float) -> tuple[Floats, Ints]:
    """Take the coupling of every output apart.

    Args:
        belief: Probability of each true symbol.
        coupling: The interior solution `g`, row = true symbol, column = output.
        share: `1/(k+1)`.

    Returns:
        Ratios, one column each, and their outputs.
    """
    size, outputs = coupling.shape
    most = _MOST * outputs
    ratios, names, count = np.empty((size, most)), np.empty(most, dtype=np.int64), 0
    left, order, piece = np.empty(size), np.empty(size, dtype=np.int64), np.empty(size)
    for y in range(outputs):
        marginal = 0.0
        for x in range(size):
            marginal += belief[x] * coupling[x, y]
            order[x] = x
        if marginal < _RARE:
            continue
        for x in range(size):
            left[x] = coupling[x, y] * share / marginal
        rest = 1.0
        while rest * marginal > _RARE and count < most:
            rest -= _peel(belief, left, rest, share, order, piece)
            _ratios(piece, share, ratios[:, count])
            names[count] = y
            count += 1
    return np.ascontiguousarray(ratios[:, :count]), names[:count].copy()


@njit(cache=True, error_model="numpy")
def _peel(
    belief: Floats, left: Floats, rest: float, share: float, order: Ints, piece: Floats
) -> float:
    """Take the largest multiple of the extreme point that is high where `left` is."""
    for i in range(1, order.size):
        moving = order[i]
        j = i - 1
        while j >= 0 and left[order[j]] < left[moving]:
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = moving
    room = share
    part = rest
    for i in range(order.size):
        x = order[i]
        piece[x] = min(1.0, room / belief[x])
        room = max(0.0, room - belief[x])
        if piece[x] > 0.0:
            part = min(part, left[x] / piece[x])
        if piece[x] < 1.0:
            part = min(part, (rest - left[x]) / (1 - piece[x]))
    part = max(part, 0.0)
    for x in range(order.size):
        left[x] = max(0.0, left[x] - part * piece[x])
    # Rounding may leave nothing to take; then what is left is of no use either.
    return part if part > _RARE * rest else rest


@njit(cache=True, error_model="numpy")
def _ratios(piece: Floats, share: float, ratios: Floats) -> None:
    k = 1 / share - 1
    for x in range(piece.size):
        ratios[x] = 1 / k + (k - 1 / k) * piece[x]
