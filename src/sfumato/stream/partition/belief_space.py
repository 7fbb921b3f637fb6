"""What the belief of a stream is about, and how the channel of a step follows from it.

A `Plan` treats all alike: see `value_spaces` and `batch_spaces`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from sfumato.core.arrays import Ints
from sfumato.core.belief import Belief, Model
from sfumato.core.errors import InvalidParameter
from sfumato.core.loss import Loss
from sfumato.models.markov import MarkovChain
from sfumato.solver.value_function import ValueFunction
from sfumato.stream.partition.cells import StepDesign


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


def check_sight(sight: ValueFunction, chain: MarkovChain, loss: Loss, width: int) -> None:
    """Refuse a value function that was made for something else."""
    asked = (chain.fingerprint, loss.fingerprint, width)
    if (sight.chain, sight.loss, sight.width) != asked:
        rule = "be made for this chain, loss and length of batch"
        raise InvalidParameter("sight", "that of others", rule)
