"""Events that come one by one from anywhere, and the replies to them: whatever the job.

A table is one input in one order, and one bad row ends it. A service has many askers: each event
gets a reply of its own, and a refusal of one says nothing to the others. A `LiveRun` answers the
events of one release in groups; every reply it returns may leave, for it is durable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

from sfumato.store.protocol import Answer


class Reason(StrEnum):
    """Why an event got no answer; nothing was drawn and nothing was charged for it.

    Attributes:
        VALUE: The value is not one of the alphabet, or not of the form that the release reads.
        BUDGET: The budget of the stream leaves nothing, and the rule is to refuse.
        ORDER: The event is earlier than the last one of its stream.
        CLOSED: The release was closed: whatever is new is answered by no node any more.
        UNSTORED: The store did not take the answer; asking again with the same id is safe.
    """

    VALUE = "value"
    BUDGET = "budget"
    ORDER = "order"
    CLOSED = "closed"
    UNSTORED = "unstored"


@dataclass(frozen=True, slots=True)
class Asked:
    """One event that asks for an answer.

    Attributes:
        id: What tells it from all others of its stream; chosen by whoever asks.
        stream: Whose value it is.
        value: The true value, as it came: text, a number, a list or a mapping of them. Held in
            memory alone, and in no message. None lets a moment pass, where the job knows that.
        time: When it was measured, if that is told.
    """

    id: str
    stream: str
    value: Any = field(repr=False)
    time: str | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """What may leave for an event.

    Attributes:
        answers: Its own answer, or those of the whole batch that it completed, in order.
        repeated: Whether they had left before: nothing was drawn for them now.
    """

    answers: tuple[Answer, ...]
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Waiting:
    """The event waits in memory for others of its batch: whoever asked keeps it until an answer.

    Attributes:
        missing: How many values the batch still lacks.
    """

    missing: int


@dataclass(frozen=True, slots=True)
class Refused:
    """No answer, and why; the text never quotes a value."""

    reason: Reason
    detail: str


Reply: TypeAlias = Answered | Waiting | Refused


@dataclass(frozen=True, slots=True)
class StreamAccount:
    """Where one stream stands, for whoever asks: public things of the store, and what follows.

    Attributes:
        answers: How many moments it has.
        leakage: What they cost under the guarantee of the job, in its unit.
        model_free: What they cost whatever the model.
        left: What the next answer may cost under the guarantee; None if the job knows no such sum.
        left_model_free: The same whatever the model; None if there is no cap.
        moments: How many more moments the budget is for; None if it has no end.
        time: When its last value was measured, if that was told.
    """

    answers: int
    leakage: float
    model_free: float
    left: float | None = None
    left_model_free: float | None = None
    moments: int | None = None
    time: str | None = None


class LiveRun(Protocol):
    """The events of one release as they come; safe in threads, refused in a forked child.

    What it holds in memory is a copy of what the store has: after any failure it is thrown away and
    read again.
    """

    def answer(self, events: Sequence[Asked]) -> list[Reply]:
        """A reply for each event, in order; all answers are durable when this returns.

        Values of one stream are taken in the order given. Nothing but the state of the store
        decides what an event may have: one that is refused changes nothing for the others. An event
        is answered once: whatever comes again under its id and stream has that answer, or waits,
        whatever its value. Else whoever may send could test guesses at what others sent.
        """
        ...

    def finish(self, stream: str) -> Answered | Refused | None:
        """Release what waits of a stream as a shorter batch; None if nothing waits."""
        ...

    def waiting(self) -> int:
        """How many events wait in memory for others of their batches."""
        ...

    @property
    def conflicts(self) -> int:
        """How many events came again with another value; for whoever runs it, and nobody else."""
        ...

    def account(self, stream: str) -> StreamAccount | None:
        """Where a stream stands, as the store has it; None if it never had an answer."""
        ...

    def close(self) -> None:
        """Forget what is held in memory; the store stays open."""
        ...
