r"""Why a greedy release wastes its budget: one sticky bit, worked out.

A bit stays with probability .98, and fifty values may leak ten nats. Under a belief that the rarer
bit has probability $b$, an output of leakage $\epsilon$ can raise it to $e^\epsilon b$ at most. As
long as $e^\epsilon b \le 1/2$, no output changes the best guess, so none lowers the loss of its own
moment: the best channel of the step is a constant. The greedy release stays silent there, and
every later step inherits a belief that has learnt nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from sfumato.core.budgets import Horizon, PerStep
from sfumato.core.guarantees import SIP
from sfumato.core.loss import hamming
from sfumato.models.markov import MarkovChain
from sfumato.solver.design_methods import Method
from sfumato.stream.burst_search import best_bursts
from sfumato.stream.look_ahead import look_ahead
from sfumato.stream.loss_floor import loss_floor
from sfumato.stream.output_tree import OutputTree
from sfumato.stream.plan import Plan
from sfumato.stream.simulated_stream import as_simulation

STAY, TOTAL, VALUES = 0.98, 10.0, 50
_PATHS = 400


@dataclass(frozen=True, slots=True)
class GreedyWay:
    """One way to spend the same total.

    Attributes:
        name: What the picture calls it.
        losses: Chance that the released bit is wrong, moment by moment.
        charges: Mean charge of each moment.
    """

    name: str
    losses: tuple[float, ...]
    charges: tuple[float, ...]

    @property
    def loss(self) -> float:
        """Share of wrong bits."""
        return math.fsum(self.losses) / len(self.losses)

    @property
    def spent(self) -> float:
        """Nats of a whole stream, on average."""
        return math.fsum(self.charges)


@dataclass(frozen=True, slots=True)
class GreedyStory:
    """All of them, and what nothing can be better than.

    Attributes:
        total: Nats that a stream may leak.
        silent_below: Belief in the rarer bit up to which the greedy step is a constant.
        ways: Greedy and far-sighted steps of one size, and bursts.
        every: Values from burst to burst.
        bound: A proven lower bound on the share of wrong bits of any release within the total.
    """

    total: float
    silent_below: float
    ways: tuple[GreedyWay, ...]
    every: int
    bound: float


def greedy_story(seed: int = 1) -> GreedyStory:
    """Three ways to spend ten nats on fifty values of a sticky bit.

    Args:
        seed: Of the histories that are followed.
    """
    chain = MarkovChain.from_matrix([[STAY, 1 - STAY], [1 - STAY, STAY]])
    wrong, each = hamming(chain.alphabet), TOTAL / VALUES
    greedy = Plan(chain, PerStep(SIP(each)), wrong)
    sight = look_ahead(chain, wrong, each)
    total = Horizon(SIP(TOTAL), VALUES)
    best = best_bursts(replace(greedy, budget=total)).best
    plans = {
        "greedy": greedy,
        "far-sighted": replace(greedy, method=Method.FAR_SIGHTED, sight=sight),
        "bursts": replace(greedy, budget=best.budget),
    }
    return GreedyStory(
        TOTAL,
        math.exp(-each) / 2,
        tuple(_way(name, plan, seed) for name, plan in plans.items()),
        best.every,
        loss_floor(chain, wrong, total, VALUES),
    )


def _way(name: str, plan: Plan, seed: int) -> GreedyWay:
    loss = plan.value_loss
    assert loss is not None
    moments = OutputTree(as_simulation(plan), loss, _PATHS, seed).moments(VALUES)
    losses, _held, charges = moments.T.tolist()
    return GreedyWay(name, tuple(losses), tuple(charges))
