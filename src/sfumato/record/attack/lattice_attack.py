"""The best attacker's boxes on a lattice: every box is looked at, whatever the shape of the prior.

The prior is a mass in each cell of a lattice of one or two axes, as fine as some cells of it make
the width of the box; an axis that is missing has one cell. For a published point, cells are
weighted with the noise, and running sums along each axis give the weights of all boxes.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit
from sfumato.core.portable_loops import exp
from sfumato.record.constants import THREADS
from sfumato.record.coupling.joint_mixture import JointMixture
from sfumato.record.noise_form import UNIFORM, NoiseForm, noise_at
from sfumato.record.vector_noise import VectorNoise, reach_of

_FINENESS = {1: (256, 64, 32), 2: (16, 8, 6)}
"""Cells that a box is wide, the finest that can be afforded, by the number of axes."""
_MOST_WINDOW = {1: 12_000, 2: 60_000}
"""Cells of what noise can reach, by the number of axes: less than a millisecond a point."""
_MOST_CELLS = 6_000_000
"""Of the whole lattice: 50 MB."""
_TAIL = 5.5
"""Deviations beyond which a component of the prior has no mass: 4e-8 of it."""
_COARSEST = 2.0 / 3.0
"""Steps in deviations at which sums of a normal density are exact to many digits."""
_ROOT = math.sqrt(2 * math.pi)


@njit(cache=True)
def _shared(masses: Floats, first: float, second: float, share: float) -> None:
    """Put a mass into the cells around it, by how near their centres are: no cell gets lumps."""
    row, column = math.floor(first), math.floor(second)
    for down in range(2):
        for right in range(2):
            part = share * (first - row if down else row + 1 - first)
            part *= second - column if right else column + 1 - second
            place = min(max(row + down, 0), masses.shape[0] - 1)
            masses[place, min(max(column + right, 0), masses.shape[1] - 1)] += part


@njit(cache=True)
def _spread_mass(
    prior: tuple[Floats, Floats, Floats],
    low: Floats,
    high: Floats,
    cell: Floats,
    masses: Floats,
) -> None:
    """Put a mixture of normals into cells of some widths; what lies outside is left out.

    The roots are lower triangular, and zero on an axis that is missing; `masses` is added to.
    """
    weights, means, roots = prior
    count, step = np.zeros(2, dtype=np.int64), np.zeros(2)
    for part in range(len(weights)):
        mean, root = means[part], roots[part]
        for axis in range(2):
            count[axis], step[axis] = 0, _ROOT  # one point that has all of it
            if root[axis, axis] > 0.0:
                step[axis] = min(_COARSEST, 0.5 * cell[axis] / root[axis, axis])
                count[axis] = math.ceil(_TAIL / step[axis])
        for first in range(-count[0], count[0] + 1):
            one = first * step[0]
            place = mean[0] + root[0, 0] * one
            if not low[0] <= place <= high[0]:
                continue
            row = (place - low[0]) / cell[0] - 0.5
            share = weights[part] * exp(-0.5 * one**2) * step[0] / _ROOT
            for second in range(-count[1], count[1] + 1):
                two = second * step[1]
                place = mean[1] + root[1, 0] * one + root[1, 1] * two
                if low[1] <= place <= high[1]:
                    column = (place - low[1]) / cell[1] - 0.5
                    _shared(masses, row, column, share * exp(-0.5 * two**2) * step[1] / _ROOT)


@njit(cache=True)
def _running(block: Floats, width: int) -> Floats:
    """Sums of neighbours along the last axis, as many as a box is wide."""
    rows, length = block.shape
    count = max(length - width + 1, 1)
    found = np.zeros((rows, count))
    for row in range(rows):
        for at in range(min(width, length)):
            found[row, 0] += block[row, at]
        for at in range(1, count):
            found[row, at] = found[row, at - 1] + block[row, at + width - 1] - block[row, at - 1]
    return found


@njit(cache=True, nogil=True)
def _best_boxes(
    points: Floats,
    masses: Floats,
    low: Floats,
    cell: Floats,
    width: Ints,
    reach: Floats,
    noise: NoiseForm,
) -> tuple[Floats, Floats, Floats]:
    """Prior times noise over the best box of each published point and over all cells; its centre.

    Lattice and box are those of `LatticeAttack`.
    """
    rows, axes = points.shape
    found, every, centres = np.zeros(rows), np.zeros(rows), points.copy()
    first, last = np.zeros(2, dtype=np.int64), np.ones(2, dtype=np.int64)
    off = np.empty(axes)
    for row in range(rows):
        for axis in range(axes):
            start = (points[row, axis] - reach[axis] - low[axis]) / cell[axis]
            stop = (points[row, axis] + reach[axis] - low[axis]) / cell[axis]
            first[axis] = max(0, math.floor(start))
            last[axis] = min(masses.shape[axis], math.ceil(stop))
        if last[0] <= first[0] or last[1] <= first[1]:
            continue
        block = np.zeros((last[0] - first[0], last[1] - first[1]))
        for one in range(first[0], last[0]):
            for two in range(first[1], last[1]):
                share = masses[one, two]
                for axis in range(axes):
                    centre = low[axis] + ((two if axis else one) + 0.5) * cell[axis]
                    off[axis] = points[row, axis] - centre
                    if noise.kind == UNIFORM:  # a cell at the edge counts for what is inside
                        room = reach[axis] + 0.5 * cell[axis] - abs(off[axis])
                        share *= min(max(room / cell[axis], 0.0), 1.0)
                if share > 0.0:
                    block[one - first[0], two - first[1]] = share * noise_at(off, noise)
        every[row] = block.sum()
        # All boxes of both axes: running sums of rows, turned, and of what were columns.
        across = _running(np.ascontiguousarray(_running(block, width[1]).T), width[0])
        column, line = divmod(int(across.argmax()), across.shape[1])
        found[row] = across[column, line]
        for axis in range(axes):
            wide = min(width[axis], last[axis] - first[axis])
            corner = first[axis] + (column if axis else line)
            centres[row, axis] = low[axis] + (corner + 0.5 * wide) * cell[axis]
    return found, every, centres


@dataclass(frozen=True, slots=True, eq=False)
class LatticeAttack:
    """A prior on a lattice that is fine against the attacker's box.

    Attributes:
        prior: What the lattice stands for.
        noise: What is added.
        half: Half widths of the box.
        masses: Of the cells, on two axes; a missing one has one cell.
        low: Lower corner.
        cell: Widths of a cell.
        width: How many cells a box is wide, along each axis.
        reach: How far the noise goes, along each axis.
    """

    prior: JointMixture
    noise: VectorNoise
    half: Floats
    masses: Floats
    low: Floats
    cell: Floats
    width: Ints
    reach: Floats

    @classmethod
    def of(cls, prior: JointMixture, noise: VectorNoise, half: Floats) -> LatticeAttack | None:
        """As fine a lattice as can be afforded; none if that is too coarse."""
        for fineness in _FINENESS.get(prior.dimension, ()):
            lattice = cls._as_fine(prior, noise, half, fineness)
            if lattice is not None:
                return lattice
        return None

    @classmethod
    def _as_fine(
        cls, prior: JointMixture, noise: VectorNoise, half: Floats, fineness: int
    ) -> LatticeAttack | None:
        """A lattice with some cells in the width of a box; none if that is too many."""
        size, reach = prior.dimension, reach_of(noise)
        low, high = prior.bounds
        cell = 2 * half / fineness
        shape = np.maximum(np.ceil((high - low) / cell), 1.0)
        window = np.minimum(np.ceil(2 * reach / cell) + 1, shape)
        if np.prod(shape) > _MOST_CELLS or np.prod(window) > _MOST_WINDOW[size]:
            return None
        missing = np.ones(2 - size)
        roots, means = np.zeros((prior.weights.size, 2, 2)), np.zeros((prior.weights.size, 2))
        roots[:, :size, :size] = portable.root(prior.covariances)
        means[:, :size] = prior.means
        corner, cells = np.append(low, -0.5 * missing), np.append(cell, missing)
        masses = np.zeros(tuple(np.append(shape, missing).astype(np.int64)))
        components = (np.array(prior.weights / prior.mass), means, roots)
        _spread_mass(components, corner, np.append(high, 0.5 * missing), cells, masses)
        width = np.append(np.full(size, fineness), missing).astype(np.int64)
        return cls(prior, noise, half, masses, corner, cells, width, reach)

    def boxes(self, points: Floats) -> tuple[Floats, Floats, Floats]:
        """What the best box of each published point weighs, what all cells do, and its centre."""
        form = self.noise.form()

        def search(part: Floats) -> tuple[Floats, Floats, Floats]:
            return _best_boxes(part, self.masses, self.low, self.cell, self.width, self.reach, form)

        with ThreadPoolExecutor(THREADS) as pool:
            done = list(pool.map(search, np.array_split(points, 4 * THREADS)))
        held, total, centres = (np.concatenate(each) for each in zip(*done, strict=True))
        return held, total, centres

    def shares(self, points: Floats, batch: int) -> Floats:
        """Posterior probability of the best box of each published point, whatever the batch."""
        held, total, _ = self.boxes(points)
        # What no cell explains counts as found.
        return np.minimum(np.where(total > 0, held / np.maximum(total, 1e-300), 1.0), 1.0)

    def error(self, points: Floats, shares: Floats) -> float:
        """Relative difference that a lattice half as fine makes: about that of this one's own."""
        half_as_fine = int(self.width.max()) // 2
        coarse = LatticeAttack._as_fine(self.prior, self.noise, self.half, half_as_fine)
        if coarse is None or not shares.sum() > 0:
            return math.inf
        return abs(float(coarse.shares(points, 0).sum() / shares.sum()) - 1)
