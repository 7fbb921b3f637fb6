"""The best attacker's success by brute force on a lattice: for priors of many components."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.record.attack.box_loops import NoiseForm
from sfumato.record.attack.lattice_boxes import best_lattice_boxes, spread_mass
from sfumato.record.coupling.joint_mixture import JointMixture

_FINENESS = {1: (256, 64), 2: (20, 12, 8, 6), 3: (8, 6)}
"""Cells that a box is wide, the finest that can be afforded."""
_MOST_CELLS, _MOST_WORK = 6_000_000, 60_000
_THREADS = 2


@dataclass(frozen=True, slots=True, eq=False)
class LatticeAttack:
    """A prior on a lattice that is fine against the attacker's box.

    Attributes:
        masses: Of the cells, on three axes; a missing axis has one cell.
        low: Lower corner.
        cell: Widths of a cell.
        width: How many cells a box is wide, along each axis.
        reach: How far the noise goes, along each axis.
    """

    masses: Floats
    low: Floats
    cell: Floats
    width: Ints
    reach: Floats

    @classmethod
    def of(cls, prior: JointMixture, half: Floats, reach: Floats) -> LatticeAttack | None:
        """As fine a lattice as can be afforded; none if that is too coarse."""
        for fineness in _FINENESS[prior.dimension]:
            made = cls.as_fine(prior, half, reach, fineness)
            if made is not None:
                return made
        return None

    @classmethod
    def as_fine(
        cls, prior: JointMixture, half: Floats, reach: Floats, fineness: int
    ) -> LatticeAttack | None:
        """A lattice with some cells in the width of a box; none if that is too many."""
        size = prior.dimension
        low, high = prior.bounds
        cell = 2 * half / fineness
        shape = np.maximum(np.ceil((high - low) / cell), 1.0)
        window = np.minimum(np.ceil(2 * reach / cell) + 1, shape)
        if np.prod(shape) > _MOST_CELLS or np.prod(window) > _MOST_WORK:
            return None
        cells = np.append(shape.astype(np.int64), np.ones(3 - size, dtype=np.int64))
        roots = np.zeros((prior.weights.size, 3, 3))
        roots[:, :size, :size] = np.linalg.cholesky(prior.covariances)
        means = np.zeros((prior.weights.size, 3))
        means[:, :size] = prior.means
        corner, widths = np.append(low, np.full(3 - size, -0.5)), np.append(cell, np.ones(3 - size))
        ends = np.append(high, np.full(3 - size, 0.5))
        masses = spread_mass(np.array(prior.weights), means, roots, corner, ends, widths, cells)
        box = np.append(np.full(size, fineness), np.ones(3 - size, dtype=np.int64))
        return cls(masses / prior.mass, corner, widths, box.astype(np.int64), reach)

    def best_boxes(self, told: Floats, noise: NoiseForm) -> tuple[Floats, Floats, Floats]:
        """Prior times noise over the best box of each published point and over all, and centres."""
        rows, size = told.shape
        places = np.zeros((rows, 3))
        places[:, :size] = told

        def search(part: Floats) -> tuple[Floats, Floats, Floats]:
            return best_lattice_boxes(
                part, self.masses, self.low, self.cell, self.width, self.reach, size, noise
            )

        with ThreadPoolExecutor(_THREADS) as pool:
            done = list(pool.map(search, np.array_split(places, 4 * _THREADS)))
        found, every, centres = (np.concatenate(each) for each in zip(*done, strict=True))
        return found, every, centres

    def error(
        self, prior: JointMixture, half: Floats, told: Floats, noise: NoiseForm, total: float
    ) -> float:
        """Relative difference that a lattice half as fine makes: about that of this one's own.

        Args:
            prior: What this lattice stands for.
            half: Half widths of the box.
            told: Published points.
            noise: What was added.
            total: Sum of the weights of their best boxes on this lattice.
        """
        coarse = LatticeAttack.as_fine(prior, half, self.reach, int(self.width.max()) // 2)
        if coarse is None or not total > 0:
            return math.inf
        return abs(float(coarse.best_boxes(told, noise)[0].sum()) / total - 1)
