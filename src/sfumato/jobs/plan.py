"""What a release would cost and leak, before anything is released."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sfumato import _checks
from sfumato.accounting.allocation import Budget, Geometric, Horizon, PerStep, Window
from sfumato.design.methods import Method
from sfumato.design.remap import remapped
from sfumato.guarantees import SIP
from sfumato.jobs import Progress
from sfumato.randomness import seeded
from sfumato.streaming.instant import Fallback, InstantPlan, Purpose

RIVALS = (Method.OPTIMAL, Method.CALIBRATED, Method.RANDOMIZED_RESPONSE)
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True, slots=True)
class Forecast:
    """What one method would do, on average over simulated streams.

    Attributes:
        method: Its name.
        loss: Expected loss per value.
        remapped_loss: The same after the receiver's best guess; None where there is no output.
        sip: Leakage per step under the model, mean.
        ldp: Model-free leakage per step, mean.
        constant: Share of steps whose output says nothing.
    """

    method: str
    loss: float
    remapped_loss: float | None
    sip: float
    ldp: float
    constant: float


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Expected loss of each method at one multiple of the budget."""

    factor: float
    epsilon: float
    losses: dict[str, float]


def forecast(
    plan: InstantPlan, *, steps: int, seed: int = 1, progress: Progress | None = None
) -> list[Forecast]:
    """Compare methods on streams drawn from the model itself.

    Args:
        plan: The rule of the release.
        steps: How many steps to simulate for each method.
        seed: Of the simulation.
        progress: Called with the number of steps done so far.
    """
    rows = []
    for done, method in enumerate(RIVALS):
        told = (lambda n, base=done * steps: progress(base + n)) if progress else None
        rows.append(_simulate(plan, method, steps, seed, told))
    return [*rows, _nothing_hidden(), _nothing_told(plan, steps)]


def curve(
    plan: InstantPlan, *, steps: int, seed: int = 1, progress: Progress | None = None
) -> list[CurvePoint]:
    """Expected loss of each method over a range of budgets around the asked one."""
    points = []
    for done, factor in enumerate(FACTORS):
        scaled = replace(plan, budget=_scaled(plan.budget, factor))
        told = (lambda n, base=done * 3 * steps: progress(base + n)) if progress else None
        rows = forecast(scaled, steps=steps, seed=seed, progress=told)
        losses = {row.method: row.loss for row in rows}
        losses |= {
            f"{row.method}, best guess": row.remapped_loss
            for row in rows
            if row.remapped_loss is not None
        }
        first = scaled.budget.allowance(scaled.begin("plan").ledger).sip
        points.append(CurvePoint(factor, first, losses))
    return points


def _simulate(
    plan: InstantPlan, method: Method, steps: int, seed: int, progress: Progress | None
) -> Forecast:
    simulation = replace(
        plan,
        method=method,
        budget=plan.budget if method is Method.OPTIMAL else _uncapped(plan.budget),
        purpose=Purpose.SIMULATION,
        on_exhausted=Fallback.SUPPRESS,
    )
    totals = [0.0] * 5
    count = 0
    for cost, guess, sip, ldp, constant in _walk(simulation, steps, seed):
        count += 1
        values = (cost, guess, sip, ldp, constant)
        totals = [total + value for total, value in zip(totals, values, strict=True)]
        if progress:
            progress(count)
    loss, guessed, sip, ldp, constant = (total / max(count, 1) for total in totals)
    return Forecast(method.value, loss, guessed, sip, ldp, constant)


def _walk(
    plan: InstantPlan, steps: int, seed: int
) -> Iterator[tuple[float, float, float, float, float]]:
    """Simulated steps: cost, cost after the best guess, both leakages, whether constant."""
    coins = seeded(seed)
    path = plan.model.sample(_checks.count("steps", steps), coins)  # type: ignore[attr-defined]
    labels = plan.model.alphabet.labels
    state = plan.begin("plan")
    for place in path:
        prepared = plan.prepare(state)
        if prepared is None:
            return
        belief = state.belief.marginal
        guess = remapped(prepared, belief, plan.loss).cost
        event, state = plan.step(state, labels[place], coins)
        constant = float(prepared.channel.is_constant)
        yield prepared.cost, guess, event.sip.epsilon, event.ldp.epsilon, constant


def _nothing_hidden() -> Forecast:
    return Forecast("no privacy", 0.0, 0.0, float("inf"), float("inf"), 0.0)


def _nothing_told(plan: InstantPlan, steps: int) -> Forecast:
    """The best output of each moment for somebody who is told nothing; it leaks nothing."""
    belief, cost = plan.model.first(), 0.0
    for _ in range(steps):
        cost += float(plan.loss.means(belief.marginal).min())
        belief = plan.model.following(belief)
    return Forecast("say nothing", cost / steps, None, 0.0, 0.0, 1.0)


def _uncapped(budget: Budget) -> Budget:
    return replace(budget, ldp=None)


def _scaled(budget: Budget, factor: float) -> Budget:
    match budget:
        case PerStep() | Horizon() | Window() | Geometric():
            return replace(budget, sip=SIP(budget.sip.epsilon * factor))
