"""`sfumato plan`: what a release would cost and leak, before anything is released."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sfumato.cli import options
from sfumato.cli.console import print_json, print_line, progress, say, table
from sfumato.cli.options import option
from sfumato.cli.table_output import check_suffix
from sfumato.core.numerics import shown_up

if TYPE_CHECKING:
    from sfumato.models.encoding import StreamModel
    from sfumato.stream.batch_widths import WidthForecast
    from sfumato.stream.forecast import Forecast, PlanReport, Way
    from sfumato.stream.plan import Plan
    from sfumato.stream.release_spec import ReleaseSpec

_LENGTH, _STREAMS, _FEW = 50, 12, 4
# Symbols, and values of a total, up to which it takes seconds to seek where it is best spent.
_SYMBOLS, _VALUES = 128, 100


class _PlanOptions(options.Options):
    model: str = options.MODEL
    loss: str | None = options.LOSS
    allowed: options.Budget
    spread: options.Spread
    length: int | None = option(
        "Values of a stream, as yours have; the horizon, or 50.", "--length", "--steps"
    )
    streams: int | None = option(
        "Streams to try; 12, fewer for large alphabets. More narrow the intervals."
    )
    history: str | None = option(
        "Try the streams of this table instead of drawing them from the model; best one that the "
        "model was not fitted to."
    )
    batch: str | None = option("Compare batches of these lengths instead, as 1,2,3,5,10.")
    seed: int = option("Of the simulation.", default=1)
    plot: str | None = option("Also draw loss against budget into this PNG, PDF or SVG.")
    shown: options.Shown


def plan(given: _PlanOptions) -> None:
    """Compare ways to release before releasing: expected loss, both leakages, and the rivals.

    Streams are drawn from the model, or read from --history, and released in a simulation, all
    methods on the same ones. `+-` is twice the standard error. `calibrated` is randomised response
    that leaks as much to the same adversary; `randomized-response` has the budget as its model-free
    leakage. `guessed` is the loss after the receiver's best guess of the truth; `recovered`, after
    his best guess given all outputs of the stream (`sfumato recover`). `better` is the part of a
    constant's loss that is saved: at 0 or below, say nothing instead.

    Below the table: what a whole stream may leak, and what all its outputs may tell about one of
    its values, which a budget per step or window does not bound by itself.

    A total is also tried in bursts, with pauses in which the best guess leaves: those that lose
    least on the model are sought, and compared on the same streams with an even split and with
    randomised response every N values at equal leakage, guessed or held in between, at its best N.
    With --every N, bursts of that gap are what is compared; for large alphabets and totals over
    more than 100 values, --every auto asks for the search.

    With --batch, values that leave together are compared with values that leave at once, at equal
    budget: what waiting saves, how long a value waits, and how long a batch takes to compute.

    \b
    Examples:
      sfumato plan --model city.model --epsilon 0.5
      sfumato plan --model city.model --budget 10 --horizon 50 --loss euclidean --plot loss.png
      sfumato plan --model city.model --epsilon 0.5 --history lastweek.csv --streams 50
      sfumato plan --model city.model --epsilon 0.5 --batch 1,2,3,5,10
    """
    from sfumato.core.errors import InvalidParameter
    from sfumato.plots.figures import loss_curve
    from sfumato.stream.forecast import curve, forecast
    from sfumato.stream.history_paths import read_paths
    from sfumato.stream.release_spec import ReleaseSpec, unit_of
    from sfumato.tables.readers import Table

    check_suffix(given.plot)
    read = options.load_model(given.model)
    spec = ReleaseSpec(**vars(given.allowed), loss=given.loss)
    searched = _is_sought(given, len(read.alphabet))
    if not searched:
        spec = given.spread.applied(spec, read, given.shown)
    each = given.length or given.allowed.horizon or _LENGTH
    if given.batch is not None:
        if given.history is not None:
            raise InvalidParameter("--history", given.history, "not come with --batch")
        _compare_widths(spec, read, given, each)
        return
    rule, many = spec.instant(read), given.streams or _streams(len(read.alphabet))
    paths = None
    if given.history is not None:
        paths = read_paths(Table.at(given.history), read, streams=many, length=given.length)
    values = each * many if paths is None else sum(map(len, paths))
    found = _sought(rule, given) if searched else None
    ways = () if found is None else found.ways
    with progress("simulating", (3 + len(ways)) * values, given.shown.no_progress) as show:
        report = forecast(
            rule,
            length=each,
            streams=many,
            seed=given.seed,
            paths=paths,
            ways=ways,
            progress=show,
        )
    points = []
    if given.plot or given.shown.as_json:
        few = min(many, _FEW)
        with progress("drawing the curve", 15 * few * each, given.shown.no_progress) as show:
            points = curve(rule, length=each, seed=given.seed, streams=few, progress=show)
    name = loss_name(spec, read)
    unit = unit_of(spec.loss_for(read), read)
    if given.plot:
        loss_curve(points, name, given.plot)
    if given.shown.as_json:
        document = asdict(report) | {"loss": name, "unit": unit}
        if found is None:
            del document["ways"], document["saved"]
        else:
            document |= {"every": found.every, "first": found.first}
        print_json({**document, "curve": [asdict(p) for p in points]})
        return
    where = f"of {given.history}" if given.history else "drawn from the model"
    table(
        f"{name} loss{f' ({unit})' if unit else ''} and leakage per value over {report.streams} "
        f"streams of {report.length:g} values {where}",
        ["method", *_COLUMNS],
        [[row.method, *_cells(row)] for row in report.methods],
    )
    if found is not None:
        even, silence = report.methods[0], report.methods[-1]
        rows = [("evenly", even), *((row.method, row) for row in report.ways)]
        table(
            "the same total in bursts, on the same streams",
            ["spent", *_COLUMNS],
            [[label, *_cells(row)] for label, row in [*rows, (silence.method, silence)]],
        )
        print_line(_recommended(found, report))
        if (beaten := _beaten(report)) is not None:
            say(f"warning: {beaten}")
    for line in _in_words(report, unit):
        print_line(line)
    if not given.shown.quiet:
        for remark in report.remarks:
            say(f"warning: {remark}")
    if given.plot:
        say(f"{given.plot}: loss against budget")


def _loss_and_leakage(
    row: Forecast | WidthForecast, beside: list[float | None], digits: int
) -> list[str]:
    """What both tables say: the loss, its error and numbers beside it, and both leakages."""
    return [
        f"{row.loss:.4g}",
        f"{2 * row.loss_error:.2g}",
        *("" if number is None else f"{number:.{digits}g}" for number in beside),
        *(shown_up(leakage, 4) for leakage in (row.sip, row.ldp)),
    ]


_COLUMNS = ["loss", "+-", "guessed", "recovered", "SIP", "LDP", "constant", "better"]


def _cells(row: Forecast) -> list[str]:
    numbers = _loss_and_leakage(row, [row.remapped_loss, row.recovered_loss], 4)
    return [*numbers, f"{row.constant:.0%}", f"{row.better:.0%}"]


class _Sought(NamedTuple):
    """The bursts that lose least on the model, and what they are compared with."""

    every: int
    first: float
    ways: tuple[Way, ...]


def _is_sought(given: _PlanOptions, symbols: int) -> bool:
    """Whether to seek where the total is best spent."""
    if given.allowed.budget is None or given.batch is not None:
        return False
    values = given.allowed.horizon or given.allowed.window or 1
    quick = symbols <= _SYMBOLS and values <= _VALUES
    return given.spread.every == "auto" or (given.spread.every is None and quick)


def _sought(rule: Plan, given: _PlanOptions) -> _Sought:
    from sfumato.core.guarantees import SIP
    from sfumato.solver.design_methods import Method
    from sfumato.stream.burst_search import best_bursts, rival_bursts
    from sfumato.stream.forecast import Pause, Way

    cap = None if given.spread.cap is None else SIP(given.spread.cap)
    with progress("seeking where to spend", None, given.shown.no_progress):
        best = best_bursts(rule, cap=cap, seed=given.seed).best
        guessed, held = rival_bursts(rule, seed=given.seed)
    rivals = [("guessed", guessed, Pause.GUESS), ("held", held, Pause.HOLD)]
    ways = (
        Way(f"every {best.every}", rule.method, best.budget),
        *(
            Way(f"calibrated every {one.every}, {how}", Method.CALIBRATED, one.budget, pause)
            for how, one, pause in rivals
        ),
    )
    return _Sought(best.every, best.first, ways)


def _recommended(found: _Sought, report: PlanReport) -> str:
    even, best, saved = report.methods[0], report.ways[0], report.saved
    if found.every == 1 or saved is None:
        return "spend the total evenly: no bursts lose less on the model"
    bursts = options.in_words(found.every, found.first)
    apart = f"a difference of {saved.by:.2g}, give or take {2 * saved.error:.2g}"
    if saved.by <= 2 * saved.error:
        return (
            f"on the model the total is best spent {bursts}; on these streams that cannot be told "
            f"from an even split: {best.loss:.4g} and {even.loss:.4g}, {apart}"
        )
    return f"spend the total {bursts}: {best.loss:.4g} instead of {even.loss:.4g}, {apart}"


def _beaten(report: PlanReport) -> str | None:
    """A word of warning if a simple rival lost less on these very streams; None if none did."""
    best, *rivals = report.ways
    rival = min(rivals, key=lambda row: row.loss)
    apart = math.hypot(best.loss_error, rival.loss_error)
    if min(best.loss, report.methods[0].loss) <= rival.loss + 2 * apart:
        return None
    return (
        f"A SIMPLE RIVAL LOSES LESS ON THESE STREAMS: {rival.method} {rival.loss:.4g}; the model "
        "does not fit them, often not how they begin: fit it to streams cut as these are"
    )


def loss_name(spec: ReleaseSpec, model: StreamModel) -> str:
    """What a table calls the loss."""
    asked = spec.loss_for(model)
    return Path(asked).name if isinstance(asked, str) else "matrix"


def _streams(symbols: int) -> int:
    """Streams to try: a step takes longer on large alphabets."""
    return _STREAMS if symbols <= 64 else _FEW if symbols <= 600 else 2


def _in_words(report: PlanReport, unit: str) -> list[str]:
    from sfumato.stream.remarks import odds

    best, silence = report.methods[0], report.methods[-1]
    behind = f" {unit}" if unit else ""
    seen = "" if best.one_value is None else f"; in these streams up to {shown_up(best.one_value)}"
    spent = " where the total is spent evenly" if report.ways else ""
    least = []
    if report.floor is not None:
        nearest = min(row.loss for row in (best, *report.ways[:1]))
        above = f"{nearest / report.floor - 1:.0%} more" if report.floor > 0 else "more"
        least = [
            f"nothing within this budget that leaves value by value can lose less than "
            f"{report.floor:.4g}{behind} (a proven floor); the best above loses {above}"
        ]
    return [
        f"a constant would lose {silence.loss:.4g}{behind}; the release saves {best.better:.0%} of "
        f"that{spent}, give or take {2 * best.better_error:.0%}",
        *least,
        f"a whole stream may leak SIP({shown_up(report.total)}): the odds of what is true may "
        f"change by {odds(report.total)}",
        f"about any one value all outputs together may tell SIP({shown_up(report.one_value)}) "
        f"({report.one_value_rule}){seen}",
    ]


def _compare_widths(
    spec: ReleaseSpec, model: StreamModel, given: _PlanOptions, length: int
) -> None:
    import msgspec

    from sfumato.core.errors import InvalidParameter
    from sfumato.plots.figures import loss_of_widths
    from sfumato.stream.batch_widths import forecast_widths, silent_loss
    from sfumato.stream.lifetime import one_value_bound
    from sfumato.stream.remarks import odds

    words = str(given.batch).split(",")
    if not all(word.strip().isdecimal() and word.isascii() for word in words):
        raise InvalidParameter("--batch", given.batch, "be whole numbers, as 1,2,3,5,10")
    widths = [int(word) for word in words]
    rule = msgspec.structs.replace(spec, batch=max(widths)).batched(model)
    streams = given.streams or _FEW
    values = length * streams
    with progress("simulating", values * len(widths), given.shown.no_progress) as show:
        rows = forecast_widths(
            rule, widths, steps=length, streams=streams, seed=given.seed, progress=show
        )
    name = loss_name(spec, model)
    if given.plot:
        loss_of_widths(rows, name, given.plot)
    single, budget = model.single_values, rule.budget
    bounds = [one_value_bound(single, budget, length, width) for width in widths]
    bound = max(bounds, key=lambda one: one.sip.epsilon)
    total = one_value_bound(None, budget, length).sip.epsilon
    silent = silent_loss(rule, length)
    if given.shown.as_json:
        document = {"total": total, "one_value": bound.sip.epsilon, "silent_loss": silent}
        print_json({"batches": [asdict(row) for row in rows], **document})
        return
    table(
        f"expected {name} loss and leakage per value over {values} values",
        ["batch", "loss", "+-", "gap", "SIP", "LDP", "waits for", "at most", "ms a batch", "parts"],
        [
            [
                str(row.width),
                *_loss_and_leakage(row, [row.gap], 2),
                f"{row.mean_delay:g}",
                f"{row.longest_delay:g}",
                f"{1e3 * row.seconds:.3g}",
                f"{row.parts:,}" + ("" if row.exact else " boxes"),
            ]
            for row in rows
        ],
    )
    if silent is not None:
        print_line(f"a constant would lose {silent:.4g}")
    print_line(
        f"a whole stream of {length} values may leak SIP({shown_up(total)}): the odds of "
        f"what is true may change by {odds(total)}"
    )
    print_line(
        f"about any one value all outputs together may tell SIP({shown_up(bound.sip.epsilon)}) "
        f"({bound.rule})"
    )
    best = min(rows, key=lambda row: row.loss)
    if not given.shown.quiet and silent is not None and best.loss >= silent:
        say("warning: NO BETTER THAN SILENCE: no length of batch loses less than a constant")
    if given.plot:
        say(f"{given.plot}: loss against the length of batches")
