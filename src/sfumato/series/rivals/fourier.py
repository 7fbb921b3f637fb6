r"""The first Fourier coefficients of a whole series, with noise; the others are dropped.

Two series of one person differ by at most $\Delta$ in each of $T$ values, so by $\sqrt{T}\Delta$ in
the Euclidean norm. The transform is orthonormal and keeps that norm, dropping coefficients can
only lower it, and $m$ numbers of Euclidean norm $r$ have absolute values that sum to at most
$\sqrt{m} r$:

$$\lVert F_m (z - z') \rVert_1 \le \sqrt{m} \lVert F_m (z - z') \rVert_2
    \le \sqrt{m} \lVert z - z' \rVert_2 \le \sqrt{m T} \Delta .$$

Numbers are real here: a complex coefficient counts as two, except that of frequency 0 and, in a
series of even length, the last, which have no imaginary part.

Each number is rounded to a lattice before a whole number of steps is added. Rounding and the floats
of the transform can put two numbers apart by two steps more than they are; so the noise is made,
and the leakage computed, for a sum that is larger by two steps for each number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import PureDP
from sfumato.core.numerics import UNIT, up
from sfumato.core.portable_fourier import transformed
from sfumato.core.randomness import Randomness, StreamCoins
from sfumato.noise.geometric import DiscreteLaplace
from sfumato.series.memory import Nothing
from sfumato.series.series_release import SeriesEvent, SeriesMethod, checked_series
from sfumato.series.series_spec import SeriesSpec

# Steps of the lattice in a deviation of the noise, at least.
_FINE = 64.0
# Steps in the sensitivity for each number: rounding then costs 1 % of the budget.
_DEAR = 200.0
# Leakage of a step, at least; noise with less needs too large a table.
_LEAST = 6e-6
_HAIR = 2.0**-50
_TRIES = 8


class BlockMethod(SeriesMethod[Nothing]):
    """A method that needs some values, or all of them, before any leaves."""

    online: ClassVar[bool] = False

    def memory(self) -> Nothing:
        """Nothing: what belongs together comes at once."""
        return Nothing()

    def answer(self, memory: Nothing, time: int, value: float, coins: Randomness) -> NoReturn:
        """Refused: no value leaves when it comes."""
        raise InvalidParameter("method", self.name, "be online to begin; use release")


@dataclass(frozen=True, slots=True)
class Fourier(BlockMethod):
    """A series from its first noisy Fourier coefficients; the whole series is needed first.

    Attributes:
        length: How many values the series has.
        coefficients: How many frequencies are kept, from 0 upwards.
        sensitivity: How far apart two values of a moment may be.
        spacing: Distance of the points of the lattice.
        noise: The noise of each number, in steps.

    Examples:
        >>> from sfumato.core.randomness import seeded
        >>> from sfumato.core.purpose import Purpose
        >>> method = Fourier.at(sensitivity=1.0, epsilon=2.0, length=6, coefficients=2)
        >>> method.guarantee <= PureDP(2.0), method.numbers
        (True, 3)
        >>> method.release([50.0] * 6, seeded(1), Purpose.SIMULATION).round(1)
        array([51.9, 50.4, 51. , 53. , 54.5, 53.9])

    References:
        [Rastogi2010]
    """

    name: ClassVar[str] = "fourier"

    length: int
    coefficients: int
    sensitivity: float
    spacing: float
    noise: DiscreteLaplace

    def __post_init__(self) -> None:
        most = checks.count("length", self.length) // 2 + 1
        if checks.count("coefficients", self.coefficients) > most:
            rule = f"be at most half the length, plus 1: {most}"
            raise InvalidParameter("coefficients", self.coefficients, rule)
        checks.positive("sensitivity", self.sensitivity)
        checks.positive("spacing", self.spacing)

    @classmethod
    def at(cls, sensitivity: float, epsilon: float, length: int, coefficients: int) -> Self:
        """The method for a budget, for a person who may be in every value."""
        width = checks.positive("sensitivity", sensitivity)
        budget = checks.positive("epsilon", epsilon)
        size = checks.count("length", length)
        numbers = min(2 * checks.count("coefficients", coefficients) - 1, size)
        across = float(_lattice(np.array(numbers), budget))
        if not across:
            enough = f"be larger for {numbers} numbers, or fewer coefficients kept"
            raise InvalidParameter("epsilon", epsilon, enough)
        noise = _noise(budget, int(across) + 2 * numbers)
        # Rounded up: a lattice that is a hair too coarse leaks less, not more.
        spacing = up(_sensitivity(width, size, numbers) / across)
        return cls(size, coefficients, width, spacing, noise)

    @classmethod
    def of(cls, spec: SeriesSpec) -> Self:
        """With as many coefficients as are best for the true series; not private."""
        budget = spec.pure(spec.length)
        count = best_coefficients(spec.true_series, spec.sensitivity, budget)
        return cls.at(spec.sensitivity, budget, spec.length, count)

    @property
    def numbers(self) -> int:
        """How many real numbers the kept coefficients are."""
        return min(2 * self.coefficients - 1, self.length)

    @property
    def steps(self) -> int:
        """How many steps the kept numbers of two series may be apart, in all.

        From the very numbers that are drawn for: more coefficients, or a finer lattice, are more.
        """
        apart = Fraction(_sensitivity(self.sensitivity, self.length, self.numbers))
        return math.ceil(apart / Fraction(self.spacing)) + 2 * self.numbers

    @property
    def variance(self) -> float:
        """Variance of what is added to each number."""
        return self.spacing**2 * self.noise.variance

    @property
    def guarantee(self) -> PureDP:
        """What all numbers leak together."""
        return self.noise.leakage(self.steps)

    def answers(
        self, memory: Nothing, time: int, values: Sequence[float | None], coins: StreamCoins
    ) -> list[SeriesEvent]:
        """The whole series; its charge stands at the first value."""
        return block_events(time, self.drawn(np.array(values), coins.at(0)), self.guarantee.epsilon)

    def check(self, time: int, values: Sequence[float | None]) -> None:
        """Refuse another length, and what is too large, before anything is drawn."""
        SeriesMethod.check(self, time, values[: self.length])
        self.checked(np.array(values, dtype=np.float64))

    def checked(self, series: ArrayLike) -> Floats:
        """A series of the right length, and not too large for the floats of the transform."""
        values = checked_series(series)
        if values.size != self.length:
            raise InvalidParameter("series", values.size, f"have exactly {self.length} values")
        limit = self.spacing / (2 * math.sqrt(self.length) * transform_error(self.length))
        if float(np.abs(values).max()) > limit:
            raise InvalidParameter("series", "larger values", f"stay within {limit:.3g}")
        return values

    def drawn(self, values: Floats, randomness: Randomness) -> Floats:
        """The released series, with coins of its own."""
        numbers = np.zeros(self.length)
        places = np.floor(orthonormal(self.checked(values))[: self.numbers] / self.spacing + 0.5)
        numbers[: self.numbers] = places + self.noise.draw(self.numbers, randomness)
        return series_of(numbers * self.spacing)


def block_events(time: int, released: Floats, charge: float) -> list[SeriesEvent]:
    """Values that leave together, for one charge."""
    pairs = enumerate(released.tolist(), start=time)
    return [
        SeriesEvent(moment, value, charge if moment == time else 0.0) for moment, value in pairs
    ]


def orthonormal(values: Floats) -> Floats:
    """The Fourier transform as real numbers, of the same norm: 0, Re 1, Im 1, Re 2, ..."""
    real, imaginary = transformed(np.ascontiguousarray(values), np.zeros(values.size))
    pairs = (values.size - 1) // 2
    numbers = np.empty(values.size)
    numbers[0] = real[0]
    numbers[1 : 2 * pairs + 1 : 2] = math.sqrt(2) * real[1 : pairs + 1]
    numbers[2 : 2 * pairs + 1 : 2] = math.sqrt(2) * imaginary[1 : pairs + 1]
    if values.size % 2 == 0:
        numbers[-1] = real[values.size // 2]
    return numbers / math.sqrt(values.size)


def series_of(numbers: Floats) -> Floats:
    """The series with a given orthonormal transform."""
    pairs = (numbers.size - 1) // 2
    real, imaginary = np.zeros(numbers.size), np.zeros(numbers.size)
    real[0] = numbers[0]
    real[1 : pairs + 1] = math.sqrt(2) * numbers[1 : 2 * pairs + 1 : 2]
    # The conjugate, so that a transform forth is one back; a real series is twice its one half.
    imaginary[1 : pairs + 1] = -math.sqrt(2) * numbers[2 : 2 * pairs + 1 : 2]
    if numbers.size % 2 == 0:
        real[numbers.size // 2] = numbers[-1]
    return np.asarray(transformed(real, imaginary)[0] / math.sqrt(numbers.size))


def transform_error(length: int) -> float:
    """Error of a number of the transform, over the norm of the series, at most; generous."""
    # An odd part of the length is summed term by term.
    return (64 * (portable.log2(length) + 4) + 2 * (length // (length & -length))) * UNIT


def best_coefficients(
    series: ArrayLike, sensitivity: float, epsilon: float, delay: int | None = None
) -> int:
    """How many coefficients make the error of this very series least.

    **Not private**: it needs the true series, and tells about it. For studies, which give the
    method this help.

    Args:
        series: The true values.
        sensitivity: How far apart two values of a moment may be.
        epsilon: Budget of the whole series.
        delay: Length of a block of `DelayedFourier`; None for the whole series.

    Examples:
        >>> series = 100 * np.sin(np.arange(64) * 2 * np.pi / 16)  # four periods
        >>> best_coefficients(series, sensitivity=1.0, epsilon=100.0 / 4)
        5
    """
    values = checked_series(series)
    width = checks.positive("sensitivity", sensitivity)
    budget = checks.positive("epsilon", epsilon)
    size = values.size if delay is None else checks.count("delay", delay)
    blocks = [values[start : start + size] for start in range(0, values.size, size)]
    longest = blocks[0].size // 2 + 1
    total = np.zeros(longest)
    for block in blocks:
        errors = _squared_errors(block, width, budget / len(blocks))
        # A shorter block keeps what it has.
        total += np.pad(errors, (0, longest - errors.size), mode="edge")
    if not np.isfinite(total).any():
        raise InvalidParameter("epsilon", epsilon, "be larger for a series of that length")
    return int(total.argmin()) + 1


def _squared_errors(values: Floats, sensitivity: float, epsilon: float) -> Floats:
    """Summed squared error when 1, 2, ... coefficients are kept; infinite where that is refused."""
    numbers = np.minimum(2 * np.arange(1, values.size // 2 + 2) - 1, values.size)
    energy = np.append(np.cumsum(orthonormal(values)[::-1] ** 2)[::-1], 0.0)
    across = _lattice(numbers, epsilon)
    possible = across > 0
    spread = np.where(possible, across, 1.0)
    fall = portable.exp(-epsilon / (spread + 2 * numbers))
    width = sensitivity * np.sqrt(numbers * values.size) / spread
    noise = width**2 * 2 * fall / (1 - fall) ** 2
    return np.asarray(np.where(possible, energy[numbers] + numbers * noise, np.inf))


def _lattice(numbers: np.ndarray[tuple[int, ...], np.dtype[np.int64]], epsilon: float) -> Floats:
    """How many steps the sensitivity has; 0 where the noise would need too large a table."""
    wanted = np.ceil(np.maximum(_FINE * epsilon, _DEAR * numbers))
    across = np.minimum(wanted, math.floor(epsilon / _LEAST) - 2 * numbers)
    return np.asarray(np.where(across >= 2 * numbers, across, 0.0))


def _sensitivity(sensitivity: float, length: int, numbers: int) -> float:
    """Of the sum of absolute values of the kept numbers, rounded up."""
    return up(up(math.sqrt(numbers * length)) * sensitivity)


def _noise(epsilon: float, steps: int) -> DiscreteLaplace:
    """Noise that leaks a hair less than a budget over so many steps."""
    most = asked = epsilon * (1 - _HAIR)
    for attempt in range(1, _TRIES + 1):
        noise = DiscreteLaplace.at(asked / steps)
        excess = noise.leakage(steps).epsilon - most
        if excess <= 0:
            return noise
        asked -= 4**attempt * excess  # the rounding is another one each time
    raise InvalidParameter("epsilon", epsilon, "be larger: the noise cannot be held within it")
