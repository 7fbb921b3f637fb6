"""Filters of noisy series, all series together, one time step after another."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_NEGLIGIBLE = -30.0
"""Log weights so far under the largest count for nothing."""


@njit(cache=True)
def known_filter(
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
        covariance[:] = transition @ covariance @ transition.T
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
def bank_filter(
    observed: Floats,
    variances: Floats,
    correlations: Floats,
    signals: Floats,
    forgetting: float,
    means: Floats,
    logs: Floats,
    covariances: Floats,
) -> Floats:
    """Many first-order filters side by side, averaged by how well each has predicted so far.

    Every filter has its own correlation and signal variance, and learns the mean along with the
    value: its state is (deviation from the mean, mean).

    Args:
        observed: Time by series; NaN where nothing was measured.
        variances: Of the noise, at each time.
        correlations: Of the filters.
        signals: Stationary variances of the filters.
        forgetting: Factor on the log weights at each step, near 1.
        means: Series by filter by 2; updated in place.
        logs: Log weights, series by filter; updated in place.
        covariances: Filter by 3 (deviation, both, mean), shared by all series; updated in place.

    Returns:
        Estimates, time by series.
    """
    size = correlations.size
    found = np.empty_like(observed)
    spreads, halves, first, second = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    for time in range(len(observed)):
        measured = not math.isnan(observed[time, 0])
        for place in range(size):
            rho = correlations[place]
            one = rho * rho * covariances[place, 0] + (1 - rho * rho) * signals[place]
            both, two = rho * covariances[place, 1], covariances[place, 2]
            spread = one + 2 * both + two + variances[time]
            if measured:
                first[place], second[place] = (one + both) / spread, (both + two) / spread
                covariances[place, 0] = one - first[place] * (one + both)
                covariances[place, 1] = both - first[place] * (both + two)
                covariances[place, 2] = two - second[place] * (both + two)
            else:
                first[place], second[place] = 0.0, 0.0
                covariances[place, 0], covariances[place, 1] = one, both
            spreads[place], halves[place] = 0.5 / spread, 0.5 * math.log(spread)
        for series in range(observed.shape[1]):
            value = observed[time, series] if measured else 0.0
            highest = -math.inf
            for place in range(size):
                drifted = correlations[place] * means[series, place, 0]
                mean = means[series, place, 1]
                if measured:
                    surprise = value - drifted - mean
                    drifted += first[place] * surprise
                    means[series, place, 1] = mean + second[place] * surprise
                    logs[series, place] = forgetting * logs[series, place] - (
                        halves[place] + spreads[place] * surprise * surprise
                    )
                means[series, place, 0] = drifted
                highest = max(highest, logs[series, place])
            total, told = 0.0, 0.0
            for place in range(size):
                behind = logs[series, place] - highest
                logs[series, place] = behind
                if behind > _NEGLIGIBLE:
                    weight = math.exp(behind)
                    total += weight
                    told += weight * (means[series, place, 0] + means[series, place, 1])
            found[time, series] = told / total
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
