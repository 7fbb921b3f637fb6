"""The attacker's best box: where prior times noise has most mass, for many published points.

Boxes are integrated over fixed nodes of the unit cube, which are mapped axis by axis to what
remains of the box within the domain and the reach of the noise: a ball cuts the later axes by what
the earlier ones have used up.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

UNIFORM, GAUSSIAN, LAPLACE, ROUND = 0, 1, 2, 3
_TAIL = 5.5
"""Deviations beyond which a normal density counts for nothing."""
_ROOT = math.sqrt(2 * math.pi)
_STARTS, _FOLLOWED = 4, 2
_INSIDE = 0.9
_NEGLIGIBLE = 16.0
"""Log densities so far under the largest count for nothing."""
_CLOSE = 4.5
"""Deviations beyond which a component counts for nothing."""
_FINEST = 1.0 / 128
_SETTLED = 1e-4
_MOST_SWEEPS = 24


class NoiseForm(NamedTuple):
    """A noise as plain arrays.

    Attributes:
        kind: Which density it is: `UNIFORM`, `GAUSSIAN`, `LAPLACE` or `ROUND`.
        scale: Half widths, deviations, mean sizes, or units of the axes, by kind.
        precision: Inverse covariance of a Gaussian.
        edges: Radii between the shells of round noise.
        heights: Densities of the shells, or the one factor of the density.
        reach: How far the noise goes along each axis; infinite if it does.
    """

    kind: int
    scale: Floats
    precision: Floats
    edges: Floats
    heights: Floats
    reach: Floats


class PriorForm(NamedTuple):
    """A mixture of normals within a domain as plain arrays, and what normal noise would make of it.

    Attributes:
        low: Where it begins, along each axis.
        high: Where it ends.
        weights: Of the components, divided by the mass of the domain.
        means: Of the components.
        roots: Lower triangular roots of their covariances.
        deviations: Their standard deviations along each axis.
        gains: How a published point moves the mean of each component.
        told: Inverse covariances of published points, given the component.
        told_factors: Logarithms of weight and density of published points at the mean.
    """

    low: Floats
    high: Floats
    weights: Floats
    means: Floats
    roots: Floats
    deviations: Floats
    gains: Floats
    told: Floats
    told_factors: Floats


class Cube(NamedTuple):
    """Points of the unit cube to integrate over, one a row, and their weights."""

    nodes: Floats
    weights: Floats


@njit(cache=True)
def noise_at(off: Floats, noise: NoiseForm) -> float:
    """Density of a noise within its reach."""
    size = len(off)
    if noise.kind == UNIFORM:
        return float(noise.heights[0])  # boxes are cut to its reach
    if noise.kind == GAUSSIAN:
        squared = 0.0
        for row in range(size):
            squared += off[row] * off[row] * noise.precision[row, row]
            for column in range(row):
                squared += 2.0 * off[row] * off[column] * noise.precision[row, column]
        return float(noise.heights[0]) * math.exp(-0.5 * squared)
    distance = 0.0
    if noise.kind == LAPLACE:
        for axis in range(size):
            distance += abs(off[axis]) / noise.scale[axis]
        return float(noise.heights[0]) * math.exp(-distance)
    for axis in range(size):
        distance += (off[axis] / noise.scale[axis]) ** 2
    distance = math.sqrt(distance)
    if distance < noise.edges[0] or distance >= noise.edges[-1]:
        return 0.0
    return float(noise.heights[np.searchsorted(noise.edges, distance, side="right") - 1])


@njit(cache=True)
def _reach(noise: NoiseForm, axis: int, left: float) -> float:
    """How far noise goes along an axis, but for tails that count for nothing.

    Of round noise, when the axes before have used up all but `left` of the squared radius.
    """
    if noise.kind == ROUND:
        return float(noise.scale[axis]) * math.sqrt(left)
    if noise.kind == GAUSSIAN:
        return _TAIL * float(noise.scale[axis])
    if noise.kind == LAPLACE:
        return 2.0 * _TAIL * float(noise.scale[axis])
    return float(noise.reach[axis])


@njit(cache=True)
def _mapped(
    node: Floats,
    part: int,
    centre: Floats,
    half: Floats,
    told: Floats,
    prior: PriorForm,
    noise: NoiseForm,
    point: Floats,
    off: Floats,
    standard: Floats,
) -> float:
    """A node of the unit cube, mapped to where box, noise and one component of the prior overlap.

    Axis by axis, given those before: what remains of the box within the domain, the reach of the
    noise and that of the component. Returns the component's density there, times the volume.
    """
    share = float(prior.weights[part])
    left = noise.edges[-1] ** 2
    for axis in range(len(centre)):
        mean = prior.means[part, axis]
        for before in range(axis):
            mean += prior.roots[part, axis, before] * standard[before]
        deviation = prior.roots[part, axis, axis]
        limit = _reach(noise, axis, left)
        start = max(centre[axis] - half[axis], prior.low[axis], told[axis] - limit)
        stop = min(centre[axis] + half[axis], prior.high[axis], told[axis] + limit)
        start = max(start, mean - _TAIL * deviation)
        stop = min(stop, mean + _TAIL * deviation)
        if not stop > start:
            return 0.0
        place = node[axis]
        if noise.kind == LAPLACE and start < told[axis] < stop:
            # The density has a kink here: half of the nodes go to each side.
            if place < 0.5:
                point[axis] = start + 2.0 * place * (told[axis] - start)
                share *= 2.0 * (told[axis] - start)
            else:
                point[axis] = told[axis] + (2.0 * place - 1.0) * (stop - told[axis])
                share *= 2.0 * (stop - told[axis])
        else:
            point[axis] = start + place * (stop - start)
            share *= stop - start
        standard[axis] = (point[axis] - mean) / deviation
        share *= math.exp(-0.5 * standard[axis] ** 2) / (_ROOT * deviation)
        off[axis] = told[axis] - point[axis]
        if noise.kind == ROUND:
            left = max(left - (off[axis] / noise.scale[axis]) ** 2, 0.0)
    return share


@njit(cache=True)
def box_weight(
    centre: Floats,
    half: Floats,
    told: Floats,
    cube: Cube,
    prior: PriorForm,
    noise: NoiseForm,
    near: Ints,
    work: Floats,
) -> float:
    """Prior times noise over one box around `centre`, when `told` was published.

    Of the components of the prior, only those that are `near` the box are looked at.
    """
    total = 0.0
    for part in near:
        for node in range(len(cube.nodes)):
            share = _mapped(
                cube.nodes[node], part, centre, half, told, prior, noise, work[0], work[1], work[2]
            )
            if share > 0.0:
                total += cube.weights[node] * share * noise_at(work[1], noise)
    return total


@njit(cache=True)
def _likelihoods(told: Floats, prior: PriorForm, likely: Floats) -> None:
    """How likely each component is, up to a common factor, if the noise were normal."""
    for part in range(len(likely)):
        squared = 0.0
        for first in range(len(told)):
            for second in range(len(told)):
                squared += (
                    (told[first] - prior.means[part, first])
                    * prior.told[part, first, second]
                    * (told[second] - prior.means[part, second])
                )
        likely[part] = prior.told_factors[part] - 0.5 * squared


@njit(cache=True)
def _begin(
    attempt: int,
    told: Floats,
    half: Floats,
    prior: PriorForm,
    noise: NoiseForm,
    likely: Floats,
    start: Floats,
) -> None:
    """Where a search begins: at what was published, then at the likeliest components."""
    start[:] = told
    if attempt > 0:
        part = np.argmax(likely)
        likely[part] = -np.inf
        for first in range(len(told)):
            start[first] = prior.means[part, first]
            for second in range(len(told)):
                off = told[second] - prior.means[part, second]
                start[first] += prior.gains[part, first, second] * off
    # Noise that ends somewhere leaves nothing beyond: the box begins where it weighs something.
    distance = 0.0
    for axis in range(len(told)):
        start[axis] = min(max(start[axis], prior.low[axis]), prior.high[axis])
        room = max(noise.reach[axis] - half[axis], 0.0)
        start[axis] = min(max(start[axis], told[axis] - room), told[axis] + room)
        distance += ((start[axis] - told[axis]) / noise.scale[axis]) ** 2
    distance = math.sqrt(distance)
    if noise.kind == ROUND and len(told) > 1 and distance > _INSIDE * noise.edges[-1]:
        for axis in range(len(told)):
            nearer = (start[axis] - told[axis]) * _INSIDE * noise.edges[-1] / distance
            start[axis] = told[axis] + nearer


@njit(cache=True)
def _near(centre: Floats, half: Floats, step: Floats, prior: PriorForm, kept: Ints) -> int:
    """Components that count for boxes within a step of a centre; returns how many."""
    count = 0
    for part in range(len(prior.weights)):
        close = True
        for axis in range(len(centre)):
            span = half[axis] + step[axis] + _CLOSE * prior.deviations[part, axis]
            if abs(prior.means[part, axis] - centre[axis]) > span:
                close = False
                break
        if close:
            kept[count] = part
            count += 1
    return count


@njit(cache=True)
def _climb(
    start: Floats,
    half: Floats,
    told: Floats,
    step: Floats,
    cube: Cube,
    prior: PriorForm,
    noise: NoiseForm,
    kept: Ints,
) -> float:
    """Move a box to where it weighs most; `start` is moved.

    Along one axis after another: three weights give a parabola of the logarithm, which is exact for
    a normal posterior, and the box goes to its top. Steps shrink from sweep to sweep.
    """
    size = len(start)
    work = np.empty((3, size))
    trial = start.copy()
    near = kept[: _near(start, half, step, prior, kept)]
    value = box_weight(start, half, told, cube, prior, noise, near, work)
    width = 1.0
    for _ in range(_MOST_SWEEPS):
        before = value
        for axis in range(size):
            span = width * step[axis]
            place = start[axis]
            trial[:] = start
            trial[axis] = place - span
            left = box_weight(trial, half, told, cube, prior, noise, near, work)
            trial[axis] = place + span
            right = box_weight(trial, half, told, cube, prior, noise, near, work)
            goal = place
            if left > 0.0 and right > 0.0 and value > 0.0:
                slope = math.log(right) - math.log(left)
                bend = 2.0 * math.log(value) - math.log(right) - math.log(left)
                if bend > 0.0:
                    goal = place + span * min(max(0.5 * slope / bend, -2.0), 2.0)
            trial[axis] = goal
            top = box_weight(trial, half, told, cube, prior, noise, near, work)
            if top >= max(left, right) and top > value:
                start[axis], value = goal, top
            elif left > max(value, right):
                start[axis], value = place - span, left
            elif right > value:
                start[axis], value = place + span, right
        near = kept[: _near(start, half, step, prior, kept)]
        if value <= before * (1.0 + _SETTLED):
            if width <= _FINEST:
                break
            width *= 0.25
    return value


@njit(cache=True, nogil=True)
def box_weights(
    centres: Floats, half: Floats, told: Floats, cube: Cube, prior: PriorForm, noise: NoiseForm
) -> Floats:
    """Prior times noise over one box for each published point."""
    rows, size = told.shape
    found = np.empty(rows)
    work = np.empty((3, size))
    every = np.arange(len(prior.weights))
    for row in range(rows):
        found[row] = box_weight(centres[row], half, told[row], cube, prior, noise, every, work)
    return found


@njit(cache=True)
def _hopeless(told: Floats, prior: PriorForm, noise: NoiseForm, likely: Floats) -> bool:
    """Whether a point is published so rarely that it counts for nothing."""
    if noise.kind != LAPLACE:  # no tail is heavier than a normal one
        return bool((likely - prior.told_factors).max() < -_NEGLIGIBLE)
    for part in range(len(likely)):
        total = 0.0
        for axis in range(len(told)):
            off = abs(told[axis] - prior.means[part, axis]) - 4.0 * prior.deviations[part, axis]
            total += max(off, 0.0) / noise.scale[axis]
        if total < _NEGLIGIBLE:
            return False
    return True


@njit(cache=True, nogil=True)
def best_boxes(
    told: Floats,
    half: Floats,
    step: Floats,
    cube: Cube,
    prior: PriorForm,
    noise: NoiseForm,
) -> tuple[Floats, Floats]:
    """The best box for each published point, by a pattern search from likely starts.

    Args:
        told: Published points, one a row.
        half: Half widths of the box.
        step: First step of the search, along each axis.
        cube: Nodes of the integral.
        prior: What is known of the values.
        noise: What was added to them.

    Returns:
        Prior times noise over the best box of each published point, and the centre of that box.
    """
    rows, size = told.shape
    found, centres = np.zeros(rows), np.empty((rows, size))
    starts, values = np.empty((_STARTS, size)), np.empty(_STARTS)
    work = np.empty((3, size))
    likely = np.empty(len(prior.weights))
    kept = np.empty(len(prior.weights), dtype=np.int64)
    # Where prior and noise have one peak each, so has their product: one start finds it.
    peaked = len(prior.weights) == 1 and len(noise.heights) == 1 and noise.edges[0] == 0.0
    first = 1 if peaked else 0
    for row in range(rows):
        _likelihoods(told[row], prior, likely)
        if _hopeless(told[row], prior, noise, likely):
            centres[row] = told[row]
            continue
        # Of several starts, the two that weigh most are followed.
        attempts = min(first + _STARTS, len(likely) + 1) - first
        for attempt in range(attempts):
            _begin(first + attempt, told[row], half, prior, noise, likely, starts[attempt])
            near = kept[: _near(starts[attempt], half, step, prior, kept)]
            values[attempt] = 0.0
            if attempts > 1:
                values[attempt] = box_weight(
                    starts[attempt], half, told[row], cube, prior, noise, near, work
                )
        best = -1.0
        for _ in range(min(attempts, _FOLLOWED)):
            attempt = int(np.argmax(values[:attempts]))
            values[attempt] = -1.0
            value = _climb(starts[attempt], half, told[row], step, cube, prior, noise, kept)
            if value > best:
                best = value
                centres[row] = starts[attempt]
        found[row] = best
    return found, centres


@njit(cache=True, nogil=True)
def shell_weights(
    told: Floats, centres: Floats, half: Floats, cube: Cube, prior: PriorForm, noise: NoiseForm
) -> Floats:
    """Prior within the boxes by distance to what was published: a sum for each shell."""
    rows, size = told.shape
    found = np.zeros(len(noise.edges) - 1)
    work = np.empty((3, size))
    for row in range(rows):
        for part in range(len(prior.weights)):
            for node in range(len(cube.nodes)):
                share = _mapped(
                    cube.nodes[node], part, centres[row], half, told[row], prior, noise,
                    work[0], work[1], work[2],
                )  # fmt: skip
                if share > 0.0:
                    distance = 0.0
                    for axis in range(size):
                        distance += (work[1, axis] / noise.scale[axis]) ** 2
                    shell = np.searchsorted(noise.edges, math.sqrt(distance), side="right") - 1
                    if 0 <= shell < len(found):
                        found[shell] += cube.weights[node] * share
    return found
