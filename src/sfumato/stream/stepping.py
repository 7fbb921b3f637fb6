"""The first stage of a compiled step: sum up the belief, choose a channel, repair and certify it.

What a kept channel is, and how it is repaired, stands in `kept_channel_loops.py`; what is done with
it once it is certified, in `draw_loops.py`. The stages are called from Python one after the other,
and by `run_loops.py` for all of a step. Arguments are flat, since a tuple of arrays takes
microseconds to unpack at each call.
"""

from __future__ import annotations

import math
from typing import Any

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import IN_PLACE, njit
from sfumato.core.lane_vectors import (
    beside,
    crossed,
    fetch,
    four,
    item,
    lane,
    put,
    same,
)
from sfumato.core.numerics import UNIT
from sfumato.core.portable_loops import exp
from sfumato.solver.policy import LANES, WHOLE
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
from sfumato.stream.solved_channel_loops import are_solved

PREPARED, EXHAUSTED, MISSED = 0, 1, 2
SIDE_BY_SIDE = 32
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
def four_marginals(
    joints: Floats, which: Ints, begin: int, at: int, beliefs: Floats, reached: Floats
) -> Any:
    """`marginal` of four streams of an order-1 chain side by side; return the four sums."""
    size = joints.shape[1]
    some, mine = size - size % 4, at * size
    one, two = which[begin + at] * size, which[begin + at + 1] * size
    three, last = which[begin + at + 2] * size, which[begin + at + 3] * size
    total = same(0.0)
    for x in range(0, some, 4):
        p, q = four(joints, one + x), four(joints, two + x)
        r, s = four(joints, three + x), four(joints, last + x)
        put(beliefs, mine + x, p)
        put(beliefs, mine + size + x, q)
        put(beliefs, mine + 2 * size + x, r)
        put(beliefs, mine + 3 * size + x, s)
        a, b, c, d = crossed(p, q, r, s)
        a = total + a
        b = a + b
        c = b + c
        total = c + d
        p, q, r, s = crossed(a, b, c, total)
        put(reached, mine + x, p)
        put(reached, mine + size + x, q)
        put(reached, mine + 2 * size + x, r)
        put(reached, mine + 3 * size + x, s)
    for x in range(some, size):
        here = beside(
            item(joints, one + x),
            item(joints, two + x),
            item(joints, three + x),
            item(joints, last + x),
        )
        total = total + here
        for each in range(4):
            beliefs[at + each, x], reached[at + each, x] = lane(here, each), lane(total, each)
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


@njit(**IN_PLACE, forceinline=True)
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
        which: those. Channels and certificates follow, as in
            `draw_loops.Ready`.
        allowed: What the step of each may leak: under the model, and whatever the model.
        beliefs: Work space for `SIDE_BY_SIDE` beliefs, running sums, figures (sum, mixing weight,
            both ratios) and leaves; for the masses of rows; and for as many output marginals.
    """
    size, contexts, kept = beliefs.shape[1], joints.shape[1], not are_solved(nodes)
    totals, mixes, tops, spreads = figures[0], figures[1], figures[2], figures[3]
    known, k, cap, h = -1.0, 1.0, -1.0, 1.0
    for begin in range(0, count, SIDE_BY_SIDE):
        some = min(SIDE_BY_SIDE, count - begin)
        done = some - some % 4 if contexts == size else 0
        for at in range(0, done, 4):
            put(totals, at, four_marginals(joints, which, begin, at, beliefs, reached))
        for at in range(done, some):
            stream, stride = which[begin + at], 1
            if order > 1:
                stride = size ** max(0, order - 1 - moments[stream])
            totals[at] = marginal(joints, stream, stride, beliefs[at], reached[at])
        for at in range(0, some, CHAINS):
            leaves_of(tree, thresholds, reached, totals, at, leaves)
        # What is read of a channel stands in four places: all are under way before one is needed.
        for at in range(some):
            leaf, c = leaves[at], -1
            if kept and splits[leaf, 1] < splits[leaf, 2]:
                c = candidates[splits[leaf, 1]]
                fetch(nodes, c * nodes.shape[1])
                fetch(row_of, c * size)
            chosen[begin + at] = c
        for at in range(some):
            c = chosen[begin + at]
            if c >= 0:
                fetch(weights, LANES * nodes[c, 0])
                fetch(weights, LANES * nodes[c, 0] + 8)
                fetch(extremes, 2 * nodes[c, 2])
        for at in range(some):
            c = chosen[begin + at]
            if c >= 0:
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
