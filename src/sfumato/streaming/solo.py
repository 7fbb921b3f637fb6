"""One live stream under a compiled policy: its state in place, no allocation per value."""

from __future__ import annotations

from sfumato._numerics import add_up
from sfumato.accounting.allocation import PerStep
from sfumato.accounting.events import Event, Outcome
from sfumato.accounting.ledger import Charge, Ledger
from sfumato.design.crowd import Crowd
from sfumato.guarantees import LDP, SIP
from sfumato.models.markov import MarkovChain
from sfumato.randomness import Randomness
from sfumato.streaming.instant import InstantPlan, InstantState


class Solo:
    """The state of one stream, changed in place by compiled loops.

    It releases what the loops cover and declines the rest, which `InstantPlan.step` then does.
    """

    def __init__(self, plan: InstantPlan, state: InstantState) -> None:
        assert plan.policy is not None and isinstance(plan.model, MarkovChain)
        self._plan = plan
        self._stream = state.stream
        self._crowd = Crowd(plan.model, plan.policy.tables, plan.policy.repair_limit, 1)
        self._release = self._crowd.alone()
        self._fixed = isinstance(plan.budget, PerStep)
        self.put(state)

    def put(self, state: InstantState) -> None:
        """Set where the stream stands."""
        self._crowd.put(0, state.sequence, state.belief)
        self._ledger = state.ledger
        self._count, self._sip, self._ldp = state.ledger.count, state.ledger.sip, state.ledger.ldp
        self._last = -1 if state.last is None else state.last
        self._open = self._allow(state)

    def release(self, place: int, randomness: Randomness) -> int:
        """The released place; -1 if the stream must go another way, and nothing has changed."""
        if not self._open:
            return -1
        if randomness.addressed:
            randomness = randomness.at(self._stream, int(self._crowd.moments[0]))
        output = self._release(place, randomness.word())
        if output < 0:
            return -1
        sip, ldp = self.charges
        self._last = output
        if self._fixed:
            self._count += 1
            self._sip, self._ldp = add_up(self._sip, sip), add_up(self._ldp, ldp)
        else:
            self._ledger = self._ledger.charged(Charge(sip, ldp), self._plan.budget.memory)
            self._open = self._allow(self.state())
        return output

    @property
    def charges(self) -> list[float]:
        """What the last release leaked: under the model, and whatever the model."""
        charges: list[float] = self._crowd.charged[0].tolist()
        return charges

    def event(self, output: int) -> Event:
        """What the last release was, as a value."""
        sip, ldp = self.charges
        label = self._plan.model.alphabet.labels[output]
        moment = int(self._crowd.moments[0]) - 1
        return Event(self._stream, moment, Outcome.RELEASED, label, SIP(sip), LDP(ldp))

    def state(self) -> InstantState:
        """Where the stream stands, as a value."""
        ledger = self._ledger
        if self._fixed:
            ledger = Ledger(self._count, self._sip, self._ldp)
        return InstantState(
            plan=self._plan.fingerprint,
            stream=self._stream,
            sequence=int(self._crowd.moments[0]),
            belief=self._crowd.belief(0),
            ledger=ledger,
            last=None if self._last < 0 else self._last,
        )

    def _allow(self, state: InstantState) -> bool:
        """Set what the next step may leak; whether that is anything."""
        allowance = self._plan.allowance(state)
        self._crowd.allowed[0] = (
            allowance.sip,
            float("inf") if allowance.ldp is None else allowance.ldp,
        )
        return not allowance.exhausted
