"""Scales of noise in closed form: the least ones without a prior, and those of the paper."""

from __future__ import annotations

import math

from sfumato.core import checks, portable
from sfumato.core.errors import InvalidParameter
from sfumato.core.numerics import UNIT
from sfumato.core.search import least_above
from sfumato.noise.densities import local_gaussian_delta
from sfumato.noise.lattice import Noise

# From a power of two to the last bit of a scale.
_HALVINGS = 48


def local_scale(noise: Noise, width: float, epsilon: float, delta: float) -> float:
    """The least scale of unbounded noise with a model-free guarantee for values `width` apart.

    Laplace noise is pure whatever the delta. Gaussian noise is calibrated on its exact curve, and
    has none without a delta: infinite.

    Examples:
        >>> local_scale(Noise.GAUSSIAN, 1.0, 1.0, 1e-5)
        3.73063

    References:
        [Balle2018, Alg. 1]
    """
    checks.positive("width", width)
    checks.positive("epsilon", epsilon)
    checks.fraction("delta", delta)
    if noise is Noise.LAPLACE:
        return width / epsilon
    if delta == 0.0:
        return math.inf

    def enough(scale: float) -> bool:
        return local_gaussian_delta(width, scale, epsilon) <= delta

    return least_above(enough, width, math.inf, steps=_HALVINGS)


def classical_scale(width: float, epsilon: float, delta: float) -> float:
    r"""The textbook scale of Gaussian noise, $\Delta\sqrt{2\ln(1.25/\delta)}/\epsilon$.

    Proven for epsilon up to 1 only, and refused beyond.

    Examples:
        >>> classical_scale(1.0, 1.0, 1e-5)
        4.8448

    References:
        [Dwork2014, Thm. A.1]
    """
    budget = checks.epsilon("epsilon", epsilon)
    if budget > 1:
        raise InvalidParameter("epsilon", epsilon, "be at most 1 for the classical scale")
    allowed = checks.proper_fraction("delta", delta)
    return checks.positive("width", width) * math.sqrt(2 * portable.log(1.25 / allowed)) / budget


def paper_laplace_scale(width: float, epsilon: float, least: float) -> float:
    r"""The scale of Laplace noise in the paper for a discrete prior: valid, by way of LDP.

    $$b = \frac{\Delta}{\ln\frac{e^\epsilon - p}{1 - p}}$$

    where $p$ is `least`, the smallest prior probability. The paper's second branch,
    $\Delta/\epsilon$ once $\epsilon \ge \ln(1/p)$, is never needed: it is only larger.
    `least_noise` finds the exact least scale.

    Examples:
        >>> paper_laplace_scale(1.0, 1.0, 0.25)
        0.8394865

    References:
        [LIP, Thm. 6]
    """
    mass = checks.proper_fraction("least", least)
    level = portable.log1p(portable.expm1(checks.epsilon("epsilon", epsilon)) / (1 - mass))
    return checks.positive("width", width) / level * (1 + 16 * UNIT)


def paper_sampling_rate(epsilon: float, delta: float) -> float:
    r"""How often the sampling mechanism may tell the truth about a continuous value, by the paper.

    $$\lambda = \min\{\delta e^\epsilon,\ 1 - e^{-\epsilon} + \delta e^{-\epsilon}\}$$

    This satisfies the paper's Definition 5, whose first line forgives $e^\epsilon\delta$. A value
    that is told is given away: the stronger form that is meant by `LIP` here (both divergences
    at most $\delta$) allows $\lambda = \delta$.

    Examples:
        >>> paper_sampling_rate(2.0, 0.01)
        0.07389056

    References:
        [LIP, Prop. 2]
    """
    budget = min(checks.leakage("epsilon", epsilon), 700.0)
    allowed, shrink = checks.fraction("delta", delta), portable.exp(-budget)
    return min(1.0, allowed / shrink, 1 - shrink + allowed * shrink)
