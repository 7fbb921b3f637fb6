"""The attacker's best box: where prior times noise has most mass, for many published points.

Boxes are integrated over fixed nodes of the unit cube, which are mapped axis by axis to what
remains of the box within the domain and the reach of the noise: a ball cuts the later axes by what
the earlier ones have used up.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit

UNIFORM, GAUSSIAN, LAPLACE, ROUND = 0, 1, 2, 3
_WHOLE = np.ones(1)
_TAIL = 5.5
"""Deviations beyond which a normal density counts for nothing."""
_ROOT, _TWO = math.sqrt(2 * math.pi), math.sqrt(2)
_FAR = 8.0
_CENTRAL = 0.02425
_INNER = np.array(
    [
        -3.969683028665376e01,
        2.209460984245205e02,
        -2.759285104469687e02,
        1.383577518672690e02,
        -3.066479806614716e01,
        2.506628277459239e00,
    ]
)
_UNDER_INNER = np.array(
    [
        -5.447609879822406e01,
        1.615858368580409e02,
        -1.556989798598866e02,
        6.680131188771972e01,
        -1.328068155288572e01,
        1.0,
    ]
)
_OUTER = np.array(
    [
        -7.784894002430293e-03,
        -3.223964580411365e-01,
        -2.400758277161838e00,
        -2.549732539343734e00,
        4.374664141464968e00,
        2.938163982698783e00,
    ]
)
_UNDER_OUTER = np.array(
    [7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e00, 3.754408661907416e00, 1.0]
)
_STARTS, _FOLLOWED = 4, 2
_RETURNS = 8
"""How often a start is taken back to where noise and domain end."""
_NEGLIGIBLE = 16.0
"""Log densities so far under the largest count for nothing."""
_CLOSE = 4.5
"""Deviations beyond which a component counts for nothing."""
_FINEST = 1.0 / 128
_SETTLED, _LOST = 1e-4, 5e-3
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
        rests: Deviations of an axis (row) that remain when all up to another (column) are known.
        deviations: Their standard deviations along each axis.
        gains: How a published point moves the mean of each component.
        spreads: Covariances of each component once a point is published, if noise is normal.
        spread_roots: Their lower triangular roots.
        spread_rests: Their deviations that remain, as in `rests`.
        told: Inverse covariances of published points, given the component.
        told_factors: Logarithms of weight and density of published points at the mean.
        mass: Of the domain.
    """

    low: Floats
    high: Floats
    weights: Floats
    means: Floats
    roots: Floats
    rests: Floats
    deviations: Floats
    gains: Floats
    spreads: Floats
    spread_roots: Floats
    spread_rests: Floats
    told: Floats
    told_factors: Floats
    mass: float


class Cube(NamedTuple):
    """Points of the unit cube to integrate over, one a row, and their weights."""

    nodes: Floats
    weights: Floats


@njit(cache=True)
def noise_total(shares: Floats, offs: Floats, noise: NoiseForm) -> float:
    """Sum of shares times the density of a noise at some offs within its reach, one a row."""
    rows, size = offs.shape
    kind, scale, precision, edges, heights = noise[:5]
    total = 0.0
    for row in range(rows):
        if not shares[row] > 0.0:
            continue
        distance = 0.0
        height = heights[0]  # of uniform noise, to whose reach boxes are cut
        if kind == GAUSSIAN:
            for first in range(size):
                distance += offs[row, first] ** 2 * precision[first, first]
                for second in range(first):
                    both = offs[row, first] * offs[row, second]
                    distance += 2.0 * both * precision[first, second]
            height *= math.exp(-0.5 * distance)
        elif kind == LAPLACE:
            for axis in range(size):
                distance += abs(offs[row, axis]) / scale[axis]
            height *= math.exp(-distance)
        elif kind == ROUND:
            for axis in range(size):
                distance += (offs[row, axis] / scale[axis]) ** 2
            distance = math.sqrt(distance)
            if distance < edges[0] or distance >= edges[-1]:
                continue
            if len(heights) > 1:
                height = heights[np.searchsorted(edges, distance, side="right") - 1]
        total += shares[row] * height
    return total


@njit(cache=True)
def noise_at(off: Floats, noise: NoiseForm) -> float:
    """Density of a noise within its reach."""
    return noise_total(_WHOLE, off.reshape((1, len(off))), noise)


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
def _squared(off: Floats, precision: Floats) -> float:
    """Squared distance, in deviations."""
    total = 0.0
    for first in range(len(off)):
        for second in range(len(off)):
            total += off[first] * precision[first, second] * off[second]
    return total


@njit(cache=True)
def _normal_share(reduced: float) -> float:
    return 0.5 * math.erfc(-reduced / _TWO)


@njit(cache=True)
def _quantile(share: float) -> float:
    """Where the normal distribution function has a value, to 1e-9: Acklam's rational functions."""
    if share <= 0.0 or share >= 1.0:
        return -_FAR if share <= 0.0 else _FAR
    tail = min(share, 1.0 - share)
    if tail < _CENTRAL:
        root = math.sqrt(-2.0 * math.log(tail))
        found = _ratio(root, _OUTER, _UNDER_OUTER)
        return found if share < 0.5 else -found
    off = share - 0.5
    return off * _ratio(off * off, _INNER, _UNDER_INNER)


@njit(cache=True)
def _ratio(at: float, top: Floats, bottom: Floats) -> float:
    above = below = 0.0
    for power in range(len(top)):
        above = above * at + top[power]
    for power in range(len(bottom)):
        below = below * at + bottom[power]
    return above / below


@njit(cache=True)
def _overlap(
    centre: Floats, half: Floats, told: Floats, prior: PriorForm, noise: NoiseForm, ends: Floats
) -> None:
    """What remains of a box within the domain and the reach of the noise, along each axis."""
    for axis in range(len(centre)):
        limit = _reach(noise, axis, noise.edges[-1] ** 2)
        ends[0, axis] = max(centre[axis] - half[axis], prior.low[axis], told[axis] - limit)
        ends[1, axis] = min(centre[axis] + half[axis], prior.high[axis], told[axis] + limit)


@njit(cache=True)
def _map_nodes(
    part: int,
    told: Floats,
    cube: Cube,
    prior: PriorForm,
    noise: NoiseForm,
    ends: Floats,
    shares: Floats,
    offs: Floats,
) -> None:
    """Map nodes of the unit cube to where box, noise and one component of the prior overlap.

    Axis by axis, given those before: what remains between the `ends` of the box within the reach
    of the noise and that of the component, and does not lead the axes to come out of the box.
    Shares become the component's density there, times the volume; offs, what the noise has to be.
    Normal noise and a component make a normal posterior, which takes the component's place.
    """
    size, tail = len(told), _TAIL
    nodes, scale, kind = cube.nodes, noise.scale, noise.kind
    whole = noise.edges[-1] ** 2
    mean, means = np.empty(size), prior.means[part].copy()
    roots, rests, weight = prior.roots[part], prior.rests[part], prior.weights[part]
    if kind == GAUSSIAN:
        roots, rests = prior.spread_roots[part], prior.spread_rests[part]
        mean[:] = told - prior.means[part]
        height = math.exp(prior.told_factors[part] - 0.5 * _squared(mean, prior.told[part]))
        weight = height / (_ROOT**size * prior.mass)
        for axis in range(size):
            for other in range(size):
                means[axis] += prior.gains[part, axis, other] * mean[other]
    for node in range(len(nodes)):
        share, left = cube.weights[node] * weight, whole
        mean[:] = means
        for axis in range(size):
            deviation = roots[axis, axis]
            start = max(ends[0, axis], mean[axis] - tail * deviation)
            stop = min(ends[1, axis], mean[axis] + tail * deviation)
            if kind == ROUND:
                limit = scale[axis] * math.sqrt(left)
                start, stop = max(start, told[axis] - limit), min(stop, told[axis] + limit)
            for later in range(axis + 1, size):
                slope = roots[later, axis] / deviation
                if slope != 0.0:
                    room = tail * rests[later, axis]
                    one = mean[axis] + (ends[0, later] - room - mean[later]) / slope
                    other = mean[axis] + (ends[1, later] + room - mean[later]) / slope
                    start, stop = max(start, min(one, other)), min(stop, max(one, other))
            if not stop > start:
                share = 0.0
                break
            # Nodes as dense as the component: a share of it, whatever is to come.
            below = _normal_share((start - mean[axis]) / deviation)
            above = _normal_share((stop - mean[axis]) / deviation)
            place = nodes[node, axis]
            if kind == LAPLACE and start < told[axis] < stop:
                # The density has a kink here: half of the nodes go to each side.
                kink = _normal_share((told[axis] - mean[axis]) / deviation)
                below, above = (below, kink) if place < 0.5 else (kink, above)
                place = 2.0 * place - (0.0 if place < 0.5 else 1.0)
                share *= 2.0
            share *= above - below
            standard = _quantile(below + place * (above - below))
            point = mean[axis] + deviation * standard
            for later in range(axis + 1, size):
                mean[later] += roots[later, axis] * standard
            offs[node, axis] = told[axis] - point
            if kind == ROUND:
                left = max(left - (offs[node, axis] / scale[axis]) ** 2, 0.0)
        shares[node] = share


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
    size = len(told)
    ends = np.empty((2, size))
    shares, offs = work[:, size], work[:, :size]
    _overlap(centre, half, told, prior, noise, ends)
    for part in near:
        _map_nodes(part, told, cube, prior, noise, ends, shares, offs)
        total += shares.sum() if noise.kind == GAUSSIAN else noise_total(shares, offs, noise)
    return total


@njit(cache=True)
def _likelihoods(told: Floats, prior: PriorForm, likely: Floats) -> None:
    """How likely each component is, up to a common factor, if the noise were normal."""
    for part in range(len(likely)):
        off = told - prior.means[part]
        likely[part] = prior.told_factors[part] - 0.5 * _squared(off, prior.told[part])


@njit(cache=True)
def _begin(part: int, told: Floats, prior: PriorForm, noise: NoiseForm, start: Floats) -> None:
    """Where a search begins for a component: its mean, given what was published.

    Noise and domains that end somewhere leave nothing beyond. Whatever the mean exceeds, it is
    taken back to, the other axes as they are expected to be then: that keeps it on a narrow ridge.
    """
    size = len(told)
    for first in range(size):
        start[first] = prior.means[part, first]
        for second in range(size):
            off = told[second] - prior.means[part, second]
            start[first] += prior.gains[part, first, second] * off
    spread, normal = prior.spreads[part], np.zeros(size)
    for _ in range(_RETURNS):
        for axis in range(size):
            low = max(prior.low[axis], told[axis] - noise.reach[axis])
            high = min(prior.high[axis], told[axis] + noise.reach[axis])
            excess = start[axis] - min(max(start[axis], low), high)
            start -= spread[axis] * excess / spread[axis, axis]
        if noise.kind == ROUND:
            squared = 0.0
            for axis in range(size):
                normal[axis] = (start[axis] - told[axis]) / noise.scale[axis] ** 2
                squared += normal[axis] * (start[axis] - told[axis])
            excess = math.sqrt(squared) - noise.edges[-1]
            if excess > 0.0:
                back = spread @ normal
                start -= back * excess * math.sqrt(squared) / (normal @ back)


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
def _top(left: float, middle: float, right: float) -> float:
    """Where the parabola through three logarithms at -1, 0 and 1 is largest, within 2 of 0."""
    if not (left > 0.0 and middle > 0.0 and right > 0.0):
        return 0.0
    bend = 2.0 * math.log(middle) - math.log(right) - math.log(left)
    if not bend > 0.0:
        return 0.0
    return min(max(0.5 * (math.log(right) - math.log(left)) / bend, -2.0), 2.0)


@njit(cache=True)
def _climb(
    start: Floats,
    half: Floats,
    told: Floats,
    lines: Floats,
    step: Floats,
    cube: Cube,
    prior: PriorForm,
    noise: NoiseForm,
    kept: Ints,
) -> float:
    """Move a box to where it weighs most; `start` is moved.

    Along one line after another: three weights give a parabola of the logarithm, which is exact for
    a normal posterior, and the box goes to its top. The steps along a line grow as long as they
    lead on, and shrink until next to nothing is lost within them.
    """
    work = np.empty((len(cube.nodes), len(start) + 1))
    near = kept[: _near(start, half, step, prior, kept)]
    value = box_weight(start, half, told, cube, prior, noise, near, work)
    widths = np.ones(len(lines))
    for _ in range(_MOST_SWEEPS):
        before, settled = value, True
        for number in range(len(lines)):
            span = widths[number] * lines[number]
            left = box_weight(start - span, half, told, cube, prior, noise, near, work)
            right = box_weight(start + span, half, told, cube, prior, noise, near, work)
            level = (1.0 - _LOST) * value
            goal = _top(left, value, right)
            top = value
            if goal != 0.0:
                top = box_weight(start + goal * span, half, told, cube, prior, noise, near, work)
            if max(left, right) > max(top, value):
                goal, top = (1.0 if right > left else -1.0), max(left, right)
            if top > value:
                value = top
                start += goal * span
            if top >= value and abs(goal) >= 1.0:
                widths[number] *= 2.0
                settled = False
            elif min(left, right) < level and widths[number] > _FINEST:
                widths[number] *= 0.25
                settled = False
        near = kept[: _near(start, half, step, prior, kept)]
        if settled and value <= before * (1.0 + _SETTLED):
            break
    return value


@njit(cache=True, nogil=True)
def box_weights(
    centres: Floats, half: Floats, told: Floats, cube: Cube, prior: PriorForm, noise: NoiseForm
) -> Floats:
    """Prior times noise over one box for each published point."""
    rows, size = told.shape
    found = np.empty(rows)
    work = np.empty((len(cube.nodes), size + 1))
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
    lines: Floats,
    cube: Cube,
    prior: PriorForm,
    noise: NoiseForm,
) -> tuple[Floats, Floats]:
    """The best box for each published point, by a pattern search from likely starts.

    Args:
        told: Published points, one a row.
        half: Half widths of the box.
        lines: First steps of the search, one a row, for each component of the prior.
        cube: Nodes of the integral.
        prior: What is known of the values.
        noise: What was added to them.

    Returns:
        Prior times noise over the best box of each published point, and the centre of that box.
    """
    rows, size = told.shape
    found, centres = np.zeros(rows), np.empty((rows, size))
    starts, values = np.empty((_STARTS, size)), np.empty(_STARTS)
    parts = np.zeros(_STARTS, dtype=np.int64)
    work, step = np.empty((len(cube.nodes), size + 1)), np.zeros(size)
    for axis in range(size):
        step[axis] = np.abs(lines[:, :, axis]).max()
    likely = np.empty(len(prior.weights))
    kept = np.empty(len(prior.weights), dtype=np.int64)
    # Where prior and noise have one peak each, so has their product: one start finds it.
    peaked = len(prior.weights) == 1 and len(noise.heights) == 1 and noise.edges[0] == 0.0
    for row in range(rows):
        _likelihoods(told[row], prior, likely)
        if _hopeless(told[row], prior, noise, likely):
            centres[row] = told[row]
            continue
        # Of several starts, the two that weigh most are followed.
        attempts = 1 if peaked else min(_STARTS, len(likely) + 1)
        for attempt in range(attempts):
            parts[attempt], values[attempt] = np.argmax(likely), 0.0
            if attempt == 1:
                starts[attempt] = told[row]
                parts[attempt] = parts[0]
            else:
                _begin(parts[attempt], told[row], prior, noise, starts[attempt])
                likely[parts[attempt]] = -np.inf
            if attempts > 1:
                near = kept[: _near(starts[attempt], half, step, prior, kept)]
                values[attempt] = box_weight(
                    starts[attempt], half, told[row], cube, prior, noise, near, work
                )
        best = -1.0
        for _ in range(min(attempts, _FOLLOWED)):
            attempt = int(np.argmax(values[:attempts]))
            values[attempt] = -1.0
            value = _climb(
                starts[attempt], half, told[row], lines[parts[attempt]], step, cube, prior, noise,
                kept,
            )  # fmt: skip
            if value > best:
                best = value
                centres[row] = starts[attempt]
        found[row] = best
    return found, centres
