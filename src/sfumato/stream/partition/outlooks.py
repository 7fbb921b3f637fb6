"""What the belief of a batched release is about, and how its channels follow from it.

Usually it is about the next value. Under a library it is about the pattern of the last batch; under
a compiled policy, about the next whole batch. A `BatchedPlan` treats the three alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.belief import Belief
from sfumato.core.errors import InvalidParameter
from sfumato.core.numerics import UNIT
from sfumato.models.library import PatternLibrary
from sfumato.models.markov import MarkovChain
from sfumato.solver.design_methods import Method, design
from sfumato.stream.partition.batch_beliefs import chain_of_batches
from sfumato.stream.partition.batch_design import check_design, design_batch
from sfumato.stream.partition.batch_loss import BatchLoss, listed
from sfumato.stream.partition.library_patterns import design_kept
from sfumato.stream.partition.patterns import BatchDesign, Begun, Believed, Parts


@dataclass(frozen=True, slots=True)
class Task:
    """What a batch of some length asks for; hashable, so that equal ones are solved once.

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


class Outlook(Protocol):
    """What beliefs are about."""

    @property
    def chain(self) -> MarkovChain:
        """The chain that a belief is carried through."""

    def first(self) -> Belief:
        """Belief before the first value."""

    def passed(self, belief: Belief, length: int) -> Belief:
        """Belief after a batch that told nothing."""

    def batches(self) -> Iterator[Ints]:
        """The batches of each length that can be released."""

    def design(self, task: Task) -> BatchDesign:
        """The channel of a batch."""


class OfValues:
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
        self.chain = model.lifted(max(model.order, back + 1)) if back else model
        self._more = self.chain.order - model.order
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

    def design(self, task: Task) -> BatchDesign:
        """The channel of a batch."""
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


class OfPatterns:
    """Beliefs about the kept pattern of the last batch, under a library."""

    def __init__(self, model: PatternLibrary, loss: BatchLoss, width: int, method: Method) -> None:
        if width != model.width:
            raise InvalidParameter("width", width, f"be that of the library, {model.width}")
        self.chain = model.chain
        self._library, self._loss, self._method = model, loss, method

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

    def design(self, task: Task) -> BatchDesign:
        """The channel of a batch."""
        return design_kept(
            self._library,
            Belief(task.numbers),
            task.length,
            self._loss,
            task.epsilon,
            ldp=task.ldp,
            method=self._method,
        )


class OfBatches:
    """Beliefs about the next whole batch, for a compiled policy."""

    def __init__(self, model: MarkovChain, loss: BatchLoss, width: int, method: Method) -> None:
        self.chain = chain_of_batches(model, width)
        self._model, self._loss, self._width, self._method = model, loss, width, method
        self.patterns = listed(model.size, width)
        self.loss = loss.between(self.patterns)

    def first(self) -> Belief:
        """Belief before the first value."""
        # Probabilities of batches are products, each off by some roundings.
        return replace(self.chain.first(), drift=self._width * (4 * self._model.size + 8) * UNIT)

    def passed(self, belief: Belief, length: int) -> Belief:
        """Belief after a batch that told nothing."""
        if length == self._width:
            return self.chain.following(belief)
        begun = Begun(self._model, belief, self._width, length)
        return begun.after(np.ones(begun.masses.size))

    def batches(self) -> Iterator[Ints]:
        """The batches of each length that can be released."""
        return (listed(self._model.size, length) for length in range(1, self._width + 1))

    def believed(self, belief: Belief) -> Believed:
        """The parts of a whole batch."""
        return Believed(self.chain, belief, self._model.size)

    def design(self, task: Task) -> BatchDesign:
        """The channel of a batch."""
        belief = Belief(task.numbers)
        parts: Parts = self.believed(belief)
        patterns, loss = self.patterns, self.loss
        if task.length < self._width:
            parts = Begun(self._model, belief, self._width, task.length)
            patterns = listed(self._model.size, task.length)
            loss = self._loss.between(patterns)
        found = design(self._method, parts.masses, loss, task.epsilon, ldp=task.ldp)
        return BatchDesign(parts, found, patterns, exact=True)
