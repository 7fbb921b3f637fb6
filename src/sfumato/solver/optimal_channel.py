"""The channel of least expected loss within a budget, certified."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats, Ints
from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter, SolverFailed
from sfumato.core.loss import Loss, as_loss, as_matrix
from sfumato.core.numerics import UNIT
from sfumato.core.randomness import BITS
from sfumato.solver.certify import certified, without_dust
from sfumato.solver.design_loops import is_belief
from sfumato.solver.design_result import Design, measured
from sfumato.solver.dual import dual_bound
from sfumato.solver.large_alphabets import design_large
from sfumato.solver.linear_programs import Solution, solve_capped, solve_transport
from sfumato.solver.small_alphabets import design_small, solutions

# Compiled loops up to the first size, with HiGHS after them where they are not near enough, as it
# is after groups of symbols up to the second, which are taken alone beyond it.
_LARGE, _HUGE = 64, 128
# Gap that ends the search: a part of the largest loss, or of the cost for large alphabets.
_SETTLED, _NEAR = 1e-8, 0.02
# A budget below this is too small for a solver: the best constant is returned.
_NOTHING = 1e-9


def optimal(
    belief: ArrayLike,
    loss: Loss | ArrayLike,
    epsilon: float,
    *,
    ldp: float | None = None,
    candidates: int | None = None,
    tolerance: float = 0.0,
) -> Design:
    r"""The channel of least expected loss whose exact leakage is at most `epsilon`.

    $$\min_a \sum_{x,y} b(x)\, a(y|x)\, D(x,y) \quad\text{s.t.}\quad
      P(y)/k \le a(y|x) \le k\,P(y)$$

    where $b$ is `belief`, $D$ is `loss`, $k = e^\epsilon$ and $P$ the output marginal.

    Guarantee:
        `SIP(epsilon)` under the belief, checked on the integer weights that are sampled; and
        `LDP(ldp)` under any belief, if asked for (else at most twice epsilon).

    Args:
        belief: The adversary's distribution of the true symbol, full support.
        loss: What it costs to release one symbol when another is true.
        epsilon: Budget for the leakage under the belief.
        ldp: Cap on the model-free leakage.
        candidates: How many outputs to choose from; all if not given. The lower bound still
            holds for all of them. Beyond 64 symbols without this, a channel on groups of
            symbols is taken when it is within 2 % of the bound, and always beyond 128
            symbols; `gap` says how near it is.
        tolerance: Part of the cost that the search may leave open: it ends as soon as the
            proven gap is that small.

    Examples:
        >>> best = optimal([0.9, 0.1], [[0, 1], [1, 0]], epsilon=0.5)
        >>> best.cost, best.sip.epsilon <= 0.5
        (0.1, True)
        >>> best.channel.is_constant
        True

    References:
        [SIP, Eq. 15]
    """
    prior = _prior(belief)
    budget = checks.epsilon("epsilon", epsilon)
    cap = None if ldp is None else checks.epsilon("ldp", ldp)
    left = checks.finite("tolerance", tolerance)
    if candidates is None and prior.size > _LARGE:
        large = design_large(prior, as_loss(loss, prior.size), budget, ldp=cap)
        if prior.size > _HUGE or (large.gap or 0.0) <= max(_NEAR, left) * large.cost:
            return large
    return _cheapest(prior, as_matrix(loss, prior.size), budget, cap, candidates, left)


def cheapest_outputs(
    belief: ArrayLike,
    costs: ArrayLike,
    epsilon: float,
    *,
    ldp: float | None = None,
    tolerance: float = 0.0,
) -> Design:
    """The same for any number of outputs, and costs of either sign.

    Outputs need not be symbols: one may stand for a symbol and for what follows it.

    Args:
        belief: The adversary's distribution of the true symbol, full support.
        costs: Row = true symbol, column = output.
        epsilon: Budget for the leakage under the belief.
        ldp: Cap on the model-free leakage.
        tolerance: Part of the cost, above that of the cheapest output for each symbol, that the
            search may leave open.

    Returns:
        A design whose channel names columns of `costs`, with a floor under the cost of every
        channel to these outputs.

    Examples:
        >>> best = cheapest_outputs([0.5, 0.5], [[-1, 1, 0], [1, -1, 0]], epsilon=0.5)
        >>> best.channel.outputs, best.cost
        (array([0, 1]), -0.3934693)
    """
    prior = _prior(belief)
    table = np.asarray(costs, dtype=np.float64)
    if table.ndim != 2 or len(table) != prior.size or not table.shape[1]:
        rule = f"have a row for each of {prior.size} symbols, and a column"
        raise InvalidParameter("costs", table.shape, rule)
    if not np.isfinite(table).all():
        raise InvalidParameter("costs", "a cost without bound", "be finite")
    budget = checks.epsilon("epsilon", epsilon)
    cap = None if ldp is None else checks.epsilon("ldp", ldp)
    left = checks.finite("tolerance", tolerance)
    # What a symbol costs at least, whatever leaves, decides nothing and hides small differences.
    least = table.min(axis=1)
    rest = np.ascontiguousarray(table - least[:, None])
    found = _cheapest(prior, rest, budget, cap, None, left)
    shift = float((prior * least).sum() / prior.sum())
    error = 4 * prior.size * UNIT * float(np.abs(least).max())
    bound = None if found.lower_bound is None else found.lower_bound + shift - error
    return replace(found, cost=found.cost + shift, lower_bound=bound)


def _cheapest(
    prior: Floats,
    table: Floats,
    budget: float,
    cap: float | None,
    candidates: int | None,
    left: float,
) -> Design:
    """The best channel for a table of costs, all at least 0, with any number of outputs."""
    # A model-free leakage of twice the budget holds anyway: such a cap only guides the rounding.
    active = cap if cap is not None and cap < 2 * budget else None
    if budget < _NOTHING or (cap is not None and cap < _NOTHING):
        return replace(_constant(prior, table), lower_bound=0.0)
    if active is None and candidates is None and prior.size <= _LARGE:
        margin = math.inf if cap is None else cap
        best = design_small(prior, table, budget, ldp=margin, tolerance=left)
        if best is not None:
            return best
    return _searched(prior, table, budget, cap, active, candidates, left)


def _prior(belief: ArrayLike) -> Floats:
    """The checked belief; a good array is seen to be one in a microsecond."""
    if isinstance(belief, np.ndarray) and belief.dtype == np.float64 and belief.ndim == 1:
        vector = np.ascontiguousarray(belief)
        if is_belief(vector, checks.MIN_PROBABILITY, checks.SUM_TOLERANCE):
            return vector
    return checks.belief("belief", belief)


def _constant(prior: Floats, table: Floats) -> Design:
    best = int((portable.dot(prior, table)).argmin())
    weights = np.full((prior.size, 1), 2**BITS, dtype=np.int64)
    return measured(Channel(weights, [best]), prior, table)


def _searched(
    prior: Floats,
    table: Floats,
    epsilon: float,
    ldp: float | None,
    active: float | None,
    candidates: int | None,
    tolerance: float,
) -> Design:
    """The best of several attempts and the best floor under all of them."""
    share = prior / prior.sum()
    designs, bound = [_constant(prior, table)], 0.0
    for solution, outputs in _attempts(share, table, epsilon, active, candidates):
        rows, symbols = without_dust(solution.rows, share, table, outputs)
        channel = certified(rows, prior, epsilon, ldp=ldp, outputs=symbols)
        designs.append(measured(channel, prior, table))
        bound = max(bound, dual_bound(solution.prices, share, table, epsilon, active))
        slack = _SETTLED * table.max() if prior.size <= _LARGE else _NEAR * designs[-1].cost
        if designs[-1].cost - bound <= max(slack, tolerance * designs[-1].cost):
            break
    return replace(min(designs, key=lambda design: design.cost), lower_bound=bound)


def _attempts(
    belief: Floats, loss: Floats, epsilon: float, ldp: float | None, candidates: int | None
) -> Iterator[tuple[Solution, Ints]]:
    """Solutions and the outputs they use, the quickest method first."""
    chosen = _candidates(belief, loss, candidates)
    if ldp is None and candidates is not None and belief.size <= _LARGE:
        for rows, prices in solutions(belief, np.ascontiguousarray(loss[:, chosen]), epsilon, 0.0):
            yield Solution(rows, prices), chosen
    if ldp is None:
        yield solve_transport(belief, loss[:, chosen], epsilon), chosen
        return
    try:
        yield solve_capped(belief, loss[:, chosen], epsilon, ldp), chosen
    except SolverFailed:
        # Extreme caps are too much for the solver; mixing brings any channel under them.
        yield solve_transport(belief, loss[:, chosen], min(epsilon, ldp)), chosen


def _candidates(belief: Floats, loss: Floats, count: int | None) -> Ints:
    """Outputs chosen one by one, each lowering most the mean loss to the nearest so far."""
    if count is None or checks.count("candidates", count) >= loss.shape[1]:
        return np.arange(loss.shape[1])
    nearest = np.full(belief.size, np.inf)
    chosen: list[int] = []
    for _ in range(count):
        reached = portable.dot(belief, np.minimum(nearest[:, None], loss))
        reached[chosen] = np.inf
        chosen.append(int(reached.argmin()))
        nearest = np.minimum(nearest, loss[:, chosen[-1]])
    return np.array(sorted(chosen))
