"""Attackers on a lattice who know a prior, against round noise.

One puts the same box, relative to what was published, wherever in a cell that lies, so its success
against a shell is an integral of the prior over cells, without a search that could flatter itself.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d

from sfumato.core import portable
from sfumato.core.arrays import Floats, Ints
from sfumato.record.constants import THREADS
from sfumato.record.coupling.joint_mixture import JointMixture
from sfumato.record.round_boxes import ball_volume, box_in_ball

_POINTS = {1: 320, 2: 36}
"""Cells of published points along an axis."""
_TAIL = 5.0
"""Deviations beyond which what is published counts for nothing."""
_CELLS = {1: 192, 2: 44}
"""Cells of the lattice from 0 to the outermost shell, about."""
_NARROWEST = 0.2
"""Half widths of the narrowest box of the lattice, in cells of about that width."""
_WIDEST = 24
"""Cells of the lattice that a box is wide, at most."""
_SEARCHED, _WEIGHED = 2**17, 2**20
"""Numbers in a block of arrays, of a search and of a weighing: a block fits the cache."""


class Attackers:
    """Attackers who know a prior: to each cell of published points belongs a box of the lattice.

    The lattice is one of distances from what was published. A box that is narrow against the noise
    is put at random into one that is some times wider: that, too, is an attacker.

    Attributes:
        fineness: Cells of the lattice that a box is wide.
        step: Width of a cell.
        shape: Cells of the lattice.
        points: Centres of the cells of published points.
        width: Width of these.
    """

    def __init__(self, prior: JointMixture, half: Floats, edges: Floats) -> None:
        size, reach = half.size, float(edges[-1])
        step = reach / _CELLS[size]
        times = np.ceil(_NARROWEST * step / half)
        wide = np.minimum(times * half, reach)
        self.prior, self.edges = prior, edges
        self.share = float(np.prod(1 / times))
        self.fineness = np.clip(np.ceil(2 * wide / step), 1, _WIDEST).astype(np.int64)
        self.step = 2 * wide / self.fineness
        self.shape = np.maximum(np.ceil(2 * reach / self.step), self.fineness).astype(np.int64)
        self.points, self.width = _published(prior, reach)
        self.shells = {split: self._cells(split) for split in (1, 2)}
        self.densities = self._densities()

    def best(self, masses: Floats) -> Ints:
        """First cells of the best box against some masses, for each cell of published points."""
        noise = (portable.dot(self.shells[1], masses)).reshape(self.shape).astype(np.float32)

        def search(part: NDArray[np.float32]) -> Ints:
            sums = part * noise
            for axis, width in enumerate(self.fineness):
                sums = _running(sums, axis + 1, int(width))
            places = sums.reshape(len(part), -1).argmax(axis=1)
            return np.stack(np.unravel_index(places, sums.shape[1:]), axis=1)

        parts = np.array_split(self.densities, math.ceil(self.densities.size / _SEARCHED))
        with ThreadPoolExecutor(THREADS) as pool:
            return np.concatenate(list(pool.map(search, parts)))

    def successes(self, boxes: Ints, split: int) -> Floats:
        """Success against each shell alone, with all cells split along each axis."""
        size = len(self.shape)
        moves = ((_grid(np.full(size, split)) + 0.5) / split - 0.5) * self.width
        inside = _grid(self.fineness * split)
        weights = np.zeros(np.prod(self.shape * split))
        rows = max(_WEIGHED // (len(moves) * len(inside)), 1)
        for first in range(0, len(boxes), rows):
            cells = boxes[first : first + rows, None, :] * split + inside
            places = self._places(cells, split) + self.points[first : first + rows, None, :]
            flat = np.ravel_multi_index(tuple(np.moveaxis(cells, 2, 0)), tuple(self.shape * split))
            for move in moves:
                density = self._density(places + move, split)
                weights += np.bincount(flat.ravel(), density.ravel(), weights.size)
        volume = float(np.prod(self.width / split))
        return np.asarray(self.share * volume * (portable.dot(weights, self.shells[split])))

    def _cells(self, split: int) -> Floats:
        """Share of each shell that lies in each cell of the lattice."""
        places = self._places(_grid(self.shape * split), split)
        return in_shells(places, 0.5 * self.step / split, self.edges)

    def _places(self, cells: Ints, split: int) -> Floats:
        """Centres of cells of the lattice."""
        return np.asarray((cells - 0.5 * (self.shape * split - 1)) * self.step / split)

    def _densities(self) -> NDArray[np.float32]:
        """The prior at every cell of the lattice around every published one."""
        cells = self._places(_grid(self.shape), 1)
        densities = np.empty((len(self.points), len(cells)), dtype=np.float32)
        for row, point in enumerate(self.points):
            densities[row] = self._density(point + cells, 1)
        return densities.reshape(-1, *self.shape)

    def _density(self, places: Floats, split: int) -> Floats:
        """Mean density of the prior while what is published, and the noise, move in their cells."""
        # Even on a cell is nearly normal with a twelfth of its squared width as variance.
        blur = (self.width**2 + self.step**2) / (12 * split**2)
        prior = self.prior
        mixed = JointMixture(prior.weights, prior.means, prior.covariances + np.diag(blur))
        found = mixed.density(places.reshape(-1, len(blur))).reshape(places.shape[:-1])
        if np.isfinite(prior.domain).any():
            width, (low, high) = self.width / split, prior.domain.T
            found *= np.clip((places - low) / width + 0.5, 0.0, 1.0).prod(axis=-1)
            found *= np.clip((high - places) / width + 0.5, 0.0, 1.0).prod(axis=-1)
        return np.asarray(found / prior.mass)


def _published(prior: JointMixture, reach: float) -> tuple[Floats, Floats]:
    """Centres of cells of what round noise may publish, and their widths."""
    size = prior.dimension
    spreads = prior.covariances + (reach / _TAIL) ** 2 * np.eye(size)
    far = _TAIL * np.sqrt(np.diagonal(spreads, axis1=1, axis2=2))
    low = np.maximum((prior.means - far).min(axis=0), prior.domain[:, 0] - reach)
    high = np.minimum((prior.means + far).max(axis=0), prior.domain[:, 1] + reach)
    width = (high - low) / _POINTS[size]
    points = low + width * (_grid(np.full(size, _POINTS[size])) + 0.5)
    off = points[:, None, :] - prior.means
    precise = portable.inverse(spreads)
    carried = (off[:, :, :, None] * precise).sum(axis=2)
    squares = (carried * off).sum(axis=2)
    return points[squares.min(axis=1) <= _TAIL**2], width


def _grid(shape: Ints) -> Ints:
    """All places of an array, one a row."""
    return np.indices(tuple(shape)).reshape(len(shape), -1).T


def in_shells(centres: Floats, half: Floats, edges: Floats) -> Floats:
    """Share of each shell that lies in some boxes."""
    volumes = np.array([ball_volume(half.size, edge) for edge in edges])
    inside = np.array([box_in_ball(centres - half, centres + half, edge) for edge in edges])
    return np.asarray((np.diff(inside, axis=0) / np.diff(volumes)[:, None]).T)


def _running(values: NDArray[np.float32], axis: int, width: int) -> NDArray[np.float32]:
    """Sums of so many neighbours along an axis, but for a factor."""
    means = uniform_filter1d(values, width, axis=axis, mode="constant")
    inside = slice(width // 2, width // 2 + values.shape[axis] - width + 1)
    return np.asarray(means[(slice(None),) * axis + (inside,)])
