"""What it costs to keep a budget for every chain near the model, before anything is released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.core.errors import InvalidParameter
from sfumato.core.events import Event
from sfumato.core.loss import Loss
from sfumato.core.progress import Progress
from sfumato.core.randomness import seeded
from sfumato.models.markov import MarkovChain
from sfumato.models.plausible import PlausibleChains
from sfumato.solver.design_methods import STEP_WISE_OPTIMUM, Method
from sfumato.stream.history_paths import TruePath, draw_paths, mean_and_error
from sfumato.stream.other_truth import leakage_under
from sfumato.stream.plan import Plan
from sfumato.stream.silence import Silence
from sfumato.stream.simulated_stream import as_simulation, simulated

_NAMES = {Method.FAR_SIGHTED: Method.FAR_SIGHTED.value}
_AROUND = (0.25, 0.5, 1.0, 2.0)
"""Multiples of the radius that are tried beside the model alone."""


@dataclass(frozen=True, slots=True)
class RobustForecast:
    """What a release would lose and leak per value: three leakages, always.

    Attributes:
        name: Which release.
        radius: How far each probability may be off in the set that `over_set` is about.
        promised: Whether the budget is kept for every chain of that set.
        loss: Expected loss under the model.
        loss_error: Its standard error.
        sip: Leakage under the model, mean.
        over_set: Leakage under the worst chain of the set, mean.
        worst_step: The most that one step leaked under the worst chain of the set.
        ldp: Leakage whatever the model, mean.
        better: Part of a constant's loss that is saved.
    """

    name: str
    radius: float
    promised: bool
    loss: float
    loss_error: float
    sip: float
    over_set: float
    worst_step: float
    ldp: float
    better: float


def forecast_robust(
    plan: Plan,
    radius: float,
    *,
    length: int,
    streams: int = 12,
    seed: int = 1,
    progress: Progress | None = None,
) -> tuple[RobustForecast, ...]:
    """Compare releases for the model alone, for chains near it, and for whatever is true.

    Args:
        plan: The rule of the release, value by value under a chain of order 1; of a far-sighted
            one it is also said what a step-wise one for the same chains would lose.
        radius: How far each probability may be off; some multiples of it are tried too.
        length: Values of each stream that is drawn from the model.
        streams: How many are drawn.
        seed: Of the simulation.
        progress: Called with the number of values done so far.

    Returns:
        The release for the model alone, one for each radius, and one that needs no model.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.5)), sf.loss.hamming(chain.alphabet))
        >>> alone, *near, free = forecast_robust(plan, 0.02, length=20, streams=2)
        >>> alone.worst_step > 0.5, all(one.worst_step <= 0.5 for one in near)
        (True, True)
    """
    chain = plan.model
    if not isinstance(chain, MarkovChain) or not isinstance(plan.loss, Loss):
        raise InvalidParameter("plan", "another", "release value by value under a chain")
    walks = draw_paths(chain, length, streams, seed)
    alone = replace(plan, policy=None, robust=None)
    step_wise = replace(alone, method=_one_step(plan.method), sight=None)
    tried = [(_NAMES.get(alone.method, STEP_WISE_OPTIMUM), radius, alone)]
    for part in _AROUND:
        near = PlausibleChains.from_radius(chain, part * radius)
        tried.append((f"within {part * radius:g}", part * radius, replace(alone, robust=near)))
        if alone.sight is not None and part == 1:
            blind = replace(step_wise, robust=near)
            tried.append((f"within {radius:g}, {STEP_WISE_OPTIMUM}", radius, blind))
    free = replace(step_wise, method=Method.CONTEXT_FREE)
    tried.append((Method.CONTEXT_FREE.value, radius, free))
    silence, found = _silence(chain, plan.loss, walks), []
    for done, (name, off, rule) in enumerate(tried):
        one = _Trial.of(rule, walks, PlausibleChains.from_radius(chain, off), seed)
        found.append(one.forecast(name, off, silence))
        if progress:
            progress((done + 1) * length * streams)
    return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """What a release did on some streams: sums over the values of each."""

    plan: Plan
    counts: np.ndarray
    losses: np.ndarray
    sip: float
    over_set: float
    worst: float
    ldp: float

    @classmethod
    def of(
        cls, plan: Plan, walks: Sequence[TruePath], chains: PlausibleChains, seed: int
    ) -> _Trial:
        """Release every stream in a simulation, and hold it against the set."""
        rule, coins = as_simulation(plan), seeded(seed)
        losses, left, worst = np.zeros(len(walks)), {}, 0.0
        for place, walk in enumerate(walks):
            events: list[Event] = []
            for step in simulated(rule, f"stream {place}", walk, coins):
                if step.found is not None:
                    losses[place] += step.found.design.cost
                events += step.events
            left[f"stream {place}"] = events
        told = leakage_under(left, rule, chains.estimate, chains).streams.values()
        worst = max(entry.worst_over_set for entry in told)
        counts = np.array([float(len(walk)) for walk in walks])
        over = sum(entry.over_set or 0.0 for entry in told)
        under, free = sum(entry.truth for entry in told), sum(entry.ldp for entry in told)
        return cls(plan, counts, losses, under, over, worst, free)

    def forecast(self, name: str, radius: float, silence: float) -> RobustForecast:
        """The same per value."""
        loss, error = mean_and_error(self.losses, self.counts)
        values = float(self.counts.sum())
        return RobustForecast(
            name=name,
            radius=radius,
            promised=self.plan.robust is not None or self.plan.method is Method.CONTEXT_FREE,
            loss=loss,
            loss_error=error,
            sip=self.sip / values,
            over_set=self.over_set / values,
            worst_step=self.worst,
            ldp=self.ldp / values,
            better=1 - loss / silence if silence else 0.0,
        )


def _one_step(method: Method) -> Method:
    """A method of single steps: the same, if it is one."""
    return Method.OPTIMAL if method is Method.FAR_SIGHTED else method


def _silence(chain: MarkovChain, loss: Loss, walks: Sequence[TruePath]) -> float:
    """What the best constant of each moment loses per value."""
    constants, longest = Silence(chain, loss), max(map(len, walks))
    costs = np.array([constants.at(moment)[1] for moment in range(longest)])
    total = sum(float(costs[: len(walk)].sum()) for walk in walks)
    return total / sum(map(len, walks))
