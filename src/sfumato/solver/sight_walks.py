"""Far-sighted streams from the model: what they cost and leak, and the beliefs that they meet."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Floats
from sfumato.solver.far_sighted import FarSight
from sfumato.solver.sight_loops import channel_leakage, followed, product
from sfumato.solver.value_function import ValueFunction

NEAR = 1e-4
"""Part of the cost that programs leave open in a simulation."""
_LONG = 500
"""Moves after which nothing is remembered, or little."""
_BLOCK = 25
"""Steps of a block of a simulation: those in one depend on each other most."""


class Walk(NamedTuple):
    """A simulated stream, step by step.

    Attributes:
        losses: Expected loss under the belief, which varies less than that of a drawn symbol.
        charges: What each step leaks.
        spent: What the price is paid for: the part of the cap that a step was given.
        luck: What outputs were worth more, or less, than expected, by a guide.
        beliefs: Those that were met.
    """

    losses: Floats
    charges: Floats
    spent: Floats
    luck: Floats
    beliefs: Floats


def walk(
    value: ValueFunction, steps: int, rng: np.random.Generator, guide: FarSight | None = None
) -> Walk:
    """A stream of some steps, from a belief that knows nothing but the long run."""
    sight = FarSight(value, near=NEAR)
    outlook, everything = sight.outlook, np.arange(len(value.losses))
    belief = long_run(value)
    losses, charges, spent, luck = np.zeros((4, steps))
    met, coins = np.empty((steps, belief.size)), rng.random(steps)
    for t in range(steps):
        met[t] = belief
        step = sight.step(belief, value.epsilon)
        rows, masses = step.rows, sight.masses(belief)
        losses[t] = (masses[:, None] * rows * value.losses[:, step.symbols]).sum()
        charges[t], spent[t] = channel_leakage(rows, masses), step.spent
        chances, beliefs = followed(belief, rows, outlook.symbols, everything, outlook.moves)
        drawn = min(int((chances.cumsum() <= coins[t] * chances.sum()).sum()), chances.size - 1)
        if guide is not None and chances.size > 1:
            worths = guide.worth_of(chances, beliefs)
            luck[t] = worths[drawn] - (chances * worths).sum() / chances.sum()
        belief = beliefs[drawn]
        if outlook.opens is not None:
            belief = product(belief[None, :], outlook.opens)[0]
    return Walk(losses, charges, spent, luck, met)


def walked(
    value: ValueFunction, steps: int, rng: np.random.Generator, guide: FarSight | None = None
) -> tuple[float, Floats]:
    """Mean cost of a step in a simulation, price included, and the beliefs that it met.

    A guide takes luck off: as much of it as shows in the costs.
    """
    seen = walk(value, steps, rng, guide)
    return without_luck(seen.losses + value.price * seen.spent, seen.luck)[0], seen.beliefs


def without_luck(costs: Floats, luck: Floats) -> tuple[float, float]:
    """Mean of costs less the luck that shows in them, and its standard error, by blocks of steps.

    Examples:
        >>> without_luck(np.ones(100), np.zeros(100))
        (1.0, 0.0)
    """
    blocks = np.array_split(np.arange(costs.size), max(2, costs.size // _BLOCK))
    means = np.array([[costs[block].mean(), luck[block].mean()] for block in blocks])
    (_, both), (_, spread) = portable.covariance(means)
    part = float(np.clip(both / spread, 0.0, 1.0)) if spread > 0 else 0.0
    rest = means[:, 0] - part * means[:, 1]
    error = rest.std(ddof=1) / np.sqrt(len(rest))
    return float(costs.mean() - part * luck.mean()), float(error)


def long_run(value: ValueFunction) -> Floats:
    """The belief of somebody who was told nothing for long."""
    outlook = value.outlook()
    belief = np.full(len(outlook.symbols), 1 / len(outlook.symbols))
    for _ in range(_LONG):
        moved = product(belief[None, :], outlook.moves)
        belief = (moved if outlook.opens is None else product(moved, outlook.opens))[0]
        belief /= belief.sum()
    return belief
