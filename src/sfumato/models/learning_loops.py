r"""Loops of learning: what is expected of hidden values, given what outputs told about them.

A stream is followed in *contexts*, tuples of its last `span` values, oldest most significant. The
first context is about the first `span` values at once; each later value is a step. An output told
something about the last `reach` values up to its own: a factor on contexts.

Messages forward sum to 1 at each step and what they summed to before divides the messages back, so
that their products are probabilities whatever the length of a stream. Sums run in one order, so
that the same outputs lead to the same bits on every machine.
"""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit
from sfumato.core.fixed_sums import POINT
from sfumato.core.portable_loops import log
from sfumato.models.chain_loops import normalise

Told = tuple[Ints, Ints, Floats]
Sums = tuple[Ints, Ints]
_SCALE = 2.0**POINT
_BELOW = (1 << POINT) - 1


@njit(cache=True, nogil=True, error_model="numpy")
def _weigh(weights: Floats, axis: int, span: int, states: int, told: Told, value: int) -> None:
    """Multiply weights by how likely the output was that ends at a value, if there is one."""
    begins, reaches, likelihood = told
    begin = begins[value]
    if begin < 0:
        return
    stride = states ** (span - 1 - axis)
    tuples = states ** reaches[value]
    if stride == 1 and tuples == weights.size:
        for context in range(weights.size):
            weights[context] *= likelihood[begin + context]
        return
    for context in range(weights.size):
        weights[context] *= likelihood[begin + (context // stride) % tuples]


@njit(cache=True, nogil=True, error_model="numpy")
def _forward(
    moves: Floats,
    told: Told,
    first: int,
    length: int,
    seen: int,
    span: int,
    kept: Floats,
    scales: Floats,
) -> int:
    """Weights of contexts at each step, given all outputs so far; how many steps there were."""
    contexts, states = moves.shape
    tails, step = contexts // states, 0
    moment = seen
    while moment < min(span, seen + length):
        _weigh(kept[0], moment, span, states, told, first + moment - seen)
        moment += 1
    scales[0] = normalise(kept[0], kept[0])
    while moment < seen + length:
        step += 1
        here, moved = kept[step - 1], kept[step]
        moved[:] = 0.0
        for context in range(contexts):
            begin, held = (context % tails) * states, here[context]
            for state in range(states):
                moved[begin + state] += held * moves[context, state]
        _weigh(moved, span - 1, span, states, told, first + moment - seen)
        scales[step] = normalise(moved, moved)
        moment += 1
    return step


@njit(cache=True, nogil=True, error_model="numpy")
def _back(later: Floats, backs: Floats, scale: float, means: Floats) -> None:
    """Mean of what comes later, for each context one value before."""
    states, contexts = backs.shape
    tails = contexts // states
    means[:] = 0.0
    for state in range(states):
        if tails == 1:
            held = later[state] / scale
            for context in range(contexts):
                means[context] += backs[state, context] * held
        else:
            for context in range(contexts):
                held = later[(context % tails) * states + state] / scale
                means[context] += backs[state, context] * held


@njit(cache=True, nogil=True, error_model="numpy")
def _expect(
    moves: Floats,
    backs: Floats,
    told: Told,
    first: int,
    length: int,
    seen: int,
    span: int,
    share: float,
    kept: Floats,
    scales: Floats,
    later: Floats,
    means: Floats,
    pairs: Floats,
) -> int:
    """Add up what is expected of the moves of one stream, but for their own probabilities.

    Args:
        moves: Probability of each value after each context.
        backs: The same, transposed.
        told: As in `expected_counts`.
        first: Where its values begin.
        length: How many there are, one at least.
        seen: How many came before these.
        span: Values of a context.
        share: How much of it counts.
        kept: Weights of contexts before its values, as the first row; gets those at each step.
        scales: Gets what they summed to.
        later: Gets what comes later, for each context at the first step.
        means: Room for one row.
        pairs: Gets the sums.
    """
    contexts, states = moves.shape
    tails = contexts // states
    last = _forward(moves, told, first, length, seen, span, kept, scales)
    later[:] = 1.0
    for step in range(last, 0, -1):
        _weigh(later, span - 1, span, states, told, first + length - 1 - (last - step))
        for context in range(contexts):
            # The probability of the move itself is the same at every step: put in at the end.
            begin = (context % tails) * states
            held = share * (kept[step - 1, context] / scales[step])
            for state in range(states):
                pairs[context, state] += held * later[begin + state]
        _back(later, backs, scales[step], means)
        later[:] = means
    return last


@njit(cache=True, nogil=True, error_model="numpy")
def expected_counts(
    moves: Floats,
    told: Told,
    starts: Ints,
    seen: Ints,
    before: Floats,
    shares: Floats,
    span: int,
    begun: Floats,
    followed: Floats,
    scores: Floats,
) -> None:
    """Add up what is expected of the values of many streams, given all their outputs.

    Args:
        moves: Probability of each value after each context.
        told: Where the likelihood of the output that ends at a value begins, or -1; over how many
            values it is; the likelihoods.
        starts: Where the values of each stream begin, and the end.
        seen: How many values of each stream came before these.
        before: Weights of the contexts of each stream before its values here; gets those after.
        shares: How much of each stream counts.
        span: Values of a context.
        begun: Gets how often streams began with each context, by how many of its values there are.
        followed: Gets how often each value followed each context.
        scores: Gets the log probability of the outputs of each stream.
    """
    contexts, states = moves.shape
    longest = longest_stream(starts)
    kept, scales = np.empty((longest + 1, contexts)), np.empty(longest + 1)
    later, means = np.empty(contexts), np.empty(contexts)
    pairs, backs = np.zeros((contexts, states)), moves.T.copy()
    for stream in range(starts.size - 1):
        first, length = starts[stream], starts[stream + 1] - starts[stream]
        scores[stream] = 0.0
        if length == 0:
            continue
        kept[0] = before[stream]
        part, share = (first, length, seen[stream], span), shares[stream]
        last = _expect(moves, backs, told, *part, share, kept, scales, later, means, pairs)
        before[stream] = kept[last]
        for step in range(last + 1):
            scores[stream] += log(scales[step])
        if seen[stream] == 0:
            for context in range(contexts):
                first_one = kept[0, context] * later[context]
                begun[min(length, span) - 1, context] += shares[stream] * first_one
    for context in range(contexts):
        for state in range(states):
            followed[context, state] += pairs[context, state] * moves[context, state]


@njit(cache=True, nogil=True, error_model="numpy")
def fixed_counts(
    moves: Floats,
    told: Told,
    starts: Ints,
    initial: Floats,
    span: int,
    begun: Sums,
    followed: Sums,
    scores: Floats,
) -> None:
    """The same of whole streams, in sums that no order of streams changes (`FixedSum`).

    Args:
        moves: Probability of each value after each context.
        told: As in `expected_counts`.
        starts: Where the values of each stream begin, and the end.
        initial: Probability of each context to begin with.
        span: Values of a context.
        begun: Gets how often streams began with each context: whole parts, and what is left.
        followed: Gets how often each value followed each context.
        scores: Gets the log probability of the outputs of each stream.
    """
    contexts, states = moves.shape
    longest = longest_stream(starts)
    kept, scales = np.empty((longest + 1, contexts)), np.empty(longest + 1)
    later, means = np.empty(contexts), np.empty(contexts)
    pairs, backs = np.empty((contexts, states)), moves.T.copy()
    for stream in range(starts.size - 1):
        first, length = starts[stream], starts[stream + 1] - starts[stream]
        scores[stream] = 0.0
        if length == 0:
            continue
        kept[0] = initial
        pairs[:] = 0.0
        part = (first, length, 0, span)
        last = _expect(moves, backs, told, *part, 1.0, kept, scales, later, means, pairs)
        for step in range(last + 1):
            scores[stream] += log(scales[step])
        place = min(length, span) - 1
        for context in range(contexts):
            _add(begun, place, context, kept[0, context] * later[context])
            if last > 0:
                for state in range(states):
                    count = pairs[context, state] * moves[context, state]
                    _add(followed, context, state, count)


@njit(cache=True, nogil=True, error_model="numpy")
def _add(sums: Sums, row: int, column: int, number: float) -> None:
    """Add a number to a cell, rounded to the fixed point."""
    whole, parts = sums
    floor = np.floor(number)
    held = parts[row, column] + np.int64(np.rint((number - floor) * _SCALE))
    whole[row, column] += np.int64(floor) + (held >> POINT)
    parts[row, column] = held & _BELOW


@njit(cache=True, nogil=True, error_model="numpy")
def longest_stream(starts: Ints) -> int:
    """Values of the longest stream, of where each begins, and the end."""
    longest = 0
    for stream in range(starts.size - 1):
        longest = max(longest, starts[stream + 1] - starts[stream])
    return longest


@njit(cache=True, nogil=True, error_model="numpy")
def log_likelihoods(
    moves: Floats, told: Told, starts: Ints, initial: Floats, span: int, scores: Floats
) -> None:
    """Log probability of all outputs of each stream, up to factors of the likelihoods."""
    contexts, longest = initial.size, longest_stream(starts)
    kept, scales = np.empty((longest + 1, contexts)), np.empty(longest + 1)
    for stream in range(starts.size - 1):
        first, length = starts[stream], starts[stream + 1] - starts[stream]
        scores[stream] = 0.0
        if length == 0:
            continue
        kept[0] = initial
        last = _forward(moves, told, first, length, 0, span, kept, scales)
        for step in range(last + 1):
            scores[stream] += log(scales[step])


@njit(cache=True, nogil=True, error_model="numpy")
def step_scores(
    moves: Floats, told: Told, starts: Ints, initial: Floats, span: int, scores: Floats
) -> None:
    """Log probability of each output given those of its stream before it, up to its own factor.

    Args:
        moves: Probability of each value after each context.
        told: As in `expected_counts`.
        starts: Where the values of each stream begin, and the end.
        initial: Probability of each context to begin with.
        span: Values of a context.
        scores: Gets one number a value; 0 where nothing was told.
    """
    contexts, states = moves.shape
    tails = contexts // states
    here, moved = np.empty(contexts), np.empty(contexts)
    for stream in range(starts.size - 1):
        here[:] = initial
        for value in range(starts[stream], starts[stream + 1]):
            moment = value - starts[stream]
            if moment >= span:
                moved[:] = 0.0
                for context in range(contexts):
                    begin, held = (context % tails) * states, here[context]
                    for state in range(states):
                        moved[begin + state] += held * moves[context, state]
                here[:] = moved
            scores[value] = 0.0
            if told[0][value] >= 0:
                _weigh(here, min(moment, span - 1), span, states, told, value)
                scores[value] = log(normalise(here, here))
