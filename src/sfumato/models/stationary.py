"""Distributions that one step of a chain leaves as they are, in the same bits on every machine.

The first belief of a chain may be one of these, so its last bits are part of fingerprints.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.core.compiled import njit
from sfumato.core.errors import SolverFailed
from sfumato.core.portable_products import eigen

# Vectors that are kept between two starts, and starts at most.
_KRYLOV, _STARTS = 24, 200
# What a step still moves when all is well, and when rounding may be what is left.
_SETTLED, _NEARLY = 1e-15, 1e-11


def stationary_dense(transition: Floats) -> Floats:
    """Of several closed classes each has its part: the mixture of least norm.

    Examples:
        >>> stationary_dense(np.array([[0.9, 0.1], [0.3, 0.7]]))
        array([0.75, 0.25])
    """
    size = len(transition)
    found, weights = np.zeros(size), 0.0
    for inside in _closed(transition):
        share = _eliminated(np.ascontiguousarray(transition[np.ix_(inside, inside)]))
        # Classes do not overlap, so the least norm gives each the inverse of its square.
        weight = 1.0 / float((share * share).sum())
        found[inside] = weight * share
        weights += weight
    return checks.read_only(found / weights if weights > 0 else found)


def _closed(transition: Floats) -> list[np.ndarray[tuple[int], np.dtype[np.intp]]]:
    """The classes that nothing leaves."""
    if transition.min() > 0:
        return [np.arange(len(transition))]
    from scipy.sparse import csgraph  # at first use: it takes long to load

    count, labels = csgraph.connected_components(transition > 0, connection="strong")
    members = [np.flatnonzero(labels == label) for label in range(count)]
    return [own for own in members if not (transition[own][:, labels != labels[own[0]]] > 0).any()]


@njit(cache=True)
def _eliminated(rows: Floats) -> Floats:
    """Grassmann, Taksar and Heyman's elimination: nothing is taken away, so no digit is lost."""
    size = rows.shape[0]
    for last in range(size - 1, 0, -1):
        leaving = rows[last, :last].sum()
        for row in range(last):
            share = rows[row, last] / leaving
            rows[row, last] = share
            if share != 0.0:
                for column in range(last):
                    rows[row, column] += share * rows[last, column]
    found = np.ones(size)
    for place in range(1, size):
        total = 0.0
        for before in range(place):
            total += found[before] * rows[before, place]
        found[place] = total
    shares: Floats = found / found.sum()
    return shares


def stationary_carried(carry: Callable[[Floats], Floats], start: Floats) -> Floats:
    """The same for a chain that is too large to eliminate, from what a step does to a vector.

    Arnoldi's vectors; the combination that a step moves least is the next start.
    """
    here, best, least = start / start.sum(), start, np.inf
    for _ in range(_STARTS):
        moved = carry(here)
        off = float(np.abs(moved - here).sum())
        # As far as rounding lets it go: another start brings nothing.
        if off <= _SETTLED or (least <= _NEARLY and off > 0.5 * least):
            weights = np.abs(moved if off <= least else best)
            return checks.read_only(weights / weights.sum())
        if off < least:
            best, least = moved, off
        here = _least_moved(carry, here)
    raise SolverFailed(f"the stationary distribution did not settle in {_STARTS} starts")


def _least_moved(carry: Callable[[Floats], Floats], start: Floats) -> Floats:
    basis = [start / np.sqrt((start * start).sum())]
    table = np.zeros((_KRYLOV + 1, _KRYLOV))
    for step in range(_KRYLOV):
        new = carry(basis[-1])
        # Twice: once leaves what rounding puts back.
        for _ in range(2):
            for place, old in enumerate(basis):
                along = portable.dot(old, new)
                table[place, step] += along
                new = new - along * old
        length = float(np.sqrt((new * new).sum()))
        if length < _SETTLED:
            table = table[: step + 1, : step + 1]
            break
        table[step + 1, step] = length
        basis.append(new / length)
    off = table - np.eye(*table.shape)
    least = eigen(portable.dot(off.T, off))[1][:, 0]
    combined = np.zeros(start.size)
    for weight, vector in zip(least, basis, strict=False):
        combined += weight * vector
    shares: Floats = np.abs(combined) / np.abs(combined).sum()
    return shares
