"""The laws of models, for every kind that a stream may have."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from sfumato.core.alphabet import Alphabet
from sfumato.core.belief import Belief
from sfumato.models.clustered_chain import ClusteredChain
from sfumato.models.cycle import Cycle
from sfumato.models.markov import MarkovChain
from sfumato.models.pair_chain import PairChain
from sfumato.models.periodic import PeriodicChain
from tests.contracts.model_laws import LENGTH, ModelLaws, all_paths
from tests.models import test_clustered_chain
from tests.models.test_pair_chain import joint_of_values
from tests.oracles.phased_sequences import phased_sequences

SIZE = 3


def rows(order: int, seed: int = 1) -> Any:
    """Rows of a chain of this order, one for each context."""
    return np.random.default_rng(seed).dirichlet(np.ones(SIZE), SIZE**order)


class ChainLaws(ModelLaws):
    """Chains of any order, with rows in full or as the few that are not background."""

    order: int
    dense: bool = True

    def model(self, seed: int = 1) -> MarkovChain:
        table = rows(self.order, seed)
        if self.dense:
            return MarkovChain.from_matrix(table, floor=0.02)
        few = np.where(table == table.max(axis=1, keepdims=True), 1.0, 0.0)
        return MarkovChain.from_matrix(sparse.csr_array(few), floor=0.02)

    def other(self) -> MarkovChain:
        return self.model(seed=2)

    def sequences(self, model: Any, length: int) -> dict[tuple[int, ...], float]:
        table, initial = model.transition(), model.initial
        found: dict[tuple[int, ...], float] = {}
        for path in all_paths(SIZE, max(length, self.order)):
            probability = float(initial[path[: self.order]])
            for moment in range(self.order, len(path)):
                context = 0
                for symbol in path[moment - self.order : moment]:
                    context = context * SIZE + symbol
                probability *= float(table[context, path[moment]])
            found[path[:length]] = found.get(path[:length], 0.0) + probability
        return found


class TestOrderOne(ChainLaws):
    order = 1


class TestOrderOneSparse(ChainLaws):
    order = 1
    dense = False


class TestOrderTwo(ChainLaws):
    order = 2


class TestOrderTwoSparse(ChainLaws):
    order = 2
    dense = False


class TestOrderThree(ChainLaws):
    order = 3


class TestPairs(ModelLaws):
    """A chain over the pairs that occur: hidden states."""

    def model(self, seed: int = 1) -> PairChain:
        history = np.random.default_rng(seed).integers(SIZE, size=(6, 12)).tolist()
        return PairChain.fit(history)

    def other(self) -> PairChain:
        return self.model(seed=2)

    def sequences(self, model: Any, length: int) -> dict[tuple[int, ...], float]:
        return joint_of_values(model, length)


@dataclass(frozen=True)
class InPhases:
    """A chain that changes with time, walked along phases that everybody knows."""

    chain: PeriodicChain
    walked: list[int] = field(init=False, default_factory=list)

    @property
    def alphabet(self) -> Alphabet:
        return self.chain.alphabet

    @property
    def full_support(self) -> bool:
        return self.chain.full_support

    @property
    def fingerprint(self) -> str:
        return self.chain.fingerprint

    def first(self) -> Belief:
        self.walked[:] = [PHASES[0]]
        return self.chain.arrived(None, PHASES[0])

    def following(self, belief: Belief) -> Belief:
        self.walked.append(PHASES[len(self.walked) % len(PHASES)])
        return self.chain.arrived(belief, self.walked[-1])


PHASES = (2, 0, 0, 1)
"""At any hour, and not in turn."""


class TestPhases(ModelLaws):
    """A chain that changes with time, in phases that come irregularly."""

    def model(self, seed: int = 1) -> InPhases:
        rng = np.random.default_rng(seed)
        tables, starts = rng.dirichlet(np.ones(SIZE), (3, SIZE)), rng.dirichlet(np.ones(SIZE), 3)
        hours = Cycle.of("hour", 3)
        return InPhases(PeriodicChain.from_matrices(list(tables), hours, starts, floor=0.02))

    def other(self) -> InPhases:
        return self.model(seed=2)

    def sequences(self, model: Any, length: int) -> dict[tuple[int, ...], float]:
        chain = model.chain
        tables = [chain.at(phase).transition() for phase in range(3)]
        assert length <= LENGTH == len(PHASES)
        joint = phased_sequences(chain.initial, tables, PHASES[:length])
        return {path: float(chance) for path, chance in joint.items()}


class TestClusters(ModelLaws):
    """A mixture of chains: each stream follows one of them, and may change it."""

    def model(self, seed: int = 1) -> ClusteredChain:
        return test_clustered_chain.mixture(seed)

    def other(self) -> ClusteredChain:
        return self.model(seed=2)

    def sequences(self, model: Any, length: int) -> dict[tuple[int, ...], float]:
        return test_clustered_chain.joint_of_values(model, length)
