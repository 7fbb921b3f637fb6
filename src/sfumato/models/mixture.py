r"""A prior for numbers: a mixture of normal distributions, of which one normal is the simplest.

Any smooth density is near a mixture of few normals, and what is released through Gaussian noise
then has a mixture again as its distribution: the same one with wider components.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.core.digest import digest
from sfumato.core.errors import InvalidParameter
from sfumato.core.search import boundary
from sfumato.models.mixture_fitting import fitted_mixture

_HALVINGS = 120
# A component is at least so wide, as a part of the spread of all values: a spike on a repeated
# value would promise a certainty that no history supports.
RELATIVE_WIDTH = 1e-2


@dataclass(frozen=True, slots=True, eq=False)
class GaussianMixture:
    """Weighted normal distributions.

    Attributes:
        weights: Probability of each component.
        means: Their means.
        deviations: Their standard deviations.

    Examples:
        >>> heights = GaussianMixture([0.5, 0.5], [165.0, 178.0], [6.0, 7.0])
        >>> float(heights.cumulative(171.0)), heights.quantile(0.9)
        (0.5, 183.91165)
    """

    weights: Floats
    means: Floats
    deviations: Floats

    def __init__(self, weights: ArrayLike, means: ArrayLike, deviations: ArrayLike) -> None:
        shares = checks.probabilities("weights", weights)
        used = shares > 0  # a component without weight is none
        object.__setattr__(self, "weights", checks.read_only(shares[used] / shares.sum()))
        for name, values in (("means", means), ("deviations", deviations)):
            vector = checks.numbers(name, values)
            if vector.shape != shares.shape:
                rule = f"be {shares.size} numbers, one per component"
                raise InvalidParameter(name, vector.shape, rule)
            object.__setattr__(self, name, checks.read_only(vector[used]))
        if self.deviations.min() <= 0:
            least = float(self.deviations.min())
            raise InvalidParameter("deviations", least, "be greater than 0")

    @classmethod
    def normal(cls, mean: float, deviation: float) -> Self:
        """One normal distribution.

        Examples:
            >>> GaussianMixture.normal(0.0, 5.0).quantile(0.975)
            9.79982
        """
        return cls([1.0], [mean], [deviation])

    @classmethod
    def fit(cls, values: ArrayLike, *, most: int = 8, components: int | None = None) -> Self:
        """Fit by expectation maximisation, with as many components as the BIC asks for.

        The starts are fixed, so the same values give the same mixture.

        Args:
            values: A history of numbers; finite, at least two different ones.
            most: Largest number of components to try.
            components: Take exactly so many instead.

        Examples:
            >>> rng = np.random.default_rng(1)
            >>> values = np.concatenate([rng.normal(0, 1, 400), rng.normal(9, 1, 600)])
            >>> GaussianMixture.fit(values).weights.round(2)
            array([0.4, 0.6])
        """
        history = checks.numbers("values", values).ravel()
        different = np.unique(history).size
        if different < 2:
            rule = "be at least two different ones"
            raise InvalidParameter("values", f"{history.size} numbers", rule)
        if components is not None and checks.count("components", components) > different:
            raise InvalidParameter("components", components, "be no more than different values")
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            centre, spread = float(history.mean()), float(history.std())
        if not (np.isfinite(spread) and spread > np.finfo(np.float64).tiny):
            raise InvalidParameter("values", "a range", "have a variance that floats can hold")
        scaled = ((history - centre) / spread)[:, None]
        tried = (
            range(1, min(checks.count("most", most), different) + 1)
            if components is None
            else [components]
        )
        fits = (fitted_mixture(scaled, count, RELATIVE_WIDTH**2) for count in tried)
        best = min(fits, key=lambda one: one.bic)
        order = np.argsort(best.means.ravel(), kind="stable")
        return cls(
            best.weights[order],
            centre + spread * best.means.ravel()[order],
            spread * np.sqrt(best.covariances.ravel()[order]),
        )

    @property
    def fingerprint(self) -> str:
        """Identifies the mixture."""
        return digest("gaussian mixture", self.weights, self.means, self.deviations)

    def density(self, points: ArrayLike) -> Floats:
        """The density at some points."""
        return np.asarray(portable.exp(self.log_density(points)))

    def log_density(self, points: ArrayLike) -> Floats:
        """Its logarithm, which does not vanish far from all components."""
        standard = self._standard(points)
        logs = -0.5 * standard**2 - portable.log(self.deviations) - 0.5 * portable.log(2 * np.pi)
        highest = logs.max(axis=-1, keepdims=True)
        return np.asarray(
            portable.log(portable.dot(portable.exp(logs - highest), self.weights)) + highest[..., 0]
        )

    def cumulative(self, points: ArrayLike) -> Floats:
        """The probability of values up to some points."""
        return np.asarray(portable.dot(portable.normal_share(self._standard(points)), self.weights))

    def between(self, low: ArrayLike, high: ArrayLike) -> Floats:
        """The probability of some intervals, right also where it is tiny."""
        left, right = self._standard(low), self._standard(high)
        # Beyond the mean, differences of upper tails keep the digits that those of lower ones lose.
        mirrored = left > 0
        upper, lower = np.where(mirrored, -left, right), np.where(mirrored, -right, left)
        return np.asarray(
            portable.dot(portable.normal_share(upper) - portable.normal_share(lower), self.weights)
        )

    def masses(self, edges: ArrayLike) -> Floats:
        """The probability of each cell between edges; the outer cells take what lies beyond."""
        cuts = np.array(edges, dtype=np.float64)
        cuts[0], cuts[-1] = -np.inf, np.inf
        return self.between(cuts[:-1], cuts[1:])

    def quantile(self, probability: float) -> float:
        """The point below which a value lies with the given probability."""
        share = checks.proper_fraction("probability", probability)
        far = 40 * self.deviations
        low, high = float((self.means - far).min()), float((self.means + far).max())
        return boundary(
            lambda point: bool(self.cumulative(point) >= share), high, low, steps=_HALVINGS
        )

    def blurred(self, noise: float) -> GaussianMixture:
        """The distribution after independent normal noise of a standard deviation."""
        wider = np.hypot(self.deviations, checks.positive("noise", noise))
        return GaussianMixture(self.weights, self.means, wider)

    def component(self, place: int) -> GaussianMixture:
        """One of the components, alone."""
        return GaussianMixture.normal(float(self.means[place]), float(self.deviations[place]))

    def _standard(self, points: ArrayLike) -> Floats:
        """Distance of each point from each mean, in deviations; components along the last axis."""
        places = np.asarray(points, dtype=np.float64)[..., None]
        return np.asarray((places - self.means) / self.deviations)
