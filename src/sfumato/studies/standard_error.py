"""How sure a mean of repeated runs is."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sfumato.core.arrays import Floats


def standard_error(found: Sequence[float] | Floats) -> float:
    """Of the mean of independent numbers; 0 of a single one, which says nothing of its spread.

    Examples:
        >>> standard_error([1.0, 3.0]), standard_error([2.0])
        (1.0, 0.0)
    """
    return float(np.std(found, ddof=1) / math.sqrt(len(found))) if len(found) > 1 else 0.0
