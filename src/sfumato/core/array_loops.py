"""Array functions within loops: numba needs up to two seconds to compile its own.

Each gives what numpy's gives, to the bit; none is given an empty array.
"""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.compiled import njit


@njit(cache=True, error_model="numpy")
def least_place(values: Floats) -> int:
    """`np.argmin`: the first of the least, or the first that is no number."""
    place = 0
    for i in range(values.size):
        if values[i] != values[i]:
            return i
        if values[i] < values[place]:
            place = i
    return place


@njit(cache=True, error_model="numpy")
def least(values: Floats) -> float:
    """`np.min`."""
    found: float = values[least_place(values)]
    return found


@njit(cache=True, error_model="numpy")
def largest(table: Floats) -> float:
    """`np.max` of a table."""
    found: float = table[0, 0]
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            if table[i, j] != table[i, j]:
                return np.nan
            found = max(found, table[i, j])
    return found


@njit(cache=True, error_model="numpy")
def marked(marks: Bools) -> Ints:
    """`np.flatnonzero`: the places that are marked."""
    count = 0
    for i in range(marks.size):
        if marks[i]:
            count += 1
    places = np.empty(count, dtype=np.int64)
    count = 0
    for i in range(marks.size):
        if marks[i]:
            places[count] = i
            count += 1
    return places


@njit(cache=True, error_model="numpy")
def taken(values: Ints, places: Ints) -> Ints:
    """`values[places]`."""
    found = np.empty(places.size, dtype=np.int64)
    for i in range(places.size):
        found[i] = values[places[i]]
    return found


@njit(cache=True, error_model="numpy")
def divide_by_sums(rows: Floats) -> None:
    """`row /= row.sum()` for each row of a table."""
    for x in range(rows.shape[0]):
        total = 0.0
        for y in range(rows.shape[1]):
            total += rows[x, y]
        for y in range(rows.shape[1]):
            rows[x, y] /= total
