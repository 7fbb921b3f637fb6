"""Beliefs of releases value by value: about the next value, or the last one.

Under a chain that changes with time it is about the last value (`LastValue`), until the phase of
the next one is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Ints
from sfumato.core.belief import Belief, Model
from sfumato.core.channel import Channel
from sfumato.core.loss import Loss
from sfumato.models.markov import MarkovChain
from sfumato.models.periodic import PeriodicChain
from sfumato.models.prior_sets import PriorBox
from sfumato.solver.design_methods import Method, design
from sfumato.solver.design_result import Design, silent
from sfumato.solver.far_sighted import FarSight, SightedDesign
from sfumato.solver.value_function import ValueFunction
from sfumato.stream.partition.belief_space import BeliefSpace, check_sight
from sfumato.stream.partition.cells import StepDesign
from sfumato.stream.partition.patterns import PhasedValue, WholeBatches
from sfumato.stream.partition.robust_design import robust_design
from sfumato.stream.partition.robust_sight import Repair, robust_sighted

_CELLS = 4_000_000
"""How many numbers the designs may hold that are shared by streams that stand alike: some 32 MB,
enough for the beliefs that a chain of a few symbols visits again and again."""
_BOXES = 4096
"""How many steps for boxes of beliefs are kept, some 1.5 kB each. Streams stand alike for their
first values alone: later boxes have a history of their own, and hardly come again."""


class NextValue(BeliefSpace):
    """Beliefs about the next value, which leaves alone."""

    def __init__(self, model: Model, loss: Loss, method: Method) -> None:
        self.chain, self.loss, self._method = model, loss, method
        self.patterns: Ints = np.arange(len(loss))[:, None]
        kept = max(64, _CELLS // len(loss) ** 2)
        self._designs = lru_cache(maxsize=kept)(self._solve)
        self._robust_designs = lru_cache(maxsize=min(kept, _BOXES))(self._solve_robust)

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
        self,
        belief: Belief,
        beliefs: PriorBox,
        epsilon: float,
        ldp: float | None,
        repair: Repair = Repair.WHOLE,
    ) -> StepDesign:
        """The channel of a step that keeps its budget for every belief of a box.

        What looks at one step is mixed whole: plans refuse another `repair` there.
        """
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
        kept = max(64, _CELLS // len(loss) ** 2)
        self._steps = lru_cache(maxsize=kept)(self._look)
        self._robust_steps = lru_cache(maxsize=min(kept, _BOXES))(self._look_robustly)

    def design(
        self, belief: Belief, length: int, recalled: int, epsilon: float, ldp: float | None
    ) -> StepDesign:
        """The channel of a step, from symbols to signals."""
        partition = self.partition(belief)
        key = belief.joint.tobytes(), belief.axis, min(epsilon, self._cap), ldp
        found = self._steps(*key, partition.masses.tobytes())
        return StepDesign(partition, found.design, found.symbols[:, None], exact=False)

    def robust(
        self,
        belief: Belief,
        beliefs: PriorBox,
        epsilon: float,
        ldp: float | None,
        repair: Repair = Repair.WHOLE,
    ) -> StepDesign:
        """The channel of a step, to signals, that keeps its budget for every belief of a box."""
        partition = self.partition(belief)
        bounds = (beliefs.lower.tobytes(), beliefs.upper.tobytes())
        spent = min(epsilon, self._cap)
        found = self._robust_steps(partition.masses.tobytes(), *bounds, spent, ldp, repair)
        return StepDesign(partition, found.design, found.symbols[:, None], exact=False)

    def _look_robustly(
        self,
        masses: bytes,
        lower: bytes,
        upper: bytes,
        epsilon: float,
        ldp: float | None,
        repair: Repair,
    ) -> SightedDesign:
        middle, *bounds = (np.frombuffer(part) for part in (masses, lower, upper))
        return robust_sighted(self._sights[0], middle, PriorBox(*bounds), epsilon, ldp, repair)

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
