"""The best attacker's boxes by a search: for any number of axes, and noise of any width.

A box is found with some nodes and weighed with others, which are new in every batch: the search
cannot flatter itself, and what nodes miss is part of the interval around the mean.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy import stats

from sfumato.core import portable
from sfumato.core.arrays import Floats
from sfumato.core.portable_products import eigen
from sfumato.record.attack.box_loops import Attack, PriorForm, best_boxes, box_weights
from sfumato.record.constants import THREADS
from sfumato.record.coupling.joint_mixture import JointMixture
from sfumato.record.noise_form import UNIFORM, NoiseForm

_SEARCH_ERROR, _SHELL_ERROR = 3e-3, 5e-2
"""What a search may miss of the best box, as a part of it: of noise with one peak, and with shells,
each seen against brute force. Shells are searched only where they are too wide for a lattice."""
_SEEK, _WEIGH = 3, 6
"""Logarithm, to base 2, of the nodes that boxes are found and weighed with, less the axes."""
_MOST_NODES = 10
_UNCORRELATED = 0.1
"""Correlations up to which a search along the axes is as good as any."""
_JITTER = 1e-13
"""Part of a variance that is added to it, against rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class BoxSearch:
    """An attacker who looks for the best box from likely starts.

    Attributes:
        attack: What is known, with the nodes that boxes are found with.
        lines: First steps of a search, for each component of the prior.
    """

    attack: Attack
    lines: Floats

    @classmethod
    def of(cls, prior: JointMixture, noise: NoiseForm, spread: Floats, half: Floats) -> BoxSearch:
        """Against a noise of some covariance."""
        known = _prior_form(prior, spread)
        nodes = _nodes(half.size, _SEEK, seed=7)
        # Each layout would be compiled for itself.
        lines = np.ascontiguousarray(_lines(known, half, np.sqrt(np.diag(spread))))
        return cls(Attack(np.array(half), nodes, known, noise), lines)

    def boxes(self, points: Floats) -> tuple[Floats, Floats]:
        """What the best box of each published point weighs, and its centre."""

        def search(part: Floats) -> tuple[Floats, Floats]:
            return best_boxes(part, self.lines, self.attack)

        with ThreadPoolExecutor(THREADS) as pool:
            done = list(pool.map(search, np.array_split(points, THREADS)))
        return np.concatenate([one[0] for one in done]), np.concatenate([one[1] for one in done])

    def shares(self, points: Floats, batch: int) -> Floats:
        """Posterior probability of the best box of each published point.

        Args:
            points: What was published, one a row.
            batch: Another one takes other nodes.
        """
        _, centres = self.boxes(points)
        nodes = _nodes(points.shape[1], _WEIGH, seed=8 + batch)
        inside = self.attack._replace(nodes=nodes)
        anywhere = inside._replace(half=np.full(points.shape[1], np.inf))

        def weigh(attack: Attack) -> Floats:
            return box_weights(centres, points, attack)

        with ThreadPoolExecutor(THREADS) as pool:
            held, total = pool.map(weigh, (inside, anywhere))
        # What no node explains counts as found.
        return np.minimum(np.where(total > 0, held / np.maximum(total, 1e-300), 1.0), 1.0)

    def error(self, points: Floats, shares: Floats) -> float:
        """What a search may miss, whatever was published."""
        return _SHELL_ERROR if len(self.attack.noise.heights) > 1 else _SEARCH_ERROR


def unlimited(size: int) -> NoiseForm:
    """Noise so wide that what is published tells nothing."""
    return NoiseForm.of(UNIFORM, np.ones(size), 1.0)


def _nodes(size: int, power: int, seed: int) -> Floats:
    """Points of the unit cube, spread evenly."""
    sobol = stats.qmc.Sobol(size, seed=seed)
    return np.asarray(sobol.random_base2(min(size + power, _MOST_NODES)), dtype=np.float64)


def _prior_form(prior: JointMixture, spread: Floats) -> PriorForm:
    """A prior as plain arrays, and what normal noise of some covariance would make of it."""
    precisions = portable.inverse(prior.covariances + spread)
    pairs = zip(prior.covariances, precisions, strict=True)
    gains = np.array([portable.dot(before, precise) for before, precise in pairs])
    after = np.array([portable.dot(gain, spread) for gain in gains])
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
        np.ascontiguousarray(precisions),
        portable.log(prior.weights) + 0.5 * portable.log_determinant(precisions),
        prior.mass,
    )


def _roots(covariances: Floats) -> tuple[Floats, Floats]:
    """Lower triangular roots, and deviations that remain when all axes up to another are known."""
    roots = portable.root(covariances)
    squares = np.cumsum(roots[:, :, ::-1] ** 2, axis=2)[:, :, ::-1]
    rests = np.sqrt(np.maximum(squares - roots**2, 0.0))
    return np.ascontiguousarray(roots), np.ascontiguousarray(rests)


def _lines(prior: PriorForm, half: Floats, sigma: Floats) -> Floats:
    """Steps along which boxes are sought: the axes, and the main axes of correlated components."""
    steps = np.maximum(half, 0.5 * np.minimum(sigma, prior.deviations.max(axis=0)))
    axes = np.broadcast_to(np.diag(steps), prior.spreads.shape)
    deviations = np.sqrt(np.diagonal(prior.spreads, axis1=1, axis2=2))
    correlations = prior.spreads / deviations[:, :, None] / deviations[:, None, :]
    if np.abs(correlations - np.eye(len(half))).max() < _UNCORRELATED:
        return np.array(axes)
    both = [eigen(np.ascontiguousarray(each)) for each in correlations]
    squares = np.array([values for values, _ in both])
    vectors = np.array([axes for _, axes in both])
    lengths = np.sqrt(np.maximum(squares, 0.0))
    lines = np.swapaxes(vectors * deviations[:, :, None] * lengths[:, None, :], 1, 2)
    # A narrow ridge is crossed with the box, not with its own width.
    wide = (half / np.maximum(np.abs(lines), 1e-12 * half)).min(axis=2, keepdims=True)
    return np.ascontiguousarray(np.concatenate([lines * np.maximum(wide, 1.0), axes], axis=1))
