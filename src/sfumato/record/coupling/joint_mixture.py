r"""What is known of several numbers of one person: a joint density, as a mixture of normals.

One normal is the paper's example; a few give the joint distribution of most tables; one small
normal on each record is the kernel density of them. All are the same kind of model, so that
everything computed of one is computed of all. Attributes may be limited to intervals.

References:
    [MDDP, Def. 2 and Def. 7]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.core.compiled import njit
from sfumato.core.errors import InvalidParameter
from sfumato.core.portable_loops import exp
from sfumato.models.mixture import RELATIVE_WIDTH
from sfumato.models.mixture_fitting import fitted_mixture
from sfumato.record.attack.normal_quantile import normal_quantiles
from sfumato.record.coupling.kernel_density import (
    MOST_COMPONENTS,
    MOST_FITTED,
    bandwidth_of,
    kernels,
)

_REACH = 8.0
"""Deviations beyond which next to nothing of a component lies: 1e-15 of it."""
_NEGLIGIBLE = 200.0
"""Squared distances, in deviations, beyond which a component counts for nothing."""
_POINTS = 2**14
"""Even points over which mutual information is averaged: a thousandth of it."""
_MOST_KERNEL_AXES = 6


@njit(cache=True, nogil=True)
def _mixture_density(points: Floats, heights: Floats, means: Floats, whiteners: Floats) -> Floats:
    """Density at each point, from heights of components at their means and inverses of roots."""
    count, size = points.shape
    found = np.zeros(count)
    off = np.empty(size)
    for place in range(count):
        for component in range(len(heights)):
            squared = 0.0
            for row in range(size):
                off[row] = points[place, row] - means[component, row]
                reduced = 0.0
                for column in range(row + 1):
                    reduced += whiteners[component, row, column] * off[column]
                squared += reduced * reduced
                if squared > _NEGLIGIBLE:
                    break
            if squared <= _NEGLIGIBLE:
                found[place] += heights[component] * exp(-0.5 * squared)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class JointMixture:
    """Weighted normal distributions of several attributes, limited to a domain.

    Attributes:
        weights: Probability of each component.
        means: Their means, one a row.
        covariances: Their covariances.
        domain: Least and greatest value of each attribute, one a row; infinite where there is none.
        mass: What the components hold of the domain.

    Examples:
        >>> body = JointMixture.normal([170.0, 70.0], [[64.0, 48.0], [48.0, 144.0]])
        >>> float(body.correlation[0, 1]), body.mutual_information(0)  # -log(1 - rho^2) / 2
        (0.5, 0.143841)
    """

    weights: Floats
    means: Floats
    covariances: Floats
    domain: Floats
    mass: float

    def __init__(
        self,
        weights: ArrayLike,
        means: ArrayLike,
        covariances: ArrayLike,
        domain: ArrayLike | None = None,
    ) -> None:
        shares = checks.probabilities("weights", checks.numbers("weights", weights))
        centres = np.atleast_2d(checks.numbers("means", means))
        count, size = centres.shape
        given = checks.numbers("covariances", covariances)
        if count != shares.size or given.shape != (count, size, size):
            rule = f"be {shares.size} square matrices, as many rows as attributes"
            raise InvalidParameter("covariances", given.shape, rule)
        spreads = np.stack([checks.positive_definite("covariance", each) for each in given])
        object.__setattr__(self, "weights", checks.read_only(shares / shares.sum()))
        object.__setattr__(self, "means", checks.read_only(centres))
        object.__setattr__(self, "covariances", checks.read_only(spreads))
        object.__setattr__(self, "domain", _domain(domain, size))
        object.__setattr__(self, "mass", self._mass())
        if not self.mass > 1e-9:
            raise InvalidParameter("domain", self.mass, "hold some of the distribution")

    @classmethod
    def normal(
        cls, mean: ArrayLike, covariance: ArrayLike, domain: ArrayLike | None = None
    ) -> JointMixture:
        """One normal distribution."""
        centre = np.atleast_1d(checks.numbers("mean", mean))
        matrix = checks.positive_definite("covariance", covariance)
        if centre.shape != (len(matrix),):
            raise InvalidParameter("mean", centre.shape, f"be {len(matrix)} numbers")
        return cls([1.0], centre[None, :], matrix[None, :, :], domain)

    @classmethod
    def fit_normal(cls, records: ArrayLike, domain: ArrayLike | None = None) -> JointMixture:
        """The normal distribution with mean and covariance of some records.

        Examples:
            >>> rng = np.random.default_rng(1)
            >>> records = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 5_000)
            >>> JointMixture.fit_normal(records).correlation.round(1)
            array([[1. , 0.6],
                   [0.6, 1. ]])
        """
        table = _records(records)
        return cls.normal(table.mean(axis=0), portable.covariance(table), domain)

    @classmethod
    def fit(
        cls,
        records: ArrayLike,
        *,
        most: int = 6,
        components: int | None = None,
        domain: ArrayLike | None = None,
    ) -> JointMixture:
        """Fit by expectation maximisation, with as many components as the BIC asks for.

        Args:
            records: One person a row.
            most: Largest number of components to try.
            components: Take exactly so many instead.
            domain: Least and greatest value of each attribute.
        """
        table = _records(records)
        centre, spread = table.mean(axis=0), table.std(axis=0)
        scaled = ((table - centre) / spread)[:: max(1, len(table) // MOST_FITTED)]
        different = len(np.unique(scaled, axis=0))
        tried = range(1, min(checks.count("most", most), different) + 1)
        counts = tried if components is None else [checks.count("components", components)]
        fits = (fitted_mixture(scaled, count, RELATIVE_WIDTH**2) for count in counts)
        best = min(fits, key=lambda one: one.bic)
        scales = np.outer(spread, spread)
        return cls(best.weights, centre + spread * best.means, best.covariances * scales, domain)

    @classmethod
    def kernel(
        cls,
        records: ArrayLike,
        *,
        bandwidth: float | None = None,
        domain: ArrayLike | None = None,
    ) -> JointMixture:
        """The kernel density of some records: a small normal on each.

        Records that are close against the bandwidth share a component, which takes up their
        spread: at most 250 remain, with the mean and covariance of all.

        Args:
            records: One person a row.
            bandwidth: Deviation of a kernel in those of the records. If not given, Scott's rule,
                or less where records are clustered: what tells more of every other one.
            domain: Least and greatest value of each attribute.

        Examples:
            >>> rng = np.random.default_rng(1)
            >>> records = rng.normal(size=(2_000, 2)) @ [[1.0, 0.5], [0.0, 1.0]]
            >>> density = JointMixture.kernel(records)
            >>> density.weights.size <= MOST_COMPONENTS, density.dimension
            (True, 2)
        """
        table = _records(records)
        if table.shape[1] > _MOST_KERNEL_AXES:
            rule = f"have at most {_MOST_KERNEL_AXES} columns"
            raise InvalidParameter("records", table.shape[1], rule)
        if bandwidth is None:
            bandwidth = bandwidth_of(table, lambda parts, at: cls(*parts).density(at))
        return cls(*kernels(table, checks.positive("bandwidth", bandwidth)), domain)

    @property
    def dimension(self) -> int:
        """How many attributes."""
        return int(self.means.shape[1])

    @property
    def covariance(self) -> Floats:
        """Covariance of all components together, whatever the domain."""
        centre = portable.dot(self.weights, self.means)
        off = self.means - centre
        between = portable.dot((self.weights[:, None] * off).T, off)
        return np.asarray((self.weights[:, None, None] * self.covariances).sum(axis=0) + between)

    @property
    def correlation(self) -> Floats:
        """Correlation of the attributes."""
        matrix = self.covariance
        scale = np.sqrt(np.diag(matrix))
        return np.asarray(matrix / np.outer(scale, scale))

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """Intervals beyond which next to nothing lies: the domain, or eight deviations."""
        deviations = np.sqrt(np.diagonal(self.covariances, axis1=1, axis2=2))
        low = (self.means - _REACH * deviations).min(axis=0)
        high = (self.means + _REACH * deviations).max(axis=0)
        return np.maximum(low, self.domain[:, 0]), np.minimum(high, self.domain[:, 1])

    def density(self, points: ArrayLike) -> Floats:
        """The density at some points, one a row."""
        places = np.ascontiguousarray(np.atleast_2d(np.asarray(points, dtype=np.float64)))
        factors = portable.root(self.covariances)
        roots = np.prod(np.diagonal(factors, axis1=1, axis2=2), axis=1)
        heights = self.weights / (portable.power(2 * math.pi, 0.5 * self.dimension) * roots)
        total = _mixture_density(places, heights, self.means, portable.inverse(factors))
        within = np.all((places >= self.domain[:, 0]) & (places <= self.domain[:, 1]), axis=1)
        return np.where(within, total / self.mass, 0.0)

    def draw(self, shares: Floats) -> Floats:
        """Values from numbers between 0 and 1, `dimension + 1` a row; whatever the domain."""
        which = np.searchsorted(self.weights.cumsum()[:-1], shares[:, 0], side="right")
        normals = normal_quantiles(shares[:, 1:])
        factors = portable.root(self.covariances)
        return np.asarray(self.means[which] + (factors[which] * normals[:, None, :]).sum(axis=2))

    def draw_within(self, shares: Floats) -> tuple[Floats, Floats]:
        """The same within the domain, and the weight of each row.

        Axis by axis, each cut to its interval given those before; what that leaves of it is a
        factor of the weight.
        """
        which = np.searchsorted(self.weights.cumsum()[:-1], shares[:, 0], side="right")
        factors, means = portable.root(self.covariances)[which], self.means[which]
        normals, weights = np.zeros_like(means), np.ones(len(shares))
        for axis in range(self.dimension):
            centre = means[:, axis] + (factors[:, axis] * normals).sum(axis=1)
            low, high = (
                portable.normal_share((end - centre) / factors[:, axis, axis])
                for end in self.domain[axis]
            )
            normals[:, axis] = normal_quantiles(low + (high - low) * shares[:, axis + 1])
            weights *= high - low
        normals = np.clip(normals, -_REACH, _REACH)  # where an interval has no mass at all
        return means + (factors * normals[:, None, :]).sum(axis=2), weights

    def marginal(self, places: ArrayLike) -> JointMixture:
        """The same components of some of the attributes alone, within their own domain.

        A domain of the others cuts their tails as well, and is left out.
        """
        chosen = np.atleast_1d(np.asarray(places, dtype=np.int64))
        return JointMixture(
            self.weights,
            self.means[:, chosen],
            self.covariances[:, chosen[:, None], chosen],
            self.domain[chosen],
        )

    def independent(self) -> JointMixture | None:
        """The same attributes, each alone: none if that took too many components."""
        count, size = self.means.shape
        if count**size > MOST_COMPONENTS:
            return None
        axes = np.arange(size)
        choices = np.array(list(product(range(count), repeat=size)))
        deviations = np.diagonal(self.covariances, axis1=1, axis2=2)
        variances = deviations[choices, axes]
        return JointMixture(
            self.weights[choices].prod(axis=1),
            self.means[choices, axes],
            variances[:, :, None] * np.eye(size),
            self.domain,
        )

    def mutual_information(self, attribute: int) -> float:
        r"""What all other attributes tell of one, in nats; domains are left out.

        In closed form for one normal, $\frac12 \log(\Sigma_{ii} |\Sigma_{-i}| / |\Sigma|)$, else
        by an even sample of the mixture.
        """
        if not 0 <= attribute < self.dimension:
            raise InvalidParameter("attribute", attribute, f"be 0 to {self.dimension - 1}")
        others = [place for place in range(self.dimension) if place != attribute]
        if not others:
            return 0.0
        if self.weights.size == 1:
            matrix = self.covariances[0]
            rest = portable.log_determinant(matrix[np.ix_(others, others)])
            both = portable.log(float(matrix[attribute, attribute])) + float(rest)
            return max(0.5 * (both - float(portable.log_determinant(matrix))), 0.0)
        endless = JointMixture(self.weights, self.means, self.covariances)
        points = endless.draw(stats.qmc.Sobol(self.dimension + 1, seed=0).random(_POINTS))
        logs = [
            portable.log(model.density(points[:, chosen]))
            for model, chosen in (
                (endless, list(range(self.dimension))),
                (endless.marginal(attribute), [attribute]),
                (endless.marginal(others), others),
            )
        ]
        return max(float(np.mean(logs[0] - logs[1] - logs[2])), 0.0)

    def scaled(self, units: ArrayLike) -> JointMixture:
        """The same in other units of the attributes: every value divided by its unit."""
        each = np.asarray(units, dtype=np.float64)
        return JointMixture(
            self.weights,
            self.means / each,
            self.covariances / np.outer(each, each),
            self.domain / each[:, None],
        )

    def _mass(self) -> float:
        if not np.isfinite(self.domain).any():
            return 1.0
        return float(
            portable.dot(self.weights, [self._inside(place) for place in range(self.weights.size)])
        )

    def _inside(self, place: int) -> float:
        scale = np.sqrt(np.diag(self.covariances[place]))
        low, high = ((self.domain - self.means[place][:, None]) / scale[:, None]).T
        if self.dimension == 1:
            return float(portable.normal_share(high[0]) - portable.normal_share(low[0]))
        return portable.settled(
            stats.multivariate_normal.cdf(
                high,
                np.zeros(self.dimension),
                self.covariances[place] / np.outer(scale, scale),
                lower_limit=low,
                rng=np.random.default_rng(0),  # where to sample an integral: no coin
            )
        )


def _records(records: ArrayLike) -> Floats:
    table = checks.numbers("records", records)
    if table.ndim != 2 or len(table) < 2:
        raise InvalidParameter("records", table.shape, "be at least two rows of numbers")
    spread = table.std(axis=0)
    size = np.maximum(np.abs(table).max(axis=0), 1e-150)
    if not (np.isfinite(spread).all() and (spread / size).min() > 1e-9):
        rule = "vary in every column: a constant one is known already"
        raise InvalidParameter("records", "a constant column", rule)
    return table


def _domain(domain: ArrayLike | None, size: int) -> Floats:
    if domain is None:
        return checks.read_only(np.tile([-np.inf, np.inf], (size, 1)))
    try:
        given = np.asarray(domain, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter("domain", "something else", f"be {size} pairs of numbers") from None
    if given.shape != (size, 2):
        raise InvalidParameter("domain", given.shape, f"be {size} pairs of numbers")
    if not np.all(given[:, 0] < given[:, 1]):
        raise InvalidParameter("domain", "an empty one", "be intervals LOW:HIGH with LOW < HIGH")
    return checks.read_only(given)
