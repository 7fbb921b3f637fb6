"""`sfumato ledger`: check, export and copy what a release keeps."""

from __future__ import annotations

from dataclasses import asdict

import typer

from sfumato.cli import options
from sfumato.cli.console import FAILED_AUDIT, print_json, print_line, progress, say
from sfumato.cli.options import argument, option, required

HELP = """The ledger of a release: check it, read it, copy it.

    A ledger holds every answer that was given, chained by hashes: a row that was changed, moved or
    taken out shows. Its head stands for all of them; LEDGER.head keeps it beside the file, so that
    an older copy put in its place, or a lost -wal file, shows too. Somebody who can write both
    files can roll both back: write the head down elsewhere, and check with --expect-head.
    """
_LEDGER = argument("What `release --ledger` keeps.", "LEDGER")


class _CheckOptions(options.Options):
    ledger: str = _LEDGER
    expect_head: str | None = option(
        "A head written down earlier (ROWS:HASH): the ledger must grow from it."
    )
    shown: options.Shown


def check(given: _CheckOptions) -> None:
    """Check every row, state and sum of a ledger, and print its head; it is only read.

    Exit code 1 when something is wrong.

    \b
    Examples:
      sfumato ledger check city.ledger
      sfumato ledger check city.ledger --expect-head 9600:5d41...
    """
    from sfumato.core.guarantees import LDP, SIP
    from sfumato.core.printed import shown_up
    from sfumato.store.ledger_check import check_ledger
    from sfumato.store.protocol import Head

    report = check_ledger(
        given.ledger, None if given.expect_head is None else Head.read(given.expect_head)
    )
    if given.shown.as_json:
        print_json({"passed": report.passed, **asdict(report)})
    else:
        most = f"{SIP(report.largest_leakage)} and {LDP(report.largest_model_free)}"
        if report.job != "release":  # charges in the unit of its account
            most = f"charges of {shown_up(report.largest_leakage)} by {report.job}"
        print_line(f"{report.rows:,} rows, {report.streams:,} streams, at most {most} each, in all")
        for name, rows in report.inputs.items():
            print_line(f"  {rows:,} rows of {name!r}")
        print_line(f"head: {report.head}")
        if not report.anchored:
            print_line(
                f"{given.ledger}.head is not there: whether it is an older copy cannot be told"
            )
        for problem in report.problems:
            print_line(f"PROBLEM {problem}")
        print_line("the ledger is whole" if report.passed else "the ledger is NOT whole")
    if not report.passed:
        raise typer.Exit(FAILED_AUDIT)


class _ExportOptions(options.Options):
    ledger: str = _LEDGER
    output: str = required("The table; - for stdout.", "--output", "-o")
    shown: options.Shown


def export(given: _ExportOptions) -> None:
    """Write every answer of a ledger to a table, in the order in which they were given.

    No true value is in it, but event ids, times and the names of sources are.

    \b
    Example:
      sfumato ledger export city.ledger -o answers.parquet
    """
    write_answers(given.ledger, given.output, given.shown)


def write_answers(ledger: str, output: str, shown: options.Shown) -> None:
    """Write every answer of a ledger to a table, and say how many there are."""
    from sfumato.core.errors import InvalidParameter
    from sfumato.tables.ledger_tables import export_ledger
    from sfumato.tables.readers import Table, same_file

    if same_file(ledger, output):
        raise InvalidParameter("--output", output, "be a file of its own")
    with progress("exporting", None, shown.no_progress) as show:
        rows = export_ledger(ledger, Table.at(output), show)
    if shown.as_json and output != "-":
        print_json({"output": output, "rows": rows})
    elif not shown.quiet:
        say(f"{rows:,} rows")


class _BackupOptions(options.Options):
    ledger: str = _LEDGER
    copy: str = argument("A file that does not exist.", "COPY")
    shown: options.Shown


def backup(given: _BackupOptions) -> None:
    """Copy a ledger, also while a release uses it: whole, checked and on disk.

    A plain copy of the file would lack what is in its -wal file. The copy holds no true value; the
    key file, LEDGER.key, is not copied. An older copy put in the place of the ledger is refused
    while LEDGER.head is there: what was released since stays spent.

    \b
    Example:
      sfumato ledger backup city.ledger city-2024-05-01.ledger
    """
    from sfumato.store.ledger_check import backup_ledger

    report = backup_ledger(given.ledger, given.copy)
    if given.shown.as_json:
        print_json({"copy": given.copy, "rows": report.rows, "head": report.head})
    elif not given.shown.quiet:
        say(f"{report.rows:,} rows; head: {report.head}")
