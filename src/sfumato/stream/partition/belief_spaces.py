"""What the belief of a stream is about, and how the channel of a step follows from it.

Usually it is about the next value: of a release value by value (`NextValue`), or of one in batches
(`NextValues`). Under a chain that changes with time it is about the last value (`LastValue`), until
the phase of the next one is known. Under a library it is about the pattern of the last batch
(`LastPattern`); under a policy for batches, about the next whole batch (`NextBatch`). A `Plan`
treats all alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Floats, Ints
from sfumato.core.belief import Belief, Model
from sfumato.core.budgets import USELESS_BELOW
from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter
from sfumato.core.loss import Loss
from sfumato.core.numerics import UNIT
from sfumato.models.library import PatternLibrary
from sfumato.models.markov import MarkovChain
from sfumato.models.periodic import PeriodicChain
from sfumato.models.prior_sets import PriorBox
from sfumato.solver.design_methods import Method, design
from sfumato.solver.design_result import Design, silent
from sfumato.solver.far_sighted import FarSight, SightedDesign
from sfumato.solver.outlook import of_batches
from sfumato.solver.policy import Policy
from sfumato.solver.value_function import ValueFunction
from sfumato.stream.partition.batch_beliefs import chain_of_batches
from sfumato.stream.partition.batch_design import check_design, design_batch
from sfumato.stream.partition.batch_loss import BatchLoss, as_batch_loss, listed
from sfumato.stream.partition.cells import Partition, StepDesign, muted, solved
from sfumato.stream.partition.library_patterns import LibraryPatterns
from sfumato.stream.partition.patterns import Patterns, PhasedValue, ShortBatches, WholeBatches
from sfumato.stream.partition.robust_design import robust_design

_VALUE_CELLS, _BATCH_CELLS = 4_000_000, 8_000_000
"""How many numbers the designs may hold that are shared by streams that stand alike: some 32 and 64
MB, enough for the beliefs that a chain of a few symbols visits again and again."""
_LEAST_MASS = 1e-200
"""Below this a product with a 62-bit weight may be subnormal, and its error unknown."""


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


class BeliefSpace(ABC):
    """What beliefs are about.

    Attributes:
        chain: How what they are about moves on.
    """

    chain: Model

    @abstractmethod
    def first(self) -> Belief:
        """Belief before the first value."""

    @abstractmethod
    def passed(self, belief: Belief, length: int) -> Belief:
        """Belief after a batch that told nothing."""

    @abstractmethod
    def batches(self) -> Iterator[Ints]:
        """The batches of each length that can be released."""

    @abstractmethod
    def error(self, belief: Belief, length: int) -> float:
        """A bound on rounding errors of the partition that is known before the partition is."""

    @abstractmethod
    def design(
        self, belief: Belief, length: int, recalled: int, epsilon: float, ldp: float | None
    ) -> StepDesign:
        """The channel of a step; shared by streams that stand alike."""

    @abstractmethod
    def silent(self, belief: Belief, length: int, recalled: int) -> StepDesign:
        """The constant that leaves where the budget is too small to tell anything with."""


class NextValue(BeliefSpace):
    """Beliefs about the next value, which leaves alone."""

    def __init__(self, model: Model, loss: Loss, method: Method) -> None:
        self.chain, self.loss, self._method = model, loss, method
        self.patterns: Ints = np.arange(len(loss))[:, None]
        kept = max(64, _VALUE_CELLS // len(loss) ** 2)
        self._designs = lru_cache(maxsize=kept)(self._solve)
        self._robust_designs = lru_cache(maxsize=kept)(self._solve_robust)

    def partition(self, belief: Belief) -> WholeBatches:
        """Every value is a cell."""
        return WholeBatches(self.chain, belief, len(self.loss))

    def first(self) -> Belief:
        """Belief before the first value."""
        return self.chain.first()

    def passed(self, belief: Belief, length: int) -> Belief:
        """Belief after a batch that told nothing."""
        return self.chain.following(belief)

    def batches(self) -> Iterator[Ints]:
        """The batches of each length that can be released."""
        return iter([self.patterns])

    def error(self, belief: Belief, length: int) -> float:
        """A bound on rounding errors."""
        return belief.error

    def design(
        self, belief: Belief, length: int, recalled: int, epsilon: float, ldp: float | None
    ) -> StepDesign:
        """The channel of a step."""
        # Contexts with the same marginal share a channel; what they do to the belief is their own.
        partition = self.partition(belief)
        found = self._designs(partition.masses.tobytes(), epsilon, ldp)
        return StepDesign(partition, found, self.patterns, exact=True)

    def robust(
        self, belief: Belief, beliefs: PriorBox, epsilon: float, ldp: float | None
    ) -> StepDesign:
        """The channel of a step that keeps its budget for every belief of a box."""
        partition = self.partition(belief)
        bounds = (beliefs.lower.tobytes(), beliefs.upper.tobytes())
        found = self._robust_designs(partition.masses.tobytes(), *bounds, epsilon, ldp)
        return StepDesign(partition, found, self.patterns, exact=False)

    def _solve_robust(
        self, masses: bytes, lower: bytes, upper: bytes, epsilon: float, ldp: float | None
    ) -> Design:
        belief, *bounds = (np.frombuffer(part) for part in (masses, lower, upper))
        box = PriorBox(*bounds)
        return robust_design(self._method, belief, box, self.loss, epsilon, ldp)

    def silent(self, belief: Belief, length: int, recalled: int) -> StepDesign:
        """A constant."""
        found = silent(belief.marginal, self.loss)
        return StepDesign(self.partition(belief), found, self.patterns, exact=True)

    def _solve(self, belief: bytes, epsilon: float, ldp: float | None) -> Design:
        marginal = np.frombuffer(belief, dtype=np.float64)
        return design(self._method, marginal, self.loss, epsilon, ldp=ldp)


class LastValue(NextValue):
    """Beliefs about the last value, under a chain that changes with time.

    What they say of the next one follows when its phase is known (`arrived`).
    """

    def __init__(self, model: PeriodicChain, loss: Loss, method: Method) -> None:
        # The chain of a phase stands for all where only the alphabet matters.
        super().__init__(model.at(0), loss, method)
        self._model = model

    def partition(self, belief: Belief) -> PhasedValue:
        """Every value is a cell."""
        return PhasedValue(self.chain, belief, len(self.loss))

    def first(self) -> Belief:
        """Belief before the first value, of a stream that may begin in any phase."""
        return Belief(self._model.initial.mean(axis=0))

    def passed(self, belief: Belief, length: int) -> Belief:
        """Belief after a value that told nothing: the same, about the same value."""
        return belief

    def arrived(self, belief: Belief, sequence: int, phase: int) -> Belief:
        """Belief about the value of a moment, once its phase is known."""
        return self._model.arrived(belief if sequence else None, phase)


class NextValueAhead(NextValue):
    """Beliefs about the next value, which leaves alone with a signal of what will follow it.

    Args:
        chain: How values follow each other.
        loss: Of single values.
        sight: What beliefs are worth.
    """

    def __init__(self, chain: MarkovChain, loss: Loss, sight: ValueFunction) -> None:
        super().__init__(chain, loss, Method.FAR_SIGHTED)
        check_sight(sight, chain, loss, 1)
        self._cap = sight.epsilon
        # Until a chain of higher order has its first context, an earlier value is current.
        self._sights = [FarSight(sight, sight.outlook(axis)) for axis in range(chain.order)]
        kept = max(64, _VALUE_CELLS // len(loss) ** 2)
        self._steps = lru_cache(maxsize=kept)(self._look)

    def design(
        self, belief: Belief, length: int, recalled: int, epsilon: float, ldp: float | None
    ) -> StepDesign:
        """The channel of a step, from symbols to signals."""
        partition = self.partition(belief)
        key = belief.joint.tobytes(), belief.axis, min(epsilon, self._cap), ldp
        found = self._steps(*key, partition.masses.tobytes())
        return StepDesign(partition, found.design, found.symbols[:, None], exact=False)

    def silent(self, belief: Belief, length: int, recalled: int) -> StepDesign:
        """A constant, of one signal."""
        found = silent(belief.marginal, self.loss)
        constant = Channel(found.channel.weights, [0])
        patterns = found.channel.outputs[:, None]
        told = replace(found, channel=constant)
        return StepDesign(self.partition(belief), told, patterns, exact=False)

    def _look(
        self, joint: bytes, axis: int, epsilon: float, ldp: float | None, masses: bytes
    ) -> SightedDesign:
        marginal = checks.belief("belief", np.frombuffer(masses, dtype=np.float64))
        states = np.frombuffer(joint, dtype=np.float64)
        return self._sights[axis].design(states, epsilon, ldp, marginal)


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
        most_kept = max(4, _BATCH_CELLS // held)
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


def space_of(
    model: Model | PatternLibrary | PeriodicChain,
    loss: Loss | BatchLoss,
    width: int,
    memory: int,
    method: Method,
    most: int,
    policy: Policy | None,
    sight: ValueFunction | None = None,
) -> BeliefSpace:
    """What the beliefs of a plan are about; refuses plans that nothing fits."""
    if isinstance(model, PeriodicChain):
        if not isinstance(loss, Loss) or sight is not None or policy is not None:
            rule = "not change with time for batches, memories, policies and far-sighted streams"
            raise InvalidParameter("model", "a chain with phases", rule)
        return LastValue(model, loss, method)
    if sight is not None:
        if not isinstance(model, MarkovChain) or memory > 1:
            raise InvalidParameter("sight", "one", "be for a chain, without a memory")
        if policy is not None and isinstance(loss, Loss) and model.order > 1:
            raise InvalidParameter("policy", "one", "not be given: values depend on several before")
        if not isinstance(loss, Loss):
            if policy is None:
                return NextValuesAhead(model, loss, width, most, sight)
            batch = NextBatchAhead(model, loss, width, most, sight)
            _check_policy(policy, batch.chain, batch.loss, method)
            return batch
        ahead = NextValueAhead(model, loss, sight)
        if policy is not None:
            _check_policy(policy, model, loss, method)
        return ahead
    special = (memory > 1) + (policy is not None)
    if special > 1 or (special and isinstance(model, PatternLibrary)):
        name = "memory" if memory > 1 else "policy"
        rule = "be 1 with a library or a policy" if name == "memory" else "be one of a chain"
        raise InvalidParameter(name, memory if name == "memory" else "one", rule)
    if isinstance(model, PatternLibrary):
        return LastPattern(model, as_batch_loss(loss, len(model.alphabet)), width, method, most)
    if isinstance(loss, Loss):
        value = NextValue(model, loss, method)
        if policy is not None:
            _check_policy(policy, model, loss, method)
        return value
    if not isinstance(model, MarkovChain):
        raise InvalidParameter("model", "another", "be a chain or a library, for batches")
    if policy is None:
        return NextValues(model, loss, width, memory, method, most)
    whole = NextBatch(model, loss, width, method, most)
    _check_policy(policy, whole.chain, whole.loss, method)
    return whole


def check_sight(sight: ValueFunction, chain: MarkovChain, loss: Loss, width: int) -> None:
    """Refuse a value function that was made for something else."""
    asked = (chain.fingerprint, loss.fingerprint, width)
    if (sight.chain, sight.loss, sight.width) != asked:
        rule = "be made for this chain, loss and length of batch"
        raise InvalidParameter("sight", "that of others", rule)


def _check_policy(policy: Policy, model: Model, loss: Loss, method: Method) -> None:
    """Refuse a policy that was compiled for something else, or cannot be used with this model."""
    asked = (model.fingerprint, loss.fingerprint, method.value)
    compiled_for = (policy.chain, policy.loss, policy.method)
    if not isinstance(model, MarkovChain) or asked != compiled_for:
        rule = "be compiled for this chain, loss and method, and this length of batch"
        raise InvalidParameter("policy", "one made for something else", rule)
    if policy.size != model.size:
        raise InvalidParameter("policy", policy.size, f"be for {model.size} symbols")
    least = min(model.floor**model.order, float(model.initial.min()))
    if least < _LEAST_MASS:
        rule = f"keep every belief above {_LEAST_MASS:g} to be used with a policy; raise its floor"
        raise InvalidParameter("model", f"{least:g}", rule)
