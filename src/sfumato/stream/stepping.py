"""The loops of a compiled release: choose a kept channel, certify it, draw, inform the belief.

What a kept channel is, and how it is repaired, stands in `kept_channel_loops.py`. `advance` is the
one entry from Python. Its arguments are flat, since a tuple of arrays takes microseconds to unpack
at each call, and are put together inside, where a tuple costs nothing.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import IN_PLACE, njit
from sfumato.core.numerics import UNIT
from sfumato.core.portable_loops import exp
from sfumato.solver.policy import LANES, WHOLE, Tables
from sfumato.solver.solving_tables import HEADER
from sfumato.stream.kept_channel_loops import (
    Shorts,
    leaf_of,
    least_repair,
    mixed_within,
    output_marginal,
    repaired_costs,
)
from sfumato.stream.solved_channel_loops import (
    are_solved,
    drawn_column,
    row_of_symbol,
    weight_of,
)

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
PREPARE, DRAW, INFORM = 1, 2, 4
"""Stages of a step: choose channels, draw columns, inform beliefs."""
_LEAST, _MOST = 1e-200, 1e200
"""What a sum of beliefs may be that was not divided by its total for a while."""


@njit(**IN_PLACE, forceinline=True)
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


@njit(**IN_PLACE, forceinline=True)
def margin_of(error: float, size: int) -> float:
    """What the rounding of a belief, and of a certificate, takes of the bound."""
    return 4 * error + (16 * size + 256) * UNIT


@njit(**IN_PLACE, forceinline=True)
def is_mass(total: float) -> bool:
    """Whether a sum is that of a distribution, up to a factor; if not, somebody must ask why."""
    return _LEAST < total < _MOST


@njit(**IN_PLACE, forceinline=True)
def choose(
    nodes: Ints,
    local: Floats,
    row_of: Shorts,
    costs: Floats,
    weights: Floats,
    extremes: Floats,
    candidates: Ints,
    begin: int,
    end: int,
    repair_limit: float,
    scale: float,
    error: float,
    total: float,
    sip_allowed: float,
    ldp_allowed: float,
    k: float,
    h: float,
    belief: Floats,
    mass: Floats,
    out: Floats,
    blends: Ints,
    place: int,
) -> tuple[int, int, int, float, float]:
    """The channel of one step, repaired and certified: status, channel, parts, both certificates.

    Args beyond those of `advance`:
        begin: The first of the candidates worth trying: those of a leaf, which
        end: ends there.
        error: Bound on the error of the belief, as a log ratio.
        total: Sum of the belief.
        sip_allowed: What the step may leak under the model; `k` is e to that.
        ldp_allowed: What it may leak whatever the model; `h` is e to that.
        place: The row of `blends` that gets the integers it is mixed with.
    """
    size = belief.size
    margin = margin_of(error, size)
    within, apart = k * (1 - margin), h * (1 - margin)
    # Of the channels worth trying, the one that is cheapest once it is repaired.
    c, tried, mixed, added, cheapest = -1, -1, 1.0, math.inf, math.inf
    for candidate in range(begin, end):
        tried = candidates[candidate]
        output_marginal(nodes, row_of, weights, tried, belief, mass, out)
        weight = least_repair(nodes, extremes, tried, out, total, within, apart)
        if weight == 0.0 and end - begin == 1:
            # Nothing to compare it with, and nothing to pay: what it costs does not matter.
            c, mixed, added = tried, weight, 0.0
            continue
        plain, rise = repaired_costs(costs, tried, belief, weight)
        if plain + rise < cheapest:
            c, mixed, cheapest = tried, weight, plain + rise
            part_of = scale * total if scale > 0.0 else plain
            added = rise / part_of if rise > 0.0 else 0.0
    if c != tried:
        output_marginal(nodes, row_of, weights, c, belief, mass, out)
    if added > repair_limit:
        return MISSED, c, 0, 0.0, 0.0
    if nodes[c, 1] == 1:
        return PREPARED, c, 0, 0.0, 0.0
    own = local[c]
    used, sip, ldp = mixed_within(
        nodes,
        extremes,
        c,
        out,
        total,
        mixed,
        own,
        sip_allowed,
        ldp_allowed,
        error,
        blends,
        place,
        size,
    )
    return PREPARED, c, used, sip, ldp


@njit(**IN_PLACE, forceinline=True)
def _prepare(
    tables: Tables,
    repair_limit: float,
    scale: float,
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
        error = drifts[stream] + (joints.shape[1] // size - 1) * UNIT
        margin = margin_of(error, size)
        if allowed[place, 0] <= 4 * margin or allowed[place, 1] <= 4 * margin:
            continue
        if allowed[place, 0] != known:
            known = allowed[place, 0]
            k = exp(known)
        if allowed[place, 1] != cap:
            cap = allowed[place, 1]
            h = exp(cap)
        stride = 1 if order == 1 else size ** max(0, order - 1 - moments[stream])
        total = marginal(joints, stream, stride, belief, reached)
        if not is_mass(total):
            status[place] = MISSED
            continue
        leaf = leaf_of(splits, thresholds, reached, total)
        found, c, used, sip, ldp = choose(
            nodes,
            local,
            row_of,
            costs,
            weights,
            extremes,
            candidates,
            splits[leaf, 1],
            splits[leaf, 2],
            repair_limit,
            scale,
            error,
            total,
            known,
            cap,
            k,
            h,
            belief,
            mass,
            out,
            blends,
            place,
        )
        status[place], chosen[place], parts[place] = found, c, used
        charges[place, 0], charges[place, 1] = sip, ldp


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
    reached, lane = np.int64(0), 0
    for y in range(nodes[c, 4]):
        reached += (WHOLE - parts) * np.int64(weights[at, lane])
        if parts > 0:
            reached += parts * blends[place, y]
        if coin < reached:
            return y
        lane += 1
        if lane == LANES:
            at, lane = at + rows, 0
    return -1


@njit(**IN_PLACE, forceinline=True)
def _inform(tables: Tables, streams: Streams, ready: Ready, mass: Floats) -> None:
    """Condition the joint of each stream on its drawn column; the scale is left to the next step.

    One conversion and one product for each entry. `released` gets the symbols of the columns.
    """
    nodes, row_of, weights, outputs = tables[0], tables[2], tables[4], tables[5]
    order, joints, moments, drifts = streams
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
            for context in range(joints.shape[1]):
                joints[stream, context] *= mass[row_of[c, (context // stride) % size]]
        drifts[stream] += 4 * UNIT


@njit(**IN_PLACE)
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
    scale: float,
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
    allowed: Floats,
    symbols: Ints,
    words: Words,
) -> None:
    """Take some stages of a step of many streams.

    Channels that are solved at each step come from `solve_loops.py`, which is large and so stands
    alone: it is called after `PREPARE`, which leaves them missed (their tree leads to no channel),
    and before all else.

    Beyond `Tables`, `Streams`, `Ready` and `Work`:
        stages: Which of `PREPARE`, `DRAW` and `INFORM` to take, added up.
        repair_limit: By what part of its cost mixing may make a kept channel dearer; or, if
        scale: is not 0, by what part of that.
        allowed: What the step of each may leak: under the model, and whatever the model.
        symbols: The true symbols.
        words: Coins.
    """
    channels = (nodes, local, row_of, costs, weights, outputs, extremes)
    tables = (*channels, splits, thresholds, candidates)
    streams = (order, joints, moments, drifts)
    ready = (which, chosen, parts, blends, charges, status, columns, released)
    if stages & PREPARE:
        work = (belief, mass, marginals, reached)
        _prepare(tables, repair_limit, scale, streams, allowed, ready, work)
    if stages & DRAW:
        draw(tables, ready, symbols, words)
    if stages & INFORM:
        _inform(tables, streams, ready, mass)
