"""How threads share the streams of a call: blocks that each claims inside of its compiled loop.

Every thread has a part of the streams, and takes blocks of it. Once its part is done it takes
blocks of the parts of others: nobody waits for a thread that was woken late, or whose processor has
other work. A stream gets the same answers whoever claims it.
"""

# mypy: allow-untyped-calls, allow-untyped-defs, allow-untyped-decorators

from __future__ import annotations

from collections.abc import Sequence

from numba.core import cgutils, types

from sfumato.core.arrays import Ints, apart
from sfumato.core.compiled import IN_PLACE, njit
from sfumato.core.lane_vectors import instructions

_NEXT, _END = 0, 1
_DONE, _STOPPED, _GRAIN = 0, 1, 2
_LINE = 16
"""Numbers of a row, 128 bytes: no two threads count in one line of a cache."""
_BLOCK, _BLOCKS = 64, 8
"""Streams of a block, and how many blocks each part has at least, if it has as many streams. With
64 streams of one row a thread is ahead of the last by 8 us at most, and claims for .01 us."""
SPINS = 100_000
"""Looks at a number before a thread is waited for in earnest: some 50 us."""


@instructions
def count_up(_context, kind, row, column, amount):
    """Add to a number of a table, and say what it was: one step for all threads."""

    def made(context, builder, signature, args):
        pointer = _place(context, builder, signature, args)
        return builder.atomic_rmw("add", pointer, args[3], "seq_cst")

    return types.int64(kind, types.int64, types.int64, types.int64), made


@instructions
def look_at(_context, kind, row, column):
    """A number of a table as other threads left it."""

    def made(context, builder, signature, args):
        return builder.load_atomic(_place(context, builder, signature, args), "seq_cst", 8)

    return types.int64(kind, types.int64, types.int64), made


def _place(context, builder, signature, args):
    """Where a number of a table stands."""
    table = context.make_array(signature.args[0])(context, builder, args[0])
    return cgutils.get_item_pointer(context, builder, signature.args[0], table, [args[1], args[2]])


def claims(threads: int) -> Ints:
    """Room for what threads claim: a line for each, and one for all.

    Examples:
        >>> claims(2).shape
        (3, 16)
    """
    return apart((threads + 1, _LINE), int)


def open_claims(table: Ints, edges: Sequence[int]) -> None:
    """Begin anew: each part is between successive edges, and nobody is done.

    Examples:
        >>> table = claims(2)
        >>> open_claims(table, [0, 700, 1000])
        >>> claim(table, 1, own=True), claim(table, 1, own=False), claim(table, 1, own=False)
        ((700, 762), (762, 824), (824, 886))
    """
    parts, streams = len(edges) - 1, edges[-1] - edges[0]
    table[:] = 0
    table[:parts, _NEXT], table[:parts, _END] = edges[:-1], edges[1:]
    table[-1, _GRAIN] = max(1, min(_BLOCK, streams // (_BLOCKS * parts)))


@njit(**IN_PLACE)
def claim(table: Ints, thread: int, own: bool) -> tuple[int, int]:
    """Take the next block of a thread's part, or of another's once that is done.

    Args:
        table: What was claimed so far.
        thread: Who asks.
        own: Whether to look at the thread's own part only.

    Returns:
        Its first stream and its end; the same twice if nothing is left.
    """
    last = table.shape[0] - 1
    grain = table[last, _GRAIN]
    for step in range(1 if own else last):
        part = (thread + step) % last
        end = table[part, _END]
        if look_at(table, part, _NEXT) < end:
            begin = count_up(table, part, _NEXT, grain)
            if begin < end:
                return begin, min(begin + grain, end)
    return 0, 0


@njit(**IN_PLACE)
def sign_off(table: Ints, stopped: int) -> None:
    """A thread is done: it will write nothing more, and so many of its streams stopped."""
    last = table.shape[0] - 1
    count_up(table, last, _STOPPED, stopped)
    count_up(table, last, _DONE, 1)


@njit(**IN_PLACE)
def all_done(table: Ints, threads: int, spins: int) -> bool:
    """Whether so many threads are done, after waiting for a moment if need be.

    A thread that is put to sleep takes longer to wake up than the last block of another takes.
    """
    last = table.shape[0] - 1
    looks = 0
    while look_at(table, last, _DONE) < threads and looks < spins:
        looks += 1
    return looks < spins


def stopped(table: Ints) -> int:
    """How many streams stopped before their end.

    Examples:
        >>> table = claims(1)
        >>> sign_off(table, 3)
        >>> stopped(table), all_done(table, 1, SPINS), all_done(table, 2, 5)
        (3, True, False)
    """
    return int(table[-1, _STOPPED])
