"""`sfumato compare`: which method should release my counts?"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from sfumato._numerics import shown_up
from sfumato.cli import options
from sfumato.cli.console import print_json, print_line, progress, table


def compare(
    source: Annotated[str, typer.Argument(metavar="SERIES", help="A table; one row per moment.")],
    sensitivity: Annotated[
        float, typer.Option(help="The most that one person can change any value.")
    ],
    epsilon: Annotated[float, typer.Option(help="Budget of the whole series.")],
    delta: Annotated[float, typer.Option(help="Budget of approximate methods.")] = 1e-6,
    value: Annotated[str, typer.Option(help="Column of the values.")] = "value",
    methods: Annotated[str, typer.Option(help="all, or names: realtime,fast,...")] = "all",
    runs: Annotated[int, typer.Option(help="Simulations of each method.")] = 10,
    window: Annotated[int, typer.Option(help="Values protected together by bd and ba.")] = 10,
    match: Annotated[
        str,
        typer.Option(
            help="Pure methods get the same epsilon, or (variance) Laplace noise of the variance "
            "of the Gaussian one: the rule of the paper."
        ),
    ] = "epsilon",
    rows: Annotated[int | None, typer.Option(help="Only the first so many values.")] = None,
    plot: Annotated[str | None, typer.Option(help="Picture of errors and of the best one.")] = None,
    separator: options.Separator = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Simulate all ways to release a series of numbers, at equal privacy, and rank them.

    User level protects all values of a person, w-event level any few successive ones, event level
    a single one: errors of different units are not comparable. Methods marked * were tuned on the
    true series, as their papers do; nothing of this is a release.

    \b
    Methods:
      realtime          Gaussian noise and a bank of filters that learns the process (Sfumato)
      published         the rule of the paper, from the last release alone
      gaussian, laplace, laplace-filtered
                        independent noise, and the bank of filters after it
      discrete-gaussian, binomial
                        other noises, and the bank of filters after them
      fast, fast-sampling, fourier, delayed-fourier
                        rivals at user level
      bd, ba            rivals at w-event level
      tree, square-root-tree, pegasus, tops, topl
                        rivals at event level

    \b
    Examples:
      sfumato compare counts.csv --value cnt --sensitivity 1 --epsilon 1 --delta 1e-6
      sfumato compare counts.csv --value cnt --sensitivity 1 --epsilon 1 --methods realtime,fast \\
          --match variance --plot compare.png
    """
    from sfumato.formats.readers import Table
    from sfumato.jobs.columns import read_columns
    from sfumato.jobs.fit import read_each
    from sfumato.jobs.series import METHODS
    from sfumato.jobs.series import compare as compare_methods
    from sfumato.models.encoding import number

    read = Table.at(source, separator=separator)
    cells = read_columns(read, [value])[value]
    series = read_each(cells, number, source)[:rows]
    names = None if methods == "all" else [name.strip() for name in methods.split(",")]
    count = runs * len(METHODS if names is None else names)
    with progress("simulating", count, quiet or as_json) as show:
        found, examples = compare_methods(
            series,
            sensitivity=sensitivity,
            epsilon=epsilon,
            delta=delta,
            methods=names,
            runs=runs,
            window=window,
            match=match,
            progress=show,
        )
    if plot is not None:
        from sfumato.studies.figures import compared_methods

        compared_methods(found, series, examples, plot)
    if as_json:
        print_json({"values": len(series), "methods": [asdict(outcome) for outcome in found]})
        return
    table(
        f"{len(series):,} values, {runs} simulations each",
        ["method", "unit", "online", "epsilon", "delta", "rmse", "mae", "relative"],
        [
            [
                one.method + ("*" if one.helped else ""),
                one.unit,
                "yes" if one.online else "no",
                shown_up(one.epsilon, 4),
                shown_up(one.delta, 2),
                f"{one.rmse:.5g}",
                f"{one.mae:.5g}",
                f"{one.relative:.4g}",
            ]
            for one in found
        ],
    )
    best = next((one for one in found if one.online and one.unit == "user level"), None)
    if best is not None and not quiet:
        print_line(f"least error, online, for a person's whole series: {best.method}")
