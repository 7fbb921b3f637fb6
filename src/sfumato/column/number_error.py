r"""What a mechanism for numbers really misses by: noise, clamping and rounding to points together.

A mechanism acts on the points of a lattice, but people have values between and beyond them. For a
value in the cell of a point $p$ and an output $q \ne p$, $|x - q|$ is linear on the cell, so that
the mass of a cell, its mean, and the mean distance from its own point give the expected error
exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.core.channel import Channel
from sfumato.models.mixture import GaussianMixture
from sfumato.noise.lattice import Lattice


@dataclass(frozen=True, slots=True, eq=False)
class TrueNumbers:
    """Where the true numbers lie, cell by cell of a lattice.

    Attributes:
        lattice: The points that stand for them.
        masses: Probability of each cell.
        sums: The same times the mean of the cell.
        own: The same times the mean distance from the cell's point.
        silence: Expected error of the best constant, whether or not it is a point.

    Examples:
        >>> ages = TrueNumbers.of_values(Lattice(0.0, 100.0, 11), [12.0, 38.0, 41.0, 130.0])
        >>> ages.rounding, ages.silence
        (8.75, 30.25)
        >>> ages.error(Channel.constant(11, 4))  # always 40
        30.25
    """

    lattice: Lattice
    masses: Floats
    sums: Floats
    own: Floats
    silence: float

    @classmethod
    def of_values(
        cls, lattice: Lattice, values: ArrayLike, weights: ArrayLike | None = None
    ) -> Self:
        """Of some numbers, equally likely or with weights."""
        numbers = checks.numbers("values", values)
        share = np.full(numbers.size, 1.0) if weights is None else np.asarray(weights, np.float64)
        share = share / share.sum()
        places, count = lattice.places(numbers), lattice.count
        off = np.abs(numbers - lattice.points[places])
        order = np.argsort(numbers, kind="stable")
        half = np.searchsorted(np.cumsum(share[order]), 0.5 * (1 - 1e-12))
        median = numbers[order[min(int(half), numbers.size - 1)]]
        per_cell = [
            np.bincount(places, parts, count).astype(np.float64)
            for parts in (share, share * numbers, share * off)
        ]
        masses, sums, own = per_cell
        return cls(lattice, masses, sums, own, float(portable.dot(share, np.abs(numbers - median))))

    @classmethod
    def of_mixture(cls, lattice: Lattice, mixture: GaussianMixture) -> Self:
        """Of a mixture of normals.

        Examples:
            >>> bell = TrueNumbers.of_mixture(Lattice(-9.0, 9.0, 3), GaussianMixture.normal(0, 1))
            >>> bell.silence, bell.rounding  # all are told as 0
            (0.7978846, 0.7978818)
        """
        cuts, points = lattice.cuts, lattice.points
        sums = _partial(mixture, cuts[1:]) - _partial(mixture, cuts[:-1])
        own = _distance(mixture, points, cuts[:-1], cuts[1:])
        median = np.array([mixture.quantile(0.5)])
        ends = np.array([-np.inf]), np.array([np.inf])
        silence = float(_distance(mixture, median, *ends)[0])
        return cls(lattice, mixture.between(cuts[:-1], cuts[1:]), sums, own, silence)

    @property
    def rounding(self) -> float:
        """Expected error of clamping and rounding alone, before any noise."""
        return float(self.own.sum())

    def error(self, channel: Channel) -> float:
        """Expected absolute error of what a channel releases."""
        points = self.lattice.points
        distances = np.abs(self.sums[:, None] - self.masses[:, None] * points)
        np.fill_diagonal(distances, self.own)
        return float((channel.probabilities * distances[:, channel.outputs]).sum())


def _partial(mixture: GaussianMixture, ends: Floats) -> Floats:
    """The integral of x times the density up to some ends."""
    means, deviations = mixture.means, mixture.deviations
    reduced = (ends[:, None] - means) / deviations
    density = portable.exp(-0.5 * reduced**2) / math.sqrt(2 * math.pi)
    return np.asarray(
        portable.dot(means * portable.normal_share(reduced) - deviations * density, mixture.weights)
    )


def _distance(mixture: GaussianMixture, points: Floats, low: Floats, high: Floats) -> Floats:
    """The integral of |x - point| times the density between low and high, around each point."""
    right = _partial(mixture, high) - _partial(mixture, points)
    left = _partial(mixture, points) - _partial(mixture, low)
    after, before = mixture.between(points, high), mixture.between(low, points)
    return np.maximum(0.0, (right - points * after) + (points * before - left))
