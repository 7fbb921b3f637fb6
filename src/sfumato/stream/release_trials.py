"""Ways to release, tried on the same streams: what each loses, leaks and lets others recover."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from sfumato.core.alphabet import Label
from sfumato.core.arrays import Bools, Floats
from sfumato.core.budgets import Budget
from sfumato.core.errors import InvalidParameter
from sfumato.core.loss import Loss
from sfumato.core.progress import Progress
from sfumato.core.randomness import seeded
from sfumato.models.library import PatternLibrary
from sfumato.models.markov import MarkovChain
from sfumato.models.value_chains import ValueChain
from sfumato.solver.design_methods import STEP_WISE_OPTIMUM, Method
from sfumato.solver.design_result import Design
from sfumato.solver.policy import Policy
from sfumato.solver.value_function import ValueFunction
from sfumato.stream.history_paths import TruePath, mean_and_error
from sfumato.stream.one_value import one_value_leakage
from sfumato.stream.partition.cells import StepDesign
from sfumato.stream.plan import Plan
from sfumato.stream.recovered_loss import smoothed
from sfumato.stream.remap import Guesser
from sfumato.stream.silence import Silence
from sfumato.stream.simulated_stream import SimulatedStep, as_simulation, simulated

SILENCE = "say nothing"
_KEPT_CELLS = 5_000_000
"""Probabilities up to which what a stream told about single values is computed."""
_SURE = 2.0
"""Standard errors that a difference must have to be taken for one."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What one method would do, on average over streams.

    Attributes:
        method: Its name.
        loss: Expected loss per value.
        remapped_loss: The same after the receiver's best guess; None where there is no output.
        recovered_loss: The same after his best guess given all outputs of the stream; None where it
            was not computed.
        sip: Leakage per step under the model, mean.
        ldp: Model-free leakage per step, mean.
        constant: Share of steps whose output says nothing.
        loss_error: Standard error of the loss, over streams; infinite for one stream.
        better: Part of the loss of a constant that it saves; 0 or less: no better than silence.
        better_error: Its standard error.
        total: Largest leakage of a whole stream under the model.
        one_value: What all outputs of a stream told about one value at most, exactly; None where
            it was not computed.
        never: Symbols that no channel releases.
    """

    method: str
    loss: float
    remapped_loss: float | None
    sip: float
    ldp: float
    constant: float
    loss_error: float = 0.0
    better: float = 0.0
    better_error: float = 0.0
    total: float = 0.0
    one_value: float | None = None
    never: tuple[Label, ...] = ()
    recovered_loss: float | None = None


class Pause(Enum):
    """What a receiver takes for the value of a step that tells nothing."""

    GUESS = "the best guess under the belief"
    HOLD = "what was released last"


@dataclass(frozen=True, slots=True)
class Way:
    """One way to release that is tried.

    Attributes:
        name: What a table calls it.
        method: How channels are found.
        budget: How much each step may leak.
        pause: What counts as released between bursts.
        sight: What beliefs are worth to a far-sighted stream.
        policy: Its channels, if they were compiled.
    """

    name: str
    method: Method
    budget: Budget
    pause: Pause = Pause.GUESS
    sight: ValueFunction | None = None
    policy: Policy | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """How much less one method loses than another on the same streams, and its standard error."""

    less: str
    more: str
    by: float
    error: float

    @property
    def sure(self) -> bool:
        """Whether it is more than chance, and than rounding."""
        return self.by > max(_SURE * self.error, 1e-9)


def differences(tried: Sequence[Trial]) -> list[Difference]:
    """Every pair of methods, the better one first."""
    found = []
    for place, one in enumerate(tried):
        for other in tried[place + 1 :]:
            by, error = mean_and_error(other.losses - one.losses, one.counts)
            names = (one.method, other.method) if by >= 0 else (other.method, one.method)
            found.append(Difference(*names, abs(by), error))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """What a method did on each stream: sums over its values."""

    method: str
    counts: Floats
    losses: Floats
    guessed: Floats | None
    sip: Floats
    ldp: Floats
    constant: Floats
    one_value: float | None
    never: tuple[Label, ...]
    recovered: Floats | None = None

    def forecast(self, silence: Trial) -> Forecast:
        """The same per value, with standard errors."""
        loss, error = mean_and_error(self.losses, self.counts)
        nothing, _ = mean_and_error(silence.losses, self.counts)
        saved, saved_error = mean_and_error(silence.losses - self.losses, self.counts)
        values = self.counts.sum()
        return Forecast(
            method=self.method,
            loss=loss,
            remapped_loss=None if self.guessed is None else float(self.guessed.sum() / values),
            sip=float(self.sip.sum() / values),
            ldp=float(self.ldp.sum() / values),
            constant=float(self.constant.sum() / values),
            loss_error=error,
            better=saved / nothing if nothing else 0.0,
            better_error=saved_error / nothing if nothing else 0.0,
            total=float(self.sip.max()),
            one_value=self.one_value,
            never=self.never,
            recovered_loss=None if self.recovered is None else float(self.recovered.sum() / values),
        )


class Trials:
    """Streams on which methods are tried.

    Args:
        plan: The rule of the release, value by value.
        walks: True streams.
        given: Whether they were given, so that losses are those of the truth; else they were drawn
            from the model, and expected losses under the belief have less variance.
    """

    def __init__(self, plan: Plan, walks: Sequence[TruePath], given: bool) -> None:
        if not isinstance(plan.loss, Loss) or isinstance(plan.model, PatternLibrary):
            raise InvalidParameter("plan", "one in batches", "release value by value")
        self._plan, self._model, self._loss = plan, plan.model, plan.loss
        self._walks, self._given = walks, given
        self._counts = np.array([len(walk) for walk in walks], dtype=np.float64)
        # A tree of the symbols' places is grown once, not at every step.
        self._guesser = Guesser(plan.loss)

    def own_ways(self, rivals: Sequence[Method]) -> list[Way]:
        """A far-sighted plan as it is, and methods under its own budget."""
        plan = self._plan
        own = [] if plan.sight is None else [sighted_way(plan)]
        return [*own, *map(self._way, rivals)]

    def _way(self, method: Method) -> Way:
        """A method under the plan's own budget; only the best one can honour a cap."""
        budget = self._plan.budget
        if method is Method.OPTIMAL:
            return Way(STEP_WISE_OPTIMUM, method, budget)
        return Way(method.value, method, replace(budget, ldp=None))

    def of(self, way: Way, seed: int, progress: Progress | None, before: int) -> Trial:
        """Release every stream in a simulation."""
        rule = {"method": way.method, "budget": way.budget, "sight": way.sight}
        plan = as_simulation(self._plan, **rule, policy=way.policy)
        coins, sums, worst = seeded(seed), np.zeros((len(self._walks), 5)), 0.0
        recovered = np.zeros(len(self._walks))
        released = np.zeros(len(self._loss), dtype=np.bool_)
        done = before * int(self._counts.sum())
        for place, walk in enumerate(self._walks):
            likelihoods: list[Floats | None] = []
            last: int | None = None
            for step in simulated(plan, f"stream {place}", walk, coins):
                sums[place] += self._costs(step, last)
                likelihoods.append(None)
                if step.found is not None and step.events[0].released is not None:
                    channel, event = step.found.design.channel, step.events[0]
                    released[step.found.patterns[channel.outputs, 0]] = True
                    if not channel.is_constant:
                        left = self._model.alphabet.index(event.released)
                        output = left if event.signal is None else event.signal
                        likelihoods[-1] = channel.likelihood(output)
                        last = left if way.pause is Pause.HOLD else None
                done += 1
                if progress:
                    progress(done)
            worst = max(worst, self._about_one_value(likelihoods))
            recovered[place] = self._recovered(likelihoods, walk)
        known = None if math.isinf(worst) else worst
        loss, guessed, sip, ldp, constant = sums.T
        never = self._never(released)
        after = None if np.isnan(recovered).any() else recovered
        summed = (loss, guessed, sip, ldp, constant)
        return Trial(way.name, self._counts, *summed, known, never, after)

    def _costs(self, step: SimulatedStep, last: int | None) -> tuple[float, ...]:
        """Loss, loss after a best guess, both leakages, and whether the output is constant.

        A moment at which nothing may leave costs what the receiver's guess does, or what he takes
        for it that was released last.
        """
        place, belief = step.places[0], step.state.belief.marginal
        if last is not None and (step.found is None or step.found.design.channel.is_constant):
            known = self._given and place >= 0
            cost = self._cost(last, place) if known else float(self._loss.means(belief)[last])
            return cost, cost, 0.0, 0.0, 1.0
        if step.found is None:
            guess = self._loss.means(belief)
            cost = float(guess.min()) if place < 0 else self._cost(int(guess.argmin()), place)
            return cost, cost, 0.0, 0.0, 1.0
        found, event = step.found.design, step.events[0]
        guessed = self._guesser.remapped(found, belief)
        own = self._mean_cost(found, place)
        if event.signal is not None and self._given:
            own = self._signalled_cost(step.found, place)
        costs = own, self._mean_cost(guessed, place)
        return *costs, event.sip.epsilon, event.ldp.epsilon, float(found.channel.is_constant)

    def _mean_cost(self, design: Design, place: int) -> float:
        """Expected loss: under the belief where the truth is drawn from it, else given it."""
        if not self._given:
            return design.cost
        # All mass on the truth: the mean over the outputs, not over what is true.
        truth = np.zeros(len(self._loss))
        truth[place] = 1.0
        return design.channel.mean_loss(truth, self._loss)

    def _signalled_cost(self, found: StepDesign, place: int) -> float:
        """The same given the truth, where several outputs release one symbol."""
        channel = found.design.channel
        prices = self._loss.rows([place])[0, found.patterns[channel.outputs, 0]]
        return float(channel.probabilities[place] @ prices)

    def _cost(self, output: int, place: int) -> float:
        return float(self._loss.rows([place])[0, output])

    def _about_one_value(self, likelihoods: Sequence[Floats | None]) -> float:
        """What all outputs told about one value; infinite where it was not computed."""
        model = self._model
        if not isinstance(model, MarkovChain) or len(likelihoods) * model.size > _KEPT_CELLS:
            return math.inf
        return one_value_leakage(model, likelihoods)

    def _recovered(self, likelihoods: Sequence[Floats | None], walk: TruePath) -> float:
        """What best guesses given all outputs lose; not a number where it was not computed."""
        model = self._model
        if len(likelihoods) * len(self._loss) > _KEPT_CELLS:
            return math.nan
        assert isinstance(model, ValueChain)
        found = smoothed(model, [(1, likelihood) for likelihood in likelihoods])
        best = self._guesser.best(found.T, found.argmax(axis=1)).tolist()
        return math.fsum(
            self._cost(guess, truth)
            if self._given and truth >= 0
            else float(row @ self._loss.columns([guess])[:, 0])
            for row, guess, truth in zip(found, best, walk, strict=True)
        )

    def silence(self) -> Trial:
        """The best output of each moment for somebody who is told nothing; it leaks nothing."""
        constants = Silence(self._model, self._loss)
        guesses, costs = zip(*map(constants.at, range(max(map(len, self._walks)))), strict=True)
        released = np.zeros(len(self._loss), dtype=np.bool_)
        released[list(guesses)] = True
        losses = np.zeros(len(self._walks))
        for place, walk in enumerate(self._walks):
            losses[place] = math.fsum(
                self._cost(guesses[t], truth) if self._given and truth >= 0 else costs[t]
                for t, truth in enumerate(walk)
            )
        nothing, never = np.zeros(len(self._walks)), self._never(released)
        counts = self._counts
        return Trial(SILENCE, counts, losses, None, nothing, nothing, counts, 0.0, never)

    def _never(self, released: Bools) -> tuple[Label, ...]:
        labels = self._model.alphabet.labels
        return tuple(labels[place] for place in np.flatnonzero(~released))


def sighted_way(plan: Plan, name: str = Method.FAR_SIGHTED.value) -> Way:
    """A far-sighted plan as a way to release."""
    policy = plan.policy
    sight = plan.sight if policy is None else None
    return Way(name, plan.method, plan.budget, sight=sight, policy=policy)
