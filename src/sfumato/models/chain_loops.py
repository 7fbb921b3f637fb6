r"""Loops of the models: carry beliefs of many streams one moment forward.

A row of `joints` is the joint distribution of the last $m$ values of one stream, oldest value most
significant. Sums run over contexts in their order and are never regrouped, so a belief is the
same to the last bit alone or among others, and on every machine.

Known rows are a matrix, or the three arrays of a CSR matrix: the loops are compiled for either.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba.core.types import Array
from numba.extending import overload
from numpy.typing import NDArray

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import IN_PLACE, njit
from sfumato.core.lane_vectors import four, item, put, same

Known: TypeAlias = Floats | tuple[Floats, NDArray[np.int32], NDArray[np.int32]]
_UNIT = 2.0**-53


@njit(**IN_PLACE)
def advance(
    joints: Floats,
    moments: Ints,
    drifts: Floats,
    which: Ints,
    known: Known,
    backoff: Floats,
    background: Floats,
    work: Floats,
) -> None:
    """Replace joints by those of the next moment.

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
        # Every entry is a sum of `size` terms of a few roundings each, and is divided by a sum.
        drifts[stream] += (6 * size + 16) * _UNIT
        spread(joint, known, backoff, background, work)
        normalise(work, joint)


@njit(**IN_PLACE, forceinline=True)
def spread(joint: Floats, known: Known, backoff: Floats, background: Floats, work: Floats) -> None:
    """Weights of the contexts of the next moment; their sum stays the same."""
    tails = joint.size // background.size
    # Contexts that differ in their oldest value alone lead to the same ones.
    for tail in range(tails):
        mixed = 0.0
        for context in range(tail, joint.size, tails):
            mixed += joint[context] * backoff[context]
        _add_rows(known, joint, backoff, background, mixed, tail, work)


@njit(cache=True, nogil=True, error_model="numpy")
def expect(
    values: Floats,
    weights: Floats,
    least: float,
    known: Known,
    backoff: Floats,
    background: Floats,
    work: Floats,
) -> None:
    """Mean of `values` at the next moment, for each context of a weight above `least`."""
    size = background.size
    tails = backoff.size // size
    mixed = np.zeros(tails)
    for tail in range(tails):
        for symbol in range(size):
            mixed[tail] += background[symbol] * values[tail * size + symbol]
    for context in range(backoff.size):
        work[context] = 0.0
        if weights[context] > least:
            tail = context % tails
            mean = _row_mean(known, context, values[tail * size : (tail + 1) * size])
            work[context] = (1 - backoff[context]) * mean + backoff[context] * mixed[tail]


def _add_rows(
    known: Known,
    joint: Floats,
    backoff: Floats,
    background: Floats,
    mixed: float,
    tail: int,
    work: Floats,
) -> None:
    """The background, times a weight, and the known rows that lead to a tail, times theirs."""


def _row_mean(known: Known, context: int, values: Floats) -> float:  # type: ignore[empty-body]
    """Mean of `values` under a known row."""


def _add_dense(
    known: Any,
    joint: Floats,
    backoff: Floats,
    background: Floats,
    mixed: float,
    tail: int,
    work: Floats,
) -> None:
    size = background.size
    tails, begin, share = joint.size // size, tail * size, same(mixed)
    # Sixteen columns at a time stay in registers while all rows are added, one after the other.
    many, some = size - size % 16, size - size % 4
    for x in range(0, many, 16):
        a, b = share * four(background, x), share * four(background, x + 4)
        c, d = share * four(background, x + 8), share * four(background, x + 12)
        for context in range(tail, joint.size, tails):
            weight = same(item(joint, context) * (1 - item(backoff, context)))
            row = context * size + x
            a += weight * four(known, row)
            b += weight * four(known, row + 4)
            c += weight * four(known, row + 8)
            d += weight * four(known, row + 12)
        put(work, begin + x, a)
        put(work, begin + x + 4, b)
        put(work, begin + x + 8, c)
        put(work, begin + x + 12, d)
    for x in range(many, some, 4):
        a = share * four(background, x)
        for context in range(tail, joint.size, tails):
            weight = same(item(joint, context) * (1 - item(backoff, context)))
            a += weight * four(known, context * size + x)
        put(work, begin + x, a)
    for x in range(some, size):
        sum_ = mixed * background[x]
        for context in range(tail, joint.size, tails):
            sum_ += (
                item(joint, context)
                * (1 - item(backoff, context))
                * item(known, context * size + x)
            )
        work[begin + x] = sum_


def _add_sparse(
    known: Any,
    joint: Floats,
    backoff: Floats,
    background: Floats,
    mixed: float,
    tail: int,
    work: Floats,
) -> None:
    data, indices, starts = known
    size = background.size
    tails, following = joint.size // size, work[tail * size : (tail + 1) * size]
    for x in range(size):
        following[x] = mixed * background[x]
    for context in range(tail, joint.size, tails):
        weight = joint[context] * (1 - backoff[context])
        for place in range(starts[context], starts[context + 1]):
            following[indices[place]] += weight * data[place]


def _dense_mean(known: Any, context: int, values: Floats) -> float:
    mean = 0.0
    for symbol in range(values.size):
        mean += known[context, symbol] * values[symbol]
    return mean


def _sparse_mean(known: Any, context: int, values: Floats) -> float:
    data, indices, starts = known
    mean = 0.0
    for place in range(starts[context], starts[context + 1]):
        mean += data[place] * values[indices[place]]
    return mean


ROW_LOOPS: Any = {
    "strict": False,
    "jit_options": {"error_model": "numpy", "forceinline": True, "_nrt": False},
}
"""How numba is told which of two loops is for known rows of a kind."""
overload(_add_rows, **ROW_LOOPS)(
    lambda known, joint, backoff, background, mixed, tail, work: (
        _add_dense if isinstance(known, Array) else _add_sparse
    )
)
overload(_row_mean, **ROW_LOOPS)(
    lambda known, context, values: _dense_mean if isinstance(known, Array) else _sparse_mean
)


@njit(**IN_PLACE, forceinline=True)
def _waits(joint: Floats, moments: Ints, drifts: Floats, stream: int, size: int) -> bool:
    """Raise the moment; whether the next value is still among those that the joint is about."""
    moments[stream] += 1
    reach = size
    for _ in range(moments[stream]):
        if reach >= joint.size:
            return False
        reach *= size
    normalise(joint, joint)
    drifts[stream] += 2 * _UNIT
    return True


@njit(**IN_PLACE, forceinline=True)
def normalise(weights: Floats, joint: Floats) -> float:
    """Divide weights by their sum, in place if both are one array; what they summed to."""
    total = 0.0
    for context in range(weights.size):
        total += item(weights, context)
    some, sum_ = weights.size - weights.size % 4, same(total)
    for context in range(0, some, 4):
        put(joint, context, four(weights, context) / sum_)
    for context in range(some, weights.size):
        joint[context] = weights[context] / total
    return total
