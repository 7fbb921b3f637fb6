"""The part of `sfumato audit` that is for releases of a service, from its home alone."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from sfumato.cli.console import FAILED_AUDIT, SIMULATED, print_json, print_line, progress
from sfumato.core.errors import InvalidParameter

if TYPE_CHECKING:
    from sfumato.cli.audit_command import AuditOptions
    from sfumato.service.home_audit import HomeAudit
    from sfumato.stream.audit_promise import Required

_ELSEWHERE = ("released", "model", "rules", "policy", "ledger", "against", "report", "commitment")
"""What the registry holds, or what belongs to a table."""
_TABLES_ALONE = ("truth", "time", "radius", "plausible", "out")
"""What is asked of other chains: of a table, or a ledger of its own."""


def audit_at_home(given: AuditOptions, required: Required) -> None:
    """Audit a release from registry and ledger; exit code 1 if something does not fit."""
    from sfumato.service.home_audit import audit_home
    from sfumato.store.keys import read_key

    if given.home is None or given.release is None:
        raise InvalidParameter("--home", given.home, "come with --release, and the other way round")
    for name in _ELSEWHERE:
        if getattr(given, name):
            rule = "be left out with --home: the registry has model and rules, the ledger all rows"
            raise InvalidParameter(name, "given", rule)
    for name in _TABLES_ALONE:
        if getattr(given, name) is not None:
            rule = "not come with --home: other chains are held against a table or a ledger"
            raise InvalidParameter(f"--{name}", "given", rule)
    key = None
    if given.key_file is not None:
        key = read_key(given.key_file, shared=given.shared_key)
    with progress("auditing", None, given.shown.no_progress) as show:
        found = audit_home(
            given.home,
            given.release,
            key=key,
            required=required,
            window=given.window,
            only=None if given.only is None else tuple(given.only),
            progress=show,
        )
    if given.shown.as_json:
        print_json(_document(found))
    else:
        _show(found, quiet=given.shown.quiet)
    if not found.passed:
        raise typer.Exit(FAILED_AUDIT)


def _document(found: HomeAudit) -> dict[str, object]:
    from sfumato.cli.temporal_release_command import temporal_document
    from sfumato.series.series_audit import SeriesAudit
    from sfumato.stream.audit_report import AuditReport

    head = {"release": found.release, "job": found.job, "closed": found.closed}
    match found.report:
        case AuditReport():
            told = {"purpose": found.purpose, **found.report.document()}
        case SeriesAudit():
            told = asdict(found.report)
        case _:
            told = temporal_document(found.report)
    problems = [*found.problems, *found.report.problems]
    return {**head, **told, "passed": found.passed, "problems": problems}


def _show(found: HomeAudit, *, quiet: bool) -> None:
    from sfumato.cli.audit_text import print_report
    from sfumato.cli.realtime_audit import show_series
    from sfumato.cli.temporal_release_command import show_temporal
    from sfumato.series.series_audit import SeriesAudit
    from sfumato.stream.audit_report import AuditReport

    if found.closed is not None:
        print_line(f"{found.release} is closed since {found.closed}")
    for problem in found.problems:
        print_line(f"PROBLEM {problem}")
    match found.report:
        case AuditReport():
            print_report(found.report, found.unit, [], quiet=quiet)
            if found.purpose != "release":
                print_line(SIMULATED)
            print_line("the audit found nothing wrong" if found.passed else "the audit FAILED")
        case SeriesAudit():
            show_series(found.report)
        case _:
            show_temporal(found.report, "")
    if found.problems:
        print_line("the audit FAILED: the ledger is not that of the release")
