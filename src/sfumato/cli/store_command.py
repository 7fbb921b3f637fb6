"""`sfumato store`: check, export, migrate, copy and bring back what a service keeps."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sfumato.cli import options
from sfumato.cli.console import FAILED_AUDIT, print_json, print_line, progress, say
from sfumato.cli.ledger_command import write_answers
from sfumato.cli.options import argument, flag, option, required

if TYPE_CHECKING:
    from sfumato.store.home_anchor import HomeAnchor
    from sfumato.store.home_check import HomeReport
    from sfumato.store.home_restore import Unanchored

HELP = """The home of a service: check it, read it, copy it, bring it back.

    A home is a folder (registry.db, ledgers/NAME.ledger) or a database (postgresql://...). Its
    registry holds what administrators did, its ledgers every answer that was given; both are
    chained by hashes. Their heads stand for all of it: keep them elsewhere, as an anchor, for
    whoever can write the whole home can also put an older one in its place, and what was released
    since would be forgotten and spent again.

    \b
      sfumato store check HOME --write-anchor /elsewhere/anchor.json    # every day
      sfumato store backup HOME /backups/2026-05-01    # while the service runs
      sfumato store restore /backups/2026-05-01 --to HOME --anchor /elsewhere/anchor.json
    """
_HOME = argument("A folder, or postgresql://user@host/name.", "HOME")


class _CheckOptions(options.Options):
    home: str = _HOME
    expect_anchor: str | None = option(
        "An anchor that was written earlier: the home must have grown from it."
    )
    write_anchor: str | None = option(
        "Write the heads to this file, if nothing is wrong; keep it elsewhere."
    )
    shown: options.Shown


def check(given: _CheckOptions) -> None:
    """Check every entry, row, state and sum of a home, and print its heads; it is only read.

    The service may run meanwhile. Exit code 1 when something is wrong. A backup is checked in the
    same way.

    \b
    Examples:
      sfumato store check /var/lib/sfumato
      sfumato store check /var/lib/sfumato --expect-anchor /elsewhere/anchor.json
    """
    from sfumato.store.home_anchor import HomeAnchor
    from sfumato.store.home_check import check_home
    from sfumato.store.home_source import reading
    from sfumato.store.outputs import write_whole

    due = None if given.expect_anchor is None else HomeAnchor.load(given.expect_anchor)
    with (
        reading(given.home) as home,
        progress("checking ledgers", len(home.names()), given.shown.no_progress) as show,
    ):
        report = check_home(home, due, show)
    if given.shown.as_json:
        print_json(_checked(report))
    else:
        _print_report(report)
    if not report.passed:
        raise typer.Exit(FAILED_AUDIT)
    if given.write_anchor is not None:
        write_whole(given.write_anchor, report.anchor.document())


def _checked(report: HomeReport) -> dict[str, object]:
    ledgers = {name: asdict(found) for name, found in report.ledgers.items()}
    return {
        "passed": report.passed,
        "anchor": _heads(report.anchor),
        "releases": report.releases,
        "closed": report.closed,
        "unused": report.unused,
        "ledgers": ledgers,
        "problems": report.problems,
    }


def _heads(anchor: HomeAnchor) -> dict[str, object]:
    return {"registry": anchor.registry, "ledgers": dict(anchor.ledgers), "time": anchor.time}


def _print_report(report: HomeReport) -> None:
    print_line(f"registry: {report.entries:,} entries, {len(report.releases):,} releases")
    print_line(f"  head: {report.anchor.registry}")
    for name, found in report.ledgers.items():
        print_line(f"{name}: {found.rows:,} rows, {found.streams:,} streams, by {found.job}")
        print_line(f"  head: {found.head}")
    for name, time in report.closed.items():
        print_line(f"{name}: closed since {time}")
    for name in report.unused:
        print_line(f"{name}: no ledger: nothing was released under it, or it was lost")
    for problem in report.problems:
        print_line(f"PROBLEM {problem}")
    print_line("the home is whole" if report.passed else "the home is NOT whole")


class _ExportOptions(options.Options):
    home: str = _HOME
    release: str = required("The release whose answers are written.")
    output: str = required("The table; - for stdout.", "--output", "-o")
    shown: options.Shown


def export(given: _ExportOptions) -> None:
    """Write every answer of a release to a table, in the order in which they were given.

    CSV, JSON lines, Parquet or Arrow, by the ending of its name. No true value is in it, but event
    ids, times and the names of streams are.

    \b
    Example:
      sfumato store export /var/lib/sfumato --release city -o answers.parquet
    """
    from sfumato.core.errors import InvalidParameter
    from sfumato.store.home_source import reading

    with reading(given.home) as home:
        if given.release not in home.names():
            there = ", ".join(home.names()) or "none"
            raise InvalidParameter("--release", given.release, f"have a ledger here: {there}")
        write_answers(str(home.ledger_path(given.release)), given.output, given.shown)


class _MigrateOptions(options.Options):
    home: str = _HOME
    shown: options.Shown


def migrate(given: _MigrateOptions) -> None:
    """Bring what an earlier version stored to the form of this one, and say what was done.

    No row is touched, and it may be run again. There is no way back: make a backup first. The
    service must be stopped.

    \b
    Example:
      sfumato store migrate /var/lib/sfumato
    """
    from sfumato.store.home_source import migrate_home

    with progress("migrating ledgers", None, given.shown.no_progress) as show:
        done = migrate_home(given.home, show)
    if given.shown.as_json:
        print_json({"done": done})
        return
    for line in done or ["everything is in the form of this version: nothing was done"]:
        print_line(line)


class _BackupOptions(options.Options):
    home: str = _HOME
    folder: str = argument("A folder that does not exist.", "DIR")
    shown: options.Shown


def backup(given: _BackupOptions) -> None:
    """Copy a home, also while a service uses it: whole, checked and on disk, or not at all.

    The copy is a folder of the form of a home, whatever the home is, with its heads in anchor.json.
    Key files (ledgers/NAME.ledger.key, the secret of a database) are not copied, for with them and
    a ledger guesses at true values can be tested: keep them in another place. Without them
    retries are answered as ever, but no longer compared with what was asked before.

    \b
    Example:
      sfumato store backup /var/lib/sfumato /backups/2026-05-01
    """
    from sfumato.store.home_backup import backup_home
    from sfumato.store.home_source import reading

    with (
        reading(given.home) as home,
        progress("copying ledgers", len(home.names()), given.shown.no_progress) as show,
    ):
        anchor = backup_home(home, given.folder, show)
    _print_heads(given.shown, given.folder, anchor)


class _RestoreOptions(options.Options):
    folder: str = argument("What `store backup` made.", "DIR")
    to: str = required("The home: a folder, or postgresql://user@host/name.", "--to")
    anchor: str | None = option(
        "The last anchor that was written of the home: the backup must reach it."
    )
    accept_unanchored: bool = flag(
        "--accept-unanchored",
        "There is no anchor: what was released since the backup is forgotten, and can be spent "
        "again.",
    )
    shown: options.Shown


def restore(given: _RestoreOptions) -> None:
    """Bring a backup back, unless it would lower what was spent.

    Over a home it is allowed if every ledger there is the beginning of the backup's; into an empty
    place, if the backup reaches the last anchor that was written down. Otherwise something that
    was released would be forgotten, and its budget spent again: it is refused, and nothing is
    changed. The service must be stopped.

    \b
    Examples:
      sfumato store restore /backups/2026-05-01 --to /var/lib/sfumato --anchor anchor.json
      sfumato store restore /backups/2026-05-01 --to postgresql://sfumato@db/sfumato
    """
    from sfumato.store.folder_home import HomeFiles
    from sfumato.store.home import check_postgres, is_postgres
    from sfumato.store.home_restore import restore_home

    anchor = _late_anchor(given)
    with (
        HomeFiles(given.folder) as home,
        progress("copying ledgers", len(home.names()), given.shown.no_progress) as show,
    ):
        if is_postgres(given.to):
            check_postgres()
            from sfumato.store.postgres_copy import restore_postgres

            heads = restore_postgres(home, given.to, anchor, show)
        else:
            heads = restore_home(home, given.to, anchor, show)
    if given.accept_unanchored and given.anchor is None:
        say("unanchored: what was released since the backup is forgotten, and can be spent again")
    _print_heads(given.shown, given.to, heads)


def _late_anchor(given: _RestoreOptions) -> HomeAnchor | Unanchored | None:
    """What the backup is compared with; its own anchor would only say how old it is."""
    from sfumato.core.errors import InvalidParameter
    from sfumato.store.home_anchor import HomeAnchor
    from sfumato.store.home_restore import Unanchored

    if given.anchor is None:
        return Unanchored.ACCEPTED if given.accept_unanchored else None
    if Path(given.anchor).resolve().is_relative_to(Path(given.folder).resolve()):
        rule = "lie outside the backup: its own anchor knows nothing of what came later"
        raise InvalidParameter("--anchor", given.anchor, rule)
    return HomeAnchor.load(given.anchor)


def _print_heads(shown: options.Shown, place: str, anchor: HomeAnchor) -> None:
    if shown.as_json:
        print_json({"place": place, **_heads(anchor)})
    elif not shown.quiet:
        heads = {"registry": anchor.registry, **anchor.ledgers}
        for name, head in heads.items():
            say(f"{name}: {head}")
