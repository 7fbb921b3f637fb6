"""A constant for every value: nothing is told, and every other method has to beat it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sfumato.core import checks
from sfumato.core.guarantees import PureDP
from sfumato.core.randomness import StreamCoins
from sfumato.series.series_release import Releasing, SeriesMethod, checked_series


@dataclass(frozen=True, slots=True)
class Silence(SeriesMethod[Releasing]):
    """One public number, whatever the series is.

    Attributes:
        value: The number.

    Examples:
        >>> from sfumato.core.randomness import seeded
        >>> from sfumato.core.purpose import Purpose
        >>> Silence(5.0).release([1.0, 9.0], seeded(1), Purpose.SIMULATION)
        array([5., 5.])
        >>> Silence(5.0).guarantee
        PureDP(epsilon=0.0, delta=0.0)
    """

    name: ClassVar[str] = "silence"

    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", float(checks.numbers("value", self.value)))

    @property
    def guarantee(self) -> PureDP:
        """Nothing is told."""
        return PureDP(0.0)

    def _begin(self, coins: StreamCoins) -> Releasing:
        """Begin a series."""
        return _Silent(self.value)


@dataclass(frozen=True, slots=True)
class _Silent:
    value: float

    def step(self, value: float) -> float:
        """The constant; the true value is checked and not used."""
        checked_series([value])
        return self.value
