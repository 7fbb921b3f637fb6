"""What is released at one moment: a mechanism with a pure leakage, made for a budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from sfumato.core import checks
from sfumato.core.alphabet import Alphabet
from sfumato.core.arrays import Ints
from sfumato.core.digest import digest
from sfumato.core.errors import InvalidParameter
from sfumato.core.randomness import Randomness
from sfumato.noise.frequency import KaryResponse
from sfumato.noise.geometric import DiscreteLaplace

MOVED = 2
"""A person who moves leaves one count and enters another."""


class Mechanism(Protocol):
    """One release: what it leaks of the value of one person, and how it is drawn.

    It may have a method `check` that refuses a value before anything is charged. With keyed or
    seeded coins it is a dataclass, or has a `fingerprint`: what it draws depends on that.
    """

    @property
    def epsilon(self) -> float:
        """Its leakage, pure, exact or rounded up."""

    def __call__(self, value: Any, randomness: Randomness) -> Any:
        """Draw a release of a value."""


Maker = Callable[[float], Mechanism]
"""Makes a mechanism for a budget; what it leaks in fact may be less."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of people, each with two-sided geometric noise.

    Attributes:
        noise: What is added to every count.
        sensitivity: By how much one person's value changes all counts of a moment together.

    Examples:
        >>> from sfumato.core.randomness import secure
        >>> noisy = Counts.of(sensitivity=1)(0.5)
        >>> noisy.epsilon <= 0.5, noisy([7, 3], secure()).shape
        (True, (2,))
    """

    noise: DiscreteLaplace
    sensitivity: int = MOVED

    @classmethod
    def of(cls, sensitivity: int = MOVED) -> Maker:
        """Noisy counts for any budget."""
        apart = checks.count("sensitivity", sensitivity)
        # Noise of a count is for a change by 1; a person may change several.
        return lambda budget: cls(DiscreteLaplace.at(budget / apart), apart)

    @property
    def epsilon(self) -> float:
        """For one person who has another value."""
        return self.noise.leakage(self.sensitivity).epsilon

    @staticmethod
    def check(value: Sequence[int]) -> None:
        """Refuse what is no whole number; it is not quoted."""
        if not all(float(count).is_integer() and abs(count) <= 2**53 for count in value):
            raise InvalidParameter("counts", "others", "be whole numbers")

    def __call__(self, value: Sequence[int], randomness: Randomness) -> Ints:
        """The noisy counts; unbiased whole numbers, maybe negative."""
        counts = np.asarray(value, dtype=np.int64)
        return np.asarray(counts + self.noise.draw(counts.size, randomness))


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of the values of many people, with two-sided geometric noise.

    Attributes:
        alphabet: The values a person can have.
        noise: What is added to every count.

    Examples:
        >>> from sfumato.core.randomness import secure
        >>> make = Histogram.of(Alphabet("ab"))
        >>> make(0.5).epsilon <= 0.5, make(0.5)(["a", "b", "b"], secure()).shape
        (True, (2,))
    """

    alphabet: Alphabet
    noise: DiscreteLaplace

    @classmethod
    def of(cls, alphabet: Alphabet) -> Maker:
        """Histograms of people's values, for any budget."""
        return lambda budget: cls(alphabet, DiscreteLaplace.at(budget / MOVED))

    @property
    def epsilon(self) -> float:
        """For one person who has another value."""
        return self.noise.leakage(MOVED).epsilon

    def check(self, value: Sequence[object]) -> None:
        """Refuse values outside the alphabet; they are not quoted."""
        self.alphabet.indices(list(value))

    def __call__(self, value: Sequence[object], randomness: Randomness) -> Ints:
        """The noisy counts; unbiased whole numbers, maybe negative."""
        counts = np.bincount(self.alphabet.indices(list(value)), minlength=len(self.alphabet))
        return Counts(self.noise)(counts.tolist(), randomness)


@dataclass(frozen=True, slots=True)
class Answer:
    """One person's own value by k-ary randomised response.

    Attributes:
        alphabet: The values.
        response: The mechanism.

    Examples:
        >>> from sfumato.core.randomness import secure
        >>> make = Answer.of(Alphabet("ab"))
        >>> make(0.5).epsilon <= 0.5, make(0.5)("a", secure()) in "ab"
        (True, True)
    """

    alphabet: Alphabet
    response: KaryResponse

    @classmethod
    def of(cls, alphabet: Alphabet) -> Maker:
        """Responses for any budget."""
        return lambda budget: cls(alphabet, KaryResponse.at(len(alphabet), budget))

    @property
    def epsilon(self) -> float:
        """Whatever the value."""
        return self.response.local.epsilon

    def check(self, value: object) -> None:
        """Refuse a value outside the alphabet; it is not quoted."""
        self.alphabet.index(value)

    def __call__(self, value: object, randomness: Randomness) -> str | int:
        """A released symbol."""
        report = self.response.report([self.alphabet.index(value)], randomness)
        return self.alphabet.labels[int(np.flatnonzero(report[0])[0])]


@dataclass(frozen=True, slots=True)
class Measurement:
    """A measurement of OpenDP, or anything with `map` and a call; it brings its own coins.

    Attributes:
        measurement: The measurement.
        distance: How far apart two databases are that differ in one person's value.

    Examples:
        >>> class Exact:
        ...     def map(self, distance): return 0.5 * distance
        ...     def __call__(self, value): return value
        >>> Measurement(Exact(), 1).epsilon
        0.5
    """

    measurement: Any
    distance: Any

    @classmethod
    def of(cls, build: Callable[[float], Any], distance: Any) -> Maker:
        """Measurements for any budget: `build` makes one for an epsilon."""
        return lambda budget: cls(build(budget), distance)

    @property
    def epsilon(self) -> float:
        """What the measurement itself says."""
        told = float(self.measurement.map(self.distance))
        return checks.leakage("measurement.map(distance)", told)

    @property
    def fingerprint(self) -> str:
        """What is told of it; it takes no coins of ours."""
        return digest("measurement", self.epsilon)

    def __call__(self, value: Any, randomness: Randomness) -> Any:
        """Invoke the measurement."""
        return self.measurement(value)
