"""Loops of the receiver that find whole tracks: the likeliest one, and tracks drawn at random.

What a chain and what was told are as arrays, and what a context is: see `recovery_loops`.
"""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit
from sfumato.models.chain_loops import normalise
from sfumato.models.learning_loops import longest_stream
from sfumato.stream.recovery_loops import ChainArrays, Told, filtered, told_at


@njit(cache=True, nogil=True, error_model="numpy")
def likeliest_tracks(chain: ChainArrays, told: Told, starts: Ints, span: int, tracks: Ints) -> None:
    """The values along the most probable path of states of each stream, given all outputs.

    The most probable values (Viterbi) where each state shows a symbol of its own.
    """
    initial, moves, values, columns, rows, backoff, background, shown = chain
    contexts, states = initial.size, shown.size
    tails = contexts // states
    before = np.empty((max(1, longest_stream(starts) - span + 1), contexts), dtype=np.int32)
    score, best = np.empty(contexts), np.empty(contexts)
    for stream in range(starts.size - 1):
        first, length = starts[stream], starts[stream + 1] - starts[stream]
        if length == 0:
            continue
        score[:] = initial
        for moment in range(min(span, length)):
            told_at(score, told, first, moment, span, shown)
        if length < span:
            # Values after the end are summed over, not chosen.
            stride = states ** (span - length)
            for head in range(contexts // stride):
                total = 0.0
                for rest in range(stride):
                    total += score[head * stride + rest]
                    score[head * stride + rest] = 0.0
                score[head * stride] = total
        for step in range(1, length - span + 1):
            best[:] = -1.0
            for context in range(contexts):
                head = (context % tails) * states
                held = score[context]
                if len(moves) > 0:
                    for state in range(states):
                        value = held * moves[context, state]
                        if value > best[head + state]:
                            best[head + state] = value
                            before[step, head + state] = context
            if len(moves) == 0:
                for tail in range(tails):
                    widest, source = -1.0, 0
                    for context in range(tail, contexts, tails):
                        if score[context] * backoff[context] > widest:
                            widest, source = score[context] * backoff[context], context
                    for state in range(states):
                        best[tail * states + state] = widest * background[state]
                        before[step, tail * states + state] = source
                for context in range(contexts):
                    head, held = (context % tails) * states, score[context]
                    for place in range(rows[context], rows[context + 1]):
                        state, kept = columns[place], (1 - backoff[context]) * values[place]
                        value = held * (kept + backoff[context] * background[state])
                        if value > best[head + state]:
                            best[head + state] = value
                            before[step, head + state] = context
            score[:] = best
            told_at(score, told, first, step + span - 1, span, shown)
            normalise(score, score)
        context = int(np.argmax(score))
        for step in range(max(0, length - span), 0, -1):
            tracks[first + step + span - 1] = shown[context % states]
            context = int(before[step, context])
        for moment in range(min(span, length)):
            tracks[first + moment] = shown[(context // states ** (span - 1 - moment)) % states]


@njit(cache=True, nogil=True, error_model="numpy")
def draw_tracks(
    chain: ChainArrays,
    told: Told,
    first: int,
    length: int,
    span: int,
    coins: Floats,
    tracks: Ints,
) -> None:
    """Draw whole sequences of one stream as probable as the outputs make them, one per row.

    Args:
        chain: What is known beforehand.
        told: What the outputs told.
        first: Where the values of the stream begin.
        length: How many there are.
        span: Values of a context.
        coins: Numbers in [0, 1), a row for each sequence, one per step.
        tracks: The result.
    """
    _, moves, values, columns, rows, backoff, background, shown = chain
    contexts, states = chain[0].size, shown.size
    tails = contexts // states
    kept = np.empty((max(1, length - span + 1), contexts))
    filtered(chain, told, first, length, span, kept)
    last = max(0, length - span)
    running, options = np.cumsum(kept[last]), np.empty(states)
    for row in range(len(tracks)):
        place = np.searchsorted(running, coins[row, last] * running[-1], side="right")
        context = int(min(place, contexts - 1))
        for step in range(last, 0, -1):
            state, tail = context % states, context // states
            tracks[row, step + span - 1] = shown[state]
            total = 0.0
            for oldest in range(states):
                # Contexts that lead here differ in their oldest state.
                source = oldest * tails + tail
                move = 0.0
                if len(moves) > 0:
                    move = moves[source, state]
                else:
                    for place in range(rows[source], rows[source + 1]):
                        if columns[place] == state:
                            move = (1 - backoff[source]) * values[place]
                    move += backoff[source] * background[state]
                total += kept[step - 1, source] * move
                options[oldest] = total
            place = np.searchsorted(options, coins[row, step - 1] * total, side="right")
            context = int(min(place, states - 1)) * tails + tail
        for moment in range(min(span, length)):
            tracks[row, moment] = shown[(context // states ** (span - 1 - moment)) % states]
