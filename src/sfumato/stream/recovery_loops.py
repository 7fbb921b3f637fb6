r"""Loops of the receiver: from what outputs told to what is known of every value.

A track is followed in *contexts*, tuples of the last `span` states, oldest most significant. Step 0
is about the first `span` values at once, each later step adds one value. An output told something
about the last `reach` values up to its own: a factor on contexts, which therefore must be at least
as long as the longest batch. Messages are scaled to sum to 1; nothing here is part of a
certificate.

Arrays of a chain (`HiddenChain.arrays`, in this order): `initial`, one weight per context;
`moves[c, s]`, the probability of state `s` after context `c`, or no rows if the chain is sparse;
then `values`, `columns`, `rows` (CSR), `backoff` and `background` as in `MarkovChain`;
`shown[s]`, the symbol that state `s` shows.

Arrays of what was told (`Evidence.arrays`): `begins[i]`, where the likelihood of value `i` begins
in `told`, or -1; `reaches[i]`, over how many values; `ends[i]`, the last value of its batch; and
`told` itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit
from sfumato.core.portable_loops import log
from sfumato.models.chain_loops import expect, normalise, spread
from sfumato.models.learning_loops import longest_stream

Shorts = NDArray[np.int32]
ChainArrays = tuple[Floats, Floats, Floats, Shorts, Shorts, Floats, Floats, Ints]
Told = tuple[Ints, Ints, Ints, Floats]


@njit(cache=True, nogil=True, error_model="numpy")
def _weigh(
    weights: Floats, axis: int, span: int, reach: int, likelihood: Floats, shown: Ints
) -> None:
    """Multiply weights of contexts by how likely an output was whose last value is at `axis`."""
    states = shown.size
    stride = states ** (span - 1 - axis)
    if reach == 1:
        for context in range(weights.size):
            weights[context] *= likelihood[shown[(context // stride) % states]]
    else:
        tuples = states**reach
        for context in range(weights.size):
            weights[context] *= likelihood[(context // stride) % tuples]


@njit(cache=True, nogil=True, error_model="numpy")
def _forward(chain: ChainArrays, weights: Floats, moved: Floats) -> None:
    """Weights of the contexts one value later."""
    _, moves, values, columns, rows, backoff, background, shown = chain
    states = shown.size
    if len(moves) == 0:
        spread(weights, (values, columns, rows), backoff, background, moved)
        return
    tails = weights.size // states
    for context in range(moved.size):
        moved[context] = 0.0
    for context in range(weights.size):
        first, held = (context % tails) * states, weights[context]
        for state in range(states):
            moved[first + state] += held * moves[context, state]


@njit(cache=True, nogil=True, error_model="numpy")
def _backward(chain: ChainArrays, later: Floats, every: Floats, means: Floats) -> None:
    """Mean of what comes later, for each context one value before."""
    _, moves, values, columns, rows, backoff, background, shown = chain
    states = shown.size
    if len(moves) == 0:
        expect(later, every, 0.0, (values, columns, rows), backoff, background, means)
        return
    tails = later.size // states
    for context in range(means.size):
        first, total = (context % tails) * states, 0.0
        for state in range(states):
            total += moves[context, state] * later[first + state]
        means[context] = total


@njit(cache=True, nogil=True, error_model="numpy")
def told_at(weights: Floats, told: Told, first: int, moment: int, span: int, shown: Ints) -> None:
    """Weigh contexts by the output whose last value is that of a moment, if there is one."""
    begins, reaches, _, likelihoods = told
    begin = begins[first + moment]
    if begin >= 0:
        axis = min(moment, span - 1)
        _weigh(weights, axis, span, reaches[first + moment], likelihoods[begin:], shown)


@njit(cache=True, nogil=True, error_model="numpy")
def filtered(
    chain: ChainArrays, told: Told, first: int, length: int, span: int, kept: Floats
) -> float:
    """Weights of contexts at each step, given all outputs so far; log probability of all."""
    shown = chain[7]
    kept[0] = chain[0]
    for moment in range(min(span, length)):
        told_at(kept[0], told, first, moment, span, shown)
    evidence = log(normalise(kept[0], kept[0]))
    for step in range(1, length - span + 1):
        _forward(chain, kept[step - 1], kept[step])
        told_at(kept[step], told, first, step + span - 1, span, shown)
        evidence += log(normalise(kept[step], kept[step]))
    return evidence


@njit(cache=True, nogil=True, error_model="numpy")
def log_probabilities(
    chain: ChainArrays, told: Told, starts: Ints, span: int, found: Floats
) -> None:
    """Log probability of all outputs of each stream, up to factors of the likelihoods."""
    kept = np.empty((max(1, longest_stream(starts) - span + 1), chain[0].size))
    for stream in range(starts.size - 1):
        first, length = starts[stream], starts[stream + 1] - starts[stream]
        found[stream] = 0.0
        if length > 0:
            found[stream] = filtered(chain, told, first, length, span, kept)


@njit(cache=True, nogil=True, error_model="numpy")
def last_states(chain: ChainArrays, told: Told, starts: Ints, found: Floats) -> None:
    """The distribution of the last state of each stream given all outputs, for contexts of one."""
    kept = np.empty((max(1, longest_stream(starts)), chain[0].size))
    for stream in range(starts.size - 1):
        first, length = starts[stream], starts[stream + 1] - starts[stream]
        found[stream] = chain[0]
        if length > 0:
            filtered(chain, told, first, length, 1, kept)
            found[stream] = kept[length - 1]


@njit(cache=True, nogil=True, error_model="numpy")
def _spread_out(
    weights: Floats, later: Floats, axis: int, span: int, shown: Ints, posterior: Floats
) -> None:
    """The distribution of the value at one axis of a context."""
    states = shown.size
    stride = states ** (span - 1 - axis)
    for symbol in range(posterior.size):
        posterior[symbol] = 0.0
    for context in range(weights.size):
        state = (context // stride) % states
        posterior[shown[state]] += weights[context] * later[context]
    normalise(posterior, posterior)


@njit(cache=True, nogil=True, error_model="numpy")
def posteriors(
    chain: ChainArrays, told: Told, starts: Ints, span: int, lag: int, found: Floats
) -> float:
    """The distribution of every value given the outputs until `lag` values later.

    An output leaves with the last value of its batch, so a batch that a value's horizon reaches
    into counts as a whole.

    Args:
        chain: What is known beforehand.
        told: What the outputs told.
        starts: Where the values of each stream begin, and the end.
        span: Values of a context.
        lag: How many values later; negative for all there are.
        found: One row per value; the result.

    Returns:
        Log probability of all outputs, up to factors of the likelihoods.
    """
    contexts, shown, ends = chain[0].size, chain[7], told[2]
    kept = np.empty((max(1, longest_stream(starts) - span + 1), contexts))
    later, means, every = np.empty(contexts), np.empty(contexts), np.ones(contexts)
    begun = np.empty(contexts)
    evidence = 0.0
    for stream in range(starts.size - 1):
        first, length = starts[stream], starts[stream + 1] - starts[stream]
        if length == 0:
            continue
        evidence += filtered(chain, told, first, length, span, kept)
        moment = length - 1
        while moment >= 0:
            # All values that have this horizon, the latest first.
            horizon = length - 1
            if lag >= 0:
                horizon = ends[first + min(moment + lag, length - 1)]
            later[:] = 1.0
            step = max(horizon - span + 1, 0)
            early = horizon < min(span, length) - 1
            if early:
                # Step 0 holds outputs beyond the horizon, too: begin anew without them.
                begun[:] = chain[0]
                for seen in range(horizon + 1):
                    told_at(begun, told, first, seen, span, shown)
            while moment >= 0:
                if lag >= 0 and ends[first + min(moment + lag, length - 1)] != horizon:
                    break
                # A value stands in the contexts of the steps up to its own moment.
                while step > moment:
                    told_at(later, told, first, step + span - 1, span, shown)
                    _backward(chain, later, every, means)
                    later[:] = means
                    normalise(later, later)
                    step -= 1
                weights = begun if early else kept[step]
                _spread_out(weights, later, moment - step, span, shown, found[first + moment])
                moment -= 1
    return evidence


@njit(cache=True, nogil=True, error_model="numpy")
def moved_counts(
    chain: ChainArrays, told: Told, starts: Ints, span: int, symbols: int, flows: Floats
) -> None:
    """Expected moves from one symbol to another, summed over all values of all streams.

    A chain with contexts of one value has a matrix; longer contexts hold pairs themselves.
    """
    contexts, moves, shown = chain[0].size, chain[1], chain[7]
    states = shown.size
    kept = np.empty((max(1, longest_stream(starts) - span + 1), contexts))
    later, means, every = np.empty(contexts), np.empty(contexts), np.ones(contexts)
    pairs = np.empty((symbols, symbols))
    for stream in range(starts.size - 1):
        first, length = starts[stream], starts[stream + 1] - starts[stream]
        if length < 2:
            continue
        filtered(chain, told, first, length, span, kept)
        later[:] = 1.0
        for step in range(max(0, length - span), -1, -1):
            # Pairs whose later value is the last of this step; at step 0 all pairs in it.
            earliest = 1 if step == 0 else span - 1
            for axis in range(min(span, length) - 1, max(earliest, 1) - 1, -1):
                if span > 1:
                    pairs[:] = 0.0
                    stride = states ** (span - 1 - axis)
                    for context in range(contexts):
                        here = (context // stride) % states
                        there = (context // (stride * states)) % states
                        pairs[shown[there], shown[here]] += kept[step, context] * later[context]
                    pairs /= pairs.sum()
                    flows += pairs
            if step > 0:
                told_at(later, told, first, step + span - 1, span, shown)
                if span == 1:
                    pairs[:] = 0.0
                    for before in range(states):
                        held = kept[step - 1, before]
                        for state in range(states):
                            pairs[shown[before], shown[state]] += (
                                held * moves[before, state] * later[state]
                            )
                    pairs /= pairs.sum()
                    flows += pairs
                _backward(chain, later, every, means)
                later[:] = means
                normalise(later, later)


@njit(cache=True, nogil=True, error_model="numpy")
def gather(groups: Ints, means: Floats, squares: Floats, sums: Floats, variance: Floats) -> None:
    """Add means and variances of rows to their groups; `squares` are means of squares."""
    for row in range(groups.size):
        group = groups[row]
        for column in range(means.shape[1]):
            mean = means[row, column]
            sums[group, column] += mean
            variance[group, column] += squares[row, column] - mean * mean
