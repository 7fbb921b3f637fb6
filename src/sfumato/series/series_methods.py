"""Ways to release a series of numbers, by name, for a setting that is the same for all."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import seeded
from sfumato.series.filter_banks import learned
from sfumato.series.filters import Estimate, one_lag, plain
from sfumato.series.realtime import Realtime
from sfumato.series.rivals.fast import Fast, best_process_variance
from sfumato.series.rivals.fourier import DelayedFourier, Fourier, best_coefficients
from sfumato.series.rivals.pegasus import Pegasus
from sfumato.series.rivals.tops import Topl, Tops
from sfumato.series.rivals.tree import BinaryTree, SquareRootTree
from sfumato.series.rivals.windowed import BudgetAbsorption, BudgetDistribution
from sfumato.series.schedules import geometric
from sfumato.series.series_release import Releasing, SeriesMethod, Unit
from sfumato.series.silence import Silence


class Match(StrEnum):
    """What "equal privacy" of pure and of approximate methods means."""

    EPSILON = "epsilon"
    VARIANCE = "variance"


@dataclass(frozen=True, slots=True)
class Setting:
    """What a method is made for.

    Attributes:
        sensitivity: The most that one person can change any value.
        epsilon: Budget.
        delta: Budget of approximate methods.
        length: Number of values.
        window: Values protected together, for methods of that kind.
        unit: Whether a person may be in every value or in one, for methods that can do both.
        match: Whether pure methods get the same epsilon, or noise of the same variance.
        weight: Of the true value in the published rule; found from the series if None.
        estimate: The filter of methods that learn; a bank without a period if None.
        series: The true values, for methods that are helped; None where nobody may be.
    """

    sensitivity: float
    epsilon: float
    delta: float
    length: int
    window: int = 10
    unit: Unit = Unit.USER
    match: Match = Match.EPSILON
    weight: float | None = None
    estimate: Estimate | None = None
    series: Floats | None = None

    def pure(self, together: int) -> float:
        """Budget of pure methods for a person who may be in so many values."""
        if self.match is Match.EPSILON:
            return self.epsilon
        return matched_epsilon(self.sensitivity, self.epsilon, self.delta, together)

    @property
    def together(self) -> int:
        """In how many values a person may be, by the unit."""
        spans = {Unit.USER: self.length, Unit.EVENT: 1, Unit.WINDOW: self.window}
        return min(spans[self.unit], self.length)


@dataclass(frozen=True, slots=True)
class Way:
    """A method by name.

    Attributes:
        says: What it does, in one line.
        make: Makes it for a setting.
        tuned: Whether it is tuned on the true series, as its papers do: not for real releases.
        weighted: Whether a weight in the setting does instead.
        whole: Whether the whole value is protected, not what the sensitivity says of it.
    """

    says: str
    make: Callable[[Setting], SeriesMethod[Releasing]]
    tuned: bool = False
    weighted: bool = False
    whole: bool = False

    def helped(self, setting: Setting) -> bool:
        """Whether the true series is looked at to make it."""
        return self.tuned and not (self.weighted and setting.weight is not None)


_DELAY, _WARMUP = 24, 64
"""Values of a block of the delayed transform; values from which a threshold is found."""
_TRIALS = 4
"""Simulations of each weight that is tried."""
_WEIGHTS: tuple[float, ...] = (
    *np.geomspace(0.02, 0.8, 16).tolist(),
    0.85,
    0.9,
    0.94,
    0.97,
    0.985,
    1.0,
)
_ENDS = (0.5, 0.1, 0.01)
"""What geometric squared weights have fallen to at the end of the series."""
_TRYING = 10**6
"""Seeds of trials begin here, away from those of the simulations that are reported."""


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


def _truth(setting: Setting) -> Floats:
    if setting.series is None:
        raise InvalidParameter("method", "one that is tuned", "not need the true series")
    return setting.series


def _gaussian(setting: Setting, **options: object) -> Realtime:
    return Realtime.gaussian(
        setting.sensitivity,
        epsilon=setting.epsilon,
        delta=setting.delta,
        length=setting.length,
        unit=setting.unit,
        **options,  # type: ignore[arg-type]
    )


def _laplace(setting: Setting, **options: object) -> Realtime:
    return Realtime.laplace(
        setting.sensitivity,
        epsilon=setting.pure(setting.together),
        length=setting.length,
        unit=setting.unit,
        **options,  # type: ignore[arg-type]
    )


def _bank(setting: Setting) -> Estimate:
    return setting.estimate or learned()


def _discrete(setting: Setting) -> Realtime:
    return Realtime.discrete_gaussian(
        setting.sensitivity,
        epsilon=setting.epsilon,
        delta=setting.delta,
        length=setting.length,
        unit=setting.unit,
        estimate=_bank(setting),
    )


def _binomial(setting: Setting) -> Realtime:
    return Realtime.binomial(
        setting.sensitivity,
        epsilon=setting.epsilon,
        delta=setting.delta,
        length=setting.length,
        unit=setting.unit,
        estimate=_bank(setting),
    )


def published_weight(series: Floats, noise: float) -> float:
    r"""The weight that the paper's own formulas ask for.

    Of the weights that condition (3) allows, $w > (1 - v)/(1 + v)$ with $v$ the variance of the
    noise of independent releases over that of the series, the one with the least error by Theorem
    6.1. Both look at the true series, and the theorem is not the error of the rule.

    References:
        [RTR, Thm. 6.1 and 6.2]
    """
    around = series - series.mean()
    variance = float(np.square(around).mean())
    if variance == 0.0:
        return _WEIGHTS[0]
    linked = float(around[1:] @ around[:-1]) / (variance * series.size)
    least = max(0.0, (1 - noise / variance) / (1 + noise / variance))
    weights = np.linspace(least, 1.0, 200)[1:]
    known = 1 - linked**2 * variance / (variance + weights**2 * noise)
    errors = variance * known * (1 - weights) ** 2 + weights**2 * noise
    return float(weights[errors.argmin()])


def _published(setting: Setting) -> Realtime:
    made = _gaussian(setting, estimate=one_lag())
    weight = setting.weight
    if weight is None:
        weight = published_weight(_truth(setting), float(made.variances[0]))
    return _gaussian(setting, estimate=one_lag(), weight=weight)


def _best_published(setting: Setting) -> Realtime:
    made = _gaussian(setting, estimate=one_lag())
    asked = published_weight(_truth(setting), float(made.variances[0]))
    weights = (*_WEIGHTS, asked)
    ways = [replace(made, weights=np.full(setting.length, weight)) for weight in weights]
    return _least(ways, _truth(setting))


def _geometric_published(setting: Setting) -> Realtime:
    ways = []
    for end in _ENDS:
        shares = geometric(setting.length, end ** (1 / setting.length))
        ways.append(_gaussian(setting, estimate=one_lag(), schedule=shares, weight=shares))
    return _least(ways, _truth(setting))


def _least(ways: list[Realtime], values: Floats) -> Realtime:
    """The way with the least error in some trials; not private."""
    table = np.repeat(values[:, None], _TRIALS, axis=1)

    def error(way: Realtime) -> float:
        told = way.release_many(table, seeded(_TRYING), Purpose.SIMULATION)
        return float(np.square(told - table).mean())

    return min(ways, key=error)


def _fast(setting: Setting, samples: int | None = None) -> Fast:
    each = (setting.sensitivity, setting.pure(setting.length))
    variance = best_process_variance(_truth(setting), *each)
    return Fast.at(*each, setting.length, process_variance=variance, samples=samples)


def _fourier(setting: Setting) -> Fourier:
    budget = setting.pure(setting.length)
    count = best_coefficients(_truth(setting), setting.sensitivity, budget)
    return Fourier.at(setting.sensitivity, budget, setting.length, count)


def _delayed(setting: Setting) -> DelayedFourier:
    delay, budget = min(_DELAY, setting.length), setting.pure(setting.length)
    count = best_coefficients(_truth(setting), setting.sensitivity, budget, delay)
    return DelayedFourier.at(setting.sensitivity, budget, setting.length, delay, count)


def _ceiling(setting: Setting) -> float:
    """The largest value that can occur, taken from the series."""
    return float(np.abs(_truth(setting)).max()) or 1.0


def _warmup(setting: Setting) -> int:
    return max(1, min(_WARMUP, setting.length // 4))


def _windowed(
    setting: Setting, kind: type[BudgetDistribution] | type[BudgetAbsorption]
) -> SeriesMethod[Releasing]:
    # Never a shorter window than was asked for, even for few values: it is what is promised.
    return kind.at(setting.sensitivity, setting.pure(setting.window), setting.window)


def _event(make: Callable[[Setting], Realtime]) -> Callable[[Setting], Realtime]:
    return lambda setting: make(replace(setting, unit=Unit.EVENT))


def _filtered(setting: Setting) -> Realtime:
    return _gaussian(setting, estimate=_bank(setting))


def _laplace_filtered(setting: Setting) -> Realtime:
    return _laplace(setting, estimate=_bank(setting))


def _plain_gaussian(setting: Setting) -> Realtime:
    return _gaussian(setting, estimate=plain())


def _plain_laplace(setting: Setting) -> Realtime:
    return _laplace(setting, estimate=plain())


METHODS: dict[str, Way] = {
    "silence": Way(
        "the mean of the series for every value: what says nothing loses",
        lambda s: Silence(float(_truth(s).mean())),
        tuned=True,
    ),
    "realtime": Way(
        "Gaussian noise, then a bank of filters that learns the process as it goes", _filtered
    ),
    "published": Way(
        "the paper's rule, with the weight that its own formulas ask for",
        _published,
        tuned=True,
        weighted=True,
    ),
    "published-best": Way(
        "the paper's rule, with the weight of least error", _best_published, tuned=True
    ),
    "published-geometric": Way(
        "the paper's rule, with weights that fall by one factor", _geometric_published, tuned=True
    ),
    "gaussian": Way("independent Gaussian noise", _plain_gaussian),
    "laplace": Way("independent Laplace noise", _plain_laplace),
    "laplace-filtered": Way("Laplace noise, then the bank of filters", _laplace_filtered),
    "discrete-gaussian": Way("discrete Gaussian noise, then the bank of filters", _discrete),
    "binomial": Way("binomial noise, then the bank of filters", _binomial),
    "fast": Way("FAST: Laplace noise and the filter of a random walk", _fast, tuned=True),
    "fast-sampling": Way(
        "FAST with adaptive sampling of a quarter of the values",
        lambda s: _fast(s, max(1, s.length // 4)),
        tuned=True,
    ),
    "fourier": Way(
        "noise on the first Fourier coefficients; needs the whole series", _fourier, tuned=True
    ),
    "delayed-fourier": Way("the same, block by block: late, but online", _delayed, tuned=True),
    "bd": Way("w-event: budget distribution", lambda s: _windowed(s, BudgetDistribution)),
    "ba": Way("w-event: budget absorption", lambda s: _windowed(s, BudgetAbsorption)),
    "event-realtime": Way("event level: Gaussian noise and the bank", _event(_filtered)),
    "event-laplace-filtered": Way(
        "event level: Laplace noise and the bank", _event(_laplace_filtered)
    ),
    "event-gaussian": Way("event level: independent Gaussian noise", _event(_plain_gaussian)),
    "event-laplace": Way("event level: independent Laplace noise", _event(_plain_laplace)),
    "tree": Way(
        "event level: binary tree of sums, differences told",
        lambda s: BinaryTree.at(s.sensitivity, s.pure(1), s.length),
    ),
    "square-root-tree": Way(
        "event level: Gaussian noise through a square root of the sums",
        lambda s: SquareRootTree.at(s.sensitivity, s.epsilon, s.delta, s.length),
    ),
    "pegasus": Way(
        "event level: perturb, group and smooth",
        lambda s: Pegasus.at(s.sensitivity, s.pure(1)),
    ),
    "whole-laplace": Way(
        "event level, the whole value protected: independent Laplace noise",
        lambda s: _event(_plain_laplace)(replace(s, sensitivity=_ceiling(s))),
        tuned=True,
        whole=True,
    ),
    "tops": Way(
        "event level, the whole value protected: threshold, perturb and smooth",
        lambda s: Tops.at(_ceiling(s), s.pure(1), _warmup(s)),
        tuned=True,
        whole=True,
    ),
    "topl": Way(
        "local, the whole value protected: the same by the person herself",
        lambda s: Topl.at(_ceiling(s), s.pure(1), _warmup(s)),
        tuned=True,
        whole=True,
    ),
}

BOTH_UNITS = frozenset(
    {"realtime", "published", "gaussian", "laplace", "laplace-filtered", "discrete-gaussian"}
    | {"binomial"}
)
"""Methods that protect a person's whole series or one value, as the setting says."""
