r"""The linear programs behind the optimal channel.

Without a cap on the model-free leakage the program is a transport problem. With $k = e^\epsilon$,

$$a(y|x) = \tfrac1k P(y) + (1 - \tfrac1k)\, g(x,y)$$

turns the bounds $P(y)/k \le a(y|x) \le k P(y)$ into $0 \le g(x,y) \le (k+1) P(y)$; rows of $g$
sum to 1 and $P(y) = \sum_x b(x) g(x,y)$: with probability $1/k$ release a draw that ignores the
value, otherwise release through the cheapest coupling in which no output tells more than $k+1$
times its share. HiGHS solves this form much faster than the textbook one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from sfumato.core import portable
from sfumato.core.arrays import Floats
from sfumato.core.errors import SolverFailed

# HiGHS refuses larger coefficients; the optimum for a smaller budget is within the larger one.
_SOLVABLE = 20.0
_OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True, slots=True)
class Solution:
    """A float channel on the candidate outputs and the prices of the true symbols."""

    rows: Floats
    prices: Floats


def solve_transport(belief: Floats, loss: Floats, epsilon: float) -> Solution:
    """Optimal channel on the given outputs (columns of `loss`) without a cap.

    Variables: g(x,y), x slow, y fast; then P(y).
    """
    k = portable.exp(min(epsilon, _SOLVABLE))
    size, outputs = loss.shape
    cells = size * outputs
    mean_loss = portable.dot(belief, loss)
    cost = np.concatenate([(1 - 1 / k) * (belief[:, None] * loss).ravel(), mean_loss / k])
    row_sums = sparse.kron(sparse.eye_array(size), np.ones((1, outputs)))
    column_sums = sparse.kron(belief[None, :], sparse.eye_array(outputs))
    equal = sparse.block_array(
        [[row_sums, None], [column_sums, -sparse.eye_array(outputs)]], format="csr"
    )
    cap = -(k + 1) * sparse.kron(np.ones((size, 1)), sparse.eye_array(outputs))
    below = sparse.hstack([sparse.eye_array(cells), cap], format="csr")
    target = np.concatenate([np.ones(size), np.zeros(outputs)])
    x, marginals = _solve(cost, below, np.zeros(cells), equal, target)
    coupling = x[:cells].reshape(size, outputs)
    coupling /= coupling.sum(axis=1, keepdims=True)
    rows = (portable.dot(belief, coupling)) / k + (1 - 1 / k) * coupling
    # A unit of g is only the share 1 - 1/k of a unit of a.
    return Solution(_stochastic(rows), marginals[:size] / belief / (1 - 1 / k))


def solve_capped(belief: Floats, loss: Floats, epsilon: float | None, ldp: float) -> Solution:
    """Optimal channel whose rows also stay within a factor `e**ldp` of each other.

    Variables: a(y|x), x slow, y fast; then the least entry of each column. Without `epsilon`
    the model-free leakage alone is bounded.
    """
    h = portable.exp(min(ldp, _SOLVABLE))
    size, outputs = loss.shape
    cells = size * outputs
    columns = sparse.kron(np.ones((size, 1)), sparse.eye_array(outputs))
    unit = sparse.eye_array(cells)
    nothing = sparse.csr_array((cells, outputs))
    bounds = [sparse.hstack([-unit, columns]), sparse.hstack([unit, -h * columns])]
    if epsilon is not None:
        k = portable.exp(min(epsilon, _SOLVABLE))
        marginal = sparse.kron(
            np.ones((size, 1)), sparse.kron(belief[None, :], sparse.eye_array(outputs))
        )
        bounds.append(sparse.hstack([marginal / k - unit, nothing]))
        bounds.append(sparse.hstack([unit - k * marginal, nothing]))
    below = sparse.vstack(bounds, format="csr")
    row_sums = sparse.kron(sparse.eye_array(size), np.ones((1, outputs)))
    equal = sparse.hstack([row_sums, sparse.csr_array((size, outputs))], format="csr")
    cost = np.concatenate([(belief[:, None] * loss).ravel(), np.zeros(outputs)])
    x, marginals = _solve(cost, below, np.zeros(below.shape[0]), equal, np.ones(size))
    rows = x[:cells].reshape(size, outputs)
    return Solution(_stochastic(rows), marginals / belief)


def solve_minimax(loss: Floats, ldp: float) -> Floats:
    """Channel of bounded model-free leakage whose worst row has the least expected loss.

    Variables: a(y|x), the least entry of each column, the worst loss; the mean loss breaks ties.
    """
    h = portable.exp(min(ldp, _SOLVABLE))
    size = len(loss)
    cells = size * size
    columns = sparse.kron(np.ones((size, 1)), sparse.eye_array(size))
    unit = sparse.eye_array(cells)
    row_sums = sparse.kron(sparse.eye_array(size), np.ones((1, size)))
    row_loss = row_sums * loss.ravel()[None, :]
    below = sparse.block_array(
        [
            [-unit, columns, None],
            [unit, -h * columns, None],
            [row_loss, None, -np.ones((size, 1))],
        ],
        format="csr",
    )
    equal = sparse.hstack([row_sums, sparse.csr_array((size, size + 1))], format="csr")
    tie = 1e-6 / size * loss.ravel()
    cost = np.concatenate([tie, np.zeros(size), [1.0]])
    x, _ = _solve(cost, below, np.zeros(below.shape[0]), equal, np.ones(size))
    return _stochastic(x[:cells].reshape(size, size))


def _stochastic(rows: Floats) -> Floats:
    clipped = np.maximum(rows, 0.0)
    return np.asarray(clipped / clipped.sum(axis=1, keepdims=True))


def _solve(
    cost: Floats, below: sparse.csr_array, limit: Floats, equal: sparse.csr_array, target: Floats
) -> tuple[Floats, Floats]:
    x, prices = minimum(cost, below, limit, equal, target)
    return np.maximum(x, 0.0), prices


def minimum(
    cost: Floats,
    below: sparse.csr_array,
    limit: Floats,
    equal: sparse.csr_array,
    target: Floats,
    bounds: Sequence[tuple[float | None, float | None]] = ((0, None),),
) -> tuple[Floats, Floats]:
    """Solve a linear program; return the variables and the prices of the equations."""
    # Here: it takes a third of a second and 40 MB, and few jobs come to it.
    from scipy.optimize import linprog

    # Tolerances of HiGHS are absolute: costs are brought to about 1.
    scale = float(np.abs(cost).max()) or 1.0
    result = linprog(
        cost / scale, below, limit, equal, target, bounds, method="highs", options=dict(_OPTIONS)
    )
    if result.status != 0 or result.x is None:
        raise SolverFailed(f"the linear program was not solved: {result.message}")
    return np.asarray(result.x), np.asarray(result.eqlin.marginals) * scale
