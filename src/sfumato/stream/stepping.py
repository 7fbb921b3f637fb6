"""The stages of a compiled release: choose and certify a channel, draw, inform the belief.

What a kept channel is, and how it is repaired, stands in `kept_channel_loops.py`. The stages are
called from Python one after the other, and by `run_loops.py` for all of a step. Arguments are flat,
since a tuple of arrays takes microseconds to unpack at each call.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import IN_PLACE, njit
from sfumato.core.lane_vectors import (
    four,
    item,
    lane,
    put,
    same_whole,
    wholes,
    wholes_of,
)
from sfumato.core.numerics import UNIT
from sfumato.core.portable_loops import exp
from sfumato.solver.policy import LANES, WHOLE, Tables
from sfumato.solver.solving_tables import HEADER
from sfumato.stream.kept_channel_loops import (
    CHAINS,
    Shorts,
    least_repair,
    leaves_of,
    output_marginal,
    repaired_costs,
)
from sfumato.stream.mixture_loops import (
    blend,
    charged,
    logs_up,
    marginal_error,
    mixed_within,
    parts_of,
    ratios,
)
from sfumato.stream.solved_channel_loops import (
    are_solved,
    drawn_column,
    row_of_symbol,
    weight_of,
)

Words = NDArray[np.uint64]
Ready = tuple[Ints, Ints, Ints, Ints, Floats, Ints, Ints, Ints]
"""Row by row: stream, channel, mixing weight, the integers it is mixed with, both certificates,
status, drawn column, released symbol."""

BITS = 62
"""Weights of a channel sum to 2**BITS in every row, as everywhere else."""
PREPARED, EXHAUSTED, MISSED = 0, 1, 2
SIDE_BY_SIDE = 16
"""How many streams are prepared at once: what one waits for, another one computes meanwhile."""
_LEAST, _MOST = 1e-200, 1e200
"""What a sum of beliefs may be that was not divided by its total for a while."""


@njit(**IN_PLACE, forceinline=True)
def marginal(joints: Floats, stream: int, stride: int, belief: Floats, reached: Floats) -> float:
    """Sum a joint to the distribution of the value whose axis has `stride`; return the sum of it.

    A sum of `size**(order - 1)` terms for each symbol. `reached` gets the running sums.
    """
    size, contexts = belief.size, joints.shape[1]
    total = 0.0
    if contexts == size:
        first = stream * size
        for x in range(size):
            here = item(joints, first + x)
            total += here
            belief[x], reached[x] = here, total
    else:
        for x in range(size):
            belief[x] = 0.0
        for context in range(contexts):
            belief[(context // stride) % size] += joints[stream, context]
        for x in range(size):
            total += belief[x]
            reached[x] = total
    return total


@njit(**IN_PLACE, forceinline=True)
def margin_of(error: float, size: int) -> float:
    """What the rounding of a belief, and of a certificate, takes of the bound."""
    return 4 * error + (16 * size + 256) * UNIT


@njit(**IN_PLACE, forceinline=True)
def is_mass(total: float) -> bool:
    """Whether a sum is that of a distribution, up to a factor; if not, somebody must ask why."""
    return _LEAST < total < _MOST


@njit(**IN_PLACE, forceinline=True)
def _cheapest(
    nodes: Ints,
    row_of: Shorts,
    costs: Floats,
    weights: Floats,
    extremes: Floats,
    candidates: Ints,
    rises: Floats,
    begin: int,
    end: int,
    repair_limit: float,
    scale: float,
    total: float,
    within: float,
    apart: float,
    belief: Floats,
    mass: Floats,
    out: Floats,
) -> tuple[int, float]:
    """Of the channels worth trying, the one that is cheapest once it is repaired; its weight.

    -1 if that is too dear, or if there is none.

    Args beyond those of `prepare`:
        begin: The first of the candidates: those of a leaf, which
        end: ends there.
        total: Sum of the belief.
        within: What ratios to the output marginal may be, less a margin for rounding.
        apart: What ratios of two weights of a column may be, likewise.
        out: The output marginal of the first candidate; that of the channel as a result.
    """
    c, tried, mixed, added, cheapest = -1, -1, 1.0, math.inf, math.inf
    for candidate in range(begin, end):
        tried = candidates[candidate]
        if candidate > begin:
            output_marginal(nodes, row_of, weights, tried, belief, mass, out)
        weight = least_repair(nodes, extremes, tried, out, total, within, apart)
        if end - begin == 1 and (weight == 0.0 or weight * rises[tried] <= repair_limit):
            # Nothing to compare it with, and not too dear: what it costs does not matter.
            return tried, weight
        plain, rise = repaired_costs(costs, tried, belief, weight)
        if plain + rise < cheapest:
            c, mixed, cheapest = tried, weight, plain + rise
            part_of = scale * total if scale > 0.0 else plain
            added = rise / part_of if rise > 0.0 else 0.0
    if added > repair_limit:
        return -1, mixed
    if c != tried:
        output_marginal(nodes, row_of, weights, c, belief, mass, out)
    return c, mixed


@njit(**IN_PLACE)
def prepare(
    nodes: Ints,
    local: Floats,
    row_of: Shorts,
    costs: Floats,
    weights: Floats,
    extremes: Floats,
    splits: Ints,
    tree: Ints,
    thresholds: Floats,
    candidates: Ints,
    rises: Floats,
    repair_limit: float,
    scale: float,
    order: int,
    joints: Floats,
    moments: Ints,
    drifts: Floats,
    count: int,
    which: Ints,
    chosen: Ints,
    parts: Ints,
    blends: Ints,
    charges: Floats,
    status: Ints,
    allowed: Floats,
    beliefs: Floats,
    reached: Floats,
    figures: Floats,
    leaves: Ints,
    mass: Floats,
    outs: Floats,
) -> None:
    """Choose, repair and certify the channel of the next step of some streams.

    Each part of that is done for `SIDE_BY_SIDE` streams before the next begins: what one of them
    waits for, a quotient or a place in memory, others compute meanwhile.

    Channels that are solved at each step come from `solve_loops.py`, which is large and so stands
    alone, or from `sighted_solve_loops.py`: they are called afterwards. Here they are missed.

    Arrays that belong together follow the first of them:
        nodes: Kept channels, as in `LoopTables`, but for their outputs.
        repair_limit: By what part of its cost mixing may make a kept channel dearer; or, if
        scale: is not 0, by what part of that.
        order: Of the chain; joint, moment and drift of every stream follow.
        count: How many streams are prepared:
        which: those. Channels and certificates follow, as in `Ready`.
        allowed: What the step of each may leak: under the model, and whatever the model.
        beliefs: Work space for `SIDE_BY_SIDE` beliefs, running sums, figures (sum, mixing weight,
            both ratios) and leaves; for the masses of rows; and for as many output marginals.
    """
    size, contexts, kept = beliefs.shape[1], joints.shape[1], not are_solved(nodes)
    totals, mixes, tops, spreads = figures[0], figures[1], figures[2], figures[3]
    known, k, cap, h = -1.0, 1.0, -1.0, 1.0
    for begin in range(0, count, SIDE_BY_SIDE):
        some = min(SIDE_BY_SIDE, count - begin)
        for at in range(some):
            stream, stride = which[begin + at], 1
            if order > 1:
                stride = size ** max(0, order - 1 - moments[stream])
            totals[at] = marginal(joints, stream, stride, beliefs[at], reached[at])
        for at in range(0, some, CHAINS):
            leaves_of(tree, thresholds, reached, totals, at, leaves)
        for at in range(some):
            first = splits[leaves[at], 1]
            if kept and first < splits[leaves[at], 2]:
                c = candidates[first]
                output_marginal(nodes, row_of, weights, c, beliefs[at], mass, outs[at])
        for at in range(some):
            place, total, leaf = begin + at, totals[at], leaves[at]
            margin = margin_of(drifts[which[place]] + (contexts // size - 1) * UNIT, size)
            sip_due, ldp_due = allowed[place, 0], allowed[place, 1]
            found, c = EXHAUSTED, -1
            if sip_due > 4 * margin and ldp_due > 4 * margin:
                if sip_due != known:
                    known = sip_due
                    k = exp(known)
                if ldp_due != cap:
                    cap = ldp_due
                    h = exp(cap)
                if is_mass(total) and kept:
                    c, mixes[at] = _cheapest(
                        nodes,
                        row_of,
                        costs,
                        weights,
                        extremes,
                        candidates,
                        rises,
                        splits[leaf, 1],
                        splits[leaf, 2],
                        repair_limit,
                        scale,
                        total,
                        k * (1 - margin),
                        h * (1 - margin),
                        beliefs[at],
                        mass,
                        outs[at],
                    )
                found = MISSED if c < 0 else PREPARED
            status[place], chosen[place], parts[place] = found, c, 0
            charges[place, 0], charges[place, 1] = 0.0, 0.0
            tops[at], spreads[at] = 1.0, 1.0
        for at in range(some):
            place = begin + at
            c = chosen[place]
            if c >= 0 and nodes[c, 1] > 1:
                parts[place] = parts_of(mixes[at])
                if parts[place] > 0:
                    blend(outs[at], totals[at], nodes[c, 4], blends, place)
        for at in range(some):
            place = begin + at
            c = chosen[place]
            if c >= 0 and nodes[c, 1] > 1:
                given = (nodes, extremes, c, outs[at], totals[at], parts[place], blends, place)
                tops[at], spreads[at] = ratios(*given)
        for at in range(0, some, 4):
            put(tops, at, logs_up(four(tops, at), marginal_error(size)))
            put(spreads, at, logs_up(four(spreads, at), 4 * UNIT))
        for at in range(some):
            place = begin + at
            c, used = chosen[place], parts[place]
            if c < 0 or nodes[c, 1] == 1:
                continue
            error = drifts[which[place]] + (contexts // size - 1) * UNIT
            sip_due, ldp_due = allowed[place, 0], allowed[place, 1]
            ldp = spreads[at] if used > 0 else local[c]
            sip = charged(tops[at], ldp, error)
            if used == WHOLE:
                sip, ldp = 0.0, 0.0
            elif not (sip <= sip_due and ldp <= ldp_due):
                used, sip, ldp = mixed_within(
                    nodes,
                    extremes,
                    c,
                    outs[at],
                    totals[at],
                    mixes[at],
                    local[c],
                    sip_due,
                    ldp_due,
                    error,
                    blends,
                    place,
                    size,
                )
            parts[place], charges[place, 0], charges[place, 1] = used, sip, ldp


@njit(**IN_PLACE)
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
    solved = are_solved(nodes)
    for place in range(symbols.size):
        if solved:
            coin = np.int64(words[place] >> np.uint64(64 - BITS))
            drawn[place] = drawn_column(nodes, blends[place], symbols[place], coin)
            continue
        made = (chosen[place], parts[place], blends, place)
        drawn[place] = draw_column(nodes, row_of, weights, *made, symbols[place], words[place])


@njit(**IN_PLACE, forceinline=True)
def draw_column(
    nodes: Ints,
    row_of: Shorts,
    weights: Floats,
    c: int,
    parts: int,
    blends: Ints,
    place: int,
    symbol: int,
    word: np.uint64,
) -> int:
    """Draw a column of channel `c`, mixed by `parts` with a row of `blends`, by one word."""
    at, rows = nodes[c, 0] + row_of[c, symbol], nodes[c, 1]
    coin = np.int64(word >> np.uint64(64 - BITS))
    kept, mixed, reached = same_whole(WHOLE - parts), same_whole(parts), np.int64(0)
    for y in range(0, nodes[c, 4], LANES):
        owned = kept * wholes_of(four(weights, LANES * at))
        if parts > 0:
            owned += mixed * wholes(blends, place * blends.shape[1] + y)
        one = reached + lane(owned, 0)
        two = one + lane(owned, 1)
        three = two + lane(owned, 2)
        reached = three + lane(owned, 3)
        # All four are asked, whatever the coin: how long that takes tells nothing.
        below = np.int64(coin >= one) + np.int64(coin >= two) + np.int64(coin >= three)
        below += np.int64(coin >= reached)
        if below < LANES:
            return int(y + below)
        at += rows
    return -1


@njit(**IN_PLACE, forceinline=True)
def inform_one(
    nodes: Ints,
    row_of: Shorts,
    weights: Floats,
    c: int,
    parts: int,
    blends: Ints,
    place: int,
    column: int,
    joints: Floats,
    stream: int,
    stride: int,
    mass: Floats,
) -> None:
    """Condition a joint on a column of a kept channel that tells something.

    One conversion and one product for each entry; the scale is left to the next step. `mass` gets
    the likelihoods of the channel's rows.
    """
    size, contexts, rows, at = row_of.shape[1], joints.shape[1], nodes[c, 1], column % LANES
    first = LANES * (nodes[c, 0] + (column // LANES) * rows) + at
    base = parts * blends[place, column] if parts > 0 else np.int64(0)
    for row in range(rows):
        whole = (WHOLE - parts) * np.int64(item(weights, first + LANES * row)) + base
        mass[row] = np.float64(whole) * 2.0**-BITS
    mine, joint = c * size, joints[stream]
    if contexts == size:
        for x in range(size):
            joint[x] *= item(mass, np.int64(item(row_of, mine + x)))
    else:
        for context in range(contexts):
            joint[context] *= mass[row_of[c, (context // stride) % size]]


@njit(**IN_PLACE)
def inform(
    tables: Tables,
    order: int,
    joints: Floats,
    moments: Ints,
    drifts: Floats,
    ready: Ready,
    mass: Floats,
) -> None:
    """Condition the joint of each stream on its drawn column.

    Arrays that belong together follow the first of them:
        tables: Kept channels.
        order: Of the chain; joint, moment and drift of every stream follow.
        ready: What was prepared and drawn; `released` gets the symbols of the columns.
        mass: Work space: masses of rows.
    """
    nodes, row_of, weights, outputs = tables[0], tables[2], tables[4], tables[5]
    which, chosen, parts, blends, _, _, drawn, released = ready
    size, solved = row_of.shape[1], are_solved(nodes)
    for place in range(which.size):
        stream, c, mixed, y = which[place], chosen[place], parts[place], drawn[place]
        stride = 1 if order == 1 else size ** max(0, order - 1 - moments[stream])
        if solved:
            released[place] = blends[place, HEADER + y]
            if mixed == WHOLE:
                continue
            for row in range(blends[place, 1]):
                mass[row] = np.float64(weight_of(nodes, blends[place], row, y)) * 2.0**-BITS
            for context in range(joints.shape[1]):
                row = row_of_symbol(nodes, blends[place], (context // stride) % size)
                joints[stream, context] *= mass[row]
            drifts[stream] += 4 * UNIT
            continue
        released[place] = outputs[nodes[c, 2] + y]
        if nodes[c, 1] == 1 or mixed == WHOLE:
            continue
        inform_one(nodes, row_of, weights, c, mixed, blends, place, y, joints, stream, stride, mass)
        drifts[stream] += 4 * UNIT
