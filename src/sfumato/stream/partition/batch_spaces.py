"""Beliefs of releases in batches.

Usually about the next value (`NextValues`); under a library about the pattern of the last batch
(`LastPattern`); under a policy about the next whole batch (`NextBatch`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Floats, Ints
from sfumato.core.belief import Belief
from sfumato.core.budgets import USELESS_BELOW
from sfumato.core.errors import InvalidParameter
from sfumato.core.numerics import UNIT
from sfumato.models.library import PatternLibrary
from sfumato.models.markov import MarkovChain
from sfumato.solver.design_methods import Method
from sfumato.solver.far_sighted import FarSight
from sfumato.solver.outlook import of_batches
from sfumato.solver.value_function import ValueFunction
from sfumato.stream.partition.batch_beliefs import chain_of_batches
from sfumato.stream.partition.batch_design import check_design, design_batch
from sfumato.stream.partition.batch_loss import BatchLoss, listed
from sfumato.stream.partition.belief_space import BeliefSpace, check_sight
from sfumato.stream.partition.cells import Partition, StepDesign, muted, solved
from sfumato.stream.partition.library_patterns import LibraryPatterns
from sfumato.stream.partition.patterns import Patterns, ShortBatches, WholeBatches

_CELLS = 8_000_000
"""How many numbers the designs may hold that are shared by streams that stand alike: some 64 MB."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a step asks for: hashable, so that equal ones are solved once.

    Attributes:
        joint: The belief's numbers, as bytes; its drift is charged apart.
        axis: Its current axis.
        length: Values of the batch.
        recalled: Past values that the channel looks at, too.
        epsilon: Budget for the leakage under the belief.
        ldp: Cap on the model-free leakage.
    """

    joint: bytes
    axis: int
    length: int
    recalled: int
    epsilon: float
    ldp: float | None

    @property
    def numbers(self) -> Floats:
        """The belief's numbers."""
        return np.frombuffer(self.joint, dtype=np.float64)


class _Batches(BeliefSpace):
    """What the spaces of batches share: tasks that are solved once.

    Args:
        chain: How what beliefs are about moves on.
        symbols: How many symbols a value can take.
        width: Most values of a batch.
        most: Batches up to which they are listed.
    """

    chain: MarkovChain

    def __init__(self, chain: MarkovChain, symbols: int, width: int, most: int) -> None:
        self.chain = chain
        # A listed batch takes some 64 numbers of a design; boxes take tails of every context, too.
        held = min(most, symbols ** min(width, 40))
        contexts = chain.size**chain.order
        held = held * 64 + contexts * 200 * (held == most)
        most_kept = max(4, _CELLS // held)
        self._designs: Callable[[Task], StepDesign] = lru_cache(maxsize=most_kept)(self._solve)

    @abstractmethod
    def _solve(self, task: Task) -> StepDesign:
        """The channel of a batch."""

    def error(self, belief: Belief, length: int) -> float:
        """A bound on rounding errors."""
        moves = length * (6 * self.chain.size + 32) + 2 * belief.joint.size
        return belief.drift + (moves + 64) * UNIT

    def design(
        self, belief: Belief, length: int, recalled: int, epsilon: float, ldp: float | None
    ) -> StepDesign:
        """The channel of a step."""
        # A design is shared by beliefs with other histories: their drift is charged on top.
        task = Task(belief.joint.tobytes(), belief.axis, length, recalled, epsilon, ldp)
        return replace(self._designs(task), drift=belief.drift)

    def silent(self, belief: Belief, length: int, recalled: int) -> StepDesign:
        """A constant."""
        return muted(self.design(belief, length, recalled, USELESS_BELOW, None))


class NextValues(_Batches):
    """Beliefs about the next value, and about as many before it as channels look back on."""

    def __init__(
        self,
        model: MarkovChain,
        loss: BatchLoss,
        width: int,
        memory: int,
        method: Method,
        most: int,
    ) -> None:
        back = (memory - 1) * width
        check_design(model.size, width, loss, method=method, recalled=back, most=most)
        chain = model.lifted(max(model.order, back + 1)) if back else model
        super().__init__(chain, model.size, width, most)
        self._more = chain.order - model.order
        self._loss, self._width, self._method, self._most = loss, width, method, most

    def first(self) -> Belief:
        """Belief before the first value."""
        # Probabilities of more values than the model has are products, each off by some roundings.
        return replace(self.chain.first(), drift=self._more * (4 * self.chain.size + 8) * UNIT)

    def passed(self, belief: Belief, length: int) -> Belief:
        """Belief after a batch that told nothing."""
        for _ in range(length):
            belief = self.chain.following(belief)
        return belief

    def batches(self) -> Iterator[Ints]:
        """The batches of each length that can be released."""
        if self.chain.size**self._width > self._most:
            rule = f"have at most {self._most} batches for a loss of this form"
            raise InvalidParameter("width", self._width, rule)
        return (listed(self.chain.size, length) for length in range(1, self._width + 1))

    def _solve(self, task: Task) -> StepDesign:
        shape = (self.chain.size,) * self.chain.order
        return design_batch(
            self.chain,
            Belief(task.numbers.reshape(shape), task.axis),
            task.length,
            self._loss,
            task.epsilon,
            ldp=task.ldp,
            method=self._method,
            recalled=task.recalled,
            most=self._most,
        )


class NextValuesAhead(NextValues):
    """Beliefs about the next value, first of a batch that leaves with a signal.

    Args:
        model: How values follow each other.
        loss: Of batches.
        width: Most values of a batch.
        most: Batches up to which they are listed.
        sight: What beliefs about the value after a batch are worth.
    """

    def __init__(
        self, model: MarkovChain, loss: BatchLoss, width: int, most: int, sight: ValueFunction
    ) -> None:
        if model.size**width > most:
            rule = f"leave at most {most} batches, to look ahead: boxes of batches cannot"
            raise InvalidParameter("width", width, rule)
        super().__init__(model, loss, width, 1, Method.OPTIMAL, most)
        check_sight(sight, model, loss.between(listed(model.size, width)), width)
        self._sight = sight
        self._sights = lru_cache(maxsize=None)(self._of_length)

    def _of_length(self, length: int) -> tuple[Ints, FarSight]:
        """Batches of a length, and sight for them: what follows is worth the same."""
        patterns = listed(self.chain.size, length)
        if length == self._width:
            return patterns, FarSight(self._sight)
        losses = self._loss.between(patterns).matrix
        return patterns, FarSight(self._sight, of_batches(self._sight.transition, losses, length))

    def _solve(self, task: Task) -> StepDesign:
        partition = Patterns(self.chain, Belief(task.numbers, task.axis), task.length)
        patterns, sight = self._sights(task.length)
        masses = checks.belief("belief", partition.masses)
        cap = self._sight.epsilon * task.length / self._width
        found = sight.design(masses, min(task.epsilon, cap), task.ldp)
        return StepDesign(partition, found.design, patterns[found.symbols], exact=False)


class LastPattern(_Batches):
    """Beliefs about the library's pattern of the last batch."""

    def __init__(
        self, library: PatternLibrary, loss: BatchLoss, width: int, method: Method, most: int
    ) -> None:
        if width != library.width:
            raise InvalidParameter("width", width, f"be that of the library, {library.width}")
        super().__init__(library.chain, len(library.alphabet), width, most)
        self._library, self._loss, self._method = library, loss, method

    def first(self) -> Belief:
        """Belief before the first value."""
        return self._library.first()

    def passed(self, belief: Belief, length: int) -> Belief:
        """Belief after a batch that told nothing."""
        masses, error = self._library.ahead(belief, length)
        return self._library.after(masses, length, np.ones(masses.size), error)

    def batches(self) -> Iterator[Ints]:
        """The batches of each length that can be released."""
        library = self._library
        lengths = range(1, library.width + 1)
        return (library.patterns[library.of_length(length), :length] for length in lengths)

    def _solve(self, task: Task) -> StepDesign:
        partition = LibraryPatterns(self._library, Belief(task.numbers), task.length)
        patterns = self._library.patterns[self._library.of_length(task.length), : task.length]
        loss = self._loss.between(patterns)
        # The loss is that of the kept patterns, not of the batches that are taken for them.
        asked = (self._method, task.epsilon, task.ldp)
        return solved(partition, patterns, loss, *asked, exact=False)


class NextBatch(_Batches):
    """Beliefs about the next whole batch, for a compiled policy."""

    def __init__(
        self, model: MarkovChain, loss: BatchLoss, width: int, method: Method, most: int
    ) -> None:
        super().__init__(chain_of_batches(model, width), model.size, width, most)
        self._model, self._loss, self._width, self._method = model, loss, width, method
        self.patterns = listed(model.size, width)
        self.loss = loss.between(self.patterns)

    def partition(self, belief: Belief) -> WholeBatches:
        """Every whole batch is a cell."""
        return WholeBatches(self.chain, belief, self._model.size)

    def first(self) -> Belief:
        """Belief before the first value."""
        # Probabilities of batches are products, each off by some roundings.
        return replace(self.chain.first(), drift=self._width * (4 * self._model.size + 8) * UNIT)

    def passed(self, belief: Belief, length: int) -> Belief:
        """Belief after a batch that told nothing."""
        if length == self._width:
            return self.chain.following(belief)
        begun = ShortBatches(self._model, belief, self._width, length)
        return begun.after(np.ones(begun.masses.size))

    def batches(self) -> Iterator[Ints]:
        """The batches of each length that can be released."""
        return (listed(self._model.size, length) for length in range(1, self._width + 1))

    def _solve(self, task: Task) -> StepDesign:
        belief = Belief(task.numbers)
        partition: Partition = self.partition(belief)
        patterns, loss = self.patterns, self.loss
        if task.length < self._width:
            partition = ShortBatches(self._model, belief, self._width, task.length)
            patterns = listed(self._model.size, task.length)
            loss = self._loss.between(patterns)
        return solved(partition, patterns, loss, self._method, task.epsilon, task.ldp)


class NextBatchAhead(NextBatch):
    """Beliefs about the next whole batch, which leaves with a signal, for a compiled policy.

    A shorter batch, at the end of a stream, is the best one for itself.

    Args:
        model: How values follow each other.
        loss: Of batches.
        width: Values of a batch.
        most: Batches up to which they are listed.
        sight: What beliefs are worth where every batch is a symbol.
    """

    def __init__(
        self, model: MarkovChain, loss: BatchLoss, width: int, most: int, sight: ValueFunction
    ) -> None:
        super().__init__(model, loss, width, Method.OPTIMAL, most)
        check_sight(sight, self.chain, self.loss, 1)
        self._cap, self._sight = sight.epsilon, FarSight(sight)

    def _solve(self, task: Task) -> StepDesign:
        if task.length < self._width:
            return super()._solve(task)
        partition = self.partition(Belief(task.numbers))
        masses = checks.belief("belief", partition.masses)
        found = self._sight.design(masses, min(task.epsilon, self._cap), task.ldp)
        return StepDesign(partition, found.design, self.patterns[found.symbols], exact=False)
