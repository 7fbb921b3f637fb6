"""What remains of a box of attributes if an equation holds somewhere in it.

Boxes are arrays: lower and upper ends along the first axis, attributes along the second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
_CELLS = 1 << 16
"""Cells of a grid on which a Python function is looked at."""
_SHRINKS = 0.99
"""Part of its width that an interval must lose for another round to be worth it."""


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


def sampled(
    function: Callable[[Sequence[Floats]], Floats], box: Floats, pieces: int
) -> Floats | None:
    """The hull of cells of a grid whose corners come near zero, and one more at each end.

    Args:
        function: Its values on a grid, from the coordinates of all attributes.
        box: Where to look.
        pieces: Into how many an interval is cut at most.

    Examples:
        >>> sampled(lambda at: at[0] - at[1], np.array([[0.0, 3.0], [5.0, 9.0]]), 64).round(1)
        array([[2.9, 3. ], [5. , 5.1]])
    """
    count = box.shape[1]
    each = max(2, min(pieces, int(_CELLS ** (1 / count))))
    for _ in range(_ROUNDS):
        grids = [np.linspace(low, high, each + 1) for low, high in box.T]
        kept = _near_zero(function(np.meshgrid(*grids, indexing="ij", sparse=True)))
        if not kept.any():
            return None
        rest = np.empty_like(box)
        for place, edges in enumerate(grids):
            across = tuple(axis for axis in range(count) if axis != place)
            cells = np.flatnonzero(kept.any(axis=across))
            rest[:, place] = edges[max(cells[0] - 1, 0)], edges[min(cells[-1] + 2, each)]
        shrunk = rest[1] - rest[0] < _SHRINKS * (box[1] - box[0])
        box = rest
        if not shrunk.any():
            break
    return box


def _near_zero(corners: Floats) -> Bools:
    """Cells of a grid whose corners, and as much again as they differ, reach zero."""
    low = high = corners
    with np.errstate(all="ignore"):
        for _ in range(corners.ndim):  # each axis is the first one once
            low = np.moveaxis(np.fmin(low[1:], low[:-1]), 0, -1)
            high = np.moveaxis(np.fmax(high[1:], high[:-1]), 0, -1)
        reach = high - low
        return np.asarray((low - reach <= 0) & (high + reach >= 0))
