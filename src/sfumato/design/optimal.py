"""The channel of least expected loss within a budget, certified."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _checks
from sfumato.design.certified import certified
from sfumato.design.dual import dual_bound
from sfumato.design.programs import Solution, solve_capped, solve_columns, solve_transport
from sfumato.design.result import Design, measured
from sfumato.loss import Loss, as_matrix
from sfumato.mechanisms.channel import Channel

_SMALL = 24
"""Alphabets up to this size are solved by column generation, larger ones by HiGHS."""
_SETTLED = 1e-8
"""A gap above this part of the largest loss sends a small problem to HiGHS after all."""
_NEGLIGIBLE = 1e-9
"""Outputs this rare are merged into others: a float solver's dust, not part of the optimum."""


def optimal(
    belief: ArrayLike,
    loss: Loss | ArrayLike,
    epsilon: float,
    *,
    ldp: float | None = None,
    candidates: int | None = None,
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
        candidates: How many outputs to choose from, for large alphabets; all if not given. The
            lower bound still holds for all of them.

    Examples:
        >>> best = optimal([0.9, 0.1], [[0, 1], [1, 0]], epsilon=0.5)
        >>> best.cost, best.sip.epsilon <= 0.5
        (0.1, True)
        >>> best.channel.is_constant
        True

    References:
        [SIP, Eq. 15]
    """
    prior = _checks.belief("belief", belief)
    table = as_matrix(loss, prior.size)
    budget = _checks.epsilon("epsilon", epsilon)
    cap = None if ldp is None else _checks.epsilon("ldp", ldp)
    chosen = _candidates(prior, table, candidates)
    share = prior / prior.sum()
    if cap is not None and cap >= 2 * budget:
        cap = None  # it holds anyway
    if cap is None and prior.size <= _SMALL:
        columns = solve_columns(share, table[:, chosen], budget)
        if columns is not None:
            best = _finished(columns, prior, table, chosen, budget, None)
            if chosen.size < prior.size or best.cost - (best.lower_bound or 0.0) <= (
                _SETTLED * table.max()
            ):
                return best
    if cap is None:
        solution = solve_transport(share, table[:, chosen], budget)
    else:
        solution = solve_capped(share, table[:, chosen], budget, cap)
    return _finished(solution, prior, table, chosen, budget, cap)


def _finished(
    solution: Solution,
    prior: NDArray[np.float64],
    loss: NDArray[np.float64],
    chosen: NDArray[np.int64],
    epsilon: float,
    ldp: float | None,
) -> Design:
    """Round and certify a solution and bound its cost; a constant channel if none is better."""
    share = prior / prior.sum()
    bound = max(0.0, dual_bound(solution.prices, share, loss, epsilon, ldp))
    constant = int((share @ loss).argmin())
    channel = _integers(solution, share, loss, chosen, epsilon, ldp)
    best = measured(channel, prior, loss, bound)
    if float(share @ loss[:, constant]) <= best.cost:
        return measured(Channel.constant(prior.size, constant), prior, loss, bound)
    return best


def _integers(
    solution: Solution,
    belief: NDArray[np.float64],
    loss: NDArray[np.float64],
    chosen: NDArray[np.int64],
    epsilon: float,
    ldp: float | None,
) -> Channel:
    """Merge the rarest outputs into their cheapest stand-ins, then round and certify."""
    marginal = belief @ solution.rows
    kept = np.flatnonzero(marginal > _NEGLIGIBLE)
    if kept.size == 0:
        kept = np.array([int(marginal.argmax())])
    rows = solution.rows[:, kept].copy()
    for column in np.setdiff1d(np.arange(marginal.size), kept):
        spent = (belief * solution.rows[:, column]) @ loss[:, chosen[kept]]
        rows[:, int(spent.argmin())] += solution.rows[:, column]
    rows /= rows.sum(axis=1, keepdims=True)
    return certified(rows, belief, epsilon, ldp=ldp, outputs=chosen[kept])


def _candidates(
    belief: NDArray[np.float64], loss: NDArray[np.float64], count: int | None
) -> NDArray[np.int64]:
    """Outputs chosen one by one, each lowering most the mean loss to the nearest so far."""
    if count is None or _checks.count("candidates", count) >= belief.size:
        return np.arange(belief.size)
    nearest = np.full(belief.size, np.inf)
    chosen: list[int] = []
    for _ in range(count):
        reached = belief @ np.minimum(nearest[:, None], loss)
        reached[chosen] = np.inf
        chosen.append(int(reached.argmin()))
        nearest = np.minimum(nearest, loss[:, chosen[-1]])
    return np.array(sorted(chosen))
