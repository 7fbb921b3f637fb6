"""Loops of the accounts: charge many streams at once."""

from __future__ import annotations

from sfumato.core.allowance_loops import next_up
from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import IN_PLACE, njit


@njit(**IN_PLACE)
def charge(counts: Ints, spent: Floats, recent: Floats, which: Ints, charges: Floats) -> None:
    """Add a step to some streams: sums rounded up, exact where a term is 0.

    Args:
        counts: Steps of each stream.
        spent: Both sums of each stream.
        recent: The last charges of each stream, oldest first.
        which: The streams that are charged.
        charges: What each of them is charged.
    """
    for place in range(which.size):
        stream = which[place]
        counts[stream] += 1
        for kind in range(2):
            add_charge(spent, recent, stream, kind, charges[place, kind])


@njit(**IN_PLACE, forceinline=True)
def add_charge(spent: Floats, recent: Floats, stream: int, kind: int, due: float) -> None:
    """Add a charge to one of the two sums of a stream."""
    before, keep = spent[stream, kind], recent.shape[1]
    if due != 0.0:
        spent[stream, kind] = due if before == 0.0 else next_up(before + due)
    for step in range(keep - 1):
        recent[stream, step, kind] = recent[stream, step + 1, kind]
    if keep > 0:
        recent[stream, keep - 1, kind] = due
