"""Find the channel of each step by a small program, round it, certify it, write it down.

The program is that of `sfumato.solver.coarse_loops`. Its channel is rounded to integers, mixed with
its own output marginal as far as the bound demands (hardly ever, unless the leakage whatever the
model is capped) and certified from its integers, as kept ones are.
"""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit
from sfumato.core.numerics import UNIT
from sfumato.core.portable_loops import exp
from sfumato.solver.coarse_loops import coarse_channel
from sfumato.solver.policy import LANES, PART_BITS
from sfumato.solver.solving_tables import NEAR
from sfumato.stream.solved_channel_loops import certify_solved, weigh_columns
from sfumato.stream.stepping import MISSED, PREPARED, is_mass, marginal

_PART = 2**PART_BITS


@njit(cache=True, nogil=True, error_model="numpy")
def _rounded(rows: Floats, weights: Ints) -> None:
    """Integers of at least 1 that sum to `2**PART_BITS`, as `sfumato.solver.policy.part_weights`.

    The largest takes up the rounding: there it changes a ratio least.
    """
    for row in range(len(rows)):
        left, largest = _PART, 0
        for y in range(rows.shape[1]):
            weights[row, y] = np.int64(max(1.0, rows[row, y] * _PART + 0.5))
            left -= weights[row, y]
            if weights[row, y] > weights[row, largest]:
                largest = y
        weights[row, largest] += left


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _solve_channel(
    nodes: Ints,
    losses: Floats,
    near: Ints,
    belief: Floats,
    total: float,
    within: float,
    apart: float,
    sip_allowed: float,
    ldp_allowed: float,
    error: float,
    words: Ints,
) -> tuple[int, float, float]:
    """Find, round and certify the channel of a belief; it is written to `words`.

    Args:
        nodes: How many rows, words and columns a channel may have.
        losses: Row = output, column = true symbol.
        near: The outputs around each symbol.
        belief: Belief in each symbol.
        total: What it sums to.
        within: What ratios to the output marginal may be, less a margin for rounding.
        apart: What ratios of two weights of a column may be, likewise.
        sip_allowed: What the step may leak under the model.
        ldp_allowed: What it may leak whatever the model.
        error: How far rounding may have moved the belief.
        words: Gets the channel.

    Returns:
        Its mixing weight, and both certificates; the first is `WHOLE` if it tells nothing.
    """
    size, most = belief.size, nodes[0, 1]
    share, row_of = np.empty(size), np.empty(size, np.int64)
    outputs, rows = np.empty(nodes[0, 4], np.int64), np.empty((most, nodes[0, 4]))
    likeliest = 0
    for x in range(size):
        share[x] = belief[x] / total
        if belief[x] > belief[likeliest]:
            likeliest = x
    width, count = coarse_channel(
        share, losses, near, within, likeliest, most, outputs, row_of, rows
    )
    weights = np.empty((count, width), np.int64)
    _rounded(rows[:count, :width], weights)
    room = width + (-width) % LANES
    blends, out, extremes = np.zeros((1, room), np.int64), np.zeros(room), np.ones((room, 2))
    mass = np.zeros(count)
    for x in range(size):
        mass[row_of[x]] += belief[x]
    spread, _ = weigh_columns(weights, count, width, mass, extremes, out, blends)
    return certify_solved(
        nodes,
        weights,
        count,
        width,
        count > 1,
        spread,
        np.zeros((1, 5), np.int64),
        extremes,
        out,
        total,
        within,
        apart,
        sip_allowed,
        ldp_allowed,
        error,
        blends,
        outputs,
        row_of,
        words,
    )


@njit(cache=True, nogil=True, error_model="numpy")
def solve_channels(
    nodes: Ints,
    costs: Floats,
    candidates: Ints,
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
    allowed: Floats,
    belief: Floats,
    reached: Floats,
) -> None:
    """Solve the channels that `stepping.prepare` left to do: then they are prepared.

    Arguments are those of `stepping.prepare`.
    """
    size = belief.size
    near = candidates.reshape(size, NEAR)
    for place in range(which.size):
        stream = which[place]
        if status[place] != MISSED:
            continue
        # As for kept channels: what the belief's own rounding and the certificate's take.
        error = drifts[stream] + (joints.shape[1] // size - 1) * UNIT
        margin = 4 * error + (16 * size + 256) * UNIT
        sip, ldp = allowed[place, 0], allowed[place, 1]
        within, apart = exp(sip) * (1 - margin), exp(ldp) * (1 - margin)
        stride = 1 if order == 1 else size ** max(0, order - 1 - moments[stream])
        total = marginal(joints, stream, stride, belief, reached)
        if not is_mass(total):
            continue
        words = blends[place]
        parts[place], charges[place, 0], charges[place, 1] = _solve_channel(
            nodes, costs[0], near, belief, total, within, apart, sip, ldp, error, words
        )
        chosen[place], status[place] = 0, PREPARED
