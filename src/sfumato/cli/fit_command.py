"""`sfumato fit`: from recorded streams to a model."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.cli import options, value_cuts
from sfumato.cli.console import hold, print_json, print_line, progress, say
from sfumato.cli.options import argument, flag, option
from sfumato.cli.value_cuts import value_columns

if TYPE_CHECKING:
    from sfumato.models.cycle import Cycle


_PATTERNS = 1000


class FitOptions(options.Options):
    """What `fit` is asked for."""

    history: str | None = argument(
        "CSV, JSON lines, Parquet or Arrow; - for stdin; none with --uniform.", default=None
    )
    output: str = options.MODEL_OUTPUT
    stream: str = options.STREAM
    value: str = options.VALUE
    order: int = option("How many past values the next depends on.", default=1)
    counting: value_cuts.Counting
    cells: value_cuts.Cells
    batch: int | None = option("Learn patterns of so many successive values and their followers.")
    patterns: int | None = option("Patterns to keep, with --batch; 1,000 if not given.")
    clusters: str | None = option(
        "People differ: fit a mixture of so many chains, each stream following one of them; auto "
        "for as many as best predict streams that were held out."
    )
    separator: str | None = options.SEPARATOR
    range_: str | None = value_cuts.RANGE
    units: str = value_cuts.UNITS
    missing: str = options.MISSING
    period: str | None = option(
        "Fit a chain that changes with time: with the hour, weekday, hour-of-week or month of the "
        "--time column, or with the place in the stream, again after so many values (48)."
    )
    phases: int | None = option(
        "With --period: cut it into so many equal parts instead of all that it has (24 hours)."
    )
    time: str | None = option(
        "With --period: column of times, as 2024-05-01T08:00. They are taken for public."
    )
    uniform: bool = flag(
        "--uniform",
        "Without a history: all values are as likely as each other, whatever came before. Needs "
        "--values, or --bins or --grid with --range.",
    )
    private: float | None = option(
        "Fit under differential privacy of whole people at this epsilon: the model then tells "
        "little of any one of them. Each further fit to the same people adds its own."
    )
    contribution: int | None = option(
        "With --private: most transitions counted of a person, about as many as streams have; "
        "20 if not given. It must not be looked up in the history."
    )
    values: str | None = option(
        "With --uniform or --private: the symbols, separated by commas, or a file with one a line; "
        "those that occur are private. Not for bins and grids, which need --range."
    )
    shown: options.Shown


def fit(given: FitOptions) -> None:
    """Learn what an adversary may know: how the values of a stream follow each other.

    The history is one row per value, in order of time within each stream; rows of different
    streams may be mixed. It is best not the data you are going to release.

    With --batch W the model is a library: which patterns of W values occur, and which pattern
    follows which. That suits click streams, whose alphabet is too large for a chain of batches;
    `sfumato release` then releases W values at a time.

    With --period habits may change with the time of day: each phase has a matrix of its own, from
    the last value to one in that phase, drawn towards that of all phases as far as a history says
    little of it. `sfumato release` then reads each value's time (--time, --keep) and certifies
    against an observer who knows these habits and when values are. Times that depend on the values
    beyond that are not covered.

    With --clusters K the model is a mixture: each stream follows one of K chains, and the observer
    is not told which. What a release with it is certified for covers both values and clusters.

    There is no history yet? --uniform makes a model that knows nothing. What is released with it by
    `--method randomized-response --epsilon E` leaks at most E a value, whatever an observer knows,
    and `sfumato learn` makes a model of what left.

    With --private the model promises something to each person of the history: of each some
    transitions are counted, and every count gets noise. Symbols or ranges must be given, values
    that are no symbols are passed over, and the output must not exist: fitted twice, the same
    people are told of twice.

    \b
    Examples:
      sfumato fit history.csv --stream user --value place -o city.model
      sfumato fit meter.parquet --stream home --value watts --bins 16 -o meter.model
      sfumato fit meter.csv --stream home --value watts --bins 16 --range 0:4000 --units W \\
          --missing skip -o meter.model
      sfumato fit gps.csv --stream phone --grid 32x32 --x lon --y lat --units degrees -o town.model
      sfumato fit clicks.csv --stream session --value page --batch 3 -o clicks.model
      sfumato fit history.csv --stream user --value place --time when --period hour -o day.model
      sfumato fit history.csv --stream user --value place --clusters auto -o city.model
      sfumato fit --uniform --values home,work,elsewhere --stream user -o start.model
      sfumato fit history.csv --stream user --value place --private 1 --contribution 40 \\
          --values places.txt -o city.model
    """
    from sfumato.cli.private_fit_command import fit_privately
    from sfumato.core.checks import choice
    from sfumato.core.errors import InvalidParameter
    from sfumato.store.files import save
    from sfumato.stream.cluster_report import ClusteredFitReport, cluster_words
    from sfumato.stream.fit_model import fit_table
    from sfumato.tables.cells import Missing
    from sfumato.tables.readers import Table, same_file

    if given.uniform:
        _fit_nothing(given)
        return
    if given.history is None:
        raise InvalidParameter("HISTORY", None, "be given, or --uniform")
    table = Table.at(given.history, separator=given.separator)
    if same_file(given.history, given.output):
        raise InvalidParameter("--output", given.output, "not be the history")
    hold(given.output)
    values, cut = value_columns(given)
    if given.patterns is not None and given.batch is None:
        raise InvalidParameter("--patterns", given.patterns, "come with --batch")
    if given.private is not None:
        if given.period is not None:
            rule = "not come with --private: counts of phases have no noise here"
            raise InvalidParameter("--period", given.period, rule)
        if given.clusters is not None:
            rule = "not come with --private: a mixture of chains has no noise for its people"
            raise InvalidParameter("--clusters", given.clusters, rule)
        fit_privately(given, table, values, cut)
        return
    for name, typed, needs in (
        ("--contribution", given.contribution, "--private"),
        ("--values", given.values, "--private or --uniform"),
    ):
        if typed is not None:
            raise InvalidParameter(name, typed, f"come with {needs}")
    with progress("fitting", table.count(), given.shown.no_progress) as show:
        model, report = fit_table(
            table,
            stream=given.stream,
            values=values,
            order=given.order,
            smoothing=given.counting.smoothing,
            floor=given.counting.floor,
            cut=cut,
            batch=given.batch,
            patterns=_PATTERNS if given.patterns is None else given.patterns,
            clusters=given.clusters,
            missing=choice("--missing", Missing, given.missing),
            cycle=_cycle(given),
            time=given.time,
            progress=show,
        )
    save(model, given.output)
    if given.shown.as_json:
        print_json({"model": given.output, **asdict(report)})
        return
    if given.shown.quiet:
        return
    print_line(
        f"{given.output}: {report.streams:,} stream{'s' * (report.streams != 1)}, "
        f"{report.rows:,} values, {report.symbols:,} symbols, {report.transitions:,} transitions"
    )
    if report.patterns is not None and report.kept is not None:
        print_line(f"{report.patterns:,} patterns, which are {report.kept:.0%} of the batches")
    if report.rounding is not None:
        unit = f" {report.unit}" if report.unit else ""
        print_line(f"a value is {report.rounding:.4g}{unit} from the middle of its cell on average")
        if given.range_ is None:
            print_line(
                "cells end where the history does, and `release` refuses what lies beyond: name a "
                "--range, to which values are clipped"
            )
    if report.missing:
        print_line(f"{report.missing:,} values were missing ({given.missing})")
    if report.clipped:
        print_line(f"{report.clipped:,} values beyond the range were clipped to it")
    print_line(f"the past takes away {report.predictability:.0%} of the uncertainty about a value")
    if isinstance(report, ClusteredFitReport):
        for words in cluster_words(report):
            print_line(words)
    if report.rare:
        some = ", ".join(str(label) for label in report.rare[:8])
        more = f" and {len(report.rare) - 8} more" if len(report.rare) > 8 else ""
        print_line(f"rare symbols (hardly any in the history): {some}{more}")
    for warning in report.warnings:
        say(f"warning: {warning}")


def _fit_nothing(given: FitOptions) -> None:
    """A model that knows the values, and nothing of how they follow each other."""
    from sfumato.core.errors import InvalidParameter
    from sfumato.store.files import save
    from sfumato.stream.fit_model import uniform_model

    for name, ignored in (
        ("HISTORY", given.history),
        ("--batch", given.batch),
        ("--private", given.private),
        ("--contribution", given.contribution),
        ("--period", given.period),
        ("--phases", given.phases),
        ("--time", given.time),
        ("--clusters", given.clusters),
    ):
        if ignored is not None:
            raise InvalidParameter(name, ignored, "not come with --uniform")
    if given.order != 1:
        raise InvalidParameter("--order", given.order, "not come with --uniform")
    hold(given.output)
    values, cut = value_columns(given)
    named = None if given.values is None else listed_symbols(given.values)
    model = uniform_model(cut, named, stream=given.stream, values=values)
    save(model, given.output)
    size = len(model.alphabet)
    if given.shown.as_json:
        print_json({"model": given.output, "symbols": size, "uniform": True})
    elif not given.shown.quiet:
        print_line(f"{given.output}: {size:,} symbols, and nothing known of what follows what")


def _cycle(given: FitOptions) -> Cycle | None:
    """What comes again; None if nobody said so."""
    from sfumato.core.errors import InvalidParameter
    from sfumato.models.cycle import Cycle

    if given.period is None:
        if given.phases is not None:
            raise InvalidParameter("--phases", given.phases, "come with --period")
        return None
    return Cycle.of(given.period, given.phases)


def listed_symbols(given: str) -> list[str]:
    """The symbols that were listed, or those in a file."""
    from sfumato.core.errors import InvalidParameter

    path = Path(given)
    listed = path.read_text(encoding="utf-8").splitlines() if path.is_file() else given.split(",")
    found = [symbol.strip() for symbol in listed if symbol.strip()]
    if len(found) != len(set(found)):
        raise InvalidParameter("--values", "one twice", "list every symbol once")
    return found
