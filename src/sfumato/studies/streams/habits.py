"""Do habits help: what models with and without them predict, and lose at the same budget.

A model is added by one line in `MODELS`: a name, and how it is fitted to a set. What it predicts
follows from its beliefs, what it loses from a plan; anything that `Plan` takes will do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TypeAlias

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.belief import Belief, Model
from sfumato.core.budgets import Budget, PerStep
from sfumato.core.bursts import Bursts
from sfumato.core.guarantees import SIP
from sfumato.core.information_leakage import information_leakage
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import seeded
from sfumato.models.cluster_choice import choose_clusters
from sfumato.models.cluster_fitting import fit_clusters
from sfumato.models.clustered_chain import ClusteredChain
from sfumato.models.markov import MarkovChain
from sfumato.models.periodic import PeriodicChain
from sfumato.stream.plan import Plan
from sfumato.studies.data.habit_data import HabitSet, check_ins, power_days, town_days
from sfumato.studies.held_out import held_out
from sfumato.studies.streams.model_points import CAP, BurstTask, Measured, ModelPoint
from sfumato.studies.study import Setting

Fitted: TypeAlias = Model | PeriodicChain
STREAMS, FEW = 200, 12
"""Streams that losses are measured on; in a quick look."""
EXPOSED = 40
"""Streams whose leakage to an adversary with another model is followed step by step."""


@dataclass(frozen=True, slots=True)
class HabitModel:
    """A kind of model, and how it is fitted to the half of a set that is learnt from."""

    name: str
    fit: Callable[[HabitSet], Fitted]


def _chain(order: int) -> Callable[[HabitSet], Fitted]:
    def fit(found: HabitSet) -> Fitted:
        labels = found.alphabet.labels
        paths = [[labels[place] for place in path] for path in found.learnt]
        return MarkovChain.fit(paths, alphabet=found.alphabet, order=order)

    return fit


def _periodic(found: HabitSet) -> PeriodicChain:
    halves = (found.learnt, found.learnt_phases)
    return PeriodicChain.of_places(found.alphabet, found.cycle, *halves)


def _mixture(found: HabitSet) -> Fitted:
    """As many chains as foretell people held out best, each person following one of them."""
    number = choose_clusters(found.alphabet, found.learnt).clusters
    if number == 1:
        return _chain(1)(found)  # people held out speak for one kind of people
    return fit_clusters(found.alphabet, found.learnt, number).chain


MODELS = (
    HabitModel("order 1", _chain(1)),
    HabitModel("order 2", _chain(2)),
    HabitModel("order 1 by the hour", _periodic),
)
"""What is compared; differences are those to the first."""


MIXTURE = HabitModel("clusters", _mixture)


@dataclass(frozen=True, slots=True)
class HabitTask(BurstTask):
    """A set, a total for each of its streams, and what is compared beyond `MODELS`."""

    read: Callable[[Setting, int], HabitSet]
    more: tuple[HabitModel, ...] = ()


TASKS = (HabitTask(10.0, 6, town_days), HabitTask(18.0, 12, power_days))
CHECK_IN_TASKS = (HabitTask(12.0, 2, check_ins, (MIXTURE,)),)


@dataclass(frozen=True, slots=True)
class HabitPoint(ModelPoint):
    """What one model is worth on streams that it was not fitted to, per value.

    Attributes:
        exposed: What whole streams leaked under the total, exactly, to whoever knows the hours, on
            average over some streams; the total is what was stated.
    """

    exposed: float


def habit_points(
    tasks: tuple[HabitTask, ...],
    setting: Setting,
    *,
    progress: Callable[[int], None] | None = None,
) -> list[HabitPoint]:
    """Every set, one point for each model.

    Args:
        tasks: Sets and totals.
        setting: Where the files are; quick: fewer streams.
        progress: Called with the number of points done so far.
    """
    points: list[HabitPoint] = []
    for task in tasks:
        found = task.read(setting, FEW if setting.quick else STREAMS)
        hourly, first = _periodic(found), None
        for model in (*MODELS, *task.more):
            fitted = model.fit(found)
            own = _Measured.of(fitted, hourly, found, task, setting.seed)
            first = first or own
            worth = ModelPoint.beside(first, _named(model, fitted), own, found, task)
            points.append(HabitPoint(**asdict(worth), exposed=own.exposed))
            if progress:
                progress(len(points))
    return points


def _named(model: HabitModel, fitted: Fitted) -> str:
    """The name of a model; of a mixture with the number of its chains."""
    if isinstance(fitted, ClusteredChain):
        return f"{len(fitted.chains)} {model.name}"
    return model.name


@dataclass(frozen=True, slots=True, eq=False)
class _Measured(Measured):
    """The same, and what streams leaked to an adversary who knows the hours."""

    exposed: float

    @classmethod
    def of(
        cls, model: Fitted, hourly: PeriodicChain, found: HabitSet, task: HabitTask, seed: int
    ) -> _Measured:
        """The same streams, and the same coins, for every model."""
        values = found.kept.shape[1]
        total = Bursts(SIP(task.total), values, every=task.every)
        plan = Plan(model, total, found.loss, purpose=Purpose.SIMULATION)
        capped = _lost(model, found, PerStep(SIP(CAP)), seed)
        return cls(
            predicted=scores(model, found) / values,
            loss=_lost(model, found, total, seed)[0],
            capped=capped[0],
            charged=capped[1],
            silent=_lost(model, found, PerStep(SIP(1e-10)), seed)[0],
            exposed=exposed(plan, hourly, found, seed),
        )


def _lost(model: Fitted, found: HabitSet, budget: Budget, seed: int) -> tuple[Floats, Floats]:
    """Loss of the receiver's best guess after each release, and the charge."""
    phases = found.kept_phases if isinstance(model, PeriodicChain) else None
    told = held_out(Plan(model, budget, found.loss), found.kept, seed, phases)
    return told.received, told.charged


def exposed(plan: Plan, hourly: PeriodicChain, found: HabitSet, seed: int) -> float:
    """What streams leaked to an adversary who knows the hours: exactly, summed over the steps."""
    labels, sums = plan.model.alphabet.labels, []
    phased = isinstance(plan.model, PeriodicChain)
    for row, (path, phases) in enumerate(
        zip(found.kept[:EXPOSED], found.kept_phases[:EXPOSED], strict=True)
    ):
        state, coins = plan.begin(f"stream {row}"), seeded(seed)
        belief, leaked = hourly.arrived(None, int(phases[0])), 0.0
        for place, (value, phase) in enumerate(zip(path.tolist(), phases.tolist(), strict=True)):
            belief = belief if place == 0 else hourly.arrived(belief, phase)
            own = phase if phased else None
            design = plan.prepare(state, phase=own)
            (event,), state = plan.step(state, [labels[value]], coins, phase=own)
            if design is not None and not design.design.channel.is_constant:
                channel = design.design.channel
                leaked += information_leakage(channel, belief.marginal).epsilon
                output = design.output(plan.model.alphabet.indices([event.released]))
                assert output is not None  # it has just left
                belief = belief.update(channel.likelihood(output))
        sums.append(leaked)
    return float(np.mean(sums))


def scores(model: Fitted, found: HabitSet) -> Floats:
    """Logarithm of the probability of each stream that was kept, from beliefs alone."""
    sums = np.zeros(len(found.kept))
    sure = np.eye(len(found.alphabet))
    for row, (path, phases) in enumerate(zip(found.kept, found.kept_phases, strict=True)):
        belief: Belief | None = None
        for place, phase in zip(path.tolist(), phases.tolist(), strict=True):
            belief = _due(model, belief, phase)
            sums[row] += np.log(belief.marginal[place])
            belief = belief.update(sure[place])
    return sums


def _due(model: Fitted, before: Belief | None, phase: int) -> Belief:
    """Belief about the next value, given that about the one before it."""
    if isinstance(model, PeriodicChain):
        return model.arrived(before, phase)
    return model.first() if before is None else model.following(before)
