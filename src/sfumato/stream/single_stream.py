"""One live stream under a compiled policy: its state in place, no array made per value."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.core.events import Event, Outcome
from sfumato.core.guarantees import LDP, SIP
from sfumato.core.ledger import Ledgers
from sfumato.core.randomness import Randomness
from sfumato.core.state import StreamState
from sfumato.models.markov import MarkovChain
from sfumato.stream.fleet_arrays import StreamArrays
from sfumato.stream.fleet_loop import Before, FleetLoop, Moves
from sfumato.stream.plan import Plan


class SingleStream:
    """The state of one stream, changed in place by the loop of the fleets.

    It releases what the loop covers and declines the rest, which `Plan.step` then does. An
    exception in the middle of a release (Ctrl-C, a timer) leaves a torn state behind: the next
    call sets it back to what it was before, since that release never left.
    """

    def __init__(self, plan: Plan, state: StreamState) -> None:
        assert plan.policy is not None and isinstance(plan.space.chain, MarkovChain)
        self._plan = plan
        self._stream = state.stream
        self._arrays = StreamArrays.under(plan.policy, plan.space.chain, 1)
        self._ledgers = Ledgers(1, plan.budget.memory)
        self._last = np.full(1, -1, dtype=np.int64)
        self._loop = FleetLoop(plan, self._arrays, self._ledgers)
        self._held = self._loop.held(self._last)
        self._before = Before(self._held, 1)
        entered: Any = self._before.entered
        self._torn = memoryview(entered)
        self._moves = Moves.blank(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.uint64))
        cells: Any = self._moves.cells
        words: Any = self._moves.words
        self._cell, self._word = memoryview(cells), memoryview(words)
        self._serve()
        self.put(state)

    def _serve(self) -> None:
        self._served = self._loop.served(self._moves, self._last, self._before)
        self._next = self._served.answers.__next__

    def put(self, state: StreamState) -> None:
        """Set where the stream stands."""
        self._arrays.check(state.belief)
        if self._torn[0]:
            self._mend()
        ledgers = Ledgers(1, self._plan.budget.memory)
        ledgers[0] = state.ledger
        accounts = (ledgers.counts[0], ledgers.spent[0], ledgers.recent[0])
        joint, drift = state.belief.joint.ravel(), state.belief.drift
        last = -1 if state.last is None else state.last
        rows = (joint, state.sequence, drift, *accounts, last)
        for kept, row in zip(self._before.rows, rows, strict=True):
            kept[0] = row
        # Torn until all of it is in place, so that an exception here is mended, too.
        self._torn[0] = True
        self._mend()

    def _mend(self) -> None:
        """Go back to what was there before a release that did not come to its end."""
        for held, kept in zip(self._held, self._before.rows, strict=True):
            held[0] = kept[0]
        self._torn[0] = False

    def release(self, place: int, randomness: Randomness) -> int:
        """The released place; -1 if the stream must go another way, and nothing has changed."""
        if self._torn[0]:
            self._mend()
        if randomness.addressed:
            moment = self._arrays.moments.item(0)
            randomness = randomness.at(self._plan.address(self._stream, moment))
        # Through views of the memory, which take a number in half the time of an array.
        self._cell[0], self._word[0] = place, randomness.word()
        output = self._next()
        self._done()
        return output

    def _done(self) -> None:
        """The answer is in hand: what was before is not needed any more."""
        self._torn[0] = False

    @property
    def charges(self) -> tuple[float, float]:
        """What the last release leaked: under the model, and whatever the model."""
        charged = self._moves.charges
        return charged.item(0), charged.item(1)

    def event(self, output: int) -> Event:
        """What the last release was, as a value."""
        sip, ldp = self.charges
        label = self._plan.model.alphabet.labels[output]
        moment = self._moves.sequences.item(0)
        signal = None if self._plan.sight is None else self._moves.signals.item(0)
        began = (self._stream, moment, Outcome.RELEASED, label)
        return Event(*began, SIP(sip), LDP(ldp), None, signal)

    def state(self) -> StreamState:
        """Where the stream stands, as a value."""
        if self._torn[0]:
            self._mend()
        last = self._last.item(0)
        return StreamState(
            plan=self._plan.fingerprint,
            stream=self._stream,
            sequence=self._arrays.moments.item(0),
            belief=self._arrays.belief(0),
            ledger=self._ledgers[0],
            last=None if last < 0 else last,
        )
