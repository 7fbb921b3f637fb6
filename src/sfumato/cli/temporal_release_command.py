"""`sfumato temporal release` and `audit`: budgets applied to tables of streams, and checked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli import options
from sfumato.cli.console import print_json, print_line, progress, say, table
from sfumato.core.numerics import shown_up

if TYPE_CHECKING:
    from sfumato.temporal.temporal_spec import TemporalSpec


def release(
    source: Annotated[str, typer.Argument(metavar="INPUT", help="The true values; - for stdin.")],
    output: Annotated[str, typer.Option("--output", "-o", help="Private values; - for stdout.")],
    alpha: Annotated[float, typer.Option(help="What no moment may leak more than.")],
    backward: Annotated[
        list[str] | None,
        typer.Option(help="Matrix from a value to the one before it; several: any may hold."),
    ] = None,
    forward: Annotated[
        list[str] | None,
        typer.Option(help="Matrix from a value to the next one; several: any may hold."),
    ] = None,
    own: Annotated[
        str | None,
        typer.Option(
            help="Table of single streams' own matrices: columns stream, backward, forward, with "
            "file names; other streams have --backward and --forward."
        ),
    ] = None,
    mechanism: Annotated[
        str,
        typer.Option(
            help="counts (whole numbers of people, geometric noise) or response (a person's own "
            "value, randomised response)."
        ),
    ] = "counts",
    stream: Annotated[
        str, typer.Option(help="Column that tells streams apart; nobody is in two of them.")
    ] = "stream",
    value: Annotated[
        list[str] | None,
        typer.Option(help="Column of the value; several counts of one row leave together."),
    ] = None,
    symbols: Annotated[
        str | None,
        typer.Option(help="What a value may be, for a response: home,road,work [the model's]."),
    ] = None,
    sensitivity: Annotated[
        int | None,
        typer.Option(
            help="By how much one person's value changes all counts of a row together [1 for one "
            "count, 2 for several: who moves leaves one and enters another]."
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Releases of each stream; without it streams are endless.")
    ] = None,
    allocation: Annotated[
        str, typer.Option(help="Budgets of a known number: plain, least-noise or paper.")
    ] = "plain",
    missing: Annotated[
        str, typer.Option(help="A missing value: refuse, or skip (its moment passes).")
    ] = "refuse",
    event: options.Event = None,
    time: Annotated[
        str | None,
        typer.Option(help="Column of times: with the stream it tells events apart; it leaves."),
    ] = None,
    ledger: options.Ledger = None,
    resume: options.Resume = False,
    append: options.Append = False,
    key_file: options.StreamKeyFile = None,
    shared_key: options.SharedKey = False,
    seed: options.Seed = None,
    separator: options.Separator = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
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
          --symbols home,road,work --own people.csv --alpha 2 --steps 24 -o private.csv
      sfumato temporal release counts.csv ... --ledger t.ledger --resume -o private.csv
    """
    from sfumato.cli.console import INTERRUPTED
    from sfumato.core.certificate import certificate_document, certificate_lines
    from sfumato.core.errors import InvalidParameter
    from sfumato.store.protocol import Again
    from sfumato.tables.input_groups import EventColumns
    from sfumato.tables.readers import Table
    from sfumato.temporal.temporal_run import release_streams
    from sfumato.temporal.temporal_spec import TemporalSpec, beside
    from sfumato.temporal.temporal_tables import matrices_of, read_own, symbols_of

    if resume and append:
        raise InvalidParameter("--append", append, "not come with --resume")
    if resume and (ledger is None or not Path(ledger).is_file()):
        raise InvalidParameter("--ledger", ledger, "be the ledger of the interrupted run")
    files = [*(backward or []), *(forward or [])]
    spec = TemporalSpec(
        alpha=alpha,
        steps=steps,
        allocation=allocation,
        mechanism=mechanism,
        stream=stream,
        values=tuple(value or ["value"]),
        symbols=symbols_of(symbols, files) if mechanism == "response" or symbols else (),
        sensitivity=sensitivity,
        backward=matrices_of("--backward", backward or [], backward=True),
        forward=matrices_of("--forward", forward or [], backward=False),
        own={} if own is None else read_own(own),
        missing=missing,
        purpose="release" if seed is None else "simulation",
    ).check()
    table_in, sink = Table.at(source, separator=separator), Table.at(output)
    if seed is not None:
        say("warning: --seed makes guessable coins; treat the output as a simulation")
    public = [source, own, ledger, output, str(beside(output)), *files]
    with progress("releasing", table_in.count(), quiet or as_json) as show:
        report = release_streams(
            table_in,
            sink,
            spec,
            ledger=ledger,
            columns=EventColumns(event, time),
            again=Again.RESUME if resume else Again.APPEND if append else Again.REFUSE,
            randomness=options.coins(key_file, seed, public, shared=shared_key),
            progress=show,
        )
    certificate = report.certificate
    if as_json and not sink.is_standard:
        counts = {
            name: getattr(report, name) for name in ("rows", "repeated", "skipped", "streams")
        }
        told = certificate_document(certificate)
        document = {"output": output, **counts, "interrupted": report.interrupted}
        print_json({**document, "certificate": told})
    elif not quiet:
        say(
            f"{report.rows:,} rows, {report.repeated:,} of them answered before, "
            f"{report.skipped:,} without a value; {report.streams:,} streams in all"
        )
        for line in (*certificate_lines(certificate), *certificate.remarks):
            say(line)
    if report.interrupted:
        hint = "; add --resume to go on" if ledger else " (use --ledger to be able to go on)"
        say(f"sfumato: interrupted; what was answered is complete{hint}")
        raise typer.Exit(INTERRUPTED)


def audit(
    released: Annotated[
        list[str] | None,
        typer.Argument(metavar="[OUTPUT]...", help="What `temporal release` wrote, in order."),
    ] = None,
    rules: Annotated[
        str | None, typer.Option("--plan", help="Rules of the release [OUTPUT.plan.json].")
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(help="Check this ledger too, all of it; it is only read.")
    ] = None,
    simulation: Annotated[
        bool, typer.Option("--simulation", help="A simulation is what was meant; else it fails.")
    ] = False,
    separator: options.Separator = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
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
    from sfumato.core.certificate import certificate_document, certificate_lines
    from sfumato.tables.readers import Table
    from sfumato.temporal.temporal_audit import audit_streams

    files = released or []
    spec = _rules(files, rules, ledger)
    tables = [Table.at(file, separator=separator) for file in files]
    with progress("auditing", None, quiet or as_json) as show:
        found = audit_streams(tables, spec, ledger=ledger, simulation=simulation, progress=show)
    if as_json:
        print_json(
            {
                "passed": found.passed,
                "rows": found.rows,
                "covered": found.covered,
                "leakages": found.leakages,
                "certificate": certificate_document(found.certificate),
                "ledger_head": found.ledger_head,
                "problems": found.problems,
            }
        )
    else:
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
    if not found.passed:
        raise typer.Exit(FAILED_AUDIT)


def _unchecked(ledger: str | None) -> list[str]:
    """What no audit can know of what left, or not without a ledger."""
    always = ["that the coins were fair", "times and other columns that left beside the values"]
    if ledger is not None:
        return always
    return [*always, "that these are the values that were drawn, and all streams and last rows"]


def _rules(files: list[str], rules: str | None, ledger: str | None) -> TemporalSpec:
    """The rules of a release: as given, beside the files, or in the ledger."""
    from sfumato.core.errors import InvalidParameter
    from sfumato.store.ledger_reader import LedgerReader
    from sfumato.temporal.temporal_spec import beside, parse_spec, read_spec

    documents = [Path(rules)] if rules else [beside(file) for file in files]
    for document in documents:
        if not document.is_file():
            rule = "be the file that `temporal release` wrote"
            raise InvalidParameter("--plan", str(document), rule)
    if documents:
        specs = [read_spec(document) for document in documents]
        if len({spec.fingerprint for spec in specs}) > 1:
            raise InvalidParameter("--plan", "several", "be the same for all files")
        return specs[0]
    if ledger is None:
        rule = "be what `temporal release` wrote, or come with --ledger"
        raise InvalidParameter("OUTPUT", None, rule)
    with LedgerReader(ledger) as kept:
        content = kept.front.rules
    if content is None:
        raise InvalidParameter("--plan", None, "be given: this ledger does not hold its rules")
    return parse_spec(content.encode(), ledger)
