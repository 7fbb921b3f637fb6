"""Live events of streams in batches, and of plans without a policy: step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sfumato.core.budgets import Horizon
from sfumato.core.errors import BudgetExceeded, InvalidParameter, UnknownSymbol
from sfumato.core.purpose import Fallback
from sfumato.core.randomness import Randomness
from sfumato.core.state import StreamState
from sfumato.models.encoding import Unreadable
from sfumato.models.stream_model import StreamModel
from sfumato.store.live import StreamAccount
from sfumato.store.live_job import Left, LiveJob, Moment
from sfumato.store.protocol import Released
from sfumato.stream.column_values import PASSES
from sfumato.stream.live_values import LiveValues
from sfumato.stream.plan import Plan
from sfumato.stream.row_run import state_kind
from sfumato.tables.cells import Late, Missing, Time


class LiveBatches(LiveJob[StreamState]):
    """How live values of streams are released by the steps of a plan; for a `SteppedRun`.

    Args:
        model: How values become symbols.
        plan: The rule.
        coins: Of the releases.
        missing: What becomes of a missing value.
        late: What becomes of an event that goes back in the time of its stream.

    Examples:
        >>> import sfumato as sf
        >>> from sfumato.models.encoding import Symbols
        >>> from sfumato.store.live import Asked
        >>> from sfumato.store.live_intake import begun
        >>> from sfumato.store.live_run import SteppedRun
        >>> from sfumato.store.memory import MemoryStore
        >>> places = sf.Alphabet(["home", "work"])
        >>> chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]], alphabet=places)
        >>> plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.5)), sf.loss.hamming(places), width=2)
        >>> job = LiveBatches(StreamModel(chain, Symbols(places)), plan, sf.secure())
        >>> store = MemoryStore(plan=plan.fingerprint)
        >>> run = SteppedRun(store, begun(store, "phones"), job)
        >>> run.answer([Asked("e1", "ann", "home")])
        [Waiting(missing=1)]
        >>> (reply,) = run.answer([Asked("e2", "ann", "home")])
        >>> [answer.id for answer in reply.answers]
        ['e1', 'e2']
    """

    def __init__(
        self,
        model: StreamModel,
        plan: Plan,
        coins: Randomness,
        *,
        missing: Missing = Missing.REFUSE,
        late: Late = Late.REFUSE,
    ) -> None:
        plan.check_coins(coins)
        if plan.memory > 1:
            rule = "be 1 for live events: true values of earlier batches are not kept"
            raise InvalidParameter("memory", plan.memory, rule)
        self._plan, self._coins = plan, coins
        self._values = LiveValues(model, missing, plan.on_unknown)
        self.kind, self.width, self.late = state_kind(plan), plan.width, late is Late.ACCEPT

    def read(self, value: Any) -> int | None:
        """The place of a symbol, -1 outside the alphabet; None for a moment that passes."""
        cell = self._values.cell(value)
        if cell == -1 and self._plan.on_unknown is Fallback.REFUSE:
            # Refused before it waits: others of its batch may still be answered.
            count = len(self._plan.model.alphabet)
            raise Unreadable(str(UnknownSymbol(count)).removeprefix("value "))
        return None if cell == PASSES else cell

    def written(self, value: Any) -> Released:
        """The symbol, for the digest that tells a retry from other data."""
        return self._values.words[PASSES if value is None else value]

    def time(self, text: str) -> Moment:
        """When a value was measured."""
        return Time.of(text)

    def check(self, state: StreamState) -> None:
        """Refuse a value before it waits, if nothing may leave any more."""
        due = self._plan.allowance(state.counted, self._plan.width)
        if due.exhausted and self._plan.on_exhausted is Fallback.REFUSE and self.width > 1:
            raise BudgetExceeded(state.stream, state.sequence, "something", due)

    def step(
        self, stream: str, state: StreamState, values: Sequence[Any]
    ) -> tuple[list[Left], StreamState]:
        """Release the values of a batch, or let one moment pass."""
        if values[0] is None:
            events, after = self._plan.skip(state)
        else:
            symbols = [self._values.words[value] for value in values]
            events, after = self._plan.step(state, symbols, self._coins)
        left = [
            Left(
                event.sequence,
                event.outcome.value,
                event.released,
                event.sip.epsilon,
                event.ldp.epsilon,
                event.batch,
                event.signal,
            )
            for event in events
        ]
        return left, after

    def account(self, state: StreamState, account: StreamAccount) -> StreamAccount:
        """The account of a stream, with what is left in a state."""
        return stream_account(self._plan, state, account)


def stream_account(plan: Plan, state: StreamState, account: StreamAccount) -> StreamAccount:
    """The account of a stream, with what its plan leaves for the next value or batch."""
    due, budget = plan.allowance(state.counted, plan.width), plan.budget
    steps = budget.steps - state.ledger.count if isinstance(budget, Horizon) else None
    return replace(
        account,
        left=due.sip,
        left_model_free=due.ldp,
        moments=None if steps is None else max(steps, 0),
    )
