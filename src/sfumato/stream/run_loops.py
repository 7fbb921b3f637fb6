"""One loop for many steps of many streams: allow, choose, certify, draw, inform, charge, predict.

Stream by stream through all of its values in a batch, so that a belief stays in the nearest memory
and nothing is put aside between the parts of a step. `choose` and `draw_column` of `stepping.py`,
`allowance` of `core/allowance_loops.py` and `spread` of `models/chain_loops.py` are the parts: a
stream gets the same answers here, alone and in a plan.

What the loop does not cover (a belief that the policy misses, a refusal, a substitute, a channel
that is solved at its step) stops its stream before that value: whoever called does the one step,
and calls again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.account_loops import add_charge
from sfumato.core.allowance_loops import allowance, pauses
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.budgets import USELESS_BELOW
from sfumato.core.compiled import IN_PLACE, njit
from sfumato.core.numerics import UNIT
from sfumato.core.portable_loops import exp
from sfumato.models.chain_loops import Known, spread
from sfumato.solver.policy import LANES, WHOLE
from sfumato.stream.fleet_answers import RELEASED, REPEATED, SKIPPED, SUPPRESSED
from sfumato.stream.kept_channel_loops import Shorts, quick_leaf
from sfumato.stream.stepping import BITS, PREPARED, Words, choose, draw_column, is_mass, margin_of

RELEASE, OBSERVE = 0, 1
"""Whether columns are drawn, or found by what was seen to leave."""
STOP, SUPPRESS, REPEAT = 0, 1, 2
"""What to do where nothing can leave: let the plan see to it, or be silent in one of two ways."""
UNKNOWN, PASSING = -1, -2
"""Cells that are none: a value outside the alphabet, and a moment without a value."""
NO_GUESS, TABLE = 0, 1
"""How the best constant of a pause is found: by the plan, or from a table of losses."""
_MODE, _ORDER, _EXHAUSTED, _UNKNOWN, _SIGHTED, _GUESS, _FIRST, _SYMBOLS = range(8)


@njit(**IN_PLACE)
def best_constant(table: Floats, belief: Floats, means: Floats) -> int:
    """Where the symbol stands that loses least if it leaves whatever is true: `Loss.best_constant`.

    Args:
        table: Losses: row = true symbol.
        belief: Distribution of the next value.
        means: Work space.
    """
    size = belief.size
    for y in range(size):
        means[y] = 0.0
    for x in range(size):
        share = belief[x]
        for y in range(size):
            means[y] += share * table[x, y]
    best = 0
    for y in range(1, size):
        if means[y] < means[best]:
            best = y
    return best


@njit(**IN_PLACE, forceinline=True)
def _column_of(nodes: Ints, outputs: Ints, c: int, symbol: int, signal: int, sighted: bool) -> int:
    """The column of a channel that released a symbol; -1 if none does, or its signal is wrong."""
    first, width = nodes[c, 2], nodes[c, 4]
    if sighted:
        fits = 0 <= signal < width and outputs[first + signal] == symbol
        return signal if fits else -1
    if signal < 0:
        for y in range(width):
            if outputs[first + y] == symbol:
                return y
    return -1


@njit(**IN_PLACE)
def group_rows(which: Ints, slots: Ints, streams: Ints, begins: Ints, rows: Ints) -> int:
    """Sort rows by stream, each stream's in their order; how many streams have any.

    Args:
        which: The stream of each row.
        slots: Work space, one entry per stream: -1 before and after.
        streams: The streams that have rows, by their first, as a result.
        begins: Where in `rows` those of each begin, and all of them end, as a result.
        rows: Rows, one stream after another, as a result.
    """
    found = 0
    for row in range(which.size):
        stream = which[row]
        if slots[stream] < 0:
            slots[stream] = found
            streams[found], begins[found] = stream, 0
            found += 1
        begins[slots[stream]] += 1
    before = 0
    for group in range(found):
        count = begins[group]
        begins[group] = before
        before += count
    for row in range(which.size):
        group = slots[which[row]]
        rows[begins[group]] = row
        begins[group] += 1
    for group in range(found, 0, -1):
        begins[group] = begins[group - 1]
    begins[0] = 0
    for group in range(found):
        slots[streams[group]] = -1
    return found


@njit(**IN_PLACE)
def follow(
    options: Ints,
    begin: int,
    end: int,
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
    symbols: Ints,
    branches: Ints,
    repair_limit: float,
    scale: float,
    rule_counts: Ints,
    rule_amounts: Floats,
    known: Known,
    backoff: Floats,
    background: Floats,
    losses: Floats,
    joints: Floats,
    moments: Ints,
    drifts: Floats,
    counts: Ints,
    spent: Floats,
    recent: Floats,
    last: Ints,
    old_joints: Floats,
    old_moments: Ints,
    old_drifts: Floats,
    old_counts: Ints,
    old_spent: Floats,
    old_recent: Floats,
    old_last: Ints,
    entered: Bools,
    streams: Ints,
    turns: Ints,
    ends: Ints,
    rows: Ints,
    cells: Ints,
    words: Words,
    sequences: Ints,
    released: Ints,
    outcomes: NDArray[np.uint8],
    charges: Floats,
    signals: Ints,
    withheld: Bools,
    told: Floats,
    tells: Bools,
    before: Ints,
    chosen: Ints,
    parts_of: Ints,
    blends_of: Ints,
    columns: Ints,
    masses: Floats,
    joint: Floats,
    work: Floats,
    belief: Floats,
    mass: Floats,
    out: Floats,
    reached: Floats,
    blends: Ints,
) -> int:
    """Let some streams go through their values; how many of them stopped before their end.

    Arrays that belong together follow the first of them:
        options: Mode; order of the chain; what to do when the budget is gone, and with unknown
            values; whether outputs have signals; how constants are found; whether the streams
            are to be copied to `old_...` first; how many symbols a batch is made of.
        begin: First stream of those to go on, as a place in `streams`.
        end: Where they end.
        nodes: Kept channels, as in `kept_channel_loops.py`; the tables follow.
        symbols: The first column of `splits`, and
        branches: the second: apart from each other they are quicker to follow.
        repair_limit: By what part of its cost mixing may make a kept channel dearer; or, if
        scale: is not 0, by what part of that.
        rule_counts: The budget, as in `allowance_loops.py`.
        rule_amounts: The budget, too.
        known: The chain, as in `chain_loops.py`.
        losses: Of constants, for pauses.
        joints: Where every stream stands; beliefs and accounts follow.
        old_joints: Where each of `streams` stood before: copies.
        entered: Whether it was copied.
        streams: The streams that go on.
        turns: Where in `rows` the next value of each is; moved on.
        ends: Where in `rows` its values end.
        rows: Numbers of values, one stream after another.
        cells: The true symbols, value by value; not looked at where a release is observed.
        words: Coins, value by value.
        sequences: The moment of each value, as a result.
        released: What left: a result, or given where it was observed.
        outcomes: How: a result, or given.
        charges: Both certificates, as a result.
        signals: Columns: a result, or given.
        withheld: Whether nothing left though something could have, as a result.
        told: How likely each symbol made what left, as a result; no rows if nobody asks. Whether
            that tells anything and what was said before follow; and, if `masses` has rows, too, the
            channel, its mixing weight and integers, the column, and what was believed.
        joint: Work space: a joint; beliefs, masses of rows, an output marginal, running sums and
            integers to mix with follow.
    """
    size, contexts, width = background.size, joints.shape[1], rule_counts[1]
    observed, order, sighted = options[_MODE] == OBSERVE, options[_ORDER], options[_SIGHTED] == 1
    apart = (contexts // size - 1) * UNIT
    stopped = 0
    sip_known, k, ldp_known, h = -1.0, 1.0, -1.0, 1.0
    for group in range(begin, end):
        stream = streams[group]
        moment, drift = moments[stream], drifts[stream]
        for context in range(contexts):
            joint[context] = joints[stream, context]
        if options[_FIRST] == 1:
            for context in range(contexts):
                old_joints[group, context] = joint[context]
            old_moments[group], old_drifts[group] = moment, drift
            old_counts[group], old_last[group] = counts[stream], last[stream]
            for kind in range(2):
                old_spent[group, kind] = spent[stream, kind]
                for step in range(recent.shape[1]):
                    old_recent[group, step, kind] = recent[stream, step, kind]
            entered[group] = True
        turn = turns[group]
        while turn < ends[group]:
            row = rows[turn]
            outcome, place, column = RELEASED, -1, -1
            sip, ldp, informs = 0.0, 0.0, False
            c, parts, pause = -1, 0, False
            stride = 1
            if order > 1:
                for _ in range(order - 1 - moment):
                    stride *= size
                for x in range(size):
                    belief[x] = 0.0
                for context in range(contexts):
                    belief[(context // stride) % size] += joint[context]
            else:
                for x in range(size):
                    belief[x] = joint[x]
            if masses.shape[0] > 0:
                for x in range(size):
                    masses[row, x] = belief[x]
            passing = outcomes[row] == SKIPPED if observed else cells[row] == PASSING
            if passing:
                outcome = SKIPPED
            else:
                pause = pauses(rule_counts, counts[stream], recent, stream)
                gone = False
                if not pause:
                    count = counts[stream]
                    sip_due = allowance(
                        rule_counts, rule_amounts, count, spent[stream, 0], recent, stream, 0
                    )
                    ldp_due = allowance(
                        rule_counts, rule_amounts, count, spent[stream, 1], recent, stream, 1
                    )
                    gone = sip_due <= 0.0 or ldp_due <= 0.0
                if not pause and not gone:
                    error = drift + apart
                    least = 4 * margin_of(error, size)
                    if sip_due <= least or ldp_due <= least:
                        break
                    if sip_due < USELESS_BELOW or ldp_due < USELESS_BELOW:
                        break
                    if sip_due != sip_known:
                        sip_known = sip_due
                        k = exp(sip_known)
                    if ldp_due != ldp_known:
                        ldp_known = ldp_due
                        h = exp(ldp_known)
                    total = 0.0
                    for x in range(size):
                        total += belief[x]
                        reached[x] = total
                    if not is_mass(total):
                        break
                    leaf = quick_leaf(symbols, branches, thresholds, reached, total)
                    status, c, parts, sip, ldp = choose(
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
                        sip_due,
                        ldp_due,
                        k,
                        h,
                        belief,
                        mass,
                        out,
                        blends,
                        0,
                    )
                    if status != PREPARED:
                        break
                # Where nothing new leaves, the plan says which of its two silences it is.
                silent = outcomes[row] != RELEASED if observed else gone or cells[row] < 0
                if silent:
                    fallback = options[_EXHAUSTED] if gone else options[_UNKNOWN]
                    if fallback == STOP:
                        break
                    sip, ldp, outcome = 0.0, 0.0, SUPPRESSED
                    if fallback == REPEAT and last[stream] >= 0:
                        outcome, place = REPEATED, last[stream]
                    withheld[row] = not gone
                elif gone:
                    break
                elif pause:
                    if options[_GUESS] == NO_GUESS or stride > 1:
                        break
                    place = best_constant(losses, belief, reached)
                    column = 0 if sighted else -1
                else:
                    if observed:
                        column = _column_of(nodes, outputs, c, released[row], signals[row], sighted)
                        if column < 0:
                            break
                    else:
                        column = draw_column(
                            nodes, row_of, weights, c, parts, blends, 0, cells[row], words[row]
                        )
                    place = outputs[nodes[c, 2] + column]
                    informs = nodes[c, 1] > 1 and parts < WHOLE
            if observed:
                sent = column if sighted else -1
                if outcomes[row] != outcome or released[row] != place or signals[row] != sent:
                    break
            else:
                outcomes[row], released[row] = outcome, place
                signals[row] = column
            if told.shape[0] > 0:
                before[row], tells[row] = last[stream], informs
                if masses.shape[0] > 0 and outcome == RELEASED and not pause:
                    chosen[row], parts_of[row], columns[row] = c, parts, column
                    for y in range(nodes[c, 4] if parts > 0 else 0):
                        blends_of[row, y] = blends[0, y]
            sequences[row] = moment
            charges[row, 0], charges[row, 1] = sip, ldp
            # From here on the stream moves: first by what was told, then to its next moment.
            if outcome == RELEASED:
                last[stream] = place if width == 1 else place % options[_SYMBOLS]
            if informs:
                drift += 4 * UNIT
                rows_of_c, lane = nodes[c, 1], column % LANES
                first = nodes[c, 0] + (column // LANES) * rows_of_c
                base = parts * blends[0, column] if parts > 0 else np.int64(0)
                for each in range(rows_of_c):
                    whole = (WHOLE - parts) * np.int64(weights[first + each, lane]) + base
                    mass[each] = np.float64(whole) * 2.0**-BITS
                if told.shape[0] > 0:
                    for x in range(size):
                        told[row, x] = mass[row_of[c, x]]
                if order == 1:
                    for x in range(size):
                        joint[x] *= mass[row_of[c, x]]
                else:
                    for context in range(contexts):
                        joint[context] *= mass[row_of[c, (context // stride) % size]]
            for kind in range(2):
                for _ in range(width - 1):
                    add_charge(spent, recent, stream, kind, 0.0)
                add_charge(spent, recent, stream, kind, sip if kind == 0 else ldp)
            counts[stream] += width
            if moment + 1 < order:
                total = 0.0
                for context in range(contexts):
                    total += joint[context]
                for context in range(contexts):
                    joint[context] /= total
                drift += 2 * UNIT
            else:
                spread(joint, known, backoff, background, work)
                total = 0.0
                for context in range(contexts):
                    total += work[context]
                for context in range(contexts):
                    joint[context] = work[context] / total
                drift += (6 * size + 16) * UNIT
            moment += width
            turn += 1
        turns[group] = turn
        stopped += turn < ends[group]
        moments[stream], drifts[stream] = moment, drift
        for context in range(contexts):
            joints[stream, context] = joint[context]
    return stopped


@njit(**IN_PLACE)
def serve(
    turns: Ints, entered: Bools, cells: Ints, words: Words, released: Ints, *given: Any
) -> Iterator[int]:
    """Release one value of one stream at each call: what left, or -1 if it stopped.

    A generator has its arrays at hand, where a call would unpack each of them; it does not keep
    them alive, so whoever made it must. The value and the coin are wiped. `entered` stays true
    until whoever asked has taken the answer: if an exception breaks in before that, the stream is
    set back to the copy that `follow` made.

    Args:
        turns: As in `follow`; so are the others.
        entered: Whether the stream was copied.
        cells: The true symbol.
        words: The coin.
        released: What left.
        given: All that `follow` is given, these included.
    """
    while True:
        turns[0] = 0
        stopped = follow(*given)
        cells[0] = 0
        words[0] = np.uint64(0)
        if stopped > 0:
            entered[0] = False
            yield -1
        else:
            yield released[0]
