"""What a release would cost and leak, before anything is released."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sfumato.core.budgets import Budget, Geometric, Horizon, PerPeriod, PerStep, Window
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import SIP
from sfumato.core.progress import Progress
from sfumato.models.markov import MarkovChain
from sfumato.models.periodic import PeriodicChain
from sfumato.models.value_chains import ValueChain
from sfumato.solver.design_methods import Method
from sfumato.stream.history_paths import TruePath, draw_paths
from sfumato.stream.lifetime import one_value_bound
from sfumato.stream.loss_floor import has_floor, loss_floor
from sfumato.stream.plan import Plan
from sfumato.stream.release_trials import Difference, Forecast, Trials, Way, differences

RIVALS = (Method.OPTIMAL, Method.CALIBRATED, Method.RANDOMIZED_RESPONSE)
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True, slots=True)
class PlanReport:
    """Ways to release side by side, and what a careful user should know.

    Attributes:
        methods: What each would do; the last says nothing.
        streams: How many streams each was tried on.
        length: Values of a stream, on average.
        held_out: Whether they came from a table, not from the model.
        total: What a stream of this length may leak in all, under the model.
        one_value: What it may tell about one of its values in all: a proven bound.
        one_value_rule: What that bound rests on.
        remarks: Words of warning.
        ways: What other ways would do, where some were asked for.
        saved: How much less the first of them loses than the first method, or more.
        floor: What no release of single values within the budget can lose less than, on streams
            that move as the model says; None where no such bound is known.
    """

    methods: tuple[Forecast, ...]
    streams: int
    length: float
    held_out: bool
    total: float
    one_value: float
    one_value_rule: str
    remarks: tuple[str, ...]
    ways: tuple[Forecast, ...] = ()
    saved: Difference | None = None
    floor: float | None = None


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Expected loss of each method at one multiple of the budget."""

    factor: float
    epsilon: float
    losses: dict[str, float]


def forecast(
    plan: Plan,
    *,
    length: int,
    streams: int = 20,
    seed: int = 1,
    paths: Sequence[TruePath] | None = None,
    ways: Sequence[Way] = (),
    rivals: Sequence[Method] = RIVALS,
    progress: Progress | None = None,
) -> PlanReport:
    """Compare methods on the same streams: drawn from the model itself, or given.

    Args:
        plan: The rule of the release.
        length: Values of each stream that is drawn.
        streams: How many are drawn.
        seed: Of the simulation.
        paths: True streams that the model was not fitted to, instead.
        ways: Other ways to release that are tried on the same streams.
        rivals: Methods that are compared under the plan's own budget; a far-sighted plan comes
            before them.
        progress: Called with the number of steps done so far, over all methods.
    """
    from sfumato.stream.remarks import remarks

    if isinstance(plan.model, PeriodicChain):
        rule = "be one under a chain that does not change with time, to be forecast"
        raise InvalidParameter("plan", "one with phases", rule)
    if plan.period is not None:
        rule = "be one whose budget counts values, to be forecast: nobody knows when values come"
        raise InvalidParameter("plan", f"one for each {plan.period}", rule)
    if paths is None:
        assert isinstance(plan.model, ValueChain)
        walks = draw_paths(plan.model, length, streams, seed)
    else:
        walks = list(paths)
    trials = Trials(plan, walks, paths is not None)
    own = trials.own_ways(rivals)
    tried = [trials.of(way, seed, progress, done) for done, way in enumerate([*own, *ways])]
    tried, others = tried[: len(own)], tried[len(own) :]
    silence = trials.silence()
    rows = [*(one.forecast(silence) for one in tried), _nothing_hidden(), silence.forecast(silence)]
    values = sum(map(len, walks))
    longest = max(map(len, walks))
    chain = plan.model if isinstance(plan.model, MarkovChain) else None
    bound = one_value_bound(chain, plan.budget, longest)
    report = PlanReport(
        methods=tuple(rows),
        streams=len(walks),
        length=values / len(walks),
        held_out=paths is not None,
        total=one_value_bound(None, plan.budget, longest).sip.epsilon,
        one_value=bound.sip.epsilon,
        one_value_rule=bound.rule,
        remarks=(),
        ways=tuple(one.forecast(silence) for one in others),
        saved=differences([tried[0], others[0]])[0] if others else None,
        floor=_floor(plan, length) if paths is None else None,
    )
    return replace(report, remarks=remarks(report, differences([*tried, silence])))


def _floor(plan: Plan, length: int) -> float | None:
    chain, loss = plan.model, plan.value_loss
    if loss is None or not isinstance(chain, MarkovChain) or not has_floor(chain):
        return None
    # A total that is not spent yet could be: it is for all the steps it was granted for.
    steps = plan.budget.steps if isinstance(plan.budget, Horizon) else length
    return loss_floor(chain, loss, plan.budget, steps)


def curve(
    plan: Plan,
    *,
    length: int,
    streams: int = 4,
    seed: int = 1,
    progress: Progress | None = None,
) -> list[CurvePoint]:
    """Expected loss of each method over a range of budgets around the asked one.

    Value functions of other budgets take their time: methods that look at one step are compared.
    """
    points, plan = [], _step_wise(plan)
    each = len(RIVALS) * length * streams
    for done, factor in enumerate(FACTORS):
        scaled = replace(plan, budget=_scaled(plan.budget, factor))
        show = (lambda n, base=done * each: progress(base + n)) if progress else None
        rows = forecast(scaled, length=length, streams=streams, seed=seed, progress=show).methods
        losses = {row.method: row.loss for row in rows}
        losses |= {
            f"{row.method}, best guess": row.remapped_loss
            for row in rows
            if row.remapped_loss is not None
        }
        first = scaled.budget.allowance(scaled.begin("plan").ledger).sip
        points.append(CurvePoint(factor, first, losses))
    return points


def _nothing_hidden() -> Forecast:
    return Forecast("no privacy", 0.0, 0.0, math.inf, math.inf, 0.0, better=1.0, total=math.inf)


def _step_wise(plan: Plan) -> Plan:
    if plan.sight is None:
        return plan
    return replace(plan, method=Method.OPTIMAL, sight=None, policy=None)


def _scaled(budget: Budget, factor: float) -> Budget:
    match budget:
        case PerStep() | Horizon() | Window() | Geometric() | PerPeriod():
            return replace(budget, sip=SIP(budget.sip.epsilon * factor))
