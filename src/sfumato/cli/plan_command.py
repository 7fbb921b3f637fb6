"""`sfumato plan`: what a release would cost and leak, before anything is released."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from sfumato.cli import options
from sfumato.cli.console import print_json, print_line, progress, say, table
from sfumato.cli.loss_words import error
from sfumato.cli.options import flag, option
from sfumato.cli.plan_robust import plan_robust
from sfumato.cli.plan_text import in_words, show_tables
from sfumato.cli.plan_widths import compare_widths, loss_name
from sfumato.cli.table_output import check_suffix

if TYPE_CHECKING:
    from sfumato.cli.plan_bursts import SoughtBursts
    from sfumato.cli.rule_choice import RuleChoice
    from sfumato.models.stream_model import StreamModel
    from sfumato.stream.forecast import PlanReport
    from sfumato.stream.plan import Plan
    from sfumato.stream.price_frontier import Frontier, FrontierPoint
    from sfumato.stream.release_spec import ReleaseSpec
    from sfumato.stream.release_trials import Way

_LENGTH, _STREAMS, _FEW = 50, 12, 4


class _OurWay(options.Options):
    """Which of our ways to find channels is held against the rivals."""

    method: str | None = option(
        "far-sighted (the least loss of the stream: what is told now is good for later values) or "
        "step-wise (the least loss of each step); rivals stand beside either. If not given: what "
        "`release` would take."
    )
    thrift: float | None = options.THRIFT


class PlanOptions(options.Options):
    """What `plan` is asked for."""

    model: str = options.MODEL
    loss: str | None = options.LOSS
    allowed: options.Budget
    spread: options.Spread
    length: int | None = option(
        "Values of a stream, as yours have; the horizon, or 50.", "--length", "--steps"
    )
    streams: int | None = option(
        "Streams to try; 12, fewer for large alphabets. More of them give narrower intervals."
    )
    history: str | None = option(
        "Try the streams of this table instead of drawing them from the model; best one that the "
        "model was not fitted to."
    )
    way: _OurWay
    frontier: bool = flag(
        "--frontier",
        "Also what several prices of a nat make of far-sighted streams: loss against mean charge. "
        "With --plot, that is drawn.",
    )
    robust: float | None = option(
        "Instead: what it costs to keep the budget for every chain whose probabilities are each "
        "off by at most so much (`release --robust`), beside the model alone and none at all."
    )
    batch: str | None = option("Compare batches of these lengths instead, as 1,2,3,5,10.")
    seed: int = option("Of the simulation.", default=1)
    plot: str | None = option("Also draw loss against budget into this PNG, PDF or SVG.")
    shown: options.Shown


def plan(given: PlanOptions) -> None:
    """Compare ways to release before releasing: expected loss, both leakages, and the rivals.

    Streams are drawn from the model, or read from --history, and released in a simulation, all
    methods on the same ones. `+-` is twice the standard error. `calibrated` is randomised response
    that leaks as much to the same adversary; `randomized-response` has the budget as its model-free
    leakage. `guessed` is the loss after the receiver's best guess of the truth; `recovered`, after
    his best guess given all outputs of the stream (`sfumato recover`). `better` is the part of a
    constant's loss that is saved: at 0 or below, say nothing instead.

    Below the table: what a whole stream may leak, and what all its outputs may tell about one of
    its values, which a budget per step or window does not bound by itself.

    With a cap on each value, `far-sighted` is the least loss of the stream, `step-wise` of each
    step. All keep the same cap; the column SIP says what they leak of it. What sight buys is often
    leakage that the cap allows and a single step had no use for: --frontier shows what prices of
    a nat (--thrift) make of it.

    A total is also tried in bursts, with pauses in which the best guess leaves: those that lose
    least on the model are sought, and compared on the same streams with an even split and with
    randomised response every N values at equal leakage, guessed or held in between, at its best N.
    With --every N, bursts of that gap are what is compared; for large alphabets and totals over
    more than 100 values, --every auto asks for the search.

    With --robust R, three leakages of each release: under the model, under the worst chain within
    R, and whatever is true; for the model alone, for several distances, and without a model.

    With --batch, values that leave together are compared with values that leave at once, at equal
    budget: what waiting saves, how long a value waits, and how long a batch takes to compute.

    \b
    Examples:
      sfumato plan --model city.model --epsilon 0.5
      sfumato plan --model city.model --epsilon 0.5 --frontier --plot frontier.png
      sfumato plan --model city.model --budget 10 --horizon 50 --loss euclidean --plot loss.png
      sfumato plan --model city.model --epsilon 0.5 --history lastweek.csv --streams 50
      sfumato plan --model city.model --epsilon 0.5 --robust 0.02
      sfumato plan --model city.model --epsilon 0.5 --batch 1,2,3,5,10
    """
    from msgspec import structs

    from sfumato.cli.plan_bursts import is_sought, sought
    from sfumato.plots.figures import frontier_curve, loss_curve
    from sfumato.stream.forecast import curve
    from sfumato.stream.model_loss import unit_of
    from sfumato.stream.release_spec import ReleaseSpec

    check_suffix(given.plot)
    read = options.load_steady_model(
        given.model,
        "`release --seed 1` of a recorded table says what a release loses beside silence",
    )
    typed = ReleaseSpec(**vars(given.allowed), loss=given.loss)
    each = given.length or given.allowed.horizon or _LENGTH
    if given.robust is not None:
        plan_robust(given, typed, read, each)
        return
    searched = is_sought(given, typed, read)
    spec = typed if searched else _chosen(given, typed, read)
    if given.batch is not None:
        compare_widths(spec, read, given, each)
        return
    policy = None if searched else _choice(given, read, spec.method).policy(spec)
    named = None if policy is None else policy.fingerprint
    rule = structs.replace(spec, policy=named).instant(read, policy)
    _check_sight(given, rule)
    found = sought(typed, read, given) if searched else None
    edge = _frontier(rule, given)
    report = _simulated(rule, given, read, each, found)
    points = []
    if (given.plot and not given.frontier) or given.shown.as_json:
        few = min(report.streams, _FEW)
        with progress("drawing the curve", 15 * few * each, given.shown.no_progress) as show:
            points = curve(rule, length=each, seed=given.seed, streams=few, progress=show)
    name = loss_name(spec, read)
    unit = unit_of(spec.loss_for(read), read)
    if given.plot and edge is not None:
        frontier_curve(edge, report, name, given.plot)
    elif given.plot:
        loss_curve(points, name, given.plot)
    if given.shown.as_json:
        document = asdict(report) | {"loss": name, "unit": unit}
        if edge is not None:
            document["frontier"] = [_priced(point) for point in (edge.step_wise, *edge.points)]
        if found is None:
            del document["saved"], document["ways"]
        else:
            document |= {"every": found.every, "first": found.first}
        print_json({**document, "curve": [asdict(p) for p in points]})
        return
    show_tables(report, given, found, name, unit)
    if edge is not None:
        _show_frontier(edge)
    for line in in_words(report, unit, found):
        print_line(line)
    if not given.shown.quiet:
        for remark in report.remarks:
            # What a stream, or one value of it, may leak stands above in the same words.
            if not remark.startswith(("A LARGE TOTAL", "about one value all outputs")):
                say(f"warning: {remark}")
    if given.plot:
        what = "mean charge" if given.frontier else "budget"
        say(f"{given.plot}: loss against {what}")


def _chosen(given: PlanOptions, typed: ReleaseSpec, model: StreamModel) -> ReleaseSpec:
    """The rules with a method: the one that a release would take."""
    from sfumato.solver.design_methods import STEP_WISE_OPTIMUM, Method, method_named
    from sfumato.stream.release_defaults import with_method

    capped = given.allowed.epsilon is not None and given.batch is None
    method = STEP_WISE_OPTIMUM
    if given.way.method is not None:
        method = method_named("--method", given.way.method, (Method.FAR_SIGHTED, Method.OPTIMAL))
    elif capped:
        method = with_method(typed, model, None, None if given.shown.quiet else say).method
    return _choice(given, model, method).completed(typed)


def _choice(given: PlanOptions, model: StreamModel, method: str) -> RuleChoice:
    from sfumato.cli.rule_choice import RuleChoice

    way, spread = options.Way(method=method, thrift=given.way.thrift), given.spread
    if given.batch is not None and spread.every is None:
        spread = options.Spread(every="1", first=spread.first, cap=spread.cap)
    return RuleChoice(given.model, model, way, spread, given.shown)


def _check_sight(given: PlanOptions, rule: Plan) -> None:
    from sfumato.core.errors import InvalidParameter

    for name, value in (("--thrift", given.way.thrift), ("--frontier", given.frontier or None)):
        if value is not None and rule.sight is None:
            rule_ = "come with --epsilon, and a model that allows far sight"
            raise InvalidParameter(name, value, rule_)


def _frontier(rule: Plan, given: PlanOptions) -> Frontier | None:
    """What prices of a nat make of far-sighted streams, in the long run."""
    from sfumato.core.budgets import PerStep
    from sfumato.models.markov import MarkovChain
    from sfumato.stream.price_frontier import frontier

    if not given.frontier:
        return None
    assert isinstance(rule.model, MarkovChain) and isinstance(rule.budget, PerStep)
    with progress("looking ahead at several prices", None, given.shown.no_progress):
        return frontier(rule.model, rule.loss, rule.budget.sip.epsilon)


def _priced(point: FrontierPoint) -> dict[str, float | None]:
    names = ("price", "loss", "loss_error", "charge", "charge_error")
    return {name: getattr(point, name) for name in names}


def _show_frontier(edge: Frontier) -> None:
    table(
        "in the long run, far-sighted at several prices of a nat (--thrift): loss and SIP of a "
        "value, each with twice its standard error",
        ["thrift", "loss", "+-", "SIP", "+- SIP"],
        [
            [
                "step-wise" if point.price is None else f"{point.price:.3g}",
                f"{point.loss:.4g}",
                error(2 * point.loss_error, point.loss),
                f"{point.charge:.4g}",
                error(2 * point.charge_error, point.charge),
            ]
            for point in (edge.step_wise, *edge.points)
        ],
    )


def _simulated(
    rule: Plan, given: PlanOptions, model: StreamModel, each: int, found: SoughtBursts | None
) -> PlanReport:
    from sfumato.stream.forecast import RIVALS, forecast
    from sfumato.stream.history_paths import read_paths
    from sfumato.tables.readers import Table

    many = given.streams or _streams(len(model.alphabet))
    paths = None
    if given.history is not None:
        paths = read_paths(Table.at(given.history), model, streams=many, length=given.length)
    values = each * many if paths is None else sum(map(len, paths))
    ways: tuple[Way, ...] = () if found is None else found.ways
    tried = len(RIVALS) + len(ways) + (rule.sight is not None)
    with progress("simulating", tried * values, given.shown.no_progress) as show:
        return forecast(
            rule,
            length=each,
            streams=many,
            seed=given.seed,
            paths=paths,
            ways=ways,
            progress=show,
        )


def _streams(symbols: int) -> int:
    """Streams to try: a step takes longer on large alphabets."""
    return _STREAMS if symbols <= 64 else _FEW if symbols <= 600 else 2
