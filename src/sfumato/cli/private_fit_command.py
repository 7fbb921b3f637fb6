"""`sfumato fit --private`: a model that promises something to the people of its history."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.cli.console import print_json, print_line, progress, say
from sfumato.core.errors import InvalidParameter

if TYPE_CHECKING:
    from sfumato.cli.fit_command import FitOptions
    from sfumato.stream.fit_model import Cut
    from sfumato.tables.readers import Table


def fit_privately(given: FitOptions, table: Table, values: tuple[str, ...], cut: Cut) -> None:
    """Fit, save and report; nothing is said that is not in the model."""
    from sfumato.cli.fit_command import listed_symbols
    from sfumato.store.files import save
    from sfumato.stream.private_counts import CONTRIBUTION, PrivacySpec
    from sfumato.stream.private_fit import fit_private

    _check(given)
    assert given.private is not None  # or nobody would have come here
    most = CONTRIBUTION if given.contribution is None else given.contribution
    privacy = PrivacySpec(given.private, most)
    with progress("fitting", table.count(), given.shown.no_progress) as show:
        model, report = fit_private(
            table,
            privacy,
            alphabet=None if given.values is None else listed_symbols(given.values),
            stream=given.stream,
            values=values,
            smoothing=given.counting.smoothing,
            floor=given.counting.floor,
            cut=cut,
            progress=show,
        )
    save(model, given.output)
    if given.shown.as_json:
        print_json({"model": given.output, **asdict(report)})
        return
    if given.shown.quiet:
        return
    print_line(f"{given.output}: {report.symbols:,} symbols; {report.private}")
    print_line(f"the past takes away {report.predictability:.0%} of the uncertainty about a value")
    print_line("each further model of the same people adds its epsilon to this one")
    for warning in report.warnings:
        say(f"warning: {warning}")


def _check(given: FitOptions) -> None:
    """Refuse what a private fit does not do, and a second one in the place of the first."""
    for name, typed in (("--batch", given.batch), ("--patterns", given.patterns)):
        if typed is not None:
            raise InvalidParameter(name, typed, "not come with --private")
    if given.order != 1:
        raise InvalidParameter("--order", given.order, "be 1 with --private")
    if given.missing not in ("refuse", "skip"):
        rule = "be skip with --private, which passes over what is no symbol"
        raise InvalidParameter("--missing", given.missing, rule)
    if Path(given.output).exists():
        rule = "not exist: a second private fit tells more about everyone"
        raise InvalidParameter("--output", given.output, rule)
