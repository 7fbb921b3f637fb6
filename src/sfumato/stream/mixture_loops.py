"""Certificates of a mixed channel, from the integers that are sampled, four columns at a time.

Arrays with an entry for each column are read and written in fours: they must have room for that.
What stands behind the last column counts as a ratio of 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import IN_PLACE, njit
from sfumato.core.lane_vectors import (
    first_lane,
    floats_of,
    four,
    larger,
    largest,
    pairs,
    put,
    same,
    same_whole,
    sum_of,
    up_to,
    wholes,
    wholes_of,
)
from sfumato.core.numerics import UNIT
from sfumato.core.portable_loops import log, logs
from sfumato.solver.policy import LANES, PART_BITS, WHOLE

_PART = 2**PART_BITS


@njit(**IN_PLACE, forceinline=True)
def blend(out: Floats, total: float, width: int, blends: Ints, place: int) -> None:
    """Round an output marginal to integers that sum to `2**PART_BITS`."""
    first, none = place * blends.shape[1], same(0.0)
    sums, most = none, none
    for y in range(0, width, LANES):
        rounded = wholes_of(four(out, y) / same(total) + same(0.5))
        put(blends, first + y, rounded)
        # As floats: whole numbers of at most 2**PART_BITS, and their sums, are exact.
        owned = up_to(width - y, floats_of(rounded), none)
        sums, most = sums + owned, larger(most, owned)
    left, highest = _PART - np.int64(sum_of(sums)), largest(most)
    for y in range(0, width, LANES):
        at = first_lane(floats_of(wholes(blends, first + y)), highest)
        if at < LANES:
            blends[place, y + at] += left
            break


@njit(**IN_PLACE, forceinline=True)
def parts_of(mixed: float) -> int:
    """A mixing weight in parts of `WHOLE`, rounded up."""
    return min(WHOLE, int(mixed * WHOLE) + 1) if mixed > 0.0 else 0


@njit(**IN_PLACE)
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

    Beyond the arguments of `ratios`:
        mixed: The mixing weight to begin with.
        own: Its leakage whatever the model if it is not mixed.
        sip_allowed: What it may leak under the model.
        ldp_allowed: What it may leak whatever the model.
        error: How far rounding may have moved the belief.
        size: How many symbols there are.
    """
    used = parts_of(mixed)
    blend(out, total, nodes[c, 4], blends, place)
    while used < WHOLE:
        ratio, spread = ratios(nodes, extremes, c, out, total, used, blends, place)
        ldp = log_up(spread, 4 * UNIT) if used > 0 else own
        sip = charged(log_up(ratio, marginal_error(size)), ldp, error)
        if sip <= sip_allowed and ldp <= ldp_allowed:
            return used, sip, ldp
        used += 1 + used // 64
    return WHOLE, 0.0, 0.0


@njit(**IN_PLACE, forceinline=True)
def marginal_error(size: int) -> float:
    """How far off a ratio to an output marginal may be.

    The marginal is a sum over `size` masses of exact weights, divided by the sum of the belief,
    mixed with exact integers: right within `3 * size + 8` roundings.
    """
    return (3 * size + 16) * UNIT


@njit(**IN_PLACE, forceinline=True)
def charged(sip: float, ldp: float, error: float) -> float:
    """Leakage under the model for any belief that rounding may have hidden behind this one."""
    sip = min((sip + 2 * error) * (1 + 4 * UNIT), ldp)
    return sip


@njit(**IN_PLACE, forceinline=True)
def log_up(value: float, relative_error: float) -> float:
    """The same bound as `core.numerics.log_up`, for finite values of at least 1."""
    logarithm = log(value)
    bound = logarithm + 4 * UNIT * logarithm + relative_error * (1 + 4 * UNIT) + 2 * UNIT
    return bound * (1 + 4 * UNIT)


@njit(**IN_PLACE, forceinline=True)
def logs_up(value: Any, relative_error: float) -> Any:
    """The same for four of them."""
    logarithm, error = logs(value), same(relative_error * (1 + 4 * UNIT))
    bound = logarithm + same(4 * UNIT) * logarithm + error + same(2 * UNIT)
    return bound * same(1 + 4 * UNIT)


@njit(**IN_PLACE, forceinline=True)
def ratios(
    nodes: Ints,
    extremes: Floats,
    c: int,
    out: Floats,
    total: float,
    parts: int,
    blends: Ints,
    place: int,
) -> tuple[float, float]:
    """Largest ratio of a mixed channel to its output marginal, and of two weights in a column.

    The second is 1 if it is not mixed: then it is known.

    Args:
        nodes: Kept channels, as in `kept_channel_loops.py`.
        extremes: The largest and the least weight of each column.
        c: The channel.
        out: Its output marginal, in parts of the sum of the belief:
        total: that.
        parts: How much of it is its marginal, in parts of `WHOLE`.
        blends: The marginal in integers, and
        place: in which row they stand.
    """
    column, width = nodes[c, 2], nodes[c, 4]
    one, kept, mixed = same(1.0), same_whole(WHOLE - parts), same_whole(parts)
    found, spreads = one, one
    for y in range(0, width, LANES):
        highest, lowest = pairs(extremes, 2 * (column + y))
        mean = four(out, y) / same(total)
        if parts > 0:
            base = mixed * wholes(blends, place * blends.shape[1] + y)
            highest = floats_of(kept * wholes_of(highest) + base)
            lowest = floats_of(kept * wholes_of(lowest) + base)
            mean = same(np.float64(WHOLE - parts)) * mean + floats_of(base)
            spreads = larger(spreads, up_to(width - y, highest / lowest, one))
        found = larger(found, up_to(width - y, highest / mean, one))
        found = larger(found, up_to(width - y, mean / lowest, one))
    return largest(found), largest(spreads)
