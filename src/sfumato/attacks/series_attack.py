"""Reconstruction of a real-valued series from what left of it: how far off is the adversary?

He knows the noise of every measurement, which is public. If he knows how values move, too, the
best he can do is the mean of each value given all measurements (what a Kalman smoother computes);
if not, he tries many processes and averages (`sfumato.series.series_smoother`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.series.autoregressive import Autoregressive
from sfumato.series.realtime import Realtime
from sfumato.series.series_smoother import noise_variances, smooth_series

_LONGEST = 4000
"""Values whose covariances are held at one time: 128 MB."""


@dataclass(frozen=True, slots=True)
class SeriesScores:
    """How well a reconstruction did, beside the truth.

    Attributes:
        error: Root of the mean squared error of the adversary's estimates.
        released: The same of what left, taken as it is.
        blind: The same of the mean of all that left: who knows nothing of single moments.
        within: Share of values within 1.96 of the standard errors that he believes in.
    """

    error: float
    released: float
    blind: float
    within: float


@dataclass(frozen=True, slots=True, eq=False)
class SeriesAttack:
    """What the adversary makes of a series.

    Attributes:
        measured: What left; not a number where nothing did.
        values: His estimates.
        errors: Their standard errors, as he believes.

    Examples:
        >>> left, guessed = np.array([9.0, 12.0]), np.array([10.0, 11.0])
        >>> SeriesAttack(left, guessed, np.array([1.0, 1.0])).expected_error
        1.0
    """

    measured: Floats
    values: Floats
    errors: Floats

    @property
    def expected_error(self) -> float:
        """Root of the mean squared error, as he believes."""
        return _root_mean(self.errors)

    def scored(self, truth: ArrayLike) -> SeriesScores:
        """How well he did."""
        true = checks.numbers("truth", truth)
        if true.shape != self.values.shape:
            raise InvalidParameter("truth", true.shape, f"be {len(self.values)} values")
        off, seen = self.values - true, np.isfinite(self.measured)
        return SeriesScores(
            error=_root_mean(off),
            released=_root_mean((self.measured - true)[seen]),
            blind=_root_mean(np.nanmean(self.measured) - true),
            within=float((np.abs(off) <= 1.96 * self.errors).mean()),
        )


def reconstruct_series(
    measured: Sequence[float | None] | ArrayLike,
    noise: Realtime | ArrayLike,
    *,
    process: Autoregressive | None = None,
) -> SeriesAttack:
    r"""Infer every value of a series from all that left of it.

    $$\mu + S (S + N)^{-1} (y - \mu)$$

    where $\mu$ and $S$ are mean and covariances of the `process` and $N$ the variances of the
    `noise`: no estimate has a smaller mean squared error for normal noise, and no linear one for
    any other.

    Args:
        measured: What left; None or not a number where nothing was measured.
        noise: The method that released it, or the variance of its noise: one, or one for each time.
        process: How values move, if he knows it.

    Examples:
        >>> moving = Autoregressive(10.0, [0.8], 1.0)
        >>> found = reconstruct_series([9.0, 12.0, None, 11.0], 4.0, process=moving)
        >>> found.values.round(2)
        array([10.16, 10.56, 10.54, 10.54])
        >>> found.expected_error < 2.0
        True

    References:
        [RTR, Def. 2.1]
    """
    if process is None:
        found = smooth_series(measured, noise)
        return SeriesAttack(seen_values(measured), found.values, found.errors)
    seen = seen_values(measured)
    if len(seen) > _LONGEST:
        raise InvalidParameter("measured", len(seen), f"be at most {_LONGEST:,} for a process")
    variances, known = noise_variances(noise, len(seen)), np.flatnonzero(np.isfinite(seen))
    spread = linalg.toeplitz(autocovariances(process, len(seen)))
    weights = linalg.solve(
        spread[np.ix_(known, known)] + np.diag(variances[known]), spread[known], assume_a="pos"
    )
    values = process.mean + (seen[known] - process.mean) @ weights
    left = np.diag(spread) - np.einsum("kt,kt->t", spread[known], weights)
    return SeriesAttack(seen, values, np.sqrt(np.maximum(left, 0.0)))


def seen_values(measured: Sequence[float | None] | ArrayLike) -> Floats:
    """What left as an array; not a number where nothing did."""
    given = measured if isinstance(measured, np.ndarray) else list(measured)  # type: ignore[arg-type]
    return np.array([np.nan if one is None else one for one in given], dtype=np.float64)


def autocovariances(process: Autoregressive, count: int) -> Floats:
    """Those of a process, from lag 0 on."""
    found = process.leading.tolist()
    while len(found) < count:
        found.append(sum(w * found[-k] for k, w in enumerate(process.coefficients, start=1)))
    return np.array(found[:count])


def _root_mean(errors: Floats) -> float:
    return math.sqrt(float(np.mean(np.square(errors)))) if errors.size else math.nan
