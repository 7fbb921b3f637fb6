"""The part of `sfumato audit` that is for outputs of `sfumato realtime`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sfumato.cli.console import FAILED_AUDIT, SIMULATED, print_json, print_line
from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.core.guarantees import ApproxDP, PureDP

if TYPE_CHECKING:
    from sfumato.cli.audit_command import AuditOptions
    from sfumato.series.series_audit import SeriesAudit


def is_series(files: list[str], ledger: str | None) -> bool:
    """Whether these are an output or a ledger of `realtime`."""
    from sfumato.series.series_ledger import JOB
    from sfumato.store.ledger_reader import LedgerReader

    if ledger is not None and Path(ledger).is_file():
        with LedgerReader(ledger) as reader:
            return reader.front.job == JOB.name
    return len(files) == 1 and job_of(certificate_beside(files[0])) == JOB.name


def audit_realtime(given: AuditOptions) -> None:
    """Check one output of `realtime`, its certificate and its ledger; exit code 1 if it fails."""
    from sfumato.series.series_audit import audit_series

    files, ledger = given.released or [], given.ledger
    if len(files) > 1:
        raise InvalidParameter("OUTPUT", len(files), "be one file of `realtime`, or none")
    certificate = certificate_beside(files[0]) if files else None
    if files and certificate is None:
        raise InvalidParameter("OUTPUT", files[0], "have its certificate beside it")
    values = None
    if files and certificate is not None:
        values = released_values(files[0], given.separator, str(certificate.get("column")))
    report = audit_series(certificate, values, ledger, simulation=given.simulation)
    if given.shown.as_json:
        print_json({"passed": report.passed, **asdict(report)})
    else:
        show_series(report)
    if not report.passed:
        raise typer.Exit(FAILED_AUDIT)


def show_series(report: SeriesAudit) -> None:
    """Print what was found of a series."""
    kind = ApproxDP(report.epsilon, report.delta) if report.delta else PureDP(report.epsilon)
    if report.streams == 1:
        print_line(f"{report.rows:,} values: {kind}, {report.unit}")
    else:
        each = f"each of {report.streams:,} streams: {kind}, {report.unit}"
        print_line(f"{report.rows:,} values; {each}")
        print_line("a person in several of the streams has the sum of their epsilons and deltas")
    for what in report.checked:
        print_line(f"checked: {what}")
    for what in report.unchecked:
        print_line(f"cannot be checked: {what}")
    for problem in report.problems:
        print_line(f"PROBLEM {problem}")
    if report.purpose != "release":
        print_line(SIMULATED)
    print_line("the audit found nothing wrong" if report.passed else "the audit FAILED")


def certificate_beside(output: str) -> dict[str, Any] | None:
    """The certificate of an output; None if there is none beside it."""
    path = Path(f"{output}.certificate.json")
    if not path.is_file():
        return None
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as problem:
        raise CorruptData(f"{path}: the certificate is damaged: {problem}") from problem
    return document if isinstance(document, dict) else None


def job_of(certificate: dict[str, Any] | None) -> str | None:
    """The job that a certificate says it is of."""
    rules = None if certificate is None else certificate.get("rules")
    return rules.get("job") if isinstance(rules, dict) else None


def released_values(path: str, separator: str | None, column: str) -> list[float | None]:
    """The released values of an output."""
    from sfumato.tables.columns import read_columns
    from sfumato.tables.moments import values_of
    from sfumato.tables.readers import Table

    cells = read_columns(Table.at(path, separator=separator), [column])[column]
    return values_of(cells, range(len(cells)), path)
