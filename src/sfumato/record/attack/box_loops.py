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
from sfumato.core.portable_loops import exp, log
from sfumato.core.portable_normal import normal_share
from sfumato.core.portable_products import inner, row_products
from sfumato.record.attack.normal_quantile import normal_quantile
from sfumato.record.noise_form import GAUSSIAN, LAPLACE, ROUND, NoiseForm, noise_total

_ROOT = math.sqrt(2 * math.pi)
_TAIL = 5.5
"""Deviations beyond which a normal density counts for nothing: 4e-8 of it."""
_CLOSE = 4.5
"""The same for a whole component of a prior, while a box is sought: 7e-6 of it."""
_STARTS, _FOLLOWED = 4, 2
"""Starts that are weighed for a published point, and how many of them are followed to a top."""
_RETURNS = 8
"""How often a start is taken back to where noise and domain end."""
_FINEST = 1.0 / 128
"""Least part of its first step that a search goes down to."""
_SETTLED, _LOST = 1e-4, 5e-3
"""A search ends when a sweep gains less than the first, and no step loses more than the second."""
_MOST_SWEEPS = 24


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
        precisions: Inverse covariances of published points, given the component.
        log_heights: Logarithms of weight and density of published points at the mean.
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
    precisions: Floats
    log_heights: Floats
    mass: float


class Attack(NamedTuple):
    """What an attacker knows, and how boxes are integrated.

    Attributes:
        half: Half widths of the box.
        nodes: Points of the unit cube to integrate over, one a row, all of the same weight.
        prior: What is known of the values.
        noise: What was added to them.
    """

    half: Floats
    nodes: Floats
    prior: PriorForm
    noise: NoiseForm


@njit(cache=True)
def _reach(noise: NoiseForm, axis: int) -> float:
    """How far noise goes along an axis, but for tails that count for nothing."""
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
def _overlap(centre: Floats, point: Floats, attack: Attack, ends: Floats) -> None:
    """What remains of a box within the domain and the reach of the noise, along each axis."""
    prior, half = attack.prior, attack.half
    for axis in range(len(centre)):
        limit = _reach(attack.noise, axis)
        ends[0, axis] = max(centre[axis] - half[axis], prior.low[axis], point[axis] - limit)
        ends[1, axis] = min(centre[axis] + half[axis], prior.high[axis], point[axis] + limit)


@njit(cache=True)
def _map_nodes(part: int, point: Floats, attack: Attack, ends: Floats, work: Floats) -> None:
    """Map nodes of the unit cube to where box, noise and one component of the prior overlap.

    Axis by axis, given those before: what remains between the `ends` of the box within the reach
    of the noise and that of the component, and does not lead the axes to come out of the box. In
    `work`, the last column becomes the component's density there times the volume, the others what
    the noise has to be. Normal noise and a component make a normal posterior, which takes the
    component's place.
    """
    size, tail, prior = len(point), _TAIL, attack.prior
    nodes, scale, kind = attack.nodes, attack.noise.scale, attack.noise.kind
    radius_squared = attack.noise.edges[-1] ** 2
    mean, means = np.empty(size), prior.means[part].copy()
    roots, rests, weight = prior.roots[part], prior.rests[part], prior.weights[part]
    if kind == GAUSSIAN:
        roots, rests = prior.spread_roots[part], prior.spread_rests[part]
        mean[:] = point - prior.means[part]
        height = exp(prior.log_heights[part] - 0.5 * _squared(mean, prior.precisions[part]))
        weight = height / (_ROOT**size * prior.mass)
        for axis in range(size):
            for other in range(size):
                means[axis] += prior.gains[part, axis, other] * mean[other]
    for node in range(len(nodes)):
        share, left = weight / len(nodes), radius_squared
        mean[:] = means
        for axis in range(size):
            deviation = roots[axis, axis]
            start = max(ends[0, axis], mean[axis] - tail * deviation)
            stop = min(ends[1, axis], mean[axis] + tail * deviation)
            if kind == ROUND:
                limit = scale[axis] * math.sqrt(left)
                start, stop = max(start, point[axis] - limit), min(stop, point[axis] + limit)
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
            below = normal_share((start - mean[axis]) / deviation)
            above = normal_share((stop - mean[axis]) / deviation)
            place = nodes[node, axis]
            if kind == LAPLACE and start < point[axis] < stop:
                # The density has a kink here: half of the nodes go to each side.
                kink = normal_share((point[axis] - mean[axis]) / deviation)
                below, above = (below, kink) if place < 0.5 else (kink, above)
                place = 2.0 * place - (0.0 if place < 0.5 else 1.0)
                share *= 2.0
            share *= above - below
            standard = normal_quantile(below + place * (above - below))
            value = mean[axis] + deviation * standard
            for later in range(axis + 1, size):
                mean[later] += roots[later, axis] * standard
            work[node, axis] = point[axis] - value
            if kind == ROUND:
                left = max(left - (work[node, axis] / scale[axis]) ** 2, 0.0)
        work[node, size] = share


@njit(cache=True)
def _weight(centre: Floats, point: Floats, attack: Attack, near: Ints, work: Floats) -> float:
    """Prior times noise over the box around a centre, of the components that are near it."""
    total, size = 0.0, len(point)
    ends = np.empty((2, size))
    _overlap(centre, point, attack, ends)
    for part in near:
        _map_nodes(part, point, attack, ends, work)
        if attack.noise.kind == GAUSSIAN:
            total += work[:, size].sum()
        else:
            total += noise_total(work[:, size], work[:, :size], attack.noise)
    return total


@njit(cache=True)
def _begin(part: int, point: Floats, prior: PriorForm, noise: NoiseForm, start: Floats) -> None:
    """Where a search begins for a component: its mean, given what was published.

    Noise and domains that end somewhere leave nothing beyond. Whatever the mean exceeds, it is
    taken back to, the other axes as they are expected to be then: that keeps it on a narrow ridge.
    """
    size = len(point)
    start[:] = prior.means[part]
    for first in range(size):
        for second in range(size):
            off = point[second] - prior.means[part, second]
            start[first] += prior.gains[part, first, second] * off
    spread, normal = prior.spreads[part], np.zeros(size)
    for _ in range(_RETURNS):
        for axis in range(size):
            low = max(prior.low[axis], point[axis] - noise.reach[axis])
            high = min(prior.high[axis], point[axis] + noise.reach[axis])
            excess = start[axis] - min(max(start[axis], low), high)
            start -= spread[axis] * excess / spread[axis, axis]
        if noise.kind == ROUND:
            squared = 0.0
            for axis in range(size):
                normal[axis] = (start[axis] - point[axis]) / noise.scale[axis] ** 2
                squared += normal[axis] * (start[axis] - point[axis])
            excess = math.sqrt(squared) - noise.edges[-1]
            if excess > 0.0:
                back = row_products(spread, normal)
                start -= back * excess * math.sqrt(squared) / inner(normal, back)


@njit(cache=True)
def _near(centre: Floats, span: Floats, prior: PriorForm, chosen: Ints) -> int:
    """Components that count for boxes within a span of a centre; returns how many."""
    count = 0
    for part in range(len(prior.weights)):
        close = True
        for axis in range(len(centre)):
            reach = span[axis] + _CLOSE * prior.deviations[part, axis]
            if abs(prior.means[part, axis] - centre[axis]) > reach:
                close = False
                break
        if close:
            chosen[count] = part
            count += 1
    return count


@njit(cache=True)
def _top(left: float, middle: float, right: float) -> float:
    """Where the parabola through three logarithms at -1, 0 and 1 is largest, within 2 of 0."""
    if not (left > 0.0 and middle > 0.0 and right > 0.0):
        return 0.0
    bend = 2.0 * log(middle) - log(right) - log(left)
    if not bend > 0.0:
        return 0.0
    return min(max(0.5 * (log(right) - log(left)) / bend, -2.0), 2.0)


@njit(cache=True)
def _climb(
    start: Floats, point: Floats, lines: Floats, span: Floats, attack: Attack, chosen: Ints
) -> float:
    """Move a box to where it weighs most; `start` is moved.

    Along one line after another: three weights give a parabola of the logarithm, which is exact for
    a normal posterior, and the box goes to its top. The steps along a line grow as long as they
    lead on, and shrink until next to nothing is lost within them.
    """
    work = np.empty((len(attack.nodes), len(start) + 1))
    near = chosen[: _near(start, span, attack.prior, chosen)]
    value = _weight(start, point, attack, near, work)
    widths = np.ones(len(lines))
    for _ in range(_MOST_SWEEPS):
        before, settled = value, True
        for number in range(len(lines)):
            step = widths[number] * lines[number]
            left = _weight(start - step, point, attack, near, work)
            right = _weight(start + step, point, attack, near, work)
            level = (1.0 - _LOST) * value
            goal = _top(left, value, right)
            top = value
            if goal != 0.0:
                top = _weight(start + goal * step, point, attack, near, work)
            if max(left, right) > max(top, value):
                goal, top = (1.0 if right > left else -1.0), max(left, right)
            if top > value:
                value = top
                start += goal * step
            if top >= value and abs(goal) >= 1.0:
                widths[number] *= 2.0
                settled = False
            elif min(left, right) < level and widths[number] > _FINEST:
                widths[number] *= 0.25
                settled = False
        near = chosen[: _near(start, span, attack.prior, chosen)]
        if settled and value <= before * (1.0 + _SETTLED):
            break
    return value


@njit(cache=True, nogil=True)
def box_weights(centres: Floats, points: Floats, attack: Attack) -> Floats:
    """Prior times noise over one box for each published point."""
    rows, size = points.shape
    found = np.empty(rows)
    work = np.empty((len(attack.nodes), size + 1))
    every = np.arange(len(attack.prior.weights))
    for row in range(rows):
        found[row] = _weight(centres[row], points[row], attack, every, work)
    return found


@njit(cache=True, nogil=True)
def best_boxes(points: Floats, lines: Floats, attack: Attack) -> tuple[Floats, Floats]:
    """The best box for each published point, by a pattern search from likely starts.

    Args:
        points: Published points, one a row.
        lines: First steps of the search, one a row, for each component of the prior.
        attack: What is known, and the nodes of the integral.

    Returns:
        Prior times noise over the best box of each published point, and the centre of that box.
    """
    rows, size = points.shape
    prior, noise = attack.prior, attack.noise
    found, centres = np.zeros(rows), np.empty((rows, size))
    starts, values = np.empty((_STARTS, size)), np.empty(_STARTS)
    parts = np.zeros(_STARTS, dtype=np.int64)
    work, span = np.empty((len(attack.nodes), size + 1)), np.zeros(size)
    for axis in range(size):
        span[axis] = attack.half[axis] + np.abs(lines[:, :, axis]).max()
    likely = np.empty(len(prior.weights))
    chosen = np.empty(len(prior.weights), dtype=np.int64)
    # Where prior and noise have one peak each, so has their product: one start finds it.
    peaked = len(prior.weights) == 1 and len(noise.heights) == 1 and noise.edges[0] == 0.0
    attempts = 1 if peaked else min(_STARTS, len(likely) + 1)
    for row in range(rows):
        point = points[row]
        for part in range(len(likely)):  # how likely each component is, if the noise were normal
            squared = _squared(point - prior.means[part], prior.precisions[part])
            likely[part] = prior.log_heights[part] - 0.5 * squared
        # Of several starts, those that weigh most are followed.
        for attempt in range(attempts):
            parts[attempt], values[attempt] = np.argmax(likely), 0.0
            if attempt == 1:
                starts[attempt] = point
                parts[attempt] = parts[0]
            else:
                _begin(parts[attempt], point, prior, noise, starts[attempt])
                likely[parts[attempt]] = -np.inf
            if attempts > 1:
                near = chosen[: _near(starts[attempt], span, prior, chosen)]
                values[attempt] = _weight(starts[attempt], point, attack, near, work)
        best = -1.0
        for _ in range(min(attempts, _FOLLOWED)):
            attempt = int(np.argmax(values[:attempts]))
            values[attempt] = -1.0
            value = _climb(starts[attempt], point, lines[parts[attempt]], span, attack, chosen)
            if value > best:
                best = value
                centres[row] = starts[attempt]
        found[row] = best
    return found, centres
