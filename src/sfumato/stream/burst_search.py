r"""How a total is best spent: every how many values a burst, and how large the first one.

The search tries rules on the model itself, by the histories of what they can release
(`output_tree`). No true value is looked at, and the coins are seeded and public: the same model,
budget and loss give the same rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sfumato.core import checks
from sfumato.core.budgets import Budget, Horizon, Window
from sfumato.core.bursts import spread_out, total_of
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import SIP
from sfumato.core.loss import Loss
from sfumato.models.library import PatternLibrary
from sfumato.models.periodic import PeriodicChain
from sfumato.solver.design_methods import Method
from sfumato.stream.output_tree import OutputTree
from sfumato.stream.plan import Plan
from sfumato.stream.simulated_stream import as_simulation

Told = Callable[[str], None]
"""Told what is tried now."""
Rivals = tuple["BurstTrial", "BurstTrial"]

# Multiples of what the others get that the first burst may get: on sticky bits the best one is
# between 1.1 and 1.5, and saves up to 4 % of the loss.
_FIRSTS = (1.25, 1.5)
# The loss falls and rises with the gap, but for small waves: the number of bursts is doubled until
# it loses a twentieth more than the best twice in a row, then gaps around the best are tried.
_PATIENCE, _WORSE, _REFINED = 2, 1.05, 5
# The best gaps of the rough trials are tried once more, on more histories.
_FINALISTS, _MORE = 2, 4
# A window goes on for ever: so many of them are tried, since the first begins without charges.
_WINDOWS = 3
# Channels that a rough trial finds, so that bursts of any number take the same time; histories.
_CHANNELS, _FEWEST, _MOST = 300, 4, 32
_SMALL, _MEDIUM = 32, 128
"""Symbols up to which channels are found in a tenth of a millisecond, and in some."""


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
    _check_steady(plan)
    tree = OutputTree(as_simulation(plan), plan.loss, checks.count("paths", paths), seed)
    return tree.mean_loss(checks.count("length", length))


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
    _check_steady(plan)
    tries = _Tries(plan, length, cap, (paths, seed), told)
    even, rough = tries.of(1, 1.0), tries.gaps()
    ranked = sorted(rough, key=lambda one: (one.loss, -one.every))[:_FINALISTS]
    finals = [tries.of(one.every, 1.0, _MORE) for one in ranked]
    best = min(finals, key=lambda one: one.loss)
    if isinstance(plan.budget, Horizon) and best.every < tries.steps:
        for first in _FIRSTS:
            finals.append(tries.of(best.every, first, _MORE))
            if finals[-1].loss > best.loss:
                break
            best = finals[-1]
    return BurstSearch(even, min([best, even], key=lambda one: one.loss), (*rough, *finals))


def rival_bursts(
    plan: Plan,
    *,
    length: int | None = None,
    paths: int | None = None,
    seed: int = 1,
    told: Told | None = None,
) -> Rivals:
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
    tried = _Tries(rival, length, None, (paths, seed), told).gaps()
    return min(tried, key=lambda one: one.loss), min(tried, key=lambda one: one.held)


class _Tries:
    """Trials of one plan with its total spread in several ways."""

    def __init__(
        self,
        plan: Plan,
        length: int | None,
        cap: SIP | None,
        histories: tuple[int | None, int],
        told: Told | None,
    ) -> None:
        if not isinstance(plan.budget, Horizon | Window) or plan.width > 1:
            rule = "be for a horizon or a window, value by value: else there is nothing to spread"
            raise InvalidParameter("budget", plan.budget, rule)
        self._budget = total_of(plan.budget)
        horizon = isinstance(self._budget, Horizon)
        self.steps = self._budget.steps if isinstance(self._budget, Horizon) else self._budget.width
        self._length = length or (self.steps if horizon else _WINDOWS * self.steps)
        self._plan, self._cap, self._told = plan, cap, told
        self._paths, self._seed = histories
        self._tried: dict[int, BurstTrial] = {}

    def gaps(self) -> list[BurstTrial]:
        """Bursts of one size, the widest gap first: twice as many each time, then near the best."""
        bursts = 1
        while bursts < self.steps or not self._tried:
            self._rough(-(-self.steps // bursts))
            bursts *= 2
            least, last = self._least().loss, list(self._tried.values())[-_PATIENCE:]
            if len(last) == _PATIENCE and all(one.loss > _WORSE * least for one in last):
                break
        gaps = sorted({-(-self.steps // n) for n in range(1, self.steps)}, reverse=True)
        for _ in range(_REFINED):
            untried = self._around(gaps)
            if untried is None:
                break
            self._rough(untried)
        return sorted(self._tried.values(), key=lambda one: -one.every)

    def _least(self) -> BurstTrial:
        return min(self._tried.values(), key=lambda one: one.loss)

    def _around(self, gaps: list[int]) -> int | None:
        """A gap in the middle of the wider side of the best one; None if both were tried."""
        best, tried = gaps.index(self._least().every) if gaps else 0, set(self._tried)
        sides = []
        for step in (-1, 1):
            place, free = best + step, []
            while 0 <= place < len(gaps) and gaps[place] not in tried:
                free.append(gaps[place])
                place += step
            sides.append(free)
        wider = max(sides, key=len)
        return wider[len(wider) // 2] if wider else None

    def _rough(self, every: int) -> None:
        if every not in self._tried:
            self._tried[every] = self.of(every, 1.0)

    def of(self, every: int, first: float, times: int = 1) -> BurstTrial:
        """The expected loss of one rule, on so many times the histories of a rough trial."""
        if self._told:
            self._told("evenly" if every == 1 else f"every {every} values")
        budget = spread_out(self._budget, every, first, self._cap)
        plan = replace(self._plan, budget=budget, policy=None)
        paths = times * (self._paths or self._histories(-(-self._length // every)))
        loss, held = expected_loss(plan, self._length, paths, self._seed)
        return BurstTrial(every, first, loss, held, budget)

    def _histories(self, bursts: int) -> int:
        """How many to follow: a channel takes longer on large alphabets."""
        symbols = len(self._plan.model.alphabet)
        share = 1 if symbols <= _SMALL else 2 if symbols <= _MEDIUM else 6
        return max(_FEWEST, min(_MOST, _CHANNELS // bursts) // share)


def _check_steady(plan: Plan) -> None:
    """Refuse a model of which streams cannot be predicted without their times."""
    if isinstance(plan.model, PeriodicChain):
        rule = "be one under a chain that does not change with time, to seek bursts for"
        raise InvalidParameter("plan", "one with phases", rule)
