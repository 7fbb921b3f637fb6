"""A series of numbers, released once or as it comes, with a certificate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sfumato.core import checks
from sfumato.core.digest import digest
from sfumato.core.errors import InvalidParameter
from sfumato.core.numerics import shown_up
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Randomness
from sfumato.series.filter_banks import Risk, measured_risk
from sfumato.series.filters import Estimate
from sfumato.series.realtime import Realtime, RunningSeries
from sfumato.series.rivals.tree import BinaryTree, SquareRootTree
from sfumato.series.rivals.windowed import Windowed
from sfumato.series.series_compare import continued, stepped
from sfumato.series.series_methods import BOTH_UNITS, METHODS, Setting
from sfumato.series.series_release import Releasing, SeriesMethod, Unit, checked_series

UNITS = {"user": Unit.USER, "event": Unit.EVENT, "w-event": Unit.WINDOW}
_BANKS = ("realtime", "laplace-filtered", "discrete-gaussian", "binomial")
"""Methods whose filter may be another one."""


@dataclass(frozen=True, slots=True)
class SeriesCertificate:
    """What a released series promises, and what it is worth; nothing of it depends on the truth.

    Attributes:
        method: How it was released.
        unit: Whose data are protected together.
        protects: The same in words.
        epsilon: Of the guarantee of all values that the budget is for.
        delta: Of the guarantee.
        sensitivity: The most that one person can change any value.
        length: Values that the budget is for.
        values: Values released.
        estimate: The filter after the noise; None if there is none.
        interval: What values were clamped to, before the noise and after it.
        cost: Root mean squared error that is expected; None if the method cannot say.
        silence: The same of a constant, as far as what was released shows.
        remarks: What to know besides.
        fingerprint: Of the method and all its parameters.
    """

    method: str
    unit: str
    protects: str
    epsilon: float
    delta: float
    sensitivity: float
    length: int
    values: int
    estimate: str | None
    interval: tuple[float, float] | None
    cost: float | None
    silence: float | None
    remarks: tuple[str, ...]
    fingerprint: str


@dataclass(frozen=True, slots=True)
class ReleasedSeries:
    """A released series.

    Attributes:
        values: What leaves, one for each new moment; None where there was no value.
        certificate: What it promises.
        clamped: Values outside the range; known to the owner of the data alone.
        error: The true root mean squared error; likewise.
        deviation: That of the best constant; likewise.
    """

    values: list[float | None]
    certificate: SeriesCertificate
    clamped: int
    error: float
    deviation: float


def release_series(
    series: Sequence[float | None],
    setting: Setting,
    *,
    method: str = "realtime",
    unit: str | None = None,
    estimate: Estimate | None = None,
    interval: tuple[float, float] | None = None,
    state: Path | None = None,
    name: str | None = None,
    randomness: Randomness,
    purpose: Purpose = Purpose.RELEASE,
) -> ReleasedSeries:
    """Release a series, or what a stored state has not seen of it.

    Args:
        series: The values so far; None where a moment has none, which passes.
        setting: What the method is made for.
        method: One of `METHODS` that is not tuned on the true series.
        unit: "user", "event" or "w-event"; what the method protects if not given.
        estimate: The filter; a bank that learns if not given.
        interval: Values are clamped to it before the noise, and what leaves is after it.
        state: File to go on from.
        name: Of the series, with keyed coins.
        randomness: Source of coins.
        purpose: A simulation may use seeded coins; a release may not.

    Examples:
        >>> from sfumato.core.randomness import seeded
        >>> done = release_series(
        ...     [50.0, 52.0, None, 51.0], Setting(1.0, 2.0, 1e-6, 4), interval=(0.0, 100.0),
        ...     randomness=seeded(1), purpose=Purpose.SIMULATION,
        ... )
        >>> done.certificate.unit, [value is None for value in done.values]
        ('user level', [False, False, True, False])
    """
    made = series_method(method, unit, setting, estimate)
    values, clamped = _clamped(series, interval)
    running: Releasing
    if state is None:
        _check_length(values, setting)
        told, running = _all(made, values, randomness, name, purpose)
    elif isinstance(made, Realtime) and name is None:
        told, running = continued(made, values, state, randomness, purpose)
    else:
        rule = "come with noise and a filter, without a key"
        raise InvalidParameter("state", str(state), rule)
    risk = _risk(made, running, told)
    told = [None if value is None else _within(value, interval) for value in told]
    pairs = zip(values[len(values) - len(told) :], told, strict=True)
    errors, truths = _errors([(t, x) for t, x in pairs if t is not None and x is not None])
    certificate = _certificate(method, made, setting, interval, told, risk)
    return ReleasedSeries(told, certificate, clamped, errors, truths)


def series_method(
    method: str, unit: str | None, setting: Setting, estimate: Estimate | None = None
) -> SeriesMethod[Releasing]:
    """The method of a name, for a unit; refused if it is tuned on the truth or for another unit."""
    if method not in METHODS:
        raise InvalidParameter("method", method, f"be one of {', '.join(METHODS)}")
    way = METHODS[method]
    if way.helped(setting):
        rule = (
            "come with a weight (--weight)" if way.weighted else "not be tuned on the true series"
        )
        raise InvalidParameter("method", method, rule)
    if unit is not None and unit not in UNITS:
        raise InvalidParameter("unit", unit, f"be one of {', '.join(UNITS)}")
    if estimate is not None and method.removeprefix("event-") not in _BANKS:
        raise InvalidParameter("method", method, "learn, to be given a period or a history")
    wanted = None if unit is None else UNITS[unit]
    if method in BOTH_UNITS and wanted is not None:
        setting = replace(setting, unit=wanted)
    made = way.make(replace(setting, estimate=estimate))
    if wanted not in (None, made.unit):
        raise InvalidParameter("unit", unit, f"be that of {method}, which is {made.unit.value}")
    return made


def _clamped(
    series: Sequence[float | None], interval: tuple[float, float] | None
) -> tuple[list[float | None], int]:
    known = [value for value in series if value is not None]
    checked_series(known)
    if interval is None:
        return [None if value is None else float(value) for value in series], 0
    low, high = interval
    outside = sum(not low <= value <= high for value in known)
    return [None if value is None else _within(value, interval) for value in series], outside


def _within(value: float, interval: tuple[float, float] | None) -> float:
    return float(value) if interval is None else min(max(float(value), interval[0]), interval[1])


def _check_length(values: Sequence[float | None], setting: Setting) -> None:
    """As many values as were stated at most, of every method: also of those that know no end."""
    checks.count("length", len(values))
    if len(values) > setting.length:
        rule = f"have at most {setting.length} values, as many as the budget is for"
        raise InvalidParameter("series", len(values), rule)


def _all(
    made: SeriesMethod[Releasing],
    values: Sequence[float | None],
    randomness: Randomness,
    name: str | None,
    purpose: Purpose,
) -> tuple[list[float | None], Releasing]:
    running = made.begin(randomness, name=name, purpose=purpose)
    if isinstance(running, RunningSeries):
        return stepped(running, values), running
    if any(value is None for value in values):
        raise InvalidParameter("missing", "skip", "come with a method that measures and filters")
    return [running.step(value) for value in values if value is not None], running


def _risk(
    made: SeriesMethod[Releasing], running: Releasing, told: Sequence[float | None]
) -> Risk | None:
    """What is expected of the error, from public things alone."""
    if isinstance(running, RunningSeries) and running.risk is not None:
        return running.risk
    noises: Sequence[float]
    if isinstance(made, BinaryTree | SquareRootTree):
        noises = made.variances().tolist()
    elif isinstance(made, Realtime) and made.estimate.name == "plain":
        noises = made.variances.tolist()
    else:
        return None
    used = [
        (x, v) for x, v in zip(told, noises, strict=False) if x is not None and math.isfinite(v)
    ]
    if not used:
        return None
    values, variances = np.array([x for x, _ in used]), np.array([v for _, v in used])
    away = values - values[0]
    sums = (float(away.sum()), float(away @ away), float(variances.sum()))
    return measured_risk(float(variances.mean()), len(used), *sums)


def _errors(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Root mean squared errors of what leaves, and of the best constant."""
    truth, told = np.array([t for t, _ in pairs]), np.array([x for _, x in pairs])
    if not pairs:
        return 0.0, 0.0
    return math.sqrt(float(np.square(told - truth).mean())), float(truth.std())


def _certificate(
    method: str,
    made: SeriesMethod[Releasing],
    setting: Setting,
    interval: tuple[float, float] | None,
    told: Sequence[float | None],
    risk: Risk | None,
) -> SeriesCertificate:
    guarantee = made.guarantee
    return SeriesCertificate(
        method=method,
        unit=made.unit.value,
        protects=_protects(made, setting),
        epsilon=guarantee.epsilon,
        delta=guarantee.delta,
        sensitivity=setting.sensitivity,
        length=setting.length,
        values=sum(value is not None for value in told),
        estimate=made.estimate.name if isinstance(made, Realtime) else None,
        interval=interval,
        cost=None if risk is None else risk.error,
        silence=None if risk is None else risk.silence,
        remarks=tuple(_remarks(told, risk)),
        fingerprint=digest("released series", made.fingerprint),
    )


def _protects(made: SeriesMethod[Releasing], setting: Setting) -> str:
    by = f"by at most {shown_up(setting.sensitivity)}"
    if isinstance(made, Windowed):
        return f"a person in any {made.window} successive values, who may change each {by}"
    if made.unit is Unit.USER:
        return f"a person who may be in every value and change each {by}"
    return f"one value, which may change {by}; who is in several is protected in each alone"


def _remarks(told: Sequence[float | None], risk: Risk | None) -> list[str]:
    found = []
    empty = sum(value is None for value in told)
    if empty:
        found.append(f"{empty:,} moments have no value, and what leaves shows which")
    if risk is not None and risk.doubtful:
        found.append(
            f"a constant may be as near to the series: the expected error is {risk.error:.4g}, and "
            f"what was released shows a deviation of {risk.silence:.4g}"
        )
    return found
