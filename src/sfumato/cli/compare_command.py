"""`sfumato compare`: which method should release my counts?"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sfumato.cli import options
from sfumato.cli.console import print_json, print_legend, print_line, progress, say, table
from sfumato.cli.options import argument, option
from sfumato.cli.table_output import named_options
from sfumato.core.errors import InvalidParameter
from sfumato.core.printed import shown_up

if TYPE_CHECKING:
    from sfumato.series.series_compare import Comparison, Outcome


class _CompareOptions(options.Options):
    source: str = argument("A table; one row per moment.", "SERIES")
    protected: options.Series
    delta: float = options.DELTA
    value: str = options.VALUES
    methods: str = option("all, or names: realtime,fast,...", default="all")
    runs: int = option("Simulations of each method.", default=10)
    window: int = options.PROTECTED_WINDOW
    match: str = option(
        "Pure methods get the same epsilon, or (variance) Laplace noise of the variance of the "
        "Gaussian one: the rule of the paper.",
        default="epsilon",
    )
    weight: float | None = option(
        "Of the true value in the published rule, in (0, 1]; if not given, what the paper's own "
        "formulas ask for, from the true series."
    )
    calendar: options.Calendar
    missing: str = options.MISSING
    rows: int | None = option("Only the first so many values.")
    plot: str | None = option("Picture of errors and of the best one.")
    separator: str | None = options.SEPARATOR
    shown: options.Shown


def compare(given: _CompareOptions) -> None:
    """Simulate all ways to release a series of numbers, at equal privacy, and rank them.

    User level protects all values of a person, w-event level any few successive ones, event level
    a single one: errors of different units are not comparable, nor are pure guarantees with
    approximate ones; so each has a group of its own. The first line is silence: the mean of the
    series for every value, which tells nothing. What does not beat it is no use.

    Behind an error stands twice its standard error over the simulations. `relative` is a share of
    the largest value, `of silence` a share of the error of silence. Methods marked * were tuned on
    the true series, as their papers do; nothing of this is a release.

    \b
    Methods:
      realtime          Gaussian noise and a bank of filters that learns the process (Sfumato)
      published, published-best, published-geometric
                        the rule of the paper, from the last release alone: with the weight of
                        its own formulas (or --weight), of least error, and with falling weights
      gaussian, laplace, laplace-filtered
                        independent noise, and the bank of filters after it
      discrete-gaussian, binomial
                        other noises, and the bank of filters after them
      fast, fast-sampling, fourier, delayed-fourier
                        rivals at user level
      bd, ba            rivals at w-event level
      event-realtime, event-gaussian, event-laplace, event-laplace-filtered
                        the same noises for one value at a time: event level
      tree, square-root-tree, pegasus
                        rivals at event level
      whole-laplace, tops, topl
                        at event level for the whole value, whatever the sensitivity: for values
                        that are one person's own

    \b
    Examples:
      sfumato compare counts.csv --value cnt --sensitivity 1 --epsilon 1 --delta 1e-6
      sfumato compare counts.csv --value cnt --sensitivity 1 --epsilon 1 --period 7 \\
          --methods realtime,fast,silence --match variance --plot compare.png
    """
    from sfumato.series.series_compare import compare as compare_methods
    from sfumato.series.series_methods import METHODS

    names = None
    if given.methods != "all":
        names = [name.strip() for name in given.methods.split(",")]
    count = given.runs * len(METHODS if names is None else names)
    series, season, phases = _read(given)
    with (
        named_options({}, _OPTIONS),
        progress("simulating", count, given.shown.no_progress) as show,
    ):
        found = compare_methods(
            series,
            **vars(given.protected),
            delta=given.delta,
            methods=names,
            runs=given.runs,
            window=given.window,
            match=given.match,
            weight=given.weight,
            period=season,
            phases=phases,
            progress=show,
        )
    if given.plot is not None:
        from sfumato.plots.figures import compared_methods

        compared_methods(found, series, given.plot)
    if given.shown.as_json:
        print_json(_document(found, len(series)))
        return
    _show(found, len(series), given.runs)
    if not given.shown.quiet:
        print_legend(_LEGEND)
        _remark(found)


_OPTIONS = {
    name: f"--{name}"
    for name in ("weight", "period", "methods", "match", "runs", "window", "time", "missing")
}


def _read(given: _CompareOptions) -> tuple[list[float], int | None, list[int] | None]:
    """The values, the period and the phases."""
    from sfumato.core import checks
    from sfumato.series.calendar import Season
    from sfumato.tables.columns import read_columns
    from sfumato.tables.moments import kept_rows, numbers_of
    from sfumato.tables.readers import Table

    source, value = given.source, given.value
    period, time = given.calendar.period, given.calendar.time
    if given.rows is not None:
        checks.count("--rows", given.rows)
    wanted = [value] if time is None else [value, time]
    table = read_columns(Table.at(source, separator=given.separator), wanted)
    with named_options({}, _OPTIONS):
        places = kept_rows(table[value], given.missing, source, skipped=False)[: given.rows]
        series = numbers_of(table[value], places, source)
        if period is None:
            return series, None, None
        season = Season.of(period)
        if season.calendar is None:
            return series, season.period, None
        if time is None:
            raise InvalidParameter("period", period, "come with --time, the column of times")
        times = [table[time][place] for place in places]
        return series, season.period, season.phases(times, source)


def _document(found: Comparison, values: int) -> dict[str, Any]:
    return {
        "values": values,
        "silence": found.silence,
        "methods": [asdict(outcome) for outcome in found.outcomes],
        "refused": found.refused,
        "useless": found.useless,
    }


def _show(found: Comparison, values: int, runs: int) -> None:
    """One table for each unit and kind of guarantee, silence before all."""
    groups: dict[str, list[Outcome]] = {}
    for one in found.outcomes:
        name = "nothing told" if one.unit == "any" else f"{one.unit}, {one.kind}"
        groups.setdefault(name, []).append(one)
    for name, group in groups.items():
        table(
            f"{name}; {values:,} values, {runs} simulations each",
            ["method", "online", "epsilon", "delta", "rmse", "mae", "relative", "of silence"],
            [_row(one) for one in group],
        )


_LEGEND = {
    "user level": "all values of a person are hidden",
    "w-event level": "a person is hidden in any --window successive values",
    "event level": "one value of a person is hidden: a weaker promise to people who are in several",
    "pure, approximate": "it always holds, or except with probability delta",
    "*": "tuned on the true series, or told something of it: no release, a yardstick",
    "online": "whether each value leaves when it comes; others wait for later ones",
    "epsilon, delta": "what the whole series tells of whoever is hidden: odds change by a factor "
    "of at most e^epsilon, except with probability delta",
    "rmse": "how far off a value is, in the unit of the series: the root of the mean squared error",
    "mae": "the same, the mean of the errors without their sign",
    "+-": "twice the standard error over the simulations",
    "relative": "rmse as a share of the largest value",
    "of silence": "rmse as a share of that of silence, the mean of the series for every value; at "
    "1 or more, no use",
}


def _row(one: Outcome) -> list[str]:
    return [
        one.method + ("*" if one.helped else ""),
        "yes" if one.online else "no",
        shown_up(one.epsilon, 4),
        shown_up(one.delta, 2),
        _with_error(one.rmse, one.rmse_error),
        _with_error(one.mae, one.mae_error),
        f"{one.relative:.4g}",
        f"{one.of_silence:.4g}",
    ]


def _with_error(value: float, error: float | None) -> str:
    if error is None or error <= 1e-9 * value:
        return f"{value:.5g}"
    return f"{value:.5g} +- {2 * error:.2g}"


def _remark(found: Comparison) -> None:
    for name, why in found.refused.items():
        say(f"note: {name} cannot be made: {why}")
    if found.useless:
        say(f"warning: no nearer than a constant, so no use here: {', '.join(found.useless)}")
    best: dict[str, Outcome] = {}
    for one in found.outcomes:  # the least error of each kind comes first
        if one.online and one.unit == "user level" and not one.helped:
            best.setdefault(one.kind, one)
    if best:
        names = ", ".join(f"{one.method} ({kind})" for kind, one in best.items())
        print_line(
            "what to do: of what hides all values of a person, leaves at once and knows nothing "
            f"beforehand, the least error has {names}: `sfumato realtime --method NAME`"
        )
