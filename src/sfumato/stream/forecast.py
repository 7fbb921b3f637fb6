"""What a release would cost and leak, before anything is released."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from sfumato.core.alphabet import Label
from sfumato.core.arrays import Bools, Floats
from sfumato.core.budgets import Budget, Geometric, Horizon, PerStep, Window
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import SIP
from sfumato.core.loss import Loss
from sfumato.core.progress import Progress
from sfumato.core.randomness import seeded
from sfumato.models.library import PatternLibrary
from sfumato.models.markov import MarkovChain
from sfumato.models.pair_chain import PairChain
from sfumato.solver.design_methods import Method
from sfumato.solver.design_result import Design
from sfumato.stream.history_paths import TruePath, draw_paths, mean_and_error
from sfumato.stream.lifetime import one_value_bound
from sfumato.stream.loss_floor import has_floor, loss_floor
from sfumato.stream.one_value import one_value_leakage
from sfumato.stream.plan import Plan
from sfumato.stream.recovered_loss import smoothed
from sfumato.stream.remap import Guesser
from sfumato.stream.silence import Silence
from sfumato.stream.simulated_stream import SimulatedStep, as_simulation, simulated

RIVALS = (Method.OPTIMAL, Method.CALIBRATED, Method.RANDOMIZED_RESPONSE)
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
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
    """

    name: str
    method: Method
    budget: Budget
    pause: Pause = Pause.GUESS


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
        progress: Called with the number of steps done so far, over all methods.
    """
    from sfumato.stream.remarks import remarks

    if paths is None:
        assert isinstance(plan.model, MarkovChain | PairChain)
        walks = draw_paths(plan.model, length, streams, seed)
    else:
        walks = list(paths)
    trials = _Trials(plan, walks, paths is not None)
    own = [trials.way(method) for method in RIVALS]
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
    """Expected loss of each method over a range of budgets around the asked one."""
    points = []
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


def differences(tried: Sequence[_Trial]) -> list[Difference]:
    """Every pair of methods, the better one first."""
    found = []
    for place, one in enumerate(tried):
        for other in tried[place + 1 :]:
            by, error = mean_and_error(other.losses - one.losses, one.counts)
            names = (one.method, other.method) if by >= 0 else (other.method, one.method)
            found.append(Difference(*names, abs(by), error))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
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

    def forecast(self, silence: _Trial) -> Forecast:
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


class _Trials:
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

    def way(self, method: Method) -> Way:
        """A method under the plan's own budget; only the best one can honour a cap."""
        budget = self._plan.budget
        budget = budget if method is Method.OPTIMAL else replace(budget, ldp=None)
        return Way(method.value, method, budget)

    def of(self, way: Way, seed: int, progress: Progress | None, before: int) -> _Trial:
        """Release every stream in a simulation."""
        plan = as_simulation(self._plan, method=way.method, budget=way.budget)
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
                    channel = step.found.design.channel
                    released[channel.outputs] = True
                    if not channel.is_constant:
                        output = self._model.alphabet.index(step.events[0].released)
                        likelihoods[-1] = channel.likelihood(output)
                        last = output if way.pause is Pause.HOLD else None
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
        return _Trial(way.name, self._counts, *summed, known, never, after)

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
        design, event = step.found.design, step.events[0]
        guessed = self._guesser.remapped(design, belief)
        costs = [self._mean_cost(one, place) for one in (design, guessed)]
        return *costs, event.sip.epsilon, event.ldp.epsilon, float(design.channel.is_constant)

    def _mean_cost(self, design: Design, place: int) -> float:
        """Expected loss: under the belief where the truth is drawn from it, else given it."""
        if not self._given:
            return design.cost
        # All mass on the truth: the mean over the outputs, not over what is true.
        truth = np.zeros(len(self._loss))
        truth[place] = 1.0
        return design.channel.mean_loss(truth, self._loss)

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
        assert isinstance(model, MarkovChain | PairChain)
        found = smoothed(model, [(1, likelihood) for likelihood in likelihoods])
        best = self._guesser.best(found.T, found.argmax(axis=1)).tolist()
        return math.fsum(
            self._cost(guess, truth)
            if self._given and truth >= 0
            else float(row @ self._loss.columns([guess])[:, 0])
            for row, guess, truth in zip(found, best, walk, strict=True)
        )

    def silence(self) -> _Trial:
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
        return _Trial(SILENCE, counts, losses, None, nothing, nothing, counts, 0.0, never)

    def _never(self, released: Bools) -> tuple[Label, ...]:
        labels = self._model.alphabet.labels
        return tuple(labels[place] for place in np.flatnonzero(~released))


def _nothing_hidden() -> Forecast:
    return Forecast("no privacy", 0.0, 0.0, math.inf, math.inf, 0.0, better=1.0, total=math.inf)


def _scaled(budget: Budget, factor: float) -> Budget:
    match budget:
        case PerStep() | Horizon() | Window() | Geometric():
            return replace(budget, sip=SIP(budget.sip.epsilon * factor))
