r"""How likely an attacker who knows the joint distribution finds every attribute within a box.

$$\delta = \int \max_{\hat x} \int_{|x - \hat x| \le \varepsilon}
    f_X(x)\, f_\theta(y - x) \, dx \, dy$$

where $f_X$ is the prior, $f_\theta$ the noise and $\varepsilon$ the accuracy of each attribute: the
mean, over what is published, of the posterior mass of the best box. No attacker who knows the
prior does better, so this is the truth that the paper's chain of estimates is measured against.
It is never less than `VectorNoise.largest_box`, which an attacker without a prior reaches.

One normal prior and normal noise: in closed form. Up to three attributes: by quadrature, with the
difference of two grids as the error. Beyond: by Monte Carlo, with a confidence interval.

References:
    [MDDP, Def. 4 and Def. 5]
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from sfumato import _checks
from sfumato.errors import InvalidParameter
from sfumato.kernels.disclosure import (
    GAUSSIAN,
    LAPLACE,
    UNIFORM,
    Cube,
    NoiseForm,
    PriorForm,
    best_boxes,
    box_weights,
    shell_weights,
)
from sfumato.leakage.lattice_attack import LatticeAttack
from sfumato.mechanisms.round_boxes import ball_volume
from sfumato.mechanisms.round_noise import RoundNoise
from sfumato.mechanisms.vector_noise import VectorNoise, axis_scales, normal_box
from sfumato.models.joint import JointMixture

Floats = NDArray[np.float64]

PRECISION = 5e-3
CONFIDENCE = 0.99
QUADRATURE_AXES = 3
_GRIDS = {1: (96, 192, 384, 768, 1536), 2: (24, 36, 54), 3: (10, 14, 20)}
_NODES = {1: 10, 2: 5, 3: 4}
_WIDE, _MORE = 11.0, 1.5
_BATCH, _LEAST_BATCHES, _MOST_BATCHES = 256, 6, 24
_SAMPLED = 0.02
_FREEDOM = 5
_TAILS = {GAUSSIAN: 5.0, LAPLACE: 9.0}
_PRIOR_TAIL = 5.0
_THREADS = 2
_MOST = {1: 1000, 2: 60, 3: 20}
"""Points an axis of a grid that can be afforded to begin with."""
_SEARCHED = 1e-3
"""What the search for boxes and the nodes in them may miss, as a part of the whole."""


class Way(StrEnum):
    """How a disclosure probability was found."""

    CLOSED = "closed form"
    QUADRATURE = "quadrature"
    SAMPLING = "sampling"


@dataclass(frozen=True, slots=True)
class Found:
    """A disclosure probability and how far off it may be.

    Attributes:
        delta: The probability.
        low: It is at least this: the estimate less its error, or the end of a confidence interval.
        high: It is at most this.
        way: How it was found.
    """

    delta: float
    low: float
    high: float
    way: Way


def bayes_disclosure(
    prior: JointMixture,
    noise: VectorNoise,
    accuracy: ArrayLike,
    *,
    precision: float = PRECISION,
) -> Found:
    """The probability with which the best attacker who knows the prior finds every attribute.

    Args:
        prior: What the attacker knows of the values.
        noise: What is added to them.
        accuracy: How near the attacker must come, for all attributes or each.
        precision: Relative error to aim for.

    Examples:
        >>> from sfumato.mechanisms.publishing import noise_of
        >>> body = JointMixture.normal([170.0, 70.0], [[64.0, 58.8], [58.8, 144.0]])
        >>> alone = noise_of("gaussian", 5.0, 2).largest_box([2.0, 2.0])
        >>> known = bayes_disclosure(body, noise_of("gaussian", 5.0, 2), 2.0)
        >>> alone, known.delta, known.way.value
        (0.0966237, 0.1338769, 'closed form')
    """
    half = axis_scales("accuracy", accuracy, prior.dimension)
    if noise.sigma.size != prior.dimension:
        raise InvalidParameter("noise", noise.sigma.size, f"have {prior.dimension} axes")
    _checks.proper_fraction("precision", precision)
    form = noise.form()
    limited = bool(np.isfinite(prior.domain).any())
    if form.kind == GAUSSIAN and prior.weights.size == 1 and not limited:
        precise = np.linalg.inv(prior.covariances[0]) + form.precision
        posterior = np.asarray(np.linalg.inv(precise), dtype=np.float64)
        return _closed(normal_box(posterior, half), prior.dimension)
    if prior.dimension <= QUADRATURE_AXES and _least_count(prior, noise) <= _MOST[prior.dimension]:
        return _by_quadrature(prior, noise, half, precision)
    return _by_sampling(prior, noise, half, precision)


def prior_disclosure(prior: JointMixture, accuracy: ArrayLike) -> float:
    """The probability with which a guess is near enough when nothing is published at all.

    Examples:
        >>> prior_disclosure(JointMixture.normal([0.0], [[1.0]]), 1.0)
        0.682689
    """
    half = axis_scales("accuracy", accuracy, prior.dimension)
    nothing = unlimited(prior.dimension)
    densest = np.argsort(-prior.density(prior.means), kind="stable")[:24]
    form = prior_form(prior, np.diag(half**2))
    starts, cube = prior.means[densest], _cube(prior, half, nothing)
    found, _ = best_boxes(starts, half, half, cube, form, nothing)
    return float(min(found.max(), 1.0))


def best_estimates(
    prior: JointMixture, noise: VectorNoise, accuracy: ArrayLike, told: ArrayLike
) -> Floats:
    """Where the best attacker who knows the prior puts the box, for each published row.

    Examples:
        >>> from sfumato.mechanisms.publishing import noise_of
        >>> prior = JointMixture.normal([0.0, 0.0], [[1.0, 0.9], [0.9, 1.0]])
        >>> best_estimates(prior, noise_of("gaussian", 1.0, 2), 0.1, [[2.0, 0.0]]).round(1)
        array([[0.7, 0.6]])
    """
    half = axis_scales("accuracy", accuracy, prior.dimension)
    places = np.atleast_2d(_checks.numbers("told", told))
    if places.shape[1] != prior.dimension or noise.sigma.size != prior.dimension:
        raise InvalidParameter(
            "told", places.shape, f"have {prior.dimension} columns, as the noise"
        )
    form = prior_form(prior, noise.covariance)
    return _boxes(places, half, _cube(prior, half, noise.form()), form, noise)[1]


@dataclass(frozen=True, slots=True, eq=False)
class Attack:
    """Published points of a grid, and an attacker who knows the prior, of unit deviations.

    Attributes:
        told: The points.
        cell: Volume that each stands for.
        half: Half widths of the box.
        cube: Nodes of the integral over a box.
        prior: What the attacker knows.
    """

    told: Floats
    cell: float
    half: Floats
    cube: Cube
    prior: PriorForm

    @classmethod
    def on_grid(cls, prior: JointMixture, reach: float, half: Floats, count: int) -> Attack:
        """All that round noise of some reach may publish."""
        noise = RoundNoise.shells(np.ones(prior.dimension), [0.0, 1.0, 2.0], [0.5, 0.5])
        told, cell = _published_grid(prior, np.full(prior.dimension, reach), count)
        form = prior_form(prior, np.eye(prior.dimension))
        return cls(told, cell, half, _cube(prior, half, noise.form()), form)

    def best_response(self, noise: RoundNoise) -> tuple[float, Floats]:
        """The best attacker against a noise: its success, and that against each shell alone."""
        _, centres = _boxes(self.told, self.half, self.cube, self.prior, noise)
        form = noise.form()
        sums = shell_weights(self.told, centres, self.half, self.cube, self.prior, form)
        volumes = np.array([ball_volume(self.half.size, edge) for edge in noise.edges])
        each = sums * self.cell / np.diff(volumes)
        return float(each @ noise.masses), each


def unlimited(size: int) -> NoiseForm:
    """Noise so wide that what is published tells nothing."""
    flat, far = np.zeros((size, size)), np.full(size, np.inf)
    return NoiseForm(UNIFORM, np.ones(size), flat, np.zeros(1), np.ones(1), far)


def prior_form(prior: JointMixture, spread: Floats) -> PriorForm:
    """A prior as plain arrays, and what normal noise of some covariance would make of it."""
    told = np.linalg.inv(prior.covariances + spread)
    low, high = prior.bounds
    return PriorForm(
        low,
        high,
        np.asarray(prior.weights / prior.mass),
        np.array(prior.means),
        np.ascontiguousarray(np.linalg.cholesky(prior.covariances)),
        np.sqrt(np.diagonal(prior.covariances, axis1=1, axis2=2)),
        np.ascontiguousarray(prior.covariances @ told),
        np.ascontiguousarray(told),
        np.log(prior.weights) + 0.5 * np.linalg.slogdet(told)[1],
    )


def _closed(delta: float, dimension: int) -> Found:
    error = 1e-9 if dimension <= 2 else 1e-4
    return Found(delta, delta * (1 - error), min(delta * (1 + error), 1.0), Way.CLOSED)


def _by_quadrature(
    prior: JointMixture, noise: VectorNoise, half: Floats, precision: float
) -> Found:
    reach, form = _reach(noise), noise.form()
    shaped = prior.weights.size > 1 or len(form.heights) > 1 or form.edges[0] > 0
    lattice = LatticeAttack.of(prior, half, reach) if shaped else None
    known, cube = prior_form(prior, noise.covariance), _cube(prior, half, form)
    before, error = math.inf, math.inf
    delta = rough = 0.0
    narrow = np.sqrt(np.diagonal(prior.covariances, axis1=1, axis2=2)).max(axis=0)
    blunt = float(np.clip(1 - 4 * (narrow / reach).min(), 0.0, 1.0))
    finer = max(1.0, _least_count(prior, noise) / _GRIDS[prior.dimension][0])
    for base in _GRIDS[prior.dimension]:
        points, cell = _published_grid(prior, reach, math.ceil(base * finer))
        if lattice is None:
            found, _ = _boxes(points, half, cube, known, noise)
        else:
            found = lattice.weights(points, form)
            rough = rough or lattice.error(prior, half, points, form, float(found.sum()))
        delta = float(found.sum()) * cell
        change, before = abs(delta - before), delta
        # A grid sees the edge of noise that ends somewhere only as well as its points lie.
        edge = 1 / len(points) ** (1 / prior.dimension) if np.isfinite(form.reach).all() else 0.0
        error = 2 * change + (rough + _SEARCHED + blunt * edge) * delta
        if change <= precision * delta:
            break
    # An attacker without a prior reaches this much: what a grid has missed of it was there.
    least = noise.largest_box(half)
    error += max(least - delta, 0.0)
    if lattice is None and _ridged(prior):
        error += 0.5 * delta  # a search along the axes may stop short on a narrow ridge
    delta = min(max(delta, least), 1.0)
    return Found(delta, max(delta - error, least), min(delta + error, 1.0), Way.QUADRATURE)


def _ridged(prior: JointMixture) -> bool:
    """Whether some attribute is nearly told by the others."""
    roots = np.diagonal(np.linalg.cholesky(prior.covariances), axis1=1, axis2=2)
    deviations = np.sqrt(np.diagonal(prior.covariances, axis1=1, axis2=2))
    return bool((roots / deviations).min() < 0.05)


def _least_count(prior: JointMixture, noise: VectorNoise) -> float:
    """How many points an axis of a grid needs to see every component."""
    finest = np.linalg.cholesky(prior.covariances + noise.covariance)
    narrow = np.diagonal(finest, axis1=1, axis2=2).min(axis=0)
    low, high = prior.bounds
    return float(((high - low + 2 * _reach(noise)) / narrow).max())


def _reach(noise: VectorNoise) -> Floats:
    """How far the noise goes, but for tails that count for nothing."""
    form = noise.form()
    return np.minimum(form.reach, _TAILS.get(form.kind, math.inf) * noise.sigma)


def _published_grid(prior: JointMixture, reach: Floats, count: int) -> tuple[Floats, float]:
    """Evenly spaced points of what may be published, and the volume that each stands for."""
    deviations = np.sqrt(np.diagonal(prior.covariances, axis1=1, axis2=2))
    low = np.maximum((prior.means - _PRIOR_TAIL * deviations).min(axis=0), prior.domain[:, 0])
    high = np.minimum((prior.means + _PRIOR_TAIL * deviations).max(axis=0), prior.domain[:, 1])
    axes = [
        start + (np.arange(count) + 0.5) * (stop - start) / count
        for start, stop in zip(low - reach, high + reach, strict=True)
    ]
    points = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    return points, float(np.prod((high - low + 2 * reach) / count))


def _by_sampling(prior: JointMixture, noise: VectorNoise, half: Floats, precision: float) -> Found:
    """The same integral over published points, from random ones of a heavier-tailed density.

    A box is found with some nodes and weighed with others: the search cannot flatter itself.
    """
    spread = noise.covariance
    form, kind = prior_form(prior, spread), noise.form()
    seek, weigh = _sobol(prior.dimension, 7), _sobol(prior.dimension, 10)
    means: list[float] = []
    delta = spacing = math.inf
    for told, density in _proposals(prior, spread):
        _, centres = _boxes(told, half, seek, form, noise)
        weights = box_weights(centres, half, told, weigh, form, kind)
        means.append(float(np.mean(weights / density)))
        delta = float(np.mean(means))
        if len(means) >= _LEAST_BATCHES:
            quantile = float(stats.t.ppf(0.5 + 0.5 * CONFIDENCE, len(means) - 1))
            spacing = quantile * float(np.std(means, ddof=1)) / math.sqrt(len(means))
            if spacing <= max(precision, _SAMPLED) * delta or len(means) >= _MOST_BATCHES:
                break
    least = noise.largest_box(half)
    spacing += max(least - delta, 0.0)  # what an attacker without a prior has was missed
    delta = min(max(delta, least), 1.0)
    return Found(delta, max(delta - spacing, least), min(delta + spacing, 1.0), Way.SAMPLING)


def _proposals(prior: JointMixture, spread: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Points near which something may be published, batch by batch, and their density."""
    size = prior.dimension
    scales = prior.covariances + spread
    for batch in range(_MOST_BATCHES):
        shares = stats.qmc.Sobol(size + 2, seed=batch).random(_BATCH)
        which = np.searchsorted(prior.weights.cumsum()[:-1], shares[:, 0], side="right")
        stretch = np.sqrt(_FREEDOM / stats.chi2.ppf(shares[:, 1], _FREEDOM))
        normals = special.ndtri(np.clip(shares[:, 2:], 1e-12, 1 - 1e-12)) * stretch[:, None]
        factors = np.linalg.cholesky(scales)
        told = prior.means[which] + np.einsum("rij,rj->ri", factors[which], normals)
        density = np.zeros(len(told))
        for weight, mean, scale in zip(prior.weights, prior.means, scales, strict=True):
            density += weight * stats.multivariate_t.pdf(told, mean, scale, _FREEDOM)
        yield told, density


def _sobol(size: int, power: int) -> Cube:
    nodes = stats.qmc.Sobol(size, seed=power).random(2**power)
    return Cube(nodes, np.full(len(nodes), 1 / len(nodes)))


def _boxes(
    told: Floats,
    half: Floats,
    cube: Cube,
    prior: PriorForm,
    noise: VectorNoise,
) -> tuple[Floats, Floats]:
    """The best boxes of many points, on two threads."""
    step = np.maximum(half, 0.5 * np.minimum(noise.sigma, prior.deviations.max(axis=0)))
    parts = np.array_split(np.ascontiguousarray(told), _THREADS)
    form = noise.form()

    def search(part: Floats) -> tuple[Floats, Floats]:
        return best_boxes(part, half, step, cube, prior, form)

    with ThreadPoolExecutor(_THREADS) as pool:
        done = list(pool.map(search, parts))
    return np.concatenate([one[0] for one in done]), np.concatenate([one[1] for one in done])


def _cube(prior: JointMixture, half: Floats, noise: NoiseForm) -> Cube:
    """Gauss-Legendre nodes, more of them where a box is wide against the prior."""
    size = prior.dimension
    if size > QUADRATURE_AXES:
        return _sobol(size, 8)
    count = _node_count(prior, half, noise)
    panels = 2 if noise.kind == LAPLACE else 1  # the kink of the density is put between them
    places, weights = np.polynomial.legendre.leggauss(max(math.ceil(count / panels), 2))
    line = np.concatenate([(0.5 * (places + 1) + panel) / panels for panel in range(panels)])
    line_weights = np.tile(0.5 * weights / panels, panels)
    grids = np.meshgrid(*[line] * size, indexing="ij")
    products = np.meshgrid(*[line_weights] * size, indexing="ij")
    nodes = np.stack([grid.ravel() for grid in grids], axis=1)
    return Cube(np.ascontiguousarray(nodes), np.prod([p.ravel() for p in products], axis=0))


def _node_count(prior: JointMixture, half: Floats, noise: NoiseForm) -> int:
    """Nodes an axis: by how many deviations of a component, or of the noise, a box is wide.

    Beyond some both end within the box, and the nodes go to where they are.
    """
    roots = np.linalg.cholesky(prior.covariances)
    finest = np.diagonal(roots, axis1=1, axis2=2).min(axis=0)
    if noise.kind in (GAUSSIAN, LAPLACE):
        finest = np.minimum(finest, noise.scale)
    wide = min(float((2 * half / finest).max()), _WIDE)
    rough = 2.0 if len(noise.heights) > 1 else 1.0  # shells cut a box in many ways
    least = _NODES[prior.dimension]
    return math.ceil(rough * least * (1 + _MORE * wide / _WIDE))
