"""The laws of models, for every kind that a stream may have."""

from typing import Any

import numpy as np
from scipy import sparse

from sfumato.models.markov import MarkovChain
from sfumato.models.pair_chain import PairChain
from tests.contracts.model_laws import ModelLaws, all_paths
from tests.models.test_pair_chain import joint_of_values

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
