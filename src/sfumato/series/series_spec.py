"""What a series is released for: one frozen description for every method and command."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any, Self

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.series.filters import Estimate, plain
from sfumato.series.realtime import Realtime
from sfumato.series.series_release import Unit

_LEAST_EPSILON = 1e-100
"""No noise is wide enough for less; parts of it would be 0, by which scales are divided."""
UNITS = {"user": Unit.USER, "event": Unit.EVENT, "w-event": Unit.WINDOW}


class Match(StrEnum):
    """What "equal privacy" of pure and of approximate methods means."""

    EPSILON = "epsilon"
    VARIANCE = "variance"


@dataclass(frozen=True, slots=True)
class SeriesSpec:
    """What a method is made for; the command line fills it, and Python users can too.

    Attributes:
        sensitivity: The most that one person can change any value.
        epsilon: Budget of the whole series.
        delta: Budget of approximate methods.
        length: Number of values that the budget is for.
        window: Values protected together, for methods of that kind.
        method: One of `METHODS`.
        unit: "user", "event" or "w-event"; what the method protects if not given.
        match: Whether pure methods get the same epsilon, or noise of the same variance.
        weight: Of the true value in the paper's rule; found from the truth if None.
        estimate: The filter of methods that learn; a bank without a period if None.
        interval: Values are clamped to it before the noise, and what leaves is after it.
        truth: The true values, for methods that are tuned on them; None where nobody may be.

    Examples:
        >>> SeriesSpec(1.0, 2.0, length=50).together
        50
        >>> SeriesSpec.of(sensitivity=1.0, epsilon=2.0, lenght=50)
        Traceback (most recent call last):
        sfumato.core.errors.InvalidParameter: option must be one of sensitivity, epsilon, delta,
        length, window, method, unit, match, weight, estimate, interval, truth; got 'lenght'
    """

    sensitivity: float
    epsilon: float
    delta: float = 1e-6
    length: int = 1
    window: int = 10
    method: str = "realtime"
    unit: str | None = None
    match: Match = Match.EPSILON
    weight: float | None = None
    estimate: Estimate | None = None
    interval: tuple[float, float] | None = None
    truth: Floats | None = None

    def __post_init__(self) -> None:
        checks.positive("sensitivity", self.sensitivity)
        if checks.epsilon("epsilon", self.epsilon) < _LEAST_EPSILON:
            raise InvalidParameter("epsilon", self.epsilon, f"be at least {_LEAST_EPSILON:g}")
        checks.proper_fraction("delta", self.delta)
        checks.count("length", self.length)
        checks.count("window", self.window)
        if self.unit is not None and self.unit not in UNITS:
            raise InvalidParameter("unit", self.unit, f"be one of {', '.join(UNITS)}")
        object.__setattr__(self, "match", checks.choice("match", Match, self.match))

    @classmethod
    def of(cls, spec: Self | None = None, **options: Any) -> Self:
        """A spec, with some of its fields replaced; others are refused by name."""
        known = [part.name for part in fields(cls)]
        for name in options:
            if name not in known:
                raise InvalidParameter("option", name, f"be one of {', '.join(known)}")
        return cls(**options) if spec is None else replace(spec, **options)

    @property
    def level(self) -> Unit:
        """Whose data are protected together, for methods that can do both; a person's if open."""
        return UNITS[self.unit or "user"]

    @property
    def together(self) -> int:
        """In how many values a person may be, by the unit."""
        # At event level a person is in one value, or is protected in each of several alone.
        spans = {Unit.USER: self.length, Unit.EVENT: 1, Unit.WINDOW: self.window}
        return min(spans[self.level], self.length)

    def within(self, value: float | None) -> float | None:
        """A value, clamped to the range if there is one."""
        if value is None or self.interval is None:
            return value
        return min(max(value, self.interval[0]), self.interval[1])

    def pure(self, together: int) -> float:
        """Budget of pure methods for a person who may be in so many values."""
        if self.match is Match.EPSILON:
            return self.epsilon
        return matched_epsilon(self.sensitivity, self.epsilon, self.delta, together)

    @property
    def true_series(self) -> Floats:
        """The true values; refused where nobody may look at them."""
        if self.truth is None:
            raise InvalidParameter("method", "one that is tuned", "not need the true series")
        return self.truth


@lru_cache(maxsize=32)
def matched_epsilon(sensitivity: float, epsilon: float, delta: float, together: int) -> float:
    """The pure budget whose Laplace noise has the variance of the Gaussian noise of another one.

    The paper's rule for a fair comparison: independent Gaussian noise then does no better than
    independent Laplace noise, so whoever beats it does not owe it to a better composition. It may
    be far over what a single pure release could promise: it is a sum over values.

    Args:
        sensitivity: The most that one person can change any value.
        epsilon: Budget of the Gaussian noise.
        delta: Budget of the Gaussian noise.
        together: In how many values a person may be.

    References:
        [RTR, Sec. 8.1]
    """
    noise = Realtime.gaussian(
        sensitivity, epsilon=epsilon, delta=delta, length=together, estimate=plain()
    ).variances[0]
    return together * sensitivity * math.sqrt(2 / float(noise))
