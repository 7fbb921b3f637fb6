"""`sfumato audit`: check a release from public things alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sfumato.cli import coin_options, options
from sfumato.cli.console import FAILED_AUDIT, SIMULATED, print_json, print_line
from sfumato.cli.options import argument, flag, option
from sfumato.cli.report_page import REPORT, check_report_path, write_report

if TYPE_CHECKING:
    pass


class AuditOptions(options.Options):
    """What `audit` is asked for."""

    model: str | None = option(
        "The model that `sfumato fit` wrote; none for `realtime`.", "--model", "-m"
    )
    released: list[str] | None = argument(
        "What `release` wrote: a file, or several in order; none with --ledger alone.",
        "OUTPUT",
        default=None,
    )
    rules: str | None = options.RULES
    policy: str | None = options.RELEASE_POLICY
    stream: str | None = options.STREAM_AS_FITTED
    ledger: str | None = option(
        "Compare with this ledger too, and check all of it; it is only read."
    )
    coverage: str = option(
        "How much of the ledger the files must hold: inputs (all of each input that they hold "
        "anything of: a day, or several), part (whatever it is) or whole.",
        default="inputs",
    )
    home: str | None = option(
        "The home of a service, with --release: its ledger is audited alone, by what its registry "
        "holds. A folder or a backup of one, or postgresql://user@host/name; it is only read."
    )
    release: str | None = option("With --home: the release that is audited.")
    against: list[str] | None = option(
        "The true values: adds realised error and gain, locally. Once for each file."
    )
    level: float | None = option(
        "With --against: accuse an honest release of unfair coins with this probability at most "
        "[0.0001]."
    )
    only: list[str] | None = option("Look at this stream alone; may be given several times.")
    require_budget: str | None = option(
        "Fail if the plan allows more under the model: 0.3/value, 10/50 (any 50 successive "
        "values), 10/day (each day of event time; also hour, week, month), 10/stream, or a "
        "number in the plan's own unit."
    )
    require_ldp: str | None = option("The same whatever the model; fails without such a cap.")
    require_model: str | None = option("Fail unless the model is this file, or fingerprint.")
    allow: str | None = option(
        "What need not hold, separated by commas: withheld (rows without a release while there "
        "was budget), unsealed (a plan without rows and digest of its file: a pipe), any-model (a "
        "plan that names no model), repeated (rows after a later one of their stream: retries in a "
        "pipe)."
    )
    allow_column: list[str] | None = option("A further column that the file may have.")
    window: int | None = option("Also the worst window of this many steps.")
    key_file: str | None = option(
        "With --against: the key of the release's coins. Every draw that has a true value is "
        "repeated, and the rest counted. With --home: every draw must be one of this key."
    )
    shared_key: bool = coin_options.SHARED_KEY
    commitment: str | None = option(
        "With --key-file: what `key commit` printed, and was published before the data."
    )
    truth: str | None = option(
        "Also what the same outputs leaked to an adversary who knows this model instead (a chain, "
        "one with hours, a mixture): exactly, step by step, beside LIP's bound on it. The symbols "
        "must be the same."
    )
    time: str | None = option(
        "With --truth of a model with hours: the kept column of times, if the plan names none."
    )
    radius: float | None = option(
        "Also under the worst chain whose probabilities are each off by at most so much from those "
        "of --truth, or of the model: a bound for all of them."
    )
    plausible: str | None = option(
        "Instead of --radius: the worst of the chains in this file of `learn --plausible`."
    )
    out: str | None = option(
        "With --truth, --radius or --plausible: a table of all streams.", "--output", "-o"
    )
    report: list[str] | None = REPORT
    simulation: bool = flag("--simulation", "The release is a simulation, and meant to be.")
    separator: str | None = options.SEPARATOR
    shown: options.Shown


def audit(given: AuditOptions) -> None:
    """Recompute from the released values, the public model and the rules alone what was leaked.

    The belief of an adversary who sees everything is followed step by step; each row's certificates
    must be the recomputed ones, to the last digit, and the file the one that the release wrote.
    Exit code 1 when something does not fit, and for a simulation that you did not declare as one:
    its coins can be guessed.

    Without the true values nobody can tell whether coins were fair. With --against every output is
    held against the channel of its true value: who cheats is found, and the report says after how
    many rows. docs/audit.md, "What a regulator can check", has the three levels.

    Files under different plans are releases of their own: what they told of each stream together
    is added up.

    The channels of a release are made for its model, but anybody can weigh their outputs by another
    chain: --truth says what that adversary was told, and --radius bounds it for all chains near.

    A stream goes on over many files: give them in their order, or the ledger, from which the
    audit takes what streams did before and after a file.

    \b
    Examples:
      sfumato audit private.csv --model city.model
      sfumato audit private.csv --model city.model --ledger city.ledger --against live.csv
      sfumato audit private.csv --model city.model --require-budget 10/50 --require-ldp 20/50
      sfumato audit monday.csv tuesday.csv --model city.model
      sfumato audit --ledger city.ledger --model city.model
      sfumato audit --home /var/lib/sfumato/home --release city    # what `serve` answered
      sfumato audit private.csv --model city.model --report audit.json --report audit.html
      sfumato audit private.csv --model city.model --against live.csv --key-file year.key \\
          --commitment 5d41...
      sfumato audit private.csv --model city.model --truth lastyear.model -o leaked.csv
      sfumato audit private.csv --model city.model --truth hours.model --time when
      sfumato audit private.csv --model city.model --radius 0.02
      sfumato audit counts-private.csv --ledger counts.ledger     # what `realtime` wrote
    """
    from dataclasses import asdict

    from sfumato.cli.audit_findings import audit_findings, read_files
    from sfumato.cli.audit_releases import audited, required_of
    from sfumato.cli.audit_rules import common_rules
    from sfumato.cli.audit_text import print_report, print_together
    from sfumato.cli.audit_truth import (
        check_truth_options,
        print_robust,
        print_starts,
        print_truth,
        write_truth,
    )
    from sfumato.cli.realtime_audit import audit_realtime, is_series
    from sfumato.core.errors import InvalidParameter
    from sfumato.store.reports import report_document
    from sfumato.stream.audit_total import told_together
    from sfumato.stream.model_loss import unit_of

    if given.home is not None or given.release is not None:
        from sfumato.cli.audit_home import audit_at_home

        audit_at_home(given, required_of(given))
        return
    files, ledger = given.released or [], given.ledger
    for path in given.report or []:
        check_report_path(path)
    if given.model is None:
        _check_there(files)
        if not is_series(files, ledger):
            raise InvalidParameter("--model", None, "be the model that `sfumato fit` wrote")
        _refuse_for_series(given)
        if given.report or given.key_file:
            rule = "come with a model: the certificate of a series is for `sfumato verify`"
            raise InvalidParameter("--report", "given", rule)
        audit_realtime(given)
        return
    check_truth_options(given)
    done = audited(given)
    model, releases, reports = done.model, done.releases, done.reports
    rules = [common_rules(specs) for _, specs in releases]
    passed, told = all(report.passed for report in reports), told_together(reports)
    for path in given.report or []:
        write_report(report_document(audit_findings(given, done), read_files(given, done)), path)
    if given.out is not None:
        write_truth(given.out, reports, model.stream)
    if given.shown.as_json and len(reports) == 1:
        print_json({"passed": passed, "purpose": rules[0].purpose, **reports[0].document()})
    elif given.shown.as_json:
        together = {stream: asdict(entry) for stream, entry in told.items()}
        each = [report.document() for report in reports]
        print_json({"passed": passed, "releases": each, "together": together})
    else:
        for (places, _), spec, report in zip(releases, rules, reports, strict=True):
            own = [files[place] for place in places] if files else []
            if len(reports) > 1:
                print_line(", ".join(own))
            unit = unit_of(spec.loss_for(model), model)
            print_report(report, unit, own, quiet=given.shown.quiet)
            if spec.robust is not None:
                print_robust(spec)
            for version in report.versions:
                print_line(version)
            if report.starts:
                print_starts(report)
            elif report.truth is not None:
                learnt = "the last estimate" if spec.learn is not None else given.model
                print_truth(report.truth, given.truth or learnt)
        if len(reports) > 1:
            print_together(told)
        if any(spec.purpose != "release" for spec in rules):
            meant = "" if given.simulation else " (add --simulation if it is meant to be one)"
            print_line(f"{SIMULATED}{meant}")
        print_line("the audit found nothing wrong" if passed else "the audit FAILED")
    if not passed:
        raise typer.Exit(FAILED_AUDIT)


def _check_there(files: list[str]) -> None:
    """A file that is not there is what is wrong, before anything that is not given."""
    from sfumato.core.errors import InvalidParameter

    for file in files:
        if not Path(file).exists():
            raise InvalidParameter("OUTPUT", file, "be a file that is there")


def _refuse_for_series(given: AuditOptions) -> None:
    """Refuse what the audit of a series would not look at."""
    from sfumato.core.errors import InvalidParameter

    asked = {
        "--require-budget": given.require_budget,
        "--require-ldp": given.require_ldp,
        "--require-model": given.require_model,
        "--allow": given.allow,
        "--allow-column": given.allow_column,
        "--only": given.only,
        "--level": given.level,
        "--truth": given.truth,
        "--time": given.time,
        "--radius": given.radius,
        "--plausible": given.plausible,
        "--output": given.out,
    }
    for name, value in asked.items():
        if value is not None:
            raise InvalidParameter(name, value, "come with --model: it is for releases of streams")
