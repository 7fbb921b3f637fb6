"""A plan that changes with what left: every step is one of the plan of a version.

The plan itself is that of version 0, randomised response. A step asks the history which version is
due, carries the state over if its stream has just moved, and charges: context-free values what they
leak whatever is true, others what they leak under the worst chain of the set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Self

from sfumato.core.alphabet import Label
from sfumato.core.errors import InvalidParameter
from sfumato.core.events import Event, Events, Outcome
from sfumato.core.guarantees import SIP
from sfumato.core.information_leakage import information_leakage
from sfumato.core.ledger import Charge
from sfumato.core.randomness import Randomness
from sfumato.core.state import StreamState
from sfumato.stream.learning_rules import LearningRules, VersionPlan
from sfumato.stream.partition.cells import StepDesign
from sfumato.stream.plan import Observed, Plan
from sfumato.stream.version_history import VersionHistory
from sfumato.stream.version_moves import moved


@dataclass(frozen=True, slots=True, eq=False)
class LearningPlan(VersionPlan):
    """The rule of a learning release: a pure function of state, value, coins and what left before.

    Attributes:
        history: What left before, of all streams, and the versions that follow from it. Whoever
            steps adds what leaves.

    Examples:
        >>> import sfumato as sf
        >>> bit = sf.Alphabet.of_size(2)
        >>> rules = LearningRules(bit, sf.PerStep(sf.SIP(1.0)), sf.loss.hamming(bit))
        >>> plan = LearningPlan.under(VersionHistory(rules))
        >>> (event,), state = plan.step(plan.begin("ann"), [1], sf.secure())
        >>> event.signal, event.sip.epsilon == event.ldp.epsilon <= 1.0
        (0, True)
    """

    history: VersionHistory = field(kw_only=True)

    @classmethod
    def under(cls, history: VersionHistory) -> Self:
        """The rule of a release with a history; it may be empty."""
        start = history.rules.start
        own = {one.name: getattr(start, one.name) for one in fields(start) if one.init}
        return cls(**own, history=history)

    def _digest(self) -> str:
        return self.history.rules.fingerprint

    @property
    def rules(self) -> LearningRules:
        """What may leak, and when is learnt."""
        return self.history.rules

    def begin(self, stream: str) -> StreamState:
        """The state before the first value of a stream, under the version that it begins with."""
        number = self.history.used(stream, 0)
        return self.history.plan(number or 0).begin(stream)

    def prepare(
        self,
        state: StreamState,
        values: int | None = None,
        phase: int | None = None,
        period: int | None = None,
    ) -> StepDesign | None:
        """The channel of the next step."""
        plan, own, _ = self._due(state)
        return plan.prepare(own, values, phase, period)

    def step(
        self,
        state: StreamState,
        values: Sequence[object],
        randomness: Randomness,
        recalled: Sequence[object] = (),
        phase: int | None = None,
        period: int | None = None,
    ) -> tuple[Events, StreamState]:
        """Release one value under the version that is due."""
        plan, own, number = self._due(state)
        events, following = plan.step(own, values, randomness, recalled, phase, period)
        return self._charged(number, own, events, following)

    def skip(
        self,
        state: StreamState,
        values: int = 1,
        phase: int | None = None,
        period: int | None = None,
    ) -> tuple[Events, StreamState]:
        """Refused: bets need a value at every moment."""
        rule = "be there at every moment: what is proven needs all outputs of a stream"
        raise InvalidParameter("value", None, rule)

    def observed(
        self,
        state: StreamState,
        outputs: Sequence[Label | None],
        outcome: Outcome = Outcome.RELEASED,
        signal: int | None = None,
        phase: int | None = None,
        period: int | None = None,
    ) -> Observed:
        """What anybody can compute who sees a released value; `signal` names its version."""
        if outcome is not Outcome.RELEASED:
            raise InvalidParameter("outcome", outcome.value, "be a release")
        plan, own, number = self._due(state)
        named, output = (None, None) if signal is None else self.rules.told_by(signal)
        lacking = plan.sight is not None and output is None
        # A context-free value has no output to name: its signal is 0, and could say anything else.
        idle = signal is not None and self.rules.signal(number, output) != signal
        if named not in (None, number) or lacking or idle:
            rule = "be the one that outputs before it lead to"
            raise InvalidParameter(signal_column(self) or "signal", signal, rule)
        seen = plan.observed(own, outputs, outcome, output, phase, period)
        events, following = self._charged(number, own, seen.events, seen.following)
        return seen._replace(events=events, following=following)

    def check_own(self, state: StreamState) -> None:
        """Refuse a state that another plan made."""
        self._due(state)

    def under_estimate(self, state: StreamState) -> SIP:
        """What the next step leaks under the estimate of its version; context-free, under any."""
        plan, own, number = self._due(state)
        found = plan.prepare(own, 1)
        if found is None or found.design.channel.is_constant:
            return SIP(0.0)
        if not number:
            return SIP(found.charge.ldp)
        told = information_leakage(found.design.channel, own.belief.marginal)
        return SIP(min(told.epsilon, found.charge.sip))

    def _due(self, state: StreamState) -> tuple[Plan, StreamState, int]:
        """The plan of a stream's next step, its state under it, and the version."""
        number = self.history.used(state.stream, state.sequence)
        if number is None:
            rule = "stand where the stream stands: what left before is not known"
            raise InvalidParameter("state", "a later one", rule)
        plan = self.history.plan(number)
        if state.plan == plan.fingerprint:
            return plan, state, number
        before = self.history.used(state.stream, state.sequence - 1) if state.sequence else None
        if before is None or state.plan != self.history.plan(before).fingerprint:
            rule = "come from these rules, and from a version that outputs led to"
            raise InvalidParameter("state", "that of another plan", rule)
        since = None
        if not self.history.are_nested(before, number):
            since = self.history.context_free(state.stream, state.sequence)
        return plan, moved(self.rules, plan, state, since), number

    def _charged(
        self, number: int, state: StreamState, events: Events, following: StreamState
    ) -> tuple[Events, StreamState]:
        """The same with the version, and context-free values at what holds whatever is true."""
        (event,) = events
        if number:
            named = self.rules.signal(number, event.signal)
            return (replace(event, signal=named),), following
        free = Event(
            event.stream,
            event.sequence,
            event.outcome,
            event.released,
            SIP(event.ldp.epsilon),
            event.ldp,
            signal=0,
        )
        paid = Charge(event.ldp.epsilon, event.ldp.epsilon)
        ledger = state.ledger.charged(paid, self.budget.memory)
        # The even belief stays as it is: its rounding would grow with the stream and move the one
        # channel that bets rest on.
        return (free,), replace(following, ledger=ledger, belief=state.belief)


def signal_column(plan: Plan) -> str | None:
    """What a released table calls what leaves beside a symbol; None if nothing does.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
        >>> plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.5)), sf.loss.hamming(chain.alphabet))
        >>> signal_column(plan) is None
        True
    """
    if isinstance(plan, LearningPlan):
        return "signal" if plan.rules.far_sighted else "version"
    return None if plan.sight is None else "signal"
