r"""Arithmetic of kept channels: output marginals, repair by mixing, certificates in integers.

A kept channel has integer weights that sum to $2^{40}$ a row. Under another belief than its own it
may leak too much; mixing it with its own output marginal repairs that:

$$w(y|x) = (2^{22} - T)\,w_0(y|x) + T\,q(y)$$

where $w_0$ is the kept channel, $q$ its marginal under the belief, rounded to integers that sum
to $2^{40}$, and $T$ the least part of $2^{22}$ that restores the bound. The rows of $w$ sum to
$2^{62}$ exactly: nothing is rounded after the certificate.

Tables of kept channels (`Tables` in `sfumato.solver.policy`, in this order):

- `nodes[c]`: where its weights begin, how many different rows it has, where its columns begin, how
  many it has, padding included, and how many without;
- `local[c]`: its model-free leakage;
- `row_of[c, x]`: which of its rows belongs to symbol x;
- `costs[c, 0, x]`: its expected loss when x is true; `costs[c, 1, x]`: that of its output marginal;
- `weights`: the different rows of every channel, as floats that hold integers: four columns of all
  its rows, then the next four;
- `outputs[j]`: the symbol that column j releases;
- `extremes[j]`: the largest and the least weight in column j;
- `splits[i]`, `thresholds[i]`: a tree over beliefs: a symbol and two branches, the first for
  beliefs whose mass up to that symbol is at most the threshold, the second right after it; or -1
  and a range of
- `candidates`: the channels worth trying at a leaf.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import IN_PLACE, njit
from sfumato.core.numerics import UNIT
from sfumato.core.portable_loops import log
from sfumato.solver.policy import LANES, PART_BITS, WHOLE, Tables

Shorts = NDArray[np.uint16]
_PART = 2**PART_BITS


@njit(**IN_PLACE, forceinline=True)
def output_marginal(
    nodes: Ints, row_of: Shorts, weights: Floats, c: int, belief: Floats, mass: Floats, out: Floats
) -> None:
    """Output marginal of channel `c`, in parts of `2**PART_BITS` times the sum of the belief."""
    first, rows, width = nodes[c, 0], nodes[c, 1], nodes[c, 3]
    # Symbols that share a row are gathered first, if there are enough of them to make it worth it.
    gathered = belief.size > 4 * rows
    if gathered:
        for row in range(rows):
            mass[row] = 0.0
        for x in range(belief.size):
            mass[row_of[c, x]] += belief[x]
    for block in range(width // LANES):
        # Four sums side by side, which the compiler keeps in one register.
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        start = first + block * rows
        if gathered:
            for row in range(rows):
                held, place = mass[row], start + row
                s0 += held * weights[place, 0]
                s1 += held * weights[place, 1]
                s2 += held * weights[place, 2]
                s3 += held * weights[place, 3]
        else:
            for x in range(belief.size):
                held, place = belief[x], start + np.int64(row_of[c, x])
                s0 += held * weights[place, 0]
                s1 += held * weights[place, 1]
                s2 += held * weights[place, 2]
                s3 += held * weights[place, 3]
        out[block * LANES] = s0
        out[block * LANES + 1] = s1
        out[block * LANES + 2] = s2
        out[block * LANES + 3] = s3


@njit(**IN_PLACE, forceinline=True)
def least_repair(
    nodes: Ints, extremes: Floats, c: int, out: Floats, total: float, k: float, h: float
) -> float:
    """Least mixing weight that brings every ratio within `[1/k, k]`, and within `h` of another."""
    column, width = nodes[c, 2], nodes[c, 4]
    highest, lowest, weight = 1.0, 1.0, 0.0
    for y in range(width):
        inverse = total / out[y]
        most, least = extremes[column + y, 0] * inverse, extremes[column + y, 1] * inverse
        highest = max(highest, most)
        lowest = min(lowest, least)
        excess = most - h * least
        if excess > 0.0:
            weight = max(weight, excess / (excess + (h - 1)))
    if highest > k:
        weight = max(weight, (highest - k) / (highest - 1))
    if lowest < 1 / k:
        weight = max(weight, (1 / k - lowest) / (1 - lowest))
    return weight


@njit(**IN_PLACE, forceinline=True)
def leaf_of(splits: Ints, thresholds: Floats, reached: Floats, total: float) -> int:
    """The leaf that a belief with these running sums falls into."""
    place = 0
    while splits[place, 0] >= 0:
        high = reached[splits[place, 0]] > thresholds[place] * total
        place = splits[place, 1] + np.int64(high)
    return place


@njit(**IN_PLACE, forceinline=True)
def quick_leaf(
    symbols: Ints, branches: Ints, thresholds: Floats, reached: Floats, total: float
) -> int:
    """The same from columns of the tree that lie apart, in half the time."""
    # Unsigned places: a signed one might count from the end, which is asked at every level.
    place = np.uint64(0)
    symbol = symbols[place]
    while symbol >= 0:
        high = reached[np.uint64(symbol)] > thresholds[place] * total
        place = np.uint64(branches[place]) + np.uint64(high)
        symbol = symbols[place]
    return int(place)


@njit(**IN_PLACE, forceinline=True)
def _mean(costs: Floats, c: int, kind: int, belief: Floats) -> float:
    """Mean cost of a kind under a belief, in four sums side by side."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    whole = belief.size - belief.size % 4
    for x in range(0, whole, 4):
        s0 += belief[x] * costs[c, kind, x]
        s1 += belief[x + 1] * costs[c, kind, x + 1]
        s2 += belief[x + 2] * costs[c, kind, x + 2]
        s3 += belief[x + 3] * costs[c, kind, x + 3]
    for x in range(whole, belief.size):
        s0 += belief[x] * costs[c, kind, x]
    return (s0 + s1) + (s2 + s3)


@njit(**IN_PLACE, forceinline=True)
def repaired_costs(costs: Floats, c: int, belief: Floats, weight: float) -> tuple[float, float]:
    """Cost of a kept channel without mixing, and what a mixing weight adds to it."""
    plain, blind = _mean(costs, c, 0, belief), _mean(costs, c, 1, belief)
    return plain, max(0.0, weight * (blind - plain))


@njit(cache=True, nogil=True, error_model="numpy")
def price_all(tables: Tables, beliefs: Floats, k: float, h: float, prices: Floats) -> None:
    """Cost of every kept channel at every belief, repaired as far as that belief demands."""
    nodes, _, row_of, costs, weights, _, extremes, _, _, _ = tables
    mass = np.empty(max(beliefs.shape[1], nodes[:, 1].max()))
    out = np.empty(nodes[:, 3].max())
    for place in range(len(beliefs)):
        belief = beliefs[place]
        for c in range(len(nodes)):
            output_marginal(nodes, row_of, weights, c, belief, mass, out)
            weight = least_repair(nodes, extremes, c, out, 1.0, k, h)
            prices[place, c] = sum(repaired_costs(costs, c, belief, weight))


@njit(**IN_PLACE, forceinline=True)
def blend(out: Floats, total: float, width: int, blends: Ints, place: int) -> None:
    """Round an output marginal to integers that sum to `2**PART_BITS`."""
    left, largest = _PART, 0
    for y in range(width):
        blends[place, y] = np.int64(out[y] / total + 0.5)
        left -= blends[place, y]
        if blends[place, y] > blends[place, largest]:
            largest = y
    blends[place, largest] += left


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

    Beyond the arguments of `certify`:
        mixed: The mixing weight to begin with.
        own: Leakage whatever the model of the channel unmixed.
        sip_allowed: What it may leak under the model.
        ldp_allowed: What it may leak whatever the model.
        error: How far rounding may have moved the belief.
    """
    used = min(WHOLE, int(mixed * WHOLE) + 1) if mixed > 0.0 else 0
    if used > 0:
        blend(out, total, nodes[c, 4], blends, place)
    while used < WHOLE:
        sip = certify(nodes, extremes, c, out, total, used, blends, place, size)
        ldp = certify_local(nodes, extremes, c, used, blends, place) if used > 0 else own
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
def certify(
    nodes: Ints,
    extremes: Floats,
    c: int,
    out: Floats,
    total: float,
    parts: int,
    blends: Ints,
    place: int,
    size: int,
) -> float:
    r"""Leakage of the mixed channel under the model, from its integers, rounded up.

    The output marginal is a sum over `size` masses of exact weights, divided by the sum of the
    belief, mixed with exact integers: right within `3 * size + 8` roundings.
    """
    column, width = nodes[c, 2], nodes[c, 4]
    ratio = 1.0
    for y in range(width):
        most, least = extremes[column + y, 0], extremes[column + y, 1]
        highest, lowest, mean = most, least, out[y] / total
        if parts > 0:
            base = parts * blends[place, y]
            highest = np.float64((WHOLE - parts) * np.int64(most) + base)
            lowest = np.float64((WHOLE - parts) * np.int64(least) + base)
            mean = (WHOLE - parts) * mean + np.float64(base)
        ratio = max(ratio, highest / mean, mean / lowest)
    return log_up(ratio, (3 * size + 16) * UNIT)


@njit(**IN_PLACE, forceinline=True)
def certify_local(
    nodes: Ints, extremes: Floats, c: int, parts: int, blends: Ints, place: int
) -> float:
    """Leakage of the mixed channel whatever the model, from its integers, rounded up."""
    column, spread = nodes[c, 2], 1.0
    for y in range(nodes[c, 4]):
        base = parts * blends[place, y] if parts > 0 else np.int64(0)
        highest = np.float64((WHOLE - parts) * np.int64(extremes[column + y, 0]) + base)
        lowest = np.float64((WHOLE - parts) * np.int64(extremes[column + y, 1]) + base)
        spread = max(spread, highest / lowest)
    return log_up(spread, 4 * UNIT)
