r"""Loops of the models: carry beliefs of many streams one moment forward.

A row of `joints` is the joint distribution of the last $m$ values of one stream, oldest value most
significant. Sums run over contexts in their order and are never regrouped, so a belief is the
same to the last bit alone or among others, and on every machine.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit

Shorts = NDArray[np.int32]
_UNIT = 2.0**-53


@njit(cache=True, nogil=True, error_model="numpy")
def advance_dense(
    joints: Floats,
    moments: Ints,
    drifts: Floats,
    which: Ints,
    known: Floats,
    backoff: Floats,
    background: Floats,
    work: Floats,
) -> None:
    """Replace joints by those of the next moment; `known` is a matrix.

    Args:
        joints: One row per stream, up to a factor; changed in place. For a chain of order m it
            stays about the first m values until the m-th is current.
        moments: Which value of each stream is current; raised by 1.
        drifts: Bound on the rounding error of each joint, as a log ratio; raised.
        which: The rows to change.
        known: One row per context.
        backoff: Weight of the background in each context.
        background: Distribution that every row is mixed with.
        work: Work space, as long as a row of `joints`.
    """
    size = background.size
    for stream in which:
        joint = joints[stream]
        if _waits(joint, moments, drifts, stream, size):
            continue
        drifts[stream] += (6 * size + 16) * _UNIT
        spread_dense(joint, known, backoff, background, work)
        _normalise(work, joint)


@njit(cache=True, nogil=True, error_model="numpy")
def advance_sparse(
    joints: Floats,
    moments: Ints,
    drifts: Floats,
    which: Ints,
    data: Floats,
    indices: Shorts,
    starts: Shorts,
    backoff: Floats,
    background: Floats,
    work: Floats,
) -> None:
    """The same for known rows in CSR form, in time proportional to their entries."""
    size = background.size
    for stream in which:
        joint = joints[stream]
        if _waits(joint, moments, drifts, stream, size):
            continue
        drifts[stream] += (6 * size + 16) * _UNIT
        spread_sparse(joint, data, indices, starts, backoff, background, work)
        _normalise(work, joint)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def spread_dense(
    joint: Floats, known: Floats, backoff: Floats, background: Floats, work: Floats
) -> None:
    """Weights of the contexts of the next moment; their sum stays the same."""
    contexts, size = known.shape
    tails = contexts // size
    _begin(joint, backoff, background, work)
    if tails == 1:
        for context in range(contexts):
            kept = joint[context] * (1 - backoff[context])
            for symbol in range(size):
                work[symbol] += kept * known[context, symbol]
    else:
        for context in range(contexts):
            kept = joint[context] * (1 - backoff[context])
            first = (context % tails) * size
            for symbol in range(size):
                work[first + symbol] += kept * known[context, symbol]


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def spread_sparse(
    joint: Floats,
    data: Floats,
    indices: Shorts,
    starts: Shorts,
    backoff: Floats,
    background: Floats,
    work: Floats,
) -> None:
    """The same for known rows in CSR form."""
    size, contexts = background.size, backoff.size
    tails = contexts // size
    _begin(joint, backoff, background, work)
    for context in range(contexts):
        kept = joint[context] * (1 - backoff[context])
        first = (context % tails) * size
        for place in range(starts[context], starts[context + 1]):
            work[first + indices[place]] += kept * data[place]


@njit(cache=True, nogil=True, error_model="numpy")
def expect_dense(
    values: Floats,
    weights: Floats,
    least: float,
    known: Floats,
    backoff: Floats,
    background: Floats,
    work: Floats,
) -> None:
    """Mean of `values` at the next moment, for each context of a weight above `least`."""
    contexts, size = known.shape
    tails = contexts // size
    for context in range(contexts):
        work[context] = 0.0
        if weights[context] > least:
            following = values[(context % tails) * size : (context % tails + 1) * size]
            told, mixed = 0.0, 0.0
            for symbol in range(size):
                told += known[context, symbol] * following[symbol]
                mixed += background[symbol] * following[symbol]
            work[context] = (1 - backoff[context]) * told + backoff[context] * mixed


@njit(cache=True, nogil=True, error_model="numpy")
def expect_sparse(
    values: Floats,
    weights: Floats,
    least: float,
    data: Floats,
    indices: Shorts,
    starts: Shorts,
    backoff: Floats,
    background: Floats,
    work: Floats,
) -> None:
    """The same for known rows in CSR form."""
    size, contexts = background.size, backoff.size
    tails = contexts // size
    mixed = np.zeros(tails)
    for tail in range(tails):
        for symbol in range(size):
            mixed[tail] += background[symbol] * values[tail * size + symbol]
    for context in range(contexts):
        work[context] = 0.0
        if weights[context] > least:
            tail, told = context % tails, 0.0
            for place in range(starts[context], starts[context + 1]):
                told += data[place] * values[tail * size + indices[place]]
            work[context] = (1 - backoff[context]) * told + backoff[context] * mixed[tail]


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _waits(joint: Floats, moments: Ints, drifts: Floats, stream: int, size: int) -> bool:
    """Raise the moment; whether the next value is still among those that the joint is about."""
    moments[stream] += 1
    reach = size
    for _ in range(moments[stream]):
        if reach >= joint.size:
            return False
        reach *= size
    _normalise(joint, joint)
    drifts[stream] += 2 * _UNIT
    return True


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _begin(joint: Floats, backoff: Floats, background: Floats, work: Floats) -> None:
    """The part of the next joint that comes from the background."""
    size = background.size
    tails = joint.size // size
    for tail in range(tails):
        mixed = 0.0
        for context in range(tail, joint.size, tails):
            mixed += joint[context] * backoff[context]
        following = work[tail * size : (tail + 1) * size]
        for symbol in range(size):
            following[symbol] = mixed * background[symbol]


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _normalise(weights: Floats, joint: Floats) -> None:
    total = 0.0
    for context in range(weights.size):
        total += weights[context]
    for context in range(weights.size):
        joint[context] = weights[context] / total
