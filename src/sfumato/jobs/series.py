"""Ways to release a series of numbers, by name, side by side at equal privacy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _checks
from sfumato.codec import from_bytes, to_bytes
from sfumato.errors import InvalidParameter
from sfumato.guarantees import ApproxDP, PureDP
from sfumato.jobs import Progress
from sfumato.outputs import locked, write_whole
from sfumato.randomness import Randomness, seeded
from sfumato.streaming.banks import learned
from sfumato.streaming.fast import Fast, best_process_variance
from sfumato.streaming.filters import one_lag, plain
from sfumato.streaming.fourier import DelayedFourier, Fourier, best_coefficients
from sfumato.streaming.instant import Purpose
from sfumato.streaming.pegasus import Pegasus
from sfumato.streaming.realtime import Realtime, RealtimeState
from sfumato.streaming.series import Releasing, SeriesMethod, checked_series
from sfumato.streaming.tops import Topl, Tops
from sfumato.streaming.tree import BinaryTree, SquareRootTree
from sfumato.streaming.windowed import BudgetAbsorption, BudgetDistribution

Floats = NDArray[np.float64]


class Match(StrEnum):
    """What "equal privacy" of pure and of approximate methods means."""

    EPSILON = "epsilon"
    VARIANCE = "variance"


@dataclass(frozen=True, slots=True)
class Setting:
    """What a method is made for.

    Attributes:
        sensitivity: The most that one person can change any value.
        epsilon: Budget of approximate methods.
        delta: Budget of approximate methods.
        pure: Budget of pure methods.
        length: Number of values.
        window: Values protected together, for methods of that kind.
        series: The true values, for methods that are helped; None where nobody may be.
    """

    sensitivity: float
    epsilon: float
    delta: float
    pure: float
    length: int
    window: int = 10
    series: Floats | None = None


@dataclass(frozen=True, slots=True)
class Way:
    """A method by name.

    Attributes:
        says: What it does, in one line.
        make: Makes it for a setting.
        helped: Whether it is tuned on the true series, as its papers do: not for real releases.
    """

    says: str
    make: Callable[[Setting], SeriesMethod[Releasing]]
    helped: bool = False


_PUBLISHED_WEIGHT = 0.3
"""Weight of the true value in the published rule; the paper leaves it to the user."""
_DELAY, _WARMUP = 24, 64
"""Values of a block of the delayed transform; values from which a threshold is found."""


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
        **options,  # type: ignore[arg-type]
    )


def _laplace(setting: Setting, **options: object) -> Realtime:
    return Realtime.laplace(
        setting.sensitivity,
        epsilon=setting.pure,
        length=setting.length,
        **options,  # type: ignore[arg-type]
    )


def _fast(setting: Setting, samples: int | None = None) -> Fast:
    each = (setting.sensitivity, setting.pure)
    variance = best_process_variance(_truth(setting), *each)
    return Fast.at(*each, setting.length, process_variance=variance, samples=samples)


def _fourier(setting: Setting) -> Fourier:
    count = best_coefficients(_truth(setting), setting.sensitivity, setting.pure)
    return Fourier.at(setting.sensitivity, setting.pure, setting.length, count)


def _delayed(setting: Setting) -> DelayedFourier:
    delay = min(_DELAY, setting.length)
    count = best_coefficients(_truth(setting), setting.sensitivity, setting.pure, delay)
    return DelayedFourier.at(setting.sensitivity, setting.pure, setting.length, delay, count)


def _ceiling(setting: Setting) -> float:
    """The largest value that can occur, taken from the series."""
    return float(np.abs(_truth(setting)).max()) or 1.0


def _warmup(setting: Setting) -> int:
    return max(1, min(_WARMUP, setting.length // 4))


def _windowed(
    setting: Setting, kind: type[BudgetDistribution] | type[BudgetAbsorption]
) -> SeriesMethod[Releasing]:
    return kind.at(setting.sensitivity, setting.pure, min(setting.window, setting.length))


METHODS: dict[str, Way] = {
    "realtime": Way(
        "Gaussian noise, then a bank of filters that learns the process as it goes",
        lambda s: _gaussian(s, estimate=learned()),
    ),
    "published": Way(
        "the paper's rule: a convex combination with an estimate from the last release",
        lambda s: _gaussian(s, estimate=one_lag(), weight=_PUBLISHED_WEIGHT),
    ),
    "gaussian": Way("independent Gaussian noise", lambda s: _gaussian(s, estimate=plain())),
    "laplace": Way("independent Laplace noise", lambda s: _laplace(s, estimate=plain())),
    "laplace-filtered": Way(
        "Laplace noise, then the bank of filters", lambda s: _laplace(s, estimate=learned())
    ),
    "discrete-gaussian": Way(
        "discrete Gaussian noise, then the bank of filters",
        lambda s: Realtime.discrete_gaussian(
            s.sensitivity, epsilon=s.epsilon, delta=s.delta, length=s.length
        ),
    ),
    "binomial": Way(
        "binomial noise, then the bank of filters",
        lambda s: Realtime.binomial(
            s.sensitivity, epsilon=s.epsilon, delta=s.delta, length=s.length
        ),
    ),
    "fast": Way("FAST: Laplace noise and the filter of a random walk", _fast, helped=True),
    "fast-sampling": Way(
        "FAST with adaptive sampling of a quarter of the values",
        lambda s: _fast(s, max(1, s.length // 4)),
        helped=True,
    ),
    "fourier": Way(
        "noise on the first Fourier coefficients; needs the whole series", _fourier, True
    ),
    "delayed-fourier": Way("the same, block by block: late, but online", _delayed, helped=True),
    "bd": Way("w-event: budget distribution", lambda s: _windowed(s, BudgetDistribution)),
    "ba": Way("w-event: budget absorption", lambda s: _windowed(s, BudgetAbsorption)),
    "tree": Way(
        "event level: binary tree of sums, differences told",
        lambda s: BinaryTree.at(s.sensitivity, s.pure, s.length),
    ),
    "square-root-tree": Way(
        "event level: Gaussian noise through a square root of the sums",
        lambda s: SquareRootTree.at(s.sensitivity, s.epsilon, s.delta, s.length),
    ),
    "pegasus": Way(
        "event level: perturb, group and smooth",
        lambda s: Pegasus.at(s.sensitivity, s.pure),
    ),
    "tops": Way(
        "event level, the whole value protected: threshold, perturb and smooth",
        lambda s: Tops.at(_ceiling(s), s.pure, _warmup(s)),
        helped=True,
    ),
    "topl": Way(
        "local, the whole value protected: the same by the person herself",
        lambda s: Topl.at(_ceiling(s), s.pure, _warmup(s)),
        helped=True,
    ),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a method did.

    Attributes:
        method: Its name.
        says: What it does.
        unit: Whose data it protects together.
        online: Whether each value leaves when it comes.
        helped: Whether it was tuned on the true series.
        epsilon: Of its guarantee.
        delta: Of its guarantee.
        rmse: Root of the mean squared error, over all runs.
        mae: Mean absolute error.
        relative: The paper's relative error, mean over the runs.
    """

    method: str
    says: str
    unit: str
    online: bool
    helped: bool
    epsilon: float
    delta: float
    rmse: float
    mae: float
    relative: float


def matched_epsilon(sensitivity: float, epsilon: float, delta: float, length: int) -> float:
    """The pure budget whose Laplace noise has the variance of the Gaussian noise of another one.

    The paper's rule for a fair comparison: independent Gaussian noise then does no better than
    independent Laplace noise, so whoever beats it does not owe it to a better composition.

    References:
        [RTR, Sec. 8.1]
    """
    noise = Realtime.gaussian(
        sensitivity, epsilon=epsilon, delta=delta, length=length, estimate=plain()
    ).variances[0]
    return length * sensitivity * math.sqrt(2 / float(noise))


def compare(
    series: ArrayLike,
    *,
    sensitivity: float,
    epsilon: float,
    delta: float,
    methods: Sequence[str] | None = None,
    runs: int = 10,
    window: int = 10,
    match: str = Match.EPSILON,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[list[Outcome], dict[str, Floats]]:
    """Simulate ways to release a series, and measure how near they come.

    Args:
        series: The true values.
        sensitivity: The most that one person can change any value.
        epsilon: Budget.
        delta: Budget of approximate methods.
        methods: Names of `METHODS`; all if not given.
        runs: Simulations of each.
        window: Values protected together by w-event methods.
        match: Give pure methods the same epsilon, or noise of the same variance.
        seed: Of the simulations.
        progress: Told how many simulations are done.

    Returns:
        Outcomes, the best first, and one release of each.

    Examples:
        >>> walk = np.cumsum(np.tile([1.0, -1.0, 1.0, 0.0], 25))
        >>> found, _ = compare(
        ...     walk, sensitivity=1.0, epsilon=5.0, delta=1e-6,
        ...     methods=["realtime", "gaussian"], runs=2,
        ... )
        >>> [outcome.method for outcome in found]
        ['realtime', 'gaussian']
    """
    values = checked_series(series)
    names = list(METHODS) if methods is None else list(methods)
    for name in names:
        if name not in METHODS:
            raise InvalidParameter("methods", name, f"be of {', '.join(METHODS)}")
    if match not in list(Match):
        raise InvalidParameter("match", match, f"be one of {', '.join(Match)}")
    budget = _checks.epsilon("epsilon", epsilon)
    pure = budget
    if match == Match.VARIANCE:
        pure = min(matched_epsilon(sensitivity, budget, delta, values.size), _checks.MAX_EPSILON)
    setting = Setting(sensitivity, budget, delta, pure, values.size, window, values)
    outcomes, examples, done = [], {}, 0
    for name in names:
        way = METHODS[name]
        method = way.make(setting)
        told = []
        for run in range(_checks.count("runs", runs)):
            told.append(method.release(values, seeded(seed + run), Purpose.SIMULATION))
            done += 1
            if progress:
                progress(done)
        examples[name] = told[0]
        outcomes.append(_outcome(name, way, method, values, np.array(told)))
    return sorted(outcomes, key=lambda outcome: outcome.rmse), examples


def _outcome(
    name: str, way: Way, method: SeriesMethod[Releasing], values: Floats, told: Floats
) -> Outcome:
    errors = told - values
    guarantee: PureDP | ApproxDP = method.guarantee
    highest = float(np.abs(values).max()) or 1.0
    norms = np.sqrt(np.square(errors).sum(axis=1))
    return Outcome(
        method=name,
        says=way.says,
        unit=method.unit.value,
        online=method.online,
        helped=way.helped,
        epsilon=guarantee.epsilon,
        delta=guarantee.delta,
        rmse=float(np.sqrt(np.square(errors).mean())),
        mae=float(np.abs(errors).mean()),
        relative=float(norms.mean() / (values.size * highest)),
    )


def continued(
    method: Realtime, series: ArrayLike, state: Path, randomness: Randomness, purpose: Purpose
) -> Floats:
    """Release what a stored state has not seen of a series, and store the new state.

    The state is on disk, and its folder too, before anything is returned: an answer that left is
    always counted. Nobody else can use the state meanwhile.

    Args:
        method: How; the one that the state was begun with.
        series: The whole series so far.
        state: The file; it is made if it does not exist.
        randomness: Source of coins.
        purpose: A simulation may use seeded coins; a release may not.

    Raises:
        FileInUse: If another run has the state; nothing was released.
    """
    with locked(state):
        return _continued(method, checked_series(series), state, randomness, purpose)


def _continued(
    method: Realtime, values: Floats, state: Path, randomness: Randomness, purpose: Purpose
) -> Floats:
    if state.exists():
        known = from_bytes(state.read_bytes(), RealtimeState)
        running = method.resume(known, randomness, purpose=purpose)
    else:
        running = method.begin(randomness, purpose=purpose)
    if running.time >= values.size:
        rule = f"have values after the first {running.time}, which were released"
        raise InvalidParameter("series", values.size, rule)
    if values.size > len(method.noises):
        rule = f"have at most {len(method.noises)} values, as many as the budget is for"
        raise InvalidParameter("series", values.size, rule)
    told = np.array([running.step(float(value)) for value in values[running.time :]])
    write_whole(state, to_bytes(running.state))
    return told
