"""A bank of filters of noisy series, all series together, one time step after another."""

from __future__ import annotations

import math

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit
from sfumato.core.portable_loops import exp, log

# Log weights so far under the largest count for nothing.
_NEGLIGIBLE = -30.0


@njit(cache=True)
def bank_filter(
    observed: Floats,
    variances: Floats,
    phases: Ints,
    forgetting: float,
    grid: Floats,
    shared: Floats,
    own: Floats,
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
        shared: By filter, the same for all series: variance of the deviation, covariance with the
            mean, variance of the mean, and that of the offset of each phase; updated in place.
        own: Series by filter: deviation, mean, log weight, offset of each phase; likewise.
        sums: Series by 8: times, squared errors that the filters expect of their estimates in all,
            and of measurements their number, the first, and about it their sum and sum of squares,
            and the sum of the variances of their noise; last, squared errors in all as the
            measurements show them, whatever the process is; likewise.

    Returns:
        Estimates, time by series.
    """
    size = len(grid)
    found = np.empty_like(observed)
    gains, pulls = np.empty((size, 6)), np.zeros(size)
    for time in range(len(observed)):
        noise, phase = variances[time], 3 + phases[time]
        measured = not math.isnan(observed[time, 0])
        for place in range(size):
            rho = grid[place, 0]
            one = rho * rho * shared[place, 0] + (1 - rho * rho) * grid[place, 1]
            both, two = rho * shared[place, 1], shared[place, 2]
            three = shared[place, phase] + grid[place, 2]
            before = one + 2 * both + two + three
            spread = before + noise
            shared[place, 0], shared[place, 1] = one, both
            shared[place, phase] = three
            if measured:
                first, second = (one + both) / spread, (both + two) / spread
                shared[place, 0] = one - first * (one + both)
                shared[place, 1] = both - first * (both + two)
                shared[place, 2] = two - second * (both + two)
                shared[place, phase] = three - three * three / spread
                gains[place, 0], gains[place, 1], gains[place, 2] = first, second, three / spread
            gains[place, 3], gains[place, 4] = 0.5 * log(spread), 0.5 / spread
            # What is left of the variance of all that was predicted.
            gains[place, 5] = before * noise / spread if measured else before
        for series in range(observed.shape[1]):
            highest = -math.inf
            for place in range(size):
                own[series, place, 0] *= grid[place, 0]
                if measured:
                    surprise = observed[time, series] - own[series, place, 0]
                    surprise -= own[series, place, 1] + own[series, place, phase]
                    pulls[place] = -2.0 * gains[place, 4] * surprise
                    own[series, place, 0] += gains[place, 0] * surprise
                    own[series, place, 1] += gains[place, 1] * surprise
                    own[series, place, phase] += gains[place, 2] * surprise
                    own[series, place, 2] = forgetting * own[series, place, 2] - (
                        gains[place, 3] + gains[place, 4] * surprise * surprise
                    )
                highest = max(highest, own[series, place, 2])
            total, level, squares, errors = 0.0, 0.0, 0.0, 0.0
            slope, pull, pulled = 0.0, 0.0, 0.0
            start = own[series, 0, 1]
            for place in range(size):
                behind = own[series, place, 2] - highest
                own[series, place, 2] = behind
                if behind > _NEGLIGIBLE:
                    weight = exp(behind)
                    away = own[series, place, 0] + own[series, place, 1]
                    away += own[series, place, phase] - start
                    total += weight
                    level += weight * away
                    squares += weight * away * away
                    errors += weight * gains[place, 5]
                    if measured:
                        slope += weight * (gains[place, 0] + gains[place, 1] + gains[place, 2])
                        pull += weight * pulls[place]
                        pulled += weight * pulls[place] * away
            guess = level / total
            found[time, series] = start + guess
            sums[series, 0] += 1
            # Filters err, and they differ.
            expected = errors / total + max(squares / total - guess * guess, 0.0)
            sums[series, 1] += expected
            if not measured:
                sums[series, 7] += expected
            else:
                # How the estimate follows its measurement: each filter does, and so do weights.
                follows = (slope + pulled - pull * guess) / total
                apart = start + guess - observed[time, series]
                sums[series, 7] += apart * apart - noise + 2.0 * noise * follows
                if sums[series, 2] == 0:
                    sums[series, 3] = observed[time, series]
                apart = observed[time, series] - sums[series, 3]
                sums[series, 2] += 1
                sums[series, 4] += apart
                sums[series, 5] += apart * apart
                sums[series, 6] += noise
    return found


@njit(cache=True)
def bank_step(
    value: float,
    noise: float,
    phase: int,
    forgetting: float,
    grid: Floats,
    shared: Floats,
    own: Floats,
    sums: Floats,
) -> float:
    """One time of one series: numbers go in and come out, which costs a live series less."""
    observed, variances = np.full((1, 1), value), np.full(1, noise)
    phases = np.full(1, phase)
    found = bank_filter(observed, variances, phases, forgetting, grid, shared, own, sums)
    return float(found[0, 0])
