"""The linear programs as they stand on paper: one variable per entry, one row per constraint.

Slow and obvious; dense matrices, no change of variables, no structure used.
"""

import itertools
import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

Floats = NDArray[np.float64]

TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def textbook_optimum(
    belief: Floats, loss: Floats, epsilon: float, ldp: float | None = None
) -> float:
    """Least mean loss with P(y)/k <= a(y|x) <= k P(y) and, if asked, a(y|x) <= e^ldp a(y|x')."""
    size, outputs = loss.shape
    share = belief / belief.sum()
    k = math.exp(epsilon)
    rows: list[Floats] = []
    for x, y in itertools.product(range(size), range(outputs)):
        marginal = np.zeros((size, outputs))
        marginal[:, y] = share
        entry = np.zeros((size, outputs))
        entry[x, y] = 1.0
        rows.append((marginal / k - entry).ravel())
        rows.append((entry - k * marginal).ravel())
    if ldp is not None:
        rows.extend(_quotients(size, outputs, math.exp(ldp)))
    cost = (share[:, None] * loss).ravel()
    return _least(cost, np.array(rows), _row_sums(size, outputs))


def textbook_minimax(loss: Floats, ldp: float) -> float:
    """Least worst-case loss with a(y|x) <= e^ldp a(y|x') for all x, x', y."""
    size, outputs = loss.shape
    scale = float(loss.max()) or 1.0
    rows = [np.append(row, 0.0) for row in _quotients(size, outputs, math.exp(ldp))]
    for x in range(size):
        worst = np.zeros((size, outputs))
        worst[x] = loss[x] / scale
        rows.append(np.append(worst.ravel(), -1.0))
    sums = np.hstack([_row_sums(size, outputs), np.zeros((size, 1))])
    cost = np.append(np.zeros(size * outputs), 1.0)
    return scale * _least(cost, np.array(rows), sums)


def _row_sums(size: int, outputs: int) -> Floats:
    return np.asarray(np.kron(np.eye(size), np.ones(outputs)), dtype=np.float64)


def _quotients(size: int, outputs: int, factor: float) -> list[Floats]:
    rows = []
    for y in range(outputs):
        for x, other in itertools.permutations(range(size), 2):
            row = np.zeros((size, outputs))
            row[x, y] = 1.0
            row[other, y] = -factor
            rows.append(row.ravel())
    return rows


def _least(cost: Floats, rows: Floats, sums: Floats) -> float:
    # The tolerances are absolute: the costs are brought to size first.
    scale = float(np.abs(cost).max()) or 1.0
    result = linprog(
        cost / scale,
        rows,
        np.zeros(len(rows)),
        sums,
        np.ones(len(sums)),
        method="highs",
        options=TIGHT,
    )
    assert result.status == 0, result.message
    return float(result.fun) * scale
