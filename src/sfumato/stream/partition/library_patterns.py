"""Batches under a correlation library: the cells are the kept patterns of their length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.belief import Belief
from sfumato.models.library import PatternLibrary


class LibraryPatterns:
    """Every batch belongs to the kept pattern that is nearest to it.

    Args:
        library: The kept patterns.
        belief: Belief about the pattern of the last batch.
        length: Values of the batch, which is public.
    """

    def __init__(self, library: PatternLibrary, belief: Belief, length: int) -> None:
        self._library, self._length = library, length
        self._kept = library.of_length(length)
        self.masses: Floats
        self.error: float
        self.masses, self.error = library.ahead(belief, length)

    def cell(self, places: Sequence[int]) -> int:
        """The kept pattern nearest to a batch."""
        # Patterns of one length stand in order, so that a place among them is found by halving.
        return int(np.searchsorted(self._kept, self._library.nearest(places)))

    def after(self, likelihood: Floats) -> Belief:
        """Belief about the pattern of this batch."""
        return self._library.after(self.masses, self._length, likelihood, self.error)
