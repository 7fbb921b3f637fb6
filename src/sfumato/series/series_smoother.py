"""A completed series, looked at once more: every value from all measurements, later ones too.

A live release knows the past alone. Once a series is complete, each value can be estimated from all
that was measured, which costs no privacy. The process is not known: first-order processes of many
correlations and sizes are tried, as in a bank of filters, and averaged by how well each explains
all measurements and how plausible it was beforehand.

Errors must be honest where noise hides the signal. A signal too small to see is *one* hypothesis,
though there is one of it at every correlation: were all tried pairs equally plausible, "no signal"
would be counted many times, and errors would be far too small. So a pair weighs by what its process
would show in a series of this length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import portable
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.series.filter_banks import CORRELATIONS
from sfumato.series.realtime import Realtime
from sfumato.series.smoother_loops import smooth_one

# Signal variances that are tried, as multiples of the noise's: closer together than in a bank of
# filters, as a long series tells sizes apart and its errors are those of the nearest one.
_SIGNALS = tuple(2.0**power for power in (*range(-10, 11), 16, 22, 28))
# Variance of a mean of which nothing is known, against those of signal and noise.
_DIFFUSE = 1e6


@dataclass(frozen=True, slots=True, eq=False)
class SmoothedSeries:
    """Every value of a series, given all measurements.

    Attributes:
        values: Estimates.
        errors: Standard errors, if deviations from a mean fade at some rate: intervals of 1.96 of
            them hold the truth 95 % of the time where the signal is well above the noise, and at
            least 90 % where it is about as large; a constant has less error than is said.
    """

    values: Floats
    errors: Floats

    def interval(self, deviations: float = 1.96) -> tuple[Floats, Floats]:
        """So many standard errors to either side."""
        reach = deviations * self.errors
        return self.values - reach, self.values + reach


def smooth_series(
    measured: Sequence[float | None] | ArrayLike, noise: Realtime | ArrayLike
) -> SmoothedSeries:
    """Estimate every value of a completed series from all of it.

    Args:
        measured: What left; None or not a number where nothing was measured.
        noise: The method that released it, whose outputs are its measurements (its estimate is
            `plain`); or the variance of the noise, one for all or one for each time.

    Raises:
        InvalidParameter: If what left were estimates: their measurements did not leave.

    Examples:
        >>> smooth_series([9.0, 11.0, None, 10.0], 1.0).values.round(1)
        array([ 9.4, 10.5, 10.2, 10. ])
    """
    seen = np.array([np.nan if one is None else one for one in measured], dtype=np.float64)  # type: ignore[union-attr]
    if seen.ndim != 1 or not np.isfinite(seen).any():
        raise InvalidParameter("measured", seen.shape, "be one row with at least one number")
    variances = noise_variances(noise, seen.size)
    scale = float(variances[np.isfinite(seen)].mean())
    tried = [(rho, scale * size) for rho in CORRELATIONS for size in _SIGNALS]
    values, errors = np.empty((len(tried), seen.size)), np.empty((len(tried), seen.size))
    fits = np.empty(len(tried))
    for place, (rho, signal) in enumerate(tried):
        diffuse = _DIFFUSE * (signal + scale)
        row = (values[place], errors[place])
        fits[place] = smooth_one(seen, variances, rho, signal, diffuse, *row)
        # A wider guess at the mean is no better explanation: each is charged for its own.
        fits[place] += 0.5 * portable.log(diffuse)
    fits += portable.log(_plausible(tried, scale, seen.size))
    shares = portable.exp(fits - fits.max())
    shares /= shares.sum()
    mean = portable.dot(shares, values)
    variance = portable.dot(shares, np.maximum(errors, 0.0) + (values - mean) ** 2)
    return SmoothedSeries(mean, np.sqrt(variance))


def _plausible(tried: Sequence[tuple[float, float]], scale: float, length: int) -> Floats:
    r"""What each correlation and signal variance weighs beforehand, up to a factor.

    Correlations are uniform in [0, 1). The variance that shows in the series, around its own mean,

    $$v = \sigma^2 \Big(1 - \tfrac{1}{n^2} \sum_{s,t} \rho^{|s-t|}\Big),$$

    where $\sigma^2$ is the signal variance, $\rho$ the correlation and $n$ `length`, is uniform
    up to the noise and uniform in its logarithm above: variances are tried in even steps of the
    logarithm, so each weighs $v / (v + \text{scale})$.
    """
    count, lags = max(length, 2), np.arange(1, max(length, 2))
    middles = [0.0, *((one + two) / 2 for one, two in pairwise(CORRELATIONS)), 1.0]
    widths = dict(zip(CORRELATIONS, np.diff(middles).tolist(), strict=True))
    shown = {
        rho: 1 - (count + 2 * float(((count - lags) * rho**lags).sum())) / count**2
        for rho in CORRELATIONS
    }
    visible = np.array([signal * shown[rho] for rho, signal in tried])
    uniform = np.array([widths[rho] for rho, _ in tried])
    return np.asarray(uniform * visible / (visible + scale))


def noise_variances(noise: Realtime | ArrayLike, length: int) -> Floats:
    """The variance of the noise at each time, of a method whose measurements leave, or as given."""
    if isinstance(noise, Realtime):
        if noise.estimate.name != "plain":
            rule = "be plain: of a filter the estimates leave, not its measurements"
            raise InvalidParameter("noise.estimate", noise.estimate.name, rule)
        given = noise.variances[:length]
    else:
        given = np.asarray(noise, dtype=np.float64)
    if given.shape not in ((), (1,), (length,)) or not np.all(given > 0):
        raise InvalidParameter("noise", given.shape, f"be positive, one or {length}")
    return np.array(np.broadcast_to(given, (length,)), dtype=np.float64)
