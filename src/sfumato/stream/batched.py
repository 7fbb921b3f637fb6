"""Release whole batches of values: they wait for each other, and lose less.

`BatchedRelease` is a small object around a `BatchedPlan` and a state that keeps true values until
their batch is complete; they are in no state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from numpy.typing import ArrayLike

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
from sfumato.solver.design_methods import Method
from sfumato.solver.policy import Policy
from sfumato.stream.batched_plan import BatchedPlan
from sfumato.stream.partition.batch_design import LISTED
from sfumato.stream.partition.batch_loss import BatchLoss, as_batch_loss

_At: TypeAlias = tuple[StreamState, tuple[object, ...], tuple[object, ...]]


class BatchedRelease(Guarded):
    """Release a stream in batches: a value waits until its batch is complete.

    Args:
        model: What the adversary is assumed to know; full support.
        width: Values of a batch.
        budget: What may leak, in values: a `SIP` amount for every value, or a `Horizon`, `Window`
            or `Geometric` total. A batch may leak what its values could have leaked one by one.
        loss: What it costs to release one batch when another is true; a loss of single values
            adds up.
        memory: How many batches the channel looks at.
        method: How the channel of a batch is found; the optimum unless said otherwise.
        on_exhausted: What leaves when the budget is gone: refuse, suppress or repeat.
        on_unknown: What leaves for a batch with a value outside the alphabet.
        stream: Name of the stream.
        randomness: Coins; fresh ones from `secure()` unless given.
        state: Where to go on; a new stream if not given.
        recalled: With a memory of more than one batch, the true values before that state.
        purpose: Name a simulation to use `seeded()` coins.
        listed: Batches up to which each is a part of its own.
        policy: Channels from `compile_policy(..., width=)`: no solver at run time, however large
            the batches. Many streams are quickest in a `BatchedFleet`.

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
        memory: int = 1,
        method: Method | str = Method.OPTIMAL,
        on_exhausted: Fallback | str = Fallback.REFUSE,
        on_unknown: Fallback | str = Fallback.REFUSE,
        stream: str = "stream",
        randomness: Randomness | None = None,
        state: StreamState | None = None,
        recalled: Sequence[object] = (),
        purpose: Purpose | str = Purpose.RELEASE,
        listed: int = LISTED,
        policy: Policy | None = None,
    ) -> None:
        self.plan = BatchedPlan(
            model=model,
            budget=as_budget(budget),
            loss=as_batch_loss(loss, len(model.alphabet)),
            width=width,
            memory=memory,
            method=Method(method),
            on_exhausted=Fallback(on_exhausted),
            on_unknown=Fallback(on_unknown),
            purpose=Purpose(purpose),
            listed=listed,
            policy=policy,
        )
        self._randomness = secure() if randomness is None else randomness
        begun = self.plan.begin(stream) if state is None else state
        self.plan.check_own(begun)
        # True values live here alone, never in a state: those that wait, and those recalled. The
        # three change together or, when Ctrl-C breaks in, not at all.
        self._at: _At = (begun, (), tuple(recalled))

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
        kept = self.plan.recalled(following)
        self._at = following, (), (*recalled, *batch)[-kept:] if kept else ()
        return events

    @property
    def waiting(self) -> int:
        """How many values wait for their batch to be complete."""
        with self._lock:
            return len(self._at[1])

    @property
    def state(self) -> StreamState:
        """Where the stream stands after its last batch: store it, and go on from it later.

        Values that wait are not in it.
        """
        with self._lock:
            return self._at[0]

    @property
    def ledger(self) -> Ledger:
        """What was spent so far."""
        return self.state.ledger
