"""Check a released series from public things alone: its noise, charges, budget and arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec

from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.core.purpose import Purpose
from sfumato.series.calibration import promised
from sfumato.series.filters import Estimate
from sfumato.series.realtime import Realtime
from sfumato.series.rivals.windowed import Windowed
from sfumato.series.series_ledger import JOB, ledger_plan
from sfumato.series.series_methods import AnyMethod, series_method
from sfumato.series.series_spec import SeriesSpec
from sfumato.store.ledger_check import checked
from sfumato.store.ledger_reader import LedgerReader
from sfumato.store.protocol import Answer

_SHOWN = 20
# Two computations of one bound, each rounded up, may differ by so much.
_ALIKE = 1e-9


@dataclass(slots=True)
class SeriesAudit:
    """What was found.

    Attributes:
        rows: Released values, of the output or else of the ledger.
        epsilon: Of the guarantee, recomputed from the rules.
        delta: Of the guarantee.
        unit: Whose data are protected together.
        purpose: Whether data left, or coins can be guessed.
        spent: Sum of the charges in the ledger; None without one.
        streams: Series that the guarantee holds for, each by itself; whoever is in several of them
            has the sum.
        checked: What was verified.
        unchecked: What cannot be told from public things.
        problems: What is wrong, the first few.
    """

    rows: int
    epsilon: float
    delta: float
    unit: str
    purpose: str
    spent: float | None = None
    streams: int = 1
    checked: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether everything fits."""
        return not self.problems

    def note(self, problem: str) -> None:
        """Remember a problem."""
        if len(self.problems) < _SHOWN:
            self.problems.append(problem)


def read_rules(document: dict[str, Any], where: str) -> tuple[SeriesSpec, AnyMethod, Purpose]:
    """The spec, the method and the purpose of a document of rules.

    Raises:
        CorruptData: If it is none.
    """
    try:
        names = ("sensitivity", "epsilon", "delta", "length", "window", "method", "unit", "weight")
        spec = SeriesSpec(**{name: document[name] for name in names})
        ends, purpose = document["interval"], Purpose(document["purpose"])
        spec = replace(spec, interval=None if ends is None else (float(ends[0]), float(ends[1])))
        method = series_method(spec)
        if isinstance(method, Realtime):
            # A filter is a function of what is released: noise and charges do not depend on it.
            estimate = Estimate(str(document["estimate"]), method.estimate.begin)
            method = replace(method, estimate=estimate)
    except (KeyError, TypeError, ValueError, IndexError, InvalidParameter) as problem:
        raise CorruptData(f"{where}: the rules of the series are damaged: {problem}") from problem
    return spec, method, purpose


def audit_series(
    certificate: dict[str, Any] | None,
    released: Sequence[float | None] | None,
    ledger: str | Path | None,
    *,
    simulation: bool = False,
) -> SeriesAudit:
    """Check the output of `realtime`, its certificate and its ledger, as far as they are given.

    Args:
        certificate: What was written beside the output.
        released: The values of the output; None where a moment has none.
        ledger: The ledger; it is only read.
        simulation: Whether one is what was meant; else it is a problem.
    """
    if ledger is None:
        if certificate is None or released is None:
            raise InvalidParameter(
                "OUTPUT", None, "be what `realtime` wrote, or come with a ledger"
            )
        report, method, spec = _begun(certificate.get("rules"), "the certificate")
    else:
        with LedgerReader(ledger) as reader:
            rules = reader.front.rules
            document = None if rules is None else msgspec.json.decode(rules)
            report, method, spec = _begun(document, str(ledger))
            if (
                reader.front.job != JOB.name
                or document is None
                or reader.front.plan != document["plan"]
            ):
                report.note("the ledger is not that of the rules that it holds")
            for problem in checked(reader).problems:
                report.note(f"the ledger: {problem}")
            answers = list(reader.history())
        _check_answers(report, method, spec, answers)
        if released is not None:
            _check_output(report, released, answers)
        report.rows = len(answers)
    if report.purpose != Purpose.RELEASE and not simulation:
        report.note("this is a simulation: its coins can be guessed (see --simulation)")
    if certificate is not None:
        _check_certificate(report, spec, certificate)
    if released is not None:
        report.rows = len(released)
        _check_values(report, method, spec, released)
    return report


def _begun(document: Any, where: str) -> tuple[SeriesAudit, AnyMethod, SeriesSpec]:
    if not isinstance(document, dict):
        raise CorruptData(f"{where}: it does not hold the rules of a series")
    spec, method, purpose = read_rules(document, where)
    promise = method.guarantee
    report = SeriesAudit(0, promise.epsilon, promise.delta, method.unit.value, purpose.value)
    if promise.epsilon > spec.epsilon or promise.delta > spec.delta:
        report.note(f"the noise promises {promise}, which is over the budget")
    if document["plan"] != ledger_plan(method, spec, purpose):
        report.note("the rules are not those of the plan that they name")
    values = f"{spec.length:,} values of a series"
    report.checked.append(f"the noise of {spec.method} for {values} keeps {promise}")
    report.unchecked.append("that a person changes a value by no more than the sensitivity")
    report.unchecked.append("that the coins were random, and used once")
    return report, method, spec


def _check_certificate(report: SeriesAudit, spec: SeriesSpec, certificate: dict[str, Any]) -> None:
    """The numbers that people read."""
    for name, found in (("epsilon", report.epsilon), ("delta", report.delta)):
        claimed = certificate.get(name)
        if not isinstance(claimed, float | int) or claimed < found * (1 - _ALIKE):
            report.note(f"the certificate says {name} {claimed}; the noise has {found}")
    if certificate.get("unit") != report.unit:
        report.note(f"the certificate says {certificate.get('unit')}; the method has {report.unit}")
    for name in ("sensitivity", "length", "method"):
        if certificate.get(name) != getattr(spec, name):
            report.note(f"the certificate says another {name} than its rules")
    report.checked.append("the certificate says what the noise promises")


def _check_answers(
    report: SeriesAudit, method: AnyMethod, spec: SeriesSpec, answers: Sequence[Answer]
) -> None:
    """Charges and budget, row by row."""
    streams: dict[str, list[Answer]] = {}
    for answer in answers:
        streams.setdefault(answer.stream, []).append(answer)
    report.streams = max(1, len(streams))
    for name, rows in streams.items():
        if len(rows) > spec.length:
            report.note(
                f"series {name!r} has {len(rows):,} values; the budget is for {spec.length}"
            )
        if isinstance(method, Realtime):
            _check_measurements(report, method, rows)
        elif isinstance(method, Windowed):
            _check_windows(report, method, spec, rows)
        else:
            report.unchecked.append(f"the charges of {spec.method}, row by row")
    report.spent = max((math.fsum(a.leakage for a in rows) for rows in streams.values()), default=0)
    report.checked.append(f"{len(answers):,} rows of the ledger: chain, states, charges and budget")


def _check_measurements(report: SeriesAudit, method: Realtime, rows: Sequence[Answer]) -> None:
    used = []
    for answer in rows[: method.most]:
        noise = method.noises[answer.sequence]
        due = 0.0 if noise is None or answer.released is None else noise.charge
        if answer.leakage != due:
            report.note(f"moment {answer.sequence}: the charge is {answer.leakage}, not {due}")
        if due:
            used.append(noise)
    if used and promised(used, method.delta, method.unit).epsilon > report.epsilon * (1 + _ALIKE):
        report.note("the measurements together are over the budget")


def _check_windows(
    report: SeriesAudit, method: Windowed, spec: SeriesSpec, rows: Sequence[Answer]
) -> None:
    asking, limit = method.dissimilarity.leakage.epsilon, Fraction(method.guarantee.epsilon)
    last, total = spec.within(method.initial), Fraction(0)
    charges = [Fraction(answer.leakage) for answer in rows]
    for place, answer in enumerate(rows):
        total += charges[place] - (charges[place - method.window] if place >= method.window else 0)
        # A sum of two charges is rounded up in the ledger, by a unit each.
        if total > limit * (1 + Fraction(_ALIKE)):
            report.note(f"moment {answer.sequence}: the window before it is over the budget")
        if answer.leakage not in (0.0, asking) and answer.leakage < asking:
            report.note(f"moment {answer.sequence}: less was charged than a question costs")
        if answer.leakage <= asking and answer.released != last:
            report.note(f"moment {answer.sequence}: a new value left, and none was paid for")
        last = None if answer.released is None else float(answer.released)
    report.checked.append("steps that did not publish repeat what was released last")


def _check_output(
    report: SeriesAudit, released: Sequence[float | None], answers: Sequence[Answer]
) -> None:
    """The output is a stretch of what the ledger says was released."""
    kept = [None if a.released is None else float(a.released) for a in answers]
    size, given = len(released), list(released)
    if not any(kept[start : start + size] == given for start in range(len(kept) - size + 1)):
        report.note("the output does not hold what the ledger says was released")
    report.checked.append("the output holds what the ledger says was released")


def _check_values(
    report: SeriesAudit, method: AnyMethod, spec: SeriesSpec, released: Sequence[float | None]
) -> None:
    """What can be said of the values by themselves."""
    if len(released) > spec.length:
        report.note(f"there are {len(released):,} values; the budget is for {spec.length:,}")
    for row, value in enumerate(released, start=1):
        if value is not None and value != spec.within(value):
            report.note(f"row {row}: the value lies outside the range")
    if not isinstance(method, Realtime) or method.estimate.name != "plain":
        report.unchecked.append("the estimates: the noisy measurements behind them do not leave")
        return
    steps = {noise.step for noise in method.noises if noise is not None}
    ends = spec.interval or ()
    for row, value in enumerate(released, start=1):
        if value is not None and value not in ends and not _on(value, min(steps)):
            report.note(f"row {row}: the value is no point of the lattice of the noise")
    report.checked.append("values are points of the lattice of the noise")


def _on(value: float, step: float) -> bool:
    return value / step == math.floor(value / step)
