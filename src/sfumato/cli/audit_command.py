"""`sfumato audit`: check a release from public things alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sfumato.cli import options
from sfumato.cli.console import FAILED_AUDIT, print_json, print_line, progress, table
from sfumato.cli.options import argument, flag, option
from sfumato.core.numerics import shown_up

if TYPE_CHECKING:
    from sfumato.stream.audit_report import AuditReport, CoinReport
    from sfumato.stream.release_spec import ReleaseSpec

_SHOWN, _NAMED = 10, 5
_COLUMNS = ["stream", "steps", "SIP", "at 1e-6", "LDP", "worst step", "window", "one value"]
_COLUMNS += ["loss", "gain"]


class AuditOptions(options.Options):
    """What `audit` is asked for."""

    model: str | None = option(
        "The model that `sfumato fit` wrote; none for `realtime`.", "--model", "-m"
    )
    released: list[str] | None = argument(
        "What `release` wrote: a file, or several in order; none with --ledger alone.",
        "[OUTPUT]...",
        default=None,
    )
    rules: str | None = options.RULES
    policy: str | None = option(
        "The compiled policy of the release, if it had one [beside the model]."
    )
    stream: str | None = options.STREAM_AS_FITTED
    ledger: str | None = option(
        "Compare with this ledger too, and check all of it; it is only read."
    )
    coverage: str = option(
        "How much of the ledger the files must hold: inputs (all of each input that they hold "
        "anything of: a day, or several), part (whatever it is) or whole.",
        default="inputs",
    )
    against: list[str] | None = option(
        "The true values: adds realised error and gain, locally. Once for each file."
    )
    level: float | None = option(
        "With --against: accuse an honest release of unfair coins with this probability at most "
        "[0.0001]."
    )
    window: int | None = option("Also the worst window of this many steps.")
    simulation: bool = flag("--simulation", "The release is a simulation, and meant to be.")
    separator: str | None = options.SEPARATOR
    shown: options.Shown


def audit(given: AuditOptions) -> None:
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
    from sfumato.stream.coin_bets import LEVEL
    from sfumato.stream.policy_files import beside_model, load_policy
    from sfumato.stream.release_spec import unit_of
    from sfumato.tables.cells import Missing
    from sfumato.tables.readers import Table

    files, ledger, separator = given.released or [], given.ledger, given.separator
    if given.model is None:
        if not is_series(files, ledger):
            raise InvalidParameter("--model", None, "be the model that `sfumato fit` wrote")
        audit_realtime(given)
        return
    read = options.load_model(given.model)
    read = replace(read, stream=given.stream or read.stream)
    spec = release_rules(files, given.rules, ledger)
    policy = None
    if spec.policy is not None or given.policy is not None:
        policy = load_policy(given.policy or beside_model(given.model))
    sources = [Table.at(file, separator=separator) for file in files]
    against = [Table.at(file, separator=separator) for file in given.against or []]
    counts = [source.count() for source in sources]
    total = None if None in counts else sum(count or 0 for count in counts)
    with progress("auditing", total, given.shown.no_progress) as show:
        report = audit_table(
            sources,
            read,
            spec.plan(read, policy),
            ledger=ledger,
            coverage=choice("coverage", Coverage, given.coverage),
            against=against or None,
            missing=choice("missing", Missing, spec.missing),
            window=spec.window if given.window is None else given.window,
            level=LEVEL if given.level is None else given.level,
            progress=show,
        )
    undeclared = spec.purpose != "release" and not given.simulation
    passed = report.passed and not undeclared
    if given.shown.as_json:
        print_json({"passed": passed, "purpose": spec.purpose, **report.document()})
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
            print_line(f"PROBLEM {where if problem.startswith('row ') else ''}{problem}")
        if report.problem_count > len(report.problems):
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in report.problem_kinds.items())
            print_line(f"{report.problem_count:,} problems in all: {kinds}")
        if spec.purpose != "release":
            meant = "" if given.simulation else " (add --simulation if it is meant to be one)"
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
    if report.recovered_loss is not None:
        said.append(
            f"after recovery, by best guesses given all that left: "
            f"{report.recovered_loss:.6g}{behind} (sfumato recover)"
        )
    if report.mean_loss is not None and report.silent_loss is not None:
        better = 1 - report.mean_loss / report.silent_loss if report.silent_loss else 0.0
        said.append(
            f"a constant would have lost {report.silent_loss:.6g}{behind}; the release saved "
            f"{better:.0%} of that"
        )
        if better <= 0:
            said.append("NO BETTER THAN SILENCE: saying nothing would have cost no more")
    if report.coins is not None:
        said += coin_lines(report.coins)
    if report.never:
        some = ", ".join(str(label) for label in report.never[:_NAMED])
        more = ", ..." if len(report.never) > _NAMED else ""
        said.append(f"{len(report.never):,} symbols were never released: {some}{more}")
    return said


def coin_lines(coins: CoinReport) -> list[str]:
    """Whether outputs are fair draws, and what would have been found if they were not."""
    import math

    if not coins.tested:
        return ["no row with a true value tosses coins: nothing to test"]
    value, alarm = math.exp(min(coins.log_e_value, 700)), 1 / coins.level
    said = [
        f"coins: {coins.tested:,} outputs beside their true values "
        f"{'are NO fair draws' if coins.alarm else 'look like fair draws'} (e-value {value:.3g}, "
        f"alarm at {alarm:,.0f}; an honest release is accused with probability at most "
        f"{coins.level:g})"
    ]
    for power in coins.power:
        if math.isfinite(power.rows):
            said.append(
                f"  a releaser that gives the nearest possible output in {power.share:.0%} of the "
                f"rows would be found after about {_rounded(power.rows)} rows "
                f"({_rounded(power.low)} to {_rounded(power.high)} in four of five cases)"
            )
    return said


def _rounded(rows: float) -> str:
    """A number of rows with two digits."""
    return f"{float(f'{rows:.2g}'):,.0f}"


def release_rules(files: list[str], rules: str | None, ledger: str | None) -> ReleaseSpec:
    """The rules of a release: as given, beside the files, or in the ledger."""
    from sfumato.core.errors import InvalidParameter
    from sfumato.stream.release_spec import parse_spec

    documents = rule_documents(files, rules, ledger, "release")
    specs = [parse_spec(content, where) for content, where in documents]
    if any(_bare(spec) != _bare(specs[0]) for spec in specs):
        raise InvalidParameter("--plan", "several", "be the same for all files")
    return next((spec for spec in specs if spec.missing != "refuse"), specs[0])


def rule_documents(
    files: list[str], rules: str | None, ledger: str | None, command: str
) -> list[tuple[bytes, str]]:
    """The rules of a release, and where they stood: as given, beside the files, or in the ledger.

    Args:
        files: What the release wrote.
        rules: The document, if it was given.
        ledger: The ledger, if it was given.
        command: What wrote them, for messages.
    """
    from sfumato.core.errors import InvalidParameter
    from sfumato.store.ledger_reader import LedgerReader
    from sfumato.tables.documents import read_document

    paths = [Path(rules)] if rules else [Path(f"{file}.plan.json") for file in files]
    for path in paths:
        if not path.is_file():
            rule = f"be the file that `{command}` wrote, and there is no such file"
            raise InvalidParameter("--plan", str(path), rule)
    if paths:
        return [(read_document("the plan", path), str(path)) for path in paths]
    if ledger is None:
        rule = f"be what `{command}` wrote, or come with --ledger"
        raise InvalidParameter("OUTPUT", None, rule)
    with LedgerReader(ledger) as reader:
        content = reader.front.rules
    if content is None:
        raise InvalidParameter("--plan", None, "be given: this ledger does not hold its rules")
    return [(content.encode(), ledger)]


def _bare(spec: ReleaseSpec) -> ReleaseSpec:
    """The rules without what may change from day to day."""
    import msgspec

    other = {"missing": "refuse", "late": "refuse", "keep": (), "independent": ()}
    return msgspec.structs.replace(spec, **other)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _bound(value: float | None) -> str:
    return "" if value is None else shown_up(value, digits=5)
