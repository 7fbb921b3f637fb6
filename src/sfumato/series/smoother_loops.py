"""A Kalman smoother of a first-order process with an unknown mean, forward and back."""

from __future__ import annotations

import math

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.compiled import njit
from sfumato.core.portable_loops import log


@njit(cache=True, nogil=True, error_model="numpy")
def smooth_one(
    measured: Floats,
    variances: Floats,
    correlation: float,
    signal: float,
    diffuse: float,
    values: Floats,
    errors: Floats,
) -> float:
    """Means and variances of all values given all measurements.

    The state is the deviation from the mean, and the mean.

    Args:
        measured: Not a number where nothing was measured.
        variances: Of the noise, at each time.
        correlation: Of successive deviations.
        signal: Variance of a deviation.
        diffuse: Variance of the mean beforehand; the mean of `measured` is its centre.
        values: The result.
        errors: The result: variances.

    Returns:
        Log density of the measurements.
    """
    length = measured.size
    kept = np.empty((length, 5))
    centre, count = 0.0, 0
    for time in range(length):
        if not math.isnan(measured[time]):
            centre, count = centre + measured[time], count + 1
    centre /= max(count, 1)
    # Deviation, mean, and their variances and covariance.
    d, m, p, c, q = 0.0, centre, signal, 0.0, diffuse
    density, fresh = 0.0, signal * (1 - correlation * correlation)
    for time in range(length):
        if time > 0:
            d, p, c = correlation * d, correlation * correlation * p + fresh, correlation * c
        if not math.isnan(measured[time]):
            spread = p + 2 * c + q + variances[time]
            surprise = measured[time] - d - m
            density -= 0.5 * (log(2 * math.pi * spread) + surprise * surprise / spread)
            one, two = (p + c) / spread, (c + q) / spread
            d, m = d + one * surprise, m + two * surprise
            p, c, q = p - one * (p + c), c - one * (c + q), q - two * (c + q)
        kept[time, 0], kept[time, 1], kept[time, 2], kept[time, 3], kept[time, 4] = d, m, p, c, q
    values[-1], errors[-1] = d + m, p + 2 * c + q
    for time in range(length - 2, -1, -1):
        fd, fm, fp, fc, fq = (
            kept[time, 0],
            kept[time, 1],
            kept[time, 2],
            kept[time, 3],
            kept[time, 4],
        )
        ap, ac, aq = correlation * correlation * fp + fresh, correlation * fc, fq
        determinant = ap * aq - ac * ac
        # Covariance of now and then, times the inverse of what was predicted.
        g00 = (correlation * fp * aq - fc * ac) / determinant
        g01 = (fc * ap - correlation * fp * ac) / determinant
        g10 = (correlation * fc * aq - fq * ac) / determinant
        g11 = (fq * ap - correlation * fc * ac) / determinant
        ud, um = d - correlation * fd, m - fm
        vp, vc, vq = p - ap, c - ac, q - aq
        d, m = fd + g00 * ud + g01 * um, fm + g10 * ud + g11 * um
        p = fp + g00 * g00 * vp + 2 * g00 * g01 * vc + g01 * g01 * vq
        c = fc + g00 * g10 * vp + (g00 * g11 + g01 * g10) * vc + g01 * g11 * vq
        q = fq + g10 * g10 * vp + 2 * g10 * g11 * vc + g11 * g11 * vq
        values[time], errors[time] = d + m, p + 2 * c + q
    return density
