"""The last stages of a compiled step: draw a column of the certified channel, inform the belief.

What a kept channel is stands in `kept_channel_loops.py`, how it was chosen in `stepping.py`. Called
from Python one after the other, and by `run_loops.py` for all of a step.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import IN_PLACE, njit
from sfumato.core.lane_vectors import (
    beside,
    floats_of,
    four,
    item,
    lane,
    put,
    same,
    same_whole,
    wholes,
    wholes_of,
)
from sfumato.core.numerics import UNIT
from sfumato.solver.policy import LANES, WHOLE, Tables
from sfumato.solver.solving_tables import HEADER
from sfumato.stream.kept_channel_loops import Shorts
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
    kept, mixed, last = same_whole(WHOLE - parts), same_whole(base), first + LANES * (rows - 1)
    for row in range(0, rows, 4):
        at = first + LANES * row
        owned = beside(
            item(weights, at),
            item(weights, min(at + LANES, last)),
            item(weights, min(at + 2 * LANES, last)),
            item(weights, min(at + 3 * LANES, last)),
        )
        put(mass, row, floats_of(kept * wholes_of(owned) + mixed) * same(2.0**-BITS))
    mine, joint = c * size, joints[stream]
    if contexts == size:
        some = size - size % 4
        for x in range(0, some, 4):
            told = beside(
                item(mass, np.int64(item(row_of, mine + x))),
                item(mass, np.int64(item(row_of, mine + x + 1))),
                item(mass, np.int64(item(row_of, mine + x + 2))),
                item(mass, np.int64(item(row_of, mine + x + 3))),
            )
            put(joint, x, four(joint, x) * told)
        for x in range(some, size):
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
