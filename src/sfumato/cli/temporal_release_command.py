"""`sfumato temporal release` and `audit`: budgets applied to tables of streams, and checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from sfumato.cli import coin_options, options
from sfumato.cli.console import print_json, print_line, progress, say, table
from sfumato.cli.options import argument, flag, option, required
from sfumato.core.printed import shown_up

if TYPE_CHECKING:
    from sfumato.temporal.temporal_audit import TemporalAudit
    from sfumato.temporal.temporal_spec import TemporalSpec


class _TemporalReleaseOptions(options.Options):
    source: str = options.LIVE_INPUT
    output: str = options.PRIVATE_OUTPUT
    alpha: float = required("The most that any one moment may leak, in nats.")
    backward: list[str] | None = option(
        "Matrix from a value to the one before it; several: any may hold."
    )
    forward: list[str] | None = option(
        "Matrix from a value to the next one; several: any may hold."
    )
    own: str | None = option(
        "Table of single streams' own matrices: columns stream, backward, forward, with file "
        "names; other streams have --backward and --forward."
    )
    mechanism: str = option(
        "counts (whole numbers of people, geometric noise) or response (a person's own value, "
        "randomised response).",
        default="counts",
    )
    stream: str = option(
        "Column that tells streams apart; nobody is in two of them.", default="stream"
    )
    value: list[str] | None = option(
        "Column of the value; several counts of one row leave together."
    )
    symbols: str | None = option(
        "All possible symbols, for a response: home,road,work [the model's].", "--values"
    )
    sensitivity: int | None = option(
        "By how much one person's value changes all counts of a row together [1 for one count, 2 "
        "for several: who moves leaves one and enters another]."
    )
    steps: int | None = option("Releases of each stream; without it streams are endless.")
    allocation: str = option(
        "Budgets of a known number: plain, least-noise or paper.", default="plain"
    )
    missing: str = option("A missing value: refuse, or skip (its moment passes).", default="refuse")
    event: str | None = options.EVENT
    time: str | None = option("Column of times: with the stream it tells events apart; it leaves.")
    ledger: str | None = options.LEDGER
    repetition: options.Repetition
    secret: coin_options.StreamSecret
    seed: int | None = coin_options.SEED
    separator: str | None = options.SEPARATOR
    shown: options.Shown


def release(given: _TemporalReleaseOptions) -> None:
    """Release streams so that no moment leaks more than alpha, whatever came before and will come.

    INPUT has one row per moment of a stream. Each row gets a budget that leaves room for the past
    and the future of its moment; output columns are the stream, sequence, what was released,
    outcome, and epsilon, the exact leakage of the row by itself. The rules lie beside a file
    output as OUTPUT.plan.json, for `sfumato temporal audit`. At the end the certificate says what
    any moment, and a whole stream, leaks through all rows together, and what they cost.

    An adversary knows how a person's values follow each other: give the matrix (`temporal fit`),
    several if any of them may hold, or a table of matrices, one pair for each stream (--own).
    Alpha is then kept for every stream against its own, and the certificate also says what the
    strongest of all would tell.

    \b
    Examples:
      sfumato temporal release counts.csv --stream town --value home --value road --alpha 1 \\
          --backward town.backward.csv --forward town.forward.csv --ledger t.ledger -o private.csv
      sfumato temporal release tuesday.csv --stream user --value place --mechanism response \\
          --values home,road,work --own people.csv --alpha 2 --steps 24 -o private.csv
      sfumato temporal release counts.csv ... --ledger t.ledger --resume -o private.csv
    """
    from sfumato.cli.release_command import end_interrupted
    from sfumato.cli.table_output import write_certificate
    from sfumato.core.certificate import certificate_document, certificate_lines
    from sfumato.tables.input_groups import EventColumns
    from sfumato.tables.readers import Table
    from sfumato.temporal.temporal_run import release_streams
    from sfumato.temporal.temporal_spec import TemporalSpec, beside
    from sfumato.temporal.temporal_tables import matrices_of, read_own, symbols_of
    from sfumato.temporal.temporal_verify import streams_document

    again = given.repetition.checked(given.ledger)
    backward, forward = given.backward or [], given.forward or []
    files = [*backward, *forward]
    named = given.mechanism == "response" or given.symbols
    spec = options.spec_from(
        TemporalSpec,
        given,
        values=tuple(given.value or ["value"]),
        symbols=symbols_of(given.symbols, files) if named else (),
        backward=matrices_of("--backward", backward, backward=True),
        forward=matrices_of("--forward", forward, backward=False),
        own={} if given.own is None else read_own(given.own),
        purpose=coin_options.purpose_of(given.seed).value,
    ).check()
    source, sink = Table.at(given.source, separator=given.separator), Table.at(given.output)
    coin_options.warn_of_seed(given.seed)
    public = [given.source, given.own, given.ledger, given.output, str(beside(given.output))]
    coins = given.secret.coins(given.seed, [*public, *files])
    columns = EventColumns(given.event, given.time)
    with progress("releasing", source.count(), given.shown.no_progress) as show:
        report = release_streams(
            source,
            sink,
            spec,
            ledger=given.ledger,
            columns=columns,
            again=again,
            randomness=coins,
            progress=show,
        )
    if not sink.is_standard:
        commitment, ledger = (
            given.secret.commitment(quiet=given.shown.quiet),
            given.ledger is not None,
        )
        held = streams_document(report, spec, columns, coins, commitment, ledger=ledger)
        write_certificate(held, given.output)
    certificate = report.certificate
    if given.shown.as_json and not sink.is_standard:
        names = ("rows", "repeated", "skipped", "streams", "interrupted")
        document = {"output": given.output, **{name: getattr(report, name) for name in names}}
        print_json({**document, "certificate": certificate_document(certificate)})
    elif not given.shown.quiet:
        say(
            f"{report.rows:,} rows, {report.repeated:,} of them answered before, "
            f"{report.skipped:,} without a value; {report.streams:,} streams in all"
        )
        for line in (*certificate_lines(certificate), *certificate.remarks):
            say(line)
    if report.interrupted:
        end_interrupted(given.ledger)


class _TemporalAuditOptions(options.Options):
    released: list[str] | None = argument(
        "What `temporal release` wrote, in order.", "OUTPUT", default=None
    )
    rules: str | None = options.RULES
    ledger: str | None = option("Check this ledger too, all of it; it is only read.")
    simulation: bool = flag("--simulation", "A simulation is what was meant; else it fails.")
    separator: str | None = options.SEPARATOR
    shown: options.Shown


def audit(given: _TemporalAuditOptions) -> None:
    """Compute anew, from released rows and their rules alone, what every moment leaks.

    Each row's budget follows from the rows before it, and its leakage from the mechanism made for
    it: both must be what the row says. Exit code 1 when something does not fit.

    \b
    Examples:
      sfumato temporal audit private.csv
      sfumato temporal audit monday.csv tuesday.csv --ledger town.ledger
      sfumato temporal audit --ledger town.ledger --json
    """
    from sfumato.cli.console import FAILED_AUDIT
    from sfumato.tables.readers import Table
    from sfumato.temporal.temporal_audit import audit_streams

    files, ledger = given.released or [], given.ledger
    spec = _rules(given)
    tables = [Table.at(file, separator=given.separator) for file in files]
    with progress("auditing", None, given.shown.no_progress) as show:
        found = audit_streams(
            tables, spec, ledger=ledger, simulation=given.simulation, progress=show
        )
    if given.shown.as_json:
        print_json(temporal_document(found))
    else:
        show_temporal(found, ledger)
    if not found.passed:
        raise typer.Exit(FAILED_AUDIT)


def temporal_document(found: TemporalAudit) -> dict[str, object]:
    """What was found of a temporal release, as a document."""
    from sfumato.core.certificate import certificate_document

    return {
        "passed": found.passed,
        "rows": found.rows,
        "covered": found.covered,
        "leakages": found.leakages,
        "certificate": certificate_document(found.certificate),
        "ledger_head": found.ledger_head,
        "problems": found.problems,
    }


def show_temporal(found: TemporalAudit, ledger: str | None) -> None:
    """Print what was found of a temporal release."""
    from sfumato.core.certificate import certificate_lines

    worst = sorted(found.leakages.items(), key=lambda one: -one[1])[:10]
    table(
        f"{found.rows:,} rows, {len(found.leakages):,} streams; those that leaked most",
        ["stream", "any moment (TPL)"],
        [[name, shown_up(most)] for name, most in worst],
    )
    for line in (*certificate_lines(found.certificate), *found.certificate.remarks):
        print_line(line)
    if found.ledger_head is not None:
        print_line(f"head of the ledger: {found.ledger_head}")
    if found.covered is not None:
        print_line(f"the files hold {found.covered:,} of the ledger's {found.rows:,} rows")
    for limit in _unchecked(ledger):
        print_line(f"cannot be checked: {limit}")
    for problem in found.problems:
        print_line(f"PROBLEM {problem}")
    print_line("the audit found nothing wrong" if found.passed else "the audit FAILED")


def _unchecked(ledger: str | None) -> list[str]:
    """What no audit can know of what left, or not without a ledger."""
    always = ["that the coins were fair", "times and other columns that left beside the values"]
    if ledger is not None:
        return always
    return [*always, "that these are the values that were drawn, and all streams and last rows"]


def _rules(given: _TemporalAuditOptions) -> TemporalSpec:
    from sfumato.cli.audit_rules import rule_documents
    from sfumato.core.errors import InvalidParameter
    from sfumato.temporal.temporal_spec import parse_spec

    files, command = given.released or [], "temporal release"
    documents = rule_documents(files, given.rules, given.ledger, command)
    specs = [parse_spec(content, where) for content, where in documents]
    if len({spec.fingerprint for spec in specs}) > 1:
        raise InvalidParameter("--plan", "several", "be the same for all files")
    return specs[0]
