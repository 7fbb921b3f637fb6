r"""Real-time release of a series: measure with noise, and tell the best estimate so far.

The paper releases $x_t = (1 - w_t)\,\hat z_t + w_t z_t + n_t$ with an estimate $\hat z_t$ from
earlier releases. Since the estimate is known to everybody, that is a function of the measurement
$z_t + n_t / w_t$: all privacy is in the measurements, and everything else is free. So a release
is a schedule of measurements and a filter of them, and the whole history may be used as well
as one lag.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.errors import BudgetExceeded, InvalidParameter
from sfumato.core.guarantees import ApproxDP, PureDP
from sfumato.core.guard import Guarded
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Randomness, StreamCoins
from sfumato.core.state import RealtimeState
from sfumato.noise.discrete_noise import BinomialNoise, DiscreteGaussianNoise
from sfumato.noise.series_noise import GaussianNoise, LaplaceNoise
from sfumato.series.filter_banks import Bank, Risk, learned
from sfumato.series.filters import (
    Estimate,
    Filter,
    filter_arrays,
    resume_filter,
)
from sfumato.series.schedules import constant
from sfumato.series.series_account import (
    AnyNoise,
    check_one_kind,
    gaussian_ratio,
    series_guarantee,
)
from sfumato.series.series_release import SeriesMethod, Unit, checked_series

_CALIBRATIONS = 24
_LEAST_SHARE, _MOST_SHARES, _STRIDE = 1e-4, 64, 0.05
Noise = TypeVar("Noise")
_BLOCK = 256
"""Times that many series go forward together, so that memory does not grow with their length."""


@dataclass(frozen=True, slots=True)
class Realtime(SeriesMethod["RunningSeries"]):
    """Measurements with noise and an estimate from all of them.

    Attributes:
        noises: The noise of each measurement; None where nothing is measured.
        estimate: Begins the filter.
        weights: Weight of the measurement at each time, for rules that use one.
        delta: That of the guarantee; 0 for Laplace noise.
        unit: Whether a person may be in every value (user level) or in one of them (event level).

    Examples:
        >>> from sfumato.core.randomness import seeded
        >>> from sfumato.core.purpose import Purpose
        >>> method = Realtime.gaussian(1.0, epsilon=1.0, delta=1e-6, length=100)
        >>> method.guarantee <= ApproxDP(1.0, 1e-6)
        True
        >>> method.release(np.zeros(100), seeded(1), Purpose.SIMULATION).shape
        (100,)

    References:
        [RTR, Alg. 2]
    """

    name: ClassVar[str] = "realtime"

    noises: tuple[AnyNoise | None, ...] = field(repr=False)
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
        if any(isinstance(noise, LaplaceNoise) for noise in self._measurements):
            if self.delta != 0.0:
                raise InvalidParameter("delta", self.delta, "be 0 for Laplace noise, which is pure")
        else:
            checks.proper_fraction("delta", self.delta)
        check_one_kind(self._measurements)
        if self.noises[0] is None and self.estimate.name.startswith("bank"):
            raise InvalidParameter("schedule", 0.0, "begin with a measurement, to be learnt from")

    @classmethod
    def gaussian(
        cls,
        sensitivity: float | ArrayLike,
        *,
        epsilon: float,
        delta: float,
        length: int | None = None,
        schedule: ArrayLike | None = None,
        weight: float | ArrayLike = 1.0,
        estimate: Estimate | None = None,
        unit: Unit = Unit.USER,
    ) -> Realtime:
        """Gaussian noise, as much as the exact curve of all measurements together asks for.

        Args:
            sensitivity: The most that one person can change any value; one number, or one for each
                value.
            epsilon: Budget of the whole series.
            delta: Budget of the whole series.
            length: Number of values; with a schedule it is that of the schedule.
            schedule: How precisely each value is measured, relative to the others; 0 for not at
                all. The same for all if not given.
            weight: Weight of a measurement in the published rule, in (0, 1]; one, or one for each.
            estimate: The filter; the learned bank if not given.
            unit: Whether a person may be in every value, or in one of them.
        """
        shares = _schedule(length, schedule)
        allowed = checks.proper_fraction("delta", delta)
        total = _together(shares, unit)
        widths, scale = _widths(sensitivity, shares), total / gaussian_ratio(epsilon, allowed)
        weights = _weights(weight, shares)
        # Whole steps make sensitivities larger, by a hundredth as a rule.
        for stretch in (1 + 2.0**-40, *np.linspace(1.001, 1.02, 20), 1.04, 1.12, 1.6):
            noises = _noises(widths, shares, scale * float(stretch))
            made = cls(noises, estimate or learned(), weights, allowed, unit)
            if made.guarantee.epsilon <= epsilon:
                return made
        raise InvalidParameter("sensitivity", "such", "be held by the lattice of the noise")

    @classmethod
    def laplace(
        cls,
        sensitivity: float | ArrayLike,
        *,
        epsilon: float,
        length: int | None = None,
        schedule: ArrayLike | None = None,
        weight: float | ArrayLike = 1.0,
        estimate: Estimate | None = None,
        unit: Unit = Unit.USER,
    ) -> Realtime:
        """Laplace noise, pure: the budgets of the measurements add up."""
        shares = _schedule(length, schedule)
        whole = float(shares.max() if unit is Unit.EVENT else shares.sum())
        each = checks.positive("epsilon", epsilon) * shares / whole * (1 - 2.0**-40)
        widths = _widths(sensitivity, shares)
        noises = _made(lambda width, part: LaplaceNoise.at(width, part), widths, each)
        weights = _weights(weight, shares)
        return cls(noises, estimate or learned(), weights, unit=unit)

    @classmethod
    def discrete_gaussian(
        cls,
        sensitivity: float | ArrayLike,
        *,
        epsilon: float,
        delta: float,
        length: int | None = None,
        schedule: ArrayLike | None = None,
        weight: float | ArrayLike = 1.0,
        estimate: Estimate | None = None,
        unit: Unit = Unit.USER,
    ) -> Realtime:
        """Discrete Gaussian noise, accounted by concentrated privacy."""
        return cls._calibrated(
            DiscreteGaussianNoise.at,
            (sensitivity, epsilon, delta),
            (length, schedule),
            weight,
            estimate,
            unit,
        )

    @classmethod
    def binomial(
        cls,
        sensitivity: float | ArrayLike,
        *,
        epsilon: float,
        delta: float,
        length: int | None = None,
        schedule: ArrayLike | None = None,
        weight: float | ArrayLike = 1.0,
        estimate: Estimate | None = None,
        unit: Unit = Unit.USER,
    ) -> Realtime:
        """Binomial noise, the exact curve of each measurement composed as in the paper.

        References:
            [RTR, Thm. A.5]
        """

        def make(width: float, deviation: float) -> BinomialNoise:
            return BinomialNoise.at(width, deviation**2)

        budget, times = (sensitivity, epsilon, delta), (length, schedule)
        return cls._calibrated(make, budget, times, weight, estimate, unit)

    @classmethod
    def _calibrated(
        cls,
        make: Callable[[float, float], DiscreteGaussianNoise | BinomialNoise],
        budget: tuple[float | ArrayLike, float, float],
        times: tuple[int | None, ArrayLike | None],
        weight: float | ArrayLike,
        estimate: Estimate | None,
        unit: Unit,
    ) -> Realtime:
        """The least noise that keeps the budget, by halving on its scale."""
        sensitivity, epsilon, delta = budget
        shares, allowed = _schedule(*times), checks.proper_fraction("delta", delta)
        widths = _widths(sensitivity, shares)
        wanted = checks.epsilon("epsilon", epsilon)

        def noises(scale: float) -> tuple[AnyNoise | None, ...]:
            return _made(lambda width, share: make(width, width * scale / share), widths, shares)

        def kept(scale: float) -> bool:
            used = [noise for noise in noises(scale) if noise is not None]
            return _promised(used, allowed, unit).epsilon <= wanted

        total = _together(shares, unit)
        low, high = 0.0, total / gaussian_ratio(wanted, allowed)
        while not kept(high):
            low, high = high, 2 * high
            if high > 1e9 * total:
                raise InvalidParameter("epsilon", epsilon, "be larger for this noise")
        for _ in range(_CALIBRATIONS):
            middle = 0.5 * (low + high)
            if kept(middle):
                high = middle
            else:
                low = middle
        weights = _weights(weight, shares)
        return cls(noises(high), estimate or learned(), weights, allowed, unit)

    @property
    def guarantee(self) -> PureDP | ApproxDP:
        """For a person who may be in every value, or in any one of them at event level."""
        return _promised(self._measurements, self.delta, self.unit)

    @property
    def sensitivity(self) -> float:
        """The most that one person can change any value; that of each is its noise's own."""
        return max(noise.sensitivity for noise in self._measurements)

    @property
    def _measurements(self) -> list[AnyNoise]:
        return [noise for noise in self.noises if noise is not None]

    @property
    def variances(self) -> Floats:
        """Variance of the noise of each measurement; infinite where there is none."""
        return np.array([math.inf if n is None else n.variance for n in self.noises])

    def _begin(self, coins: StreamCoins) -> RunningSeries:
        """Begin one series."""
        return RunningSeries(self, self.estimate.begin(1), coins)

    def resume(
        self,
        state: RealtimeState,
        randomness: Randomness,
        *,
        name: str | None = None,
        purpose: Purpose = Purpose.RELEASE,
    ) -> RunningSeries:
        """Go on with a series from a stored state; the other arguments are those of `begin`.

        Raises:
            InvalidParameter: If the state was begun with another method or for another purpose.
        """
        coins = self.own_coins(randomness, name, purpose)
        if state.method != coins.plan:
            rule = "be the one it was begun with, and for the same purpose"
            raise InvalidParameter("state.method", "another", rule)
        checks.count("state.time", state.time, at_least=0)
        running = resume_filter(self.estimate, 1, state.arrays)
        return RunningSeries(self, running, coins, state.time)

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
        if values.ndim != 2 or not values.shape[1]:
            rule = "have rows of values, one for each time, of at least one series"
            raise InvalidParameter("table", values.shape, rule)
        given = None if names is None else _names(names, values.shape[1])
        return self._many(values, self._coins_of(given, randomness, purpose))

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

    def _many(self, values: Floats, coins: Sequence[StreamCoins]) -> Floats:
        """Answers with coins of each series, or with those of all of them together."""
        if not 0 < len(values) <= len(self.noises):
            rule = f"have 1 to {len(self.noises)} values, as many as the budget is for"
            raise InvalidParameter("series", len(values), rule)
        running = self.estimate.begin(values.shape[1])
        variances = self.variances
        parts = []
        for start in range(0, len(values), _BLOCK):
            block = slice(start, min(start + _BLOCK, len(values)))
            columns = np.split(values[block], len(coins), axis=1)
            drawn = [self._measured(start, *own) for own in zip(columns, coins, strict=True)]
            noise = np.where(np.isfinite(variances[block]), variances[block], 1.0)
            measured = np.concatenate(drawn, axis=1)
            parts.append(running.update(measured, self.weights[block], noise))
        return np.concatenate(parts)

    def _measured(self, start: int, values: Floats, coins: StreamCoins) -> Floats:
        """Measurements at some successive times, time by series."""
        used = self.noises[start : start + len(values)]
        if not coins.addressed and used[0] is not None and len(set(map(id, used))) == 1:
            return used[0].perturb(values, coins.at(start))
        rows = []
        for time, (noise, row) in enumerate(zip(used, values, strict=True), start=start):
            if noise is None:
                rows.append(np.full(row.shape, np.nan))
            else:
                rows.append(noise.perturb(row, coins.at(time)))
        return np.stack(rows)

    def _released(self, values: Floats, coins: StreamCoins) -> Floats:
        return self._many(values[:, None], [coins])[:, 0]


class RunningSeries(Guarded):
    """One series on its way.

    Attributes:
        method: How it is released.
    """

    def __init__(self, method: Realtime, filter: Filter, coins: StreamCoins, time: int = 0) -> None:
        self.method = method
        self._filter = filter
        self._coins = coins
        self._time = time
        self._seen, self._variance = np.empty((1, 1)), np.empty(1)

    @property
    def time(self) -> int:
        """Values released so far."""
        return self._time

    @property
    def state(self) -> RealtimeState:
        """Where it is, to be stored; its size does not grow."""
        with self._lock:
            return RealtimeState(self._coins.plan, self._time, filter_arrays(self._filter))

    @property
    def risk(self) -> Risk | None:
        """What the filter expects of its estimates so far; None if it cannot say."""
        with self._lock:
            return self._filter.risk if isinstance(self._filter, Bank) else None

    def step(self, value: float) -> float:
        """Release one value.

        Raises:
            BudgetExceeded: If all values that the budget is for were released.
        """
        with self._lock:
            return self._step(value)

    def skip(self) -> None:
        """Let a moment pass that has no value: nothing is measured, and nothing leaves.

        Raises:
            BudgetExceeded: If all moments that the budget is for have passed.
        """
        with self._lock:
            method, time = self.method, self._time
            if time >= len(method.noises):
                raise BudgetExceeded("series", time, method.guarantee, PureDP(0.0))
            if isinstance(self._filter, Bank) and not self._filter.begun:
                self._filter.clock[0] += 1
            else:
                self._seen[0, 0], self._variance[0] = math.nan, 1.0
                self._filter.update(self._seen, method.weights[time : time + 1], self._variance)
            self._time = time + 1

    def _step(self, value: float) -> float:
        method, time = self.method, self._time
        if time >= len(method.noises):
            raise BudgetExceeded("series", time, method.guarantee, PureDP(0.0))
        noise = method.noises[time]
        coins = self._coins.at(time)
        if isinstance(noise, GaussianNoise):
            measured = noise.perturb_one(_number(value), coins)
        else:
            given = checked_series([value])
            measured = math.nan if noise is None else float(noise.perturb(given, coins)[0])
        self._time = time + 1
        self._seen[0, 0] = measured
        self._variance[0] = 1.0 if noise is None else noise.variance
        weight = method.weights[time : time + 1]
        return float(self._filter.update(self._seen, weight, self._variance)[0, 0])


def _schedule(length: int | None, schedule: ArrayLike | None) -> Floats:
    if schedule is None:
        if length is None:
            raise InvalidParameter("length", None, "be given, or a schedule")
        return constant(length)
    shares = checks.numbers("schedule", schedule)
    if shares.ndim != 1 or shares.size == 0 or shares.min() < 0 or shares.max() <= 0:
        raise InvalidParameter(
            "schedule", shares.shape, "be numbers of at least 0, not all of them 0"
        )
    if length is not None and length != shares.size:
        raise InvalidParameter("length", length, f"be {shares.size}, as long as the schedule")
    return _snapped(shares)


def _snapped(shares: Floats) -> Floats:
    """The same with few different numbers, since each needs a table of its own.

    Many are moved to a grid of a twentieth; less than a ten-thousandth of the largest is none.
    """
    kept = np.where(shares < _LEAST_SHARE * shares.max(), 0.0, shares)
    if np.unique(kept).size <= _MOST_SHARES:
        return kept
    logs = np.log(np.where(kept > 0, kept, 1.0) / shares.max()) / _STRIDE
    return np.where(kept > 0, shares.max() * np.exp(_STRIDE * np.round(logs)), 0.0)


def _widths(sensitivity: float | ArrayLike, shares: Floats) -> Floats:
    given = checks.numbers("sensitivity", sensitivity)
    if given.shape not in ((), shares.shape):
        raise InvalidParameter("sensitivity", given.shape, f"be one number or {shares.size}")
    if float(given.min()) <= 0:
        raise InvalidParameter("sensitivity", float(given.min()), "be greater than 0")
    return np.broadcast_to(given, shares.shape)


def _made(
    make: Callable[[float, float], Noise], widths: Floats, shares: Floats
) -> tuple[Noise | None, ...]:
    """The noise of each measurement; equal ones are one."""
    pairs = list(zip(widths.tolist(), shares.tolist(), strict=True))
    made = {pair: make(*pair) for pair in set(pairs) if pair[1] > 0}
    return tuple(made.get(pair) for pair in pairs)


def _noises(widths: Floats, shares: Floats, scale: float) -> tuple[GaussianNoise | None, ...]:
    return _made(
        lambda width, share: GaussianNoise.at(width, width * scale / share), widths, shares
    )


def _together(shares: Floats, unit: Unit) -> float:
    """What the shares of measurements that one person may be in amount to."""
    if unit is Unit.EVENT:
        return float(shares.max())
    return math.sqrt(float(np.square(shares).sum()))


def _promised(noises: Sequence[AnyNoise], delta: float, unit: Unit) -> PureDP | ApproxDP:
    """The guarantee of all together, or of the worst one alone."""
    if unit is Unit.USER:
        return series_guarantee(noises, delta)
    alone = [series_guarantee([noise], delta) for noise in dict.fromkeys(noises)]
    return max(alone, key=lambda promised: promised.epsilon)


def _weights(weight: float | ArrayLike, shares: Floats) -> Floats:
    given = checks.numbers("weight", weight)
    if given.shape not in ((), shares.shape):
        raise InvalidParameter("weight", given.shape, f"be one number or {shares.size}")
    if not (given.min() > 0 and given.max() <= 1):
        raise InvalidParameter("weight", float(given.min()), "lie in (0, 1]")
    return np.where(shares > 0, given, 0.0)


def _names(names: Sequence[str], count: int) -> list[str]:
    """One name for each series: two with one name would share their noise."""
    given = [] if isinstance(names, str) else list(names)
    if not all(isinstance(name, str) for name in given) or len(given) != count:
        raise InvalidParameter("names", len(given), f"be a list of {count}, one for each series")
    if len(set(given)) < count:
        raise InvalidParameter("names", len(set(given)), f"be {count} different ones")
    return given


def _number(value: float) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter("value", "something else", "be a finite number") from None
