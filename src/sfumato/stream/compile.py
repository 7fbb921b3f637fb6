"""Compile a policy: collect the beliefs that occur, keep channels for them, plant a tree.

Simulated streams are released through the best channel of every step, and their beliefs are
collected. A tree splits these beliefs, the dearest leaf first; each leaf keeps the best channel
for its mean belief, and tries the few that suit its beliefs best. Nothing here can harm
the guarantee, since each use of a kept channel is certified anew: it decides how much is lost,
and a second simulation, under the policy itself, measures that.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

import numpy as np

from sfumato.core import checks, limits
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.loss import Loss
from sfumato.core.randomness import Randomness, categorical, integer_weights, seeded
from sfumato.models.markov import MarkovChain
from sfumato.solver.design_methods import Method, design
from sfumato.solver.design_result import Design
from sfumato.solver.policy import (
    PART_BITS,
    WHOLE,
    Policy,
    PolicyChannel,
    PolicyReport,
    Tables,
    Tree,
    tabulated,
)
from sfumato.stream.fleet_arrays import MISSED, Prepared, StreamArrays
from sfumato.stream.kept_channel_loops import price_all
from sfumato.stream.partition.batch_beliefs import chain_of_batches
from sfumato.stream.partition.batch_loss import BatchLoss, as_batch_loss, listed

Progress = Callable[[int, int], None]
_MAX_EPSILON = 20.0
"""Beyond this the least probabilities of a channel are below weights of 2**-40."""
_WALKS = 32
"""Streams that are simulated side by side: enough for beliefs of every age to occur."""
_SMALLEST_LEAF = 4
"""Beliefs of a leaf; a channel for fewer would fit their noise."""
_CANDIDATES, _CANDIDATES_LARGE, _LARGE = 1, 2, 64
"""Channels that a leaf tries: a second one costs a fifth of the time and saves a fifth of the extra
loss, which is worth it where mixing loses more, on large alphabets."""
_CHECKED_PART = 8
"""A second simulation, of this part of the first, measures the policy on other beliefs."""
_MOST_BATCHES = 512
"""Batches that a policy may be compiled for; the chain of batches is a dense matrix."""


def compile_policy(
    chain: MarkovChain,
    loss: Loss | BatchLoss,
    epsilon: float,
    *,
    width: int = 1,
    every: int = 1,
    ldp: float | None = None,
    method: Method | str = Method.OPTIMAL,
    tolerance: float = 0.005,
    repair_limit: float = 0.2,
    max_channels: int = 2_000,
    steps: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Policy:
    """Compile a chain, a loss and a budget into channels for the beliefs that occur.

    Args:
        chain: What the adversary is assumed to know; full support.
        loss: What it costs to release one symbol, or one batch, when another is true.
        epsilon: What a step, or a whole batch, may leak under the model.
        width: Compile for batches of so many values; a loss of values then adds up.
        every: Steps from one release that tells something to the next: beliefs fade in between.
        ldp: Cap on what it may leak whatever the model.
        method: How channels are found; model-free ones need but one.
        tolerance: A leaf that loses less than this part more than the optimum is not split.
        repair_limit: By what part mixing may make a kept channel dearer; a belief at which all
            candidates get dearer than that is solved on the spot.
        max_channels: Keep no more than this.
        steps: Simulated steps; 16,000 for up to 24 symbols and 4,000 beyond, if not given.
        seed: Of the simulation.
        progress: Told how many steps of how many are done.

    Examples:
        >>> from sfumato.core.loss import hamming
        >>> chain = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
        >>> policy = compile_policy(chain, hamming(chain.alphabet), 1.0, steps=500)
        >>> policy.report.extra_loss < 0.02
        True
    """
    chosen = Method(method)
    if checks.count("width", width, at_most=limits.BATCH) > 1 or isinstance(loss, BatchLoss):
        batches = listed(chain.size, width) if chain.size**width <= _MOST_BATCHES else None
        if batches is None:
            rule = f"have at most {_MOST_BATCHES} batches ({chain.size}**width) to be compiled"
            raise InvalidParameter("width", width, rule)
        loss = as_batch_loss(loss, chain.size).between(batches)
        chain = chain_of_batches(chain, width)
    _check(chain, loss, chosen)
    checks.positive("tolerance", tolerance)
    checks.positive("repair_limit", repair_limit)
    budget = checks.epsilon("epsilon", epsilon)
    if budget > _MAX_EPSILON:
        rule = f"be at most {_MAX_EPSILON}: finer weights than a policy keeps would be needed"
        raise InvalidParameter("epsilon", budget, rule)
    cap = None if ldp is None else checks.epsilon("ldp", ldp)
    count = checks.count("max_channels", max_channels)
    walked = checks.count("steps", _default_steps(chain.size) if steps is None else steps)
    rounds = -(-walked // _WALKS)
    measured = -(-rounds // _CHECKED_PART)
    problem = _Problem(chain, loss, chosen, budget, cap, checks.count("every", every))

    def told(done: int) -> None:
        if progress:
            progress(done, rounds + measured)

    if chosen is Method.OPTIMAL:
        beliefs, floors = problem.collected(rounds, seeded(seed), told)
        tables = _TreeBuilder(problem, beliefs, floors, tolerance, count).tables()
    else:
        tables = problem.single()
    report = problem.measured(tables, repair_limit, measured, seeded(seed + 1), rounds, told)
    return Policy(
        chain=chain.fingerprint,
        loss=loss.fingerprint,
        method=chosen.value,
        epsilon=budget,
        ldp=cap,
        repair_limit=repair_limit,
        tables=tables,
        report=report,
    )


def _check(chain: MarkovChain, loss: Loss, method: Method) -> None:
    if not chain.full_support:
        raise InvalidParameter("model", "zeros", "give every value some probability")
    if len(loss) != chain.size:
        raise InvalidParameter("loss", len(loss), f"be one for {chain.size} symbols")
    if method in (Method.CALIBRATED, Method.PAPER):
        rule = "be optimal, randomized-response or context-free: others depend on each belief"
        raise InvalidParameter("method", method.value, rule)


def _default_steps(size: int) -> int:
    return 16_000 if size <= 24 else 4_000


class _Problem:
    """What a policy is compiled for."""

    def __init__(
        self,
        chain: MarkovChain,
        loss: Loss,
        method: Method,
        epsilon: float,
        ldp: float | None,
        every: int,
    ) -> None:
        self.chain, self.loss, self._every = chain, loss, every
        self._method, self._epsilon, self._ldp = method, epsilon, ldp

    @property
    def allowed(self) -> tuple[float, float]:
        """What a step may leak: under the model, and whatever the model."""
        return self._epsilon, math.inf if self._ldp is None else self._ldp

    def solved(self, belief: Floats) -> Design:
        """The best channel at a belief."""
        return design(self._method, belief, self.loss, self._epsilon, ldp=self._ldp)

    def kept(self, belief: Floats) -> PolicyChannel:
        """The best channel at a belief, ready to be kept."""
        channel = self.solved(belief).channel
        return PolicyChannel.of(channel, belief, self.loss.columns(channel.outputs))

    def single(self) -> Tables:
        """The one channel of a method that does not look at the belief."""
        kept = self.kept(self.chain.first().marginal)
        return tabulated([kept], Tree(np.array([[-1, 0, 1]]), np.zeros(1), np.zeros(1, np.int64)))

    def collected(
        self, rounds: int, coins: Randomness, told: Callable[[int], None]
    ) -> tuple[Floats, Floats]:
        """Beliefs met when every step is released through its best channel; floors of its cost."""
        walks = [self.chain.first() for _ in range(_WALKS)]
        beliefs, floors = [], []
        for done in range(rounds):
            words = coins.words(_WALKS)
            for walk, belief in enumerate(walks):
                best = self.solved(belief.marginal)
                beliefs.append(belief.marginal)
                floors.append(best.lower_bound or 0.0)
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
    ) -> PolicyReport:
        """What a policy loses in a simulation of its own."""
        arrays = StreamArrays(self.chain, tables, repair_limit, _WALKS)
        everyone, allowed = np.arange(_WALKS), np.tile(self.allowed, (_WALKS, 1))
        lost = floor = missed = repair = 0.0
        for done in range(rounds):
            beliefs = arrays.marginals()
            prepared = arrays.prepare(everyone, allowed)
            optima = [self.solved(belief) for belief in beliefs]
            for place, (belief, best) in enumerate(zip(beliefs, optima, strict=True)):
                floor += best.lower_bound if best.lower_bound is not None else best.cost
                if prepared.status[place] == MISSED:
                    missed += 1
                    lost += best.cost
                else:
                    repair += prepared.parts[place] / WHOLE
                    lost += self._cost(tables, prepared, place, belief)
            # True values follow the belief itself: that is what the model says they do.
            truths = categorical(
                integer_weights(beliefs).cumsum(axis=1), everyone, coins.words(_WALKS)
            )
            words, kept = coins.words(_WALKS), prepared.status != MISSED
            arrays.release(prepared.of(kept), truths[kept], words[kept])
            for place in np.flatnonzero(~kept).tolist():
                channel = optima[place].channel
                output = int(channel.draw(truths[place], words[place : place + 1])[0])
                informed = arrays.belief(place).update(channel.likelihood(output))
                arrays.put(place, int(arrays.moments[place]), informed)
            for _ in range(self._every):
                arrays.advance(everyone)
            told(before + done + 1)
        steps = rounds * _WALKS
        extra = max(0.0, float(lost / floor - 1)) if floor > 0 else 0.0
        return PolicyReport(steps, extra, missed / steps, float(repair / steps))

    def _cost(self, tables: Tables, prepared: Prepared, place: int, belief: Floats) -> float:
        nodes, _, _, costs, _, outputs, *_ = tables
        node, part = prepared.chosen[place], prepared.parts[place] / WHOLE
        plain = float((1 - part) * (belief @ costs[node, 0]))
        if part == 0.0:
            return plain
        _, _, column, _, width = nodes[node]
        blend = np.ldexp(prepared.blends[place, :width].astype(np.float64), -PART_BITS)
        mean = belief @ self.loss.columns(outputs[column : column + width])
        return plain + float(part * (blend @ mean))


class _TreeBuilder:
    """Grow the tree: split the leaf whose beliefs lose most, until all lose little."""

    def __init__(
        self, problem: _Problem, beliefs: Floats, floors: Floats, tolerance: float, most: int
    ) -> None:
        self._problem, self._beliefs, self._floors = problem, beliefs, floors
        self._reached = beliefs.cumsum(axis=1)
        self._tolerance = tolerance
        self._splits = [[-1, 0, 0]]
        self._thresholds = [0.0]
        self._leaves: dict[int, tuple[Ints, PolicyChannel]] = {}
        self._waiting: list[tuple[float, int]] = []
        self._settle(0, np.arange(len(beliefs)))
        while self._waiting and len(self._leaves) < most:
            self._split(heapq.heappop(self._waiting)[1])

    def _settle(self, place: int, members: Ints) -> None:
        """Make a place a leaf with a channel of its own; queue it if it loses too much."""
        mean = self._beliefs[members].mean(axis=0)
        kept = self._problem.kept(mean / mean.sum())
        self._leaves[place] = members, kept
        lost = float(
            self._prices(tabulated([kept], _NO_TREE), members).sum() - self._floors[members].sum()
        )
        much = lost > self._tolerance * float(self._floors[members].sum())
        if much and len(members) >= 2 * _SMALLEST_LEAF:
            heapq.heappush(self._waiting, (-lost, place))

    def _split(self, place: int) -> None:
        members, _ = self._leaves[place]
        reached = self._reached[members]
        # The running sum that varies most tells most beliefs apart by one comparison.
        symbol = int(reached.var(axis=0).argmax())
        threshold = float(np.median(reached[:, symbol]))
        low = reached[:, symbol] <= threshold
        if low.all() or not low.any():
            return
        del self._leaves[place]
        first = len(self._splits)
        self._splits[place] = [symbol, first, first + 1]
        self._thresholds[place] = threshold
        self._splits += [[-1, 0, 0], [-1, 0, 0]]
        self._thresholds += [0.0, 0.0]
        self._settle(first, members[low])
        self._settle(first + 1, members[~low])

    def _prices(self, channels: Tables, members: Ints) -> Floats:
        """Cost of each channel at each belief, as the release will reckon it."""
        prices = np.empty((len(members), len(channels[0])))
        k, h = (math.exp(amount) for amount in self._problem.allowed)
        price_all(channels, self._beliefs[members], k, h, prices)
        return prices

    def tables(self) -> Tables:
        """The channels of all leaves, and for each leaf those that suit its beliefs best."""
        kept = [one for _, one in self._leaves.values()]
        count = _CANDIDATES if self._problem.chain.size <= _LARGE else _CANDIDATES_LARGE
        channels, candidates = tabulated(kept, _NO_TREE), list[int]()
        for place, (members, _) in self._leaves.items():
            chosen = _greedy(self._prices(channels, members), count)
            self._splits[place] = [-1, len(candidates), len(candidates) + len(chosen)]
            candidates += chosen
        splits, thresholds = np.array(self._splits), np.array(self._thresholds)
        return tabulated(kept, Tree(splits, thresholds, np.array(candidates)))


_NO_TREE = Tree(np.zeros((0, 3), np.int64), np.zeros(0), np.zeros(0, np.int64))


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
