"""Live events of any job whose plan steps state by state: one after the other, committed together.

Values of a batch wait in memory until it is complete; what waits is in no store. What else is held
in memory is a copy of the store, thrown away after any failure.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from sfumato.core import checks
from sfumato.core.errors import BudgetExceeded, InvalidParameter, SolverFailed, UnknownSymbol
from sfumato.core.guard import Guarded, guarded
from sfumato.models.encoding import Unreadable
from sfumato.store.chain import value_tag
from sfumato.store.live import (
    Answered,
    Asked,
    Reason,
    Refused,
    Reply,
    StreamAccount,
    Waiting,
)
from sfumato.store.live_columns import ReplyColumns
from sfumato.store.live_intake import (
    EARLIER,
    NO_BUDGET,
    NO_CHANNEL,
    OTHER_STREAM,
    OTHER_VALUE,
    UNSTORED,
    Retries,
    bad_time,
    bad_value,
    event_time,
    refused_names,
    report_failure,
)
from sfumato.store.live_job import LiveJob, Moment
from sfumato.store.protocol import Answer, Input, Store

State = TypeVar("State")
STATES_HELD = 100_000
"""States held in memory between two calls; more are read again from the store."""
VALUES_WAITING = 100_000
"""Values that may wait for others of their batches, of all streams together."""
_REFUSALS = (BudgetExceeded, SolverFailed, UnknownSymbol, InvalidParameter)
_FULL = Refused(
    Reason.UNSTORED, "too many values wait for others of their batches; ask again later"
)


@dataclass(frozen=True, slots=True)
class _Event:
    """An event that was read."""

    row: int
    id: str
    stream: str
    value: Any = field(repr=False)
    time: Moment | None
    tag: bytes = field(repr=False)


@dataclass(slots=True)
class _Call(Generic[State]):
    """What one call has found so far; nothing of it has left yet."""

    replies: dict[int, Reply] = field(default_factory=dict)
    finished: Answered | Refused | None = None
    answers: dict[str, Answer] = field(default_factory=dict)
    events: dict[str, _Event] = field(default_factory=dict)
    states: dict[str, State] = field(default_factory=dict)
    times: dict[str, Moment | None] = field(default_factory=dict)


class SteppedRun(Guarded, Generic[State]):
    """The live events of one release, one after the other; a `LiveRun`.

    Args:
        store: Where answers are kept.
        source: The input that the events are of; see `live_intake.begun`.
        job: How values are read and released.
        most_states: How many states are held in memory.
        most_waiting: How many values may wait for others of their batches.
    """

    def __init__(
        self,
        store: Store,
        source: Input,
        job: LiveJob[State],
        *,
        most_states: int = STATES_HELD,
        most_waiting: int = VALUES_WAITING,
    ) -> None:
        self._store, self._source, self._job = store, source, job
        self._most = checks.count("most_states", most_states)
        self._room = checks.count("most_waiting", most_waiting)
        self._retries = Retries(store, source)
        self._states: dict[str, tuple[State | None, Moment | None]] = {}
        self._batches: dict[str, list[_Event]] = {}
        self._held: dict[str, _Event] = {}
        self._answered = source.answered

    @guarded
    def answer(self, events: Sequence[Asked]) -> list[Reply]:
        """A reply for each event, in order; all answers are durable when this returns."""
        call: _Call[State] = _Call()
        call.replies = refused_names([one.id for one in events], [one.stream for one in events])
        read = self._read(events, call)
        if self._done(call, read):
            self._withdraw(call, read)
        return [call.replies[row] for row in range(len(events))]

    def answer_columns(
        self,
        ids: Sequence[str],
        streams: Sequence[str],
        values: Sequence[Any],
        times: Sequence[str | None] | None = None,
    ) -> ReplyColumns:
        """The same for events by columns: see `Asked`."""
        told = [None] * len(ids) if times is None else times
        events = [Asked(*one) for one in zip(ids, streams, values, told, strict=True)]
        return ReplyColumns(len(events), others=dict(enumerate(self.answer(events))))

    @guarded
    def finish(self, stream: str) -> Answered | Refused | None:
        """Release what waits of a stream as a shorter batch; None if nothing waits."""
        if stream not in self._batches:
            return None
        call: _Call[State] = _Call()
        return call.finished if self._done(call, [], finish=stream) else UNSTORED

    @guarded
    def waiting(self) -> int:
        """How many events wait in memory for others of their batches."""
        return len(self._held)

    def account(self, stream: str) -> StreamAccount | None:
        """Where a stream stands, as the store has it; None if it never had an answer."""
        (end,) = self._store.ends([stream])
        if end is None:
            return None
        position, last = end
        told = (position.sequence, position.leakage, position.model_free)
        state = self._job.kind.read(position)
        return self._job.account(state, StreamAccount(*told, time=last.time))

    @guarded
    def close(self) -> None:
        """Forget what is held in memory; the store stays open."""
        self._states, self._batches, self._held = {}, {}, {}

    # -- one call ---------------------------------------------------------------------------------

    def _read(self, events: Sequence[Asked], call: _Call[State]) -> list[_Event]:
        """The events that can be read; the others are refused."""
        read, job = [], self._job
        for row, asked in enumerate(events):
            if row in call.replies:
                continue
            try:
                value = job.read(asked.value)
            except Unreadable as problem:
                call.replies[row] = bad_value(problem)
                continue
            try:
                time = event_time(asked.time, job.time)
            except Unreadable as problem:
                call.replies[row] = bad_time(problem)
                continue
            named = (asked.id, asked.stream)
            tag = value_tag(self._source.secret, *named, job.written(value))
            read.append(_Event(row, *named, value, time, tag))
        return read

    def _done(self, call: _Call[State], events: list[_Event], finish: str | None = None) -> bool:
        """Answer events in one turn of the store; whether what was drawn is durable."""
        touched = dict.fromkeys([event.stream for event in events] if finish is None else [finish])
        before = {name: [*self._batches.get(name, ())] for name in touched}
        try:
            with self._store.turn():
                self._load(list(before))
                self._sort(call, events)
                if finish is not None:
                    call.finished = self._complete(call, finish)
                self._commit(call)
        except BaseException as problem:
            self._undo(call, before)
            if not isinstance(problem, Exception):
                raise
            report_failure(problem)
            for event in events:
                reply = call.replies.get(event.row)
                # What was answered in this call is not stored, also where it was asked for twice.
                old = isinstance(reply, Answered) and event.id not in call.answers
                if not (old or isinstance(reply, Refused)):
                    call.replies[event.row] = UNSTORED
            return False
        self._answered += len(call.answers)
        for name, state in call.states.items():
            self._states[name] = state, call.times[name]
        return True

    def _load(self, streams: list[str]) -> None:
        """Read where streams stand that are not in memory, or may have been moved by others."""
        if self._store.shared or len(self._states) + len(streams) > self._most:
            self._states = {}
        strange = [name for name in streams if name not in self._states]
        for name, end in zip(strange, self._store.ends(strange), strict=True):
            if end is None:
                self._states[name] = None, None
            else:
                position, last = end
                time = None if last.time is None else self._job.time(last.time)
                self._states[name] = self._job.kind.read(position), time

    def _sort(self, call: _Call[State], events: list[_Event]) -> None:
        """Reply to each event: from the store, from memory, or by a new draw."""
        earlier = self._store.answers([event.id for event in events])
        for event in events:
            before = self._held.get(event.id) or call.events.get(event.id)
            if event.id in earlier:
                reply = self._old(earlier[event.id], event)
            elif before is None:
                reply = self._new(call, event)
            elif before.stream != event.stream:
                reply = OTHER_STREAM
            elif not hmac.compare_digest(before.tag, event.tag):
                reply = OTHER_VALUE
            elif event.id in call.answers:
                reply = Answered((call.answers[event.id],), repeated=True)
            else:
                reply = self._missing(event.stream)
            call.replies[event.row] = reply

    def _old(self, answer: Answer, event: _Event) -> Reply:
        """The reply to an event that was answered before: of a whole batch to its last one."""
        refused = self._retries.check(answer, event.stream, event.tag)
        if refused is not None:
            return refused
        if answer.batch is None:
            return Answered((answer,), repeated=True)
        batch = []
        for other in self._store.rest(answer.stream, answer.batch):
            if other.batch != answer.batch:
                break
            batch.append(other)
        told = batch if batch[-1].id == answer.id else [answer]
        return Answered(tuple(told), repeated=True)

    def _new(self, call: _Call[State], event: _Event) -> Reply:
        """Let an event wait, or release it and what waited for it."""
        refused = self._refused(call, event)
        if refused is not None:
            return refused
        if event.value is None:
            return self._pass(call, event)
        if self._job.width > 1 and len(self._held) >= self._room:
            return _FULL
        self._batches.setdefault(event.stream, []).append(event)
        self._held[event.id] = event
        if len(self._batches[event.stream]) < self._job.width:
            return self._missing(event.stream)
        return self._complete(call, event.stream)

    def _refused(self, call: _Call[State], event: _Event) -> Refused | None:
        """Why an event may not be the next of its stream; None if it may."""
        last = call.times.get(event.stream, self._states[event.stream][1])
        if waiting := self._batches.get(event.stream):
            last = waiting[-1].time
        try:
            back = event.time is not None and last is not None and event.time.before(last)
        except Unreadable as problem:
            return Refused(Reason.ORDER, f"the time {problem}")
        if back and not self._job.late:
            return EARLIER
        try:
            self._job.check(self._state(call, event.stream))
        except _REFUSALS as problem:
            return _refusal(problem)
        return None

    def _state(self, call: _Call[State], stream: str) -> State:
        state = call.states.get(stream)
        if state is None:
            state = self._states[stream][0]
        return self._job.kind.begin(stream) if state is None else state

    def _pass(self, call: _Call[State], event: _Event) -> Reply:
        """Let a moment pass; what waited before it leaves first, as a shorter batch."""
        before: tuple[Answer, ...] = ()
        if event.stream in self._batches:
            reply = self._complete(call, event.stream)
            if isinstance(reply, Refused):
                return reply
            before = reply.answers
        passed = self._drawn(call, event.stream, [event])
        return passed if isinstance(passed, Refused) else Answered((*before, *passed))

    def _complete(self, call: _Call[State], stream: str) -> Answered | Refused:
        """Release the batch of a stream; if it is refused, none of its values waits any more."""
        batch = self._batches.pop(stream)
        for event in batch:
            del self._held[event.id]
        drawn = self._drawn(call, stream, batch)
        return drawn if isinstance(drawn, Refused) else Answered(tuple(drawn))

    def _drawn(
        self, call: _Call[State], stream: str, batch: list[_Event]
    ) -> list[Answer] | Refused:
        """One step of a stream; a refusal changes nothing."""
        try:
            state = self._state(call, stream)
            left, after = self._job.step(stream, state, [event.value for event in batch])
        except _REFUSALS as problem:
            return _refusal(problem)
        answers = [
            Answer(
                event.id,
                self._source.label,
                self._answered + len(call.answers) + place,
                stream,
                one.sequence,
                one.outcome,
                one.released,
                one.leakage,
                one.model_free,
                one.batch,
                None if event.time is None else event.time.text,
                event.tag,
                one.signal,
            )
            for place, (event, one) in enumerate(zip(batch, left, strict=True), start=1)
        ]
        call.answers |= {answer.id: answer for answer in answers}
        call.events |= {event.id: event for event in batch}
        call.states[stream], call.times[stream] = after, batch[-1].time
        return answers

    def _missing(self, stream: str) -> Waiting:
        return Waiting(self._job.width - len(self._batches[stream]))

    def _commit(self, call: _Call[State]) -> None:
        if call.answers:
            kind = self._job.kind
            positions = [kind.position(name, state) for name, state in call.states.items()]
            self._store.commit(call.answers.values(), positions)

    def _undo(self, call: _Call[State], before: dict[str, list[_Event]]) -> None:
        """Throw away what was read, and set back what waits; what was drawn never left."""
        self._states = {}
        for stream, waited in before.items():
            for event in self._batches.pop(stream, ()):
                self._held.pop(event.id, None)
            # Of a batch that was drawn nobody knows whether it is stored: it is asked for again.
            if waited and stream not in call.states:
                self._batches[stream] = waited
                self._held |= {event.id: event for event in waited}

    def _withdraw(self, call: _Call[State], events: list[_Event]) -> None:
        """Refuse what would wait here while another node may take the rest of its batch."""
        if not self._store.shared or not self._held:
            return
        rule = f"come whole in one request, {self._job.width} values of a stream together"
        refused = Refused(Reason.VALUE, f"with several nodes a batch must {rule}")
        for event in events:
            if event.id in self._held and isinstance(call.replies[event.row], Waiting):
                call.replies[event.row] = refused
        self._batches, self._held = {}, {}


def _refusal(problem: Exception) -> Refused:
    """Why a step was refused, without what was given."""
    match problem:
        case BudgetExceeded():
            return NO_BUDGET
        case SolverFailed():
            return NO_CHANNEL
        case InvalidParameter():
            return Refused(Reason.VALUE, f"{problem.name} must {problem.rule}")
        case _:
            return Refused(Reason.VALUE, f"the {problem}")
