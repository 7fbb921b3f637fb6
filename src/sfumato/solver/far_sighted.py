"""The channel of a far-sighted step: outputs are symbols with what follows them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.channel import Channel
from sfumato.core.randomness import BITS
from sfumato.solver.certify import certified
from sfumato.solver.design_loops import from_columns
from sfumato.solver.design_result import Design, measured
from sfumato.solver.optimal_channel import cheapest_outputs
from sfumato.solver.sight_loops import (
    best_split,
    compact,
    continued,
    output_costs,
    reduced,
    repriced,
    told,
)
from sfumato.solver.value_function import ValueFunction

_ROUNDS = 6
"""How often vectors that promised too little are made dearer, for one belief."""
_NEAR = 1e-6
"""Part of the cost that the program may leave open, and that a promise may be off."""
PARTS = (0.25, 0.5, 0.75, 1.0)
"""Parts of the cap that are tried where a nat has a price."""


@dataclass(frozen=True, slots=True, eq=False)
class SightedStep:
    """A step in floating point, before it is certified.

    Attributes:
        rows: The channel from symbols to signals 0, 1, ...
        symbols: The symbol that each signal releases.
        ahead: The vector of the value function that each signal goes on with.
        spent: Its leakage, or what it may spend.
        value: What this step and all that follow it cost, price included, but for a constant.
    """

    rows: Floats
    symbols: Ints
    ahead: Ints
    spent: float
    value: float


@dataclass(frozen=True, slots=True, eq=False)
class SightedDesign:
    """A channel in integers, and what its outputs mean.

    Attributes:
        design: The channel from symbols to signals 0, 1, ...; its cost is the loss of this step.
        symbols: The symbol that each signal releases.
    """

    design: Design
    symbols: Ints


class FarSight:
    """A value function with the tables that each step needs.

    Args:
        value: The value function.

    Examples:
        >>> from sfumato.solver.value_iteration import value_function
        >>> value = value_function([[0.95, 0.05], [0.05, 0.95]], [[0, 1], [1, 0]], 0.5)
        >>> step = FarSight(value).design(np.array([0.8, 0.2]), 0.5)
        >>> step.symbols, step.design.sip.epsilon  # the same symbol twice, and what is behind it
        (array([0, 0]), 0.5000000)
    """

    def __init__(self, value: ValueFunction) -> None:
        self.value = value
        self._grid, self._costs = np.empty(0), np.empty((0, 0))
        if value.size == 2:
            self._grid = value.grid
        else:
            self._costs = output_costs(value.transition, value.losses, value.vectors)

    def design(self, belief: Floats, epsilon: float, ldp: float | None = None) -> SightedDesign:
        """The channel for a belief that spends at most `epsilon`.

        Guarantee:
            That of `optimal`: the leakage of the integers that are sampled.
        """
        step = self.step(belief / belief.sum(), epsilon, ldp)
        weights = np.full((self.value.size, 1), 2**BITS, dtype=np.int64)
        channel, symbols = Channel(weights, [0]), step.symbols
        if len(symbols) > 1:
            channel = certified(step.rows, belief, epsilon, ldp=ldp)
            # An output that rounding has emptied leaves no gap in the numbers of signals.
            symbols = symbols[channel.outputs]
            channel = Channel(channel.weights, np.arange(len(symbols)))
        return SightedDesign(measured(channel, belief, self.value.losses[:, symbols]), symbols)

    def step(self, share: Floats, epsilon: float, ldp: float | None = None) -> SightedStep:
        """The best step from a belief that sums to 1, silence included."""
        best = self._silent(share)
        for part in PARTS if self.value.price else (1.0,):
            if self.value.size == 2:
                found = self._split(share, epsilon * part)
            else:
                found = self._searched(share, epsilon * part, ldp)
            if found is not None and found.value < best.value:
                best = found
        return best

    def _silent(self, share: Floats) -> SightedStep:
        """The best constant."""
        value, nothing = self.value, np.zeros(1, dtype=np.int64)
        rows = np.ones((value.size, 1))
        if value.size == 2:
            worth = continued(float(share[1]), value.transition, value.losses, self._grid)
            return SightedStep(rows, self._best_symbols(share[:, None]), nothing, 0.0, worth)
        worth, symbols, ahead, _ = self._repriced(share, rows, nothing, self._costs.copy())
        return SightedStep(rows, symbols, ahead, 0.0, worth)

    def _best_symbols(self, masses: Floats) -> Ints:
        return np.asarray([int((self.value.losses.T * m).sum(axis=1).argmin()) for m in masses.T])

    def _split(self, share: Floats, epsilon: float) -> SightedStep | None:
        """Two symbols: the best two posteriors, and the channel that leads to them."""
        value, chance = self.value, float(share[1])
        cost, left, right = best_split(
            chance, math.exp(epsilon), value.transition, value.losses, self._grid
        )
        if not left < chance < right:
            return None
        spent = told(chance, left, right)
        part = (chance - left) / (right - left)
        joint = np.array(
            [[(1 - part) * (1 - left), part * (1 - right)], [(1 - part) * left, part * right]]
        )
        rows = joint / joint.sum(axis=1, keepdims=True)
        symbols = self._best_symbols(joint)
        return SightedStep(rows, symbols, symbols, spent, cost + value.price * spent)

    def _searched(self, share: Floats, epsilon: float, ldp: float | None) -> SightedStep:
        """The best of some programs, each of which knows better what outputs are worth."""
        value, costs = self.value, self._costs.copy()
        best: SightedStep | None = None
        for _ in range(_ROUNDS):
            rows, columns = self._program(share, costs, epsilon, ldp)
            worth, symbols, ahead, off = self._repriced(share, rows, columns, costs)
            worth += value.price * epsilon
            if best is None or worth < best.value:
                best = SightedStep(rows, symbols, ahead, epsilon, worth)
            if off <= _NEAR * value.losses.max():
                break
        assert best is not None
        return best

    def _program(
        self, share: Floats, costs: Floats, epsilon: float, ldp: float | None
    ) -> tuple[Floats, Ints]:
        """Float rows and the outputs they use; a cap that binds goes to the capped program."""
        if ldp is None or ldp >= 2 * epsilon:
            size, none = self.value.size, np.empty(0, dtype=np.int64)
            table = reduced(costs)
            good, rows, _ = from_columns(
                share, table, epsilon, _NEAR, 60 * size + 200, np.empty((size, 0)), none
            )
            if good:
                return compact(share, rows)
        channel = cheapest_outputs(share, costs, epsilon, ldp=ldp, tolerance=_NEAR).channel
        return channel.probabilities, channel.outputs

    def _repriced(
        self, share: Floats, rows: Floats, columns: Ints, costs: Floats
    ) -> tuple[float, Ints, Ints, float]:
        value = self.value
        return repriced(
            share,
            rows,
            columns,
            value.transition,
            value.losses,
            value.vectors,
            value.channels,
            value.trust * value.epsilon,
            costs,
        )
