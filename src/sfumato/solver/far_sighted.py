"""The channel of a far-sighted step: outputs are symbols with what follows them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Floats, Ints
from sfumato.core.channel import Channel
from sfumato.core.randomness import BITS
from sfumato.solver.binary_sight import best_split, continued, told
from sfumato.solver.certify import certified
from sfumato.solver.design_result import Design, measured
from sfumato.solver.group_loops import spread_centres
from sfumato.solver.optimal_channel import cheapest_outputs, optimal
from sfumato.solver.outlook import Outlook
from sfumato.solver.sight_loops import (
    believed_worth,
    best_outputs,
    best_symbols,
    followed,
    grouped_costs,
    product,
    raised,
)
from sfumato.solver.value_function import ValueFunction

_ROUNDS, _FEW_ROUNDS = 6, 3
"""How often vectors that promised too little are made dearer, for one belief: for few symbols, and
for many."""
_NEAR = 1e-6
"""Part of the cost that the program may leave open, and that a promise may be off."""
PARTS, FINE_PARTS = (0.25, 0.5, 0.75, 1.0), tuple(part / 8 for part in range(1, 9))
"""Parts of the cap that are tried where a nat has a price; the second on the grid of two symbols,
where each costs little."""
_NOTHING = 1e-9
"""What is too little to tell anything with."""
GROUPS = 24
"""Rows of a channel, and symbols that it may release: beyond this the time of a step is felt.
Symbols that share a row share what is told of them, so nothing is lost but accuracy."""
_VECTORS = 48
"""Vectors that a step chooses from where symbols are grouped."""


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
        outlook: What a step looks at; that of the value function if not given.
        near: Part of the cost that the program of a step may leave open.

    Examples:
        >>> from sfumato.solver.value_iteration import value_function
        >>> value = value_function([[0.95, 0.05], [0.05, 0.95]], [[0, 1], [1, 0]], 0.5)
        >>> step = FarSight(value).design(np.array([0.8, 0.2]), 0.5)
        >>> step.symbols, step.design.sip.epsilon  # the same symbol twice, and what is behind it
        (array([0, 0]), 0.5000000)
    """

    def __init__(
        self, value: ValueFunction, outlook: Outlook | None = None, near: float = _NEAR
    ) -> None:
        self.value, self._near = value, near
        self.outlook = outlook or value.outlook()
        self._grid = value.grid if value.is_grid else np.empty(0)
        self.likelihoods, self.extremes = channels_of(value)
        self.ahead = product(self.outlook.moves, np.ascontiguousarray(value.vectors.T))
        self._acts = len(self.outlook.losses)

    def design(
        self,
        belief: Floats,
        epsilon: float,
        ldp: float | None = None,
        masses: Floats | None = None,
    ) -> SightedDesign:
        """The channel for a belief about states that spends at most `epsilon`.

        Args:
            belief: About states.
            epsilon: Budget for the leakage under the belief.
            ldp: Cap on the model-free leakage.
            masses: The belief about symbols that it is certified under; that of `belief`, added up,
                if not given.

        Guarantee:
            That of `optimal`: the leakage of the integers that are sampled.
        """
        masses = self.masses(belief) if masses is None else masses
        if self.value.is_step_wise and not self.value.price and epsilon > _NOTHING:
            near = optimal(masses, self.outlook.losses, epsilon, ldp=ldp)
            channel, symbols = near.channel, near.channel.outputs
        else:
            step = self.step(belief / belief.sum(), epsilon, ldp)
            weights = np.full((self._acts, 1), 2**BITS, dtype=np.int64)
            channel, symbols = Channel(weights, [0]), step.symbols
            if len(symbols) > 1:
                channel = certified(step.rows, masses, epsilon, ldp=ldp)
                # An output that rounding has emptied leaves no gap in the numbers of signals.
                symbols = symbols[channel.outputs]
        channel = Channel(channel.weights, np.arange(len(symbols)))
        return SightedDesign(measured(channel, masses, self.outlook.losses[:, symbols]), symbols)

    def masses(self, belief: Floats) -> Floats:
        """The belief about symbols, from that about states."""
        if belief.size == self._acts:
            return belief
        return np.bincount(self.outlook.symbols, belief, self._acts).astype(np.float64)

    def step(self, share: Floats, epsilon: float, ldp: float | None = None) -> SightedStep:
        """The best step from a belief that sums to 1, silence included."""
        best = self._silent(share)
        if epsilon <= _NOTHING:
            return best
        parts = FINE_PARTS if self.value.is_grid else PARTS
        for part in parts if self.value.price else (1.0,):
            found = self._spending(share, epsilon * part, ldp)
            if found is not None and found.value < best.value:
                best = found
        return best

    def _spending(self, share: Floats, epsilon: float, ldp: float | None) -> SightedStep | None:
        # Simulations of many symbols take the channel on groups here, too: a hundred times faster.
        if self.value.is_step_wise and (self._acts <= GROUPS or self._near <= _NEAR):
            near = optimal(self.masses(share), self.outlook.losses, epsilon, ldp=ldp)
            rows, symbols = near.channel.probabilities, near.channel.outputs
            nothing = np.zeros(len(symbols), dtype=np.int64)
            return SightedStep(
                rows, symbols, nothing, epsilon, near.cost + self.value.price * epsilon
            )
        if self.value.is_grid:
            return self._split(share, epsilon)
        return self._searched(share, epsilon, ldp)

    def _silent(self, share: Floats) -> SightedStep:
        """The best constant."""
        value, nothing = self.value, np.zeros(1, dtype=np.int64)
        rows = np.ones((self._acts, 1))
        if value.is_grid:
            worth = continued(float(share[1]), value.transition, value.losses, self._grid)
            return SightedStep(rows, self._best_symbols(share[:, None]), nothing, 0.0, worth)
        symbols, now, ahead, worths, chances, _ = self.priced(share, np.ones((1, 1)), None)
        return SightedStep(rows, symbols, ahead, 0.0, now + float((chances * worths).sum()))

    def _best_symbols(self, masses: Floats) -> Ints:
        return np.asarray([int((self.value.losses.T * m).sum(axis=1).argmin()) for m in masses.T])

    def _split(self, share: Floats, epsilon: float) -> SightedStep | None:
        """Two symbols: the best two posteriors, and the channel that leads to them."""
        value, chance = self.value, float(share[1])
        cost, left, right = best_split(
            chance, portable.exp(epsilon), value.transition, value.losses, self._grid
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
        value, outlook = self.value, self.outlook
        groups, chosen, vectors = self._candidates(share)
        mass, costs = grouped_costs(
            share,
            outlook.symbols,
            groups,
            int(groups.max()) + 1,
            outlook.losses,
            chosen,
            self.ahead,
            vectors,
        )
        best: SightedStep | None = None
        for _ in range(_ROUNDS if self._acts <= GROUPS else _FEW_ROUNDS):
            rows, columns = self._program(mass, costs, epsilon, ldp)
            symbols, now, ahead, worths, chances, beliefs = self.priced(share, rows, groups)
            worth = now + float((chances * worths).sum()) + value.price * epsilon
            if best is None or worth < best.value:
                best = SightedStep(rows[groups], symbols, ahead, epsilon, worth)
            off = raised(costs, columns, vectors, value.vectors, beliefs, worths)
            if off <= self._near * value.losses.max():
                break
        assert best is not None
        return best

    def _candidates(self, share: Floats) -> tuple[Ints, Ints, Ints]:
        """Groups of symbols that share a row, and the symbols and vectors outputs are made of."""
        groups, everything = self.groups(share), np.arange(self.outlook.losses.shape[1])
        count = len(self.value.vectors)
        if self._acts > GROUPS:
            everything = self.centres(share)[0]
        if count * everything.size <= 40 * _VECTORS:
            return groups, everything, np.arange(count)
        # What would be best if a group were known, and what is best if nothing is told.
        means = (share[:, None] * self.ahead).sum(axis=0)
        known = np.zeros((int(groups.max()) + 1, count))
        np.add.at(known, groups[self.outlook.symbols], share[:, None] * self.ahead)
        several = np.union1d(
            known.argmin(axis=1), np.argsort(means, kind="stable")[: _VECTORS // 2]
        )
        return groups, everything, several

    def groups(self, share: Floats) -> Ints:
        """The row of the channel that each symbol has."""
        if self._acts <= GROUPS:
            return np.arange(self._acts)
        return self.centres(share)[1]

    def centres(self, share: Floats) -> tuple[Ints, Ints]:
        """Symbols spread by belief and loss, and the group around each."""
        masses, losses = self.masses(share), self.outlook.losses
        first = int((masses[:, None] * losses).sum(axis=0).argmin())
        centres, nearest = spread_centres(masses, losses, first, GROUPS)
        return np.unique(centres), np.unique(nearest, return_inverse=True)[1]

    def _program(
        self, mass: Floats, costs: Floats, epsilon: float, ldp: float | None
    ) -> tuple[Floats, Ints]:
        """Float rows and the outputs they use; a cap that binds goes to the capped program."""
        if ldp is None or ldp >= 2 * epsilon:
            good, rows, columns = best_outputs(mass, costs, epsilon, self._near)
            if good:
                return rows, columns
        share = mass / mass.sum()
        channel = cheapest_outputs(share, costs, epsilon, ldp=ldp, tolerance=self._near).channel
        return channel.probabilities, channel.outputs

    def priced(
        self, share: Floats, rows: Floats, groups: Ints | None
    ) -> tuple[Ints, float, Ints, Floats, Floats, Floats]:
        """What a channel costs by the vectors that can be believed where it leads to.

        Args:
            share: The belief about states.
            rows: The channel, a row for each group of symbols.
            groups: The group of each symbol; one for all if not given.

        Returns:
            The best symbol of each output and the cost of these; the vector that each goes on with
            and what it promises; chances of outputs and beliefs after them.
        """
        outlook = self.outlook
        place = np.zeros(self._acts, dtype=np.int64) if groups is None else groups
        symbols, now = best_symbols(share, rows, outlook.symbols, place, outlook.losses)
        chances, beliefs = followed(share, rows, outlook.symbols, place, outlook.moves)
        ahead, worths = self._believed(chances, beliefs)
        return symbols, now, ahead, worths, chances, beliefs

    def _believed(self, chances: Floats, beliefs: Floats) -> tuple[Ints, Floats]:
        value = self.value
        limit = value.trust * value.epsilon
        return believed_worth(
            chances, beliefs, value.vectors, self.likelihoods, self.extremes, limit
        )

    def going_on(self, share: Floats, rows: Floats) -> tuple[Ints, float]:
        """The best symbol of each output of any channel, and what this step and all others cost.

        Args:
            share: The belief about states, which are symbols here; it sums to 1.
            rows: The channel, a row for each symbol. The price of what it leaks is not counted.
        """
        if not self.value.is_grid:
            own = np.arange(self._acts)
            symbols, now, _, worths, chances, _ = self.priced(share, rows, own)
            return symbols, now + float((chances * worths).sum())
        return self._best_symbols(share[:, None] * rows), float(
            self.column_costs(share, rows).sum()
        )

    def column_costs(self, share: Floats, columns: Floats) -> Floats:
        """What each output of a channel, or of several, costs with all that follows it.

        Args:
            share: The belief about states, which are symbols here; it sums to 1.
            columns: Probabilities of outputs, a row for each symbol; rows may have any sum.
        """
        joint = share[:, None] * columns
        if not self.value.is_grid:
            own, losses = np.arange(self._acts), self.outlook.losses
            symbols, _, _, worths, chances, _ = self.priced(share, columns, own)
            return np.asarray((joint * losses[:, symbols]).sum(axis=0) + chances * worths)
        chances, value = joint.sum(axis=0), self.value
        ahead = [
            continued(float(after / chance), value.transition, value.losses, self._grid)
            for after, chance in zip(joint[1].tolist(), chances.tolist(), strict=True)
        ]
        return np.asarray(chances * np.array(ahead))

    def worth_of(self, chances: Floats, beliefs: Floats) -> Floats:
        """What beliefs after outputs are worth."""
        return self._believed(chances, beliefs)[1]


def channels_of(value: ValueFunction) -> tuple[Floats, Floats]:
    """Vector, output: its probability in each state of the stream, the largest and the least."""
    channels = np.ascontiguousarray(value.channels.transpose(0, 2, 1))
    if not channels.size:
        return channels, np.empty((*channels.shape[:2], 2))
    extremes = np.stack([channels.max(axis=2), channels.min(axis=2)], axis=2)
    outlook = value.outlook()
    if outlook.opens is not None:
        flat = channels.reshape(-1, channels.shape[2])
        told_first = product(flat, np.ascontiguousarray(outlook.opens.T))
        return told_first.reshape(*channels.shape[:2], -1), extremes
    return np.ascontiguousarray(channels[:, :, outlook.symbols]), extremes
