"""Noise for numbers as LIP prescribes it, and what it really leaks: see `lip_numbers`."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.channel import Channel
from sfumato.core.information_leakage import information_leakage
from sfumato.core.search import least_above
from sfumato.models.mixture import GaussianMixture
from sfumato.noise.densities import gaussian_divergence
from sfumato.noise.lattice import Lattice, Noise

PRIOR = GaussianMixture.normal(0.0, 5.0)
"""The prior of Figs. 8 and 9."""
LATTICE, DELTA = Lattice(-12.0, 12.0, 101), 1e-4
MASSES = PRIOR.masses(np.concatenate([[-np.inf], LATTICE.edges, [np.inf]]))
"""Probability of each point of the lattice of Fig. 9; the outer ones have the tails."""
THREE, SKEW = Lattice(0.0, 2.0, 3), 0.2
THREE_MASSES = (1 / 3 + SKEW / 2, 1 / 3, 1 / 3 - SKEW / 2)
"""The prior of Fig. 10."""
# Halvings leave 9 digits; outputs are summed over on a grid that changes no digit that is shown.
_HALVINGS, _OUTPUTS = 30, 8001
_FAR = 9.0
"""Deviations of the widest noise beyond which outputs are not integrated over."""


def value_delta(value: float, noise: float, epsilon: float) -> float:
    """The delta at one value of Gaussian noise whose deviation is the same for all values.

    Examples:
        >>> value_delta(10.0, 10.0, 0.5)
        0.24070904

    References:
        [LIP, Thm. 5]
    """
    mean, spread = float(PRIOR.means[0]), float(PRIOR.deviations[0])
    given, overall = (value, noise), (mean, math.hypot(spread, noise))
    k = math.exp(epsilon)
    return max(gaussian_divergence(given, overall, k), gaussian_divergence(overall, given, k))


def instance_scale(value: float, epsilon: float) -> float:
    """The deviation of Gaussian noise that Cor. 10 asks for at one value.

    More noise on top is a function of the output, so less is never better, and halving finds the
    least.

    Examples:
        >>> instance_scale(0.0, 1.0), instance_scale(12.0, 1.0)
        (11.54167, 41.15899)

    References:
        [LIP, Cor. 10]
    """
    return _least(lambda scale: value_delta(value, scale, epsilon) <= DELTA, 0.1)


def instance_scales(epsilon: float) -> Floats:
    """The same at every point of the lattice, which lies evenly about the mean."""
    half = LATTICE.points[LATTICE.count // 2 :]
    right = [instance_scale(value, epsilon) for value in half.tolist()]
    return np.array(right[:0:-1] + right)


def mixture_deltas(
    masses: ArrayLike, values: ArrayLike, scales: ArrayLike, epsilon: float
) -> Floats:
    """The delta at each value of noise that depends on it, by sums over a fine grid of outputs.

    Args:
        masses: Probability of each value.
        values: The values.
        scales: Deviation of the noise at each.
        epsilon: The level.

    Examples:
        >>> mixture_deltas([0.5, 0.5], [0.0, 1.0], [1.0, 1.0], 0.0)  # half the total variation
        array([0.19146, 0.19146])

    References:
        [LIP, Cor. 9]
    """
    centres, widths = np.asarray(values, np.float64), np.asarray(scales, np.float64)
    reach, k = _FAR * widths.max(), math.exp(checks.leakage("epsilon", epsilon))
    outputs = np.linspace(centres.min() - reach, centres.max() + reach, _OUTPUTS)
    standard = (outputs - centres[:, None]) / widths[:, None]
    rows = np.exp(-0.5 * standard**2) / (widths[:, None] * math.sqrt(2 * math.pi))
    overall = np.asarray(masses, np.float64) @ rows
    above = np.maximum(rows - k * overall, 0).sum(axis=1)
    below = np.maximum(overall - k * rows, 0).sum(axis=1)
    return np.asarray(np.maximum(above, below) * (outputs[1] - outputs[0]))


def cut_masses() -> Floats:
    """The prior cut at the ends of the lattice, as weights of an integral (Simpson's rule)."""
    weights = np.where(np.arange(LATTICE.count) % 2, 4.0, 2.0)
    weights[[0, -1]] = 1.0
    weights *= PRIOR.density(LATTICE.points)
    return np.asarray(weights / weights.sum())


def line_scale(epsilon: float) -> float:
    r"""The least scale of Laplace noise for the three values with unbounded outputs.

    Between two neighbouring values, and beyond the last, every ratio
    $e^{-|y-x|/b} / \sum_{x'} P(x') e^{-|y-x'|/b}$ is monotone in $y$: the values themselves are
    the only outputs to look at.

    Examples:
        >>> line_scale(1.0)
        1.401895

    References:
        [LIP, Thm. 6]
    """

    def enough(scale: float) -> bool:
        rows = np.exp(-np.abs(THREE.points[:, None] - THREE.points) / scale)
        return bool(np.abs(np.log(rows / (np.array(THREE_MASSES) @ rows))).max() <= epsilon)

    return _least(enough, 1e-2)


def largest_constant(epsilon: float) -> float:
    """The largest constant with which Eq. 26 keeps the budget on three outputs.

    Examples:
        >>> largest_constant(1.0)
        2.080703

    References:
        [LIP, Eq. 26]
    """

    def enough(inverse: float) -> bool:
        rows = THREE.noisy(Noise.LAPLACE, linked_scales(epsilon, 1 / inverse))
        told = information_leakage(Channel.from_probabilities(rows), THREE_MASSES)
        return told.epsilon <= epsilon

    return 1 / _least(enough, 1e-3)


def linked_scales(epsilon: float, constant: float) -> Floats:
    """The scales of Eq. 26 with a constant, one for each of the three values."""
    return np.asarray(THREE.width / (constant * np.array(THREE_MASSES) + epsilon))


def _least(enough: Callable[[float], bool], low: float) -> float:
    """The least of what is enough, from something that is not."""
    return least_above(enough, 2 * low, math.inf, outside=low, steps=_HALVINGS)
