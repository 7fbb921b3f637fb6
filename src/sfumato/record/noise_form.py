"""A noise as plain arrays, for compiled loops, and its density."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.compiled import njit
from sfumato.core.portable_loops import exp

UNIFORM, GAUSSIAN, LAPLACE, ROUND = 0, 1, 2, 3


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

    @classmethod
    def of(
        cls,
        kind: int,
        scale: Floats,
        height: float,
        *,
        precision: Floats | None = None,
        reach: Floats | None = None,
    ) -> NoiseForm:
        """A noise without shells; uncorrelated and without end unless said otherwise."""
        size = scale.size
        flat = np.zeros((size, size)) if precision is None else precision
        far = np.full(size, np.inf) if reach is None else reach
        # Copies: numba compiles another loop for arrays that are read-only.
        return cls(kind, np.array(scale), flat, np.zeros(1), np.array([height]), far)


@njit(cache=True)
def noise_at(off: Floats, noise: NoiseForm) -> float:
    """Density of a noise within its reach."""
    size, kind, distance = len(off), noise.kind, 0.0
    height = noise.heights[0]
    if kind == GAUSSIAN:
        for first in range(size):
            distance += off[first] ** 2 * noise.precision[first, first]
            for second in range(first):
                distance += 2.0 * off[first] * off[second] * noise.precision[first, second]
        return float(height * exp(-0.5 * distance))
    if kind == LAPLACE:
        for axis in range(size):
            distance += abs(off[axis]) / noise.scale[axis]
        return float(height * exp(-distance))
    if kind == ROUND:
        for axis in range(size):
            distance += (off[axis] / noise.scale[axis]) ** 2
        distance = math.sqrt(distance)
        if distance < noise.edges[0] or distance >= noise.edges[-1]:
            return 0.0
        if len(noise.heights) > 1:
            height = noise.heights[np.searchsorted(noise.edges, distance, side="right") - 1]
    return float(height)  # of uniform noise, to whose reach boxes are cut


@njit(cache=True)
def noise_total(shares: Floats, offs: Floats, noise: NoiseForm) -> float:
    """Sum of shares times the density of a noise at some offs within its reach, one a row."""
    total = 0.0
    for row in range(len(offs)):
        if shares[row] > 0.0:
            total += shares[row] * noise_at(offs[row], noise)
    return total
