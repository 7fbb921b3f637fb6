"""`sfumato realtime`: a series of numbers, value by value."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli import options
from sfumato.cli.console import hold, print_json, progress, say


def realtime(
    source: Annotated[str, typer.Argument(metavar="INPUT", help="A table; one row per moment.")],
    sensitivity: Annotated[
        float, typer.Option(help="The most that one person can change any value.")
    ],
    epsilon: Annotated[float, typer.Option(help="Budget of the whole series.")],
    output: Annotated[str, typer.Option("--output", "-o", help="Released values; - for stdout.")],
    value: Annotated[str, typer.Option(help="Column of the values.")] = "value",
    delta: Annotated[float, typer.Option(help="Budget of approximate methods.")] = 1e-6,
    method: Annotated[str, typer.Option(help="See `sfumato compare --help`.")] = "realtime",
    window: Annotated[int, typer.Option(help="Values protected together by bd and ba.")] = 10,
    interval: Annotated[
        str | None, typer.Option("--range", help="LOW:HIGH; values outside are clamped to it.")
    ] = None,
    history: Annotated[
        str | None,
        typer.Option(help="Public records of the same column to learn the process from."),
    ] = None,
    length: Annotated[
        int | None, typer.Option(help="Values that the budget is for; those of INPUT if not given.")
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(help="File to go on from: the values it has seen are not released again."),
    ] = None,
    key_file: options.KeyFile = None,
    shared_key: options.SharedKey = False,
    seed: options.Seed = None,
    separator: options.Separator = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Release a series of numbers with differential privacy for the whole of it.

    The guarantee is for a person who can change every value by at most the sensitivity, and is
    computed from the noise that is drawn. Methods that were tuned on the true series are
    refused. An output that exists is not overwritten: a second release tells more.

    With --state and --length a series may come in parts: each run releases what is new, and the
    state, which is a function of what was released, is stored before the values leave.

    \b
    Examples:
      sfumato realtime counts.csv --value cnt --sensitivity 1 --epsilon 1 --delta 1e-6 -o out.csv
      sfumato realtime counts.csv --value cnt --sensitivity 1 --epsilon 1 --history past.csv \\
          -o out.csv
      sfumato realtime so-far.csv --value cnt --sensitivity 1 --epsilon 1 --length 365 \\
          --state year.state -o today.csv
      sfumato realtime counts.csv --value cnt --sensitivity 1 --epsilon 1 --method bd --window 24 \\
          -o out.csv
    """
    from dataclasses import replace

    import numpy as np

    from sfumato._digest import digest
    from sfumato.cli.once import read_interval
    from sfumato.errors import InvalidParameter
    from sfumato.formats.readers import Table
    from sfumato.jobs.columns import read_columns, write_columns
    from sfumato.jobs.fit import read_each
    from sfumato.jobs.series import METHODS, Setting, continued
    from sfumato.models.autoregressive import Autoregressive
    from sfumato.models.encoding import number
    from sfumato.randomness import secure
    from sfumato.streaming.filters import kalman
    from sfumato.streaming.instant import Purpose
    from sfumato.streaming.realtime import Realtime

    if method not in METHODS:
        raise InvalidParameter("--method", method, f"be one of {', '.join(METHODS)}")
    if METHODS[method].helped:
        raise InvalidParameter("--method", method, "not be tuned on the true series")
    sink = Table.at(output)
    hold(output)
    if state is not None:
        hold(state, "--state")  # to the end: two runs would both go on from the same place
    if not sink.is_standard and Path(output).exists():
        raise InvalidParameter("--output", output, "not exist: a second release tells more")
    read = Table.at(source, separator=separator)
    with progress("reading", read.count(), quiet or as_json) as show:
        cells = read_columns(read, [value], show)[value]
    series = np.array(read_each(cells, number, source))
    outside = 0
    if interval is not None:
        low, high = read_interval(interval)
        outside = int(np.count_nonzero((series < low) | (series > high)))
        series = np.clip(series, low, high)
    setting = Setting(sensitivity, epsilon, delta, epsilon, length or series.size, window)
    made = METHODS[method].make(setting)
    if history is not None:
        if not isinstance(made, Realtime) or method != "realtime":
            raise InvalidParameter("--history", history, "come with --method realtime")
        past = read_each(
            read_columns(Table.at(history, separator=separator), [value])[value], number, history
        )
        made = replace(made, estimate=kalman(Autoregressive.fit(past)))
    coins = (
        options.coins(key_file, seed, [source, history, output, state], shared=shared_key)
        or secure()
    )
    if seed is not None:
        say("warning: --seed makes guessable coins; treat the output as a simulation")
    purpose = Purpose.RELEASE if seed is None else Purpose.SIMULATION
    if state is not None:
        if not isinstance(made, Realtime) or key_file is not None:
            raise InvalidParameter("--state", state, "come with noise and a filter, without a key")
        told = continued(made, series, Path(state), coins, purpose)
    else:
        # With a key, the same series gets the same answers, and any other one its own coins.
        told = made.release(series, coins, purpose, name=digest("realtime", value, series))
    write_columns(sink, {value: told.tolist()})
    guarantee = made.guarantee
    if as_json and not sink.is_standard:
        print_json(
            {
                "output": output,
                "method": method,
                "values": told.size,
                "unit": made.unit.value,
                "epsilon": guarantee.epsilon,
                "delta": guarantee.delta,
            }
        )
    elif not quiet:
        say(f"{told.size:,} values by {method}: {guarantee}, {made.unit.value}")
    if outside and not quiet:
        say(f"note: {outside:,} values were clamped (told to you alone)")
