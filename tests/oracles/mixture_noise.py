r"""Normal noise under a mixture of normals: the delta of a value between two roots.

Every component is wider than the noise, so its log ratio $\log(f_Y / f_{Y|X=x})$ is a convex
parabola in the output, and sums keep log-convexity. Where the ratio is below a level is therefore
an interval, and both divergences are differences of normal probabilities: no quadrature is needed.
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
