r"""Approximate privacy of noise that is added to a number, from its density.

$$E_\gamma(f \| g) = \int \max\{f(y) - \gamma g(y), 0\}\,dy$$

is the least $\delta$ with $f(S) \le \gamma g(S) + \delta$ for every set of outputs. With
$\gamma = e^\epsilon$, and taken both ways between the output's distribution given a value and its
distribution overall, the larger of the two is the $\delta$ of $(\epsilon, \delta)$-LIP; taken
between two values it is that of $(\epsilon, \delta)$-LDP.

With a mixture of normals as the prior and normal noise, $\log(f_Y / f_{Y|X=x})$ is convex in the
output: every component is wider than the noise, so its log ratio is a convex parabola, and
sums keep log-convexity. Where the ratio is below a level is therefore an interval, and both
divergences are differences of normal probabilities between two roots: no quadrature is needed.

These are curves for planning. What is released goes through a lattice (`mechanisms.lattice`), whose
certificate is computed from the integers that are sampled.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from sfumato.core import checks
from sfumato.core.arrays import Bools, Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.search import boundaries
from sfumato.models.mixture import GaussianMixture

_HALVINGS = 110
_POINTS = 1001
_FAR = 40.0
"""Standard deviations beyond which a normal distribution has no mass in floats."""
_LARGEST = 700.0
"""Beyond this e**epsilon leaves the floats; the delta at a smaller level is an upper bound."""


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
    c = 0.5 * (apart / width) ** 2 + math.log(width / deviation) - math.log(gamma)
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


def swapped_divergence(divergence: float, epsilon: float) -> float:
    r"""$E_{e^\epsilon}(f \| g)$ from $E_{e^{-\epsilon}}(g \| f)$.

    $$E_{e^\epsilon}(f \| g) = e^\epsilon E_{e^{-\epsilon}}(g \| f) - e^\epsilon + 1$$

    Examples:
        >>> swapped_divergence(gaussian_divergence((1, 2), (0, 1), math.exp(-0.5)), 0.5)
        0.14173402
        >>> gaussian_divergence((0, 1), (1, 2), math.exp(0.5))
        0.14173402

    References:
        [LIP, Prop. 3]
    """
    level = min(checks.leakage("epsilon", epsilon), _LARGEST)
    return math.exp(level) * divergence - math.expm1(level)


def gaussian_deltas(
    prior: GaussianMixture, noise: float, epsilon: float, points: ArrayLike
) -> Floats:
    r"""The $\delta$ that normal noise needs at each true value, under a mixture of normals.

    $$\delta(x) = \max\{E_{e^\epsilon}(f_{Y|X=x} \| f_Y),\ E_{e^\epsilon}(f_Y \| f_{Y|X=x})\}$$

    Args:
        prior: What is known of the value.
        noise: Standard deviation of the noise.
        epsilon: The level.
        points: True values.

    Examples:
        >>> gaussian_deltas(GaussianMixture.normal(0, 5), 10.0, 0.5, [0.0, 10.0, 20.0])
        array([0.00488205, 0.24070904, 0.57488675])

    References:
        [LIP, Cor. 9 and Thm. 5]
    """
    ratios = _LogRatios(prior, checks.positive("noise", noise), points)
    level = min(checks.leakage("epsilon", epsilon), _LARGEST)
    lowest = ratios.lowest()
    # The ratio is below 1/k between these two (one point, if nowhere) and above k outside those.
    near = [ratios.crossing(lowest, way, -level) for way in (-1, 1)]
    far = [ratios.crossing(lowest, way, level) for way in (-1, 1)]
    k = math.exp(level)
    above = ratios.given(*near) - k * ratios.overall(*near)
    everywhere = np.full_like(lowest, np.inf)
    overall = ratios.overall(-everywhere, far[0]) + ratios.overall(far[1], everywhere)
    given = ratios.given(-everywhere, far[0]) + ratios.given(far[1], everywhere)
    return np.asarray(np.maximum(np.maximum(above, overall - k * given), 0.0))


def largest_gaussian_delta(
    prior: GaussianMixture, noise: float, epsilon: float, low: float, high: float
) -> float:
    r"""The largest of `gaussian_deltas` over an interval of true values.

    Over all values it would be 1: far out, any finite noise gives a value away. Under one normal
    it grows with the distance from the mean, so it is that of an end; under a mixture it is
    sought on a fine grid with both ends.

    Examples:
        >>> largest_gaussian_delta(GaussianMixture.normal(0, 5), 10.0, 0.5, -10.0, 10.0)
        0.24070904

    References:
        [LIP, Thm. 5]
    """
    if not -math.inf < low < high < math.inf:
        raise InvalidParameter("low", (low, high), "be finite and less than high")
    points = [low, high] if prior.weights.size == 1 else np.linspace(low, high, _POINTS)
    return float(gaussian_deltas(prior, noise, epsilon, points).max())


def modular_gaussian_delta(
    prior: GaussianMixture, noise: float, epsilon: float, low: float, high: float
) -> float:
    r"""The same bounded component by component, as if each were the prior.

    Valid, and loose to useless: each component must cover every value of the interval, also those
    far from its own mean.

    References:
        [LIP, Lem. 2 and Rem. 2]
    """
    each = (
        prior.component(place) for place in range(prior.weights.size) if prior.weights[place] > 0
    )
    return max(largest_gaussian_delta(one, noise, epsilon, low, high) for one in each)


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
    second = math.exp(min(0.0, level + float(special.log_ndtr(low))))
    return max(0.0, float(special.ndtr(high)) - second)


def classical_gaussian_delta(sensitivity: float, noise: float, epsilon: float) -> float:
    r"""The textbook bound on the same: $1.25\,e^{-\epsilon^2\sigma^2/(2\Delta^2)}$.

    Proven for epsilon below 1 only; at least as large as the exact one there.

    References:
        [Dwork2014, Thm. A.1]
    """
    ratio = checks.positive("noise", noise) / checks.positive("sensitivity", sensitivity)
    return min(1.0, 1.25 * math.exp(-0.5 * (checks.leakage("epsilon", epsilon) * ratio) ** 2))


class _LogRatios:
    r"""The log ratio of the output's density overall to that given each value.

    With $u$ the output's distance from the value in units of the noise, a component of variance
    $s^2$ and $m$ below the value gives a parabola, $\frac{s^2}{2v} u^2 - \frac{m\sigma}{v} u -
    \frac{m^2}{2v} - \frac12 \ln(1 + s^2/\sigma^2)$ with $v = s^2 + \sigma^2$; the log of the
    weighted sum of their exponentials is convex, too.
    """

    def __init__(self, prior: GaussianMixture, noise: float, points: ArrayLike) -> None:
        values = np.atleast_1d(checks.numbers("points", points))
        below = values[:, None] - prior.means
        wide = np.hypot(prior.deviations, noise)
        narrow, shift = prior.deviations / wide, below / wide
        self._weights = prior.weights
        self._square = 0.5 * narrow**2
        self._line = -shift * (noise / wide)
        self._height = -0.5 * shift**2 - np.log(wide / noise)
        self._shift, self._scale = shift, noise / wide
        # Beyond this neither density has any mass left.
        self._reach = _FAR * float((1 / self._scale).max()) + float(np.abs(below / noise).max())

    def at(self, places: Floats) -> Floats:
        """The log ratios, each at its own place."""
        logs = self._logs(places)
        highest = logs.max(axis=1, keepdims=True)
        return np.asarray(np.log(np.exp(logs - highest) @ self._weights) + highest[:, 0])

    def _logs(self, places: Floats) -> Floats:
        here = places[:, None]
        return np.asarray((self._square * here + self._line) * here + self._height)

    def lowest(self) -> Floats:
        """Where the log ratios are least, by halving on their slopes."""

        def falls(places: Floats) -> Bools:
            share = special.softmax(self._logs(places) + np.log(self._weights), axis=1)
            slope = (share * (2 * self._square * places[:, None] + self._line)).sum(axis=1)
            return np.asarray(slope < 0)

        far = np.full(len(self._line), self._reach)
        low, high = boundaries(falls, -far, far, steps=_HALVINGS)
        return np.asarray(0.5 * (low + high))

    def crossing(self, start: Floats, way: int, level: float) -> Floats:
        """Where a log ratio crosses a level, going one way from its least point.

        The least point itself, where it lies above the level already.
        """
        outer = np.full_like(start, way * self._reach)
        return boundaries(lambda places: self.at(places) <= level, start, outer, steps=_HALVINGS)[0]

    def given(self, low: Floats, high: Floats) -> Floats:
        """The probability of an interval of outputs given each value."""
        return GaussianMixture.normal(0.0, 1.0).between(low, high)

    def overall(self, low: Floats, high: Floats) -> Floats:
        """The same whatever the value."""
        ends = [(end[:, None] * self._scale + self._shift) for end in (low, high)]
        parts = GaussianMixture.normal(0.0, 1.0).between(*ends)
        return np.asarray(parts @ self._weights)
