"""TPL's own algorithms for the loss function, as arrays, with their misprints mended.

All pairs that begin with one row are worked on together, as in the authors' language. What differs
from the printed text: Algorithm 1 begins each round anew, line 11 of Algorithm 2 has its "+1", line
5 of Algorithm 3 its denominator, Algorithm 4 does not compare floats for equality, Algorithm 5
looks in ascending order (errata 18, N17).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from sfumato.core.arrays import Floats, Ints

_SAME = 1e-13
"""Leakages nearer than this are one in Algorithm 4."""
Pieces = list[tuple[float, float, float]]
"""Numerator, denominator and right end of each piece of a loss function, ascending."""


def algorithm_1(rows: Floats, alpha: float) -> float:
    """The loss at one level: columns that do not belong are dropped until none is left to drop.

    Examples:
        >>> algorithm_1(np.array([[0.8, 0.2], [0.0, 1.0]]), 1.0)
        0.8648397

    References:
        [TPL, Alg. 1]
    """
    growth, best = math.expm1(alpha), 1.0
    for first in rows:
        inside = first > rows
        while True:
            top = (inside * first).sum(axis=1) * growth + 1
            ratio = top / ((inside * rows).sum(axis=1) * growth + 1)
            left = inside & (first > ratio[:, None] * rows)
            if (left == inside).all():
                break
            inside = left
        best = max(best, float(ratio.max()))
    return math.log(best)


@dataclass(frozen=True, slots=True, eq=False)
class Parameters:
    """What Algorithm 2 finds in advance, one row for each pair of rows of the matrix.

    Attributes:
        tops: Sums of the first row of a pair, one column more each, by falling ratio.
        bases: The same of the second row.
        limits: Leakage up to which each is the best, falling; minus infinity where there is none.
    """

    tops: Floats
    bases: Floats
    limits: Floats


def algorithm_2(rows: Floats) -> Parameters:
    """Sums and transition points of all pairs.

    References:
        [TPL, Alg. 2]
    """
    found: list[tuple[Floats, Floats, Floats]] = []
    for first in rows:
        inside = first > rows
        with np.errstate(divide="ignore", invalid="ignore"):
            order = np.argsort(np.where(inside, -first / rows, np.inf), axis=1)
            q = np.take_along_axis(np.where(inside, first, 0.0), order, axis=1)
            d = np.take_along_axis(np.where(inside, rows, 0.0), order, axis=1)
            top, base = q.cumsum(axis=1), d.cumsum(axis=1)
            below = top * d - base * q
            growth = np.where(below > 0, (q - d) / below, np.inf)
        limit = np.where(q > 0, np.log1p(growth), -np.inf)
        found.append((top, base, limit))
    return Parameters(*(np.concatenate(part) for part in zip(*found, strict=True)))


def algorithm_3(parameters: Parameters, alpha: float) -> float:
    """The loss at one level, of what was found in advance: a binary search for each pair.

    References:
        [TPL, Alg. 3]
    """
    return _best(parameters, alpha)[0]


def algorithm_4(parameters: Parameters, low: float, high: float) -> Pieces:
    """The pieces of the loss function between two levels, halved where two pieces cross.

    References:
        [TPL, Alg. 4]
    """
    at_low, q1, d1 = _best(parameters, low)
    at_high, qm, dm = _best(parameters, high)
    if high - low < _SAME or at_high - _value(q1, d1, high) <= _SAME * at_high:
        return [(q1, d1, high)]
    below = q1 * dm - qm * d1
    cut = (qm + d1 - q1 - dm) / below if below else 0.0
    if cut <= 0 or at_low - _value(qm, dm, low) <= _SAME * at_low:
        return [(qm, dm, high)]
    middle = math.log1p(cut)
    if not low < middle < high:
        middle = 0.5 * (low + high)
    return algorithm_4(parameters, low, middle) + algorithm_4(parameters, middle, high)


def right_ends(pieces: Pieces) -> Floats:
    """Where each piece ends, ascending."""
    return np.array([end for _, _, end in pieces])


def algorithm_5(pieces: Pieces, ends: Floats, alpha: float) -> float:
    """The loss at one level, of the pieces and their right ends: one binary search.

    References:
        [TPL, Alg. 5]
    """
    place = min(int(np.searchsorted(ends, alpha)), len(pieces) - 1)
    top, base, _ = pieces[place]
    return _value(top, base, alpha)


def solver_value(first: Floats, second: Floats, alpha: float) -> float:
    """The optimum of one pair of rows by HiGHS, with the denominator made 1.

    The paper compares every two entries of the vector; here each is compared with the least one,
    which is the same set and 2 n rows instead of n (n - 1).

    References:
        [TPL, Eq. 19], [TPL, Eq. 20]
    """
    size = first.size
    one, least = sparse.eye_array(size), np.ones((size, 1))
    limits = sparse.vstack(
        [sparse.hstack([-one, least]), sparse.hstack([one, -math.exp(alpha) * least])],
        format="csr",
    )
    found = linprog(
        np.append(-first, 0.0),
        A_ub=limits,
        b_ub=np.zeros(2 * size),
        A_eq=np.append(second, 0.0)[None, :],
        b_eq=[1.0],
        method="highs",
    )
    return math.log(-found.fun)


def _best(parameters: Parameters, alpha: float) -> tuple[float, float, float]:
    """The largest loss of any pair at a level, and the sums it comes from."""
    place = _places(parameters.limits, alpha)
    pairs = np.arange(len(place))
    tops, bases = parameters.tops[pairs, place], parameters.bases[pairs, place]
    growth = math.expm1(alpha)
    gains = (tops - bases) * growth / (1 + bases * growth)
    found = int(gains.argmax())
    return math.log1p(float(gains[found])), float(tops[found]), float(bases[found])


def _places(limits: Floats, alpha: float) -> Ints:
    """The last limit above a level in each row, by halving all rows together."""
    pairs = np.arange(len(limits))
    low, high = np.zeros(len(limits), dtype=np.int64), np.full(len(limits), limits.shape[1])
    while np.any(high - low > 1):
        middle = (low + high) // 2
        above = limits[pairs, middle] > alpha
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.asarray(low)


def _value(top: float, base: float, alpha: float) -> float:
    growth = math.expm1(alpha)
    return math.log1p((top - base) * growth / (1 + base * growth))
