"""Every kind of plan keeps the laws of a release: one class each."""

from functools import cache
from typing import Any

from sfumato import Method, PatternLibrary, Plan, Policy, compile_policy, loss
from sfumato.core.budgets import Budget
from sfumato.solver.value_function import ValueFunction
from sfumato.solver.value_iteration import Effort
from sfumato.stream.look_ahead import look_ahead
from sfumato.stream.partition.batch_loss import BatchLoss, additive, histogram
from tests.contracts.release_laws import LETTERS, ReleaseLaws

HAMMING = loss.hamming(LETTERS.alphabet)
LIBRARY = PatternLibrary.fit(["abcabcaabbcc" * 4, "aabbccabc" * 5], width=2)


@cache
def policy(width: int) -> Policy:
    """Channels for an even share of the budgets of the laws."""
    each = HAMMING if width == 1 else additive(HAMMING)
    return compile_policy(LETTERS, each, 0.5 * width, width=width, steps=100)


class TestValues(ReleaseLaws):
    """The instantaneous release."""

    def plan(self, budget: Budget, **options: Any) -> Plan:
        return Plan(LETTERS, budget, HAMMING, **options)


class TestCompiledValues(ReleaseLaws):
    """The same with a policy, alone and in a fleet."""

    drivers = ("rule", "fleet")

    def plan(self, budget: Budget, **options: Any) -> Plan:
        return Plan(LETTERS, budget, HAMMING, policy=policy(1), **options)


@cache
def sight() -> ValueFunction:
    """What beliefs are worth under an even share of the budgets of the laws."""
    little = Effort(beliefs=(20,), depths=(12,), walked=120, judged=200)
    return look_ahead(LETTERS, HAMMING, 0.5, effort=little)


class TestFarSighted(ReleaseLaws):
    """Values that leave with a signal of what will follow them."""

    def plan(self, budget: Budget, **options: Any) -> Plan:
        return Plan(LETTERS, budget, HAMMING, method=Method.FAR_SIGHTED, sight=sight(), **options)


@cache
def sighted_policy() -> Policy:
    """Far-sighted channels for an even share of the budgets of the laws."""
    method = Method.FAR_SIGHTED
    return compile_policy(LETTERS, HAMMING, 0.5, method=method, sight=sight(), steps=100)


class TestCompiledFarSighted(ReleaseLaws):
    """The same with a policy, alone and in a fleet."""

    drivers = ("rule", "fleet")

    def plan(self, budget: Budget, **options: Any) -> Plan:
        far = Method.FAR_SIGHTED
        return Plan(LETTERS, budget, HAMMING, method=far, policy=sighted_policy(), **options)


class TestBatchesOfOne(ReleaseLaws):
    """A batch of one value, which is charged as a batch."""

    def plan(self, budget: Budget, **options: Any) -> Plan:
        return Plan(LETTERS, budget, additive(HAMMING), **options)


class Batches(ReleaseLaws):
    """Batches of two or three values."""

    losses: BatchLoss = additive(HAMMING)
    listed = 4096
    length = 2

    def plan(self, budget: Budget, **options: Any) -> Plan:
        return Plan(LETTERS, budget, self.losses, self.length, listed=self.listed, **options)


class TestPatterns(Batches):
    """Every batch is a cell."""


class TestHistograms(Batches):
    """Histograms are the cells."""

    losses, length = histogram(LETTERS.alphabet), 3


class TestBoxes(Batches):
    """Boxes of batches are the cells."""

    listed, length = 5, 3


class TestLibraryPatterns(ReleaseLaws):
    """Patterns of a library are the cells."""

    def plan(self, budget: Budget, **options: Any) -> Plan:
        return Plan(LIBRARY, budget, additive(loss.hamming(LIBRARY.alphabet)), 2, **options)


class TestCompiledBatches(ReleaseLaws):
    """Whole batches with a policy, alone and in a fleet."""

    drivers = ("rule", "fleet")

    def plan(self, budget: Budget, **options: Any) -> Plan:
        return Plan(LETTERS, budget, additive(HAMMING), 2, policy=policy(2), **options)
