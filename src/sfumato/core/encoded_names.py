"""Names as bytes, one behind the other: encoded once, however often coins are drawn for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.addresses import encoded_names
from sfumato.core.arrays import Ints

Bytes = NDArray[np.uint8]

_GROUP = 1 << 16
"""So many names are objects of their own at once while they are encoded."""


class EncodedNames:
    """Names that stay, though more may come behind them.

    Args:
        names: Those that are encoded, from the first that was not when they are asked for.

    Examples:
        >>> text, begins, sizes = EncodedNames(["ann", "bob", "eve"]).spans(np.array([2, 0]))
        >>> [bytes(text[b : b + n]) for b, n in zip(begins, sizes)]
        [b'eve', b'ann']
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._text: Bytes = np.empty(0, dtype=np.uint8)
        self._ends = np.zeros(1, dtype=np.int64)
        self._count = 0

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, place: int) -> str:
        return self._names[place]

    def spans(self, places: Ints) -> tuple[Bytes, Ints, Ints]:
        """All names as bytes, and where in them each of some begins and how long it is."""
        for first in range(self._count, len(self._names), _GROUP):
            self._append(encoded_names(self._names[first : first + _GROUP]))
        begins = self._ends[places]
        return self._text, begins, self._ends[places + 1] - begins

    def _append(self, names: Sequence[bytes]) -> None:
        count, written = self._count + len(names), int(self._ends[self._count])
        ends = written + np.cumsum(np.fromiter(map(len, names), np.int64, len(names)))
        self._text = _roomy(self._text, int(ends[-1]))
        self._ends = _roomy(self._ends, count + 1)
        self._text[written : ends[-1]] = np.frombuffer(b"".join(names), dtype=np.uint8)
        self._ends[self._count + 1 : count + 1] = ends
        # Counted last: an exception before loses none.
        self._count = count


def _roomy(held: NDArray[Any], size: int) -> NDArray[Any]:
    """The same with room for more: twice as much at least, so that few copies are made."""
    if size <= len(held):
        return held
    room = np.empty(max(size, 2 * len(held)), dtype=held.dtype)
    room[: len(held)] = held
    return room
