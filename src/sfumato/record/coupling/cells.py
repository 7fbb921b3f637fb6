"""Where an equation gives values that are wanted: cells of the attributes that it gives them from.

Cells are arrays: lower and upper ends along the first axis, cells along the second, attributes
along the third. A cell is kept if the solutions at its corners and its middle, and a quarter more
at both ends, reach the values that are wanted; it is halved until they do not reach much beyond.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Bools, Floats

Solutions = Callable[[Floats], Floats]
"""What an equation gives at some points, one a row: solutions, padded with nan."""

_COARSE, _MOST = 256, 8_192
"""Cells to begin with, and at most: each takes as many solutions as it has corners."""
_HALVINGS = 64
_WIDER = 0.25
"""Part of what solutions at corners differ by that is added at both ends: an equation may turn."""
_BORDER = 1 / 64
"""Cells in which the number of solutions changes are halved until they are that small."""


def reaching(solutions: Solutions, box: Floats, wanted: tuple[float, float]) -> Floats:
    """Cells of a box, in order, at which solutions may be as wanted: they hold all such points.

    That is so unless the equation turns within a cell of a few hundred by more than a quarter of
    what it changes by.

    Args:
        solutions: The equation, solved.
        box: Lower and upper ends of the attributes that it is solved from.
        wanted: Least and greatest value of the one that it gives.

    Examples:
        >>> steep = reaching(lambda at: 1000 * at, np.array([[0.0], [10.0]]), (5_000.0, 5_010.0))
        >>> float(steep.min().round(2)), float(steep.max().round(2))
        (4.99, 5.02)
    """
    width = box[1] - box[0]
    cells = box[:, None, :]
    while cells.shape[1] < _COARSE:
        longest = np.argmax((cells[1] - cells[0]) / width, axis=1)
        cells = _halved(cells, longest)
    kept = [cells[:, :0]]
    for _ in range(_HALVINGS):
        corners = _corner_values(solutions, cells)
        meets, fits = _compared(corners, wanted)
        small = ((cells[1] - cells[0]) <= _BORDER * width).all(axis=1)
        changes = np.isnan(corners).any(axis=(1, 2)) & ~np.isnan(corners).all(axis=(1, 2))
        done = fits | (changes & small)
        kept.append(cells[:, meets & done])
        rest = meets & ~done
        count = sum(part.shape[1] for part in kept) + 2 * int(rest.sum())
        if count > _MOST or not rest.any():
            kept.append(cells[:, rest])
            break
        cells = _halved(cells[:, rest], _steepest(corners[rest], cells[:, rest], width))
    found = np.concatenate(kept, axis=1)
    return found[:, np.lexsort(found[0].T[::-1])]


def _corner_values(solutions: Solutions, cells: Floats) -> Floats:
    """Solutions at all corners of each cell, those of the first axes first, and in its middle."""
    size = cells.shape[2]
    ends = np.array(list(product((0, 1), repeat=size)))
    places = [np.where(end, cells[1], cells[0]) for end in ends] + [0.5 * (cells[0] + cells[1])]
    found = solutions(np.concatenate(places))
    return np.moveaxis(found.reshape(len(places), cells.shape[1], -1), 0, 1)


def _compared(corners: Floats, wanted: tuple[float, float]) -> tuple[Bools, Bools]:
    """Whether some solution may be as wanted, and whether all such lie about there throughout."""
    low, high = _ends(corners, axis=1)
    uneven = np.asarray(np.isnan(corners).any(axis=1) & ~np.isnan(corners).all(axis=1))
    every = uneven.any(axis=1)
    least, most = _ends(corners, axis=(1, 2))
    low[every], high[every] = least[every, None], most[every, None]
    spread = high - low
    meets = np.asarray(low - _WIDER * spread <= wanted[1])
    meets &= np.asarray(high + _WIDER * spread >= wanted[0])
    fits = ~meets | (spread <= wanted[1] - wanted[0])
    return np.asarray(meets.any(axis=1)), np.asarray(fits.all(axis=1) & ~every)


def _ends(values: Floats, axis: int | tuple[int, int]) -> tuple[Floats, Floats]:
    """Least and greatest, whatever is nan; the wrong way round if all are."""
    low = np.min(np.where(np.isnan(values), np.inf, values), axis=axis)
    high = np.max(np.where(np.isnan(values), -np.inf, values), axis=axis)
    return np.asarray(low), np.asarray(high)


def _steepest(corners: Floats, cells: Floats, width: Floats) -> NDArray[np.intp]:
    """The axis along which solutions change most; the longest where that is not known."""
    size = cells.shape[2]
    grid = corners[:, :-1, 0].reshape(-1, *[2] * size)
    changes = np.stack(
        [np.abs(np.diff(grid, axis=1 + axis)).reshape(len(grid), -1) for axis in range(size)],
        axis=1,
    )
    rises = np.where(np.isnan(changes), 0.0, changes).max(axis=2)
    longest = (cells[1] - cells[0]) / width
    unknown = np.asarray(np.isnan(corners).any(axis=(1, 2)) | (rises.max(axis=1) == 0))
    return np.asarray(np.argmax(np.where(unknown[:, None], longest, rises), axis=1))


def _halved(cells: Floats, axis: NDArray[np.intp]) -> Floats:
    each = np.arange(cells.shape[1])
    lower, upper = cells.copy(), cells.copy()
    middle = 0.5 * (cells[0, each, axis] + cells[1, each, axis])
    lower[1, each, axis], upper[0, each, axis] = middle, middle
    return np.concatenate([lower, upper], axis=1)
