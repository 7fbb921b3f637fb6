"""What a job tells a live run that steps one by one: how values are read, and its step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

from sfumato.store.ledgered_run import StateKind
from sfumato.store.live import StreamAccount
from sfumato.store.protocol import Released

State = TypeVar("State")


class Moment(Protocol):
    """A time that can be compared with others of its kind."""

    @property
    def text(self) -> str:
        """The one way to write it."""
        ...

    def before(self, other: Self, /) -> bool:
        """Whether it is earlier; an `Unreadable` if the two cannot be compared."""
        ...


class Left(NamedTuple):
    """What left at one moment of a stream; see `Answer`."""

    sequence: int
    outcome: str
    released: Released
    leakage: float
    model_free: float
    batch: int | None = None
    signal: int | None = None


class LiveJob(ABC, Generic[State]):
    """What a job knows: how its values are read, and its step.

    Attributes:
        kind: How its states are begun, read and counted.
        width: Values of a batch; those of a batch of one leave as they come.
        late: Whether events may go back in the time of their stream.
    """

    kind: StateKind[State]
    width: int = 1
    late: bool = False

    @abstractmethod
    def read(self, value: Any) -> Any:
        """A value as the step wants it, None for a moment that passes; an `Unreadable` if not."""

    @abstractmethod
    def written(self, value: Any) -> Released:
        """A value that was read, for the digest that tells a retry from other data."""

    @abstractmethod
    def time(self, text: str) -> Moment:
        """When a value was measured; an `Unreadable` if it cannot be read."""

    @abstractmethod
    def step(self, stream: str, state: State, values: Sequence[Any]) -> tuple[list[Left], State]:
        """Release the values of a batch, or let one moment pass for None.

        What it refuses it refuses before anything is drawn: `BudgetExceeded`, `UnknownSymbol`,
        `InvalidParameter` or `SolverFailed`.
        """

    def check(self, state: State) -> None:
        """Refuse a value before it waits, with `BudgetExceeded`, if nothing may leave any more."""

    @abstractmethod
    def account(self, state: State, account: StreamAccount) -> StreamAccount:
        """The account of a stream, with what is left in a state."""
