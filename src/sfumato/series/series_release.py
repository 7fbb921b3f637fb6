"""Real-valued series: what every method of releasing one has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import StrEnum
from typing import ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.digest import digest, fields_content
from sfumato.core.errors import InsecureRandomness, InvalidParameter
from sfumato.core.guarantees import ApproxDP, PureDP
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Domain, Randomness, StreamCoins


class Unit(StrEnum):
    """Whose data are protected together.

    Attributes:
        USER: All values of a person, who may be in every one of them.
        EVENT: One value; who is in several is protected in each of them alone.
        WINDOW: Any few successive values.

    Examples:
        >>> Unit.EVENT.value
        'event level'
    """

    USER = "user level"
    EVENT = "event level"
    WINDOW = "w-event level"


class Releasing(Protocol):
    """A series that is being released, value by value."""

    def step(self, value: float) -> float:
        """Release one value: the true one goes in, the private one comes out."""


Running = TypeVar("Running", bound=Releasing, covariant=True)
"""A series on its way, of the kind that a method makes."""


class SeriesMethod(ABC, Generic[Running]):
    """A way to release a series of numbers, for a stated sensitivity of every value.

    Attributes:
        name: What tables and commands call it.
        unit: Whose data are protected together.
        online: Whether each value leaves when it comes; else the whole series is needed first.
    """

    name: ClassVar[str]
    unit: Unit = Unit.USER
    online: ClassVar[bool] = True

    @property
    @abstractmethod
    def guarantee(self) -> PureDP | ApproxDP:
        """What the whole series promises, computed from the noise that is drawn."""

    def begin(
        self,
        randomness: Randomness,
        *,
        name: str | None = None,
        purpose: Purpose = Purpose.RELEASE,
    ) -> Running:
        """Begin a series, to be released value by value; offline methods refuse.

        Args:
            randomness: Source of coins.
            name: Of the series; needed with keyed coins, which are one set for each name.
            purpose: A simulation may use seeded coins; a release may not.
        """
        return self._begin(self.own_coins(randomness, name, purpose))

    def release(
        self,
        series: ArrayLike,
        randomness: Randomness,
        purpose: Purpose = Purpose.RELEASE,
        *,
        name: str | None = None,
    ) -> Floats:
        """Release a whole series; online methods look at one value at a time."""
        return self._released(checked_series(series), self.own_coins(randomness, name, purpose))

    @property
    def fingerprint(self) -> str:
        """Identifies the method and all its parameters."""
        return digest(self.name, fields_content(self))

    def own_coins(self, randomness: Randomness, name: str | None, purpose: Purpose) -> StreamCoins:
        """The coins of one series under this method, or why there are none.

        Another method, or the same one with another budget, has other coins: two releases of a
        value with the same ones would give it away. A simulation has others than a release.
        """
        if randomness.simulated and purpose is not Purpose.SIMULATION:
            raise InsecureRandomness("a release of a series")
        if name is None and randomness.addressed:
            if not randomness.simulated:
                rule = "be given, with keyed coins: one set for each series"
                raise InvalidParameter("name", None, rule)
            name = f"simulated {randomness.word()}"  # one after the other from one seed
        plan = digest("series plan", self.fingerprint, purpose.value)
        return StreamCoins(randomness, Domain.SERIES, plan, name or "")

    @abstractmethod
    def _begin(self, coins: StreamCoins) -> Running:
        """Begin a series with coins of its own."""

    def _released(self, values: Floats, coins: StreamCoins) -> Floats:
        releasing = self._begin(coins)
        return np.array([releasing.step(float(value)) for value in values])


def checked_series(series: ArrayLike) -> Floats:
    """A series of finite numbers, or what must hold; no value is quoted."""
    values = checks.numbers("series", series)
    if values.ndim != 1 or values.size == 0:
        raise InvalidParameter("series", values.shape, "be a list of at least one number")
    return values
