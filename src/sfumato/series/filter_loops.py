"""Filters of noisy series, all series together, one time step after another."""

from __future__ import annotations

import math

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.compiled import njit
from sfumato.core.portable_products import product


@njit(cache=True)
def kalman_filter(
    observed: Floats,
    variances: Floats,
    transition: Floats,
    innovation: float,
    means: Floats,
    covariance: Floats,
) -> Floats:
    """Kalman filter of an autoregressive model that is known, deviations from the mean.

    Args:
        observed: Time by series; NaN where nothing was measured.
        variances: Of the noise, at each time.
        transition: Companion matrix.
        innovation: Variance of what is new at each step.
        means: Series by order, of the state before the first time; updated in place.
        covariance: Order by order, shared by all series; updated in place.

    Returns:
        Estimates, time by series.
    """
    order = len(covariance)
    found = np.empty_like(observed)
    gain = np.empty(order)
    moved = np.empty(order)
    for time in range(len(observed)):
        covariance[:] = product(product(transition, covariance), transition.T)
        covariance[0, 0] += innovation
        spread = covariance[0, 0] + variances[time]
        measured = not math.isnan(observed[time, 0])
        for place in range(order):
            gain[place] = covariance[place, 0] / spread
        for series in range(observed.shape[1]):
            for place in range(order):
                moved[place] = 0.0
                for other in range(order):
                    moved[place] += transition[place, other] * means[series, other]
            surprise = observed[time, series] - moved[0] if measured else 0.0
            for place in range(order):
                means[series, place] = moved[place] + gain[place] * surprise
            found[time, series] = means[series, 0]
        if measured:
            first = covariance[0].copy()
            for row in range(order):
                for column in range(order):
                    covariance[row, column] -= gain[row] * first[column]
    return found


@njit(cache=True)
def one_lag_filter(
    observed: Floats, weights: Floats, variances: Floats, favoured: float, sums: Floats
) -> Floats:
    """The published rule: a convex combination of the value and an estimate from the last release.

    Args:
        observed: Time by series, measurements of the values.
        weights: Of the value at each time.
        variances: Of the noise of a release at each time.
        favoured: 1 if the correlation is known to be positive, else 0.
        sums: Series by 6: count, first release, and about it the last one, sum, sum of squares,
            and of products with the one before; updated in place.

    Returns:
        Releases, time by series.
    """
    found = np.empty_like(observed)
    for time in range(len(observed)):
        weight, variance = weights[time], variances[time]
        for series in range(observed.shape[1]):
            count, start, last, total, squares, products = sums[series, :6]
            estimate = start + last
            if count == 0:
                estimate = observed[time, series]
                start = estimate
            elif count > 2:
                mean = total / count
                spread = squares - count * mean * mean
                signal = max(spread / (count - 1) - variance, 0.0)
                # Sums of products of neighbours, about the mean, and of squares but for the last.
                linked = products - mean * (2 * total - last) + (count - 1) * mean * mean
                inner = spread - (last - mean) * (last - mean)
                rho = linked / inner + favoured / count if inner > 0 else 0.0
                slope = rho * signal / (signal + variance) if signal + variance > 0 else 0.0
                estimate = start + mean + slope * (last - mean)
            told = (1 - weight) * estimate + weight * observed[time, series]
            if count == 0:
                start = told
            # All sums are about the first release, so that no digit is lost far from 0.
            away = told - start
            sums[series, 0] = count + 1
            sums[series, 1] = start
            sums[series, 2] = away
            sums[series, 3] = total + away
            sums[series, 4] = squares + away * away
            sums[series, 5] = products + last * away
            found[time, series] = told
    return found
