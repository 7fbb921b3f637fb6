"""How sure a mean is, of repeated runs or of people."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sfumato.core.arrays import Floats, Ints


def standard_error(found: Sequence[float] | Floats) -> float:
    """Of the mean of independent numbers; 0 of a single one, which says nothing of its spread.

    Examples:
        >>> standard_error([1.0, 3.0]), standard_error([2.0])
        (1.0, 0.0)
    """
    return float(np.std(found, ddof=1) / math.sqrt(len(found))) if len(found) > 1 else 0.0


def clustered_error(values: Floats, owners: Ints) -> float:
    """Standard error of a mean whose values come from people: those of one are not independent.

    Examples:
        >>> clustered_error(np.array([1.0, 1.0, 3.0, 3.0]), np.array([0, 0, 1, 1]))
        1.0
    """
    _, which = np.unique(owners, return_inverse=True)
    sums = np.bincount(which, values - values.mean())
    people = len(sums)
    if people < 2:
        return float("inf")
    return float(np.sqrt(people / (people - 1) * (sums**2).sum()) / len(values))
