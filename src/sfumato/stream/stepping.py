r"""Loops of a compiled release: choose a kept channel, certify it, draw, and inform the belief.

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

`advance` is the one entry from Python. Its arguments are flat, since a tuple of arrays takes
microseconds to unpack at each call, and are put together inside, where a tuple costs nothing.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit
from sfumato.solver.policy import LANES, PART_BITS, WHOLE, Tables

Shorts = NDArray[np.uint16]
Words = NDArray[np.uint64]
Streams = tuple[int, Floats, Ints, Floats]
"""Order of the chain; joint, moment and drift of every stream."""
Ready = tuple[Ints, Ints, Ints, Ints, Floats, Ints, Ints, Ints]
"""Row by row: stream, channel, mixing weight, the integers it is mixed with, both certificates,
status, drawn column, released symbol."""
Work = tuple[Floats, Floats, Floats, Floats]
"""Room for a belief, for masses of rows, for an output marginal and for running sums."""

BITS = 62
"""Weights of a channel sum to 2**BITS in every row, as everywhere else."""
PREPARED, EXHAUSTED, MISSED = 0, 1, 2
PREPARE, DRAW, INFORM, ALONE = 1, 2, 4, 8
"""Stages of a step: choose channels, draw columns, inform beliefs; `ALONE` is all of them for the
one stream of a live release."""
_PART = 2**PART_BITS
_LEAST, _MOST = 1e-200, 1e200
_UNIT = 2.0**-53


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def marginal(joints: Floats, stream: int, stride: int, belief: Floats, reached: Floats) -> float:
    """Sum a joint to the distribution of the value whose axis has `stride`; return the sum of it.

    A sum of `size**(order - 1)` terms for each symbol. `reached` gets the running sums.
    """
    size, contexts = belief.size, joints.shape[1]
    if contexts == size:
        for x in range(size):
            belief[x] = joints[stream, x]
    else:
        for x in range(size):
            belief[x] = 0.0
        for context in range(contexts):
            belief[(context // stride) % size] += joints[stream, context]
    total = 0.0
    for x in range(size):
        total += belief[x]
        reached[x] = total
    return total


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _outputs(
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


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _repair(
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


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _leaf(splits: Ints, thresholds: Floats, reached: Floats, total: float) -> int:
    """The leaf that a belief with these running sums falls into."""
    place = 0
    while splits[place, 0] >= 0:
        high = reached[splits[place, 0]] > thresholds[place] * total
        place = splits[place, 1] + np.int64(high)
    return place


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
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


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _costs(costs: Floats, c: int, belief: Floats, weight: float) -> tuple[float, float]:
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
            _outputs(nodes, row_of, weights, c, belief, mass, out)
            weight = _repair(nodes, extremes, c, out, 1.0, k, h)
            prices[place, c] = sum(_costs(costs, c, belief, weight))


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _blend(out: Floats, total: float, width: int, blends: Ints, place: int) -> None:
    """Round an output marginal to integers that sum to `2**PART_BITS`."""
    left, largest = _PART, 0
    for y in range(width):
        blends[place, y] = np.int64(out[y] / total + 0.5)
        left -= blends[place, y]
        if blends[place, y] > blends[place, largest]:
            largest = y
    blends[place, largest] += left


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _log_up(value: float, relative_error: float) -> float:
    """The same bound as `_numerics.log_up`, for finite values of at least 1."""
    logarithm = math.log(value)
    bound = logarithm + 4 * _UNIT * logarithm + relative_error * (1 + 4 * _UNIT) + 2 * _UNIT
    return bound * (1 + 4 * _UNIT)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _certify(
    nodes: Ints,
    extremes: Floats,
    c: int,
    out: Floats,
    total: float,
    parts: int,
    blends: Ints,
    place: int,
    size: int,
) -> tuple[float, float]:
    r"""Both certificates of the mixed channel, from its integers, rounded up.

    The output marginal is a sum over `size` masses of exact weights, divided by the sum of the
    belief, mixed with exact integers: right within `3 * size + 8` roundings.
    """
    column, width = nodes[c, 2], nodes[c, 4]
    ratio, spread = 1.0, 1.0
    for y in range(width):
        most, least = extremes[column + y, 0], extremes[column + y, 1]
        highest, lowest, mean = most, least, out[y] / total
        if parts > 0:
            base = parts * blends[place, y]
            highest = np.float64((WHOLE - parts) * np.int64(most) + base)
            lowest = np.float64((WHOLE - parts) * np.int64(least) + base)
            mean = (WHOLE - parts) * mean + np.float64(base)
        ratio = max(ratio, highest / mean, mean / lowest)
        spread = max(spread, highest / lowest)
    return _log_up(ratio, (3 * size + 16) * _UNIT), _log_up(spread, 4 * _UNIT)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _prepare(
    tables: Tables,
    repair_limit: float,
    streams: Streams,
    allowed: Floats,
    ready: Ready,
    work: Work,
) -> None:
    """Choose, repair and certify the channel of the next step of each stream."""
    # Taken out of their tuples once: inside the loop that would count references each time.
    nodes, local, row_of, costs, weights, _, extremes, splits, thresholds, candidates = tables
    order, joints, moments, drifts = streams
    which, chosen, parts, blends, charges, status, _, _ = ready
    belief, mass, out, reached = work
    size = belief.size
    known, k, cap, h = -1.0, 1.0, -1.0, 1.0
    for place in range(which.size):
        stream = which[place]
        chosen[place], parts[place], status[place] = -1, 0, EXHAUSTED
        charges[place, 0], charges[place, 1] = 0.0, 0.0
        error = drifts[stream] + (joints.shape[1] // size - 1) * _UNIT
        # What the belief's own rounding and the certificate's take of the bound.
        margin = 4 * error + (16 * size + 256) * _UNIT
        if allowed[place, 0] <= 4 * margin or allowed[place, 1] <= 4 * margin:
            continue
        if allowed[place, 0] != known:
            known = allowed[place, 0]
            k = math.exp(known)
        if allowed[place, 1] != cap:
            cap = allowed[place, 1]
            h = math.exp(cap)
        stride = 1 if order == 1 else size ** max(0, order - 1 - moments[stream])
        total = marginal(joints, stream, stride, belief, reached)
        if not _LEAST < total < _MOST:
            # No distribution: whoever asked must find out why.
            status[place] = MISSED
            continue
        # Of the channels worth trying, the one that is cheapest once it is repaired.
        leaf = _leaf(splits, thresholds, reached, total)
        c, tried, mixed, added, cheapest = -1, -1, 1.0, math.inf, math.inf
        for candidate in range(splits[leaf, 1], splits[leaf, 2]):
            tried = candidates[candidate]
            _outputs(nodes, row_of, weights, tried, belief, mass, out)
            weight = _repair(nodes, extremes, tried, out, total, k * (1 - margin), h * (1 - margin))
            plain, rise = _costs(costs, tried, belief, weight)
            if plain + rise < cheapest:
                c, mixed, cheapest = tried, weight, plain + rise
                added = rise / plain if rise > 0.0 else 0.0
        if c != tried:
            _outputs(nodes, row_of, weights, c, belief, mass, out)
        chosen[place] = c
        if added > repair_limit:
            status[place] = MISSED
            continue
        status[place] = PREPARED
        if nodes[c, 1] == 1:
            continue
        used = min(WHOLE, int(mixed * WHOLE) + 1) if mixed > 0.0 else 0
        if used > 0:
            _blend(out, total, nodes[c, 4], blends, place)
        while used < WHOLE:
            sip, ldp = _certify(nodes, extremes, c, out, total, used, blends, place, size)
            if used == 0:
                ldp = local[c]
            sip = min((sip + 2 * error) * (1 + 4 * _UNIT), ldp)
            if sip <= allowed[place, 0] and ldp <= allowed[place, 1]:
                charges[place, 0], charges[place, 1] = sip, ldp
                break
            if used == 0:
                _blend(out, total, nodes[c, 4], blends, place)
            used += 1 + used // 64
        parts[place] = min(used, WHOLE)


@njit(cache=True, nogil=True, error_model="numpy")
def draw(tables: Tables, ready: Ready, symbols: Ints, words: Words) -> None:
    """Draw a column of each prepared channel, one word each, exactly by its integers.

    Args:
        tables: Kept channels.
        ready: What was prepared; its columns are the result, counted within the channel.
        symbols: The true symbols.
        words: Coins: the upper 62 bits of each count.
    """
    nodes, row_of, weights = tables[0], tables[2], tables[4]
    _, chosen, parts, blends, _, _, drawn, _ = ready
    for place in range(symbols.size):
        c, mixed = chosen[place], parts[place]
        first, rows = nodes[c, 0] + row_of[c, symbols[place]], nodes[c, 1]
        coin = np.int64(words[place] >> np.uint64(64 - BITS))
        reached = np.int64(0)
        for y in range(nodes[c, 4]):
            weight = weights[first + (y // LANES) * rows, y % LANES]
            reached += (WHOLE - mixed) * np.int64(weight)
            if mixed > 0:
                reached += mixed * blends[place, y]
            if coin < reached:
                drawn[place] = y
                break


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _inform(tables: Tables, streams: Streams, ready: Ready, mass: Floats) -> None:
    """Condition the joint of each stream on its drawn column; the scale is left to the next step.

    One conversion and one product for each entry. `released` gets the symbols of the columns.
    """
    nodes, row_of, weights, outputs = tables[0], tables[2], tables[4], tables[5]
    order, joints, moments, drifts = streams
    which, chosen, parts, blends, _, _, drawn, released = ready
    size = row_of.shape[1]
    for place in range(which.size):
        stream, c, mixed, y = which[place], chosen[place], parts[place], drawn[place]
        rows, lane = nodes[c, 1], y % LANES
        first = nodes[c, 0] + (y // LANES) * rows
        released[place] = outputs[nodes[c, 2] + y]
        if rows == 1 or mixed == WHOLE:
            continue
        base = mixed * blends[place, y] if mixed > 0 else np.int64(0)
        for row in range(rows):
            whole = (WHOLE - mixed) * np.int64(weights[first + row, lane]) + base
            mass[row] = np.float64(whole) * 2.0**-BITS
        if order == 1:
            for x in range(size):
                joints[stream, x] *= mass[row_of[c, x]]
        else:
            stride = size ** max(0, order - 1 - moments[stream])
            for context in range(joints.shape[1]):
                joints[stream, context] *= mass[row_of[c, (context // stride) % size]]
        drifts[stream] += 4 * _UNIT


@njit(cache=True, nogil=True, error_model="numpy")
def advance(
    stages: int,
    nodes: Ints,
    local: Floats,
    row_of: Shorts,
    costs: Floats,
    weights: Floats,
    outputs: Ints,
    extremes: Floats,
    splits: Ints,
    thresholds: Floats,
    candidates: Ints,
    repair_limit: float,
    order: int,
    joints: Floats,
    moments: Ints,
    drifts: Floats,
    which: Ints,
    chosen: Ints,
    parts: Ints,
    blends: Ints,
    charges: Floats,
    status: Ints,
    columns: Ints,
    released: Ints,
    belief: Floats,
    mass: Floats,
    marginals: Floats,
    reached: Floats,
    backup: Floats,
    torn: Ints,
    allowed: Floats,
    symbols: Ints,
    words: Words,
) -> int:
    """Take some stages of a step; all of them for a stream alone, whose symbol is returned, or -1.

    Before a stream alone is changed its joint, moment and drift are copied to `backup` and
    `torn[0]` becomes 1: whoever called sets it back to 0 when all that belongs to the step is done.

    Beyond `Tables`, `Streams`, `Ready` and `Work`:
        stages: Which of `PREPARE`, `DRAW` and `INFORM` to take, added up; or `ALONE`.
        repair_limit: By what part of its cost mixing may make a kept channel dearer.
        allowed: What the step of each may leak: under the model, and whatever the model.
        symbols: The true symbols.
        words: Coins.
    """
    tables = (
        nodes,
        local,
        row_of,
        costs,
        weights,
        outputs,
        extremes,
        splits,
        thresholds,
        candidates,
    )
    streams = (order, joints, moments, drifts)
    ready = (which, chosen, parts, blends, charges, status, columns, released)
    alone = stages == ALONE
    if alone or stages & PREPARE:
        work = (belief, mass, marginals, reached)
        _prepare(tables, repair_limit, streams, allowed, ready, work)
    if alone:
        if status[0] != PREPARED:
            return -1
        contexts = joints.shape[1]
        for context in range(contexts):
            backup[context] = joints[0, context]
        backup[contexts], backup[contexts + 1] = np.float64(moments[0]), drifts[0]
        torn[0] = 1
    if alone or stages & DRAW:
        draw(tables, ready, symbols, words)
    if alone or stages & INFORM:
        _inform(tables, streams, ready, mass)
    return int(released[0]) if alone else -1
