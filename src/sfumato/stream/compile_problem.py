"""What a policy is compiled for: which channel is best at a belief, and what others cost there."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Floats, Ints
from sfumato.core.channel import Channel
from sfumato.core.loss import Loss
from sfumato.core.randomness import Randomness, categorical, integer_weights
from sfumato.models.markov import MarkovChain
from sfumato.solver.column_loops import column_generation
from sfumato.solver.design_methods import Method, design
from sfumato.solver.design_result import Design
from sfumato.solver.far_sighted import FarSight, SightedStep
from sfumato.solver.loop_tables import in_fours
from sfumato.solver.policy import (
    PART_BITS,
    WHOLE,
    PolicyChannel,
    PolicyReport,
    Tables,
    kept_rows,
    step_cost,
)
from sfumato.solver.solving_tables import are_solving, solved_rows
from sfumato.solver.value_function import ValueFunction
from sfumato.stream.fleet_arrays import MISSED, Prepared, StreamArrays
from sfumato.stream.kept_channel_loops import price_all
from sfumato.stream.sighted_costs import channel_cost, column_costs, sight_arrays

WALKS = 32
"""Streams that are simulated side by side: enough for beliefs of every age to occur."""
_CANDIDATES, _CANDIDATES_LARGE, _LARGE = 1, 2, 64
"""Channels that a leaf tries: a second one costs a fifth of the time and saves a fifth of the extra
loss, which is worth it where mixing loses more, on large alphabets."""


class Optimum(NamedTuple):
    """The best channel at a belief, what it costs, and a floor under that of all channels."""

    channel: Channel
    cost: float
    floor: float


class Begun(NamedTuple):
    """Where the small programs of far-sighted steps begin.

    Attributes:
        outputs: Of the columns to begin with, as many as there are symbols.
        orders: Symbols in the order in which the columns of all outputs, and then these, are high
            on them.
    """

    outputs: Ints
    orders: Ints


class Problem(ABC):
    """What a policy is compiled for.

    Args:
        chain: What the adversary is assumed to know.
        loss: What it costs to release one symbol when another is true.
        epsilon: What a step may leak under the model.
        ldp: What it may leak whatever the model.
        every: Steps from one release that tells something to the next.
    """

    scale = 0.0

    def __init__(
        self, chain: MarkovChain, loss: Loss, epsilon: float, ldp: float | None, every: int
    ) -> None:
        self.chain, self.loss, self._every = chain, loss, every
        self._epsilon, self._ldp = epsilon, ldp

    @property
    def allowed(self) -> tuple[float, float]:
        """What a step may leak: under the model, and whatever the model."""
        return self._epsilon, math.inf if self._ldp is None else self._ldp

    @abstractmethod
    def optimum(self, belief: Floats) -> Optimum:
        """The best channel at a belief."""

    @abstractmethod
    def kept(self, belief: Floats) -> PolicyChannel:
        """The best channel at a belief, ready to be kept."""

    @abstractmethod
    def cost(self, tables: Tables, prepared: Prepared, place: int, belief: Floats) -> float:
        """What a channel costs as it is released."""

    @abstractmethod
    def extra(self, lost: float, floor: float, steps: int) -> float:
        """How much more was lost, as a part."""

    def collected(
        self, rounds: int, coins: Randomness, told: Callable[[int], None]
    ) -> tuple[Floats, Floats]:
        """Beliefs met when every step is released through its best channel; floors of its cost."""
        walks = [self.chain.first() for _ in range(WALKS)]
        beliefs, floors = [], []
        for done in range(rounds):
            words = coins.words(WALKS)
            for walk, belief in enumerate(walks):
                best = self.optimum(belief.marginal)
                beliefs.append(belief.marginal)
                floors.append(best.floor)
                told_by = integer_weights(best.channel.marginal(belief.marginal)[None, :])
                column = categorical(
                    told_by.cumsum(axis=1), np.zeros(1, np.int64), words[walk : walk + 1]
                )
                output = int(best.channel.outputs[column[0]])
                informed = belief.update(best.channel.likelihood(output))
                for _ in range(self._every):
                    informed = self.chain.following(informed)
                walks[walk] = informed
            told(done + 1)
        return np.array(beliefs), np.array(floors)

    def measured(
        self,
        tables: Tables,
        repair_limit: float,
        rounds: int,
        coins: Randomness,
        before: int,
        told: Callable[[int], None],
        part: int = 1,
    ) -> PolicyReport:
        """What a policy loses in a simulation of its own.

        Args:
            tables: Those of the policy.
            repair_limit: By what part mixing may make a kept channel dearer.
            rounds: Steps of each stream.
            coins: Decide what is true and what is released.
            before: Rounds that were told of before.
            told: Told how many rounds are done.
            part: Of so many streams one is compared with the best channel at each step, another
                one each time.
        """
        arrays = StreamArrays(self.chain, tables, repair_limit, WALKS, scale=self.scale)
        everyone, allowed = np.arange(WALKS), np.tile(self.allowed, (WALKS, 1))
        lost = floor = missed = repair = 0.0
        for done in range(rounds):
            beliefs = arrays.marginals()
            prepared = arrays.prepare(everyone, allowed)
            some = range(done % part, WALKS, part)
            optima = {place: self.optimum(beliefs[place]) for place in some}
            for place, best in optima.items():
                belief = beliefs[place]
                floor += best.floor
                if prepared.status[place] == MISSED:
                    missed += 1
                    lost += best.cost
                else:
                    repair += prepared.parts[place] / WHOLE
                    lost += self.cost(tables, prepared, place, belief)
            # True values follow the belief itself: that is what the model says they do.
            truths = categorical(
                integer_weights(beliefs).cumsum(axis=1), everyone, coins.words(WALKS)
            )
            words, kept = coins.words(WALKS), prepared.status != MISSED
            arrays.release(prepared.of(kept), truths[kept], words[kept])
            for place in np.flatnonzero(~kept).tolist():
                channel = optima[place].channel
                output = int(channel.draw(truths[place], words[place : place + 1])[0])
                informed = arrays.belief(place).update(channel.likelihood(output))
                arrays.put(place, int(arrays.moments[place]), informed)
            for _ in range(self._every):
                arrays.advance(everyone)
            told(before + done + 1)
        steps = sum(len(range(done % part, WALKS, part)) for done in range(rounds))
        return PolicyReport(
            steps, self.extra(lost, floor, steps), missed / steps, float(repair / steps)
        )


class StepWise(Problem):
    """The least loss of each step by itself."""

    def __init__(
        self,
        chain: MarkovChain,
        loss: Loss,
        epsilon: float,
        ldp: float | None,
        every: int,
        method: Method,
    ) -> None:
        super().__init__(chain, loss, epsilon, ldp, every)
        self._method = method

    def _solved(self, belief: Floats) -> Design:
        return design(self._method, belief, self.loss, self._epsilon, ldp=self._ldp)

    def optimum(self, belief: Floats) -> Optimum:
        """The best channel at a belief."""
        best = self._solved(belief)
        floor = best.cost if best.lower_bound is None else best.lower_bound
        return Optimum(best.channel, best.cost, floor)

    def kept(self, belief: Floats) -> PolicyChannel:
        """The best channel at a belief, ready to be kept."""
        channel = self._solved(belief).channel
        return PolicyChannel.of(channel, belief, self.loss.columns(channel.outputs))

    def prices(self, channels: Tables, beliefs: Floats) -> Floats:
        """Cost of each channel at each belief, as the release will reckon it."""
        prices = np.empty((len(beliefs), len(channels[0])))
        k, h = (portable.exp(amount) for amount in self.allowed)
        nodes, _, row_of, costs, weights, _, extremes, *_ = channels
        price_all(nodes, row_of, costs, weights, in_fours(extremes), beliefs, k, h, prices)
        return prices

    def candidates(self, channels: Tables, beliefs: Floats) -> list[int]:
        """The channels that a leaf tries: those that suit its beliefs best."""
        count = _CANDIDATES if self.chain.size <= _LARGE else _CANDIDATES_LARGE
        return _greedy(self.prices(channels, beliefs), count)

    def cost(self, tables: Tables, prepared: Prepared, place: int, belief: Floats) -> float:
        """The expected loss of this step."""
        if are_solving(tables):
            weights, outputs = solved_rows(tables, prepared.blends[place])
            rows = np.ldexp(weights.astype(np.float64), -PART_BITS) / WHOLE
            return float(portable.dot(belief, (rows * self.loss.columns(outputs)).sum(axis=1)))
        nodes, _, _, costs, _, outputs, *_ = tables
        node, part = prepared.chosen[place], prepared.parts[place] / WHOLE
        plain = float((1 - part) * (portable.dot(belief, costs[node, 0])))
        if part == 0.0:
            return plain
        _, _, column, _, width = nodes[node]
        blend = np.ldexp(prepared.blends[place, :width].astype(np.float64), -PART_BITS)
        mean = portable.dot(belief, self.loss.columns(outputs[column : column + width]))
        return plain + float(part * (portable.dot(blend, mean)))

    def extra(self, lost: float, floor: float, steps: int) -> float:
        """As a part of the floor."""
        return max(0.0, float(lost / floor - 1)) if floor > 0 else 0.0


def _greedy(prices: Floats, count: int) -> list[int]:
    """A few channels, each lowering most the cost of the best so far."""
    best = np.full(len(prices), np.inf)
    chosen: list[int] = []
    for _ in range(count):
        sums = np.minimum(best[:, None], prices).sum(axis=0)
        nearest = int(sums.argmin())
        if sums[nearest] >= best.sum() * (1 - 1e-4):
            break
        chosen.append(nearest)
        best = np.minimum(best, prices[:, nearest])
    return chosen


class Sighted(Problem):
    """The least loss of each step with all that follow it, as a value function sees them.

    Costs are known but for a constant, so what is extra is a part of the mean cost of a step.

    Args:
        sight: The value function.
    """

    def __init__(
        self,
        chain: MarkovChain,
        loss: Loss,
        epsilon: float,
        ldp: float | None,
        sight: ValueFunction,
    ) -> None:
        super().__init__(chain, loss, epsilon, ldp, every=1)
        self._far, self._arrays = FarSight(sight), sight_arrays(sight)
        self.scale, self._price = step_cost(sight), sight.price
        # Sight was made for a cap, and a channel that spends more fits nothing that it promises.
        self._cap = min(epsilon, sight.epsilon)

    def optimum(self, belief: Floats) -> Optimum:
        """The channel that sight finds at a belief; what it costs is its own floor."""
        found = self._far.design(belief, self._cap, self._ldp)
        channel = found.design.channel
        cost = channel_cost(belief, channel.probabilities, found.symbols, self._arrays)
        return Optimum(channel, cost, cost)

    def kept(self, belief: Floats) -> PolicyChannel:
        """The channel that sight finds at a belief, ready to be kept."""
        # It is certified at each use, so that it may be a hair over the cap here.
        step = self.step(belief)
        channel = Channel.from_probabilities(step.rows)
        costs = column_costs(belief, channel.probabilities, step.symbols, self._arrays)
        kept = PolicyChannel.of(channel, belief, costs, step.symbols)
        kept.costs[0] += self._price * step.spent
        return kept

    def step(self, belief: Floats) -> SightedStep:
        """The step that sight finds at a belief."""
        return self._far.step(belief, self._cap, self._ldp)

    def pair_costs(self, symbols: Ints, ahead: Ints) -> Floats:
        """What outputs cost, symbols with what follows them: column = true symbol."""
        return np.ascontiguousarray(self._far.outlook.losses.T[symbols] + self._far.ahead.T[ahead])

    def begun(self, belief: Floats, symbols: Ints, ahead: Ints) -> Begun:
        """Where programs with some outputs begin near a belief."""
        costs = self.pair_costs(symbols, ahead).T
        costs = np.ascontiguousarray(costs - costs.min(axis=1, keepdims=True))
        share = 1 / (portable.exp(self._cap) + 1)
        none = (np.empty((belief.size, 0)), np.empty(0, dtype=np.int64))
        tiny = 1e-11 * float(costs.max())
        columns, released, _, prices, _ = column_generation(
            belief, costs, share, tiny, 60 * belief.size + 200, 0.0, *none
        )
        preferred = np.argsort(costs.T - prices, axis=1, kind="stable")
        # A place of the basis that no column has taken begins with one that is there anyway.
        outputs = np.maximum(released, 0)
        own = np.argsort(-columns, axis=1, kind="stable")
        own = np.where((released >= 0)[:, None], own, preferred[outputs])
        return Begun(outputs, np.concatenate([preferred, own]))

    def cost(self, tables: Tables, prepared: Prepared, place: int, belief: Floats) -> float:
        """This step and all that follow it."""
        if are_solving(tables):
            integers, released = solved_rows(tables, prepared.blends[place])
            shares = np.ldexp(integers.astype(np.float64), -PART_BITS) / WHOLE
            return float(channel_cost(belief, shares, released, self._arrays))
        nodes, _, row_of, _, weights, outputs, *_ = tables
        node, parts = int(prepared.chosen[place]), int(prepared.parts[place])
        _, _, column, _, width = nodes[node]
        kept = np.ldexp(kept_rows(weights, nodes[node])[row_of[node], :width], -PART_BITS)
        part = parts / WHOLE
        rows = (1 - part) * kept
        if part:
            rows += part * np.ldexp(prepared.blends[place, :width].astype(np.float64), -PART_BITS)
        return float(channel_cost(belief, rows, outputs[column : column + width], self._arrays))

    def extra(self, lost: float, floor: float, steps: int) -> float:
        """As a part of the mean cost of a step."""
        return max(0.0, (lost - floor) / (steps * self.scale)) if self.scale > 0 else 0.0
