"""Independent values with one known distribution: a chain without memory."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from sfumato.core import checks
from sfumato.core.alphabet import Alphabet
from sfumato.core.arrays import Floats, Ints
from sfumato.core.belief import Belief
from sfumato.core.digest import digest
from sfumato.core.randomness import Randomness, sampled


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """Every value is drawn anew from `probabilities`.

    Examples:
        >>> coin = Prior([0.7, 0.3])
        >>> coin.following(coin.first()).marginal
        array([0.7, 0.3])
    """

    probabilities: Floats
    alphabet: Alphabet

    def __init__(self, probabilities: ArrayLike, alphabet: Alphabet | None = None) -> None:
        checked = checks.probabilities(
            "probabilities", probabilities, None if alphabet is None else len(alphabet)
        )
        object.__setattr__(self, "probabilities", checked)
        object.__setattr__(self, "alphabet", alphabet or Alphabet.of_size(checked.size))

    @property
    def fingerprint(self) -> str:
        """Identifies the model."""
        return digest("prior", self.alphabet.fingerprint, self.probabilities)

    @property
    def full_support(self) -> bool:
        """Whether every value is possible."""
        return bool(self.probabilities.min() > 0)

    def first(self) -> Belief:
        """Belief about the first value."""
        return Belief(self.probabilities)

    def following(self, belief: Belief) -> Belief:
        """Belief about the next value: what came before says nothing about it."""
        return self.first()

    def sample(self, length: int, randomness: Randomness) -> Ints:
        """Draw a sequence of symbol places, for simulations."""
        return sampled(self.probabilities, randomness.words(checks.count("length", length)))
