"""The attacker's best box when the values are known to be among many weighted points.

Points that lie on a curve or a surface have no density to integrate; here the posterior is a weight
on each point. A box is moved along one axis at a time to where a window of its width holds most
weight among the points that it holds along the other axes, until no axis gains.
"""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit
from sfumato.record.noise_form import NoiseForm, noise_at

_STARTS = 8
"""Points at even shares of the posterior from which boxes are moved, beside its mean."""
_FIRST_SWEEPS, _SWEEPS = 2, 12
"""Each start gets a few sweeps; the best of them is followed to its end, or about."""
_STEPS = (1.0, 3.0, 9.0)
"""How far beyond the mean of what it holds a box is tried along a ridge."""


@njit(cache=True, nogil=True)
def posterior_weights(
    published: Floats, points: Floats, weights: Floats, noise: NoiseForm
) -> Floats:
    """Weight of each point times the density of the noise that makes it what was published."""
    count, size = points.shape
    found = np.zeros(count)
    off = np.empty(size)
    for place in range(count):
        inside = weights[place] > 0.0
        for axis in range(size):
            off[axis] = published[axis] - points[place, axis]
            if abs(off[axis]) > noise.reach[axis]:
                inside = False
                break
        if inside:
            found[place] = weights[place] * noise_at(off, noise)
    return found


@njit(cache=True)
def _window(places: Ints, points: Floats, weights: Floats, axis: int, width: float) -> float:
    """Left end of the window of this width along an axis that holds most weight."""
    along = np.empty(len(places))
    for index in range(len(places)):
        along[index] = points[places[index], axis]
    order = np.argsort(along)
    best, left_end, total = -1.0, 0.0, 0.0
    first = 0
    for last in range(len(order)):
        total += weights[places[order[last]]]
        while along[order[last]] - along[order[first]] > width:
            total -= weights[places[order[first]]]
            first += 1
        if total > best:
            # The middle of what a window may be moved by without losing a point.
            best = total
            left_end = 0.5 * (along[order[first]] + along[order[last]] - width)
    return left_end


@njit(cache=True)
def _held(centre: Floats, half: Floats, points: Floats, live: Ints, skipped: int) -> Ints:
    """Points of a box, whatever their place along one axis."""
    held = np.empty(len(live), dtype=np.int64)
    count = 0
    for place in live:
        inside = True
        for axis in range(len(centre)):
            if axis != skipped and abs(points[place, axis] - centre[axis]) > half[axis]:
                inside = False
                break
        if inside:
            held[count] = place
            count += 1
    return held[:count]


@njit(cache=True)
def _weight(centre: Floats, half: Floats, points: Floats, weights: Floats, live: Ints) -> float:
    total = 0.0
    for place in _held(centre, half, points, live, -1):
        total += weights[place]
    return total


@njit(cache=True)
def _settle(
    centre: Floats, half: Floats, points: Floats, weights: Floats, live: Ints, sweeps: int
) -> float:
    """Move a box until no axis gains, or often enough; `centre` is moved."""
    value = _weight(centre, half, points, weights, live)
    trial = centre.copy()
    for _ in range(sweeps):
        before = value
        for axis in range(len(centre)):
            held = _held(centre, half, points, live, axis)
            if len(held) == 0:
                continue
            trial[:] = centre
            trial[axis] = _window(held, points, weights, axis, 2.0 * half[axis]) + half[axis]
            tried = _weight(trial, half * (1 + 1e-12), points, weights, live)
            if tried > value:
                value = tried
                centre[:] = trial
        # Along a ridge no single axis gains: towards the mean of what is held, and beyond.
        shift = _mean(_held(centre, half, points, live, -1), points, weights) - centre
        for step in _STEPS:
            trial[:] = centre + step * shift
            tried = _weight(trial, half, points, weights, live)
            if tried > value:
                value = tried
                centre[:] = trial
        if value <= before * (1 + 1e-9):
            break
    return value


@njit(cache=True)
def _mean(places: Ints, points: Floats, weights: Floats) -> Floats:
    found, total = np.zeros(points.shape[1]), 0.0
    for place in places:
        total += weights[place]
        found += weights[place] * points[place]
    return found / max(total, 1e-300)


@njit(cache=True, nogil=True)
def best_cloud_boxes(
    published: Floats, half: Floats, points: Floats, weights: Floats, noise: NoiseForm
) -> tuple[Floats, Floats]:
    """The share of the posterior in the best box that was found, and its centre.

    Args:
        published: Published points, one a row.
        half: Half widths of the box.
        points: What the values may be, one a row.
        weights: Their prior probabilities.
        noise: What was added.

    Returns:
        For each published point: posterior probability of the box, and its centre; zero where no
        point explains what was published.
    """
    rows, size = published.shape
    found, centres = np.zeros(rows), np.empty((rows, size))
    centre = np.empty(size)
    for row in range(rows):
        posterior = posterior_weights(published[row], points, weights, noise)
        live = np.flatnonzero(posterior)
        centres[row] = published[row]
        if len(live) == 0:
            continue
        running = np.cumsum(posterior[live])
        best = -1.0
        for start in range(_STARTS + 2):
            if start == _STARTS:
                centre[:] = published[row]
            elif start == _STARTS + 1:
                centre[:] = _mean(live, points, posterior)
            else:
                goal = running[-1] * (start + 0.5) / _STARTS
                centre[:] = points[live[np.searchsorted(running, goal)]]
            value = _settle(centre, half, points, posterior, live, _FIRST_SWEEPS)
            if value > best:
                best = value
                centres[row] = centre
        best = _settle(centres[row], half, points, posterior, live, _SWEEPS)
        found[row] = min(best / running[-1], 1.0)
    return found, centres
