"""`sfumato realtime`: a series of numbers, value by value."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import options
from sfumato.cli.console import hold, print_json, progress, say
from sfumato.cli.table_output import (
    check_files,
    named_options,
    read_interval,
    split_names,
    write_released,
)
from sfumato.core.numerics import shown_up

if TYPE_CHECKING:
    from sfumato.models.encoding import Raw
    from sfumato.series.filters import Estimate
    from sfumato.series.realtime_run import ReleasedSeries
    from sfumato.tables.readers import Table


def realtime(
    source: Annotated[str, typer.Argument(metavar="INPUT", help="A table; one row per moment.")],
    sensitivity: Annotated[
        float, typer.Option(help="The most that one person can change any value.")
    ],
    epsilon: Annotated[float, typer.Option(help="Budget of the whole series.")],
    output: Annotated[str, typer.Option("--output", "-o", help="Released values; - for stdout.")],
    value: Annotated[str, typer.Option(help="Column of the values.")] = "value",
    delta: Annotated[float, typer.Option(help="Budget of approximate methods.")] = 1e-6,
    unit: Annotated[
        str | None,
        typer.Option(
            help="Whose data are protected together: user (a person who may be in every value), "
            "event (in one value), w-event (in a window). If not given, user for methods that can "
            "do both, and else the method's own; it is said."
        ),
    ] = None,
    method: Annotated[str, typer.Option(help="See `sfumato compare --help`.")] = "realtime",
    window: Annotated[int, typer.Option(help="Values protected together by bd and ba.")] = 10,
    weight: Annotated[
        float | None, typer.Option(help="Of the true value, for --method published.")
    ] = None,
    interval: Annotated[
        str | None,
        typer.Option(
            "--range", help="LOW:HIGH; values outside are clamped to it, and so is what leaves."
        ),
    ] = None,
    period: options.Period = None,
    time: options.Time = None,
    keep: Annotated[
        str | None,
        typer.Option(
            help="Columns that leave as they are: date. The time of a row is public; declare "
            "others with --independent."
        ),
    ] = None,
    independent: options.Independent = None,
    missing: options.Missing = "refuse",
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
    ledger: options.Ledger = None,
    event: options.Event = None,
    resume: options.Resume = False,
    append: options.Append = False,
    plot: Annotated[
        str | None, typer.Option(help="Picture of what was released (PNG, SVG).")
    ] = None,
    separator: options.Separator = None,
    key_file: options.KeyFile = None,
    shared_key: options.SharedKey = False,
    seed: options.Seed = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Release a series of numbers with differential privacy for the whole of it.

    The guarantee is computed from the noise that is drawn: at user level for a person who can
    change every value by at most the sensitivity, at event level for one value at a time. Methods
    that were tuned on the true series are refused. An output that exists is not overwritten: a
    second release tells more. The certificate is written beside a file output as
    OUTPUT.certificate.json; what it says of errors comes from what was released.

    With --period the filter learns what comes again, from released values alone: it costs no
    privacy. With --state and --length a series may come in parts: each run releases what is
    new, and the state, which is a function of what was released, is stored before the values
    leave. With --missing skip a moment without a value passes, and what leaves shows which.

    With --ledger every answer is kept: after a crash, or when a row is sent again, nothing is drawn
    twice, and `sfumato audit` checks noise, charges and budget. Name what tells rows apart: --time
    or --event; without either, say --resume for the same input or --append for new data.

    \b
    Examples:
      sfumato realtime counts.csv --value cnt --sensitivity 1 --epsilon 1 --delta 1e-6 -o out.csv
      sfumato realtime counts.csv --value cnt --sensitivity 1 --epsilon 1 --time date --keep date \\
          --period weekday --range 0:20000 --plot out.png -o out.csv
      sfumato realtime counts.csv --value cnt --sensitivity 1 --epsilon 1 --unit event -o out.csv
      sfumato realtime so-far.csv --value cnt --sensitivity 1 --epsilon 1 --length 365 \\
          --state year.state -o today.csv
      sfumato realtime today.csv --value cnt --sensitivity 1 --epsilon 1 --length 365 \\
          --time date --keep date --ledger year.ledger -o private-today.csv
      sfumato realtime counts.csv --value cnt --sensitivity 1 --epsilon 1 --method bd --window 24 \\
          -o out.csv
    """
    from sfumato.core import checks, limits
    from sfumato.core.digest import digest
    from sfumato.core.purpose import Purpose
    from sfumato.core.randomness import secure
    from sfumato.series.realtime_run import release_series
    from sfumato.series.series_ledger import SeriesLedger
    from sfumato.series.series_spec import SeriesSpec
    from sfumato.store.protocol import Again
    from sfumato.tables.columns import read_columns
    from sfumato.tables.moments import kept_rows, values_of
    from sfumato.tables.readers import Table

    if length is not None:
        checks.count("--length", length, at_most=limits.STEPS)
    sink, kept = Table.at(output), split_names(keep)
    _check_ledger(ledger, event, state, resume=resume, append=append)
    check_files(output, plot, [source, history, key_file, state, ledger], keyed=False)
    if state is not None:
        hold(state, "--state")  # to the end: two runs would both go on from the same place
    ends = None if interval is None else read_interval(interval)
    read = Table.at(source, separator=separator)
    timed = [name for name in (time, event) if name is not None]
    with progress("reading", read.count(), quiet or as_json) as show:
        table = read_columns(read, [value, *timed, *kept], show)
    others = [source, history, output, state, plot, ledger]
    coins = options.coins(key_file, seed, others, shared=shared_key) or secure()
    if seed is not None:
        say("warning: --seed makes guessable coins; treat the output as a simulation")
    with named_options({}, _OPTIONS):
        rows = kept_rows(table[value], missing, source)
        frame = {name: [cells[row] for row in rows] for name, cells in table.items()}
        times, notes = _public(frame, value, time, kept, split_names(independent), source)
        series = values_of(table[value], rows, source)
        past = None if history is None else Table.at(history, separator=separator)
        spec = SeriesSpec(
            sensitivity=sensitivity,
            epsilon=epsilon,
            delta=delta,
            length=length or checks.count("length", len(series)),
            window=window,
            method=method,
            unit=unit,
            weight=weight,
            estimate=_estimate(period, times, source, past, value),
            interval=ends,
        )
        done = release_series(
            series,
            spec,
            state=None if state is None else Path(state),
            ledger=None
            if ledger is None
            else SeriesLedger(
                path=Path(ledger),
                source=Path(source).name,
                series=value,
                again=Again.RESUME if resume else Again.APPEND if append else Again.REFUSE,
                **_identity(frame, event, time),
            ),
            # With a key, the same series gets the same answers, and any other one its own coins.
            name=None if key_file is None else digest("realtime", value, repr(series)),
            randomness=coins,
            purpose=Purpose.RELEASE if seed is None else Purpose.SIMULATION,
        )
    told = {name: frame[name][-len(done.values) :] for name in kept} | {value: done.values}
    document = _document(done, value, kept, notes)
    pictures = {} if plot is None else {plot: partial(_draw, done, value)}
    write_released(sink, told, document, pictures, keyed=False)
    if as_json and not sink.is_standard:
        print_json({"output": output, **document})
    elif not quiet:
        _tell(done, notes)
    if not quiet:
        _warn(done, len(table[value]) - len(rows))


_OPTIONS = {
    name: f"--{name}"
    for name in ("method", "unit", "weight", "window", "period", "missing", "state", "history")
} | {"keep": "--keep", "time": "--time"}


def _estimate(
    period: str | None,
    times: list[Raw] | None,
    source: str,
    history: Table | None,
    value: str,
) -> Estimate | None:
    """The filter: one that learns a period, or one that public records have taught."""
    from sfumato.core.errors import InvalidParameter
    from sfumato.models.encoding import number
    from sfumato.series.autoregressive import Autoregressive
    from sfumato.series.calendar import Season
    from sfumato.series.filters import kalman
    from sfumato.tables.cells import read_each
    from sfumato.tables.columns import read_columns

    if period is not None and history is not None:
        raise InvalidParameter("--period", period, "not come with --history")
    if period is not None:
        return Season.of(period).estimate(times, source)
    if history is None:
        return None
    past = read_each(read_columns(history, [value])[value], number, history.path)
    return kalman(Autoregressive.fit(past))


def _public(
    frame: dict[str, list[Raw]],
    value: str,
    time: str | None,
    kept: list[str],
    independent: list[str],
    source: str,
) -> tuple[list[Raw] | None, list[str]]:
    """The times of the rows, and what leaves beside the values; or what must be declared."""
    from sfumato.core.errors import InvalidParameter
    from sfumato.series.calendar import are_moments, moments

    if value in (time, *kept):
        raise InvalidParameter("keep", value, "not be the column of the values")
    if time is None:
        dated = [name for name in kept if name not in independent and are_moments(frame[name])]
        time = dated[0] if dated else None
    if time is not None:
        moments(frame[time], source)
    for name in kept:
        if name != time and name not in independent:
            rule = "be the --time of the rows, which is public, or be declared --independent"
            raise InvalidParameter("keep", name, rule)
    notes = []
    if time in kept:
        notes.append(f"{time!r} leaves as it is: the time of a row is taken for public")
    if others := [name for name in kept if name != time]:
        notes.append(f"declared to tell nothing of any person, not checked: {', '.join(others)}")
    return None if time is None else frame[time], notes


def _check_ledger(
    ledger: str | None, event: str | None, state: str | None, *, resume: bool, append: bool
) -> None:
    """What does not go together."""
    from sfumato.core.errors import InvalidParameter

    if ledger is None:
        for name, given in (("--event", event), ("--resume", resume), ("--append", append)):
            if given:
                raise InvalidParameter(name, given, "come with --ledger")
    elif state is not None:
        raise InvalidParameter("--state", state, "not come with --ledger, which keeps the state")
    if resume and append:
        raise InvalidParameter("--append", append, "not come with --resume")
    if resume and ledger is not None and not Path(ledger).is_file():
        raise InvalidParameter("--ledger", ledger, "be the ledger of the interrupted run")


def _identity(frame: dict[str, list[Raw]], event: str | None, time: str | None) -> dict[str, Any]:
    """What tells the rows apart, and what each has of it."""
    from sfumato.store.protocol import Identity

    column = time if event is None else event
    if column is None:
        return {"identity": Identity.ROW}
    identity = Identity.TIME if event is None else Identity.EVENT
    return {"identity": identity, "keys": [str(cell).strip() for cell in frame[column]]}


def _document(
    done: ReleasedSeries, value: str, kept: list[str], notes: list[str]
) -> dict[str, Any]:
    from sfumato.core.certificate import certificate_document

    document = certificate_document(done.certificate)
    public = {"column": value, "kept": kept}
    return document | public | {"remarks": [*notes, *done.certificate.remarks]}


def _draw(done: ReleasedSeries, value: str, path: str) -> None:
    from sfumato.plots.figures import released_series

    released_series(done.values, value, done.certificate.cost, path)


def _tell(done: ReleasedSeries, notes: list[str]) -> None:
    from sfumato.core.guarantees import ApproxDP, PureDP

    told = done.certificate
    kind = ApproxDP(told.epsilon, told.delta) if told.delta else PureDP(told.epsilon)
    say(f"{told.values:,} values by {told.method}: {kind}, {told.unit}")
    say(f"protects {told.protects}")
    if told.cost is not None and told.silence is not None:
        say(f"expected error {shown_up(told.cost, 4)}; a constant's {told.silence:.4g}")
    for remark in (*notes, *told.remarks):
        say(f"note: {remark}")


def _warn(done: ReleasedSeries, dropped: int) -> None:
    """What the owner of the data should know; it is in no certificate."""
    if done.clamped:
        say(f"note: {done.clamped:,} values were clamped (told to you alone)")
    if dropped:
        say(f"note: {dropped:,} rows without a value were left out (told to you alone)")
    if done.deviation and done.error >= done.deviation:
        say(
            f"warning: a constant is nearer to the series: its error is {done.deviation:.4g}, that "
            f"of what was released {done.error:.4g} (told to you alone)"
        )
    elif done.deviation:
        share = 100 * done.error / done.deviation
        say(f"note: the error is {share:.2g} % of a constant's (told to you alone)")
