"""`sfumato audit`: check a release from public things alone."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from sfumato._numerics import shown_up
from sfumato.cli import options
from sfumato.cli.console import FAILED_AUDIT, print_json, print_line, progress, table

_SHOWN = 10
_COLUMNS = ["stream", "steps", "SIP", "at 1e-6", "LDP", "worst step", "window", "one value"]
_COLUMNS += ["loss", "gain"]


def audit(
    released: Annotated[str, typer.Argument(metavar="OUTPUT", help="What `release` wrote.")],
    model: options.Model,
    rules: Annotated[
        str | None,
        typer.Option("--plan", help="Rules of the release [OUTPUT.plan.json]."),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(help="The compiled policy of the release, if it had one [beside the model]."),
    ] = None,
    stream: Annotated[str | None, typer.Option(help="Column of streams; as at `fit`.")] = None,
    ledger: Annotated[str | None, typer.Option(help="Compare with this ledger too.")] = None,
    against: Annotated[
        str | None, typer.Option(help="The true values: adds realised error and gain, locally.")
    ] = None,
    window: Annotated[
        int | None, typer.Option(help="Also the worst window of this many steps.")
    ] = None,
    separator: options.Separator = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Recompute from the released values, the public model and the rules alone what was leaked.

    The belief of an adversary who sees everything is followed step by step; each row's certificates
    must agree with the recomputed ones. Exit code 1 when something does not fit.

    \b
    Examples:
      sfumato audit private.csv --model city.model
      sfumato audit private.csv --model city.model --ledger city.ledger --against live.csv
    """
    from dataclasses import replace

    from sfumato.errors import InvalidParameter
    from sfumato.formats.readers import Table
    from sfumato.jobs.audit import audit_table
    from sfumato.jobs.policy import beside_model, load_policy
    from sfumato.jobs.spec import beside, read_spec

    read = options.load_model(model)
    read = replace(read, stream=stream or read.stream)
    document = Path(rules) if rules else beside(released)
    if not document.is_file():
        raise InvalidParameter("--plan", str(document), "be the file that `release` wrote")
    spec = read_spec(document)
    kept = None
    if spec.policy is not None or policy is not None:
        kept = load_policy(policy or beside_model(model))
    source = Table.at(released, separator=separator)
    with progress("auditing", source.count(), quiet or as_json) as show:
        report = audit_table(
            source,
            read,
            spec.plan(read, kept),
            ledger=ledger,
            against=None if against is None else Table.at(against, separator=separator),
            window=spec.window if window is None else window,
            progress=show,
        )
    if as_json:
        print_json({"passed": report.passed, **asdict(report)})
    else:
        worst = sorted(report.streams.items(), key=lambda item: -item[1].sip)[:_SHOWN]
        table(
            f"{report.rows:,} rows, {len(report.streams):,} streams; those that leaked most",
            _COLUMNS,
            [
                [
                    name,
                    f"{entry.steps:,}",
                    *(_bound(value) for value in (entry.sip, entry.composed, entry.ldp)),
                    *(_bound(value) for value in (entry.worst_step, entry.worst_window)),
                    _bound(entry.one_value),
                    _number(None if entry.loss is None else entry.loss / entry.steps),
                    _number(entry.gain),
                ]
                for name, entry in worst
            ],
        )
        if report.mean_loss is not None:
            print_line(f"realised loss per released value: {report.mean_loss:.6g}")
        if report.withheld:
            print_line(f"{report.withheld:,} rows withheld although the budget was not gone")
        for problem in report.problems:
            print_line(f"PROBLEM {released}, {problem}")
        print_line("the audit found nothing wrong" if report.passed else "the audit FAILED")
    if not report.passed:
        raise typer.Exit(FAILED_AUDIT)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _bound(value: float | None) -> str:
    return "" if value is None else shown_up(value, digits=5)
