"""A walk along streams, files and the ledger: what the plan must have done, row by row."""

from __future__ import annotations

import contextlib
from array import array
from collections import Counter
from collections.abc import MutableMapping, Sequence
from typing import Any

import numpy as np

from sfumato.core.errors import InvalidParameter, UnknownSymbol
from sfumato.core.events import OUTCOMES, Event, Outcome
from sfumato.core.state import StreamState
from sfumato.models.encoding import Unreadable
from sfumato.models.stream_model import StreamModel
from sfumato.stream.audit_checks import Check, CheckedBatch
from sfumato.stream.audit_ledger import Coverage, LedgerSide, When, event_of
from sfumato.stream.audit_report import AuditReport, Kind, StreamAudit
from sfumato.stream.audit_rows import (
    AuditRow,
    differences,
    fingerprints,
    misspelled,
    read_event,
)
from sfumato.stream.learning_plan import signal_column
from sfumato.stream.plan import Observed, Plan
from sfumato.stream.true_values import Truth
from sfumato.stream.truth_reader import Truths
from sfumato.tables.batches import Batch
from sfumato.tables.cells import Time
from sfumato.tables.readers import Chunk

_OPEN = (Outcome.RELEASED, Outcome.SKIPPED)
"""What does not look like a value outside the alphabet."""
_BROKEN = (InvalidParameter, UnknownSymbol, Unreadable)


class Walk:
    """A walk along streams, files and the ledger, batch by batch; a value is a batch of one.

    Rows of a stream are held until their batch is complete, or the next one begins.

    Attributes:
        report: What was found.
        ledger: What the files are compared with, if anything.
        repeats_allowed: Whether rows of a file may come after later ones of their stream.
        file_rows: Rows of the current file.
        file_streams: The streams of the current file.
        when: What follows from the times of rows.
        timed: Whether checks are told the times of values.
    """

    def __init__(
        self,
        model: StreamModel,
        plan: Plan,
        report: AuditReport,
        checks: Sequence[Check],
        truths: Truths | None = None,
        *,
        skips: bool = False,
        only: frozenset[str] | None = None,
        states: MutableMapping[str, StreamState] | None = None,
    ) -> None:
        self._model, self._plan, self._checks = model, plan, checks
        self._truths, self._skips, self._only = truths, skips, only
        self._signal = signal_column(plan) or "signal"
        self._text, self.file_rows = True, 0
        self.file_streams: set[str] = set()
        self.report = report
        self.ledger: LedgerSide | None = None
        self.repeats_allowed = self.timed = False
        self.when = When.under(model.cycle, plan.period)
        self._time: str | None = None
        self._times: dict[str, Time] = {}
        self._held: dict[str, list[tuple[AuditRow, Truth | None]]] = {}
        self._states: MutableMapping[str, StreamState] = {} if states is None else states
        self._began: dict[str, int] = {}
        self._last_here: dict[str, int] = {}
        self._fingerprints: dict[str, array[int]] = {}
        self._may_recur = False
        self._lost: dict[str, str] = {}
        self._lost_in_ledger: set[str] = set()
        self._unverifiable: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()

    def begin(self, *, text: bool, recurs: bool = True, time: str | None = None) -> None:
        """Begin a file; what others said before it may be said again in it.

        Args:
            text: Whether its cells are texts.
            recurs: Whether anything may be said again that it says: by itself, or by files to come.
            time: The column that phases follow from, of the model or of what is compared, or
                periods of the budget.
        """
        self._time = time
        self._text, self.file_rows, self.file_streams = text, 0, set()
        self._last_here = {}
        self._may_recur = recurs and self.ledger is None
        self._began = {stream: state.sequence for stream, state in self._states.items()}

    def take(self, rows: Batch | Chunk) -> None:
        """Take successive rows."""
        chunk = rows.chunk() if isinstance(rows, Batch) else rows
        for offset in range(len(chunk)):
            fields = {name: column[offset] for name, column in chunk.columns.items()}
            self.row(chunk.first + offset, fields)

    def row(self, number: int, fields: dict[str, Any]) -> None:
        """Take a row; check the batch that it completes, and the one that it shows to be over."""
        stream = str(fields[self._model.stream])
        self.file_rows += 1
        self.file_streams.add(stream)
        if self._only is not None and stream not in self._only:
            self._true_value(stream, number)
            self._left_out[stream] += 1
            return
        self.report.rows += 1
        self.report.streams.setdefault(stream, StreamAudit())
        truth = self._true_value(stream, number)
        if stream in self._lost:
            self._unverifiable[stream] += 1
            return
        try:
            event = read_event(stream, fields, self._model, self._signal)
            if self.when.asked:
                event = self.when.said(event, self._time_of(fields))
        except (UnknownSymbol, Unreadable) as problem:
            self._lose(stream, number, str(problem))
            return
        read = AuditRow(number, fields, event)
        for rule in misspelled(read, self._model, text=self._text, signal=self._signal):
            self.report.note(number, rule, Kind.FORMAT)
        self._check_order(read)
        held = self._held.get(stream, [])
        if held and event.batch != held[0][0].event.batch:
            self._check(stream)
        self._held.setdefault(stream, []).append((read, truth))
        if len(self._held[stream]) == self._plan.width:
            self._check(stream)

    def _time_of(self, fields: dict[str, Any]) -> Time:
        """The time of a row; nobody can say where its stream stands without it."""
        try:
            return Time.of(fields.get(self._time or ""))
        except Unreadable as problem:
            raise Unreadable(f"the time {problem}") from None

    def _readable_time(self, row: AuditRow) -> Time | None:
        """The time of a row, for checks; None where it is not to be read."""
        with contextlib.suppress(Unreadable):
            return self._time_of(row.fields)
        return None

    def _check_times(self, held: Sequence[tuple[AuditRow, Truth | None]]) -> None:
        """Where anything follows from times, values come in the order of theirs.

        They are those of the true values, if these are known: a value that is said to lie in
        another day would be charged to the budget of that day.
        """
        for row, truth in held if self.when.asked else ():
            stream, time = row.event.stream, self._time_of(row.fields)
            if time.before(self._times.setdefault(stream, time)):
                raise Unreadable("the time must not lie before that of the row before it")
            self._times[stream] = time
            if truth is not None and truth.time is not None and truth.time != time:
                self.report.note(row.number, "the time must be that of the true value", Kind.VALUES)

    def _check_order(self, row: AuditRow) -> None:
        """Rows of a stream rise within a file: which of them come again would be a message."""
        stream, moment = row.event.stream, row.event.sequence
        if moment > self._last_here.get(stream, -1):
            self._last_here[stream] = moment
        elif not self.repeats_allowed:
            rule = "a row must not come after a later one of its stream in the same file"
            self.report.note(row.number, f"{rule} (or --allow repeated, for retries in a pipe)")

    def _lose(self, stream: str, number: int, rule: str) -> None:
        """Note a row after which nobody can say where its stream stands.

        A sound ledger can: what it says of the moment is taken instead.
        """
        self.report.note(number, rule)
        if self.ledger is None or self.ledger.problems:
            self._lost[stream] = f"{self.report.file}row {number}"
            self._unverifiable[stream] += len(self._held.pop(stream, ()))

    def _tell_lost(self) -> None:
        """Say once of each stream what nothing can be said of."""
        for stream, count in self._unverifiable.items():
            if count:
                self.report.unverifiable += count
                rule = f"{count:,} rows of stream {stream!r} cannot be verified"
                self.report.note_all(f"{rule} after {self._lost[stream]}", Kind.UNVERIFIABLE)

    def _true_value(self, stream: str, number: int) -> Truth | None:
        if self._truths is None:
            return None
        # Batches of several streams leave in another order than their values came in.
        ask = self._truths.of if self._plan.in_batches else self._truths.at
        return ask(stream, number)

    def rest(self) -> None:
        """Check what could not be checked before the end of a file."""
        for stream in list(self._held):
            self._check(stream)

    def _check(self, stream: str) -> None:
        """Check a batch against what the plan must have done, and the ledger says it did."""
        held = self._held.pop(stream)
        rows = [row for row, _ in held]
        events = [row.event for row in rows]
        try:
            self._catch_up(stream, events[0].sequence)
            state = self._state(stream)
            if all([self._said_before(row, state) for row in rows]):
                return
            self._check_turn(rows, state)
            self._check_times(held)
            if events[0].outcome is Outcome.SKIPPED and not self._skips:
                rule = "a release never skips a row, unless its rules say --missing skip"
                raise Unreadable(rule)
            given = (state, len(rows), events[0].phase, events[0].period)
            if events[0].outcome not in _OPEN and self._plan.prepare(*given):
                self.report.withheld += len(rows)
            seen = self._observed(state, events)
        except _BROKEN as problem:
            self._lose(stream, rows[-1].number, str(problem))
            return
        for row, each in zip(rows, seen.events, strict=True):
            self._compare(row, each)
        seen = self._in_ledger(state, seen)
        numbers = [row.number for row in rows]
        times = [self._readable_time(row) for row in rows] if self.timed else []
        self._show(state, seen, [truth for _, truth in held], numbers, times)
        if self._may_recur:
            self._said(stream).extend(map(self._fingerprint, events))

    def _said(self, stream: str) -> array[int]:
        """Eight bytes of every row of a stream."""
        return self._fingerprints.setdefault(stream, array("q"))

    def _check_turn(self, rows: Sequence[AuditRow], state: StreamState) -> None:
        """See whether a batch stands at the moments that are due."""
        first = state.sequence
        moments = list(range(first, first + len(rows)))
        right = [row.event.sequence for row in rows] == moments
        if self._plan.in_batches:
            if not right or rows[0].event.batch != first:
                raise Unreadable(f"the batch must have the sequence numbers from {first} on")
        elif not right:
            rule = f"the sequence number must be {first}"
            if self.ledger is None and first == 0:
                rule += "; a stream that goes on needs the files before this one, or the ledger"
            raise Unreadable(rule)

    def _observed(self, state: StreamState, events: Sequence[Event]) -> Observed:
        """What the plan must have done where this was said, and the state after it."""
        if len({event.outcome for event in events}) > 1:
            raise Unreadable("the values of a batch must have one outcome")
        released, outcome = [event.released for event in events], events[0].outcome
        first = events[0]
        return self._plan.observed(
            state, released, outcome, first.signal, first.phase, first.period
        )

    def _said_before(self, row: AuditRow, state: StreamState) -> bool:
        """Whether a row only says again what was said before; what is wrong with it is noted.

        A retry gets its old answer: in another file than the first or, where an id or the ledger
        tells that it is one, in the same.
        """
        stream, moment = row.event.stream, row.event.sequence
        if not 0 <= moment < state.sequence:
            return False
        if self.ledger is None:
            may = "event" in row.fields or moment < self._began.get(stream, 0)
            if not may or self._fingerprints[stream][moment] != self._fingerprint(row.event):
                return False
            self.report.repeated += 1
            return True
        answer = self.ledger.moment(stream, moment)
        if answer is None:
            return False
        self.report.repeated += 1
        for rule in differences(row.event, event_of(answer, self.when), "the table"):
            self.report.note(row.number, rule)
        return True

    def _compare(self, row: AuditRow, due: Event) -> None:
        """Compare a row, and the ledger, with what was due."""
        note = self.report.note
        for rule in differences(row.event, due, "the table"):
            note(row.number, rule)
        if self.ledger is None:
            return
        answer = self.ledger.moment(due.stream, due.sequence)
        if answer is None:
            note(row.number, "the ledger must hold this event")
            return
        for rule in differences(event_of(answer, self.when), due, "the ledger"):
            note(row.number, rule)
        id_ = row.fields.get("event")
        if id_ is not None and str(id_) != answer.id:
            note(row.number, "the event id must be the one in the ledger")

    def _in_ledger(self, state: StreamState, seen: Observed) -> Observed:
        """What a sound ledger says that happened, where rows said otherwise, which was noted.

        A stream goes on by it: else one forged row would accuse all that follow, and the ledger.
        """
        if self.ledger is None or self.ledger.problems:
            return seen
        first = state.sequence
        answers = self.ledger.answers([(state.stream, first, first + len(seen.events))])
        told = [event_of(answer, self.when) for answer in answers or ()]
        if not told or list(map(_what_left, told)) == list(map(_what_left, seen.events)):
            return seen
        try:
            return self._observed(state, told)
        except _BROKEN:
            return seen  # the ledger is accused already, of not saying what the row says

    def _catch_up(self, stream: str, moment: int) -> None:
        """Let a stream do what the ledger says it did before a moment."""
        if self.ledger is None or stream in self._lost_in_ledger:
            return
        self.report.streams.setdefault(stream, StreamAudit())
        for events in self.ledger.before(stream, self._state(stream).sequence, moment):
            state = self._state(stream)
            try:
                seen = self._observed(state, events)
            except _BROKEN as problem:
                where = f"stream {stream!r}, moment {events[0].sequence}"
                self.report.note_ledger(f"{where}: {problem}")
                self._lost_in_ledger.add(stream)
                return
            for event, each in zip(events, seen.events, strict=True):
                for rule in differences(event, each, "the ledger"):
                    self.report.note(self.report.rows, rule)
            self._show(state, seen, times=self.ledger.times(events) if self.timed else ())

    def end(self, coverage: Coverage) -> None:
        """Check what the ledger holds beyond the files, and itself."""
        self._tell_lost()
        if self.ledger is not None:
            self._end_ledger(self.ledger, coverage)
        self.report.left_out = self._left_out.total()

    def _end_ledger(self, ledger: LedgerSide, coverage: Coverage) -> None:
        self.report.ledger_head = ledger.head
        for problem in ledger.problems:
            self.report.note_ledger(problem)
        for stream, moments in ledger.streams():
            if self._only is None or stream in self._only:
                self._catch_up(stream, moments)
            else:
                self._left_out[stream] = max(self._left_out[stream], moments)
        self.report.only_in_ledger = ledger.alone.total()
        for source, missing in ledger.missing(coverage):
            rows = self.report.rows
            self.report.note(rows, f"the ledger holds {missing} events more of {source!r}")

    def _show(
        self,
        state: StreamState,
        seen: Observed,
        truths: Sequence[Truth | None] | None = None,
        rows: Sequence[int] = (),
        times: Sequence[Time | None] = (),
    ) -> None:
        """Let every check see a batch, and go on after it."""
        batch = CheckedBatch.of(state, seen, truths, rows, times)
        for check in self._checks:
            check.see(batch)
        self._states[state.stream] = seen.following

    def _state(self, stream: str) -> StreamState:
        return self._states.get(stream) or self._plan.begin(stream)

    def _fingerprint(self, event: Event) -> int:
        """Eight bytes of what a row says."""
        place = -1 if event.released is None else self._model.alphabet.index(event.released)
        said = (place, event.signal, OUTCOMES.index(event.outcome), event.batch)
        whole = np.array([-1 if one is None else one for one in said], dtype=np.int64)[:, None]
        leakages = np.array([[event.sip.epsilon, event.ldp.epsilon]])
        # An old answer at another time would seem to be of another period.
        when = [np.array([one]) for one in (event.phase, event.period) if one is not None]
        return int(fingerprints(whole[0], whole[1], whole[2], leakages, whole[3], when)[0])


def _what_left(event: Event) -> tuple[object, ...]:
    return event.released, event.outcome, event.signal
