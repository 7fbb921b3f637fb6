"""Roots of many equations in one unknown at once: all that lie in an interval.

Each equation is evaluated at points along the interval. Changes of sign, turns towards zero and
borders of where it is defined are then followed up, for all equations together.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Bools, Floats
from sfumato.core.search import boundaries

Indices = NDArray[np.intp]
Equation = Callable[[Indices, Floats], tuple[Floats, Floats]]
"""What the equations of some rows leave at some values, and the size of what they compare."""
Roots = tuple[Indices, Floats]
Bracket = tuple[Indices, Floats, Floats]

_POINTS = 257
"""Points of an interval at which an equation is looked at."""
_ROWS = 1024
"""Equations that are looked at together: a quarter of a million numbers."""
_HALVINGS = 80
"""Halvings and golden sections at most: 58 of the latter reach `_CLOSE`."""
_NOISE = 1e-13
"""What rounding may leave of an equation that holds, as a part of its size."""
_CLOSE = 1e-12
"""Relative width of an interval at which its middle is the place of a minimum."""
_SAME = 1e-7
"""Roots closer than that, relative to the interval, are one."""
_JUMP = 1e-3
"""At a root, the equation leaves less than that of what it leaves a cell away."""


def roots(equation: Equation, rows: int, low: float, high: float) -> Floats:
    """Roots of each row from low to high, ascending, padded with nan to at least one column.

    Two roots between neighbouring points, and one at which the equation touches zero, are found
    unless the equation turns there more than once.

    Examples:
        >>> squares = np.array([4.0, 0.0, -1.0])
        >>> def equation(row, value):
        ...     return value**2 - squares[row], value**2 + squares[row]
        >>> roots(equation, 3, -3.0, 5.0)
        array([[-2.,  2.], [ 0., nan], [nan, nan]])
    """
    points = np.linspace(low, high, _POINTS)
    found: list[Roots] = [(np.empty(0, dtype=np.intp), np.empty(0))]
    for start in range(0, rows, _ROWS):
        found.append(_scanned(equation, np.arange(start, min(start + _ROWS, rows)), points))
    row, root = (np.concatenate(part) for part in zip(*found, strict=True))
    return _table(rows, row, root, _SAME * (high - low))


def _scanned(equation: Equation, batch: Indices, points: Floats) -> Roots:
    grid, _ = equation(batch[:, None], points)
    # What is typical along the points knows of terms that cancel; poles do not change it.
    typical = np.median(np.where(np.isnan(grid), np.inf, np.abs(grid))[:, ::8], axis=1)
    typical[np.isinf(typical)] = 0.0

    def at(row: Indices, value: Floats) -> tuple[Floats, Floats]:
        """What is left, and how much of it may be rounding: nothing where it is infinite."""
        left, size = equation(batch[row], value)
        return left, np.where(np.isinf(size), 0.0, _NOISE * (size + typical[row]))

    found, brackets = list[Roots](), list[Bracket]()
    for search in (_signs, _borders, _dips):
        some, more = search(at, grid, points)
        found.append(some)
        brackets += more
    found.append(_crossings(at, *(np.concatenate(part) for part in zip(*brackets, strict=True))))
    row, root = (np.concatenate(part) for part in zip(*found, strict=True))
    return batch[row], root


def _signs(at: Equation, grid: Floats, points: Floats) -> tuple[Roots, list[Bracket]]:
    """Roots at a point, those at the ends up to rounding, and changes of sign between points."""
    zero = grid == 0
    left, noise = at(np.arange(len(grid))[:, None], points[[0, -1]])
    zero[:, [0, -1]] |= np.abs(left) <= noise
    row, place = np.nonzero(zero)
    signs = np.sign(grid)
    changed, before = np.nonzero(signs[:, :-1] * signs[:, 1:] < 0)
    return (row, points[place]), [(changed, points[before], points[before + 1])]


def _borders(at: Equation, grid: Floats, points: Floats) -> tuple[Roots, list[Bracket]]:
    """Roots, and changes of sign, where the equation begins or ceases to be defined."""
    undefined = np.isnan(grid)
    row, place = np.nonzero(undefined[:, :-1] != undefined[:, 1:])
    right = undefined[row, place]  # the defined neighbour
    known, unknown = points[place + right], points[place + ~right]

    def defined(value: Floats) -> Bools:
        return np.asarray(~np.isnan(at(row, value)[0]))

    border, _ = boundaries(defined, known, unknown, steps=_HALVINGS)
    left, noise = at(row, border)
    touching = np.abs(left) <= noise
    crossing = ~touching & (np.sign(left) * np.sign(grid[row, place + right]) < 0)
    low, high = np.minimum(border, known), np.maximum(border, known)
    return (row[touching], border[touching]), [(row[crossing], low[crossing], high[crossing])]


def _dips(at: Equation, grid: Floats, points: Floats) -> tuple[Roots, list[Bracket]]:
    """Roots where the equation turns: it touches zero, or crosses it twice between two points."""
    signs = np.pad(np.sign(grid), ((0, 0), (1, 1)), constant_values=np.nan)
    sizes = np.pad(np.abs(grid), ((0, 0), (1, 1)), constant_values=np.nan)
    sizes[np.isnan(sizes)] = np.inf
    turns = (sizes[:, 1:-1] < sizes[:, :-2]) & (sizes[:, 1:-1] <= sizes[:, 2:])
    crossed = (signs[:, 1:-1] * signs[:, :-2] <= 0) | (signs[:, 1:-1] * signs[:, 2:] <= 0)
    row, place = np.nonzero(turns & ~crossed)
    sign = signs[row, place + 1]
    low = points[place - np.isfinite(sizes[row, place])]
    high = points[place + np.isfinite(sizes[row, place + 2])]
    best = _least(lambda value: sign * at(row, value)[0], low, high)
    left, noise = at(row, best)
    crossing = sign * left < 0
    touching = ~crossing & (np.abs(left) <= noise)
    return (row[touching], best[touching]), [
        (row[crossing], low[crossing], best[crossing]),
        (row[crossing], best[crossing], high[crossing]),
    ]


def _crossings(at: Equation, row: Indices, low: Floats, high: Floats) -> Roots:
    """Roots between points of different sign; a pole or a jump is none."""
    first, last = at(row, low)[0], at(row, high)[0]
    ends = np.abs(np.stack([first, last]))
    bound = np.max(np.where(np.isfinite(ends), ends, 0.0), axis=0)
    sign = np.sign(first)

    def before(value: Floats) -> Bools:
        return np.asarray(np.sign(at(row, value)[0]) == sign)

    low, high = boundaries(before, low, high, steps=_HALVINGS)
    (below, noise), (above, _) = at(row, low), at(row, high)
    root = np.where(np.abs(below) < np.abs(above), low, high)
    left = np.fmin(np.abs(below), np.abs(above))
    good = left <= np.maximum(noise, _JUMP * bound)
    return row[good], root[good]


def _least(function: Callable[[Floats], Floats], low: Floats, high: Floats) -> Floats:
    """Where a function that turns once is least, by golden section."""
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(_HALVINGS):
        width = golden * (high - low)
        if not np.any(width > _CLOSE * np.maximum(np.abs(low), np.abs(high))):
            break
        one, other = high - width, low + width
        left = function(one) <= function(other)
        low, high = np.where(left, low, one), np.where(left, other, high)
    return 0.5 * low + 0.5 * high


def _table(rows: int, row: Indices, root: Floats, same: float) -> Floats:
    """One line per row, ascending; roots that are the same within rounding are one."""
    order = np.lexsort((root, row))
    row, root = row[order], root[order]
    new = np.ones(row.size, dtype=bool)
    new[1:] = (row[1:] != row[:-1]) | (root[1:] - root[:-1] > same)
    row, root = row[new], root[new]
    counts = np.bincount(row, minlength=rows)
    place = np.arange(row.size) - np.repeat(np.cumsum(counts) - counts, counts)
    table = np.full((rows, counts.max(initial=1)), np.nan)
    table[row, place] = root
    return table
