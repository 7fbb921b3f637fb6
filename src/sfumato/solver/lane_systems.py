"""Symmetric systems of few unknowns inside of compiled loops, four numbers at a time.

A row has room for a multiple of four numbers, and what is beyond its unknowns is 0. Sums run in a
fixed order, without BLAS.
"""

from __future__ import annotations

import math
from typing import Any

from sfumato.core.arrays import Floats
from sfumato.core.compiled import IN_PLACE, njit
from sfumato.core.lane_vectors import four, item, lane, put, same

LANES = 4
# A pivot lost to rounding: its unknown stays where it is.
_LOST = 1e300


@njit(**IN_PLACE, forceinline=True)
def added(lanes: Any) -> float:
    """The sum of four numbers, in a fixed order."""
    return (lane(lanes, 0) + lane(lanes, 1)) + (lane(lanes, 2) + lane(lanes, 3))  # type: ignore[no-any-return]


@njit(**IN_PLACE)
def factor(system: Floats, size: int, over: Floats) -> None:
    """Cholesky's method in the upper triangle, in place; one over its diagonal."""
    padded = system.shape[1]
    for j in range(size):
        if not system[j, j] > 0.0:
            system[j, j] = _LOST
        scale = same(1 / math.sqrt(system[j, j]))
        # Whole vectors: what they change left of the diagonal is never read.
        for c in range(j & -LANES, padded, LANES):
            put(system, j * padded + c, scale * four(system, j * padded + c))
        over[j] = 1 / system[j, j]
        for i in range(j + 1, size):
            factor = same(item(system, j * padded + i))
            for c in range(i & -LANES, padded, LANES):
                left = factor * four(system, j * padded + c)
                put(system, i * padded + c, four(system, i * padded + c) - left)


@njit(**IN_PLACE)
def solve(system: Floats, size: int, over: Floats, right: Floats) -> None:
    """Solve a factored system in place; what `right` has beyond its unknowns must be 0."""
    padded = system.shape[1]
    for i in range(size):
        right[i] *= over[i]
        ahead = (i & -LANES) + LANES
        for c in range(i + 1, min(ahead, size)):
            right[c] -= right[i] * item(system, i * padded + c)
        found = same(right[i])
        for c in range(ahead, padded, LANES):
            put(right, c, four(right, c) - found * four(system, i * padded + c))
    for i in range(size - 1, -1, -1):
        ahead, later = (i & -LANES) + LANES, same(0.0)
        for c in range(ahead, padded, LANES):
            later += four(right, c) * four(system, i * padded + c)
        right[i] -= added(later)
        for c in range(i + 1, min(ahead, size)):
            right[i] -= right[c] * item(system, i * padded + c)
        right[i] *= over[i]
