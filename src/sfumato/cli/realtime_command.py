"""`sfumato realtime`: a series of numbers, value by value."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.cli import coin_options, options, table_output
from sfumato.cli.console import hold, print_json, progress, say
from sfumato.cli.options import argument, option, required
from sfumato.core.printed import shown_up

if TYPE_CHECKING:
    from sfumato.core.randomness import Randomness
    from sfumato.models.encoding import Raw
    from sfumato.series.filters import Estimate
    from sfumato.series.realtime_run import ReleasedSeries
    from sfumato.series.series_ledger import SeriesLedger
    from sfumato.tables.readers import Table


class _RealtimeOptions(options.Options):
    source: str = argument("A table; one row per moment.", "INPUT")
    protected: options.Series
    output: str = required("Released values; - for stdout.", "--output", "-o")
    value: str = options.VALUES
    delta: float = options.DELTA
    unit: str | None = option(
        "Whose data are protected together: user (a person who may be in every value), event (in "
        "one value), w-event (in a window). If not given, user for methods that can do both, and "
        "else the method's own; it is said."
    )
    method: str = option("See `sfumato compare --help`.", default="realtime")
    window: int = options.PROTECTED_WINDOW
    weight: float | None = option("Of the true value, for --method published.")
    interval: str | None = option(
        "LOW:HIGH; values outside are clamped to it, and so is what leaves.", "--range"
    )
    calendar: options.Calendar
    keep: str | None = option(
        "Columns that leave as they are: date. The time of a row is public; declare others with "
        "--independent."
    )
    independent: str | None = options.INDEPENDENT
    missing: str = options.MISSING
    history: str | None = option("Public records of the same column to learn the process from.")
    length: int | None = option("Values that the budget is for; those of INPUT if not given.")
    state: str | None = option("File to go on from: the values it has seen are not released again.")
    ledger: str | None = options.LEDGER
    event: str | None = options.EVENT
    repetition: options.Repetition
    plot: str | None = option("Picture of what was released (PNG, SVG).")
    separator: str | None = options.SEPARATOR
    secret: coin_options.Secret
    seed: int | None = coin_options.SEED
    shown: options.Shown


def realtime(given: _RealtimeOptions) -> None:
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
    from sfumato.core.randomness import secure
    from sfumato.series.realtime_run import release_series
    from sfumato.series.series_spec import SeriesSpec
    from sfumato.tables.columns import read_columns
    from sfumato.tables.moments import kept_rows, values_of
    from sfumato.tables.readers import Table

    source, output, value, time = given.source, given.output, given.value, given.calendar.time
    history, state, ledger = given.history, given.state, given.ledger
    if given.length is not None:
        checks.count("--length", given.length, at_most=limits.STEPS)
    sink, beside = Table.at(output), table_output.split_names(given.keep)
    _check_ledger(given)
    inputs = [source, history, given.secret.key_file, state, ledger]
    table_output.check_files(output, given.plot, inputs, keyed=False)
    if state is not None:
        hold(state, "--state")  # to the end: two runs would both go on from the same place
    ends = None if given.interval is None else table_output.read_interval(given.interval)
    read = Table.at(source, separator=given.separator)
    timed = [name for name in (time, given.event) if name is not None]
    with progress("reading", read.count(), given.shown.no_progress) as show:
        table = read_columns(read, [value, *timed, *beside], show)
    public = [source, history, output, state, given.plot, ledger]
    coins = given.secret.coins(given.seed, public) or secure()
    coin_options.warn_of_seed(given.seed)
    with table_output.named_options({}, _OPTIONS):
        rows = kept_rows(table[value], given.missing, source)
        frame = {name: [cells[row] for row in rows] for name, cells in table.items()}
        times, notes = _public(frame, given, beside)
        series = values_of(table[value], rows, source)
        spec = options.spec_from(
            SeriesSpec,
            given,
            length=given.length or checks.count("length", len(series)),
            estimate=_estimate(given, times),
            interval=ends,
        )
        # With a key, the same series gets the same answers, and any other one its own coins.
        keyed = given.secret.key_file is not None
        done = release_series(
            series,
            spec,
            state=None if state is None else Path(state),
            ledger=_ledger(given, frame),
            name=digest("realtime", value, repr(series)) if keyed else None,
            randomness=coins,
            purpose=coin_options.purpose_of(given.seed),
        )
    columns = {name: frame[name][-len(done.values) :] for name in beside} | {value: done.values}
    document = _document(done, given, notes, coins)
    pictures = {} if given.plot is None else {given.plot: partial(_draw, done, value)}
    table_output.write_released(sink, columns, document, pictures, keyed=False)
    if given.shown.as_json and not sink.is_standard:
        print_json({"output": output, **table_output.told(document)})
    elif not given.shown.quiet:
        _tell(done, notes)
    if not given.shown.quiet:
        _warn(done, len(table[value]) - len(rows))


_OPTIONS = {
    name: f"--{name}"
    for name in ("method", "unit", "weight", "window", "period", "missing", "state", "history")
} | {"keep": "--keep", "time": "--time"}


def _estimate(given: _RealtimeOptions, times: list[Raw] | None) -> Estimate | None:
    """The filter that was asked for."""
    from sfumato.core.errors import InvalidParameter
    from sfumato.tables.readers import Table

    period, history = given.calendar.period, given.history
    if period is not None and history is not None:
        raise InvalidParameter("--period", period, "not come with --history")
    past = None if history is None else Table.at(history, separator=given.separator)
    return estimate_of(period, past, given.value, times, given.source)


def estimate_of(
    period: str | None, history: Table | None, column: str, times: list[Raw] | None, source: str
) -> Estimate | None:
    """The filter: one that learns a period, or one that public records have taught."""
    from sfumato.models.encoding import number
    from sfumato.series.autoregressive import Autoregressive
    from sfumato.series.calendar import Season
    from sfumato.series.filters import kalman
    from sfumato.tables.cells import read_each
    from sfumato.tables.columns import read_columns

    if period is not None:
        return Season.of(period).estimate(times, source)
    if history is None:
        return None
    past = read_each(read_columns(history, [column])[column], number, history.path)
    return kalman(Autoregressive.fit(past))


def _public(
    frame: dict[str, list[Raw]], given: _RealtimeOptions, beside: list[str]
) -> tuple[list[Raw] | None, list[str]]:
    """The times of the rows, and what leaves beside the values; or what must be declared."""
    from sfumato.core.errors import InvalidParameter
    from sfumato.series.calendar import are_moments, moments

    time, independent = given.calendar.time, table_output.split_names(given.independent)
    if given.value in (time, *beside):
        raise InvalidParameter("keep", given.value, "not be the column of the values")
    if time is None:
        dated = [name for name in beside if name not in independent and are_moments(frame[name])]
        time = dated[0] if dated else None
    if time is not None:
        moments(frame[time], given.source)
    for name in beside:
        if name != time and name not in independent:
            rule = "be the --time of the rows, which is public, or be declared --independent"
            raise InvalidParameter("keep", name, rule)
    notes = []
    if time in beside:
        notes.append(f"{time!r} leaves as it is: the time of a row is taken for public")
    if others := [name for name in beside if name != time]:
        notes.append(f"declared to tell nothing of any person, not checked: {', '.join(others)}")
    return None if time is None else frame[time], notes


def _check_ledger(given: _RealtimeOptions) -> None:
    """What does not go together."""
    from sfumato.core.errors import InvalidParameter

    again = given.repetition
    if given.ledger is None:
        options = {"--event": given.event, "--resume": again.resume, "--append": again.append}
        for name, value in options.items():
            if value:
                raise InvalidParameter(name, value, "come with --ledger")
    elif given.state is not None:
        rule = "not come with --ledger, which keeps the state"
        raise InvalidParameter("--state", given.state, rule)
    again.checked(given.ledger)


def _ledger(given: _RealtimeOptions, frame: dict[str, list[Raw]]) -> SeriesLedger | None:
    """Where answers are kept: what tells the rows apart, and what each has of it."""
    from sfumato.series.series_ledger import SeriesLedger
    from sfumato.store.protocol import Identity

    if given.ledger is None:
        return None
    identity, column = Identity.EVENT, given.event
    if column is None:
        column = given.calendar.time
        identity = Identity.ROW if column is None else Identity.TIME
    keys = [] if column is None else [str(cell).strip() for cell in frame[column]]
    return SeriesLedger(
        path=Path(given.ledger),
        source=Path(given.source).name,
        series=given.value,
        again=given.repetition.checked(given.ledger),
        identity=identity,
        keys=keys,
    )


def _document(
    done: ReleasedSeries, given: _RealtimeOptions, notes: list[str], coins: Randomness
) -> dict[str, Any]:
    from sfumato.series.series_verify import series_document

    asked = {
        "period": given.calendar.period,
        "time": given.calendar.time,
        "missing": given.missing,
        "history": given.history is not None,
        "parts": given.state is not None or given.ledger is not None,
    }
    return series_document(
        done.certificate,
        column=given.value,
        kept=table_output.split_names(given.keep),
        notes=notes,
        asked=asked,
        coins=coins,
        commitment=given.secret.commitment(quiet=given.shown.quiet),
    )


def _draw(done: ReleasedSeries, value: str, path: str) -> None:
    from sfumato.plots.figures import released_series

    released_series(done.values, value, done.certificate.cost, path)


def _tell(done: ReleasedSeries, notes: list[str]) -> None:
    from sfumato.core import portable
    from sfumato.core.guarantees import ApproxDP, PureDP

    promise = done.certificate
    exact = PureDP(promise.epsilon)
    kind = ApproxDP(promise.epsilon, promise.delta) if promise.delta else exact
    say(f"{promise.values:,} values by {promise.method}: {kind}, {promise.unit}")
    say(f"protects {promise.protects}")
    factor = shown_up(portable.exp(min(promise.epsilon, 700.0)), 3)
    fails = f", except with probability {shown_up(promise.delta)}" if promise.delta else ""
    say(f"so what leaves is at most {factor} times as likely with that person as without{fails}")
    if promise.cost is not None and promise.silence is not None:
        say(
            f"expected error, judged by what left alone: {shown_up(promise.cost, 4)}; a constant's "
            f"{promise.silence:.4g} (root mean square)"
        )
    for remark in (*notes, *promise.remarks):
        say(f"note: {remark}")


def _warn(done: ReleasedSeries, dropped: int) -> None:
    """What the owner of the data should know; it is in no certificate."""
    if done.clamped:
        say(f"note: {done.clamped:,} values were clamped (told to you alone)")
    if dropped:
        say(f"note: {dropped:,} rows without a value were left out (told to you alone)")
    if done.deviation and done.error >= done.deviation:
        say(
            f"warning: a constant is nearer to the series: its true error is {done.deviation:.4g}, "
            f"that of what was released {done.error:.4g} (told to you alone)"
        )
    elif done.deviation:
        share = 100 * done.error / done.deviation
        say(
            f"note: the true error is {done.error:.4g}, {share:.2g} % of a constant's (told to you "
            "alone)"
        )
