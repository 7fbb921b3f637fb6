"""Groups of records to begin a mixture with: k-means, summed in a fixed order.

The steps are those of scikit-learn (k-means++ with some tries for each centre, then Lloyd's), and
so are the coins. Its distances follow BLAS: where records are heaped, many are as near to one
centre as to another, and the last bits decided which. Here the first of equals wins everywhere.
"""

from __future__ import annotations

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit

# As scikit-learn has them: rounds at most, and the part of a variance that is no move.
_ROUNDS, _STILL = 300, 1e-4


def first_groups(records: Floats, count: int, coins: np.random.RandomState) -> Ints:
    """The group of each record, one a row.

    Examples:
        >>> heaps = np.array([[0.0], [9.0], [0.1], [9.1]])
        >>> groups = first_groups(heaps, 2, np.random.RandomState(0))
        >>> bool(groups[0] == groups[2] != groups[1] == groups[3])
        True
    """
    centred = np.ascontiguousarray(records - records.mean(axis=0))
    still = float(np.var(records, axis=0).mean()) * _STILL
    return _settled(centred, _spread(centred, count, coins), still)


def _spread(records: Floats, count: int, coins: np.random.RandomState) -> Floats:
    """Centres far from each other: each the best of some records drawn by squared distance."""
    rows = len(records)
    tries = 2 + int(portable.log(float(count)))
    chosen = [int(coins.choice(rows, p=np.full(rows, 1 / rows)))]
    nearest = _squared(records, records[chosen[0]])
    for _ in range(1, count):
        drawn = coins.uniform(size=tries) * nearest.sum()
        places = np.minimum(np.searchsorted(np.cumsum(nearest), drawn), rows - 1)
        left = [np.minimum(nearest, _squared(records, records[place])) for place in places]
        best = int(np.argmin([distances.sum() for distances in left]))
        nearest = left[best]
        chosen.append(int(places[best]))
    return records[chosen]


@njit(cache=True)
def _squared(records: Floats, centre: Floats) -> Floats:
    """Squared distances of all records from a centre."""
    found = np.zeros(records.shape[0])
    for row in range(records.shape[0]):
        for axis in range(centre.size):
            off = records[row, axis] - centre[axis]
            found[row] += off * off
    return found


@njit(cache=True)
def _settled(records: Floats, centres: Floats, still: float) -> Ints:
    """Each record to its nearest centre, each centre to the middle of its records, in turn."""
    groups = np.full(records.shape[0], -1)
    for _ in range(_ROUNDS):
        distances, changed = _assigned(records, centres, groups)
        moved = _middles(records, centres, groups, distances)
        shift = 0.0
        for part in range(centres.shape[0]):
            for axis in range(centres.shape[1]):
                off = moved[part, axis] - centres[part, axis]
                shift += off * off
        centres = moved
        if not changed:
            return groups
        if shift <= still:
            break
    _assigned(records, centres, groups)
    return groups


@njit(cache=True)
def _assigned(records: Floats, centres: Floats, groups: Ints) -> tuple[Floats, bool]:
    """Write down the nearest centre of each record; how far it is, and whether any changed."""
    nearest = np.full(records.shape[0], np.inf)
    found = np.zeros_like(groups)
    for part in range(centres.shape[0]):
        distances = _squared(records, centres[part])
        for row in range(records.shape[0]):
            if distances[row] < nearest[row]:
                nearest[row], found[row] = distances[row], part
    changed = False
    for row in range(groups.size):
        changed = changed or groups[row] != found[row]
        groups[row] = found[row]
    return nearest, changed


@njit(cache=True)
def _middles(records: Floats, centres: Floats, groups: Ints, distances: Floats) -> Floats:
    """Means of the groups; an empty one gets the record that is farthest from its centre."""
    sums, sizes = np.zeros_like(centres), np.zeros(centres.shape[0])
    for row in range(groups.size):
        sizes[groups[row]] += 1
        for axis in range(sums.shape[1]):
            sums[groups[row], axis] += records[row, axis]
    for part in range(sizes.size):
        far = np.argmax(distances)
        if sizes[part] == 0 and distances[far] > 0:
            distances[far] = 0.0
            sizes[part], sizes[groups[far]] = 1, sizes[groups[far]] - 1
            sums[part] = records[far]
            sums[groups[far]] -= records[far]
    for part in range(sizes.size):
        # As many centres as different records, or more: one that nobody needs stays.
        sums[part] = sums[part] / sizes[part] if sizes[part] > 0 else centres[part]
    return sums
