"""Which event ids have come so far, in eight bytes each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Bools


class SeenIds:
    """Hashes of ids: one that is not among them never came; one that is came, or looks like it.

    Python's own hash of a text has 64 bits and, unless somebody fixed its seed, a key for each
    process: two ids out of ten million look alike once in 400,000 runs.

    Examples:
        >>> seen = SeenIds()
        >>> seen.add(["e1", "e2"])
        >>> seen.perhaps(["e2", "e3"])
        array([ True, False])
    """

    def __init__(self) -> None:
        self._runs: list[NDArray[np.int64]] = []

    def add(self, ids: Sequence[str]) -> None:
        """These have come."""
        if not ids:
            return
        run = np.sort(_hashes(ids))
        # Runs at least halve from one to the next: there are few, and each hash moves few times.
        while self._runs and 2 * len(run) >= len(self._runs[-1]):
            run = np.sort(np.concatenate([self._runs.pop(), run]))
        self._runs.append(run)

    def perhaps(self, ids: Sequence[str]) -> Bools:
        """Which may have come before."""
        hashes = _hashes(ids)
        found = np.zeros(len(hashes), dtype=np.bool_)
        for run in self._runs:
            places = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
            found |= run[places] == hashes
        return found


def _hashes(ids: Sequence[str]) -> NDArray[np.int64]:
    return np.fromiter(map(hash, ids), dtype=np.int64, count=len(ids))
