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

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import IN_PLACE, njit
from sfumato.core.lane_vectors import (
    above_zero,
    address,
    four,
    four_at,
    item,
    lane,
    larger,
    largest,
    pairs,
    put,
    same,
    smaller,
    smallest,
    up_to,
)
from sfumato.solver.loop_tables import SYMBOL_BITS
from sfumato.solver.policy import LANES

Shorts = NDArray[np.uint16]
_SYMBOL = 2**SYMBOL_BITS - 1
_UNITS = np.eye(LANES)
_FOUR_BYTES = 8 * LANES
CHAINS = 8
"""How many beliefs go down the tree side by side."""


@njit(**IN_PLACE, forceinline=True)
def output_marginal(
    nodes: Ints, row_of: Shorts, weights: Floats, c: int, belief: Floats, mass: Floats, out: Floats
) -> None:
    """Output marginal of channel `c`, in parts of `2**PART_BITS` times the sum of the belief."""
    first, rows, width, size = nodes[c, 0], nodes[c, 1], nodes[c, 3], belief.size
    mine = c * size
    # Symbols that share a row are gathered first, if there are enough of them to make it worth it.
    gathered = size > 4 * rows
    if width == LANES and (rows <= LANES or not gathered):
        put(out, 0, _narrow_marginal(row_of, weights, mine, first, rows, gathered, belief))
        return
    if gathered:
        for row in range(rows):
            mass[row] = 0.0
        for x in range(size):
            mass[row_of[c, x]] += belief[x]
    for block in range(width // LANES):
        sums, start = same(0.0), first + block * rows
        if gathered:
            for row in range(rows):
                sums += same(item(mass, row)) * four(weights, LANES * (start + row))
        else:
            for x in range(size):
                place = start + np.int64(item(row_of, mine + x))
                sums += same(item(belief, x)) * four(weights, LANES * place)
        put(out, LANES * block, sums)


@njit(**IN_PLACE, forceinline=True)
def _narrow_marginal(
    row_of: Shorts,
    weights: Floats,
    mine: int,
    first: int,
    rows: int,
    gathered: bool,
    belief: Floats,
) -> Any:
    """`output_marginal` of a channel of four columns, as most have, to the same bits.

    How many rows a channel has cannot be foreseen, and a processor that guesses wrong loses more
    than it takes to do both: symbols are summed to rows (by unit vectors) or at once to columns,
    by the same instructions, and sums of rows are taken on to columns whether or not they are any.
    """
    base = address(_UNITS, 0) if gathered else address(weights, LANES * first)
    sums, through = same(0.0), same(0.0)
    for x in range(belief.size):
        place = _FOUR_BYTES * np.int64(item(row_of, mine + x))
        sums += same(item(belief, x)) * four_at(base + place)
    for row in range(LANES):
        # Beyond the last row there is nothing: 0 times anything.
        last = LANES * (first + min(row, rows - 1))
        through += same(lane(sums, row)) * four(weights, last)
    return up_to(LANES if gathered else 0, through, sums)


@njit(**IN_PLACE, forceinline=True)
def least_repair(
    nodes: Ints, extremes: Floats, c: int, out: Floats, total: float, k: float, h: float
) -> float:
    """Least mixing weight that brings every ratio within `[1/k, k]`, and within `h` of another.

    `out` and `extremes` are read four columns at a time, and must have room for that.
    """
    column, width = nodes[c, 2], nodes[c, 4]
    one, sum_ = same(1.0), same(total)
    highest, lowest, weights = one, one, same(0.0)
    for y in range(0, width, LANES):
        inverse = sum_ / up_to(width - y, four(out, y), sum_)
        above, below = pairs(extremes, 2 * (column + y))
        most, least = up_to(width - y, above * inverse, one), up_to(width - y, below * inverse, one)
        highest, lowest = larger(highest, most), smaller(lowest, least)
        if h < math.inf:
            excess = up_to(width - y, most - same(h) * least, same(0.0))
            part = excess / (excess + same(h - 1))
            weights = larger(weights, above_zero(excess, part))
    weight: float = largest(weights)
    top, bottom = largest(highest), smallest(lowest)
    # Without asking whether they are needed: what is not is below 0, or no number.
    first, second = (top - k) / (top - 1), (1 / k - bottom) / (1 - bottom)
    weight = first if first > weight else weight
    return second if second > weight else weight


@njit(**IN_PLACE, forceinline=True)
def _branch(
    tree: Ints, thresholds: Floats, reached: Floats, first: int, total: float, node: int
) -> int:
    """Where a belief whose running sums begin at `first` goes from a node of the tree."""
    entry = item(tree, node)
    high = item(reached, first + (entry & _SYMBOL)) > item(thresholds, node) * total
    return int((entry >> SYMBOL_BITS) + np.int64(high))


@njit(**IN_PLACE, forceinline=True)
def leaves_of(
    tree: Ints, thresholds: Floats, reached: Floats, totals: Floats, first: int, found: Ints
) -> None:
    """The leaves that `CHAINS` beliefs fall into, given their running sums: side by side.

    Going down is a chain of loads, each of which waits for the one before: eight chains take
    little longer than one. Leaves lead to themselves.
    """
    size, sums = reached.shape[1], first * reached.shape[1]
    a, b, c, d, e, f, g, h = 0, 0, 0, 0, 0, 0, 0, 0
    moved = True
    while moved:
        i = _branch(tree, thresholds, reached, sums, item(totals, first), a)
        j = _branch(tree, thresholds, reached, sums + size, item(totals, first + 1), b)
        k = _branch(tree, thresholds, reached, sums + 2 * size, item(totals, first + 2), c)
        m = _branch(tree, thresholds, reached, sums + 3 * size, item(totals, first + 3), d)
        n = _branch(tree, thresholds, reached, sums + 4 * size, item(totals, first + 4), e)
        o = _branch(tree, thresholds, reached, sums + 5 * size, item(totals, first + 5), f)
        p = _branch(tree, thresholds, reached, sums + 6 * size, item(totals, first + 6), g)
        q = _branch(tree, thresholds, reached, sums + 7 * size, item(totals, first + 7), h)
        moved = ((a ^ i) | (b ^ j) | (c ^ k) | (d ^ m) | (e ^ n) | (f ^ o) | (g ^ p) | (h ^ q)) != 0
        a, b, c, d, e, f, g, h = i, j, k, m, n, o, p, q
    found[first], found[first + 1], found[first + 2], found[first + 3] = a, b, c, d
    found[first + 4], found[first + 5], found[first + 6], found[first + 7] = e, f, g, h


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
def price_all(
    nodes: Ints,
    row_of: Shorts,
    costs: Floats,
    weights: Floats,
    extremes: Floats,
    beliefs: Floats,
    k: float,
    h: float,
    prices: Floats,
) -> None:
    """Cost of every kept channel at every belief, repaired as far as that belief demands."""
    mass = np.empty(max(beliefs.shape[1], nodes[:, 1].max()))
    out = np.empty(nodes[:, 3].max())
    for place in range(len(beliefs)):
        belief = beliefs[place]
        for c in range(len(nodes)):
            output_marginal(nodes, row_of, weights, c, belief, mass, out)
            weight = least_repair(nodes, extremes, c, out, 1.0, k, h)
            prices[place, c] = sum(repaired_costs(costs, c, belief, weight))
