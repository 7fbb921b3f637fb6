"""Carry the beliefs of several streams one moment forward, four of them side by side.

What `chain_loops.advance` does to one stream, to the last bit: sums run over contexts in their
order, and those of four streams wait for each other no longer than those of one do.
"""

from __future__ import annotations

from typing import Any

from numba.core.types import Array
from numba.extending import overload

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import IN_PLACE, njit
from sfumato.core.lane_vectors import beside, crossed, four, item, lane, put, same
from sfumato.core.numerics import UNIT
from sfumato.models.chain_loops import ROW_LOOPS, Known, normalise, spread


@njit(**IN_PLACE, forceinline=True)
def carry_on(
    joints: Floats,
    moments: Ints,
    drifts: Floats,
    which: Ints,
    count: int,
    order: int,
    width: int,
    known: Known,
    backoff: Floats,
    background: Floats,
    work: Floats,
    crossing: Floats,
) -> None:
    """Carry the first `count` streams of `which` to their next moment, or batch.

    Args:
        joints: As in `advance`; so are those that are not named here.
        moments: Which value of each stream is current; raised by `width`.
        drifts: Bound on the rounding error of each joint, as a log ratio; raised.
        which: The streams.
        count: How many of them.
        order: Of the chain.
        width: How many values a moment of the chain is made of.
        known: One row per context.
        backoff: Weight of the background in each context.
        background: Distribution that every row is mixed with.
        work: Work space, as long as a row of `joints`.
        crossing: Work space of `carry_four`.
    """
    size, done = background.size, 0
    while done < count:
        stream = which[done]
        joint = joints[stream]
        if count - done >= 4 and carry_four(
            joints, which[done : done + 4], known, backoff, background, crossing
        ):
            some = 4
        elif moments[stream] + 1 < order:
            normalise(joint, joint)
            some = 1
        else:
            spread(joint, known, backoff, background, work)
            normalise(work, joint)
            some = 1
        for at in range(done, done + some):
            waits = moments[which[at]] + 1 < order
            drifts[which[at]] += 2 * UNIT if waits else (6 * size + 16) * UNIT
            moments[which[at]] += width
        done += some


def carry_four(  # type: ignore[empty-body]
    joints: Floats, which: Ints, known: Known, backoff: Floats, background: Floats, work: Floats
) -> bool:
    """Carry the joints of four streams one moment forward, side by side, where that is possible.

    Sums run over contexts in their order, as for one stream, and wait for each other no longer than
    those of one stream do. It is possible for known rows that are a matrix, and order 1.

    Args:
        joints: One row per stream, changed in place.
        which: The four.
        known: As in `advance`; so are the others.
        backoff: Weight of the background.
        background: What rows are mixed with.
        work: Work space, eight times as long as a row.
    """


def _carry_dense(
    joints: Floats, which: Ints, known: Any, backoff: Floats, background: Floats, work: Floats
) -> bool:
    size = background.size
    if joints.shape[1] != size:
        return False
    one, two, three, last = which[0] * size, which[1] * size, which[2] * size, which[3] * size
    mixed, some = same(0.0), size - size % 4
    for context in range(0, some, 4):
        a, b, c, d = crossed(
            four(joints, one + context),
            four(joints, two + context),
            four(joints, three + context),
            four(joints, last + context),
        )
        mixed += a * same(item(backoff, context))
        mixed += b * same(item(backoff, context + 1))
        mixed += c * same(item(backoff, context + 2))
        mixed += d * same(item(backoff, context + 3))
        put(work, 4 * context, a * same(1 - item(backoff, context)))
        put(work, 4 * context + 4, b * same(1 - item(backoff, context + 1)))
        put(work, 4 * context + 8, c * same(1 - item(backoff, context + 2)))
        put(work, 4 * context + 12, d * same(1 - item(backoff, context + 3)))
    for context in range(some, size):
        here = beside(
            item(joints, one + context),
            item(joints, two + context),
            item(joints, three + context),
            item(joints, last + context),
        )
        mixed += here * same(item(backoff, context))
        put(work, 4 * context, here * same(1 - item(backoff, context)))
    begin, many, total = 4 * size, size - size % 8, same(0.0)
    for x in range(0, many, 8):
        a, b = mixed * same(item(background, x)), mixed * same(item(background, x + 1))
        c, d = mixed * same(item(background, x + 2)), mixed * same(item(background, x + 3))
        e, f = mixed * same(item(background, x + 4)), mixed * same(item(background, x + 5))
        g, h = mixed * same(item(background, x + 6)), mixed * same(item(background, x + 7))
        for context in range(size):
            weight, row = four(work, 4 * context), context * size + x
            a += weight * same(item(known, row))
            b += weight * same(item(known, row + 1))
            c += weight * same(item(known, row + 2))
            d += weight * same(item(known, row + 3))
            e += weight * same(item(known, row + 4))
            f += weight * same(item(known, row + 5))
            g += weight * same(item(known, row + 6))
            h += weight * same(item(known, row + 7))
        place = begin + 4 * x
        put(work, place, a)
        put(work, place + 4, b)
        put(work, place + 8, c)
        put(work, place + 12, d)
        put(work, place + 16, e)
        put(work, place + 20, f)
        put(work, place + 24, g)
        put(work, place + 28, h)
    for x in range(many, size):
        a = mixed * same(item(background, x))
        for context in range(size):
            a += four(work, 4 * context) * same(item(known, context * size + x))
        put(work, begin + 4 * x, a)
    for x in range(size):
        total += four(work, begin + 4 * x)
    for x in range(0, some, 4):
        place = begin + 4 * x
        a, b, c, d = crossed(
            four(work, place) / total,
            four(work, place + 4) / total,
            four(work, place + 8) / total,
            four(work, place + 12) / total,
        )
        put(joints, one + x, a)
        put(joints, two + x, b)
        put(joints, three + x, c)
        put(joints, last + x, d)
    for x in range(some, size):
        share = four(work, begin + 4 * x) / total
        joints[which[0], x], joints[which[1], x] = lane(share, 0), lane(share, 1)
        joints[which[2], x], joints[which[3], x] = lane(share, 2), lane(share, 3)
    return True


def _carry_sparse(
    joints: Floats, which: Ints, known: Any, backoff: Floats, background: Floats, work: Floats
) -> bool:
    return False


overload(carry_four, **ROW_LOOPS)(
    lambda joints, which, known, backoff, background, work: (
        _carry_dense if isinstance(known, Array) else _carry_sparse
    )
)
