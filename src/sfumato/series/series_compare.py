"""Ways to release a series of numbers side by side, at equal privacy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import ApproxDP, PureDP
from sfumato.core.progress import Progress
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import seeded
from sfumato.series.filter_banks import seasonal
from sfumato.series.series_methods import METHODS, AnyMethod, Entry, Trait
from sfumato.series.series_release import Unit, checked_series
from sfumato.series.series_spec import SeriesSpec


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a method did.

    Attributes:
        method: Its name.
        says: What it does.
        unit: Whose data it protects together; errors of different units are not comparable.
        kind: Whether its guarantee is pure or approximate (a delta above 0).
        online: Whether each value leaves when it comes.
        helped: Whether it was tuned on the true series.
        epsilon: Of its guarantee.
        delta: Of its guarantee.
        rmse: Root of the mean squared error, over all runs.
        rmse_error: Standard error of that, from the spread over the runs; None for one run.
        mae: Mean absolute error.
        mae_error: Standard error of that; None for one run.
        relative: Root mean squared error as a share of the largest value.
        of_silence: Root mean squared error as a share of a constant's; 1 or more is no use.
    """

    method: str
    says: str
    unit: str
    kind: str
    online: bool
    helped: bool
    epsilon: float
    delta: float
    rmse: float
    rmse_error: float | None
    mae: float
    mae_error: float | None
    relative: float
    of_silence: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Methods side by side on one series.

    Attributes:
        outcomes: By unit, then pure before approximate, the least error first.
        examples: One release of each.
        refused: Methods that cannot be made for the setting, and why.
        silence: Root mean squared error of the best constant.
    """

    outcomes: list[Outcome]
    examples: dict[str, Floats] = field(repr=False)
    refused: dict[str, str]
    silence: float

    @property
    def useless(self) -> list[str]:
        """Methods that are no nearer than a constant."""
        return [one.method for one in self.outcomes if one.of_silence >= 1 and one.epsilon > 0]


def compare(
    series: ArrayLike,
    spec: SeriesSpec | None = None,
    *,
    methods: Sequence[str] | None = None,
    runs: int = 10,
    period: int | None = None,
    phases: Sequence[int] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    **options: Any,
) -> Comparison:
    """Simulate ways to release a series, and measure how near they come.

    Args:
        series: The true values.
        spec: What the methods are made for; or its fields as options.
        methods: Names of `METHODS`; all that can be made if not given.
        runs: Simulations of each.
        period: Phases that the bank of filters learns, such as 7 for a week.
        phases: Which phase each value is, if they do not come in turn.
        seed: Of the simulations.
        progress: Told how many simulations are done.
        options: Fields of `SeriesSpec`: sensitivity, epsilon, delta, window, match, weight.

    Examples:
        >>> walk = np.cumsum(np.tile([1.0, -1.0, 1.0, 0.0], 25))
        >>> found = compare(
        ...     walk, sensitivity=1.0, epsilon=5.0, delta=1e-6,
        ...     methods=["realtime", "gaussian", "silence"], runs=2,
        ... )
        >>> [outcome.method for outcome in found.outcomes]
        ['silence', 'realtime', 'gaussian']
        >>> found.useless  # its noise is wider than the series
        ['gaussian']
    """
    values = checked_series(series)
    for name in methods or ():
        METHODS.named(name, "methods")
    if period is not None:
        options["estimate"] = seasonal(period, phases=phases)
    setting = SeriesSpec.of(spec, **options, length=values.size, truth=values)
    made, refused = _made(setting, methods)
    outcomes, examples, done = [], {}, 0
    silence = float(values.std())
    for name, method in made.items():
        released = []
        for run in range(checks.count("runs", runs)):
            released.append(method.release(values, seeded(seed + run), Purpose.SIMULATION))
            done += 1
            if progress:
                progress(done)
        examples[name] = released[0]
        outcomes.append(_outcome(name, method, setting, np.array(released)))
    return Comparison(sorted(outcomes, key=_place), examples, refused, silence)


def _made(
    setting: SeriesSpec, methods: Sequence[str] | None
) -> tuple[dict[str, AnyMethod], dict[str, str]]:
    """The methods, and those of all that the setting leaves no room for."""
    made: dict[str, AnyMethod] = {}
    refused: dict[str, str] = {}
    for name in METHODS if methods is None else methods:
        try:
            made[name] = METHODS[name].make(setting)
        except InvalidParameter as problem:
            # A method that was asked for by name must not be left out silently.
            if methods is not None or len(METHODS) - len(refused) == 1:
                raise
            refused[name] = str(problem)
    return made, refused


_WHOLE = f"{Unit.EVENT.value}, whole value"
_UNITS = {"any": 0, Unit.USER.value: 1, Unit.WINDOW.value: 2, Unit.EVENT.value: 3, _WHOLE: 4}


def _place(outcome: Outcome) -> tuple[int, bool, float]:
    return _UNITS[outcome.unit], outcome.kind != "pure", outcome.rmse


def _outcome(name: str, method: AnyMethod, setting: SeriesSpec, released: Floats) -> Outcome:
    entry, values = METHODS[name], setting.true_series
    guarantee: PureDP | ApproxDP = method.guarantee
    errors = released - values
    squares, sizes = np.square(errors).mean(axis=1), np.abs(errors).mean(axis=1)
    rmse = math.sqrt(float(squares.mean()))
    silence = float(values.std())
    spread = _standard_error(squares)
    return Outcome(
        method=name,
        says=entry.says,
        unit=_unit(entry, method),
        kind="approximate" if guarantee.delta else "pure",
        online=method.online,
        helped=entry.helped(setting),
        epsilon=guarantee.epsilon,
        delta=guarantee.delta,
        rmse=rmse,
        # The root's slope at the mean square.
        rmse_error=None if spread is None else (spread / (2 * rmse) if rmse else 0.0),
        mae=float(sizes.mean()),
        mae_error=_standard_error(sizes),
        relative=rmse / (float(np.abs(values).max()) or 1.0),
        of_silence=rmse / silence if silence else math.inf if rmse else 1.0,
    )


def _unit(entry: Entry, method: AnyMethod) -> str:
    """Whose data are protected; methods for the whole value are no rivals of the others."""
    if not method.guarantee.epsilon:
        return "any"
    return _WHOLE if Trait.WHOLE in entry.traits else method.unit.value


def _standard_error(each: Floats) -> float | None:
    """Of a mean over runs."""
    return float(each.std(ddof=1) / math.sqrt(each.size)) if each.size > 1 else None
