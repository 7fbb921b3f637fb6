"""One pass over a source, whatever the job: what was answered stays, what is new is committed.

A job of its own kind of state uses it so:

```
kind = StateKind(SeriesState, begin=..., sequence=lambda s: s.time, spent=lambda s: (0.0, 0.0))
with SqliteStore(path, method.fingerprint, job=JOB, rules=document) as store:
    run = LedgeredRun(store, store.begin(name, Identity.TIME, again), kind)
    for rows in groups:
        earlier = run.earlier([row.id for row in rows])
        with run.group() as group:          # committed when the block ends, also by an error
            for row in rows:
                if row.id in earlier:
                    run.check_retry(earlier[row.id], row.stream, row.place, run.tag(...))
                else:
                    events, state = plan.step(group.state(row.stream), row.value, coins)
                    group.add([answers of these events], row.stream, state)
        ... only now may the answers leave
    run.check_complete()                    # at the end of an input that was resumed
```
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from sfumato.core.errors import CorruptData
from sfumato.store.chain import value_tag
from sfumato.store.codec import from_bytes, to_bytes
from sfumato.store.protocol import (
    Answer,
    Identity,
    Input,
    LedgerMismatch,
    Position,
    Released,
    Store,
)

State = TypeVar("State")

_STATES_HELD = 100_000
"""States held in memory between two groups; more are read again from the store."""


@dataclass(frozen=True, slots=True)
class StateKind(Generic[State]):
    """How the states of a job are begun, read and counted.

    Attributes:
        type: Their type: what stored bytes are read as.
        begin: The state of a stream before its first answer.
        sequence: How many answers a stream has that stands there.
        spent: What it cost so far: under the guarantee of the job, and whatever the model.
    """

    type: type[State]
    begin: Callable[[str], State]
    sequence: Callable[[State], int]
    spent: Callable[[State], tuple[float, float]]

    def read(self, position: Position) -> State:
        """The state of a position.

        Raises:
            CorruptData: If it is no such state, or says another spend than the position.
        """
        state = from_bytes(position.state, self.type)
        told = (position.sequence, (position.leakage, position.model_free))
        if told != (self.sequence(state), self.spent(state)):
            raise CorruptData(
                "the ledger was tampered with or damaged: what stream "
                f"{position.stream!r} spent is not what its state says"
            )
        return state

    def position(self, stream: str, state: State) -> Position:
        """Where a stream stands in that state, as a store keeps it."""
        return Position(stream, self.sequence(state), *self.spent(state), to_bytes(state))


class HeldStreams(Protocol[State]):
    """The streams of one run: where they stand, and which of them had answers in it."""

    def __len__(self) -> int:
        """How many streams had answers in this run, new or old."""
        ...

    def names(self) -> Iterable[str]:
        """The streams that had answers in this run, and perhaps others that it asked for."""
        ...

    def state(self, stream: str) -> State | None:
        """Where a stream stands; None if the store, or a new beginning, must tell."""
        ...

    def began(self, stream: str) -> int | None:
        """The first moment of a stream that was answered in this run."""
        ...

    def take(self, answers: Sequence[Answer], states: Mapping[str, State]) -> None:
        """What was committed just now: new answers, and where their streams stand."""
        ...

    def repeat(self, stream: str) -> None:
        """A stream has got an old answer."""
        ...

    def repeated(self) -> Iterable[str]:
        """The streams that have got old answers."""
        ...


class _HeldByName(Generic[State]):
    """The streams of a run by their names."""

    def __init__(self) -> None:
        self._states: dict[str, State] = {}
        self._began: dict[str, int] = {}
        self._old: set[str] = set()

    def __len__(self) -> int:
        return len({*self.names()})

    def names(self) -> Iterable[str]:
        return self._began.keys() | self._old

    def state(self, stream: str) -> State | None:
        return self._states.get(stream)

    def began(self, stream: str) -> int | None:
        return self._began.get(stream)

    def take(self, answers: Sequence[Answer], states: Mapping[str, State]) -> None:
        for answer in answers:
            self._began.setdefault(answer.stream, answer.sequence)
        if len(self._states) + len(states) > _STATES_HELD:
            self._states.clear()
        self._states.update(states)

    def repeat(self, stream: str) -> None:
        self._old.add(stream)

    def repeated(self) -> Iterable[str]:
        return self._old


class Group(Generic[State]):
    """Answers and states that will be committed together."""

    def __init__(self, run: LedgeredRun[State]) -> None:
        self._run = run
        self.answers: list[Answer] = []
        self.states: dict[str, State] = {}

    def state(self, stream: str) -> State:
        """Where a stream stands, what is not yet committed included."""
        state = self.states.get(stream)
        return self._run.state(stream) if state is None else state

    def add(self, answers: Iterable[Answer], stream: str, state: State) -> None:
        """Answers of one stream, and the state after them."""
        self.answers += answers
        self.states[stream] = state


class LedgeredRun(Generic[State]):
    """One pass over a source: answers group by group, each committed before it leaves.

    Attributes:
        source: The input that is answered.
        repeated: Rows that had been answered before; their noise was not drawn again.
        answered: Rows that were answered anew.
        largest: Largest leakage of a stream that was answered in this run, and the largest that
            holds whatever the model.
    """

    def __init__(
        self,
        store: Store,
        source: Input,
        kind: StateKind[State],
        held: HeldStreams[State] | None = None,
    ) -> None:
        self.source = source
        self.repeated = self.answered = 0
        self._store, self._kind = store, kind
        self._identity = Identity(store.front.identity or Identity.ROW)
        self._held = _HeldByName[State]() if held is None else held
        self._largest = (0.0, 0.0)
        self._comparable: dict[str, bool] = {}

    @property
    def streams(self) -> int:
        """How many streams had answers in this run, new or old."""
        return len(self._held)

    def names(self) -> Iterable[str]:
        """The streams that had answers in this run, and perhaps others that it asked for."""
        return self._held.names()

    def begun(self, streams: Sequence[str]) -> set[str]:
        """Which of some streams have answers in the store, unchecked."""
        return self._store.begun(streams)

    def earlier(self, ids: Sequence[str]) -> dict[str, Answer]:
        """The answers given before, by event id."""
        return self._store.answers(ids)

    def tag(self, id_: str, stream: str, value: Released) -> bytes:
        """Keyed digest of the true value of an event."""
        return value_tag(self.source.secret, id_, stream, value)

    def state(self, stream: str) -> State:
        """Where a stream stands: as it was left, or at its beginning.

        Raises:
            CorruptData: If what is stored is not what the last commit stored.
        """
        held = self._held.state(stream)
        if held is not None:
            return held
        (stored,) = self.stored([stream])
        return self._kind.begin(stream) if stored is None else stored[0]

    def stored(self, streams: Sequence[str]) -> list[tuple[State, str | None] | None]:
        """Where the store says that streams stand, and the times of their last values, if known.

        None stands for streams that never released anything.

        Raises:
            CorruptData: If what is stored is not what the last commit stored.
        """
        ends = self._store.ends(streams)
        return [None if end is None else (self._kind.read(end[0]), end[1].time) for end in ends]

    @contextmanager
    def group(self) -> Iterator[Group[State]]:
        """What is added in the block is committed at its end, also when a later row is refused."""
        group = Group(self)
        try:
            yield group
        finally:
            self._commit(group)

    def _commit(self, group: Group[State]) -> None:
        if not group.states:
            return
        positions = []
        for stream, state in group.states.items():
            spent = self._kind.spent(state)
            positions.append(self._kind.position(stream, state))
            self._largest = max(self._largest[0], spent[0]), max(self._largest[1], spent[1])
        self._store.commit(group.answers, positions)
        self.answered += len(group.answers)
        self._held.take(group.answers, group.states)

    def committed(self, count: int) -> str:
        """Words for what became of the answers of a run that ends before its input does."""
        if not self._store.lasting:
            return f"{count} rows were answered before it"
        return (
            f"{count} rows were answered before it: they are charged and stay in the ledger (see "
            "`sfumato ledger export`)"
        )

    def answered_here(self, answer: Answer) -> bool:
        """Whether an answer was given in this very run."""
        began = self._held.began(answer.stream)
        return began is not None and answer.sequence >= began

    def check_retry(self, answer: Answer, stream: str, tag: bytes) -> bool:
        """Count a row that was answered before, and see whether it may have the old answer.

        Returns:
            Whether its value could be compared: the key file of the run before is there.

        Raises:
            LedgerMismatch: If it is no retry: another value, or another stream, under an old id.
        """
        by_row = self._identity is Identity.ROW
        if answer.stream != stream and not by_row:
            raise LedgerMismatch("an event id must not occur in two streams")
        comparable = self.comparable(answer.source)
        same = hmac.compare_digest(answer.tag, tag) and answer.stream == stream
        if comparable and not same:
            raise LedgerMismatch(self._other_value())
        self.repeated += 1
        self._held.repeat(stream)
        return comparable

    def comparable(self, source: str) -> bool:
        """Whether values of an input can be compared with those of this one."""
        if source not in self._comparable:
            self._comparable[source] = self._store.compared(source, self.source.secret)
        return self._comparable[source]

    def _other_value(self) -> str:
        if self._identity is Identity.ROW:
            return (
                "the row is not the one that was answered before: --resume is for the same input "
                "once more; for new data use --append"
            )
        what = "event id" if self._identity is Identity.EVENT else "time of this stream"
        return (
            f"this {what} was answered before, for another value; an event is answered once, so "
            f"give the value {'an id' if what == 'event id' else 'a time'} of its own"
        )

    def last_time(self, stream: str) -> str | None:
        """When the last value of a stream was measured, if it is known."""
        (end,) = self._store.ends([stream])
        return None if end is None else end[1].time

    def check_complete(self) -> None:
        """At the end of an input that was resumed: refuse one that lacks rows.

        Raises:
            LedgerMismatch: If rows that were answered before are not there.
        """
        if self.repeated < self.source.answered:
            raise LedgerMismatch(
                f"{self.source.answered} of its rows were answered before, but only "
                f"{self.repeated} of them are there: --resume is for the same input once more"
            )

    @property
    def largest(self) -> tuple[float, float]:
        """The largest leakages, those of streams that had old answers included."""
        spent = [self._largest]
        spent += (self._kind.spent(self.state(stream)) for stream in self._held.repeated())
        return max(one[0] for one in spent), max(one[1] for one in spent)
