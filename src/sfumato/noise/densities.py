r"""Approximate privacy of noise that is added to a number, from its density.

$$E_\gamma(f \| g) = \int \max\{f(y) - \gamma g(y), 0\}\,dy$$

is the least $\delta$ with $f(S) \le \gamma g(S) + \delta$ for every set of outputs. With
$\gamma = e^\epsilon$, and taken both ways between the output's distribution given a value and its
distribution overall, the larger of the two is the $\delta$ of $(\epsilon, \delta)$-LIP; taken
between two values it is that of $(\epsilon, \delta)$-LDP.

These are curves for planning. What is released goes through a lattice (`noise.lattice`), whose
certificate is computed from the integers that are sampled.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato.core import checks, portable
from sfumato.models.mixture import GaussianMixture


def gaussian_divergence(
    first: tuple[float, float], second: tuple[float, float], factor: float
) -> float:
    r"""The E-divergence $E_\gamma$ of two normal distributions, in closed form.

    Args:
        first: Mean and standard deviation of $f$.
        second: Mean and standard deviation of $g$.
        factor: The $\gamma$, greater than 0.

    Examples:
        >>> gaussian_divergence((0.0, 1.0), (1.0, 1.0), 1.0)  # total variation
        0.38292492
        >>> gaussian_divergence((0.0, 2.0), (1.0, 1.0), math.e)
        0.27161312

    References:
        [LIP, Def. 8 and Lem. 4]
    """
    gamma = checks.positive("factor", factor)
    mean, deviation = first[0], checks.positive("first[1]", first[1])
    other, width = second[0], checks.positive("second[1]", second[1])
    # log f/g - log gamma = a z^2 + b z + c, with z measured from the mean of f.
    apart = mean - other
    a = 0.5 / width**2 - 0.5 / deviation**2
    b = apart / width**2
    c = 0.5 * (apart / width) ** 2 + portable.log(width / deviation) - portable.log(gamma)
    inside = _at_least_zero(a, b, c)
    f, g = GaussianMixture.normal(mean, deviation), GaussianMixture.normal(other, width)
    low, high = (np.array([mean + end for end in ends]) for ends in zip(*inside, strict=True))
    return float(max(0.0, (f.between(low, high) - gamma * g.between(low, high)).sum()))


def _at_least_zero(a: float, b: float, c: float) -> list[tuple[float, float]]:
    """Where a parabola (or a line, or a constant) is at least 0: intervals, maybe empty ones."""
    everywhere, nowhere = [(-math.inf, math.inf)], [(0.0, 0.0)]
    if a == 0.0 and b == 0.0:
        return everywhere if c >= 0 else nowhere
    if a == 0.0:
        return [(-c / b, math.inf)] if b > 0 else [(-math.inf, -c / b)]
    square = b * b - 4 * a * c
    if square <= 0:
        return everywhere if a > 0 else nowhere
    # The root of larger size first, the other from their product: no cancellation.
    large = -0.5 * (b + math.copysign(math.sqrt(square), b))
    roots = sorted((large / a, c / large)) if large else [-math.sqrt(-c / a), math.sqrt(-c / a)]
    low, high = roots
    return [(low, high)] if a < 0 else [(-math.inf, low), (high, math.inf)]


def local_gaussian_delta(sensitivity: float, noise: float, epsilon: float) -> float:
    r"""The exact $\delta$ of normal noise without a prior, for values `sensitivity` apart.

    $$\Phi\left(\frac{\Delta}{2\sigma} - \frac{\epsilon\sigma}{\Delta}\right)
      - e^\epsilon\,\Phi\left(-\frac{\Delta}{2\sigma} - \frac{\epsilon\sigma}{\Delta}\right)$$

    where $\Delta$ is `sensitivity` and $\sigma$ is `noise`.

    Examples:
        >>> local_gaussian_delta(1.0, 1.0, 1.0)
        0.12693674

    References:
        [Balle2018, Thm. 8]
    """
    ratio = checks.positive("sensitivity", sensitivity) / checks.positive("noise", noise)
    level = checks.leakage("epsilon", epsilon)
    high, low = 0.5 * ratio - level / ratio, -0.5 * ratio - level / ratio
    second = portable.exp(min(0.0, level + float(portable.log_normal_share(low))))
    return max(0.0, float(portable.normal_share(high)) - second)


def classical_gaussian_delta(sensitivity: float, noise: float, epsilon: float) -> float:
    r"""The textbook bound on the same: $1.25\,e^{-\epsilon^2\sigma^2/(2\Delta^2)}$.

    Proven for epsilon below 1 only; at least as large as the exact one there.

    References:
        [Dwork2014, Thm. A.1]
    """
    ratio = checks.positive("noise", noise) / checks.positive("sensitivity", sensitivity)
    return min(1.0, 1.25 * portable.exp(-0.5 * (checks.leakage("epsilon", epsilon) * ratio) ** 2))
