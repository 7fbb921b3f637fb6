"""Loops of the accounts: charge many streams at once."""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit


@njit(cache=True, nogil=True, error_model="numpy")
def charge(counts: Ints, spent: Floats, recent: Floats, which: Ints, charges: Floats) -> None:
    """Add a step to some streams: sums rounded up, exact where a term is 0.

    Args:
        counts: Steps of each stream.
        spent: Both sums of each stream.
        recent: The last charges of each stream, oldest first.
        which: The streams that are charged.
        charges: What each of them is charged.
    """
    keep = recent.shape[1]
    for place in range(which.size):
        stream = which[place]
        counts[stream] += 1
        for kind in range(2):
            due, before = charges[place, kind], spent[stream, kind]
            after = before + due
            if due != 0.0 and before != 0.0:
                after = np.nextafter(after, np.inf)
            spent[stream, kind] = after
            for step in range(keep - 1):
                recent[stream, step, kind] = recent[stream, step + 1, kind]
            if keep > 0:
                recent[stream, keep - 1, kind] = due
