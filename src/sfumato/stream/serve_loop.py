"""One live stream, value by value: a generator of the loop that fleets run.

A call of a compiled loop unpacks each of its arrays, which takes longer than a step; a generator
has them at hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sfumato.core.arrays import Bools, Ints
from sfumato.core.compiled import IN_PLACE, njit
from sfumato.stream.draw_loops import Words
from sfumato.stream.run_loops import follow


@njit(**IN_PLACE)
def serve(
    claims: Ints,
    turns: Ints,
    entered: Bools,
    cells: Ints,
    words: Words,
    released: Ints,
    *given: Any,
) -> Iterator[int]:
    """Release one value of one stream at each call: what left, or -1 if it stopped.

    A generator has its arrays at hand, where a call would unpack each of them; it does not keep
    them alive, so whoever made it must. The value and the coin are wiped. `entered` stays true
    until whoever asked has taken the answer: if an exception breaks in before that, the stream is
    set back to the copy that `follow` made.

    Args:
        claims: As in `follow`; so are the others.
        turns: Where its values begin.
        entered: Whether the stream was copied.
        cells: The true symbol.
        words: The coin.
        released: What left.
        given: All that `follow` is given, these included.
    """
    while True:
        turns[0], claims[0, 0] = 0, 0
        stopped = follow(*given)
        cells[0] = 0
        words[0] = np.uint64(0)
        if stopped > 0:
            entered[0] = False
            yield -1
        else:
            yield released[0]
