"""A noise as plain arrays, for compiled loops, and its density."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.compiled import njit

UNIFORM, GAUSSIAN, LAPLACE, ROUND = 0, 1, 2, 3
_WHOLE = np.ones(1)


class NoiseForm(NamedTuple):
    """A noise as plain arrays.

    Attributes:
        kind: Which density it is: `UNIFORM`, `GAUSSIAN`, `LAPLACE` or `ROUND`.
        scale: Half widths, deviations, mean sizes, or units of the axes, by kind.
        precision: Inverse covariance of a Gaussian.
        edges: Radii between the shells of round noise.
        heights: Densities of the shells, or the one factor of the density.
        reach: How far the noise goes along each axis; infinite if it does.
    """

    kind: int
    scale: Floats
    precision: Floats
    edges: Floats
    heights: Floats
    reach: Floats


@njit(cache=True)
def noise_total(shares: Floats, offs: Floats, noise: NoiseForm) -> float:
    """Sum of shares times the density of a noise at some offs within its reach, one a row."""
    rows, size = offs.shape
    kind, scale, precision, edges, heights = noise[:5]
    total = 0.0
    for row in range(rows):
        if not shares[row] > 0.0:
            continue
        distance = 0.0
        height = heights[0]  # of uniform noise, to whose reach boxes are cut
        if kind == GAUSSIAN:
            for first in range(size):
                distance += offs[row, first] ** 2 * precision[first, first]
                for second in range(first):
                    both = offs[row, first] * offs[row, second]
                    distance += 2.0 * both * precision[first, second]
            height *= math.exp(-0.5 * distance)
        elif kind == LAPLACE:
            for axis in range(size):
                distance += abs(offs[row, axis]) / scale[axis]
            height *= math.exp(-distance)
        elif kind == ROUND:
            for axis in range(size):
                distance += (offs[row, axis] / scale[axis]) ** 2
            distance = math.sqrt(distance)
            if distance < edges[0] or distance >= edges[-1]:
                continue
            if len(heights) > 1:
                height = heights[np.searchsorted(edges, distance, side="right") - 1]
        total += shares[row] * height
    return total


@njit(cache=True)
def noise_at(off: Floats, noise: NoiseForm) -> float:
    """Density of a noise within its reach."""
    return noise_total(_WHOLE, off.reshape((1, len(off))), noise)
