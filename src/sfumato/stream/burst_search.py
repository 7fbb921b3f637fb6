r"""How a total is best spent: every how many values a burst, and how large the first one.

The search tries rules on the model itself. A rule's expected loss is a sum over everything that it
can release, weighted by how likely that is under the belief; where there is more than can be
followed, some of it stands for all, chosen evenly (systematic resampling). No true value is looked
at, and the coins are seeded and public: the same model, budget and loss give the same rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.budgets import Budget, Horizon, Window
from sfumato.core.bursts import spread_out, total_of
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import SIP
from sfumato.core.loss import Loss
from sfumato.core.state import StreamState
from sfumato.models.library import PatternLibrary
from sfumato.solver.design_methods import Method
from sfumato.stream.plan import Plan
from sfumato.stream.simulated_stream import as_simulation

Told = Callable[[str], None]
"""Told what is tried now."""
Ways = list[tuple[float, int | None]]
"""How likely each output is, and its place; None where a step tells nothing."""

# Multiples of what the others get that the first burst may get: on sticky bits the best one is
# between 1.1 and 1.5, and saves up to 4 % of the loss.
_FIRSTS = (1.0, 1.25, 1.5)
# The loss falls and rises with the gap, but for small waves: after three gaps in a row that are
# worse than the best by a twentieth, narrower ones are given up.
_PATIENCE, _WORSE = 3, 1.05
# The best gaps of the rough trials are tried once more, on more histories.
_FINALISTS, _MORE = 2, 4
# A window goes on for ever: so many of them are tried, since the first begins without charges.
_WINDOWS = 3


@dataclass(frozen=True, slots=True)
class BurstTrial:
    """What one way to spend a total would cost on average.

    Attributes:
        every: Values from one burst to the next; 1: evenly.
        first: How many times what the others get is for the first burst.
        loss: Expected loss per value; in pauses the best guess under the belief leaves.
        held: The same if in pauses the last release is repeated.
        budget: The rule itself.
    """

    every: int
    first: float
    loss: float
    held: float
    budget: Budget


@dataclass(frozen=True, slots=True)
class BurstSearch:
    """What was tried, and what is best.

    Attributes:
        even: The same share for every value.
        best: The least expected loss; the even split itself where no bursts are better.
        tried: All trials, the widest gap first.
    """

    even: BurstTrial
    best: BurstTrial
    tried: tuple[BurstTrial, ...]


def expected_loss(plan: Plan, length: int, paths: int = 64, seed: int = 1) -> tuple[float, float]:
    """Mean loss per value of a plan under its own model, with best guesses and with repetitions.

    Args:
        plan: The rule of a release value by value.
        length: Values of a stream.
        paths: How many histories of outputs are followed at once; exact if there are fewer.
        seed: Of the choice among more.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.95, 0.05], [0.05, 0.95]])
        >>> budget = sf.stream.Bursts(sf.SIP(3.0), 12, every=6, first=1.2)
        >>> plan = sf.Plan(chain, budget, sf.loss.hamming(chain.alphabet))
        >>> round(expected_loss(plan, 12)[0], 4)
        0.1883
    """
    if not isinstance(plan.loss, Loss) or isinstance(plan.model, PatternLibrary):
        raise InvalidParameter("plan", "one in batches", "release value by value")
    paths = checks.count("paths", paths)
    rule, draw = as_simulation(plan), np.random.default_rng(seed)
    tracks, sums = [(1.0, rule.begin("plan"))], np.zeros(2)
    for _ in range(checks.count("length", length)):
        branches: list[tuple[float, StreamState, int | None]] = []
        for weight, state in tracks:
            costs, outputs = _ways(rule, plan.loss, state)
            sums += weight * costs
            branches += [(weight * share, state, output) for share, output in outputs]
        tracks = [
            (weight, _after(rule, state, output))
            for weight, state, output in _thinned(branches, paths, draw)
        ]
    best, held = (sums / length).tolist()
    return best, held


def _ways(plan: Plan, loss: Loss, state: StreamState) -> tuple[Floats, Ways]:
    """What a step costs on average, and what it may release; None where it tells nothing."""
    belief = state.belief.marginal
    found = None if plan.allowance(state.ledger, 1).pause else plan.prepare(state)
    if found is None:
        means = loss.means(belief) / belief.sum()
        last = means.min() if state.last is None else means[state.last]
        return np.array([means.min(), last]), [(1.0, None)]
    channel, cost = found.design.channel, found.design.cost
    shares = channel.marginal(belief / belief.sum())
    ways: Ways = list(zip(shares.tolist(), channel.outputs.tolist(), strict=True))
    return np.array([cost, cost]), ways


def _after(plan: Plan, state: StreamState, output: int | None) -> StreamState:
    if output is None:
        return plan.skip(state)[1]
    return plan.observe(state, [plan.model.alphabet.labels[output]])[1]


def _thinned(
    branches: list[tuple[float, StreamState, int | None]], most: int, draw: np.random.Generator
) -> list[tuple[float, StreamState, int | None]]:
    """At most so many branches, each as likely as its weight; all of them if they are few."""
    if len(branches) <= most:
        return branches
    reached = np.cumsum([weight for weight, _, _ in branches])
    points = (np.arange(most) + draw.random()) / most * reached[-1]
    places, times = np.unique(np.searchsorted(reached, points), return_counts=True)
    each = float(reached[-1]) / most
    return [
        (count * each, *branches[place][1:])
        for place, count in zip(places.tolist(), times.tolist(), strict=True)
    ]


def best_bursts(
    plan: Plan,
    *,
    length: int | None = None,
    cap: SIP | None = None,
    paths: int | None = None,
    seed: int = 1,
    told: Told | None = None,
) -> BurstSearch:
    """Search the bursts of least expected loss under the plan's model, loss and total.

    Args:
        plan: A release value by value under a `Horizon` or a `Window`; its total is kept.
        length: Values of a stream; those of the horizon, or three windows.
        cap: The most that a single value may leak.
        paths: Histories of outputs that a trial follows; fewer for large alphabets if not given.
        seed: Of the choice among histories.
        told: Called with words before every trial.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.95, 0.05], [0.05, 0.95]])
        >>> plan = sf.Plan(chain, sf.Horizon(sf.SIP(3.0), 12), sf.loss.hamming(chain.alphabet))
        >>> found = best_bursts(plan)
        >>> found.best.every, round(found.even.loss, 2), round(found.best.loss, 2)
        (6, 0.33, 0.19)
    """
    tries = _Tries(plan, length, cap, seed, told)
    many = paths or _paths(len(plan.model.alphabet))
    even, rough = tries.of(1, 1.0, many), tries.gaps(many)
    firsts = _FIRSTS if isinstance(plan.budget, Horizon) else _FIRSTS[:1]
    finals = [
        tries.of(one.every, first, _MORE * many)
        for one in sorted(rough, key=lambda one: one.loss)[:_FINALISTS]
        for first in firsts
        if first == 1.0 or one.every < tries.steps
    ]
    return BurstSearch(even, min([*finals, even], key=lambda one: one.loss), (*rough, *finals))


def rival_bursts(
    plan: Plan,
    *,
    length: int | None = None,
    paths: int | None = None,
    seed: int = 1,
    told: Told | None = None,
) -> tuple[BurstTrial, BurstTrial]:
    """Randomised response that leaks as much at its best: with best guesses, and held in pauses.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.95, 0.05], [0.05, 0.95]])
        >>> plan = sf.Plan(chain, sf.Horizon(sf.SIP(3.0), 12), sf.loss.hamming(chain.alphabet))
        >>> guessed, held = rival_bursts(plan)
        >>> guessed.every, round(guessed.loss, 2), round(held.held, 2)
        (6, 0.21, 0.21)
    """
    budget = plan.budget if plan.budget.ldp is None else replace(plan.budget, ldp=None)
    rival = replace(plan, method=Method.CALIBRATED, budget=budget, policy=None)
    tries = _Tries(rival, length, None, seed, told)
    tried = tries.gaps(paths or _paths(len(plan.model.alphabet)) // 2)
    return min(tried, key=lambda one: one.loss), min(tried, key=lambda one: one.held)


class _Tries:
    """Trials of one plan with its total spread in several ways."""

    def __init__(
        self, plan: Plan, length: int | None, cap: SIP | None, seed: int, told: Told | None
    ) -> None:
        if not isinstance(plan.budget, Horizon | Window) or plan.width > 1:
            rule = "be for a horizon or a window, value by value: else there is nothing to spread"
            raise InvalidParameter("budget", plan.budget, rule)
        self._budget = total_of(plan.budget)
        horizon = isinstance(self._budget, Horizon)
        self.steps = self._budget.steps if isinstance(self._budget, Horizon) else self._budget.width
        self._length = length or (self.steps if horizon else _WINDOWS * self.steps)
        self._plan, self._cap, self._seed, self._told = plan, cap, seed, told

    def gaps(self, paths: int) -> list[BurstTrial]:
        """Bursts of one size, the widest gap first, as long as narrower ones may be better."""
        tried: list[BurstTrial] = []
        for every in sorted({-(-self.steps // n) for n in range(1, self.steps)}, reverse=True):
            tried.append(self.of(every, 1.0, paths))
            least = min(one.loss for one in tried)
            if all(one.loss > _WORSE * least for one in tried[-_PATIENCE:]):
                break
        return tried or [self.of(1, 1.0, paths)]

    def of(self, every: int, first: float, paths: int) -> BurstTrial:
        """The expected loss of one rule."""
        if self._told:
            self._told("evenly" if every == 1 else f"every {every} values")
        budget = spread_out(self._budget, every, first, self._cap)
        plan = replace(self._plan, budget=budget, policy=None)
        loss, held = expected_loss(plan, self._length, paths, self._seed)
        return BurstTrial(every, first, loss, held, budget)


def _paths(symbols: int) -> int:
    """Histories to follow: a step takes longer on large alphabets."""
    return 32 if symbols <= 32 else 16 if symbols <= 128 else 6
