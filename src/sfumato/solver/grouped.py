r"""A near-optimal channel of few distinct rows, for large alphabets.

Three observations carry it (measured on lines and grids of 100 to 400 symbols):

- A channel needs few outputs, about $k$ to $3k$, to be within a few tenths of a percent of the
  optimum; *prices* that prove it need more, but may be rough.
- Symbols of a group may share their row. What a symbol loses by it is known from the prices of the
  outputs, and is concentrated on few symbols: those are split off.
- An interior-point method costs little on few outputs and hands out well-centred prices early.

So the search solves roughly, looks where prices say that an output is missing or a group is cut,
and solves again; at the end it solves once more on the outputs that are used. Nothing rests on its
accuracy: the caller rounds the channel with a certificate and bounds its cost from the prices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Floats, Ints
from sfumato.solver.dual import best_shape_values

# Outputs at first, for small and for large budgets; symbols split off groups in each round.
_NET, _MOST, _SPLIT = 40, 96, 100
# Relative gaps at which the first, the later and the last solve stop.
_ROUGH, _FAIR, _FINE = 0.05, 0.02, 0.002
_ROUNDS, _STEPS = 4, 60
# Part of the cost by which an output may beat those in use before it is added.
_GOAL = 0.003
# The optimum for a smaller budget is within the larger one.
_SOLVABLE = 20.0


@dataclass(frozen=True, slots=True)
class Grouped:
    """A channel whose symbols share rows.

    Attributes:
        groups: The row of each symbol.
        rows: One probability vector over the outputs per group.
        outputs: The symbol that each column releases.
        prices: Prices of the symbols, from which `dual_bound` proves how near it is.
        lower_bound: That bound, where it is known already.
    """

    groups: Ints
    rows: Floats
    outputs: Ints
    prices: Floats
    lower_bound: float | None = None


@dataclass(frozen=True, slots=True)
class Balance:
    """A solved program: what each group releases, and the prices, in the unit of the loss."""

    shares: Floats
    marginal: Floats
    prices: Floats
    worth: Floats
    cost: float
    epsilon: float

    @property
    def rows(self) -> Floats:
        """The channel on groups."""
        k = portable.exp(self.epsilon)
        rows = self.marginal / k + (1 - 1 / k) * self.shares
        return np.asarray(rows / rows.sum(axis=1, keepdims=True))

    def spread(self, groups: Ints, losses: Floats, columns: Floats) -> Floats:
        """Prices of symbols: that of the group, and what the symbol itself adds to the cost."""
        own = ((columns - losses[groups]) * self.rows[groups]).sum(axis=1)
        return np.asarray(self.prices[groups] + own)

    def excess(self, groups: Ints, belief: Floats, columns: Floats) -> Floats:
        """What each symbol loses by sharing the row of its group."""
        from sfumato.solver.group_loops import least_row_costs

        room = (portable.exp(self.epsilon) + 1) * self.marginal
        shared = (self.shares[groups] * (columns - self.worth)).sum(axis=1)
        return np.asarray(belief * (shared - least_row_costs(columns, self.worth, room)))


def balanced(mass: Floats, losses: Floats, epsilon: float, tolerance: float) -> Balance:
    """Solve the capped transport problem of groups and outputs to a relative gap."""
    from sfumato.solver.interior_point import cold, interior_point

    budget = min(epsilon, _SOLVABLE)
    k = portable.exp(budget)
    losses = np.ascontiguousarray(losses)  # each layout would be compiled for itself
    scale = float(losses.max()) or 1.0
    unit = scale / (1 - 1 / k)
    cost = losses / unit
    fixed = portable.dot(mass, losses) / (k * scale)
    cells, marginal, prices, worth = cold(mass, cost, fixed, k + 1)
    interior_point(mass, cost, fixed, k + 1, cells, marginal, prices, worth, tolerance, _STEPS)
    spent = scale * float(
        portable.dot(mass, (cells[0] * cost).sum(axis=1)) + portable.dot(fixed, marginal)
    )
    return Balance(cells[0], marginal, prices * unit, worth * unit, spent, budget)


def group_means(belief: Floats, columns: Floats, groups: Ints) -> tuple[Floats, Floats]:
    """Mass of each group, and its mean loss for each output."""
    from sfumato.solver.group_loops import group_sums

    mass, sums = group_sums(belief, columns, groups, int(groups.max()) + 1)
    return mass, sums / mass[:, None]


def solve_grouped(belief: Floats, loss: Floats, epsilon: float) -> Grouped:
    """Search for the channel on the table of a loss: row = symbol, column = candidate output."""
    from sfumato.solver.group_loops import spread_centres

    best = int((portable.dot(belief, loss)).argmin())
    net = min(max(_NET, int(1.5 * portable.exp(min(epsilon, _SOLVABLE)))), _MOST)
    groups = spread_centres(belief, loss, best, 2 * net + net // 2)[1]
    groups = np.unique(groups, return_inverse=True)[1]
    outputs = np.unique(spread_centres(belief, loss, best, net)[0])
    prices, floor = np.zeros(belief.size), -math.inf
    for turn in range(_ROUNDS):
        columns = np.ascontiguousarray(loss[:, outputs])
        mass, losses = group_means(belief, columns, groups)
        solved = balanced(mass, losses, epsilon, _FAIR if turn else _ROUGH)
        guess = solved.spread(groups, losses, columns)
        values = best_shape_values(guess, belief, loss, solved.epsilon)
        if portable.dot(belief, guess) + values.min() > floor:
            prices, floor = guess, portable.dot(belief, guess) + values.min()
        missing = values[outputs].min() - values.min()
        used = outputs[solved.marginal > min(0.01, 0.4 / outputs.size)]
        if turn and missing <= _GOAL * solved.cost:
            break
        groups = _split(groups, solved.excess(groups, belief, columns))
        outputs = moved(outputs, values, loss[outputs], solved, _FAIR if turn else _ROUGH)
    return finished(belief, np.ascontiguousarray(loss[:, used]), epsilon, groups, used, prices)


def finished(
    belief: Floats, columns: Floats, epsilon: float, groups: Ints, outputs: Ints, prices: Floats
) -> Grouped:
    """The channel on the outputs in use, solved well; the prices are handed through."""
    mass, losses = group_means(belief, columns, groups)
    solved = balanced(mass, losses, epsilon, _FINE)
    return Grouped(groups, solved.rows, outputs, prices)


def _split(groups: Ints, excess: Floats) -> Ints:
    """Give the symbols that lose most a row of their own."""
    # Stable: equal symbols are split in the same order on every machine.
    top = np.argsort(-excess, kind="stable")[:_SPLIT]
    split = groups.copy()
    split[top] = groups.max() + 1 + np.arange(top.size)
    return np.unique(split, return_inverse=True)[1]


def moved(outputs: Ints, values: Floats, rows: Floats, solved: Balance, tolerance: float) -> Ints:
    """Outputs worth keeping, and around each output the one that prices say is missing most."""
    from sfumato.solver.group_loops import best_near

    base = values[outputs].min()
    near = best_near(rows.argmin(axis=0), values, outputs.size)
    near = near[near >= 0]
    near = near[values[near] < base - _GOAL / 4 * solved.cost]
    worth = values[outputs] < base + tolerance * solved.cost
    staying = outputs[worth | (solved.marginal > 0.08 / outputs.size)]
    return np.union1d(staying, near)
