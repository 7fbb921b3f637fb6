"""What every model of a stream keeps; the test of a new model inherits these laws.

A subclass says how the model is made and, in plain Python, how probable every sequence of its
values is. Beliefs are then compared with the sums over all sequences.
"""

import itertools
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import pytest

from sfumato.core.belief import Belief
from sfumato.store.codec import from_bytes, to_bytes

LENGTH = 4
"""Values of the longest sequence: enough to look back over every order in use."""


class ModelLaws(ABC):
    """The laws. Models under test have few symbols: all sequences are listed."""

    @abstractmethod
    def model(self) -> Any:
        """A small model with a floor."""

    @abstractmethod
    def other(self) -> Any:
        """Nearly the same model."""

    @abstractmethod
    def sequences(self, model: Any, length: int) -> dict[tuple[int, ...], float]:
        """Probability of every sequence of so many values, by other means."""

    def posterior(self, model: Any, likelihoods: list[Any], moment: int) -> Any:
        """Distribution of the value of a moment given one output of each moment before it."""
        masses = np.zeros(len(model.alphabet))
        for path, probability in self.sequences(model, moment + 1).items():
            told = [row[x] for row, x in zip(likelihoods, path, strict=False)]
            masses[path[moment]] += probability * np.prod(told)
        return masses / masses.sum()

    def test_every_value_is_possible_at_every_moment(self) -> None:
        model = self.model()
        assert model.full_support
        belief = model.first()
        for _ in range(LENGTH):
            assert belief.marginal.min() > 0
            assert belief.marginal.sum() == pytest.approx(1, abs=1e-12)
            sure = np.zeros(len(model.alphabet))
            sure[0] = 1
            belief = model.following(belief.update(sure))

    @pytest.mark.parametrize("seed", range(4))
    def test_beliefs_are_those_of_the_list_of_all_sequences(self, seed: int) -> None:
        model, rng = self.model(), np.random.default_rng(seed)
        likelihoods: list[Any] = []
        belief: Belief = model.first()
        for moment in range(LENGTH):
            expected = self.posterior(model, likelihoods, moment)
            assert belief.marginal == pytest.approx(expected, rel=1e-9)
            # Exact to the drift that a certificate is charged for.
            assert np.ptp(np.log(belief.marginal / expected)) <= 2 * belief.error + 1e-13
            likelihoods.append(rng.uniform(0.05, 1, len(model.alphabet)))
            belief = model.following(belief.update(likelihoods[-1]))

    def test_all_sequences_together_have_probability_one(self) -> None:
        """A law of the oracle: what it lists is a distribution."""
        for length in range(1, LENGTH + 1):
            assert sum(self.sequences(self.model(), length).values()) == pytest.approx(1)

    def test_bytes_bring_the_same_model_back(self) -> None:
        model = self.model()
        again = from_bytes(to_bytes(model), type(model))
        assert again.fingerprint == model.fingerprint
        assert np.array_equal(again.first().joint, model.first().joint)
        assert to_bytes(again) == to_bytes(model)

    def test_models_that_differ_have_other_fingerprints(self) -> None:
        assert self.model().fingerprint == self.model().fingerprint
        assert self.model().fingerprint != self.other().fingerprint


def all_paths(size: int, length: int) -> list[tuple[int, ...]]:
    """Every sequence of so many symbols."""
    return list(itertools.product(range(size), repeat=length))
