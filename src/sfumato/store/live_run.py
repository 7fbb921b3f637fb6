"""Live events of any job whose plan steps state by state: one after the other, committed together.

Values of a batch wait in memory until it is complete; what waits is in no store. What else is held
in memory is a copy of the store, thrown away after any failure.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from sfumato.core import checks
from sfumato.core.guard import Guarded, guarded
from sfumato.models.encoding import Unreadable
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
from sfumato.store.live_event import LiveEvent, last_told, read_event
from sfumato.store.live_intake import (
    CLOSED,
    EARLIER,
    REFUSALS,
    UNSTORED,
    Retries,
    last_time,
    own_reply,
    refusal,
    refused_names,
    report_failure,
    stored_account,
)
from sfumato.store.live_job import LiveJob, Moment
from sfumato.store.protocol import Answer, Input, Store
from sfumato.store.waiting_batches import WaitingBatches

State = TypeVar("State")
STATES_HELD = 100_000
"""States held in memory between two calls; more are read again from the store."""
VALUES_WAITING = 100_000
"""Values that may wait for others of their batches, of all streams together."""
SECONDS_WAITING = 900.0
"""How long a batch may wait for its other values before new events of others push it out."""
_FULL = Refused(
    Reason.UNSTORED, "too many values wait for others of their batches; ask again later"
)


@dataclass(slots=True)
class _Call(Generic[State]):
    """What one call has found so far; nothing of it has left yet."""

    replies: dict[int, Reply] = field(default_factory=dict)
    finished: Answered | Refused | None = None
    answers: dict[str, Answer] = field(default_factory=dict)
    events: dict[str, LiveEvent] = field(default_factory=dict)
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
        most_seconds: How long a batch waits; an older one is forgotten when events come, and its
            values are asked for again.
        clock: Seconds that never go back.
    """

    def __init__(
        self,
        store: Store,
        source: Input,
        job: LiveJob[State],
        *,
        most_states: int = STATES_HELD,
        most_waiting: int = VALUES_WAITING,
        most_seconds: float = SECONDS_WAITING,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._source, self._job = store, source, job
        self._most = checks.count("most_states", most_states)
        self._waiting = WaitingBatches(most_waiting)
        self._seconds, self._clock = checks.positive("most_seconds", most_seconds), clock
        self._retries = Retries(store, source)
        self._states: dict[str, tuple[State | None, Moment | None]] = {}
        self._unlooked: dict[str, int] = {}
        self._answered: int | None = source.answered

    @guarded
    def answer(self, events: Sequence[Asked]) -> list[Reply]:
        """A reply for each event, in order; all answers are durable when this returns."""
        call: _Call[State] = _Call()
        call.replies = refused_names([one.id for one in events], [one.stream for one in events])
        self._waiting.forget_before(self._clock() - self._seconds)
        read = self._read(events, call)
        if self._done(call, read):
            self._withdraw(call, read)
        return [own_reply(call.replies[row]) for row in range(len(events))]

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
        if not self._waiting.of(stream):
            return None
        call: _Call[State] = _Call()
        if not self._done(call, [], finish=stream):
            return UNSTORED
        return None if call.finished is None else own_reply(call.finished)

    @guarded
    def waiting(self) -> int:
        """How many events wait in memory for others of their batches."""
        return len(self._waiting)

    @property
    def conflicts(self) -> int:
        """How many events came again with another value."""
        return self._retries.conflicts

    def account(self, stream: str) -> StreamAccount | None:
        """Where a stream stands, as the store has it; None if it never had an answer."""
        found = stored_account(self._store, stream)
        if found is None:
            return None
        position, account = found
        return self._job.account(self._job.kind.read(position), account)

    @guarded
    def close(self) -> None:
        """Forget what is held in memory; the store stays open."""
        self._states, self._unlooked = {}, {}
        self._waiting.forget()

    # -- one call ---------------------------------------------------------------------------------

    def _read(self, events: Sequence[Asked], call: _Call[State]) -> list[LiveEvent]:
        """The events that have names, with what is wrong with them: an old id has its answer."""
        now, secret = self._clock(), self._source.secret
        return [
            read_event(self._job, secret, row, asked, now)
            for row, asked in enumerate(events)
            if row not in call.replies
        ]

    def _done(self, call: _Call[State], events: list[LiveEvent], finish: str | None = None) -> bool:
        """Answer events in one turn of the store; whether what was drawn is durable."""
        touched = [event.stream for event in events] if finish is None else [finish]
        before = self._waiting.copied(dict.fromkeys(touched))
        try:
            with self._store.turn():
                if self._store.ended:
                    self._end(call, events)
                else:
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
                # Whatever was decided in this turn rests on draws that are not stored.
                if not isinstance(reply, Answered) or event.id in call.answers:
                    call.replies[event.row] = event.bad or UNSTORED
            return False
        if self._answered is not None:
            self._answered += len(call.answers)
        for name, state in call.states.items():
            self._states[name] = state, call.times[name]
        return True

    def _load(self, streams: list[str]) -> None:
        """Read where streams stand that are not in memory, or may have been moved by others."""
        if self._store.shared or len(self._states) + len(streams) > self._most:
            self._states, self._unlooked = {}, {}
        strange = [name for name in streams if name not in self._states]
        for name, end in zip(strange, self._store.ends(strange), strict=True):
            if end is None:
                self._states[name] = None, None
            else:
                position, last = end
                when = None if last.time is None else self._job.time(last.time)
                self._states[name] = self._job.kind.read(position), when
                if when is None:
                    self._unlooked[name] = last.sequence

    def _sort(self, call: _Call[State], events: list[LiveEvent]) -> None:
        """Reply to each event: from the store, from memory, or by a new draw."""
        earlier = self._store.answers([event.id for event in events])
        for event in events:
            before = self._waiting.event(event.id) or call.events.get(event.id)
            if event.id in earlier:
                reply = self._old(earlier[event.id], event)
            elif before is not None:
                reply = self._again(call, before, event)
            else:
                reply = event.bad or self._new(call, event)
            call.replies[event.row] = reply

    def _end(self, call: _Call[State], events: list[LiveEvent]) -> None:
        """Tell again what was answered, and let go of what waits: it will leave no more."""
        earlier = self._store.answers([event.id for event in events])
        for event in events:
            old = earlier.get(event.id)
            call.replies[event.row] = CLOSED if old is None else self._old(old, event)
        call.finished = CLOSED
        self._waiting.forget()

    def _again(self, call: _Call[State], before: LiveEvent, event: LiveEvent) -> Reply:
        """The reply to an event that waits, or was drawn in this call: whatever its value is."""
        if event.tag is None or not hmac.compare_digest(before.tag or b"", event.tag):
            self._retries.count()
        if event.id in call.answers:
            return Answered((call.answers[event.id],), repeated=True)
        return self._missing(event.stream)

    def _old(self, answer: Answer, event: LiveEvent) -> Reply:
        """The reply to an event that was answered before: of a whole batch to its last one."""
        self._retries.compare(answer, event.tag)
        if answer.batch is None:
            return Answered((answer,), repeated=True)
        batch = []
        for other in self._store.rest(answer.stream, answer.batch):
            if other.batch != answer.batch:
                break
            batch.append(other)
        told = batch if batch[-1].id == answer.id else [answer]
        return Answered(tuple(told), repeated=True)

    def _new(self, call: _Call[State], event: LiveEvent) -> Reply:
        """Let an event wait, or release it and what waited for it."""
        refused = self._refused(call, event)
        if refused is not None:
            return refused
        if event.value is None:
            return self._pass(call, event)
        short = len(self._waiting.of(event.stream)) + 1 < self._job.width
        if short and self._waiting.full:
            return _FULL
        self._waiting.add(event)
        if short:
            return self._missing(event.stream)
        return self._complete(call, event.stream)

    def _refused(self, call: _Call[State], event: LiveEvent) -> Refused | None:
        """Why an event may not be the next of its stream; None if it may."""
        try:
            back = event.time is not None and self._back(call, event, event.time)
        except Unreadable as problem:
            return Refused(Reason.ORDER, f"the time {problem}")
        if back and not self._job.late:
            return EARLIER
        try:
            self._job.check(self._state(call, event.stream))
        except REFUSALS as problem:
            return refusal(problem)
        return None

    def _back(self, call: _Call[State], event: LiveEvent, when: Moment) -> bool:
        """Whether a time lies before the last one that was told of a stream."""
        stream = event.stream
        last = last_told(self._waiting.of(stream), self._told(call, stream))
        if last is None and stream in self._unlooked:
            # The last answer of a stream need not have a time; only who tells one makes us look.
            found = last_time(self._store, stream, self._unlooked.pop(stream))
            last = None if found is None else self._job.time(found)
            self._states[stream] = self._states[stream][0], last
        return last is not None and when.before(last)

    def _told(self, call: _Call[State], stream: str) -> Moment | None:
        """The last time of a stream in this call, or before it."""
        told = call.times.get(stream)
        return self._states[stream][1] if told is None else told

    def _state(self, call: _Call[State], stream: str) -> State:
        state = call.states.get(stream)
        if state is None:
            state = self._states[stream][0]
        return self._job.kind.begin(stream) if state is None else state

    def _pass(self, call: _Call[State], event: LiveEvent) -> Reply:
        """Let a moment pass; what waited before it leaves first, as a shorter batch."""
        before: tuple[Answer, ...] = ()
        if self._waiting.of(event.stream):
            reply = self._complete(call, event.stream)
            if isinstance(reply, Refused):
                return reply
            before = reply.answers
        passed = self._drawn(call, event.stream, [event])
        return passed if isinstance(passed, Refused) else Answered((*before, *passed))

    def _complete(self, call: _Call[State], stream: str) -> Answered | Refused:
        """Release the batch of a stream; if it is refused, none of its values waits any more."""
        drawn = self._drawn(call, stream, self._waiting.take(stream))
        return drawn if isinstance(drawn, Refused) else Answered(tuple(drawn))

    def _drawn(
        self, call: _Call[State], stream: str, batch: list[LiveEvent]
    ) -> list[Answer] | Refused:
        """One step of a stream; a refusal changes nothing."""
        if self._answered is None:
            # Nobody knows whether the commit before is stored: places are counted anew.
            self._answered = self._store.inputs().get(self._source.label, 0)
        try:
            state = self._state(call, stream)
            left, after = self._job.step(stream, state, [event.value for event in batch])
        except REFUSALS as problem:
            return refusal(problem)
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
                event.tag or b"",
                one.signal,
            )
            for place, (event, one) in enumerate(zip(batch, left, strict=True), start=1)
        ]
        call.answers |= {answer.id: answer for answer in answers}
        call.events |= {event.id: event for event in batch}
        told = last_told(batch, self._told(call, stream))
        call.states[stream], call.times[stream] = after, told
        return answers

    def _missing(self, stream: str) -> Waiting:
        return Waiting(self._job.width - len(self._waiting.of(stream)))

    def _commit(self, call: _Call[State]) -> None:
        if call.answers:
            kind = self._job.kind
            positions = [kind.position(name, state) for name, state in call.states.items()]
            self._store.commit(call.answers.values(), positions)

    def _undo(self, call: _Call[State], before: dict[str, list[LiveEvent]]) -> None:
        """Throw away what was read, and set back what waits; what was drawn never left."""
        self._states, self._unlooked, self._answered = {}, {}, None
        self._waiting.put_back(before, call.states)

    def _withdraw(self, call: _Call[State], events: list[LiveEvent]) -> None:
        """Refuse what would wait here while another node may take the rest of its batch."""
        if not self._store.shared or not self._waiting:
            return
        rule = f"come whole in one request, {self._job.width} values of a stream together"
        refused = Refused(Reason.VALUE, f"with several nodes a batch must {rule}")
        for event in events:
            waits = self._waiting.event(event.id) is not None
            if waits and isinstance(call.replies[event.row], Waiting):
                call.replies[event.row] = refused
        self._waiting.forget()
