"""Loops of a chain over the contexts that occur: one moment forward, and entropies."""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit
from sfumato.core.portable_loops import log


@njit(cache=True, nogil=True, error_model="numpy")
def advance_pairs(
    joint: Floats,
    runs: Ints,
    data: Floats,
    targets: Ints,
    starts: Ints,
    forgets: Floats,
    single_data: Floats,
    single_targets: Ints,
    single_starts: Ints,
    backoff: Floats,
    background: Floats,
    reset: float,
    moved: Floats,
) -> None:
    """Weights of the states of the next moment; all terms are non-negative, none is subtracted.

    Args:
        joint: Weight of each state, states of one symbol in a run, that without context first.
        runs: Where the run of each symbol begins; the number of states at the end.
        data: Probabilities of the followers of each state with a context.
        targets: The state that each of them leads to.
        starts: Where the followers of each state begin.
        forgets: Probability with which a state acts as its symbol alone would.
        single_data: Probabilities of the followers of each symbol.
        single_targets: The state, with a context, that each of them leads to.
        single_starts: Where the followers of each symbol begin.
        backoff: Weight of the background after each symbol.
        background: Distribution of what follows it; that leads to states without a context.
        reset: Weight of the background in every state, before anything else.
        moved: The result.
    """
    moved[:] = 0.0
    anywhere = 0.0
    for symbol in range(backoff.size):
        forgot, here = 0.0, 0.0
        for state in range(runs[symbol], runs[symbol + 1]):
            here += joint[state]
            going = joint[state] * (1 - reset)
            forgot += going * forgets[state]
            weight = going * (1 - forgets[state])
            for place in range(starts[state], starts[state + 1]):
                moved[targets[place]] += weight * data[place]
        anywhere += here * reset + forgot * backoff[symbol]
        weight = forgot * (1 - backoff[symbol])
        for place in range(single_starts[symbol], single_starts[symbol + 1]):
            moved[single_targets[place]] += weight * single_data[place]
    for symbol in range(backoff.size):
        moved[runs[symbol]] = anywhere * background[symbol]


@njit(cache=True, nogil=True, error_model="numpy")
def pair_entropies(
    runs: Ints,
    data: Floats,
    followers: Ints,
    starts: Ints,
    forgets: Floats,
    single_data: Floats,
    single_followers: Ints,
    single_starts: Ints,
    backoff: Floats,
    background: Floats,
    reset: float,
) -> Floats:
    """Entropy of the next value in each state; a state's followers are among its symbol's."""
    entropies = np.empty(forgets.size)
    direct = np.zeros(backoff.size)
    of_background = 0.0
    for symbol in range(backoff.size):
        if background[symbol] > 0.0:
            of_background += background[symbol] * log(background[symbol])
    for symbol in range(backoff.size):
        for state in range(runs[symbol], runs[symbol + 1]):
            for place in range(starts[state], starts[state + 1]):
                direct[followers[place]] += (1 - reset) * (1 - forgets[state]) * data[place]
            single = (1 - reset) * forgets[state]
            far = reset + single * backoff[symbol]
            # What only the background leads to: all of it, less what is counted one by one.
            total = far * of_background + (far * log(far) if far > 0.0 else 0.0)
            for place in range(single_starts[symbol], single_starts[symbol + 1]):
                follower = single_followers[place]
                behind = far * background[follower]
                near = single * (1 - backoff[symbol]) * single_data[place]
                mass = direct[follower] + near + behind
                total += _x_log_x(mass) - _x_log_x(behind)
                direct[follower] = 0.0
            entropies[state] = -total
    return entropies


@njit(cache=True, nogil=True, error_model="numpy")
def _x_log_x(value: float) -> float:
    return value * log(value) if value > 0.0 else 0.0
