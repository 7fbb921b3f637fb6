"""The rule of a release: frozen, public, a pure function of state, values and coins.

A step releases a batch of values; a batch of one is the instantaneous release. What differs between
values, patterns, histograms, boxes and patterns of a library is a `Partition`, and what a belief is
about is a `BeliefSpace`: the rule itself knows neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sfumato.core.alphabet import Label
from sfumato.core.arrays import Floats
from sfumato.core.belief import Belief
from sfumato.core.budgets import Allowance
from sfumato.core.errors import BudgetExceeded, InvalidParameter, UnknownSymbol
from sfumato.core.events import Events, Outcome, events_of
from sfumato.core.guarantees import LDP, SIP
from sfumato.core.ledger import FREE, Charge, Ledger
from sfumato.core.purpose import Fallback
from sfumato.core.randomness import Randomness, categorical, integer_weights
from sfumato.core.state import StreamState
from sfumato.models.belief_sets import as_beliefs, as_bounds, carried, first_beliefs, informed
from sfumato.stream.due_channel import DueChannel, due_channel
from sfumato.stream.partition.cells import StepDesign
from sfumato.stream.partition.value_spaces import LastValue
from sfumato.stream.plan_terms import PlanTerms


@dataclass(frozen=True, slots=True, eq=False)
class Plan(PlanTerms):
    """The rule of a release: what each step does, as a pure function.

    Attributes:
        model: What the adversary is assumed to know; full support. Under a chain that changes with
            time every step is given the phase of its value, which is public and must not follow
            from the value; where values have phases in turn, the plan knows it.
        budget: What may leak; its steps are values, so a batch of 5 may leak what 5 values may.
            Under one for periods of time (`PerPeriod`) every step is given the number of the period
            that its value lies in, which is public and never falls.
        loss: What it costs to release one symbol when another is true, value by value; or one
            batch when another is true. In batches a loss of single values adds up.
        width: Most values of a batch.
        memory: How many batches the channel looks at, the current one included. More than
            one cannot lower the loss of a batch (docs/design/stream.md); the paper allows it.
        method: How the channel of a step is found.
        on_exhausted: What leaves when the budget is gone.
        on_unknown: What leaves for a batch with a value outside the alphabet.
        purpose: `SIMULATION` admits `seeded()` coins; its states are no use to a real release.
        listed: Batches up to which each is a cell of its own; beyond, boxes of batches are.
        policy: Channels compiled for this chain, loss, method and width; a step then leaks at most
            what the policy was compiled for, and only beliefs it does not cover are solved.
        sight: What beliefs are worth to a far-sighted stream, for the method of that name; made
            from chain, loss and a budget per step if not given (`look_ahead` makes others), or that
            of a far-sighted policy. It is public, and part of the rule.
        robust: Chains of which any may be the adversary's: what a step is charged is then the most
            that it leaks under all of them. For values that leave alone, under the chain of order 1
            that they were put around, by a method that looks at one step, without a policy.
        repair: How far-sighted channels are made to keep the budget for many chains.
        space: What the belief of a state is about: the next value; under a chain that changes with
            time, the last one; under a library, the pattern of the last batch; under a policy for
            batches, the next whole batch.
        in_batches: Whether values wait for each other; else each leaves alone, and events say so.
        fingerprint: Identifies the plan; states carry it.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
        >>> plan = Plan(chain, sf.PerStep(sf.SIP(0.5)), sf.loss.hamming(chain.alphabet))
        >>> (event,), state = plan.step(plan.begin("ann"), [1], sf.secure())
        >>> event.sip <= sf.SIP(0.5), state.sequence
        (True, 1)
    """

    def begin(self, stream: str) -> StreamState:
        """The state before the first value of a stream."""
        chains = self.robust
        bounds = None if chains is None else as_bounds(first_beliefs(chains))
        return StreamState(self.fingerprint, stream, 0, self._first, Ledger(), bounds=bounds)

    def _arrived(
        self, state: StreamState, phase: int | None, period: int | None = None
    ) -> StreamState:
        """The state with a belief about the value that is due, in its phase and period."""
        begun = self.period_begun(state, period)
        if begun is not state.period:
            state = replace(state, period=begun)
        if phase is None:
            return state
        assert isinstance(self.space, LastValue)  # models with phases have no other
        belief = self.space.arrived(state.belief, state.sequence, phase)
        return replace(state, belief=belief)

    def belief(self, state: StreamState, phase: int | None = None) -> Belief:
        """The adversary's belief about what is due: the next value, in its phase."""
        due = self.phase(state, phase)
        if due is None:
            return state.belief
        assert isinstance(self.space, LastValue)  # models with phases have no other
        return self.space.arrived(state.belief, state.sequence, due)

    def prepare(
        self,
        state: StreamState,
        values: int | None = None,
        phase: int | None = None,
        period: int | None = None,
    ) -> StepDesign | None:
        """The channel of the next step; None when the budget is gone. Public: needs no value."""
        self.check_own(state)
        return self._prepared(self._arrived(state, self.phase(state, phase), period), values)

    def _prepared(self, state: StreamState, values: int | None) -> StepDesign | None:
        length = self._length(self.width if values is None else values)
        ready = due_channel(self, state, length, self.allowance(state.counted, length))
        return ready.found if ready and ready.covered else None

    def step(
        self,
        state: StreamState,
        values: Sequence[object],
        randomness: Randomness,
        recalled: Sequence[object] = (),
        phase: int | None = None,
        period: int | None = None,
    ) -> tuple[Events, StreamState]:
        """Release one batch.

        Args:
            state: Where the stream stands.
            values: The true symbols of the batch, at most `width` of them.
            randomness: Coins; `seeded()` ones only in a simulation.
            recalled: The true symbols before them that the channel looks at, with a memory of
                more than one batch.
            phase: That of the value, for a model that changes with time.
            period: That of the value, for a budget for periods of time.

        Raises:
            BudgetExceeded: If the budget is gone and the plan says to refuse.
            UnknownSymbol: If a value is not in the alphabet and the plan says to refuse.
            InsecureRandomness: If the coins can be guessed and this is no simulation.
        """
        self.check_own(state)
        due = self.phase(state, phase)
        arrived = self._arrived(state, due, period)
        events, following = self._step(arrived, values, randomness, recalled, due)
        return _timed(events, due, period), following

    def _step(
        self,
        state: StreamState,
        values: Sequence[object],
        randomness: Randomness,
        recalled: Sequence[object],
        phase: int | None,
    ) -> tuple[Events, StreamState]:
        """The same, once the phase of the value is known."""
        length = self._length(len(values))
        if len(recalled) != self.recalled(state):
            rule = f"be the {self.recalled(state)} true values before the batch"
            raise InvalidParameter("recalled", f"{len(recalled)} values", rule)
        self.check_coins(randomness)
        allowance = self.allowance(state.counted, length)
        ready = due_channel(self, state, length, allowance)
        if ready is None or not ready.covered:
            return self._exhausted(state, length, allowance, ready)
        # Nothing is drawn before it is certain that something may leave.
        period = None if state.period is None else state.period.index
        coins = randomness.at(self.address(state.stream, state.sequence, phase, period))
        places = [self.model.alphabet.place(value) for value in (*recalled, *values)]
        partition = ready.found.partition
        if min(places) >= 0:
            cell = partition.cell(places)
        elif self.on_unknown is Fallback.REFUSE:
            raise UnknownSymbol(len(self.model.alphabet))
        elif self.on_unknown is Fallback.SUBSTITUTE:
            cell = _drawn_from(partition.masses / partition.masses.sum(), coins)
        else:
            return self._withheld(state, length, self.on_unknown)
        output = int(ready.found.design.channel.draw(cell, coins.words(1))[0])
        return self._released(state, length, ready, output)

    def skip(
        self,
        state: StreamState,
        values: int = 1,
        phase: int | None = None,
        period: int | None = None,
    ) -> tuple[Events, StreamState]:
        """Let some moments pass without a release; the belief moves on, nothing is spent."""
        self.check_own(state)
        due = self.phase(state, phase)
        events, following = self._skipped(self._arrived(state, due, period), values)
        return _timed(events, due, period), following

    def _skipped(self, state: StreamState, values: int) -> tuple[Events, StreamState]:
        return self._silent(state, self._length(values), Outcome.SKIPPED, None)

    def observe(
        self,
        state: StreamState,
        outputs: Sequence[Label | None],
        outcome: Outcome = Outcome.RELEASED,
        signal: int | None = None,
        phase: int | None = None,
        period: int | None = None,
    ) -> tuple[Events, StreamState]:
        """What anybody can compute who sees a released batch: certificates and the belief after it.

        Args:
            state: Where the stream stood.
            outputs: What left.
            outcome: How.
            signal: That of the event, for a far-sighted plan.
            phase: That of the value, for a model that changes with time.
            period: That of the value, for a budget for periods of time.

        Raises:
            InvalidParameter: If this plan could not have produced the batch here.
        """
        seen = self.observed(state, outputs, outcome, signal, phase, period)
        return seen.events, seen.following

    def observed(
        self,
        state: StreamState,
        outputs: Sequence[Label | None],
        outcome: Outcome = Outcome.RELEASED,
        signal: int | None = None,
        phase: int | None = None,
        period: int | None = None,
    ) -> Observed:
        """The same as `observe`, with the channel that it came from."""
        self.check_own(state)
        due = self.phase(state, phase)
        seen = self._observed(self._arrived(state, due, period), outputs, outcome, signal)
        return seen._replace(events=_timed(seen.events, due, period))

    def _observed(
        self,
        state: StreamState,
        outputs: Sequence[Label | None],
        outcome: Outcome,
        signal: int | None,
    ) -> Observed:
        """The same, once the phase of the value is known."""
        length = self._length(len(outputs))
        if outcome is not Outcome.RELEASED:
            self._check_signal(signal, due=False)
            return Observed(*self._observed_silence(state, outputs, outcome))
        ready = due_channel(self, state, length, self.allowance(state.counted, length))
        if ready is None or not ready.covered:
            raise InvalidParameter("output", "a release", "not occur: the budget was gone")
        places = self.model.alphabet.indices(outputs)
        self._check_signal(signal, due=self.sight is not None)
        output = ready.found.output(places, signal)
        if output is None:
            raise InvalidParameter("output", "another", "be one that the channel can release")
        return Observed(*self._released(state, length, ready, output), ready.found, output)

    def _check_signal(self, signal: int | None, *, due: bool) -> None:
        if (signal is not None) != due:
            rule = "stand at each release of a far-sighted plan, and nowhere else"
            raise InvalidParameter("signal", signal, rule)

    def _observed_silence(
        self, state: StreamState, outputs: Sequence[Label | None], outcome: Outcome
    ) -> tuple[Events, StreamState]:
        """Moments at which nothing new left, if the plan has such moments here."""
        due, following = self._skipped(state, len(outputs))
        if outcome is not Outcome.SKIPPED:
            gone = self._prepared(state, len(outputs)) is None
            fallback = self.on_exhausted if gone else self.on_unknown
            if fallback not in (Fallback.SUPPRESS, Fallback.REPEAT):
                raise InvalidParameter("outcome", outcome.value, "be one that the plan allows here")
            due, following = self._withheld(state, len(outputs), fallback)
        if [(label, outcome) for label in outputs] != [(e.released, e.outcome) for e in due]:
            raise InvalidParameter("output", outcome.value, "be what the plan lets leave here")
        return due, following

    def _exhausted(
        self, state: StreamState, length: int, allowance: Allowance, refused: DueChannel | None
    ) -> tuple[Events, StreamState]:
        if self.on_exhausted is not Fallback.REFUSE:
            return self._withheld(state, length, self.on_exhausted)
        wanted: object = "something"
        if refused is not None:
            wanted = f"{SIP(refused.charge.sip)} and {LDP(refused.charge.ldp)}"
        raise BudgetExceeded(state.stream, state.sequence, wanted, allowance)

    def _withheld(
        self, state: StreamState, length: int, fallback: Fallback
    ) -> tuple[Events, StreamState]:
        if fallback is Fallback.REPEAT and state.last is not None:
            return self._silent(state, length, Outcome.REPEATED, state.last)
        return self._silent(state, length, Outcome.SUPPRESSED, None)

    def _silent(
        self, state: StreamState, length: int, outcome: Outcome, output: int | None
    ) -> tuple[Events, StreamState]:
        """A batch that tells nothing."""
        belief, bounds = self.space.passed(state.belief, length), state.bounds
        for _ in range(length):
            bounds = self._bounds_after(bounds, None)
        return self._moved(
            state, outcome, [output] * length, FREE, belief, state.last, bounds=bounds
        )

    def _released(
        self, state: StreamState, length: int, ready: DueChannel, output: int
    ) -> tuple[Events, StreamState]:
        places = ready.found.patterns[output].tolist()
        told = None
        if ready.found.design.channel.is_constant:
            charge, belief = FREE, self.space.passed(state.belief, length)
        else:
            charge, belief = ready.charge, ready.found.after(output)
            if self.robust is not None:
                told = ready.found.design.channel.likelihood(output)
        signal, bounds = (
            None if self.sight is None else output,
            self._bounds_after(state.bounds, told),
        )
        return self._moved(
            state, Outcome.RELEASED, places, charge, belief, places[-1], signal, bounds
        )

    def _bounds_after(self, bounds: Floats | None, told: Floats | None) -> Floats | None:
        """What may be believed about the next value, after an output or none."""
        if bounds is None or self.robust is None:
            return None
        beliefs = as_beliefs(bounds)
        after = beliefs if told is None else informed(beliefs, told)
        return as_bounds(carried(after, self.robust))

    def _moved(
        self,
        state: StreamState,
        outcome: Outcome,
        outputs: Sequence[int | None],
        charge: Charge,
        belief: Belief,
        last: int | None,
        signal: int | None = None,
        bounds: Floats | None = None,
    ) -> tuple[Events, StreamState]:
        labels = [None if place is None else self.model.alphabet.labels[place] for place in outputs]
        began = (state.stream, state.sequence, outcome)
        events = events_of(
            *began, labels, charge.sip, charge.ldp, in_batches=self.in_batches, signal=signal
        )
        # Made anew, not by `replace`, which takes as long as all the rest of a move.
        following = StreamState(
            plan=self.fingerprint,
            stream=state.stream,
            sequence=state.sequence + len(outputs),
            belief=belief,
            ledger=state.ledger.charged(charge, self.budget.memory, len(outputs)),
            last=last,
            bounds=bounds,
            period=None if state.period is None else state.period.charged(charge, len(outputs)),
        )
        return events, following


class Observed(NamedTuple):
    """What anybody can compute of a batch that left.

    Attributes:
        events: What happened, with its certificates.
        following: Where the stream stands after it.
        design: The channel that it came from; None where nothing new left.
        output: Which output of that channel it is.
    """

    events: Events
    following: StreamState
    design: StepDesign | None = None
    output: int | None = None


def _timed(events: Events, phase: int | None, period: int | None) -> Events:
    """What happened, with the phase and the period it happened in."""
    if phase is None and period is None:
        return events
    return tuple(replace(event, phase=phase, period=period) for event in events)


def _drawn_from(masses: Floats, coins: Randomness) -> int:
    """A cell as the adversary expects it: one that tells him nothing."""
    cumulative = integer_weights(masses[None, :]).cumsum(axis=1)
    return int(categorical(cumulative, np.zeros(1, dtype=np.int64), coins.words(1))[0])
