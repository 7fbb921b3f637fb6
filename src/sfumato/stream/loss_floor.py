r"""A floor under the loss of every release of a stream within a budget, however clever.

What a receiver can know of the value of a moment is bounded by what was spent on it, and by what
is left of what was spent before. Let $\pi_t$ be the law of $X_t$ and $b_t$ the belief after the
output of moment $t$. If $|\log b_{t-1}/\pi_{t-1}| \le \ell_{t-1}$ everywhere, then one step of the
chain and an output of leakage $e_t$ leave $\ell_t \le G(\ell_{t-1}) + e_t$, where

$$G(\ell) = \max_x \max_\rho \Big|\log \sum_u \pi_{t-1}(u)\,\rho(u)\,M(u,x)/\pi_t(x)\Big|$$

over ratios $e^{-\ell} \le \rho \le e^\ell$ of mean 1: a fractional knapsack for each symbol. For
any prices $\nu$ a moment costs on average at least the mean of $F_t(\ell_t)$, with

$$F_t(\ell) = \sum_x \pi_t(x)\,\nu(x)
  + \min_y \min_\rho \sum_x \pi_t(x)\,\rho(x)\,(D(x,y) - \nu(x))$$

(`solver.dual`), because beliefs average to $\pi_t$. So every rule, also one that looks at what it
has released and decides as it goes how much to spend, costs at least the least of
$\sum_t F_t(\ell_t)$ over spends $e_t$ within the budget. A price $\lambda$ of a nat takes the place
of the budget: $\min \sum_t F_t(\ell_t) + \lambda (e_t - B/T)$ is below it for every
$\lambda \ge 0$, and is a dynamic program over one number.

What it gives away: every output counts as if it had confirmed the earlier ones. Under a total the
floor is at a half to nine tenths of the best programme of a bit, under a cap per step at a
sixth to a half.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.core.budgets import Budget, Geometric, Horizon, PerPeriod, PerStep, Window
from sfumato.core.errors import InvalidParameter
from sfumato.core.loss import Loss, as_matrix
from sfumato.models.markov import MarkovChain
from sfumato.solver.small_alphabets import solutions

_SYMBOLS = 64
"""Symbols up to which prices are found in milliseconds."""
_GRID = 1_000
"""Leakages that are tabulated: the floor is lower by about one part in this many."""
_PRICED = (0.1, 6.0, 12)
"""Leakages for which the prices of symbols are tried: from hardly any to nearly all."""
_NATS = 16
"""Prices of a nat that are tried: so many apart, then twice as many around the best of them."""
_FAR = 14.0
"""Beyond this a leakage counts as boundless: it leaves one chance in a million."""
_SETTLED = 1e-12
"""A law that moves by less has become stationary."""
_SLACK = 1e-9
"""Taken off for rounding: sums of a few thousand terms, laws that have nearly settled."""


@dataclass(frozen=True, slots=True)
class Spending:
    """What a budget lets a whole stream spend: in all, and at once."""

    total: float
    at_once: float


@dataclass(frozen=True, slots=True)
class _Moment:
    """What is possible at one moment, for leakages of the grid.

    Attributes:
        floors: Price by leakage: the least loss.
        arriving: Leakage of the last moment that is left at this one.
    """

    floors: Floats
    arriving: Floats


def loss_floor(
    chain: MarkovChain, loss: Loss, budget: Budget, steps: int, *, charged: float | None = None
) -> float:
    """The least mean loss per value of any release of single values within the budget.

    Args:
        chain: Of order 1, with at most 64 symbols.
        loss: What it costs to release one symbol when another is true.
        budget: What may leak.
        steps: Values of the stream.
        charged: What is spent in all, if that is less than the budget allows: then a floor under
            every release that leaks as little.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.95, 0.05], [0.05, 0.95]])
        >>> wrong = sf.loss.hamming(chain.alphabet)
        >>> round(loss_floor(chain, wrong, sf.Horizon(sf.SIP(3.0), 12), 12), 2)
        0.16
    """
    if not has_floor(chain):
        rule = f"be of order 1 with at most {_SYMBOLS} symbols, all possible, for a loss floor"
        raise InvalidParameter("model", f"order {chain.order}, {chain.size} symbols", rule)
    spending = allowed(budget, checks.count("steps", steps))
    total = spending.total if charged is None else min(spending.total, charged)
    grid = _leakages(spending)
    moments = _moments(chain, as_matrix(loss, chain.size), grid, steps)
    floor = _evenly(moments, grid, spending.at_once)
    if total < spending.at_once * steps:  # else the total binds nobody
        floor = max(floor, _freely(moments, grid, total))
    return max(0.0, floor / steps * (1 - _SLACK))


def has_floor(chain: MarkovChain) -> bool:
    """Whether a floor under the loss of this chain is offered."""
    return chain.order == 1 and chain.size <= _SYMBOLS and chain.full_support


def allowed(budget: Budget, steps: int) -> Spending:
    """What a stream of so many values may spend under a budget.

    Examples:
        >>> from sfumato.core.guarantees import SIP
        >>> allowed(Window(SIP(2.0), width=10), steps=25)
        Spending(total=6.0, at_once=2.0)
    """
    each = budget.sip.epsilon
    match budget:
        case PerStep():
            return Spending(each * steps, each)
        case Window():
            return Spending(each * math.ceil(steps / budget.width), each)
        case Horizon() | Geometric():
            return Spending(each, each)
        case PerPeriod():
            # Each value may lie in a period of its own.
            return Spending(budget.most_at_once() * steps, budget.most_at_once())


def _leakages(spending: Spending) -> Floats:
    """From none to all that can be; the last one is boundless."""
    top = min(spending.total, _FAR)
    # Losses are steepest where little is known: half of the places are close to none.
    even, close = np.linspace(0.0, top, _GRID), portable.geometric(top * 1e-4, top, _GRID)
    return np.append(np.unique(np.concatenate([even, close])), np.inf)


def _moments(chain: MarkovChain, loss: Floats, grid: Floats, steps: int) -> list[_Moment]:
    """One for each value; all the same once the law of the chain has settled."""
    settled = chain.stationary()
    prices = np.array([_prices(settled, loss, epsilon) for epsilon in portable.geometric(*_PRICED)])
    move, law = chain.transition(), chain.initial
    moments = [_Moment(_floors(law, loss, prices, grid), np.zeros_like(grid))]
    while len(moments) < steps:
        following = portable.dot(law, move)
        moment = _Moment(
            _floors(following, loss, prices, grid), _arriving(law, move, following, grid)
        )
        moments.append(moment)
        if np.abs(following - law).max() < _SETTLED:
            return [*moments, *[moment] * (steps - len(moments))]
        law = following
    return moments


def _prices(law: Floats, loss: Floats, epsilon: float) -> Floats:
    """Good prices of the true symbols; the floor holds for any."""
    _rows, prices = next(solutions(law / law.sum(), loss, float(epsilon), 1e-3))
    return prices


def _floors(law: Floats, loss: Floats, prices: Floats, grid: Floats) -> Floats:
    """Least losses of a moment, price by leakage."""
    return np.array(
        [
            portable.dot(law, each) + _least(loss - each[:, None], law, grid).min(axis=0)
            for each in prices
        ]
    )


def _arriving(law: Floats, move: Floats, following: Floats, grid: Floats) -> Floats:
    """What is left of each leakage one moment later."""
    ratios = move / following
    with np.errstate(divide="ignore"):
        least, most = (
            portable.log(_least(ratios, law, grid)),
            portable.log(-_least(-ratios, law, grid)),
        )
    # It never grows, whatever rounding does to the sums.
    return np.asarray(np.minimum(np.maximum(-least, most).max(axis=0), grid))


def _least(worth: Floats, law: Floats, grid: Floats) -> Floats:
    r"""Least mean of each column, weighed by ratios within every leakage: column by leakage.

    Ratios are $k$ on the cheapest mass $1/(k+1)$ and $1/k$ elsewhere.
    """
    order = np.argsort(worth, axis=0)
    mass = np.vstack([np.zeros(worth.shape[1]), law[order].cumsum(axis=0)])
    sums = np.vstack(
        [
            np.zeros(worth.shape[1]),
            (law[order] * np.take_along_axis(worth, order, axis=0)).cumsum(axis=0),
        ]
    )
    k = portable.exp(grid[:-1])
    gathered = np.array(
        [np.interp(1 / (k + 1), mass[:, y], sums[:, y]) for y in range(worth.shape[1])]
    )
    bounded = sums[-1][:, None] / k + (k - 1 / k) * gathered
    return np.hstack([bounded, worth.min(axis=0)[:, None]])


def _evenly(moments: list[_Moment], grid: Floats, at_once: float) -> float:
    """The floor if every moment may spend as much as is allowed at once."""
    total, leakage = np.zeros(_PRICED[-1]), 0.0
    for moment in moments:
        left = moment.arriving[np.searchsorted(grid, leakage)]
        leakage = float(left) + at_once
        total += moment.floors[:, np.searchsorted(grid, leakage)]
    return float(np.max(total))


def _freely(moments: list[_Moment], grid: Floats, total: float) -> float:
    """The floor if a total is spent as well as can be."""
    # Losses are at most their floor without leakage, so no nat is worth more than all of them.
    most = max(float(sum(moment.floors[:, 0].max() for moment in moments)), 1e-300) / total
    nats = np.append(0.0, portable.geometric(most * 1e-3, most * 10, _NATS))
    floors = _programme(moments, grid, nats, total) - nats * total
    price, place = divmod(int(np.argmax(floors)), len(nats))
    priced = [_Moment(moment.floors[price : price + 1], moment.arriving) for moment in moments]
    fine = np.linspace(nats[max(place - 1, 0)], nats[min(place + 1, _NATS)], 2 * _NATS)
    return float(max(floors.max(), (_programme(priced, grid, fine, total) - fine * total).max()))


def _programme(moments: list[_Moment], grid: Floats, nats: Floats, total: float) -> Floats:
    """Least loss of the stream plus what its nats cost: price of symbols by price of a nat.

    A leakage between two places of the grid is paid for as the lower one and used as the upper
    one, so the result is never above the exact one.
    """
    paid = np.append(0.0, grid[:-1])
    paid[paid >= total] = np.inf  # no value is ever told more than all that is spent
    after = np.zeros((len(moments[0].floors), len(nats), len(grid)))
    for moment in reversed(moments):
        cost = moment.floors[:, None, :] + after
        with np.errstate(invalid="ignore"):
            spent = np.where(np.isinf(paid), np.inf, cost + nats[None, :, None] * paid)
        # From each place on, the least: a leakage can only be added to.
        least = np.minimum.accumulate(spent[..., ::-1], axis=2)[..., ::-1]
        least = np.concatenate([least[..., 1:], np.full((*least.shape[:2], 1), np.inf)], axis=2)
        place = np.searchsorted(grid, moment.arriving)
        bought = least[..., place] - nats[None, :, None] * moment.arriving
        after = np.minimum(cost[..., place], bought)
    return np.asarray(after[..., 0])
