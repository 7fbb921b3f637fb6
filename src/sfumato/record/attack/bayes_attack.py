r"""How likely an attacker who knows the joint distribution finds every attribute within a box.

$$\delta = \int \max_{\hat x} \int_{|x - \hat x| \le \varepsilon}
    f_X(x)\, f_\theta(y - x) \, dx \, dy$$

where $f_X$ is the prior, $f_\theta$ the noise and $\varepsilon$ the accuracy of each attribute: the
mean, over what is published, of the posterior mass of the best box. No attacker who knows the
prior does better, so this is the truth that the paper's chain of estimates is measured against.
It is never less than `VectorNoise.largest_box`, which an attacker without a prior reaches.

One normal prior and normal noise: in closed form. Else the mean over rows as they would be
published, with a confidence interval; the best box of each is found on a lattice where the
posterior may have several peaks, by a search where it has one or a lattice is too large.

References:
    [MDDP, Def. 4 and Def. 5]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.record.attack.box_search import BoxSearch, unlimited
from sfumato.record.attack.lattice_attack import LatticeAttack
from sfumato.record.constants import CONFIDENCE, EDGE
from sfumato.record.coupling.joint_mixture import JointMixture
from sfumato.record.noise_form import GAUSSIAN
from sfumato.record.vector_noise import VectorNoise, axis_scales, half_widths, normal_box

PRECISION = 1e-2
"""Half width of the interval to aim for, as a part of what is estimated."""
_BATCH = 128
_LEAST_BATCHES, _MOST_BATCHES = 8, 48
"""Each batch is spread evenly on its own, so that their means say how far off their mean may be."""
_GUESSES = 24
"""Components, the densest first, from which the best blind guess is sought."""


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


class Way(StrEnum):
    """How a disclosure probability was found."""

    CLOSED = "closed form"
    SAMPLING = "sampling"
    HELD_OUT = "attacks on held-out records"


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
    half = half_widths(noise, accuracy, prior.dimension)
    checks.proper_fraction("precision", precision)
    limited = bool(np.isfinite(prior.domain).any())
    if noise.form().kind == GAUSSIAN and prior.weights.size == 1 and not limited:
        precise = portable.inverse(prior.covariances[0]) + noise.form().precision
        posterior = portable.inverse(precise)
        delta = normal_box(posterior, half)
        error = 1e-9 if prior.dimension <= 2 else 1e-4
        return Found(delta, delta * (1 - error), min(delta * (1 + error), 1.0), Way.CLOSED)
    return _sampled(prior, noise, half, precision)


def prior_disclosure(prior: JointMixture, accuracy: ArrayLike) -> float:
    """The probability with which a guess is near enough when nothing is published at all.

    Examples:
        >>> prior_disclosure(JointMixture.normal([0.0], [[1.0]]), 1.0)
        0.682689
    """
    half = axis_scales("accuracy", accuracy, prior.dimension)
    densest = np.argsort(-prior.density(prior.means), kind="stable")[:_GUESSES]
    starts = np.array(prior.means[densest])
    nothing = unlimited(prior.dimension)
    # Noise that tells nothing has no spread: the box stands in as the first step of the search.
    search = BoxSearch.of(prior, nothing, np.diag(half**2), half)
    return float(min(search.boxes(starts)[0].max(), 1.0))


def attacker_of(prior: JointMixture, noise: VectorNoise, half: Floats) -> LatticeAttack | BoxSearch:
    """A lattice for what may have several peaks, if one is fine enough; else a search."""
    form = noise.form()
    peaked = prior.weights.size == 1 and len(form.heights) == 1 and form.edges[0] == 0
    lattice = None if peaked else LatticeAttack.of(prior, noise, half)
    return lattice or BoxSearch.of(prior, form, noise.covariance, half)


def _sampled(prior: JointMixture, noise: VectorNoise, half: Floats, precision: float) -> Found:
    """The mean over rows as they would be published, batch by batch until it is precise enough."""
    attacker = attacker_of(prior, noise, half)
    means: list[float] = []
    delta = spacing = missed = math.inf
    for batch in range(_MOST_BATCHES):
        points, weights = _published(prior, noise, batch)
        if not weights.sum() > 0:
            raise InvalidParameter("domain", prior.mass, "hold more of the distribution")
        shares = attacker.shares(points, batch)
        missed = missed if means else attacker.error(points, shares)
        means.append(float(portable.dot(weights, shares) / weights.sum()))
        if len(means) >= _LEAST_BATCHES:
            delta = float(np.mean(means))
            quantile = portable.settled(stats.t.ppf(0.5 + 0.5 * CONFIDENCE, len(means) - 1))
            spacing = quantile * float(np.std(means, ddof=1)) / math.sqrt(len(means))
            if spacing <= precision * delta:
                break
    least = noise.largest_box(half)
    # What an attacker without a prior has was there: what is less of it was missed.
    spacing += missed * delta + max(least - delta, 0.0)
    delta = min(max(delta, least), 1.0)
    return Found(delta, max(delta - spacing, least), min(delta + spacing, 1.0), Way.SAMPLING)


def _published(prior: JointMixture, noise: VectorNoise, batch: int) -> tuple[Floats, Floats]:
    """Rows as they would be published, spread evenly over values and noise, and their weights."""
    size = prior.dimension + 1
    shares = stats.qmc.Sobol(size + noise.words, seed=batch).random(_BATCH)
    people, weights = prior.draw_within(np.clip(shares[:, :size], EDGE, 1 - EDGE))
    words = (shares[:, size:] * 2.0**52).astype(np.uint64) << np.uint64(12)
    return people + noise.draw(words), weights
