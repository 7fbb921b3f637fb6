"""The best attacker's boxes on a lattice: every box is looked at, whatever the shape of the prior.

The prior is a mass in each cell of a lattice of up to three axes, as fine as some cells of it make
the width of the box; axes that are missing have one cell. For a published point, cells are
weighted with the noise, and running sums along each axis give the weights of all boxes.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit
from sfumato.record.constants import THREADS
from sfumato.record.coupling.joint_mixture import JointMixture
from sfumato.record.noise_form import UNIFORM, NoiseForm, noise_at
from sfumato.record.vector_noise import VectorNoise, reach_of

_FINENESS = {1: (256, 64), 2: (16, 8, 6), 3: (8, 6)}
"""Cells that a box is wide, the finest that can be afforded, by the number of axes."""
_MOST_CELLS, _MOST_WINDOW = 6_000_000, 60_000
"""Cells of a lattice, and of what noise can reach of it: 50 MB, and a millisecond a point."""
_TAIL = 5.5
"""Deviations beyond which a component of the prior has no mass: 4e-8 of it."""
_COARSEST = 2.0 / 3.0
"""Steps in deviations at which sums of a normal density are exact to many digits."""


@njit(cache=True)
def _shared(found: Floats, place: Ints, beyond: Floats, share: float) -> None:
    """Put a mass into the cells around it, by how near their centres are: no cell gets lumps."""
    for corner in range(8):
        part = share
        at = (0, 0, 0)
        for axis in range(3):
            bit = (corner >> axis) & 1
            part *= beyond[axis] if bit else 1.0 - beyond[axis]
            index = min(max(place[axis] + bit, 0), found.shape[axis] - 1)
            if axis == 0:
                at = (index, at[1], at[2])
            elif axis == 1:
                at = (at[0], index, at[2])
            else:
                at = (at[0], at[1], index)
        if part > 0.0:
            found[at] += part


@njit(cache=True)
def _spread_mass(
    weights: Floats,
    means: Floats,
    roots: Floats,
    low: Floats,
    high: Floats,
    cell: Floats,
    shape: Ints,
) -> Floats:
    """Masses of a mixture of normals in the cells of a lattice; what lies outside is left out.

    Args:
        weights: Of the components.
        means: Of the components, on three axes.
        roots: Lower triangular roots of their covariances; zeros on axes that are missing.
        low: Lower corner of the lattice.
        high: Upper ends of what counts.
        cell: Widths of a cell.
        shape: Number of cells along each axis.
    """
    found = np.zeros((shape[0], shape[1], shape[2]))
    count, step = np.ones(3, dtype=np.int64), np.zeros(3)
    index, standard = np.zeros(3, dtype=np.int64), np.zeros(3)
    place, beyond = np.zeros(3, dtype=np.int64), np.zeros(3)
    for part in range(len(weights)):
        for axis in range(3):
            deviation = roots[part, axis, axis]
            count[axis], step[axis] = 1, 0.0
            if deviation > 0.0:
                step[axis] = min(_COARSEST, 0.5 * cell[axis] / deviation)
                count[axis] = 2 * math.ceil(_TAIL / step[axis]) + 1
        for first in range(count[0]):
            index[0] = first
            for second in range(count[1]):
                index[1] = second
                for third in range(count[2]):
                    index[2] = third
                    share = weights[part]
                    inside = True
                    for axis in range(3):
                        standard[axis] = (index[axis] - count[axis] // 2) * step[axis]
                        if count[axis] > 1:
                            share *= math.exp(-0.5 * standard[axis] ** 2) * step[axis]
                            share /= math.sqrt(2 * math.pi)
                    for axis in range(3):
                        value = means[part, axis]
                        for before in range(axis + 1):
                            value += roots[part, axis, before] * standard[before]
                        inside = inside and low[axis] <= value <= high[axis]
                        reduced = (value - low[axis]) / cell[axis] - 0.5
                        place[axis] = math.floor(reduced)
                        beyond[axis] = reduced - place[axis]
                    if inside:
                        _shared(found, place, beyond, share)
    return found


@njit(cache=True)
def _running(block: Floats, axis: int, width: int) -> Floats:
    """Sums of neighbouring entries along an axis, as many as a box is wide."""
    shape = block.shape
    before, length, after = 1, shape[axis], 1
    for other in range(3):
        before *= shape[other] if other < axis else 1
        after *= shape[other] if other > axis else 1
    count = max(length - width + 1, 1)
    table = block.reshape((before, length, after))
    found = np.zeros((before, count, after))
    for row in range(before):
        for at in range(min(width, length)):
            for column in range(after):
                found[row, 0, column] += table[row, at, column]
        for at in range(1, count):
            for column in range(after):
                change = table[row, at + width - 1, column] - table[row, at - 1, column]
                found[row, at, column] = found[row, at - 1, column] + change
    if axis == 0:
        return found.reshape((count, shape[1], shape[2]))
    if axis == 1:
        return found.reshape((shape[0], count, shape[2]))
    return found.reshape((shape[0], shape[1], count))


@njit(cache=True)
def _largest(block: Floats) -> tuple[int, int, int]:
    """Where the largest entry is."""
    row, third = divmod(int(block.argmax()), block.shape[2])
    first, second = divmod(row, block.shape[1])
    return first, second, third


@njit(cache=True, nogil=True)
def _best_boxes(
    points: Floats,
    masses: Floats,
    low: Floats,
    cell: Floats,
    width: Ints,
    reach: Floats,
    axes: int,
    noise: NoiseForm,
) -> tuple[Floats, Floats, Floats]:
    """The best box of cells for each published point.

    Args:
        points: Published points, one a row, on three axes.
        masses: Prior of the cells.
        low: Lower corner of the lattice.
        cell: Widths of a cell.
        width: How many cells a box is wide, along each axis.
        reach: How far the noise goes, along each axis.
        axes: How many axes there are.
        noise: What was added.

    Returns:
        Prior times noise over the best box of each published point and over all cells, and the
        centre of that box.
    """
    found, every = np.zeros(len(points)), np.zeros(len(points))
    centres = points[:, :axes].copy()
    first, last = np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int64)
    off = np.empty(axes)
    for row in range(len(points)):
        empty = False
        for axis in range(3):
            first[axis], last[axis] = 0, 1
            if axis < axes:
                start = (points[row, axis] - reach[axis] - low[axis]) / cell[axis]
                stop = (points[row, axis] + reach[axis] - low[axis]) / cell[axis]
                first[axis] = max(0, math.floor(start))
                last[axis] = min(masses.shape[axis], math.ceil(stop))
            empty = empty or last[axis] <= first[axis]
        if empty:
            continue
        block = np.zeros((last[0] - first[0], last[1] - first[1], last[2] - first[2]))
        for one in range(first[0], last[0]):
            for two in range(first[1], last[1]):
                for three in range(first[2], last[2]):
                    mass = masses[one, two, three]
                    if mass == 0.0:
                        continue
                    share = mass
                    for axis in range(axes):
                        at = one if axis == 0 else two if axis == 1 else three
                        centre = low[axis] + (at + 0.5) * cell[axis]
                        off[axis] = points[row, axis] - centre
                        if noise.kind == UNIFORM:
                            room = reach[axis] + 0.5 * cell[axis] - abs(off[axis])
                            share *= min(max(room / cell[axis], 0.0), 1.0)
                    if share > 0.0:
                        place = (one - first[0], two - first[1], three - first[2])
                        block[place] = share * noise_at(off, noise)
        every[row] = block.sum()
        for axis in range(axes):
            block = _running(block, axis, width[axis])
        place = _largest(block)
        found[row] = block[place]
        for axis in range(axes):
            wide = min(width[axis], last[axis] - first[axis])
            centres[row, axis] = low[axis] + (first[axis] + place[axis] + 0.5 * wide) * cell[axis]
    return found, every, centres


@dataclass(frozen=True, slots=True, eq=False)
class LatticeAttack:
    """A prior on a lattice that is fine against the attacker's box.

    Attributes:
        prior: What the lattice stands for.
        noise: What is added.
        half: Half widths of the box.
        masses: Of the cells, on three axes; a missing axis has one cell.
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
        if np.prod(shape) > _MOST_CELLS or np.prod(window) > _MOST_WINDOW:
            return None
        missing = np.ones(3 - size)
        roots = np.zeros((prior.weights.size, 3, 3))
        roots[:, :size, :size] = np.linalg.cholesky(prior.covariances)
        means = np.zeros((prior.weights.size, 3))
        means[:, :size] = prior.means
        corner, cells = np.append(low, -0.5 * missing), np.append(cell, missing)
        masses = _spread_mass(
            np.array(prior.weights),
            means,
            roots,
            corner,
            np.append(high, 0.5 * missing),
            cells,
            np.append(shape, missing).astype(np.int64),
        )
        width = np.append(np.full(size, fineness), missing).astype(np.int64)
        return cls(prior, noise, half, masses / prior.mass, corner, cells, width, reach)

    def boxes(self, points: Floats) -> tuple[Floats, Floats, Floats]:
        """What the best box of each published point weighs, what all cells do, and its centre."""
        rows, size = points.shape
        places = np.zeros((rows, 3))
        places[:, :size] = points
        form = self.noise.form()

        def search(part: Floats) -> tuple[Floats, Floats, Floats]:
            return _best_boxes(
                part, self.masses, self.low, self.cell, self.width, self.reach, size, form
            )

        with ThreadPoolExecutor(THREADS) as pool:
            done = list(pool.map(search, np.array_split(places, 4 * THREADS)))
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
