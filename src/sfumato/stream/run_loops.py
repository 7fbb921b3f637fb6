"""One loop for many steps of many streams: allow, choose, certify, draw, inform, charge, predict.

Some streams at a time, one value of each: a processor waits for memory and for results most of the
time if it has one stream to think of, and hardly if it has several. Each goes through all of its
values in a batch, so that its belief stays in the nearest memory; then the next one takes its
place. The stages are those of `next_moves.py`, `stepping.py`, `draw_loops.py` and, for predictions,
`models/carry_loops.py`: a stream gets the same answers here, alone and in a plan.

What the loop does not cover (a belief that the policy misses, a refusal, a substitute, a channel
that is solved at its step) stops its stream before that value: whoever called does the one step,
and calls again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.core.account_loops import add_charge
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.compiled import IN_PLACE, njit
from sfumato.core.numerics import UNIT
from sfumato.models.carry_loops import carry_on
from sfumato.models.chain_loops import Known
from sfumato.solver.policy import WHOLE
from sfumato.solver.solving_tables import HEADER
from sfumato.stream.claim_loops import claim, sign_off
from sfumato.stream.draw_loops import BITS, Words, draw_column, inform_one
from sfumato.stream.fleet_answers import RELEASED, REPEATED, SKIPPED, SUPPRESSED
from sfumato.stream.kept_channel_loops import Shorts
from sfumato.stream.next_moves import (
    GONE,
    HALT,
    NO_GUESS,
    OBSERVE,
    PASS,
    PASSING,
    PAUSE,
    REPEAT,
    STOP,
    TELL,
    next_move,
)
from sfumato.stream.row_loops import best_constant, column_of
from sfumato.stream.sighted_solve_loops import Program, solve_sighted_channels
from sfumato.stream.solved_channel_loops import column_of_signal, drawn_column, weight_of
from sfumato.stream.stepping import PREPARED, SIDE_BY_SIDE, prepare

_MODE, _ORDER, _EXHAUSTED, _UNKNOWN, _SIGHTED, _GUESS, _FIRST, _SYMBOLS = range(8)


@njit(**IN_PLACE)
def follow(
    options: Ints,
    claims: Ints,
    thread: int,
    nodes: Ints,
    local: Floats,
    row_of: Shorts,
    costs: Floats,
    weights: Floats,
    outputs: Ints,
    extremes: Floats,
    splits: Ints,
    tree: Ints,
    thresholds: Floats,
    candidates: Ints,
    rises: Floats,
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
    chosen_of: Ints,
    parts_of: Ints,
    blends_of: Ints,
    columns: Ints,
    masses: Floats,
    lanes: Ints,
    allowed: Floats,
    due: Floats,
    blends: Ints,
    beliefs: Floats,
    reached: Floats,
    figures: Floats,
    leaves: Ints,
    mass: Floats,
    outs: Floats,
    work: Floats,
    crossed: Floats,
    program: Program | None,
) -> int:
    """Let some streams go through their values; how many of them stopped before their end.

    Arrays that belong together follow the first of them:
        options: Mode; order of the chain; what to do when the budget is gone, and with unknown
            values; whether outputs have signals; how constants are found; whether the streams
            are to be copied to `old_...` first; how many symbols a batch is made of.
        claims: Which streams go on, as places in `streams`, and which of them a thread has taken;
            see `claim_loops.py`.
        thread: Who this is among those that share them.
        nodes: Kept channels, as in `LoopTables`.
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
        lanes: Work space: for each stream under way its place in `streams`, itself, its channel,
            mixing weight, status and next move, and streams that go on. What they may leak, what
            they do and the integers they mix with, or words of their channels, follow, then the
            work space of `prepare`, and that of `carry_on`.
        program: Work space of far-sighted channels that are solved at their step; None where
            channels are kept, and then nothing of it is compiled.
    """
    size, contexts, width = background.size, joints.shape[1], rule_counts[1]
    observed, order, sighted = options[_MODE] == OBSERVE, options[_ORDER], options[_SIGHTED] == 1
    groups, which, chosen, parts = lanes[0], lanes[1], lanes[2], lanes[3]
    status, moves, on = lanes[4], lanes[5], lanes[6]
    stopped, entering, end, under_way, more = 0, 0, 0, 0, True
    while True:
        while under_way < SIDE_BY_SIDE and (entering < end or more):
            if entering == end:
                # What is left of others is taken by those only who have nothing else to do.
                entering, end = claim(claims, thread, under_way > 0)
                more = entering < end
                continue
            stream = streams[entering]
            if options[_FIRST] == 1:
                for context in range(contexts):
                    old_joints[entering, context] = joints[stream, context]
                old_moments[entering], old_drifts[entering] = moments[stream], drifts[stream]
                old_counts[entering], old_last[entering] = counts[stream], last[stream]
                for kind in range(2):
                    old_spent[entering, kind] = spent[stream, kind]
                    for step in range(recent.shape[1]):
                        old_recent[entering, step, kind] = recent[stream, step, kind]
                entered[entering] = True
            if turns[entering] < ends[entering]:
                groups[under_way], which[under_way] = entering, stream
                under_way += 1
            entering += 1
        if under_way == 0:
            break
        more = True
        for at in range(under_way):
            row = rows[turns[groups[at]]]
            passing = outcomes[row] == SKIPPED if observed else cells[row] == PASSING
            moves[at] = next_move(
                passing, rule_counts, rule_amounts, counts, spent, recent, which[at], allowed, at
            )
        prepare(
            nodes,
            local,
            row_of,
            costs,
            weights,
            extremes,
            splits,
            tree,
            thresholds,
            candidates,
            rises,
            repair_limit,
            scale,
            order,
            joints,
            moments,
            drifts,
            under_way,
            which,
            chosen,
            parts,
            blends,
            due,
            status,
            allowed,
            beliefs,
            reached,
            figures,
            leaves,
            mass,
            outs,
        )
        if program is not None:
            solve_sighted_channels(
                nodes,
                row_of,
                costs,
                outputs,
                splits,
                thresholds,
                candidates,
                order,
                joints,
                moments,
                drifts,
                under_way,
                which,
                chosen,
                parts,
                blends,
                due,
                status,
                allowed,
                program,
            )
        for at in range(under_way):
            stream, move, c, used = which[at], moves[at], chosen[at], parts[at]
            row = rows[turns[groups[at]]]
            if masses.shape[0] > 0:
                for x in range(size):
                    masses[row, x] = beliefs[at, x]
            if move == HALT or (move == TELL and status[at] != PREPARED):
                moves[at] = HALT
                continue
            outcome, place, column, informs = RELEASED, -1, -1, False
            sip, ldp, moment = due[at, 0], due[at, 1], moments[stream]
            stride = 1
            if order > 1:
                for _ in range(order - 1 - moment):
                    stride *= size
            # Where nothing new leaves, the plan says which of its two silences it is.
            silent = outcomes[row] != RELEASED if observed else move == GONE or cells[row] < 0
            if move == PASS:
                outcome = SKIPPED
            elif silent:
                fallback = options[_EXHAUSTED] if move == GONE else options[_UNKNOWN]
                if fallback == STOP:
                    moves[at] = HALT
                    continue
                sip, ldp, outcome = 0.0, 0.0, SUPPRESSED
                if fallback == REPEAT and last[stream] >= 0:
                    outcome, place = REPEATED, last[stream]
                withheld[row] = move != GONE
            elif move == GONE:
                moves[at] = HALT
                continue
            elif move == PAUSE:
                if options[_GUESS] == NO_GUESS or stride > 1:
                    moves[at] = HALT
                    continue
                place = best_constant(losses, beliefs[at], reached[at])
                column = 0 if sighted else -1
            elif program is not None:
                if observed:
                    column = column_of_signal(blends[at], signals[row])
                else:
                    coin = np.int64(words[row] >> np.uint64(64 - BITS))
                    column = drawn_column(nodes, blends[at], cells[row], coin)
                if column < 0:
                    moves[at] = HALT
                    continue
                place = blends[at, HEADER + column]
                informs = used < WHOLE
            else:
                if observed:
                    column = column_of(nodes, outputs, c, released[row], signals[row], sighted)
                else:
                    column = draw_column(
                        nodes, row_of, weights, c, used, blends, at, cells[row], words[row]
                    )
                if column < 0:
                    moves[at] = HALT
                    continue
                place = outputs[nodes[c, 2] + column]
                informs = nodes[c, 1] > 1 and used < WHOLE
            if observed:
                sent = column if sighted else -1
                if outcomes[row] != outcome or released[row] != place or signals[row] != sent:
                    moves[at] = HALT
                    continue
            else:
                outcomes[row], released[row], signals[row] = outcome, place, column
            sequences[row] = moment
            charges[row, 0], charges[row, 1] = sip, ldp
            if told.shape[0] > 0:
                before[row], tells[row] = last[stream], informs
                if masses.shape[0] > 0 and outcome == RELEASED and move == TELL:
                    chosen_of[row], parts_of[row], columns[row] = c, used, column
                    held = nodes[c, 4] if used > 0 else 0
                    if program is not None:
                        held = nodes[0, 3]
                    for y in range(held):
                        blends_of[row, y] = blends[at, y]
            # From here on the stream moves: first by what was told, then to its next moment.
            if outcome == RELEASED:
                last[stream] = place if width == 1 else place % options[_SYMBOLS]
            if informs and program is not None:
                for x in range(size):
                    mass[x] = np.float64(weight_of(nodes, blends[at], x, column)) * 2.0**-BITS
                    joints[stream, x] *= mass[x]
                    if told.shape[0] > 0:
                        told[row, x] = mass[x]
                drifts[stream] += 4 * UNIT
            elif informs:
                inform_one(
                    nodes,
                    row_of,
                    weights,
                    c,
                    used,
                    blends,
                    at,
                    column,
                    joints,
                    stream,
                    stride,
                    mass,
                )
                drifts[stream] += 4 * UNIT
                if told.shape[0] > 0:
                    for x in range(size):
                        told[row, x] = mass[row_of[c, x]]
            for kind in range(2):
                for _ in range(width - 1):
                    add_charge(spent, recent, stream, kind, 0.0)
                add_charge(spent, recent, stream, kind, sip if kind == 0 else ldp)
            counts[stream] += width
        going = 0
        for at in range(under_way):
            if moves[at] != HALT:
                on[going] = which[at]
                going += 1
                turns[groups[at]] += 1
        carry_on(
            joints,
            moments,
            drifts,
            on,
            going,
            order,
            width,
            known,
            backoff,
            background,
            work,
            crossed,
        )
        left = 0
        for at in range(under_way):
            group = groups[at]
            stopped += moves[at] == HALT
            if moves[at] != HALT and turns[group] < ends[group]:
                groups[left], which[left] = group, which[at]
                left += 1
        under_way = left
    sign_off(claims, stopped)
    return stopped
