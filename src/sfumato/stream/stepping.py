r"""Loops of a compiled release: choose a kept channel, certify it, draw, and inform the belief.

A kept channel has integer weights that sum to $2^{40}$ a row. Under another belief than its own it
may leak too much; mixing it with its own output marginal repairs that:

$$w(y|x) = (2^{22} - T)\,w_0(y|x) + T\,q(y)$$

where $w_0$ is the kept channel, $q$ its marginal under the belief, rounded to integers that sum
to $2^{40}$, and $T$ the least part of $2^{22}$ that restores the bound. The rows of $w$ sum to
$2^{62}$ exactly: nothing is rounded after the certificate.

Tables of kept channels (the arguments that every loop begins with):

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

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit

Shorts = NDArray[np.uint16]

BITS = 62
"""Weights of a channel sum to 2**BITS in every row, as everywhere else."""
PART_BITS = 40
"""Weights of a kept channel sum to 2**PART_BITS in every row."""
WHOLE = 2 ** (BITS - PART_BITS)
"""Mixing weights are counted in parts of this."""
LANES = 4
"""Columns are padded with empty ones to a multiple of this."""
PREPARED, EXHAUSTED, MISSED = 0, 1, 2
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
    nodes: Ints, row_of: Shorts, weights: Floats, c: int, belief: Floats, mass: Floats, told: Floats
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
        told[block * LANES] = s0
        told[block * LANES + 1] = s1
        told[block * LANES + 2] = s2
        told[block * LANES + 3] = s3


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _repair(
    nodes: Ints, extremes: Floats, c: int, told: Floats, total: float, k: float, h: float
) -> float:
    """Least mixing weight that brings every ratio within `[1/k, k]`, and within `h` of another."""
    column, width = nodes[c, 2], nodes[c, 4]
    highest, lowest, weight = 1.0, 1.0, 0.0
    for y in range(width):
        inverse = total / told[y]
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
def _price(
    nodes: Ints,
    row_of: Shorts,
    costs: Floats,
    weights: Floats,
    extremes: Floats,
    c: int,
    belief: Floats,
    total: float,
    k: float,
    h: float,
    mass: Floats,
    told: Floats,
) -> tuple[float, float, float]:
    """Mixing weight that channel `c` needs, its cost without mixing, and what mixing adds to it.

    `told` is left holding its output marginal.
    """
    _outputs(nodes, row_of, weights, c, belief, mass, told)
    weight = _repair(nodes, extremes, c, told, total, k, h)
    plain, blind = _mean(costs, c, 0, belief), _mean(costs, c, 1, belief)
    return weight, plain, max(0.0, weight * (blind - plain))


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _choose(
    nodes: Ints,
    row_of: Shorts,
    costs: Floats,
    weights: Floats,
    extremes: Floats,
    splits: Ints,
    thresholds: Floats,
    candidates: Ints,
    belief: Floats,
    total: float,
    k: float,
    h: float,
    mass: Floats,
    told: Floats,
    reached: Floats,
) -> tuple[int, float, float]:
    """The channel to use, its mixing weight, and the part of its cost that mixing adds.

    `told` is left holding its output marginal.
    """
    leaf = _leaf(splits, thresholds, reached, total)
    best, tried, mixed, added, cheapest = -1, -1, 1.0, math.inf, math.inf
    for place in range(splits[leaf, 1], splits[leaf, 2]):
        tried = candidates[place]
        weight, plain, rise = _price(
            nodes, row_of, costs, weights, extremes, tried, belief, total, k, h, mass, told
        )
        if plain + rise < cheapest:
            best, mixed, cheapest = tried, weight, plain + rise
            added = rise / plain if rise > 0.0 else 0.0
    if best != tried:
        _outputs(nodes, row_of, weights, best, belief, mass, told)
    return best, mixed, added


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
    told = np.empty(nodes[:, 3].max())
    mass = np.empty(max(beliefs.shape[1], nodes[:, 1].max()))
    for place in range(len(beliefs)):
        belief = beliefs[place]
        for c in range(len(nodes)):
            _, plain, rise = _price(
                nodes, row_of, costs, weights, extremes, c, belief, 1.0, k, h, mass, told
            )
            prices[place, c] = plain + rise


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _blend(told: Floats, total: float, width: int, blends: Ints, place: int) -> None:
    """Round an output marginal to integers that sum to `2**PART_BITS`."""
    left, largest = _PART, 0
    for y in range(width):
        blends[place, y] = np.int64(told[y] / total + 0.5)
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
    told: Floats,
    total: float,
    size: int,
    parts: int,
    blends: Ints,
    place: int,
) -> tuple[float, float]:
    r"""Both certificates of the mixed channel, from its integers, rounded up.

    The output marginal is a sum over `size` masses of exact weights, divided by the sum of the
    belief, mixed with exact integers: right within `3 * size + 8` roundings.
    """
    column, width = nodes[c, 2], nodes[c, 4]
    ratio, spread = 1.0, 1.0
    for y in range(width):
        most, least = extremes[column + y, 0], extremes[column + y, 1]
        highest, lowest, mean = most, least, told[y] / total
        if parts > 0:
            base = parts * blends[place, y]
            highest = np.float64((WHOLE - parts) * np.int64(most) + base)
            lowest = np.float64((WHOLE - parts) * np.int64(least) + base)
            mean = (WHOLE - parts) * mean + np.float64(base)
        ratio = max(ratio, highest / mean, mean / lowest)
        spread = max(spread, highest / lowest)
    return _log_up(ratio, (3 * size + 16) * _UNIT), _log_up(spread, 4 * _UNIT)


@njit(cache=True, nogil=True, error_model="numpy")
def prepare(
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
    allowed: Floats,
    which: Ints,
    chosen: Ints,
    parts: Ints,
    blends: Ints,
    charges: Floats,
    status: Ints,
    belief: Floats,
    mass: Floats,
    told: Floats,
    reached: Floats,
) -> None:
    """Choose, repair and certify the channel of the next step of each stream in `which`.

    Beyond the tables:
        repair_limit: By what part of its cost mixing may make a kept channel dearer.
        order: Of the chain: how many values a joint is about.
        joints: Belief of each stream; read only.
        moments: Number of the next value of each stream.
        drifts: Bound on the rounding error of each joint, as a log ratio.
        allowed: What the step of each may leak: under the model, and whatever the model.
        which: The streams to prepare.
        chosen, parts, blends, charges, status: Results, one row per entry of `which`: the
            channel, its mixing weight, the integers it is mixed with, both certificates, and
            whether it may be used.
    """
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
        c, weight, added = _choose(
            nodes,
            row_of,
            costs,
            weights,
            extremes,
            splits,
            thresholds,
            candidates,
            belief,
            total,
            k * (1 - margin),
            h * (1 - margin),
            mass,
            told,
            reached,
        )
        chosen[place] = c
        if added > repair_limit:
            status[place] = MISSED
            continue
        status[place] = PREPARED
        if nodes[c, 1] == 1:
            continue
        used = min(WHOLE, np.int64(weight * WHOLE) + 1) if weight > 0.0 else 0
        if used > 0:
            _blend(told, total, nodes[c, 4], blends, place)
        while used < WHOLE:
            sip, ldp = _certify(nodes, extremes, c, told, total, size, used, blends, place)
            if used == 0:
                ldp = local[c]
            sip = min((sip + 2 * error) * (1 + 4 * _UNIT), ldp)
            if sip <= allowed[place, 0] and ldp <= allowed[place, 1]:
                charges[place, 0], charges[place, 1] = sip, ldp
                break
            if used == 0:
                _blend(told, total, nodes[c, 4], blends, place)
            used += 1 + used // 64
        parts[place] = min(used, WHOLE)


@njit(cache=True, nogil=True, error_model="numpy")
def draw(
    nodes: Ints,
    row_of: Shorts,
    weights: Floats,
    symbols: Ints,
    words: NDArray[np.uint64],
    chosen: Ints,
    parts: Ints,
    blends: Ints,
    drawn: Ints,
) -> None:
    """Draw a column of each prepared channel, one word each, exactly by its integers.

    Beyond the tables:
        symbols: The true symbols.
        words: Coins: the upper 62 bits of each count.
        chosen, parts, blends: What `prepare` found.
        drawn: Result: the column, counted within the channel.
    """
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


@njit(cache=True, nogil=True, error_model="numpy")
def inform(
    nodes: Ints,
    row_of: Shorts,
    weights: Floats,
    outputs: Ints,
    order: int,
    joints: Floats,
    moments: Ints,
    drifts: Floats,
    which: Ints,
    chosen: Ints,
    parts: Ints,
    blends: Ints,
    drawn: Ints,
    released: Ints,
    mass: Floats,
) -> None:
    """Condition the joint of each stream on its drawn column; the scale is left to the next step.

    One conversion and one product for each entry. `released` gets the symbols of the columns.
    """
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
def release_one(
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
    allowed: Floats,
    which: Ints,
    chosen: Ints,
    parts: Ints,
    blends: Ints,
    charges: Floats,
    status: Ints,
    belief: Floats,
    mass: Floats,
    told: Floats,
    reached: Floats,
    symbols: Ints,
    words: NDArray[np.uint64],
    drawn: Ints,
    released: Ints,
    backup: Floats,
    torn: Ints,
) -> int:
    """Prepare, draw and inform in one call; the released symbol, or -1 if nothing was prepared.

    Before the first stream is changed its joint, moment and drift are copied to `backup` and
    `torn[0]` becomes 1: whoever called sets it back to 0 when all that belongs to the step is done.
    """
    prepare(
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
        repair_limit,
        order,
        joints,
        moments,
        drifts,
        allowed,
        which,
        chosen,
        parts,
        blends,
        charges,
        status,
        belief,
        mass,
        told,
        reached,
    )
    if status[0] != PREPARED:
        return -1
    contexts = joints.shape[1]
    for context in range(contexts):
        backup[context] = joints[0, context]
    backup[contexts], backup[contexts + 1] = np.float64(moments[0]), drifts[0]
    torn[0] = 1
    draw(nodes, row_of, weights, symbols, words, chosen, parts, blends, drawn)
    inform(
        nodes,
        row_of,
        weights,
        outputs,
        order,
        joints,
        moments,
        drifts,
        which,
        chosen,
        parts,
        blends,
        drawn,
        released,
        mass,
    )
    return int(released[0])
