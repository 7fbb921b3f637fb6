"""How well a total is spent on real sequences: bursts beside an even split and simple rivals.

The model is fitted to one half of the people, and losses are those of the other half. Our own gap N
is sought on the model alone; that of every rival is chosen in hindsight, on the very streams that
it is judged by, which favours the rival. All ways have the same certified total.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sfumato.core.arrays import Ints
from sfumato.core.budgets import Horizon
from sfumato.core.bursts import spread_out
from sfumato.core.guarantees import SIP
from sfumato.solver.design_methods import Method
from sfumato.stream.burst_search import best_bursts
from sfumato.stream.loss_floor import has_floor, loss_floor
from sfumato.stream.plan import Plan
from sfumato.stream.silence import Silence
from sfumato.studies.data import sequence_data as data
from sfumato.studies.held_out import HeldOut, held_out
from sfumato.studies.study import Setting

STREAMS, FEW = 300, 40
"""Streams that losses are measured on; with `--quick`."""
_BURSTS = 12
"""Most bursts that are tried in hindsight: more of them lost more on every set."""


@dataclass(frozen=True, slots=True)
class Task:
    """A total over so many values of one set."""

    source: data.Source
    total: float
    values: int


TASKS = (
    Task(data.ACTIVITIES, 3.0, 12),
    Task(data.ACTIVITIES, 10.0, 50),
    Task(data.TOWN, 3.0, 12),
    Task(data.TOWN, 10.0, 48),
    Task(data.VISITS, 10.0, 12),
    Task(data.CLICKS, 10.0, 12),
    Task(data.GAZE, 3.0, 12),
    Task(data.GAZE, 10.0, 50),
    Task(data.BIKES, 3.0, 4),
    Task(data.BIKES, 10.0, 4),
)


@dataclass(frozen=True, slots=True)
class TotalPoint:
    """What one total is worth, per value, on streams that the model was not fitted to.

    Attributes:
        data: Name of the set.
        total: Nats of a whole stream.
        values: Values of a stream.
        unit: What losses are in.
        stand_in: Whether the data were made up for want of real ones.
        streams: On which they were measured.
        silence: The best constant of each moment.
        evenly: The same share for every value.
        bursts: Bursts with N sought on the model.
        every: That N.
        first: How many times the others the first burst gets.
        error: Standard error of the loss of the bursts.
        hindsight: Bursts with the best N of all.
        hindsight_every: That N.
        own_held: Our channel every N values and held, best N of all.
        own_held_every: That N.
        response_held: Randomised response that leaks as much, every N values and held.
        response_held_every: That N.
        response_guessed: The same with the best guess in between.
        response_guessed_every: That N.
        modelled: Expected loss of the bursts on streams that move as the model says.
        bound: What nothing within the total loses less than on such streams; None if unknown.
    """

    data: str
    total: float
    values: int
    unit: str
    stand_in: bool
    streams: int
    silence: float
    evenly: float
    bursts: float
    every: int
    first: float
    error: float
    hindsight: float
    hindsight_every: int
    own_held: float
    own_held_every: int
    response_held: float
    response_held_every: int
    response_guessed: float
    response_guessed_every: int
    modelled: float
    bound: float | None

    @property
    def rival(self) -> float:
        """The least that "every N and hold" loses, whichever channel, N chosen in hindsight."""
        return min(self.own_held, self.response_held, self.response_guessed)

    @property
    def behind(self) -> float:
        """How far the bursts are behind it; below 0: ahead."""
        return self.bursts / self.rival - 1


def total_points(
    setting: Setting, *, progress: Callable[[int], None] | None = None
) -> list[TotalPoint]:
    """Every set, one point for each total.

    Args:
        setting: Where the files are; quick: fewer streams.
        progress: Called with the number of tasks done so far.
    """
    points = []
    for done, task in enumerate(TASKS, start=1):
        most = FEW if setting.quick else STREAMS
        found = data.halves(task.source, setting, task.values, most)
        points.append(_point(task, found, setting))
        if progress:
            progress(done)
    return points


def _point(task: Task, found: data.SequenceSet, setting: Setting) -> TotalPoint:
    chain, loss, streams = found.model, found.loss, len(found.kept)
    # Few streams are released several times, so that coins do not decide.
    kept = np.tile(found.kept, (1 if setting.quick else -(-STREAMS // streams), 1))
    even = Plan(chain, Horizon(SIP(task.total), task.values), loss)
    sought = best_bursts(even).best
    told = held_out(replace(even, budget=sought.budget), kept, setting.seed)
    own = _hindsight(even, kept, setting.seed)
    rival = _hindsight(replace(even, method=Method.CALIBRATED), kept, setting.seed)
    guesses = [Silence(chain, loss).at(moment)[0] for moment in range(task.values)]
    wrong = [loss.rows(kept[:, moment].tolist())[:, guess] for moment, guess in enumerate(guesses)]
    best, held = _best(own, "guessed"), _best(own, "held")
    response_held, response_guessed = _best(rival, "held"), _best(rival, "guessed")
    known = has_floor(chain)
    return TotalPoint(
        data=found.name,
        total=task.total,
        values=task.values,
        unit=found.unit,
        stand_in=found.stand_in,
        streams=streams,
        silence=float(sum(losses.mean() for losses in wrong)) / task.values,
        evenly=float(held_out(even, kept, setting.seed).guessed.mean()),
        bursts=float(told.guessed.mean()),
        every=sought.every,
        first=sought.first,
        error=float(told.guessed.reshape(-1, streams).mean(axis=0).std()) / streams**0.5,
        hindsight=best[0],
        hindsight_every=best[1],
        own_held=held[0],
        own_held_every=held[1],
        response_held=response_held[0],
        response_held_every=response_held[1],
        response_guessed=response_guessed[0],
        response_guessed_every=response_guessed[1],
        modelled=sought.loss,
        bound=loss_floor(chain, loss, even.budget, task.values) if known else None,
    )


def _hindsight(even: Plan, kept: Ints, seed: int) -> dict[int, HeldOut]:
    """Bursts of every number, on the same streams."""
    assert isinstance(even.budget, Horizon)
    steps = even.budget.steps
    gaps = sorted({-(-steps // bursts) for bursts in range(1, min(steps, _BURSTS + 1))})
    plans = {gap: replace(even, budget=spread_out(even.budget, gap)) for gap in gaps}
    return {gap: held_out(plan, kept, seed) for gap, plan in plans.items()}


def _best(tried: dict[int, HeldOut], way: str) -> tuple[float, int]:
    return min((float(getattr(found, way).mean()), gap) for gap, found in tried.items())
