r"""The cheapest channel that is a mixture of given columns.

A column is an output with ratios $r(x)$ that average to 1 under the belief. The channel
$a(y|x) = w_y r_y(x)$ has rows that sum to 1 once $\sum_y w_y r_y(x) = 1$ for every $x$, so what is
true of each column, as a bound on what an output tells, is true of the channel. The program has as
many equations as symbols; the simplex method of `simplex_loops.py` solves it.
"""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit
from sfumato.solver.simplex_loops import POOLED, cheapest_mixture

_SETTLED = 1e-12
"""Part of the largest cost that a column may still be worth when no more are exchanged."""
_DUST = 1e-9
"""Weights below this are left out: integers could not hold what such a column says."""
_ALIKE = 0.5
"""Mass that can be high where no ratio may differ from 1: nothing is priced but the constant."""
_COPIES = 4
"""A column that has left the basis never comes back, but a copy of it may."""


def mixed_columns(belief: Floats, ratios: Floats, costs: Floats, constant: float) -> Floats:
    """Rows of the cheapest mixture of some columns and a constant; the constant if none is found.

    Args:
        belief: Probability of each true symbol.
        ratios: Columns, one row for each true symbol.
        costs: What each column costs where it is the only one.
        constant: What the constant costs.

    Examples:
        >>> told = np.array([[1.5, 0.5], [0.5, 1.5]])
        >>> mixed_columns(np.array([0.5, 0.5]), told, np.array([0.25, 0.25]), 0.5)
        array([[0.75, 0.25],
               [0.25, 0.75]])
    """
    names, weights, columns = _mixed(belief, np.ascontiguousarray(ratios), costs, constant)
    used = np.flatnonzero((names >= 0) & (weights > _DUST))
    if not used.size:
        return np.ones((belief.size, 1))
    used = used[np.argsort(names[used], kind="stable")]
    rows = (weights[used, None] * columns[used]).T
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


@njit(cache=True, error_model="numpy")
def _mixed(
    belief: Floats, ratios: Floats, costs: Floats, constant: float
) -> tuple[Ints, Floats, Floats]:
    """Outputs of the basis (-1: none), their weights and ratios, one row each."""
    size, count = ratios.shape
    largest, by_output = abs(constant), np.empty((count + 1, size))
    by_output[0] = constant
    for j in range(count):
        by_output[j + 1] = costs[j]
        largest = max(largest, abs(costs[j]))
    weights, columns = np.empty(size), np.empty((size, size))
    names = np.empty(size, dtype=np.int64)
    basis = (np.empty((size, size)), weights, columns, names, np.empty(size), np.empty(size))
    order = np.arange(size).reshape(1, size)
    pricing = (by_output, order, np.empty((1, 3)), np.empty(size), np.empty(size))
    copies, places = np.empty((size, _COPIES * count)), np.empty(_COPIES * count, np.int64)
    for j in range(places.size):
        places[j] = 1 + j % count
        for x in range(size):
            copies[x, j] = ratios[x, j % count]
    starts = (copies, np.empty(places.size), places, np.empty(places.size))
    room = (np.empty((size, POOLED)), np.empty(POOLED), np.empty(POOLED, np.int64))
    pool = (*room, np.empty(POOLED))
    tolerance = _SETTLED * largest
    pivots = cheapest_mixture(
        *(belief, 1, _ALIKE, tolerance, 20 * size + places.size, 0.0, starts, basis, pricing, pool)
    )
    if pivots < 0:
        names[:] = -1
    return names, weights, columns
