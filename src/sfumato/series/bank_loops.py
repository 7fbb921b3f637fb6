"""A bank of filters of noisy series, all series together, one time step after another."""

from __future__ import annotations

import math

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit

_NEGLIGIBLE = -30.0
"""Log weights so far under the largest count for nothing."""


@njit(cache=True)
def bank_filter(
    observed: Floats,
    variances: Floats,
    phases: Ints,
    forgetting: float,
    grid: Floats,
    means: Floats,
    logs: Floats,
    covariances: Floats,
    offsets: Floats,
    spreads: Floats,
    sums: Floats,
) -> Floats:
    """Many first-order filters side by side, averaged by how well each has predicted so far.

    Every filter has its own correlation and signal variance, learns the mean along with the value,
    and an offset for every phase of a period; without a period there is one phase, of offset 0.
    The state of a filter is (deviation from the mean, mean, offset of each phase). Offsets are
    kept as if they were independent of the rest once a step is over: so a step costs the same
    for every period, and the variance that is forgotten makes the filter a little too cautious.

    Args:
        observed: Time by series; NaN where nothing was measured.
        variances: Of the noise, at each time.
        phases: At each time.
        forgetting: Factor on the log weights at each step, near 1.
        grid: Filter by 3: correlation, variance of the signal, what an offset gains in variance
            from one visit to the next.
        means: Series by filter by 2; updated in place.
        logs: Log weights, series by filter; updated in place.
        covariances: Filter by 3 (deviation, both, mean), shared by all series; updated in place.
        offsets: Series by filter by phase; updated in place.
        spreads: Variances of the offsets, filter by phase, shared; updated in place.
        sums: Series by 7: times, squared errors that the filters expect of their estimates in all,
            and of measurements their number, the first, and about it their sum and sum of squares,
            and the sum of the variances of their noise; updated in place.

    Returns:
        Estimates, time by series.
    """
    size = len(grid)
    found = np.empty_like(observed)
    gains = np.zeros((size, 3))
    curves = np.empty((size, 3))
    for time in range(len(observed)):
        measured, phase = not math.isnan(observed[time, 0]), phases[time]
        for place in range(size):
            rho = grid[place, 0]
            one = rho * rho * covariances[place, 0] + (1 - rho * rho) * grid[place, 1]
            both, two = rho * covariances[place, 1], covariances[place, 2]
            three = spreads[place, phase] + grid[place, 2]
            spread = one + 2 * both + two + three + variances[time]
            covariances[place, 0], covariances[place, 1] = one, both
            spreads[place, phase] = three
            if measured:
                first, second = (one + both) / spread, (both + two) / spread
                covariances[place, 0] = one - first * (one + both)
                covariances[place, 1] = both - first * (both + two)
                covariances[place, 2] = two - second * (both + two)
                spreads[place, phase] = three - three * three / spread
                gains[place, 0], gains[place, 1], gains[place, 2] = first, second, three / spread
            curves[place, 0], curves[place, 1] = 0.5 * math.log(spread), 0.5 / spread
            # What is left of the variance of all that was predicted.
            before = spread - variances[time]
            curves[place, 2] = before * variances[time] / spread if measured else before
        for series in range(observed.shape[1]):
            highest = -math.inf
            for place in range(size):
                means[series, place, 0] *= grid[place, 0]
                if measured:
                    surprise = observed[time, series] - means[series, place, 0]
                    surprise -= means[series, place, 1] + offsets[series, place, phase]
                    means[series, place, 0] += gains[place, 0] * surprise
                    means[series, place, 1] += gains[place, 1] * surprise
                    offsets[series, place, phase] += gains[place, 2] * surprise
                    logs[series, place] = forgetting * logs[series, place] - (
                        curves[place, 0] + curves[place, 1] * surprise * surprise
                    )
                highest = max(highest, logs[series, place])
            total, told, squares, errors = 0.0, 0.0, 0.0, 0.0
            start = means[series, 0, 1]
            for place in range(size):
                behind = logs[series, place] - highest
                logs[series, place] = behind
                if behind > _NEGLIGIBLE:
                    weight = math.exp(behind)
                    level = means[series, place, 0] + means[series, place, 1]
                    level += offsets[series, place, phase] - start
                    total += weight
                    told += weight * level
                    squares += weight * level * level
                    errors += weight * curves[place, 2]
            guess = told / total
            found[time, series] = start + guess
            sums[series, 0] += 1
            # Filters err, and they differ.
            sums[series, 1] += errors / total + max(squares / total - guess * guess, 0.0)
            if measured:
                if sums[series, 2] == 0:
                    sums[series, 3] = observed[time, series]
                away = observed[time, series] - sums[series, 3]
                sums[series, 2] += 1
                sums[series, 4] += away
                sums[series, 5] += away * away
                sums[series, 6] += variances[time]
    return found
