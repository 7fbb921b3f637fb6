r"""Leakage under every prior of a set, and the channel of least loss that keeps a budget there.

$$\max_{P \in \mathcal P} \max_{x,y} \left|\log \frac{a(y \mid x)}{P(y)}\right|$$

For one output the extreme ratios are those of the largest entry of its column to the least $P(y)$
that the set allows, and of the least entry to the largest. Over all priors that is the model-free
leakage.

For each output $y$ the program bounds $P(y)$ from below by $m_y$ and from above by $M_y$, over the
whole set, and asks $M_y / k \le a(y|x) \le k\, m_y$. How small $P(y) = P \cdot a_y$ can be is a
linear program in $P$; its dual has a solution for every bound, so the bounds enter the program
through dual variables: the exact robust counterpart, with no list of corners.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter, SolverFailed
from sfumato.core.guarantees import LIP, SIP
from sfumato.core.local_leakage import local_leakage
from sfumato.core.loss import Loss, as_matrix
from sfumato.core.numerics import expected_error, log_up
from sfumato.core.printed import shown_up
from sfumato.models.prior_sets import PriorSet
from sfumato.solver.design_result import Design, measured
from sfumato.solver.linear_programs import minimum

# Levels beyond which coefficients of the program lose the digits of the solver.
_SOLVABLE = 20.0


def bounded_prior(
    priors: PriorSet, loss: Loss | ArrayLike, epsilon: float, *, ldp: float | None = None
) -> Design:
    """Design a channel whose exact leakage is at most `epsilon` under every prior of a set.

    Guarantee:
        `LIP(epsilon)` under every prior of the set, checked on the integer weights that are
        sampled; `sip` of the result is the leakage under the worst of them.

    Args:
        priors: What the adversary may believe.
        loss: What it costs to release one symbol when another is true; the expected loss is under
            the nominal prior of the set.
        epsilon: Budget for the leakage under every prior.
        ldp: Cap on the leakage under any prior at all.

    Examples:
        >>> from sfumato.models.prior_sets import PriorBox
        >>> import math
        >>> wide = bounded_prior(PriorBox([0.0, 0.0], [1.0, 1.0]), [[0, 1], [1, 0]], math.log(3))
        >>> wide.cost, wide.ldp.epsilon <= math.log(3)
        (0.25, True)

    References:
        [LIP, Def. 6 and Sec. IV-B]
    """
    table = as_matrix(loss, priors.size)
    budget = checks.epsilon("epsilon", epsilon)
    cap = None if ldp is None else checks.epsilon("ldp", ldp)
    rows = _solved(priors, table, min(budget, _SOLVABLE), cap)
    channel = _within(rows, priors, budget, cap)
    nominal = measured(channel, priors.nominal, table)
    worst = SIP(bounded_leakage(channel, priors).epsilon)
    return Design(channel, nominal.cost, None, worst, nominal.ldp)


def bounded_leakage(channel: Channel, priors: PriorSet) -> LIP:
    """Exact leakage of one release under the worst prior of a set, rounded up.

    Examples:
        >>> from sfumato.models.prior_sets import PriorBox
        >>> noisy = Channel.from_probabilities([[0.75, 0.25], [0.25, 0.75]])
        >>> bounded_leakage(noisy, PriorBox([0.0, 0.0], [1.0, 1.0])).epsilon
        1.098612288668

    References:
        [LIP, Def. 6 and Cor. 2]
    """
    if priors.size != channel.size:
        raise InvalidParameter("priors", priors.size, f"be about {channel.size} symbols")
    if channel.is_constant:
        return LIP(0.0)
    weights = channel.weights.astype(np.float64)
    least, most = weights.min(axis=0), weights.max(axis=0)
    rarest, commonest = priors.least_means(weights), priors.most_means(weights)
    if least.min() == 0.0 or rarest.min() <= 0.0:
        return LIP(float(np.inf))
    ratio = max(float((most / rarest).max()), float((commonest / least).max()))
    # Sums of differences may cancel: they are of the size of the largest entry of a column.
    spread = float((most / rarest).max())
    error = 4 * expected_error(channel.size) * max(1.0, spread)
    return LIP(max(0.0, log_up(ratio, error)))


def _within(rows: Floats, priors: PriorSet, epsilon: float, ldp: float | None) -> Channel:
    """Integer weights next to the rows, mixed with as little of a constant as keeps the budget."""
    blend = portable.dot(priors.nominal, rows)
    # A part of 1 is a constant, which keeps every budget: the search ends.
    for part in (0.0, *portable.geometric(1e-15, 1.0, 61)):
        mixed = (1 - part) * rows + part * blend
        channel = Channel.from_probabilities(mixed / mixed.sum(axis=1, keepdims=True))
        within = bounded_leakage(channel, priors).epsilon <= epsilon
        if within and (ldp is None or local_leakage(channel).epsilon <= ldp):
            return channel
    raise SolverFailed(f"no channel within epsilon={shown_up(epsilon)} was found by mixing")


def _solved(priors: PriorSet, table: Floats, epsilon: float, ldp: float | None) -> Floats:
    """Float rows of the optimum; nothing rests on their accuracy.

    Variables: the columns of the channel one after another; for each output the bounds of its
    probability; and the multipliers of the set for the lower and for the upper bound.
    """
    k, size, outputs = portable.exp(epsilon), *table.shape
    shape = priors.polytope()
    each = sparse.eye_array(outputs)

    def block(part: ArrayLike) -> sparse.sparray:
        return sparse.kron(each, np.atleast_2d(np.asarray(part, dtype=np.float64)))

    one, ones = block(np.eye(size)), block(np.ones((size, 1)))
    unit, middle = block(1.0), block(shape.offset)
    limits, targets = block(shape.limits), block(shape.targets)
    multipliers, free = block(-shape.above.T), block(shape.equal.T)
    moved, pull = block(shape.spread.T), None
    nothing = sparse.csr_array((moved.shape[0], outputs))
    below = [
        [one, -k * ones, pull, pull, pull, pull, pull],
        [-k * one, pull, ones, pull, pull, pull, pull],
        [-middle, unit, pull, limits, -targets, pull, pull],
        [middle, pull, -unit, pull, pull, limits, -targets],
    ]
    equal = [
        [-moved, nothing, nothing, multipliers, free, pull, pull],
        [moved, pull, pull, pull, pull, multipliers, free],
        [sparse.hstack([sparse.eye_array(size)] * outputs), *[pull] * 6],
    ]
    cells, constraints = size * outputs, shape.limits.size * outputs
    loose = shape.targets.size * outputs
    bounds: list[tuple[float | None, float | None]] = [(0, None)] * (cells + 2 * outputs)
    for _ in range(2):
        bounds += [(0, None)] * constraints
        bounds += [(None, None)] * loose
    if ldp is not None:
        h = portable.exp(min(ldp, _SOLVABLE))
        below = [[*row, pull] for row in below]
        below += [[one, *[pull] * 6, -h * ones], [-one, *[pull] * 6, ones]]
        equal = [[*equal[0], nothing], *([*row, pull] for row in equal[1:])]
        bounds += [(0, None)] * outputs
    cost = np.zeros(len(bounds))
    cost[:cells] = (priors.nominal[:, None] * table).T.ravel()
    upper = sparse.block_array(below, format="csr")
    balance = sparse.block_array(equal, format="csr")
    target = np.concatenate([np.zeros(balance.shape[0] - size), np.ones(size)])
    solution, _ = minimum(cost, upper, np.zeros(upper.shape[0]), balance, target, bounds)
    rows = np.maximum(solution[:cells].reshape(outputs, size).T, 0.0)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))
