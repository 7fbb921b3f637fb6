"""Whether the rows of each stream rise in time: an engine gives equal ones no order of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.core.arrays import Ints
from sfumato.stream.column_times import TimeKeys, time_keys
from sfumato.stream.column_values import Irregular
from sfumato.tables.batches import Column
from sfumato.tables.problems import BadTable

FRAME = "the frame"
"""What messages call the input: its rows have no numbers."""


class RisingOrder:
    """The times of streams that come one after another, over many batches of rows.

    Args:
        order: The column of times.
        strictly: Whether two rows of a stream must not have one time.
    """

    def __init__(self, order: str, *, strictly: bool = True) -> None:
        self._order, self._strictly = order, strictly
        self._stream: str | None = None
        self._last: TimeKeys | None = None

    def check(self, times: Column, names: Sequence[str], codes: Ints) -> None:
        """Read the times of the next rows, and follow them."""
        try:
            self.follow(time_keys(times, np.ones(len(times), dtype=np.bool_)), names, codes)
        except Irregular:
            rule = f"column {self._order!r} must hold numbers alone, or moments of one kind"
            raise BadTable(FRAME, None, rule) from None

    def follow(self, times: TimeKeys, names: Sequence[str], codes: Ints) -> None:
        """Refuse a stream that stands still, or goes back, in time.

        Args:
            times: Those of the next rows.
            names: Their streams, in the order of their first rows.
            codes: The place of the stream of each row among them.

        Raises:
            BadTable: If one does.
            Irregular: If times cannot be compared with those before.
        """
        same, keys = codes[1:] == codes[:-1], times.keys
        if self._last is not None and self._stream == names[0]:
            times, before = _on_one_clock(times, self._last)
            keys = np.concatenate([before.keys, times.keys])
            same = np.concatenate([[True], same])
        back = keys[1:] <= keys[:-1] if self._strictly else keys[1:] < keys[:-1]
        if (back & same).any():
            rule = f"a stream must have one row for each {self._order!r}"
            raise BadTable(FRAME, None, f"{rule}, or an id column that tells them apart")
        self._stream, self._last = names[-1], TimeKeys(times.clock, times.keys[-1:])


def _on_one_clock(times: TimeKeys, before: TimeKeys) -> tuple[TimeKeys, TimeKeys]:
    """Whole numbers may be followed by others, and follow them; nothing else is compared."""
    try:
        return times, before.on(times.clock)
    except Irregular:
        return times.on(before.clock), before
