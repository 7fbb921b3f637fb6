"""One live stream under a compiled policy: its state in place, no array made per value."""

from __future__ import annotations

import math

from sfumato.core.budgets import PerStep
from sfumato.core.events import Event, Outcome
from sfumato.core.guarantees import LDP, SIP
from sfumato.core.ledger import Charge, Ledger
from sfumato.core.numerics import add_up
from sfumato.core.randomness import Randomness
from sfumato.core.state import StreamState
from sfumato.models.markov import MarkovChain
from sfumato.stream.fleet_arrays import StreamArrays
from sfumato.stream.plan import Plan

_Account = tuple[Ledger | None, int, float, float, int]
"""Ledger (if the budget looks at it), steps, both sums, and the place released last."""


class SingleStream:
    """The state of one stream, changed in place by compiled loops.

    It releases what the loops cover and declines the rest, which `Plan.step` then does. An
    exception in the middle of a release (Ctrl-C, a timer) leaves a torn state behind: the next
    call sets it back to what it was before, since that release never left.
    """

    def __init__(self, plan: Plan, state: StreamState) -> None:
        assert plan.policy is not None and isinstance(plan.space.chain, MarkovChain)
        self._plan = plan
        self._stream = state.stream
        self._arrays = StreamArrays.under(plan.policy, plan.space.chain, 1)
        self._release = self._arrays.alone()
        # A budget per step never looks at the ledger: three numbers are enough, and quicker.
        self._fixed = isinstance(plan.budget, PerStep)
        self.put(state)

    def put(self, state: StreamState) -> None:
        """Set where the stream stands."""
        arrays, ledger = self._arrays, state.ledger
        arrays.check(state.belief)
        if arrays.torn[0]:
            self._mend()
        last = -1 if state.last is None else state.last
        known = None if self._fixed else ledger
        self._before = (known, ledger.count, ledger.sip, ledger.ldp, last)
        arrays.backup[:-2] = state.belief.joint.ravel()
        arrays.backup[-2:] = state.sequence, state.belief.drift
        # Torn until all of it is in place, so that an exception here is mended, too.
        arrays.torn[0] = 1
        self._mend()

    def _mend(self) -> None:
        """Go back to what was there before a release that did not come to its end."""
        arrays = self._arrays
        arrays.joints[0] = arrays.backup[:-2]
        arrays.moments[0], arrays.drifts[0] = arrays.backup[-2:]
        self._account: _Account = self._before
        self._open = self._allow()
        arrays.torn[0] = 0

    def release(self, place: int, randomness: Randomness) -> int:
        """The released place; -1 if the stream must go another way, and nothing has changed."""
        arrays = self._arrays
        if arrays.torn[0]:
            self._mend()
        if not self._open:
            return -1
        if randomness.addressed:
            randomness = randomness.at(self._plan.address(self._stream, arrays.moments.item(0)))
        # What to go back to if an exception breaks in between here and the end of the step.
        self._before = self._account
        output = self._release(place, randomness.word())
        if output >= 0:
            sip, ldp = self.charges
            ledger, count, summed, local, _ = self._account
            if ledger is not None:
                ledger = ledger.charged(Charge(sip, ldp), self._plan.budget.memory)
            self._account = (ledger, count + 1, add_up(summed, sip), add_up(local, ldp), output)
            if ledger is not None:
                self._open = self._allow()
            arrays.torn[0] = 0
        return output

    @property
    def charges(self) -> tuple[float, float]:
        """What the last release leaked: under the model, and whatever the model."""
        charged = self._arrays.charged
        return charged.item(0), charged.item(1)

    def event(self, output: int) -> Event:
        """What the last release was, as a value."""
        sip, ldp = self.charges
        label = self._plan.model.alphabet.labels[output]
        moment = int(self._arrays.moments[0]) - 1
        signal = None if self._plan.sight is None else self._arrays.column
        began = (self._stream, moment, Outcome.RELEASED, label)
        return Event(*began, SIP(sip), LDP(ldp), None, signal)

    def state(self) -> StreamState:
        """Where the stream stands, as a value."""
        if self._arrays.torn[0]:
            self._mend()
        last = self._account[-1]
        return StreamState(
            plan=self._plan.fingerprint,
            stream=self._stream,
            sequence=int(self._arrays.moments[0]),
            belief=self._arrays.belief(0),
            ledger=self._ledger(),
            last=None if last < 0 else last,
        )

    def _ledger(self) -> Ledger:
        ledger, count, sip, ldp, _ = self._account
        return Ledger(count, sip, ldp) if ledger is None else ledger

    def _allow(self) -> bool:
        """Set what the next step may leak; whether that is anything useful."""
        allowance = self._plan.allowance(self._ledger(), 1)
        self._arrays.allowed[0, 0] = allowance.sip
        self._arrays.allowed[0, 1] = math.inf if allowance.ldp is None else allowance.ldp
        return allowance.useful
