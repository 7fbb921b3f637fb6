"""A constant for every value: nothing is told, and every other method has to beat it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sfumato.core import checks
from sfumato.core.guarantees import PureDP
from sfumato.core.randomness import Randomness, StreamCoins
from sfumato.series.memory import Nothing
from sfumato.series.series_release import SeriesEvent, SeriesMethod


@dataclass(frozen=True, slots=True)
class Silence(SeriesMethod[Nothing]):
    """One public number, whatever the series is.

    Attributes:
        value: The number.

    Examples:
        >>> from sfumato.core.purpose import Purpose
        >>> from sfumato.core.randomness import seeded
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

    def memory(self) -> Nothing:
        """Nothing."""
        return Nothing()

    def answer(
        self, memory: Nothing, time: int, value: float, coins: Randomness
    ) -> tuple[float, float]:
        """The constant; the true value is checked and not used."""
        return self.value, 0.0

    def answers(
        self, memory: Nothing, time: int, values: Sequence[float | None], coins: StreamCoins
    ) -> list[SeriesEvent]:
        """The constant for each value; no coin is asked for."""
        # Nothing is random: coins that were never asked for cannot be used twice.
        return [SeriesEvent(time + place, self.value, 0.0) for place in range(len(values))]
