"""`sfumato audit`: check a release from public things alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from sfumato.cli import coin_options, options
from sfumato.cli.console import FAILED_AUDIT, print_json, print_line, progress
from sfumato.cli.options import argument, flag, option
from sfumato.cli.report_page import REPORT, check_report_path, write_report

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sfumato.models.stream_model import StreamModel
    from sfumato.solver.policy import Policy
    from sfumato.store.ledger_reader import LedgerReader
    from sfumato.stream.audit_checks import Check
    from sfumato.stream.audit_promise import Required
    from sfumato.stream.audit_report import AuditReport
    from sfumato.stream.release_spec import ReleaseSpec


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


class Audited(NamedTuple):
    """What was audited, and what was found.

    Attributes:
        model: The model.
        releases: The places of the files of each release, and their rules.
        reports: What was found of each.
        policies: The file of each one's policy: empty if it was compiled anew, None without one.
    """

    model: StreamModel
    releases: list[tuple[list[int], list[ReleaseSpec]]]
    reports: list[AuditReport]
    policies: list[str | None]


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
            print_line(
                f"A SIMULATION: its coins can be guessed; it protects nobody's values{meant}"
            )
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


def audited(given: AuditOptions, at_hand: Iterable[str] = ()) -> Audited:
    """The model, the releases with the rules of their files, and what was found of each.

    Args:
        given: What was asked for.
        at_hand: Files in which policies may be that are not beside the model.
    """
    from dataclasses import replace

    from sfumato.cli.audit_rules import common_rules, rules_of_releases
    from sfumato.cli.rule_choice import policy_of
    from sfumato.core.errors import InvalidParameter

    files, ledger = given.released or [], given.ledger
    assert given.model is not None  # a series has none, and its own audit
    model = options.load_model(given.model)
    model = replace(model, stream=given.stream or model.stream)
    releases = rules_of_releases(files, given.rules, ledger)
    if len(releases) > 1 and ledger is not None:
        raise InvalidParameter(
            "--ledger", ledger, "be that of one release; these files are of more"
        )
    required = required_of(given)
    done = Audited(model, releases, [], [])
    for places, specs in releases:
        policy, where = policy_of(common_rules(specs), given.policy, model, given.model, at_hand)
        own = places if files else []
        done.reports.append(_audited(given, model, own, specs, required, policy))
        done.policies.append(None if policy is None else where or "")
    return done


def required_of(given: AuditOptions) -> Required:
    """What the rules must say."""
    from pathlib import Path

    from sfumato.core.checks import choice
    from sfumato.stream.audit_promise import Allow, Required

    model = given.require_model
    if model is not None and Path(model).is_file():
        model = options.load_model(model).chain.fingerprint
    allowed = [] if given.allow is None else given.allow.split(",")
    return Required(
        budget=given.require_budget,
        ldp=given.require_ldp,
        model=model,
        simulation=given.simulation,
        allow=frozenset(choice("--allow", Allow, name) for name in allowed),
    )


def _audited(
    given: AuditOptions,
    model: StreamModel,
    places: Sequence[int],
    specs: Sequence[ReleaseSpec],
    required: Required,
    policy: Policy | None,
) -> AuditReport:
    """The audit of one release, in one file or several."""
    from sfumato.cli.audit_rules import common_rules
    from sfumato.store.ledger_reader import LedgerReader
    from sfumato.stream.release_spec import JOB

    spec, ledger = common_rules(specs), given.ledger
    if spec.learn is None or ledger is None:
        return _compared(given, model, places, specs, required, policy, ledger)
    # What is learnt from a ledger and what is held against it must be the same rows.
    with LedgerReader(ledger, spec.learning(model).fingerprint, JOB) as reader:
        return _compared(given, model, places, specs, required, policy, reader)


def _compared(
    given: AuditOptions,
    model: StreamModel,
    places: Sequence[int],
    specs: Sequence[ReleaseSpec],
    required: Required,
    policy: Policy | None,
    ledger: str | LedgerReader | None,
) -> AuditReport:
    """The same with the ledger, or what it was when it was opened."""
    from sfumato.cli.audit_findings import check_commitments, key_of
    from sfumato.cli.audit_rules import common_rules
    from sfumato.cli.audit_truth import truth_check
    from sfumato.cli.released_input import plan_used
    from sfumato.core.checks import choice
    from sfumato.core.fair_coins import LEVEL
    from sfumato.core.randomness import keyed
    from sfumato.store.ledger_reader import LedgerReader
    from sfumato.stream.audit import audit_table
    from sfumato.stream.audit_ledger import Coverage
    from sfumato.stream.learning_audit import check_kept
    from sfumato.stream.learning_plan import LearningPlan
    from sfumato.stream.replayed_coins import ReplayedCoins
    from sfumato.tables.cells import Missing
    from sfumato.tables.readers import Table

    spec, secret = common_rules(specs), key_of(given)
    files, true = given.released or [], given.against or []
    if len(true) == len(files):
        true = [true[place] for place in places]
    sources = [Table.at(files[place], separator=given.separator) for place in places]
    against = [Table.at(file, separator=given.separator) for file in true]
    counts = [source.count() for source in sources]
    total = None if None in counts else sum(count or 0 for count in counts)
    known = ledger if isinstance(ledger, LedgerReader) else None
    plan = plan_used(spec, model, policy, sources, known)
    also: list[Check] = [] if secret is None else [ReplayedCoins(plan, keyed(secret))]
    other = truth_check(given, model, plan)
    if other is not None:
        also.append(other)
    with progress("auditing", total, given.shown.no_progress) as show:
        report = audit_table(
            sources,
            model,
            plan,
            ledger=ledger,
            coverage=choice("coverage", Coverage, given.coverage),
            against=against or None,
            missing=choice("missing", Missing, spec.missing),
            window=spec.window if given.window is None else given.window,
            level=LEVEL if given.level is None else given.level,
            rules=specs,
            required=required,
            columns=given.allow_column or (),
            only=given.only,
            also=also,
            time=given.time,
            progress=show,
        )
    if isinstance(plan, LearningPlan):
        check_kept(report, plan, [table.path for table in sources], known)
        report.versions = tuple(map(str, plan.history.versions()))
    if secret is not None:
        check_commitments(report, secret, given.commitment, specs)
    return report
