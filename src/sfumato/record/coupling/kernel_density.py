"""The kernel density of records as a mixture of normals: bandwidth, and records that share one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats

MOST_COMPONENTS = 250
"""Components of a mixture: more make attacks slow, and a density no better."""
MOST_FITTED = 20_000
"""Records that a mixture is fitted to, at about even distances; more change nothing."""
_CELL, _GROWTH = 0.35, 1.15
"""Width of the cells in which records share a component, in bandwidths; it grows to fit."""
_MOST_HALVINGS = 8
_FEWEST_ASKED = 16
"""Records that must be left to ask how likely they are, for a bandwidth to be chosen by it."""
_CLEARLY = 0.02
"""By how much the mean logarithm of a density must rise for a smaller bandwidth."""
_RAREST = 1e-12
"""What a density counts as at least, where a bandwidth is chosen."""

Components = tuple[Floats, Floats, Floats]


def bandwidth_of(table: Floats, density: Callable[[Components, Floats], Floats]) -> float:
    """Scott's rule, or the part of it with which every other record is clearly likelier.

    Args:
        table: The records.
        density: Of a mixture of such components, at some points.
    """
    rows, size = table.shape
    scott = portable.power(float(rows), -1 / (size + 4))
    some = table[:: max(1, rows // MOST_FITTED)]
    taught, asked = some[::2], some[1::2]
    if (
        len(asked) < _FEWEST_ASKED
        or np.linalg.matrix_rank(np.atleast_2d(portable.covariance(taught))) < size
    ):
        return scott
    best, chosen = -np.inf, scott
    for halvings in range(_MOST_HALVINGS + 1):
        width = scott * 0.5**halvings
        found = density(kernels(taught, width), asked)
        score = float(np.mean(portable.log(np.maximum(found, _RAREST))))
        if score > best + _CLEARLY:
            best, chosen = score, width
    return chosen


def kernels(table: Floats, width: float) -> Components:
    """Weights, means and covariances of a kernel density; close records share a component."""
    rows = len(table)
    covariance = checks.positive_definite("covariance", portable.covariance(table))
    factor = portable.root(covariance)
    # Uncorrelated columns of unit deviation: a cell is as wide along every axis.
    white = portable.solved(factor, (table - table.mean(axis=0)).T).T
    cell = _CELL * width
    while True:
        places, group = np.unique(np.floor(white / cell), axis=0, return_inverse=True)
        if len(places) <= MOST_COMPONENTS:
            break
        cell *= _GROWTH
    shares = np.bincount(group.ravel(), minlength=len(places)).astype(np.float64)
    sums = np.stack([np.bincount(group.ravel(), column) for column in table.T], axis=1)
    means = sums / shares[:, None]
    spreads = np.repeat((width**2 * covariance)[None], len(places), axis=0)
    off = table - means[group.ravel()]
    np.add.at(
        spreads,
        group.ravel(),
        off[:, :, None] * off[:, None, :] / shares[group.ravel(), None, None],
    )
    return shares / rows, means, spreads
