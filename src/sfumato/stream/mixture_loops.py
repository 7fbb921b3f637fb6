"""Certificates of a mixed channel, from the integers that are sampled, four columns at a time.

Arrays with an entry for each column are read and written in fours: they must have room for that.
What stands behind the last column counts as a ratio of 1.
"""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import IN_PLACE, njit
from sfumato.core.lane_vectors import (
    floats_of,
    four,
    larger,
    largest,
    pairs,
    put,
    same,
    same_whole,
    up_to,
    wholes,
    wholes_of,
)
from sfumato.core.numerics import UNIT
from sfumato.core.portable_loops import log
from sfumato.solver.policy import LANES, PART_BITS, WHOLE

_PART = 2**PART_BITS


@njit(**IN_PLACE, forceinline=True)
def blend(out: Floats, total: float, width: int, blends: Ints, place: int) -> None:
    """Round an output marginal to integers that sum to `2**PART_BITS`."""
    first = place * blends.shape[1]
    for y in range(0, width, LANES):
        rounded = wholes_of(four(out, y) / same(total) + same(0.5))
        put(blends, first + y, rounded)
    left, most = _PART, 0
    for y in range(width):
        left -= blends[place, y]
        if blends[place, y] > blends[place, most]:
            most = y
    blends[place, most] += left


@njit(**IN_PLACE, forceinline=True)
def mixed_within(
    nodes: Ints,
    extremes: Floats,
    c: int,
    out: Floats,
    total: float,
    mixed: float,
    own: float,
    sip_allowed: float,
    ldp_allowed: float,
    error: float,
    blends: Ints,
    place: int,
    size: int,
) -> tuple[int, float, float]:
    """Mix a channel as far as its certificates demand, in parts of `WHOLE`; return both of them.

    Beyond the arguments of `certificates`:
        mixed: The mixing weight to begin with.
        sip_allowed: What it may leak under the model.
        ldp_allowed: What it may leak whatever the model.
        error: How far rounding may have moved the belief.
    """
    used = min(WHOLE, int(mixed * WHOLE) + 1) if mixed > 0.0 else 0
    if used > 0:
        blend(out, total, nodes[c, 4], blends, place)
    while used < WHOLE:
        sip, ldp = certificates(nodes, extremes, c, out, total, used, own, blends, place, size)
        sip = min((sip + 2 * error) * (1 + 4 * UNIT), ldp)
        if sip <= sip_allowed and ldp <= ldp_allowed:
            return used, sip, ldp
        if used == 0:
            blend(out, total, nodes[c, 4], blends, place)
        used += 1 + used // 64
    return WHOLE, 0.0, 0.0


@njit(**IN_PLACE, forceinline=True)
def log_up(value: float, relative_error: float) -> float:
    """The same bound as `core.numerics.log_up`, for finite values of at least 1."""
    logarithm = log(value)
    bound = logarithm + 4 * UNIT * logarithm + relative_error * (1 + 4 * UNIT) + 2 * UNIT
    return bound * (1 + 4 * UNIT)


@njit(**IN_PLACE, forceinline=True)
def certificates(
    nodes: Ints,
    extremes: Floats,
    c: int,
    out: Floats,
    total: float,
    parts: int,
    own: float,
    blends: Ints,
    place: int,
    size: int,
) -> tuple[float, float]:
    """Leakage of a mixed channel under the model, and whatever the model, both rounded up.

    The output marginal is a sum over `size` masses of exact weights, divided by the sum of the
    belief, mixed with exact integers: right within `3 * size + 8` roundings.

    Args:
        nodes: Kept channels, as in `kept_channel_loops.py`.
        extremes: The largest and the least weight of each column.
        c: The channel.
        out: Its output marginal, in parts of the sum of the belief:
        total: that.
        parts: How much of it is its marginal, in parts of `WHOLE`.
        own: Its leakage whatever the model if none is.
        blends: The marginal in integers, and
        place: in which row they stand.
        size: How many symbols there are.
    """
    column, width = nodes[c, 2], nodes[c, 4]
    one, kept, mixed = same(1.0), same_whole(WHOLE - parts), same_whole(parts)
    ratios, spreads = one, one
    for y in range(0, width, LANES):
        highest, lowest = pairs(extremes, 2 * (column + y))
        mean = four(out, y) / same(total)
        if parts > 0:
            base = mixed * wholes(blends, place * blends.shape[1] + y)
            highest = floats_of(kept * wholes_of(highest) + base)
            lowest = floats_of(kept * wholes_of(lowest) + base)
            mean = same(np.float64(WHOLE - parts)) * mean + floats_of(base)
            spreads = larger(spreads, up_to(width - y, highest / lowest, one))
        ratios = larger(ratios, up_to(width - y, highest / mean, one))
        ratios = larger(ratios, up_to(width - y, mean / lowest, one))
    sip = log_up(largest(ratios), (3 * size + 16) * UNIT)
    ldp = log_up(largest(spreads), 4 * UNIT) if parts > 0 else own
    return sip, ldp
