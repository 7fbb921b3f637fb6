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
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.record.attack.box_loops import (
    GAUSSIAN,
    LAPLACE,
    UNIFORM,
    Cube,
    NoiseForm,
    PriorForm,
    best_boxes,
    box_weights,
)
from sfumato.record.attack.lattice_attack import LatticeAttack
from sfumato.record.coupling.joint_mixture import JointMixture
from sfumato.record.vector_noise import VectorNoise, axis_scales, grid_points, normal_box

PRECISION = 5e-3
CONFIDENCE = 0.99
QUADRATURE_AXES = 3
_GRIDS = {1: (96, 192, 384, 768, 1536), 2: (24, 36, 54), 3: (10, 14, 20)}
_NODES = {1: 10, 2: 5, 3: 4}
_DENSITY_NODES = {1: 48, 2: 24, 3: 14}
_FINER = 2
"""Nodes an axis that weigh a box that was found, to each that it was found with."""
_WIDE, _MORE = 11.0, 1.5
_BATCH, _LEAST_BATCHES, _MOST_BATCHES = 256, 6, 24
_SAMPLED = 0.02
_FREEDOM = 5
_TAILS = {GAUSSIAN: 5.0, LAPLACE: 9.0}
_PRIOR_TAIL = 5.0
_THREADS = 2
_MOST = {1: 1000, 2: 60, 3: 20}
"""Points an axis of a grid that can be afforded to begin with."""
_SKEW = {1: [], 2: [0.6180339887498949], 3: [0.7548776662466927, 0.5698402909980532]}
"""Shares of the widths of later axes from one point to the next: powers of the golden ratio and of
its like for three axes, of which no few steps come back near to where they began."""
_UNCORRELATED = 0.1
"""Correlations up to which a search along the axes is as good as any."""
_JITTER = 1e-13
"""Part of a variance that is added to it, against rounding."""
_SEARCHED = 3e-3
"""What the search for boxes and the nodes in them may miss, as a part of the whole."""


class Way(StrEnum):
    """How a disclosure probability was found."""

    CLOSED = "closed form"
    QUADRATURE = "quadrature"
    SAMPLING = "sampling"
    HELD_OUT = "attacks on held-out records"


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
        >>> from sfumato.record.published_noise import noise_of
        >>> body = JointMixture.normal([170.0, 70.0], [[64.0, 58.8], [58.8, 144.0]])
        >>> alone = noise_of("gaussian", 5.0, 2).largest_box([2.0, 2.0])
        >>> known = bayes_disclosure(body, noise_of("gaussian", 5.0, 2), 2.0)
        >>> alone, known.delta, known.way.value
        (0.0966237, 0.1338769, 'closed form')
    """
    half = axis_scales("accuracy", accuracy, prior.dimension)
    if noise.sigma.size != prior.dimension:
        raise InvalidParameter("noise", noise.sigma.size, f"have {prior.dimension} axes")
    checks.proper_fraction("precision", precision)
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
    lines = _lines(form, half, half)
    found, _ = best_boxes(starts, np.array(half), lines, cube, form, nothing)
    return float(min(found.max(), 1.0))


def best_estimates(
    prior: JointMixture, noise: VectorNoise, accuracy: ArrayLike, told: ArrayLike
) -> Floats:
    """Where the best attacker who knows the prior puts the box, for each published row.

    Examples:
        >>> from sfumato.record.published_noise import noise_of
        >>> prior = JointMixture.normal([0.0, 0.0], [[1.0, 0.9], [0.9, 1.0]])
        >>> best_estimates(prior, noise_of("gaussian", 1.0, 2), 0.1, [[2.0, 0.0]]).round(1)
        array([[0.7, 0.6]])
    """
    half = axis_scales("accuracy", accuracy, prior.dimension)
    places = np.atleast_2d(checks.numbers("told", told))
    if places.shape[1] != prior.dimension or noise.sigma.size != prior.dimension:
        raise InvalidParameter(
            "told", places.shape, f"have {prior.dimension} columns, as the noise"
        )
    lattice = _lattice(prior, noise, half)
    if lattice is not None:
        return lattice.best_boxes(places, _plain(noise.form()))[2]
    form = prior_form(prior, noise.covariance)
    return _boxes(places, half, _cube(prior, half, noise.form()), form, noise)[1]


def unlimited(size: int) -> NoiseForm:
    """Noise so wide that what is published tells nothing."""
    flat, far = np.zeros((size, size)), np.full(size, np.inf)
    return NoiseForm(UNIFORM, np.ones(size), flat, np.zeros(1), np.ones(1), far)


def prior_form(prior: JointMixture, spread: Floats) -> PriorForm:
    """A prior as plain arrays, and what normal noise of some covariance would make of it."""
    told = np.linalg.inv(prior.covariances + spread)
    gains = prior.covariances @ told
    after = gains @ spread
    after = 0.5 * (after + np.swapaxes(after, 1, 2)) + _JITTER * after * np.eye(prior.dimension)
    low, high = prior.bounds
    return PriorForm(
        low,
        high,
        np.asarray(prior.weights / prior.mass),
        np.array(prior.means),
        *_roots(prior.covariances),
        np.sqrt(np.diagonal(prior.covariances, axis1=1, axis2=2)),
        np.ascontiguousarray(gains),
        np.ascontiguousarray(after),
        *_roots(after),
        np.ascontiguousarray(told),
        np.log(prior.weights) + 0.5 * np.linalg.slogdet(told)[1],
        prior.mass,
    )


def _roots(covariances: Floats) -> tuple[Floats, Floats]:
    """Lower triangular roots, and deviations that remain when all axes up to another are known."""
    roots = np.linalg.cholesky(covariances)
    squares = np.cumsum(roots[:, :, ::-1] ** 2, axis=2)[:, :, ::-1]
    rests = np.sqrt(np.maximum(squares - roots**2, 0.0))
    return np.ascontiguousarray(roots), np.ascontiguousarray(rests)


def _closed(delta: float, dimension: int) -> Found:
    error = 1e-9 if dimension <= 2 else 1e-4
    return Found(delta, delta * (1 - error), min(delta * (1 + error), 1.0), Way.CLOSED)


def _by_quadrature(
    prior: JointMixture, noise: VectorNoise, half: Floats, precision: float
) -> Found:
    form, lattice = _plain(noise.form()), _lattice(prior, noise, half)
    known, cube = prior_form(prior, noise.covariance), _cube(prior, half, form)
    # A box is weighed with other nodes than it was found with: the search cannot flatter itself.
    finer_cube, dense_cube = _cube(prior, half, form, _FINER), _dense_cube(prior.dimension, form)
    everywhere = np.full(prior.dimension, np.inf)
    before, error, delta, rough = math.inf, math.inf, 0.0, 0.0
    rim = _rim(prior, noise)
    finer = max(1.0, _least_count(prior, noise) / _GRIDS[prior.dimension][0])
    for base in _GRIDS[prior.dimension]:
        count = math.ceil(base * finer)
        points, cell = _published_grid(prior, reach_of(noise), count)
        if lattice is None:
            rated, centres = _boxes(points, half, cube, known, noise)
            points, centres = points[rated > 0], centres[rated > 0]
            found = _weights(points, centres, half, finer_cube, known, form)
            every = _weights(points, points, everywhere, dense_cube, known, form)
        else:
            found, every, _ = lattice.best_boxes(points, form)
            rough = rough or lattice.error(prior, half, points, form, float(found.sum()))
        # What points miss or see twice of the boxes, they do so of all that is published.
        seen = max(float(every.sum()), math.ulp(0.0))
        delta, missed = float(found.sum()) / seen, abs(seen * cell - 1)
        change, before = abs(delta - before), delta
        error = 2 * change + (rough + _SEARCHED + missed + min(rim, 1 / count)) * delta
        if change <= precision * delta:
            break
    # An attacker without a prior reaches this much: what a grid has missed of it was there.
    least = noise.largest_box(half)
    error += max(least - delta, 0.0)
    delta = min(max(delta, least), 1.0)
    return Found(delta, max(delta - error, least), min(delta + error, 1.0), Way.QUADRATURE)


def _lattice(prior: JointMixture, noise: VectorNoise, half: Floats) -> LatticeAttack | None:
    """A lattice for what may have several peaks, if one is fine enough."""
    form = noise.form()
    peaked = prior.weights.size == 1 and len(form.heights) == 1 and form.edges[0] == 0
    if peaked or prior.dimension > QUADRATURE_AXES:
        return None
    return LatticeAttack.of(prior, half, reach_of(noise))


def _rim(prior: JointMixture, noise: VectorNoise) -> float:
    """The part of what is published that lies where noise ends, if that is sharp."""
    deviations = np.sqrt(np.diagonal(prior.covariances, axis1=1, axis2=2)).max(axis=0)
    sharp = 4 * float((deviations / noise.form().reach).min())
    return prior.dimension * sharp if 0 < sharp < 1 else 0.0


def _dense_cube(size: int, noise: NoiseForm) -> Cube:
    """Nodes for all that a prior and a noise have in common."""
    panels = _panels(noise)
    return _gauss(size, _DENSITY_NODES[size] // panels, panels)


def _weights(
    told: Floats, centres: Floats, half: Floats, cube: Cube, prior: PriorForm, noise: NoiseForm
) -> Floats:
    """Prior times noise over one box for each published point, on two threads."""

    def weigh(part: tuple[Floats, Floats]) -> Floats:
        return box_weights(part[1], np.array(half), part[0], cube, prior, noise)

    parts = zip(np.array_split(told, _THREADS), np.array_split(centres, _THREADS), strict=True)
    with ThreadPoolExecutor(_THREADS) as pool:
        return np.concatenate(list(pool.map(weigh, parts)))


def _least_count(prior: JointMixture, noise: VectorNoise) -> float:
    """How many points an axis of a grid needs to see every component."""
    finest = np.linalg.cholesky(prior.covariances + noise.covariance)
    narrow = np.diagonal(finest, axis1=1, axis2=2).min(axis=0)
    low, high = prior.bounds
    return float(((high - low + 2 * reach_of(noise)) / narrow).max())


def reach_of(noise: VectorNoise, tails: Mapping[int, float] = _TAILS) -> Floats:
    """How far a noise goes along each axis; one without end, some deviations by its kind."""
    form = noise.form()
    return np.minimum(form.reach, tails.get(form.kind, math.inf) * noise.sigma)


def _published_grid(prior: JointMixture, reach: Floats, count: int) -> tuple[Floats, float]:
    """Points of what may be published, so many an axis, and the volume that each stands for.

    A lattice that lies askew: no edge of the noise and no ridge runs along a row of its points.
    """
    deviations = np.sqrt(np.diagonal(prior.covariances, axis1=1, axis2=2))
    low = np.maximum((prior.means - _PRIOR_TAIL * deviations).min(axis=0), prior.domain[:, 0])
    high = np.minimum((prior.means + _PRIOR_TAIL * deviations).max(axis=0), prior.domain[:, 1])
    size = prior.dimension
    number = np.arange(count**size)[:, None] + 0.5
    shares = np.hstack([number / len(number), number * np.array(_SKEW[size]) % 1])
    spans = high - low + 2 * reach
    return low - reach + shares * spans, float(np.prod(spans / count))


def _by_sampling(prior: JointMixture, noise: VectorNoise, half: Floats, precision: float) -> Found:
    """The same integral over published points, from random ones of a heavier-tailed density.

    A box is found with some nodes and weighed with others, which are new in every batch: the
    search cannot flatter itself, and what nodes miss is part of the interval.
    """
    spread = noise.covariance
    form, kind = prior_form(prior, spread), _plain(noise.form())
    seek = _sobol(prior.dimension, 7, 7)
    means: list[float] = []
    delta = spacing = math.inf
    for told, density in _proposals(prior, spread):
        _, centres = _boxes(told, half, seek, form, noise)
        weigh = _sobol(prior.dimension, 10, 10 + len(means))
        weights = _weights(told, centres, half, weigh, form, kind)
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


def _sobol(size: int, power: int, seed: int) -> Cube:
    nodes = stats.qmc.Sobol(size, seed=seed).random(2**power)
    return Cube(nodes, np.full(len(nodes), 1 / len(nodes)))


def _boxes(
    told: Floats,
    half: Floats,
    cube: Cube,
    prior: PriorForm,
    noise: VectorNoise,
) -> tuple[Floats, Floats]:
    """The best boxes of many points, on two threads."""
    lines = _lines(prior, half, noise.sigma)
    parts = np.array_split(np.array(told), _THREADS)
    form, width = _plain(noise.form()), np.array(half)

    def search(part: Floats) -> tuple[Floats, Floats]:
        return best_boxes(part, width, lines, cube, prior, form)

    with ThreadPoolExecutor(_THREADS) as pool:
        done = list(pool.map(search, parts))
    return np.concatenate([one[0] for one in done]), np.concatenate([one[1] for one in done])


def _plain(noise: NoiseForm) -> NoiseForm:
    """The same with arrays that may be written to: kernels are compiled once for all noises."""
    return NoiseForm(noise.kind, *(np.array(each) for each in noise[1:]))


def _lines(prior: PriorForm, half: Floats, sigma: Floats) -> Floats:
    """Steps along which boxes are sought: the axes, and the main axes of correlated components."""
    steps = np.maximum(half, 0.5 * np.minimum(sigma, prior.deviations.max(axis=0)))
    axes = np.broadcast_to(np.diag(steps), prior.spreads.shape)
    deviations = np.sqrt(np.diagonal(prior.spreads, axis1=1, axis2=2))
    correlations = prior.spreads / deviations[:, :, None] / deviations[:, None, :]
    if np.abs(correlations - np.eye(len(half))).max() < _UNCORRELATED:
        return np.array(axes)
    squares, vectors = np.linalg.eigh(correlations)
    lengths = np.sqrt(np.maximum(squares, 0.0))
    lines = np.swapaxes(vectors * deviations[:, :, None] * lengths[:, None, :], 1, 2)
    # A narrow ridge is crossed with the box, not with its own width.
    wide = (half / np.maximum(np.abs(lines), 1e-12 * half)).min(axis=2, keepdims=True)
    return np.ascontiguousarray(np.concatenate([lines * np.maximum(wide, 1.0), axes], axis=1))


def _cube(prior: JointMixture, half: Floats, noise: NoiseForm, finer: int = 1) -> Cube:
    """Gauss-Legendre nodes, more of them where a box is wide against the prior."""
    size = prior.dimension
    if size > QUADRATURE_AXES:
        return _sobol(size, 8, 8)
    panels = _panels(noise)
    count = max(math.ceil(_node_count(prior, half, noise) / panels), 2)
    return _gauss(size, finer * count, panels)


def _panels(noise: NoiseForm) -> int:
    """How many parts of an axis have nodes of their own: a kink of the density lies between two."""
    return 2 if noise.kind == LAPLACE else 1


def _gauss(size: int, count: int, panels: int = 1) -> Cube:
    """Products of Gauss-Legendre nodes, so many in each panel of an axis."""
    places, weights = np.polynomial.legendre.leggauss(count)
    line = np.concatenate([(0.5 * (places + 1) + panel) / panels for panel in range(panels)])
    line_weights = np.tile(0.5 * weights / panels, panels)
    products = grid_points([line_weights] * size).prod(axis=1)
    return Cube(grid_points([line] * size), products)


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
