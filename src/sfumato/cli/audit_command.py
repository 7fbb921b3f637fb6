"""`sfumato audit`: check a release from public things alone."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli import options
from sfumato.cli.console import FAILED_AUDIT, print_json, print_line, progress, table
from sfumato.core.numerics import shown_up

if TYPE_CHECKING:
    from sfumato.stream.audit_report import AuditReport
    from sfumato.stream.release_spec import ReleaseSpec

_SHOWN, _NAMED = 10, 5
_COLUMNS = ["stream", "steps", "SIP", "at 1e-6", "LDP", "worst step", "window", "one value"]
_COLUMNS += ["loss", "gain"]


def audit(
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", help="The model that `sfumato fit` wrote; none for `realtime`."
        ),
    ] = None,
    released: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[OUTPUT]...",
            help="What `release` wrote: a file, or several in order; none with --ledger alone.",
        ),
    ] = None,
    rules: Annotated[
        str | None,
        typer.Option("--plan", help="Rules of the release [OUTPUT.plan.json]."),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(help="The compiled policy of the release, if it had one [beside the model]."),
    ] = None,
    stream: Annotated[str | None, typer.Option(help="Column of streams; as at `fit`.")] = None,
    ledger: Annotated[
        str | None,
        typer.Option(help="Compare with this ledger too, and check all of it; it is only read."),
    ] = None,
    coverage: Annotated[
        str,
        typer.Option(
            help="How much of the ledger the files must hold: inputs (all of each input that they "
            "hold anything of: a day, or several), part (whatever it is) or whole."
        ),
    ] = "inputs",
    against: Annotated[
        list[str] | None,
        typer.Option(
            help="The true values: adds realised error and gain, locally. Once for each file."
        ),
    ] = None,
    window: Annotated[
        int | None, typer.Option(help="Also the worst window of this many steps.")
    ] = None,
    simulation: Annotated[
        bool, typer.Option("--simulation", help="The release is a simulation, and meant to be.")
    ] = False,
    separator: options.Separator = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Recompute from the released values, the public model and the rules alone what was leaked.

    The belief of an adversary who sees everything is followed step by step; each row's certificates
    must agree with the recomputed ones. Exit code 1 when something does not fit, and for a
    simulation that you did not declare as one: its coins can be guessed.

    A stream goes on over many files: give them in their order, or the ledger, from which the
    audit takes what streams did before and after a file.

    \b
    Examples:
      sfumato audit private.csv --model city.model
      sfumato audit private.csv --model city.model --ledger city.ledger --against live.csv
      sfumato audit monday.csv tuesday.csv --model city.model
      sfumato audit --ledger city.ledger --model city.model
      sfumato audit counts-private.csv --ledger counts.ledger     # what `realtime` wrote
    """
    from dataclasses import replace

    from sfumato.cli.realtime_audit import audit_realtime, is_series
    from sfumato.core.checks import choice
    from sfumato.core.errors import InvalidParameter
    from sfumato.stream.audit import audit_table
    from sfumato.stream.audit_ledger import Coverage
    from sfumato.stream.policy_files import beside_model, load_policy
    from sfumato.stream.release_spec import unit_of
    from sfumato.tables.cells import Missing
    from sfumato.tables.readers import Table

    files = released or []
    if model is None:
        if not is_series(files, ledger):
            raise InvalidParameter("--model", None, "be the model that `sfumato fit` wrote")
        audit_realtime(files, ledger, separator, simulation=simulation, as_json=as_json)
        return
    read = options.load_model(model)
    read = replace(read, stream=stream or read.stream)
    spec = _rules(files, rules, ledger)
    kept = None
    if spec.policy is not None or policy is not None:
        kept = load_policy(policy or beside_model(model))
    sources = [Table.at(file, separator=separator) for file in files]
    true = None if against is None else [Table.at(f, separator=separator) for f in against]
    counts = [source.count() for source in sources]
    total = None if None in counts else sum(count or 0 for count in counts)
    with progress("auditing", total, quiet or as_json) as show:
        report = audit_table(
            sources,
            read,
            spec.plan(read, kept),
            ledger=ledger,
            coverage=choice("coverage", Coverage, coverage),
            against=true,
            missing=choice("missing", Missing, spec.missing),
            window=spec.window if window is None else window,
            progress=show,
        )
    undeclared = spec.purpose != "release" and not simulation
    passed = report.passed and not undeclared
    if as_json:
        print_json({"passed": passed, "purpose": spec.purpose, **asdict(report)})
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
        for line in _in_words(report, unit_of(spec.loss_for(read), read)):
            print_line(line)
        if report.withheld:
            print_line(f"{report.withheld:,} rows withheld although the budget was not gone")
        if report.repeated:
            print_line(f"{report.repeated:,} rows say again what was said before")
        if ledger is not None:
            alone = f"{report.only_in_ledger:,} events are in the ledger alone"
            print_line(f"{alone}; they were checked too")
            print_line(f"head of the ledger: {report.ledger_head}")
        where = f"{files[0]}, " if len(files) == 1 else ""
        for problem in report.problems:
            print_line(f"PROBLEM {'' if problem.startswith('the ledger') else where}{problem}")
        if spec.purpose != "release":
            meant = "" if simulation else " (add --simulation if it is meant to be one)"
            print_line(
                f"A SIMULATION: its coins can be guessed; it protects nobody's values{meant}"
            )
        print_line("the audit found nothing wrong" if passed else "the audit FAILED")
    if not passed:
        raise typer.Exit(FAILED_AUDIT)


def _in_words(report: AuditReport, unit: str) -> list[str]:
    """What the release cost and told, beside what a constant would have."""
    from sfumato.stream.remarks import large_total, odds

    behind, said = f" {unit}" if unit else "", []
    told = max((entry.one_value for entry in report.streams.values()), default=0.0)
    most = max((entry.sip for entry in report.streams.values()), default=0.0)
    if (much := large_total(most)) is not None:
        said.append(much)
    if told:
        said.append(
            f"all outputs of a stream together told at most SIP({shown_up(told, 5)}) about any one "
            f"value: its odds changed by at most {odds(told)}"
        )
    if report.mean_loss is not None:
        what = f"over {report.compared:,} values, repeated and withheld ones included"
        said.append(f"realised loss per value: {report.mean_loss:.6g}{behind} {what}")
    if report.mean_loss is not None and report.silent_loss is not None:
        better = 1 - report.mean_loss / report.silent_loss if report.silent_loss else 0.0
        said.append(
            f"a constant would have lost {report.silent_loss:.6g}{behind}; the release saved "
            f"{better:.0%} of that"
        )
        if better <= 0:
            said.append("NO BETTER THAN SILENCE: saying nothing would have cost no more")
    if report.never:
        some = ", ".join(str(label) for label in report.never[:_NAMED])
        more = ", ..." if len(report.never) > _NAMED else ""
        said.append(f"{len(report.never):,} symbols were never released: {some}{more}")
    return said


def _rules(files: list[str], rules: str | None, ledger: str | None) -> ReleaseSpec:
    """The rules of a release: as told, beside the files, or in the ledger."""
    from sfumato.core.errors import InvalidParameter
    from sfumato.store.ledger_reader import LedgerReader
    from sfumato.stream.release_spec import beside, parse_spec, read_spec

    documents = [Path(rules)] if rules else [beside(file) for file in files]
    for document in documents:
        if not document.is_file():
            raise InvalidParameter("--plan", str(document), "be the file that `release` wrote")
    if documents:
        specs = [read_spec(document) for document in documents]
        if any(_bare(spec) != _bare(specs[0]) for spec in specs):
            raise InvalidParameter("--plan", "several", "be the same for all files")
        return next((spec for spec in specs if spec.missing != "refuse"), specs[0])
    if ledger is None:
        raise InvalidParameter("OUTPUT", None, "be what `release` wrote, or come with --ledger")
    with LedgerReader(ledger) as kept:
        document_kept = kept.front.rules
    if document_kept is None:
        raise InvalidParameter("--plan", None, "be given: this ledger does not hold its rules")
    return parse_spec(document_kept.encode(), ledger)


def _bare(spec: ReleaseSpec) -> ReleaseSpec:
    """The rules without what may change from day to day."""
    import msgspec

    other = {"missing": "refuse", "late": "refuse", "keep": (), "independent": ()}
    return msgspec.structs.replace(spec, **other)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _bound(value: float | None) -> str:
    return "" if value is None else shown_up(value, digits=5)
