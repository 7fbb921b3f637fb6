"""The density of a mixture of normals at many points."""

from __future__ import annotations

import math

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.compiled import njit

_NEGLIGIBLE = 200.0
"""Squared distances, in deviations, beyond which a component counts for nothing."""


@njit(cache=True, nogil=True)
def mixture_density(points: Floats, heights: Floats, means: Floats, whiteners: Floats) -> Floats:
    """Density at each point.

    Args:
        points: One a row.
        heights: Weight of each component, times its density at its mean.
        means: Of the components.
        whiteners: Inverses of the lower triangular roots of their covariances.
    """
    count, size = points.shape
    found = np.zeros(count)
    off = np.empty(size)
    for place in range(count):
        for component in range(len(heights)):
            squared = 0.0
            for row in range(size):
                off[row] = points[place, row] - means[component, row]
                reduced = 0.0
                for column in range(row + 1):
                    reduced += whiteners[component, row, column] * off[column]
                squared += reduced * reduced
                if squared > _NEGLIGIBLE:
                    break
            if squared <= _NEGLIGIBLE:
                found[place] += heights[component] * math.exp(-0.5 * squared)
    return found
