"""Ways to release the same true streams, each with its loss and its true leakage per value.

The privacy unit is one for all: leakage about the whole stream under the chain (SIP), per value. A
rival that promises something else is charged what it really leaks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.budgets import PerStep
from sfumato.core.bursts import Bursts
from sfumato.core.guarantees import SIP
from sfumato.core.loss import Loss, as_matrix
from sfumato.models.markov import MarkovChain
from sfumato.solver.design_methods import Method
from sfumato.stream.plan import Plan
from sfumato.studies.held_out import held_out
from sfumato.studies.sip.fixed_channels import FixedChannel, follow
from sfumato.studies.standard_error import standard_error

SILENCE = "say nothing"


@dataclass(frozen=True, slots=True)
class Released:
    """One way to release at one budget, on true streams.

    Attributes:
        curve: Name of the way.
        order: Of the chain that the adversary knows.
        epsilon: Promised per value, in the unit of the way.
        loss: Mean loss per value of what was released.
        error: Its standard error over streams.
        received: Mean loss of the receiver's best guess, which costs no privacy.
        received_error: Its standard error.
        leakage: True leakage under the chain per value (SIP), mean over streams.
        streams: How many.
    """

    curve: str
    order: int
    epsilon: float
    loss: float
    error: float
    received: float
    received_error: float
    leakage: float
    streams: int

    @property
    def best(self) -> float:
        """The lower of the losses as released and after the receiver's best guess."""
        return min(self.loss, self.received)


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """True streams that all ways are tried on.

    Attributes:
        chain: What the adversary knows, learnt from others.
        loss: What a wrong value costs.
        streams: Places of true symbols, one row a stream.
        seed: Of the coins.
    """

    chain: MarkovChain
    loss: Loss
    streams: Ints
    seed: int

    def silence(self) -> Released:
        """The best constant at each moment for somebody who is told nothing."""
        costs, belief = as_matrix(self.loss, self.chain.size), self.chain.first()
        lost = np.zeros(len(self.streams))
        for true in self.streams.T:
            lost += costs[true, int((belief.marginal @ costs).argmin())]
            belief = self.chain.following(belief)
        lost /= self.streams.shape[1]
        return self.released(SILENCE, 0.0, lost, lost, np.zeros(len(lost)))

    def fixed(self, curve: str, epsilon: float, rival: FixedChannel) -> Released:
        """A rival whose channel never changes."""
        told = follow(self.chain, rival, self.loss, self.streams, self.seed)
        return self.released(curve, epsilon, told.shown, told.received, told.charged)

    def planned(self, curve: str, epsilon: float, method: Method, width: int = 1) -> Released:
        """A plan with a budget per value."""
        plan = Plan(self.chain, PerStep(SIP(epsilon)), self.loss, width, method=method)
        told = held_out(plan, self.streams, self.seed)
        return self.released(curve, epsilon, told.guessed, told.received, told.charged)

    def bursts(self, curve: str, epsilon: float, every: int) -> Released:
        """The total of a stream in bursts, value by value; best guesses leave in between."""
        length = self.streams.shape[1]
        budget = Bursts(SIP(length * epsilon), length, every=every)
        told = held_out(Plan(self.chain, budget, self.loss), self.streams, self.seed)
        return self.released(curve, epsilon, told.guessed, told.received, told.charged)

    def released(
        self, curve: str, epsilon: float, lost: Floats, received: Floats, charged: Floats
    ) -> Released:
        """A point, from losses and leakages of each stream."""
        return Released(
            curve=curve,
            order=self.chain.order,
            epsilon=epsilon,
            loss=float(lost.mean()),
            error=standard_error(lost),
            received=float(received.mean()),
            received_error=standard_error(received),
            leakage=float(charged.mean()),
            streams=len(lost),
        )


Way = Callable[[Trial, float], Released]
"""How one curve is made: on a trial, at a budget per value."""


def released_points(
    trials: Sequence[Trial],
    ways: dict[str, Way],
    epsilons: Sequence[float],
    show: Callable[[int], None],
) -> list[Released]:
    """Every way at every budget on every trial, and silence first."""
    points = [trial.silence() for trial in trials]
    done = 0
    for trial in trials:
        for epsilon in epsilons:
            for way in ways.values():
                points.append(way(trial, epsilon))
                show(done := done + 1)
    return points


def pooled(points: Iterable[Released]) -> list[Released]:
    """Repeated runs as one: means, and errors over the streams of all of them."""
    runs: dict[tuple[str, int, float], list[Released]] = {}
    for point in points:
        runs.setdefault((point.curve, point.order, point.epsilon), []).append(point)
    return [_together(alike) for alike in runs.values()]


def _together(alike: Sequence[Released]) -> Released:
    sizes = np.array([one.streams for one in alike])
    weights = sizes / sizes.sum()

    def mean(name: str) -> float:
        return float(weights @ np.array([getattr(one, name) for one in alike]))

    def error(name: str) -> float:
        return float(np.sqrt(((weights * [getattr(one, name) for one in alike]) ** 2).sum()))

    first = alike[0]
    return Released(
        curve=first.curve,
        order=first.order,
        epsilon=first.epsilon,
        loss=mean("loss"),
        error=error("error"),
        received=mean("received"),
        received_error=error("received_error"),
        leakage=mean("leakage"),
        streams=int(sizes.sum()),
    )


def by_curve(points: Iterable[Released]) -> dict[str, list[Released]]:
    """The points of each curve, by growing budget."""
    curves: dict[str, list[Released]] = {}
    for point in points:
        curves.setdefault(point.curve, []).append(point)
    return {curve: sorted(line, key=lambda p: p.epsilon) for curve, line in curves.items()}
