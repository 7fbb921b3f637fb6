"""Fourier coefficients block by block: late, but online."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import PureDP
from sfumato.core.numerics import add_up, up
from sfumato.core.randomness import StreamCoins
from sfumato.series.memory import Nothing
from sfumato.series.rivals.fourier import BlockMethod, Fourier, best_coefficients, block_events
from sfumato.series.series_release import SeriesEvent, SeriesMethod
from sfumato.series.series_spec import SeriesSpec

# Values of a block in a comparison: a day of hours.
_DELAY = 24


@dataclass(frozen=True, slots=True)
class DelayedFourier(BlockMethod):
    """A series in blocks, each from its own first noisy coefficients.

    A value leaves with the last of its block, so up to `delay - 1` steps late; with a delay of 1
    at once, with Laplace noise. A person may be in every block, so the blocks share the budget.

    Attributes:
        length: How many values the series has.
        delay: How many values a block has.
        block: The method for a block.
        rest: The method for a last block that is shorter; None if there is none.

    Examples:
        >>> from sfumato.core.randomness import seeded
        >>> from sfumato.core.purpose import Purpose
        >>> method = DelayedFourier.at(1.0, epsilon=4.0, length=7, delay=3, coefficients=1)
        >>> method.guarantee <= PureDP(4.0), method.blocks
        (True, 3)
        >>> method.release([50.0] * 7, seeded(1), Purpose.SIMULATION).round(1)
        array([50. , 50. , 50. , 49.1, 49.1, 49.1, 49.4])

    References:
        [Rastogi2010]
    """

    name: ClassVar[str] = "delayed-fourier"

    length: int
    delay: int
    block: Fourier
    rest: Fourier | None

    def __post_init__(self) -> None:
        length, delay = checks.count("length", self.length), checks.count("delay", self.delay)
        if delay > length:
            raise InvalidParameter("delay", delay, f"be at most the length, {length}")
        if self.block.length != delay:
            raise InvalidParameter("block", self.block.length, f"be for {delay} values, the delay")
        left = 0 if self.rest is None else self.rest.length
        if left != length % delay:
            raise InvalidParameter("rest", left, f"be for the {length % delay} values left over")

    @property
    def sensitivity(self) -> float:
        """How far apart two values of a moment may be: as far as every block allows."""
        blocks = [self.block] if self.rest is None else [self.block, self.rest]
        return min(block.sensitivity for block in blocks)

    @classmethod
    def at(
        cls, sensitivity: float, epsilon: float, length: int, delay: int, coefficients: int
    ) -> Self:
        """The method for a budget, for a person who may be in every value."""
        budget = checks.positive("epsilon", epsilon)
        size, wide = checks.count("length", length), checks.count("delay", delay)
        # A person may be in every block.
        share = budget / -(-size // wide)
        block = Fourier.at(sensitivity, share, wide, coefficients)
        left = size % wide
        kept = min(coefficients, left // 2 + 1)
        rest = Fourier.at(sensitivity, share, left, kept) if left else None
        return cls(size, wide, block, rest)

    @classmethod
    def of(cls, spec: SeriesSpec) -> Self:
        """With as many coefficients as are best for the true series; not private."""
        delay, budget = min(_DELAY, spec.length), spec.pure(spec.length)
        count = best_coefficients(spec.true_series, spec.sensitivity, budget, delay)
        return cls.at(spec.sensitivity, budget, spec.length, delay, count)

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return -(-self.length // self.delay)

    @property
    def guarantee(self) -> PureDP:
        """What all blocks leak together."""
        whole = up(self.length // self.delay * self.block.guarantee.epsilon)
        return PureDP(add_up(whole, self.rest.guarantee.epsilon if self.rest else 0.0))

    def answers(
        self, memory: Nothing, time: int, values: Sequence[float | None], coins: StreamCoins
    ) -> list[SeriesEvent]:
        """Some successive blocks; the charge of each stands at its first value."""
        events: list[SeriesEvent] = []
        for method, part in self._parts(np.array(values)):
            start = time + len(events)
            # Coins are addressed by the block: a series that was stopped goes on with its own.
            drawn = method.drawn(part, coins.at(start // self.delay))
            events += block_events(start, drawn, method.guarantee.epsilon)
        return events

    def check(self, time: int, values: Sequence[float | None]) -> None:
        """Refuse what is no whole number of blocks, before anything is drawn."""
        SeriesMethod.check(self, time, values)
        end = time + len(values)
        if time % self.delay or (end % self.delay and end != self.length):
            raise InvalidParameter("series", len(values), f"come in blocks of {self.delay} values")
        for method, part in self._parts(np.array(values, dtype=np.float64)):
            method.checked(part)

    def _parts(self, values: Floats) -> list[tuple[Fourier, Floats]]:
        """Whole blocks, and the rest if it is among them."""
        cut = values.size - values.size % self.delay
        parts = [(self.block, part) for part in values[:cut].reshape(-1, self.delay)]
        return parts + ([(self.rest, values[cut:])] if self.rest and cut < values.size else [])
