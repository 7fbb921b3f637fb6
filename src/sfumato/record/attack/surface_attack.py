"""The best box on a surface too large to cover with points: they are put where they are needed.

Points are scattered where what was published leaves some probability, for the whole of it, and ever
closer around the best box found so far, while the box shrinks to its size, for its share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from sfumato.core.arrays import Floats
from sfumato.record.attack.bayes_attack import unlimited
from sfumato.record.attack.box_loops import NoiseForm
from sfumato.record.attack.point_cloud import best_cloud_boxes, posterior_weights
from sfumato.record.coupling.coupled_people import Cloud, CoupledPrior

_POINTS = {1: 9, 2: 11, 3: 12}
"""Logarithm, to base 2, of how many points are scattered, by the number of free attributes."""
_MORE = 3
_SHRINKS = 6
_ROOM = 1.25
_NEGLIGIBLE = 1e-6
_LEAST_EFFECTIVE = 60
"""Points that tell as much as so many evenly weighted ones tell the whole well enough."""


@dataclass(frozen=True, slots=True)
class Nearby:
    """An attacker who knows a surface.

    Attributes:
        prior: The surface, and what is known of its free attributes.
        noise: What is added.
        reach: How far the noise goes along each axis, but for what is negligible.
        half: Half widths of the box.
    """

    prior: CoupledPrior
    noise: NoiseForm
    reach: Floats
    half: Floats

    def share(self, told: Floats, row: int) -> float | None:
        """Posterior probability of the best box; None if too few points explain what is published.

        Args:
            told: What was published.
            row: Another one takes other points.
        """
        coins = np.random.default_rng(row)  # where to sample an integral: no coin of any release
        everything = self._whole(told, coins)
        if everything is None:
            return None
        total = float(everything.weights.sum())
        mean = everything.weights @ everything.points / total
        # Where points are few, the middle of all of them may be better than what they were sought.
        held = [
            float(self._posterior(told, at - self.half, at + self.half, coins).weights.sum())
            for at in (mean, self._sought(told, everything, coins))
        ]
        return min(max(held) / total, 1.0)

    def _posterior(
        self, told: Floats, low: Floats, high: Floats, coins: np.random.Generator, more: int = 0
    ) -> Cloud:
        free = len(self.prior.free)
        sobol = stats.qmc.Sobol(free + 1, seed=coins)
        shares = sobol.random_base2(_POINTS.get(free, 13) + more)

        def likelihood(points: Floats) -> Floats:
            return posterior_weights(told, points, np.ones(len(points)), self.noise)

        return self.prior.near(low, high, shares, likelihood)

    def _whole(self, told: Floats, coins: np.random.Generator) -> Cloud | None:
        """Points that carry all of the posterior, as evenly as a box around them allows."""
        low, high = told - self.reach, told + self.reach
        for _ in range(_SHRINKS):
            cloud = self._posterior(told, low, high, coins)
            if len(cloud.points) == 0:
                break
            heavy = cloud.points[cloud.weights > _NEGLIGIBLE * cloud.weights.max()]
            room = 0.05 * (high - low)
            first = np.maximum(low, heavy.min(axis=0) - room)
            last = np.minimum(high, heavy.max(axis=0) + room)
            smaller = float(np.prod((last - first) / (high - low)))
            if smaller > 0.5:
                break
            low, high = first, last
        for more in range(_MORE):
            if cloud.weights.sum() ** 2 > _LEAST_EFFECTIVE * (cloud.weights**2).sum():
                return cloud
            cloud = self._posterior(told, low, high, coins, more + 1)
        return None

    def _sought(self, told: Floats, cloud: Cloud, coins: np.random.Generator) -> Floats:
        """The centre of the best box: of a large one first, then of smaller ones near it."""
        shares = cloud.weights / cloud.weights.sum()
        centre = np.asarray(shares @ cloud.points)
        spread = np.sqrt(shares @ (cloud.points - centre) ** 2)
        larger = max(float(np.max(spread / self.half)), 1.0)
        first = math.ceil(math.log2(larger))
        room = None
        for level in (*range(first, 0, -1), 0, 0):
            if room is not None:
                near = self._posterior(told, centre - room, centre + room, coins)
                cloud = near if len(near.points) else cloud
            box = 2.0**level * self.half
            centre = best_cloud_boxes(told[None, :], box, *cloud, unlimited(len(told)))[1][0]
            room = _ROOM * box
        return centre
