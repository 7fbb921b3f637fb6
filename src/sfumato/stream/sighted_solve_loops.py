"""Find the channel of a far-sighted step by a small program, round it, certify it, write it down.

An output of a far-sighted channel is a pair: the symbol that leaves, and a vector of what follows.
Near a belief few pairs are any good: those of the channels that were best at beliefs like it. A
policy keeps their costs and a tree that leads to them, and each step solves the program of its own
belief with the few that its leaf has: some microseconds, and nothing has to be mended by mixing.
The channel is written to words, as `solved_channel_loops.py` says, with a row for each symbol; its
column is the signal. No array is made: this is part of the loop of a release.

`Tables` of such a policy hold, beyond what those of solved channels do, `costs[0]`: row = pair,
column = true symbol; `outputs`: the symbol of each pair; the tree, whose leaves lead to
`candidates`: pairs, and after them, one for each symbol, the places of the pairs that the columns
of the best channel at the middle of the leaf have; and `row_of`: for each entry of `candidates`
the symbols in the order in which its column is high on them there. The program begins with these
columns, filled to the bound at the belief of the moment: it mostly ends with them, too.

Beyond `EXCHANGED` symbols exchanges get many, and an interior-point method solves the program with
the first outputs of the leaf, those of its own channel and of the nearest ones. Its prices say
which others would help: these join, and it is solved again. Where that has no end, exchanges take
over.
"""

from __future__ import annotations

import numpy as np

from sfumato.core import arrays
from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import IN_PLACE, njit
from sfumato.core.numerics import UNIT
from sfumato.core.portable_loops import exp
from sfumato.solver.few_output_loops import (
    Interior,
    coupling_of,
    interior_channel,
    interior_room,
    prices_of,
)
from sfumato.solver.policy import LANES, PART_BITS, Tables
from sfumato.solver.simplex_loops import (
    POOLED,
    Basis,
    Pool,
    Pricing,
    best_column,
    cheapest_mixture,
    shape_ratios,
)
from sfumato.solver.solving_tables import EXCHANGED
from sfumato.stream.kept_channel_loops import Shorts
from sfumato.stream.solved_channel_loops import certify_solved, weigh_columns
from sfumato.stream.stepping import MISSED, PREPARED, is_mass, margin_of, marginal

Channel = tuple[Floats, Floats, Ints, Ints, Floats, Floats, Ints, Ints, Ints]
"""Room for a belief, rows, their integers, outputs, the largest and least weight and the marginal
of each, how many there are as a node, and integers to mix with; the row of each symbol."""
Program = tuple[Basis, Pricing, Pool, Pool, Channel, Interior, Ints, Floats, Floats]
"""Room for a step: see `simplex_loops.py`; the second pool has the columns to begin with. That of
`few_output_loops.py` follows, and an order of outputs. A belief that need not sum to 1, and its
running sums, come last."""

_PART = 2**PART_BITS
_DUST = 1e-9
"""Outputs rarer than this are the program's, not part of its optimum."""
_SETTLED, _TINY = 1e-6, 1e-11
"""Part of the cost that may be left open, and part of the largest cost that is none."""
_FEW = 8
"""Outputs that an interior-point method begins with: an optimum has three or four."""
_RARE = 1e-4
"""Outputs rarer than this are its own, not part of the optimum: without them as many steps tell
nothing, and are charged nothing, as at the optimum, and losses rose by some 1e-4 at worst."""
_STEPS = 40
"""It takes 6 to 10; beyond this it is lost."""


def program_room(tables: Tables) -> Program:
    """Room for the program of a step under tables that hold pairs."""
    size, splits = tables[2].shape[1], tables[7]
    leaves = splits[splits[:, 0] < 0]
    pairs = int((leaves[:, 2] - leaves[:, 1]).max())

    def ints(*shape: int) -> Ints:
        return arrays.apart(shape, np.int64)

    def floats(*shape: int) -> Floats:
        return arrays.apart(shape)

    square, kept = (size, size), POOLED * pairs
    inner = pairs - pairs % LANES if size > EXCHANGED else 0
    return (
        (floats(*square), floats(size), floats(*square), ints(size), floats(size), floats(size)),
        (floats(pairs, size), ints(pairs, size), floats(pairs, 3), floats(size), floats(size)),
        (floats(size, kept), floats(kept), ints(kept), floats(kept)),
        (floats(*square), floats(size), ints(size), floats(size)),
        (
            floats(size),
            floats(size, pairs),
            ints(size, pairs),
            ints(pairs),
            # These are read four columns at a time.
            floats(pairs + LANES, 2),
            floats(pairs + LANES),
            ints(1, 5),
            ints(1, pairs + LANES),
            np.arange(size),
        ),
        interior_room(size, inner),
        ints(pairs),
        floats(size),
        floats(size),
    )


@njit(**IN_PLACE)
def _begin(row_of: Shorts, candidates: Ints, end: int, share: float, program: Program) -> None:
    """Put down the columns that the program of a leaf begins with."""
    starts, belief = program[3], program[4][0]
    for j in range(belief.size):
        starts[2][j] = candidates[end + j]
        mass, last = 0.0, belief.size - 1
        for place in range(last):
            held = belief[row_of[end + j, place]]
            if mass + held >= share:
                last = place
                break
            mass += held
        part = min(share - mass, belief[row_of[end + j, last]])
        shape_ratios(belief, share, row_of[end + j], last, part, starts[0], j)


@njit(**IN_PLACE)
def _priced(
    row_of: Shorts,
    costs: Floats,
    candidates: Ints,
    begin: int,
    end: int,
    belief: Floats,
    total: float,
    program: Program,
) -> float:
    """Put down belief, outputs and orders to begin with; the largest cost above the cheapest."""
    by_output, order, share = program[1][0], program[1][1], program[4][0]
    largest = 0.0
    for x in range(belief.size):
        share[x] = belief[x] / total
        # Costs above the cheapest output: what all of them cost decides nothing.
        least = np.inf
        for y in range(end - begin):
            least = min(least, costs[0, candidates[begin + y], x])
        for y in range(end - begin):
            by_output[y, x] = costs[0, candidates[begin + y], x] - least
            largest = max(largest, by_output[y, x])
    for y in range(end - begin):
        for x in range(belief.size):
            order[y, x] = row_of[begin + y, x]
    return largest


@njit(**IN_PLACE)
def _inner(begin: int, count: int, within: float, program: Program) -> int:
    """Solve the program by interior points: how many outputs; 0 if it has no end, or too many."""
    pricing, share, interior, listed = program[1], program[4][0], program[5], program[6]
    size, high, outputs = share.size, 1 / (within + 1), min(_FEW, count)
    for y in range(count):
        listed[y] = y
    while outputs >= _FEW:
        for x in range(size):
            for i in range(outputs):
                interior[0][x * outputs + i] = pricing[0][listed[i], x]
        if interior_channel(share, outputs, within, _SETTLED, _STEPS, interior) < 0:
            return 0
        prices_of(share, within, interior, pricing[3])
        paid, joined = 0.0, outputs
        for x in range(size):
            paid += share[x] * pricing[3][x]
        for i in range(outputs, count):
            if best_column(share, listed[i], high, pricing) < -_SETTLED * paid:
                listed[i], listed[joined] = listed[joined], listed[i]
                joined += 1
        if joined == outputs:
            return _coupled(begin, outputs, within, program)
        room = min(count, joined + LANES - 1) // LANES * LANES
        outputs = room if room > outputs else 0
    return 0


@njit(**IN_PLACE)
def _coupled(begin: int, outputs: int, within: float, program: Program) -> int:
    """Make the rows of a channel of its coupling; 0 if it has more outputs than symbols."""
    (share, rows, _, chosen, _, _, _, _, _), interior = program[4], program[5]
    size, width = share.size, 0
    for i in range(outputs):
        mass = 0.0
        for x in range(size):
            mass += share[x] * coupling_of(interior, x * outputs + i)
        if mass <= _RARE:
            continue
        if width == size:
            return 0
        chosen[width] = begin + program[6][i]
        for x in range(size):
            told = (1 - 1 / within) * coupling_of(interior, x * outputs + i)
            rows[x, width] = mass / within + told
        width += 1
    return width


@njit(**IN_PLACE)
def _exchanged(begin: int, count: int, within: float, largest: float, program: Program) -> int:
    """Solve the program by exchanges: how many outputs its channel has; 0 if it has no end."""
    basis, pricing, pool, starts, channel, _, _, _, _ = program
    share, rows, _, chosen, _, out, _, _, _ = channel
    size = share.size
    limits = (1 / (within + 1), _TINY * largest, 60 * size + 200, _SETTLED)
    if cheapest_mixture(share, count, *limits, starts, basis, pricing, pool) < 0:
        return 0
    _, weights, columns, released, _, _ = basis
    for y in range(count):
        out[y] = 0.0
        for x in range(size):
            rows[x, y] = 0.0
    for j in range(size):
        if weights[j] > 0.0 and released[j] >= 0:
            for x in range(size):
                rows[x, released[j]] += weights[j] * columns[j, x]
    width = 0
    for y in range(count):
        for x in range(size):
            out[y] += share[x] * rows[x, y]
        if out[y] > _DUST:
            chosen[width] = begin + y
            for x in range(size):
                rows[x, width] = rows[x, y]
            width += 1
    return width


@njit(**IN_PLACE)
def _rounded(rows: Floats, size: int, width: int, weights: Ints) -> None:
    """Integers of at least 1 that sum to `2**PART_BITS`, next to rows once these sum to 1.

    The largest takes up the rounding: there it changes a ratio least.
    """
    for x in range(size):
        total, left, largest = 0.0, _PART, 0
        for y in range(width):
            total += rows[x, y]
        for y in range(width):
            weights[x, y] = np.int64(max(1.0, rows[x, y] / total * _PART + 0.5))
            left -= weights[x, y]
            if weights[x, y] > weights[x, largest]:
                largest = y
        weights[x, largest] += left


@njit(**IN_PLACE)
def solve_sighted(
    nodes: Ints,
    row_of: Shorts,
    costs: Floats,
    outputs: Ints,
    candidates: Ints,
    begin: int,
    end: int,
    error: float,
    belief: Floats,
    total: float,
    sip_allowed: float,
    ldp_allowed: float,
    k: float,
    h: float,
    words: Ints,
    program: Program,
) -> tuple[int, int, float, float]:
    """The channel of one step, solved and certified: status, parts, both certificates.

    Args as those of `stepping.prepare`, but:
        begin: The first of the pairs worth trying: those of a leaf, which
        end: ends there.
        words: Get the channel.
        program: Work space.
    """
    size = belief.size
    margin = margin_of(error, size)
    within, apart = k * (1 - margin), h * (1 - margin)
    largest = _priced(row_of, costs, candidates, begin, end, belief, total, program)
    width = _inner(begin, end - begin, within, program) if size > EXCHANGED else 0
    if width == 0:
        _begin(row_of, candidates, end, 1 / (within + 1), program)
        width = _exchanged(begin, end - begin, within, largest, program)
    if width == 0:
        return MISSED, 0, 0.0, 0.0
    _, rows, weights, chosen, extremes, out, own, blends, row = program[4]
    for y in range(width):
        chosen[y] = outputs[candidates[chosen[y]]]
    _rounded(rows, size, width, weights)
    spread, constant = weigh_columns(weights, size, width, belief, extremes, out, blends)
    used, sip, ldp = certify_solved(
        nodes,
        weights,
        size,
        width,
        not constant,
        spread,
        own,
        extremes,
        out,
        total,
        within,
        apart,
        sip_allowed,
        ldp_allowed,
        error,
        blends,
        chosen,
        row,
        words,
    )
    return PREPARED, used, sip, ldp


@njit(**IN_PLACE)
def leaf_of(splits: Ints, thresholds: Floats, reached: Floats, total: float) -> int:
    """The leaf that a belief with these running sums falls into."""
    place = 0
    while splits[place, 0] >= 0:
        high = reached[splits[place, 0]] > thresholds[place] * total
        place = splits[place, 1] + np.int64(high)
    return place


@njit(**IN_PLACE)
def solve_sighted_channels(
    nodes: Ints,
    row_of: Shorts,
    costs: Floats,
    outputs: Ints,
    splits: Ints,
    thresholds: Floats,
    candidates: Ints,
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
    program: Program,
) -> None:
    """Solve the channels that `stepping.prepare` left to do: then they are prepared.

    Arguments are those of `stepping.prepare`, and work space.
    """
    belief, reached = program[7], program[8]
    size, known, k, cap, h = belief.size, -1.0, 1.0, -1.0, 1.0
    for place in range(count):
        stream = which[place]
        if status[place] != MISSED:
            continue
        error = drifts[stream] + (joints.shape[1] // size - 1) * UNIT
        sip, ldp = allowed[place, 0], allowed[place, 1]
        if sip != known:
            known = sip
            k = exp(known)
        if ldp != cap:
            cap = ldp
            h = exp(cap)
        stride = 1 if order == 1 else size ** max(0, order - 1 - moments[stream])
        total = marginal(joints, stream, stride, belief, reached)
        if not is_mass(total):
            continue
        leaf = leaf_of(splits, thresholds, reached, total)
        status[place], parts[place], charges[place, 0], charges[place, 1] = solve_sighted(
            nodes,
            row_of,
            costs,
            outputs,
            candidates,
            splits[leaf, 1],
            splits[leaf, 2],
            error,
            belief,
            total,
            sip,
            ldp,
            k,
            h,
            blends[place],
            program,
        )
        chosen[place] = 0
