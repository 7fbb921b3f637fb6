r"""Real-time release of a series: measure with noise, and release the best estimate so far.

The paper releases $x_t = (1 - w_t)\,\hat z_t + w_t z_t + n_t$ with an estimate $\hat z_t$ from
earlier releases. Since the estimate is known to everybody, that is a function of the measurement
$z_t + n_t / w_t$: all privacy is in the measurements, and everything else is free. So a release
is a schedule of measurements and a filter of them, and the whole history may be used as well
as one lag.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import ClassVar, Required, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import ApproxDP, PureDP
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Randomness, StreamCoins
from sfumato.noise.number_noise import NumberNoise
from sfumato.noise.registry import NOISES
from sfumato.series.calibration import (
    Noises,
    calibrated,
    check_one_kind,
    for_each,
    promised,
    shares_of,
)
from sfumato.series.filter_banks import learned
from sfumato.series.filters import Estimate, Filter
from sfumato.series.risk import Risk
from sfumato.series.series_release import SeriesEvent, SeriesMethod, Unit

# Times that many series go forward together, so that memory does not grow with their length.
_BLOCK = 256


class RealtimeOptions(TypedDict, total=False):
    """What a release is made for, besides the sensitivity.

    Attributes:
        epsilon: Budget of the whole series.
        delta: Budget of the whole series; none for pure noise.
        length: Number of values; with a schedule it is that of the schedule.
        schedule: How precisely each value is measured, relative to the others; 0 for not at
            all. The same for all if not given.
        weight: Weight of a measurement in the paper's rule, in (0, 1]; one, or one for each.
        estimate: The filter; the learned bank if not given.
        unit: Whether a person may be in every value, or in one of them.
    """

    epsilon: Required[float]
    delta: float
    length: int | None
    schedule: ArrayLike | None
    weight: float | ArrayLike
    estimate: Estimate | None
    unit: Unit


@dataclass(frozen=True, slots=True)
class Realtime(SeriesMethod[Filter]):
    """Measurements with noise and an estimate from all of them.

    Attributes:
        noises: The noise of each measurement; None where nothing is measured.
        estimate: Begins the filter.
        weights: Weight of the measurement at each time, for rules that use one.
        delta: That of the guarantee; 0 for pure noise.
        unit: Whether a person may be in every value (user level) or in one of them (event level).

    Examples:
        >>> from sfumato.core.randomness import seeded
        >>> method = Realtime.gaussian(1.0, epsilon=1.0, delta=1e-6, length=100)
        >>> method.guarantee <= ApproxDP(1.0, 1e-6)
        True
        >>> method.release(np.zeros(100), seeded(1), Purpose.SIMULATION).shape
        (100,)

    References:
        [RTR, Alg. 2]
    """

    name: ClassVar[str] = "realtime"
    skips: ClassVar[bool] = True

    noises: Noises = field(repr=False)
    estimate: Estimate = field(default_factory=learned, repr=False)
    weights: Floats = field(default_factory=lambda: np.empty(0), repr=False)
    delta: float = 0.0
    unit: Unit = Unit.USER

    def __post_init__(self) -> None:
        weights = np.ones(len(self.noises)) if not self.weights.size else self.weights
        if weights.shape != (len(self.noises),):
            raise InvalidParameter("weights", weights.shape, "be one for each noise")
        object.__setattr__(self, "weights", checks.read_only(checks.numbers("weights", weights)))
        if not self._measurements:
            raise InvalidParameter("noises", len(self.noises), "have at least one measurement")
        if self.unit not in (Unit.USER, Unit.EVENT):
            raise InvalidParameter("unit", str(self.unit), f"be {Unit.USER} or {Unit.EVENT}")
        if not check_one_kind(self._measurements).pure:
            checks.proper_fraction("delta", self.delta)
        elif self.delta != 0.0:
            raise InvalidParameter("delta", self.delta, "be 0 for Laplace noise, which is pure")
        if self.noises[0] is None and self.estimate.name.startswith("bank"):
            raise InvalidParameter("schedule", 0.0, "begin with a measurement, to be learnt from")

    @classmethod
    def at(
        cls, noise: str, sensitivity: float | ArrayLike, **options: Unpack[RealtimeOptions]
    ) -> Realtime:
        """The least noise of a kind that keeps a budget.

        Args:
            noise: One of `NOISES`.
            sensitivity: The most that one person can change any value; one number, or one for each
                value.
            options: See `RealtimeOptions`.
        """
        kind, delta = NOISES.named(noise), options.get("delta", 0.0)
        shares = shares_of(options.get("length"), options.get("schedule"))
        if not kind.pure:
            checks.proper_fraction("delta", delta)
        widths = for_each("sensitivity", sensitivity, shares.size)
        weights = for_each("weight", options.get("weight", 1.0), shares.size)
        if weights.max() > 1:
            raise InvalidParameter("weight", float(weights.max()), "lie in (0, 1]")
        unit = options.get("unit", Unit.USER)
        noises = calibrated(kind, widths, shares, options["epsilon"], delta, unit)
        estimate = options.get("estimate") or learned()
        return cls(noises, estimate, np.where(shares > 0, weights, 0.0), delta, unit)

    @classmethod
    def gaussian(
        cls, sensitivity: float | ArrayLike, **options: Unpack[RealtimeOptions]
    ) -> Realtime:
        """Gaussian noise, as much as the exact curve of all measurements together asks for."""
        return cls.at("gaussian", sensitivity, **options)

    @classmethod
    def laplace(
        cls, sensitivity: float | ArrayLike, **options: Unpack[RealtimeOptions]
    ) -> Realtime:
        """Laplace noise, pure: the budgets of the measurements add up."""
        return cls.at("laplace", sensitivity, **options)

    @classmethod
    def discrete_gaussian(
        cls, sensitivity: float | ArrayLike, **options: Unpack[RealtimeOptions]
    ) -> Realtime:
        """Discrete Gaussian noise, accounted by concentrated privacy."""
        return cls.at("discrete-gaussian", sensitivity, **options)

    @classmethod
    def binomial(
        cls, sensitivity: float | ArrayLike, **options: Unpack[RealtimeOptions]
    ) -> Realtime:
        """Binomial noise, the exact curve of each measurement composed as in the paper.

        References:
            [RTR, Thm. A.5]
        """
        return cls.at("binomial", sensitivity, **options)

    @property
    def guarantee(self) -> PureDP | ApproxDP:
        """For a person who may be in every value, or in any one of them at event level."""
        return promised(self._measurements, self.delta, self.unit)

    @property
    def most(self) -> int:
        """As many values as there are noises."""
        return len(self.noises)

    @property
    def sensitivity(self) -> float:
        """The most that one person can change any value; that of each is its noise's own."""
        return max(noise.sensitivity for noise in self._measurements)

    @property
    def _measurements(self) -> list[NumberNoise]:
        return [noise for noise in self.noises if noise is not None]

    @property
    def variances(self) -> Floats:
        """Variance of the noise of each measurement; infinite where there is none."""
        return np.array([math.inf if n is None else _facts(n)[0] for n in self.noises])

    @property
    def error_variances(self) -> Floats | None:
        """Those of the noise, if it leaves as it is."""
        return self.variances if self.estimate.name == "plain" else None

    def memory(self) -> Filter:
        """The filter of one series."""
        return self.estimate.begin(1)

    def answer(
        self, memory: Filter, time: int, value: float, coins: Randomness
    ) -> tuple[float, float]:
        """The estimate after one more measurement."""
        noise = self.noises[time]
        if noise is None:
            return memory.one(math.nan, 0.0, 1.0), 0.0
        variance, charge = _facts(noise)
        measured = noise.perturb_one(value, coins)
        return memory.one(measured, self.weights.item(time), variance), charge

    def skip(self, memory: Filter, time: int) -> None:
        """The filter goes on without a measurement."""
        memory.skip(self.weights.item(time))

    def answers(
        self, memory: Filter, time: int, values: Sequence[float | None], coins: StreamCoins
    ) -> list[SeriesEvent]:
        """What leaves for some successive values; many of them go through arrays."""
        if len(values) == 1 or None in values:
            # Named, for a class with slots is made anew and has no cell for `super()`.
            return SeriesMethod.answers(self, memory, time, values, coins)
        estimates = self._together(memory, time, np.array(values)[:, None], [coins])[:, 0].tolist()
        noises = self.noises[time : time + len(values)]
        charges = (0.0 if noise is None else _facts(noise)[1] for noise in noises)
        return [
            SeriesEvent(moment, released, charge)
            for moment, (released, charge) in enumerate(
                zip(estimates, charges, strict=True), start=time
            )
        ]

    def released(self, memory: Filter, values: Floats, coins: StreamCoins) -> Floats:
        """What leaves for a whole series, through arrays."""
        return self._together(memory, 0, values[:, None], [coins])[:, 0]

    def release_many(
        self,
        table: ArrayLike,
        randomness: Randomness,
        purpose: Purpose = Purpose.RELEASE,
        *,
        names: Sequence[str] | None = None,
    ) -> Floats:
        """Release many series at once, time by series; the same guarantee for each of them.

        With keyed coins each series has those of its name, as if it were released alone: its
        place in the table means nothing. Others draw for all series of a moment together.

        Args:
            table: The values, one row for each time and one column for each series.
            randomness: Source of coins.
            purpose: A simulation may use seeded coins; a release may not.
            names: Of the series, all different; needed with keyed coins.

        Examples:
            >>> from sfumato.core.randomness import keyed
            >>> coins = keyed(b"sixteen bytes or more")
            >>> method = Realtime.gaussian(1.0, epsilon=1.0, delta=1e-6, length=3)
            >>> both = method.release_many(np.ones((3, 2)), coins, names=["north", "south"])
            >>> alone = method.release_many(np.ones((3, 1)), coins, names=["south"])
            >>> bool((both[:, 1] == alone[:, 0]).all())
            True
        """
        values = checks.numbers("table", table)
        if values.ndim != 2 or 0 in values.shape:
            rule = "have rows of values, one for each time, of at least one series"
            raise InvalidParameter("table", values.shape, rule)
        given = None if names is None else _names(names, values.shape[1])
        coins = self._coins_of(given, randomness, purpose)
        self.check(0, [0.0] * len(values))
        return self._together(self.estimate.begin(values.shape[1]), 0, values, coins)

    def _coins_of(
        self, names: list[str] | None, randomness: Randomness, purpose: Purpose
    ) -> list[StreamCoins]:
        """Coins of each series, or one set for all that never comes again."""
        if names is None and randomness.addressed and not randomness.simulated:
            # One set for the table would give a place in it the same noise in every table.
            rule = "be given, with keyed coins: one for each series"
            raise InvalidParameter("names", None, rule)
        first = self.own_coins(randomness, None if names is None else names[0], purpose)
        if names is None or not randomness.addressed:
            return [first]
        return [replace(first, stream=name) for name in names]

    def _together(
        self, running: Filter, time: int, values: Floats, coins: Sequence[StreamCoins]
    ) -> Floats:
        """Estimates, time by series, with coins of each series or of all of them together."""
        variances, parts = self.variances, []
        noise = np.where(np.isfinite(variances), variances, 1.0)
        for start in range(0, len(values), _BLOCK):
            rows = values[start : start + _BLOCK]
            block = slice(time + start, time + start + len(rows))
            columns = np.split(rows, len(coins), axis=1)
            drawn = [self._measured(block.start, *own) for own in zip(columns, coins, strict=True)]
            measured = np.concatenate(drawn, axis=1)
            parts.append(running.update(measured, self.weights[block], noise[block]))
        return np.concatenate(parts)

    def _measured(self, start: int, values: Floats, coins: StreamCoins) -> Floats:
        """Measurements at some successive times, time by series."""
        used = self.noises[start : start + len(values)]
        # One draw for a block: coins without an address have no moment to be kept to.
        if not coins.addressed and used[0] is not None and len(set(map(id, used))) == 1:
            return used[0].perturb(values, coins.at(start))
        rows = [
            np.full(row.shape, np.nan) if noise is None else noise.perturb(row, coins.at(time))
            for time, (noise, row) in enumerate(zip(used, values, strict=True), start=start)
        ]
        return np.stack(rows)

    def risk(self, memory: Filter, released: Sequence[float | None]) -> Risk | None:
        """What the filter expects of its estimates so far, or the noise if there is no filter."""
        return memory.risk or SeriesMethod.risk(self, memory, released)


@lru_cache(maxsize=256)
def _facts(noise: NumberNoise) -> tuple[float, float]:
    """Variance and charge of a noise, which a live series asks for at every value."""
    return noise.variance, noise.charge


def _names(names: Sequence[str], count: int) -> list[str]:
    """One name for each series: two with one name would share their noise."""
    given = [] if isinstance(names, str) else list(names)
    if not all(isinstance(name, str) for name in given) or len(given) != count:
        raise InvalidParameter("names", len(given), f"be a list of {count}, one for each series")
    if len(set(given)) < count:
        raise InvalidParameter("names", len(set(given)), f"be {count} different ones")
    return given
