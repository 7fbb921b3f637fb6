"""What remains of a box of attributes if an equation holds somewhere in it.

Boxes are arrays: lower and upper ends along the first axis, attributes along the second.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Bools, Floats

Possible = Callable[[Floats], Bools]

_ROUNDS = 60
"""Cuts at most, for an equation that leaves boxes undecided everywhere."""
_FRONT, _PARTS = 64, 8
"""So many boxes are cut at a time, each into so many."""
_FINEST = 1e-6
"""Relative width of the boxes at which narrowing stops."""
_HALVINGS = 48
"""Of an attribute, at most: a slope of 2^48 is beyond floats anyway."""
_COARSE, _ENOUGH, _MOST = 128, 128, 8_192
"""Boxes of a cover: to begin with, where an equation is gentle, and where it is steep."""
_SETTLED = 0.75
"""Part of its volume that a cover may keep, when all its boxes are halved, to be fine enough."""


def enclosed(possible: Possible, box: Floats, pieces: int, fine: Bools) -> Floats | None:
    """The hull of all boxes that may hold a solution, by branch and prune; None if none does.

    Args:
        possible: Which of many boxes, along the last axis, may hold one.
        box: Where to look.
        pieces: Into how many an interval is cut at first.
        fine: The attributes that must be cut small for `possible` to be exact.

    Examples:
        >>> def possible(boxes):  # a circle of radius 5
        ...     least, most = np.sort(boxes**2, axis=0).sum(axis=1)
        ...     return (least <= 25) & (25 <= most)
        >>> enclosed(possible, np.array([[0.0, 3.0], [9.0, 9.0]]), 8, np.full(2, True)).round(3)
        array([[0., 3.], [4., 5.]])
    """
    rest = box.copy()
    for place in range(box.shape[1]):
        axes = fine.copy()
        axes[place] = True
        for side in (0, 1):
            edge = _outermost(possible, rest, place, side, pieces, axes)
            if edge is None:
                return None
            rest[side, place] = edge
    return rest


def _outermost(
    possible: Possible,
    box: Floats,
    place: int,
    side: int,
    pieces: int,
    axes: Bools,
) -> float | None:
    """The first value of an attribute, from one side, whose box cannot be dropped."""
    width = box[1] - box[0]
    scale = np.where(axes & (width > 0), width, np.inf)[:, None]
    waiting = np.empty((*box.shape, 0))
    front = _cut(box[:, :, None], np.array([place]), pieces)
    for _ in range(_ROUNDS):
        boxes = np.concatenate([waiting, front[:, :, possible(front)]], axis=2)
        if not boxes.size:
            return None
        relative = (boxes[1] - boxes[0]) / scale
        # The smallest of the outermost first: one that cannot be dropped ends the search.
        outer = boxes[0, place] if side == 0 else -boxes[1, place]
        order = np.lexsort((relative.max(axis=0), outer))
        boxes, relative = boxes[:, :, order], relative[:, order[:_FRONT]]
        if relative[:, 0].max() < _FINEST:
            break
        front = _cut(boxes[:, :, :_FRONT], relative.argmax(axis=0), _PARTS)
        waiting = boxes[:, :, _FRONT:]
    return float(boxes[side, place, 0])


def _cut(boxes: Floats, axis: NDArray[np.intp], parts: int) -> Floats:
    """Each box, cut along one of its axes; neighbours share their edges."""
    each = np.arange(axis.size)
    first, last = boxes[:, axis, each]
    edges = first + (last - first) * (np.arange(parts + 1) / parts)[:, None]
    edges[-1] = last
    cut = np.repeat(boxes[:, :, None], parts, axis=2)
    cut[0, axis, :, each], cut[1, axis, :, each] = edges[:-1].T, edges[1:].T
    return cut.reshape(2, boxes.shape[1], -1)


def covering(possible: Possible, box: Floats) -> Floats:
    """Boxes that may hold a solution, in order, small but for the first attribute: they hold all.

    The others are halved in turn, and what cannot hold one is dropped: a thin sheet of solutions is
    cut as small as it is thin before there are too many boxes.

    Args:
        possible: Which of many boxes, along the last axis, may hold one.
        box: Where to look.

    Examples:
        >>> def possible(boxes):  # of a steep line
        ...     return (boxes[0, 0] <= 1000 * boxes[1, 1]) & (boxes[1, 0] >= 1000 * boxes[0, 1])
        >>> steep = covering(possible, np.array([[5_000.0, 0.0], [5_010.0, 10.0]]))
        >>> float(steep[0, 1].min().round(2)), float(steep[1, 1].max().round(2))
        (5.0, 5.01)
    """
    boxes, last, before = box[:, :, None], box.shape[1] - 1, math.inf
    for axis in range(1, last + 1):
        boxes = _cut(boxes, np.full(boxes.shape[2], axis), math.ceil(_COARSE ** (1 / last)))
    for halving in range(_HALVINGS * last):
        boxes = boxes[:, :, possible(boxes)]
        count = boxes.shape[2]
        if not 0 < count <= _MOST // 2:
            break
        if halving % last == 0:  # all attributes were halved: is much of what was left still lost?
            volume = count * 0.5**halving
            if count > _ENOUGH and volume > _SETTLED * before:
                break
            before = volume
        boxes = _cut(boxes, np.full(count, 1 + halving % last), 2)
    return boxes[:, :, np.lexsort(boxes[0, :0:-1])]


def near_zero(values: Floats) -> Bools:
    """Grids, one a row, of which some cell has corners that, and as much again, reach zero."""
    low = high = values
    with np.errstate(all="ignore"):
        for _ in range(values.ndim - 1):  # each axis of a grid is the first one once
            low = np.moveaxis(np.fmin(low[:, 1:], low[:, :-1]), 1, -1)
            high = np.moveaxis(np.fmax(high[:, 1:], high[:, :-1]), 1, -1)
        reach = high - low
        near = (low - reach <= 0) & (high + reach >= 0)
    return np.asarray(near.reshape(len(values), -1).any(axis=1))
