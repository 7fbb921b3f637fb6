"""Release a live stream: small objects around a `Plan` and a state.

`InstantRelease` lets every value leave as it comes; `BatchedRelease` keeps true values until their
batch is complete, and has them in no state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core.alphabet import Label
from sfumato.core.belief import Model
from sfumato.core.budgets import Budget, as_budget
from sfumato.core.errors import InvalidParameter, UnknownSymbol
from sfumato.core.events import Event
from sfumato.core.guarantees import SIP
from sfumato.core.guard import Guarded
from sfumato.core.ledger import Ledger
from sfumato.core.loss import Loss
from sfumato.core.purpose import Fallback, Purpose
from sfumato.core.randomness import Randomness, secure
from sfumato.core.state import StreamState
from sfumato.models.library import PatternLibrary
from sfumato.models.markov import MarkovChain
from sfumato.models.periodic import PeriodicChain
from sfumato.solver.design_methods import Method
from sfumato.solver.policy import Policy
from sfumato.solver.value_function import ValueFunction
from sfumato.stream.partition.batch_loss import BatchLoss, as_batch_loss
from sfumato.stream.plan import Plan
from sfumato.stream.single_stream import SingleStream

_At: TypeAlias = tuple[StreamState, tuple[object, ...], tuple[object, ...]]
"""The state, the true values that wait, and those that the channel recalls."""


class PlanOptions(TypedDict, total=False):
    """Fields of a `Plan` beyond model, budget, loss and width; words stand for enums."""

    memory: int
    method: Method | str
    on_exhausted: Fallback | str
    on_unknown: Fallback | str
    purpose: Purpose | str
    listed: int
    policy: Policy | None
    sight: ValueFunction | None


_ENUMS = {"method": Method, "on_exhausted": Fallback, "on_unknown": Fallback, "purpose": Purpose}


def _plan(
    model: Model | PatternLibrary | PeriodicChain,
    budget: Budget | SIP,
    loss: Loss | BatchLoss,
    width: int,
    options: PlanOptions,
) -> Plan:
    given: dict[str, Any] = dict(options)
    given |= {name: kind(given[name]) for name, kind in _ENUMS.items() if name in given}
    return Plan(model, as_budget(budget), loss, width, **given)


class _Release(Guarded, ABC):
    """What releases share: a plan, coins, and where the stream stands.

    Attributes:
        plan: The rule.
    """

    def __init__(
        self, plan: Plan, stream: str, randomness: Randomness | None, state: StreamState | None
    ) -> None:
        self.plan = plan
        self._randomness = secure() if randomness is None else randomness
        self._begun = plan.begin(stream) if state is None else state
        plan.check_own(self._begun)

    @abstractmethod
    def _now(self) -> StreamState:
        """Where the stream stands; the lock is held."""

    @property
    def state(self) -> StreamState:
        """Where the stream stands after its last step: store it, and go on from it later.

        Values that wait are not in it.
        """
        with self._lock:
            return self._now()

    @property
    def ledger(self) -> Ledger:
        """What was spent so far."""
        return self.state.ledger


class InstantRelease(_Release):
    """Release a stream value by value.

    Args:
        model: What the adversary is assumed to know; full support. Under a `PeriodicChain` every
            value comes with its phase, unless it has it in turn.
        budget: What may leak: a `SIP` amount for every step, or a `Horizon`, `Window` or
            `Geometric` total. Under a `PerPeriod` total every value comes with the number of the
            period that it lies in: `release(value, period=day.at(moment))`.
        loss: What it costs to release one symbol when another is true.
        stream: Name of the stream.
        randomness: Coins; fresh ones from `secure()` unless given.
        state: Where to go on; a new stream if not given.
        options: Fields of `Plan`: `method`, `on_exhausted`, `on_unknown`, `purpose` (name a
            simulation to use `seeded()` coins) and `policy` (from `compile_policy`: a value then
            takes microseconds).

    Examples:
        >>> from sfumato.core.loss import hamming
        >>> from sfumato.models.markov import MarkovChain
        >>> chain = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
        >>> release = InstantRelease(chain, budget=SIP(0.5), loss=hamming(chain.alphabet))
        >>> private = [release(value) for value in [0, 0, 1, 1]]
        >>> release.ledger.spent[0] <= SIP(2.0)
        True
    """

    def __init__(
        self,
        model: Model | PeriodicChain,
        *,
        budget: Budget | SIP,
        loss: Loss | ArrayLike,
        stream: str = "stream",
        randomness: Randomness | None = None,
        state: StreamState | None = None,
        **options: Unpack[PlanOptions],
    ) -> None:
        losses = loss if isinstance(loss, Loss) else Loss("matrix", np.asarray(loss))
        plan = _plan(model, budget, losses, 1, options)
        if plan.in_batches:
            raise InvalidParameter("memory", plan.memory, "be 1 where values leave one by one")
        super().__init__(plan, stream, randomness, state)
        self._state = self._begun
        self._compiled: SingleStream | None = None
        if plan.by_fleet:
            plan.check_coins(self._randomness)
            self._compiled = SingleStream(plan, self._state)

    def __call__(
        self, value: object, phase: int | None = None, period: int | None = None
    ) -> Label | None:
        """Release one value; None when it was suppressed."""
        with self._lock:
            if self._compiled is not None and phase is None and period is None:
                # No event is made here: its guarantees would take longer than the release.
                place = self._quick(self._compiled, value)
                if place >= 0:
                    return self.plan.model.alphabet.labels[place]
            return self._slow(value, phase, period).released

    def step(self, value: object, phase: int | None = None, period: int | None = None) -> Event:
        """Release one value and say what it cost."""
        with self._lock:
            if self._compiled is not None and phase is None and period is None:
                place = self._quick(self._compiled, value)
                if place >= 0:
                    return self._compiled.event(place)
            return self._slow(value, phase, period)

    def _quick(self, compiled: SingleStream, value: object) -> int:
        place = self.plan.model.alphabet.place(value)
        return place if place < 0 else compiled.release(place, self._randomness)

    def _slow(self, value: object, phase: int | None, period: int | None) -> Event:
        now, when = self._now(), (phase, period)
        stepped = self.plan.step(now, [value], self._randomness, (), *when)
        return self._moved(*stepped)

    def skip(self, phase: int | None = None, period: int | None = None) -> Event:
        """Let a moment pass without a release."""
        with self._lock:
            return self._moved(*self.plan.skip(self._now(), 1, phase, period))

    def _moved(self, events: tuple[Event, ...], state: StreamState) -> Event:
        if self._compiled is not None:
            self._compiled.put(state)
        self._state = state
        return events[0]

    def over(self, values: Iterable[object]) -> Iterator[Event]:
        """Release many values, one by one, as they come."""
        return (self.step(value) for value in values)

    def _now(self) -> StreamState:
        return self._state if self._compiled is None else self._compiled.state()


class BatchedRelease(_Release):
    """Release a stream in batches: a value waits until its batch is complete.

    Args:
        model: What the adversary is assumed to know; full support.
        width: Values of a batch.
        budget: What may leak, in values: a `SIP` amount for every value, or a `Horizon`, `Window`
            or `Geometric` total. A batch may leak what its values could have leaked one by one.
        loss: What it costs to release one batch when another is true; a loss of single values
            adds up.
        stream: Name of the stream.
        randomness: Coins; fresh ones from `secure()` unless given.
        state: Where to go on; a new stream if not given.
        recalled: With a memory of more than one batch, the true values before that state.
        options: Fields of `Plan`: `memory`, `method`, `on_exhausted`, `on_unknown`, `purpose`,
            `listed` and `policy` (from `compile_policy(..., width=)`: no solver at run time,
            however large the batches; many streams are quickest in a `Fleet`).

    Examples:
        >>> from sfumato.core.loss import hamming
        >>> chain = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
        >>> release = BatchedRelease(chain, width=3, budget=SIP(0.5), loss=hamming(chain.alphabet))
        >>> [len(release.add(value)) for value in [0, 0, 1, 1]]
        [0, 0, 3, 0]
        >>> release.waiting, len(release.flush())
        (1, 1)
        >>> release.ledger.spent[0] <= SIP(2.0)
        True
    """

    def __init__(
        self,
        model: MarkovChain | PatternLibrary,
        *,
        width: int,
        budget: Budget | SIP,
        loss: BatchLoss | Loss | ArrayLike,
        stream: str = "stream",
        randomness: Randomness | None = None,
        state: StreamState | None = None,
        recalled: Sequence[object] = (),
        **options: Unpack[PlanOptions],
    ) -> None:
        losses = as_batch_loss(loss, len(model.alphabet))
        plan = _plan(model, budget, losses, width, options)
        super().__init__(plan, stream, randomness, state)
        # True values live here alone, never in a state: those that wait, and those recalled. The
        # three change together or, when Ctrl-C breaks in, not at all.
        self._at: _At = (self._begun, (), tuple(recalled))

    def add(self, value: object) -> tuple[Event, ...]:
        """Take one value; return the events of its batch when that is complete, else nothing.

        On an error the value is not taken, and those that waited go on waiting.
        """
        with self._lock:
            if self.plan.on_unknown is Fallback.REFUSE and value not in self.plan.model.alphabet:
                raise UnknownSymbol(len(self.plan.model.alphabet))
            state, waiting, recalled = self._at
            batch = (*waiting, value)
            if len(batch) == self.plan.width:
                return self._release(batch)
            self._at = state, batch, recalled
            return ()

    def flush(self) -> tuple[Event, ...]:
        """Release the values that wait as a shorter batch; at the end, or when time is up."""
        with self._lock:
            return self._release(self._at[1]) if self._at[1] else ()

    def over(self, values: Iterable[object]) -> Iterator[Event]:
        """Release many values as they come, and the last of them as a shorter batch."""
        for value in values:
            yield from self.add(value)
        yield from self.flush()

    def skip(self) -> tuple[Event, ...]:
        """Let a moment pass without a release; what waits must be flushed first."""
        with self._lock:
            if self.plan.memory > 1:
                raise InvalidParameter("memory", self.plan.memory, "be 1 to skip a moment")
            now, waiting, _ = self._at
            if waiting:
                what = f"{len(waiting)} values"
                raise InvalidParameter("waiting", what, "be flushed before a moment is skipped")
            events, state = self.plan.skip(now)
            self._at = state, (), ()
            return events

    def _release(self, batch: tuple[object, ...]) -> tuple[Event, ...]:
        state, _, recalled = self._at
        events, following = self.plan.step(state, batch, self._randomness, recalled)
        count = self.plan.recalled(following)
        self._at = following, (), (*recalled, *batch)[-count:] if count else ()
        return events

    @property
    def waiting(self) -> int:
        """How many values wait for their batch to be complete."""
        with self._lock:
            return len(self._at[1])

    def _now(self) -> StreamState:
        return self._at[0]
