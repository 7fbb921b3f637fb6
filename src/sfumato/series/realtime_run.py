"""A series of numbers, released once or as it comes, with a certificate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.core.certificate import Certificate
from sfumato.core.digest import digest
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import ApproxDP, PureDP
from sfumato.core.printed import shown_up
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Randomness
from sfumato.series.memory import Memory
from sfumato.series.realtime import Realtime
from sfumato.series.risk import Risk
from sfumato.series.rivals.windowed import Windowed
from sfumato.series.series_ledger import SeriesLedger, ledgered, rules_document
from sfumato.series.series_methods import AnyMethod, series_method
from sfumato.series.series_release import SeriesEvent, SeriesRelease, Unit, checked_series
from sfumato.series.series_spec import SeriesSpec
from sfumato.store.codec import to_bytes
from sfumato.store.files import load_state
from sfumato.store.outputs import locked, write_whole

Values = Sequence[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesCertificate(Certificate):
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
        fingerprint: Of the method and all its parameters.
        rules: What was asked for, from which an audit makes the noise again.
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
    fingerprint: str
    rules: dict[str, Any]


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
    series: Values,
    spec: SeriesSpec,
    *,
    state: Path | None = None,
    ledger: SeriesLedger | None = None,
    name: str | None = None,
    randomness: Randomness,
    purpose: Purpose = Purpose.RELEASE,
) -> ReleasedSeries:
    """Release a series, or what a stored state has not seen of it.

    Args:
        series: The values so far; None where a moment has none, which passes.
        spec: How.
        state: File to go on from.
        ledger: Where every answer is kept, instead; rows that were answered before get their old
            answers.
        name: Of the series, with keyed coins.
        randomness: Source of coins.
        purpose: A simulation may use seeded coins; a release may not.

    Examples:
        >>> from sfumato.core.randomness import seeded
        >>> done = release_series(
        ...     [50.0, 52.0, None, 51.0], SeriesSpec(1.0, 2.0, length=4, interval=(0.0, 100.0)),
        ...     randomness=seeded(1), purpose=Purpose.SIMULATION,
        ... )
        >>> done.certificate.unit, [value is None for value in done.values]
        ('user level', [False, False, True, False])
    """
    method = series_method(spec)
    values, clamped = _clamped(series, spec)
    memory: Memory
    if ledger is not None:
        events, memory, method = ledgered(method, spec, values, ledger, randomness, purpose)
    else:
        if len(values) > spec.length:
            # Of every method: also of those that know no end.
            rule = f"have at most {spec.length} values, as many as the budget is for"
            raise InvalidParameter("series", len(values), rule)
        if state is None:
            running = method.begin(randomness, name=name, purpose=purpose)
            events = running.advance(values)
        elif name is None and not method.secret:
            events, running = continued(method, values, state, randomness, purpose)
        else:
            rule = "come without a key, and with a method whose memory tells nothing"
            raise InvalidParameter("state", str(state), rule)
        memory = running.memory
    released = [event.released for event in events]
    risk = method.risk(memory, released)
    shown = [spec.within(value) for value in released]
    pairs = zip(values[len(values) - len(shown) :], shown, strict=True)
    errors, truths = _errors([(t, x) for t, x in pairs if t is not None and x is not None])
    certificate = series_certificate(method, spec, shown, risk, purpose)
    return ReleasedSeries(shown, certificate, clamped, errors, truths)


def continued(
    method: AnyMethod, series: Values, state: Path, randomness: Randomness, purpose: Purpose
) -> tuple[list[SeriesEvent], SeriesRelease]:
    """Release what a stored state has not seen of a series, and store the new state.

    The state is on disk, and its folder too, before anything is returned: an answer that left is
    always counted. Nobody else can use the state meanwhile.

    Args:
        method: How; the one that the state was begun with.
        series: The whole series so far; None where a moment has no value.
        state: The file; it is made if it does not exist.
        randomness: Source of coins.
        purpose: A simulation may use seeded coins; a release may not.

    Raises:
        FileInUse: If another run has the state; nothing was released.
    """
    checked_series([value for value in series if value is not None])
    with locked(state):
        before = load_state(state) if state.exists() else None
        running = method.begin(randomness, purpose=purpose, state=before)
        if running.time >= len(series):
            rule = f"have values after the first {running.time}, which were released"
            raise InvalidParameter("series", len(series), rule)
        events = running.advance(series[running.time :])
        write_whole(state, to_bytes(running.state))
    return events, running


def _clamped(series: Values, spec: SeriesSpec) -> tuple[list[float | None], int]:
    """The values within the range, and how many were not."""
    checked_series([value for value in series if value is not None])
    given = [None if value is None else float(value) for value in series]
    inside = [spec.within(value) for value in given]
    return inside, sum(one != other for one, other in zip(given, inside, strict=True))


def _errors(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Root mean squared errors of what leaves, and of the best constant."""
    if not pairs:
        return 0.0, 0.0
    truth, released = np.array(pairs).T
    return math.sqrt(float(np.square(released - truth).mean())), float(truth.std())


def series_certificate(
    method: AnyMethod, spec: SeriesSpec, released: Values, risk: Risk | None, purpose: Purpose
) -> SeriesCertificate:
    """What released values promise, and what they are worth: a function of public things."""
    guarantee: PureDP | ApproxDP = method.guarantee
    return SeriesCertificate(
        guarantees=(guarantee,),
        scopes=(f"at {method.unit.value}",),
        loss="root mean squared",
        cost=None if risk is None else risk.error,
        silence=None if risk is None else risk.silence,
        purpose=purpose,
        remarks=tuple(series_remarks(released, risk)),
        method=spec.method,
        unit=method.unit.value,
        protects=_protects(method, spec),
        epsilon=guarantee.epsilon,
        delta=guarantee.delta,
        sensitivity=spec.sensitivity,
        length=spec.length,
        values=sum(value is not None for value in released),
        estimate=method.estimate.name if isinstance(method, Realtime) else None,
        interval=spec.interval,
        fingerprint=digest("released series", method.fingerprint),
        rules=rules_document(method, spec, purpose),
    )


def _protects(method: AnyMethod, spec: SeriesSpec) -> str:
    by = f"by at most {shown_up(spec.sensitivity)}"
    if isinstance(method, Windowed):
        return f"a person in any {method.window} successive values, who may change each {by}"
    if method.unit is Unit.USER:
        return f"a person who may be in every value and change each {by}"
    return f"one value, which may change {by}; who is in several is protected in each alone"


def series_remarks(released: Values, risk: Risk | None) -> list[str]:
    """What a careful reader of released values should know.

    Args:
        released: What left; None where a moment has none.
        risk: What is expected of the error; None if that cannot be said.

    Examples:
        >>> series_remarks([None, 1.0, None], None)
        ['2 moments have no value, and what leaves shows which']
    """
    found = []
    if empty := sum(value is None for value in released):
        found.append(f"{empty:,} moments have no value, and what leaves shows which")
    if risk is not None and risk.doubtful:
        found.append(
            f"a constant may be as near to the series: the expected error is {risk.error:.4g}, and "
            f"what was released shows a deviation of {risk.silence:.4g}"
        )
    return found
