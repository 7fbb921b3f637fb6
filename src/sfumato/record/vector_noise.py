r"""Noise for several numbers of one person at once.

What every such noise can say, and two families: independent axes (uniform, Gaussian, Laplace) and
a Gaussian with correlated axes; `round_noise` is the third. A noise is frozen and holds no coins:
`draw` turns words into noise.

References:
    [MDDP, Thm. 2]
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.core.digest import digest
from sfumato.core.errors import InvalidParameter
from sfumato.record.attack.normal_quantile import normal_quantiles
from sfumato.record.constants import GAUSSIAN_TAIL, LAPLACE_TAIL
from sfumato.record.noise_form import GAUSSIAN, LAPLACE, UNIFORM, NoiseForm
from sfumato.record.quadrature import legendre

Words = NDArray[np.uint64]

MOST_AXES = 16
ROUNDED_UP = 1 + 1e-12


class Kind(StrEnum):
    """Noises of one axis."""

    UNIFORM = "uniform"
    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"


class VectorNoise(ABC):
    """Noise with mean 0 for several numbers at once, of standard deviation `sigma` on each axis.

    Unless a noise says otherwise its axes are uncorrelated, its largest box lies around 0, and one
    draw takes a random word an axis.
    """

    __slots__ = ()
    sigma: Floats

    @property
    def covariance(self) -> Floats:
        """Covariance of the axes."""
        return _floats(np.diag(self.sigma**2))

    @property
    def words(self) -> int:
        """How many random words one draw takes."""
        return self.sigma.size

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Identifies the noise."""

    @abstractmethod
    def box_mass(self, half: ArrayLike) -> float:
        """Probability of the box around 0 with these half widths."""

    def largest_box(self, half: ArrayLike) -> float:
        """Largest probability of any box of this size, rounded up."""
        return min(self.box_mass(half) * ROUNDED_UP, 1.0)

    @abstractmethod
    def axis_mass(self, axis: int, low: ArrayLike, high: ArrayLike) -> Floats:
        """Probability that one axis lies in some intervals."""

    @abstractmethod
    def draw(self, words: Words) -> Floats:
        """Noise from random words: one draw a row."""

    @abstractmethod
    def form(self) -> NoiseForm:
        """The noise as plain arrays."""


def axis_scales(name: str, value: ArrayLike, dimension: int | None = None) -> Floats:
    """One positive number for each axis, from one for all or as many as axes."""
    given = checks.numbers(name, value)
    each = np.atleast_1d(given)
    if dimension is not None and checks.count("dimension", dimension) > MOST_AXES:
        raise InvalidParameter("dimension", dimension, f"be 1 to {MOST_AXES}")
    if dimension is not None and each.size == 1:
        each = np.full(dimension, each.ravel()[0])
    if each.ndim != 1 or each.size == 0 or (dimension is not None and each.size != dimension):
        rule = "be a row of numbers" if dimension is None else f"be one number, or {dimension}"
        raise InvalidParameter(name, given.shape, rule)
    if not each.min() > 0:
        raise InvalidParameter(name, float(each.min()), "be greater than 0")
    if not (each.min() > 1e-100 and each.max() < 1e100):
        raise InvalidParameter(name, float(each.max()), "be neither tiny nor huge")
    if each.size > MOST_AXES:
        raise InvalidParameter(name, each.size, f"be for at most {MOST_AXES} attributes")
    return checks.read_only(each)


def half_widths(noise: VectorNoise, accuracy: ArrayLike, dimension: int) -> Floats:
    """Half widths of an attacker's box, against noise of as many axes as there are attributes."""
    if noise.sigma.size != dimension:
        raise InvalidParameter("noise", noise.sigma.size, f"have {dimension} axes")
    return axis_scales("accuracy", accuracy, dimension)


def reach_of(noise: VectorNoise) -> Floats:
    """How far a noise goes along each axis; one without end, as far as it counts."""
    form = noise.form()
    tail = {GAUSSIAN: GAUSSIAN_TAIL, LAPLACE: LAPLACE_TAIL}.get(form.kind, math.inf)
    return np.minimum(form.reach, tail * noise.sigma)


def grid_points(axes: Sequence[Floats]) -> Floats:
    """All points with one coordinate from each axis, one a row.

    Examples:
        >>> grid_points([np.array([0.0, 1.0]), np.array([5.0])])
        array([[0., 5.], [1., 5.]])
    """
    grids = np.meshgrid(*axes, indexing="ij")
    return np.ascontiguousarray(np.stack([grid.ravel() for grid in grids], axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class ProductNoise(VectorNoise):
    """Independent noise on each axis, of one kind.

    Attributes:
        kind: Uniform, Gaussian or Laplace.
        sigma: Standard deviation of each axis.

    Examples:
        >>> noise = ProductNoise(Kind.LAPLACE, np.array([2.0]))
        >>> noise.box_mass([2.0])  # 1 - exp(-sqrt 2)
        0.756883
    """

    kind: Kind
    sigma: Floats

    def __post_init__(self) -> None:
        if self.kind not in tuple(Kind):
            raise InvalidParameter("kind", self.kind, f"be one of {', '.join(Kind)}")
        object.__setattr__(self, "kind", Kind(self.kind))
        object.__setattr__(self, "sigma", axis_scales("sigma", self.sigma))

    @property
    def fingerprint(self) -> str:
        """Identifies the noise."""
        return digest("product noise", self.kind.value, self.sigma)

    def box_mass(self, half: ArrayLike) -> float:
        """Probability of the box around 0 with these half widths."""
        return math.prod(
            float(self.axis_mass(axis, -width, width))
            for axis, width in enumerate(axis_scales("half", half, self.sigma.size))
        )

    def axis_mass(self, axis: int, low: ArrayLike, high: ArrayLike) -> Floats:
        """Probability that one axis lies in some intervals."""
        left, right = (np.asarray(end, dtype=np.float64) / self.sigma[axis] for end in (low, high))
        # Right of 0, differences of upper tails keep the digits of small masses.
        mirrored = left > 0
        upper, lower = np.where(mirrored, -left, right), np.where(mirrored, -right, left)
        return np.maximum(_cumulative(self.kind, upper) - _cumulative(self.kind, lower), 0.0)

    def draw(self, words: Words) -> Floats:
        """Noise from random words: one draw a row."""
        return self.sigma * standard(self.kind, uniforms(words))

    def form(self) -> NoiseForm:
        """The noise as plain arrays."""
        match self.kind:
            case Kind.UNIFORM:
                width = math.sqrt(3) * self.sigma
                return NoiseForm.of(UNIFORM, width, 1 / float(np.prod(2 * width)), reach=width)
            case Kind.GAUSSIAN:
                height = 1 / float(np.prod(math.sqrt(2 * math.pi) * self.sigma))
                precision = np.diag(_floats(1 / self.sigma**2))
                return NoiseForm.of(GAUSSIAN, self.sigma, height, precision=precision)
            case _:
                mean_size = self.sigma / math.sqrt(2)
                return NoiseForm.of(LAPLACE, mean_size, 1 / float(np.prod(2 * mean_size)))


@dataclass(frozen=True, slots=True, eq=False)
class CorrelatedNoise(VectorNoise):
    """Gaussian noise whose axes are correlated.

    Attributes:
        sigma: Standard deviation of each axis.
        correlation: Of the axes.

    Examples:
        >>> noise = CorrelatedNoise(np.array([1.0, 2.0]), np.array([[1.0, 0.6], [0.6, 1.0]]))
        >>> float(noise.covariance[0, 1]), noise.box_mass([1.0, 2.0])
        (1.2, 0.51386849)
    """

    sigma: Floats
    correlation: Floats

    def __post_init__(self) -> None:
        matrix = checks.positive_definite("correlation", self.correlation)
        if np.abs(np.diag(matrix) - 1).max() > 1e-9:
            raise InvalidParameter("correlation", "another diagonal", "have ones on its diagonal")
        object.__setattr__(self, "correlation", matrix)
        object.__setattr__(self, "sigma", axis_scales("sigma", self.sigma, len(matrix)))

    @property
    def covariance(self) -> Floats:
        """Covariance of the axes."""
        return self.correlation * np.outer(self.sigma, self.sigma)

    @property
    def fingerprint(self) -> str:
        """Identifies the noise."""
        return digest("correlated noise", self.covariance)

    def box_mass(self, half: ArrayLike) -> float:
        """Probability of the box around 0 with these half widths."""
        return normal_box(self.covariance, axis_scales("half", half, self.words))

    def largest_box(self, half: ArrayLike) -> float:
        """Largest probability of any box of this size, rounded up: it lies around 0."""
        # From three axes on the integral is sampled, to the 1e-6 asked for and some more.
        slack = 1e-9 if self.words <= 2 else 1e-4
        return min(self.box_mass(half) * (1 + slack), 1.0)

    def axis_mass(self, axis: int, low: ArrayLike, high: ArrayLike) -> Floats:
        """Probability that one axis lies in some intervals."""
        return ProductNoise(Kind.GAUSSIAN, self.sigma).axis_mass(axis, low, high)

    def draw(self, words: Words) -> Floats:
        """Noise from random words: one draw a row."""
        normals = standard(Kind.GAUSSIAN, uniforms(words))
        return np.asarray(portable.dot(normals, portable.root(self.covariance).T))

    def form(self) -> NoiseForm:
        """The noise as plain arrays."""
        spread = self.covariance
        logarithm = self.words * portable.log(2 * math.pi) + float(portable.log_determinant(spread))
        height, precision = portable.exp(-0.5 * logarithm), portable.inverse(spread)
        return NoiseForm.of(GAUSSIAN, self.sigma, height, precision=precision)


def uniforms(words: Words) -> Floats:
    """Numbers strictly between 0 and 1, the middles of 2^52 cells, one for each word."""
    return np.asarray(((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52)


def normal_box(covariance: Floats, half: Floats) -> float:
    """Probability of a box around the mean of a normal distribution."""
    sigma = np.sqrt(np.diag(covariance))
    if len(sigma) == 1:
        return float(portable.erf(half[0] / (sigma[0] * math.sqrt(2))))
    if len(sigma) == 2:
        return _normal_rectangle(half / sigma, covariance[0, 1] / float(np.prod(sigma)))
    found = stats.multivariate_normal.cdf(
        half,
        mean=np.zeros(len(sigma)),
        cov=covariance,
        lower_limit=-half,
        maxpts=200_000 * len(sigma),
        abseps=1e-12,
        releps=1e-6,
        rng=np.random.default_rng(0),  # where to sample an integral: no coin of any release
    )
    return portable.settled(np.clip(found, 0.0, 1.0))


def _normal_rectangle(half: Floats, correlation: float) -> float:
    """Two axes of unit deviation: one integral, of the conditional probability of the other."""
    nodes, weights = legendre(64)
    reach, other = min(half[0], 9.0), half[1]
    narrow = math.sqrt(1 - correlation**2)
    # A strongly correlated partner leaves the box quickly: panels fine against that.
    panels = max(1, math.ceil(reach * max(abs(correlation) / narrow, 1.0) / 4))
    edges = np.linspace(-reach, reach, panels + 1)
    widths = 0.5 * np.diff(edges)[:, None]
    places = 0.5 * (edges[1:] + edges[:-1])[:, None] + widths * nodes
    upper = (other - correlation * places) / narrow
    lower = (-other - correlation * places) / narrow
    inner = portable.normal_share(upper) - portable.normal_share(lower)
    density = portable.exp(-0.5 * places**2) / math.sqrt(2 * math.pi)
    return float(np.clip((widths * weights * density * inner).sum(), 0.0, 1.0))


def _cumulative(kind: Kind, reduced: Floats) -> Floats:
    match kind:
        case Kind.UNIFORM:
            return np.clip(0.5 + reduced / (2 * math.sqrt(3)), 0.0, 1.0)
        case Kind.GAUSSIAN:
            return np.asarray(portable.normal_share(reduced))
        case _:
            small = 0.5 * portable.exp(-math.sqrt(2) * np.abs(reduced))
            return np.where(reduced < 0, small, 1 - small)


def standard(kind: Kind, shares: Floats) -> Floats:
    """Where the distribution function of unit deviation takes some values."""
    match kind:
        case Kind.UNIFORM:
            return np.asarray(math.sqrt(3) * (2 * shares - 1))
        case Kind.GAUSSIAN:
            return normal_quantiles(shares)
        case _:
            tail = portable.log(2 * np.minimum(shares, 1 - shares)) / math.sqrt(2)
            return _floats(np.where(shares < 0.5, tail, -tail))


def _floats(array: ArrayLike) -> Floats:
    return np.asarray(array, dtype=np.float64)
