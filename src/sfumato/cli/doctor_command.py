"""`sfumato doctor`: whether an installation, and what it has kept, is in order."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from sfumato.cli import options
from sfumato.cli.console import FAILED_AUDIT, print_json, print_line
from sfumato.cli.options import argument

if TYPE_CHECKING:
    from sfumato.cli.doctor_checks import Finding


class _DoctorOptions(options.Options):
    kept: list[str] | None = argument(
        "Ledgers, or homes of a service (a folder, or postgresql://...), to look at too.",
        "KEPT",
        default=None,
    )
    shown: options.Shown


def doctor(given: _DoctorOptions) -> None:
    """Check that the installation is in order, and what it has stored.

    Libraries, extras, arithmetic, random numbers, folders, compiled loops; and every row, state and
    sum of the ledgers and homes that are named, which are only read. Exit code 1 when something is
    wrong; what is not there is not needed for the main job.

    \b
    Examples:
      sfumato doctor
      sfumato doctor city.ledger city-home
    """
    from sfumato.cli.doctor_checks import Health, installation

    found = [*installation(), *map(_kept, given.kept or [])]
    if given.shown.as_json:
        print_json({"findings": [asdict(one) for one in found]})
    else:
        for one in found:
            if not given.shown.quiet or one.health is Health.BAD:
                print_line(f"{one.what}: {one.health}; {one.told}")
    if any(one.health is Health.BAD for one in found):
        raise typer.Exit(FAILED_AUDIT)


def _kept(place: str) -> Finding:
    """A ledger or a home, every row of it."""
    from pathlib import Path

    from sfumato.cli.doctor_checks import Finding, Health
    from sfumato.core.errors import SfumatoError
    from sfumato.store.home_check import check_home
    from sfumato.store.home_source import reading
    from sfumato.store.ledger_check import check_ledger

    try:
        if Path(place).is_file():
            ledger = check_ledger(place)
            rows, problems = ledger.rows, ledger.problems
        else:
            with reading(place) as home:
                report = check_home(home)
            rows, problems = sum(each.rows for each in report.ledgers.values()), report.problems
    except SfumatoError as problem:  # damaged beyond reading: that is what a doctor is asked for
        problems = [str(problem)]
    if problems:
        return Finding(place, Health.BAD, f"{problems[0]} (see `ledger check`, `store check`)")
    return Finding(place, Health.GOOD, f"{rows:,} rows, all of which fit")
