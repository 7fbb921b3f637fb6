r"""Attributes that equations tie: how often the best attacker, who knows them, finds everything.

Where one attribute is free, points along the curve stand for all values. On a surface, and a curve
too steep for that, points are put where they are needed: scattered where what was published leaves
some probability, for the whole of it, and ever closer around the best box found so far, while the
box shrinks to its size, for its share.

References:
    [MDDP, Def. 1 and Def. 5]
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from sfumato.core import portable
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.randomness import Address, Domain, seeded
from sfumato.record.attack.bayes_attack import Found, Way
from sfumato.record.attack.box_search import unlimited
from sfumato.record.attack.point_cloud import best_cloud_boxes, posterior_weights
from sfumato.record.constants import CONFIDENCE, THREADS
from sfumato.record.coupling.coupled_prior import Cloud, CoupledPrior
from sfumato.record.noise_form import NoiseForm
from sfumato.record.vector_noise import VectorNoise, axis_scales, half_widths, reach_of, uniforms

_ATTACKS, _MOST_ATTACKS = 256, 2_048
"""People on a curve who are attacked: at first, and at most."""
_NEARBY, _MOST_NEARBY = 96, 384
"""The same on a surface, where one takes some milliseconds."""
_PRECISE = 0.02
"""Half width of the interval to aim for, as a part of what is estimated."""
_MOST_MISSED = 0.02
"""Part of the published points that nothing may explain before the answer is refused."""
_POINTS, _MOST_POINTS = {1: 9, 2: 11, 3: 12}, 13
"""Logarithm, to base 2, of how many points are scattered, by the number of free attributes."""
_DOUBLINGS = 3
"""How often they are doubled where too few of them explain what was published."""
_SHRINKS = 6
_NEGLIGIBLE = 1e-6
"""What is left is narrowed, so often at most, to points of more than this part of the largest."""
_ROOM = 1.25
"""How much wider than the box its surroundings are taken while it is sought."""
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

    def share(self, row: Floats, seed: int) -> float | None:
        """Posterior probability of the best box; None if too few points explain what is published.

        Args:
            row: What was published.
            seed: Another one takes other points.
        """
        coins = np.random.default_rng(seed)  # where to sample an integral: no coin of any release
        everything = self._whole(row, coins)
        if everything is None:
            return None
        total = float(everything.weights.sum())
        mean = portable.dot(everything.weights, everything.points) / total
        # Where points are few, the middle of all of them may be better than what they were sought.
        held = [
            float(self._posterior(row, at - self.half, at + self.half, coins).weights.sum())
            for at in (mean, self._sought(row, everything, coins))
        ]
        return min(max(held) / total, 1.0)

    def _posterior(
        self, row: Floats, low: Floats, high: Floats, coins: np.random.Generator, more: int = 0
    ) -> Cloud:
        free = len(self.prior.free)
        sobol = stats.qmc.Sobol(free + 1, seed=coins)
        shares = sobol.random_base2(_POINTS.get(free, _MOST_POINTS) + more)

        def likelihood(points: Floats) -> Floats:
            return posterior_weights(row, points, np.ones(len(points)), self.noise)

        return self.prior.near(low, high, shares, likelihood)

    def _whole(self, row: Floats, coins: np.random.Generator) -> Cloud | None:
        """Points that carry all of the posterior, as evenly as a box around them allows."""
        low, high = row - self.reach, row + self.reach
        for _ in range(_SHRINKS):
            cloud = self._posterior(row, low, high, coins)
            if len(cloud.points) == 0:
                break
            heavy = cloud.points[cloud.weights > _NEGLIGIBLE * cloud.weights.max()]
            # Other points may be heavy a little beyond the heaviest of these.
            room = 0.05 * (high - low)
            first = np.maximum(low, heavy.min(axis=0) - room)
            last = np.minimum(high, heavy.max(axis=0) + room)
            smaller = float(np.prod((last - first) / (high - low)))
            if smaller > 0.5:
                break
            low, high = first, last
        for more in range(_DOUBLINGS):
            if cloud.weights.sum() ** 2 > _LEAST_EFFECTIVE * (cloud.weights**2).sum():
                return cloud
            cloud = self._posterior(row, low, high, coins, more + 1)
        return None

    def _sought(self, row: Floats, cloud: Cloud, coins: np.random.Generator) -> Floats:
        """The centre of the best box: of a large one first, then of smaller ones near it."""
        shares = cloud.weights / cloud.weights.sum()
        centre = np.asarray(portable.dot(shares, cloud.points))
        spread = np.sqrt(portable.dot(shares, (cloud.points - centre) ** 2))
        larger = max(float(np.max(spread / self.half)), 1.0)
        first = math.ceil(portable.log2(larger))
        room = None
        # Twice at its own size: the second time with points around where the first ended.
        for level in (*range(first, 0, -1), 0, 0):
            if room is not None:
                near = self._posterior(row, centre - room, centre + room, coins)
                cloud = near if len(near.points) else cloud
            box = 2.0**level * self.half
            centre = best_cloud_boxes(row[None, :], box, *cloud, unlimited(len(row)))[1][0]
            room = _ROOM * box
        return centre


def coupled_disclosure(prior: CoupledPrior, noise: VectorNoise, accuracy: ArrayLike) -> Found:
    """The probability with which the best attacker who knows the equations finds everything.

    The mean, over published points, of the posterior probability of the best box, with a
    confidence interval. Points along a curve stand for all values; on a surface, or a curve too
    steep for that, they are scattered around each published point: see `Nearby`.

    Raises:
        InvalidParameter: Too few points that explain what is published were found.

    Examples:
        >>> from sfumato.record.published_noise import noise_of
        >>> from sfumato.record.coupling.coupling import FullCoupling
        >>> same = FullCoupling.equation("b = a", {"a": (0, 10), "b": (0, 10)})
        >>> noise = noise_of("uniform", 20.0, 2)
        >>> found = coupled_disclosure(CoupledPrior.of(["a", "b"], [same]), noise, 0.5)
        >>> round(found.delta, 2)  # a tenth of the domain, and a little more near its ends
        0.1
    """
    half = half_widths(noise, accuracy, len(prior.names))
    curve = prior.curve(half)
    people = prior.scattered() if curve is None else curve
    batch, most = (_ATTACKS, _MOST_ATTACKS) if curve else (_NEARBY, _MOST_NEARBY)
    form = noise.form()
    attacker = Nearby(prior, form, reach_of(noise), half)
    shares: list[float] = []
    while True:
        published = attacked_rows(people, noise, batch, f"attacks {len(shares)}")
        if curve is None:
            found = _nearby_shares(attacker, published)
        else:
            found, _ = best_cloud_boxes(published, half, *curve, form)
        shares.extend(found.tolist())
        delta = float(np.mean(shares))
        quantile = portable.settled(stats.norm.ppf(0.5 + 0.5 * CONFIDENCE))
        spacing = quantile * float(np.std(shares, ddof=1)) / math.sqrt(len(shares))
        if spacing <= _PRECISE * delta or len(shares) >= most:
            break
    # One who ignores what is published has this much, one who ignores the equations that.
    least = max(noise.largest_box(half), _guess(prior, half, curve))
    low, high = max(delta - spacing, least), min(max(delta + spacing, least), 1.0)
    return Found(min(max(delta, least), 1.0), low, high, Way.SAMPLING)


def _nearby_shares(attacker: Nearby, published: Floats) -> Floats:
    """Shares of the best boxes; a point that nothing seems to explain counts as found."""
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(attacker.share, published, range(len(published))))
    if found.count(None) > _MOST_MISSED * len(published):
        rule = (
            "be gentler, or noise wider against it: too few points that explain what is published "
            "were found to say what the best attacker makes of it"
        )
        raise InvalidParameter("coupling", f"one of {', '.join(attacker.prior.names)}", rule)
    return np.array([1.0 if share is None else share for share in found])


def prior_cloud_disclosure(prior: CoupledPrior, accuracy: ArrayLike) -> float:
    """The probability with which a guess is near enough when nothing is published at all."""
    half = axis_scales("accuracy", accuracy, len(prior.names))
    return _guess(prior, half, prior.curve(half))


def _guess(prior: CoupledPrior, half: Floats, curve: Cloud | None) -> float:
    nothing, limits = unlimited(len(prior.names)), prior.limits
    middle, reach = limits.mean(axis=1), 0.5 * np.diff(limits, axis=1)[:, 0]
    if curve is None:
        return float(_nearby_shares(Nearby(prior, nothing, reach, half), middle[None, :])[0])
    return float(best_cloud_boxes(middle[None, :], half, *curve, nothing)[0][0])


def attacked_rows(cloud: Cloud, noise: VectorNoise, count: int, purpose: str) -> Floats:
    """Made-up people who satisfy the equations, as they would be published."""
    coins = seeded(4).at(Address(Domain.SIMULATION, "attackers", purpose, count))
    shares = uniforms(coins.words(count))
    which = np.searchsorted(cloud.weights.cumsum()[:-1], shares, side="right")
    words = coins.words(count * noise.words).reshape(count, noise.words)
    return cloud.points[which] + noise.draw(words)
