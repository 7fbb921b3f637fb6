"""One pass over a source: rows in, answers out, each committed before it leaves.

A row waits until the batch of its stream is complete, or is flushed; value by value a batch is
complete at once. What was answered before is answered from the ledger.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, takewhile
from typing import TypeAlias

import numpy as np

from sfumato.core.alphabet import Label
from sfumato.core.arrays import Ints
from sfumato.core.budgets import Horizon
from sfumato.core.errors import BudgetExceeded, SolverFailed, UnknownSymbol
from sfumato.core.events import Event, Outcome
from sfumato.core.guarantees import LDP, SIP
from sfumato.core.purpose import Fallback
from sfumato.core.randomness import Randomness
from sfumato.core.state import StreamState
from sfumato.models.encoding import Grid
from sfumato.store.ledgered_run import Group, LedgeredRun, StateKind
from sfumato.store.protocol import Answer, LedgerMismatch
from sfumato.stream.fleet import Fleet
from sfumato.stream.input_rows import Row, RowChecks, RowReader
from sfumato.stream.learning_plan import signal_column
from sfumato.stream.number_names import spelled_twice
from sfumato.stream.plan import Plan
from sfumato.stream.release_report import ReleaseReport
from sfumato.stream.row_waves import waves, without_repeats
from sfumato.tables.input_groups import Interruptible, groups, until_stopped, with_ticks
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Chunk
from sfumato.tables.writers import Record

_FEW = 8
"""Fewer rows than this are released one by one: a fleet costs more to set up than they do."""
_FLUSHED = 64
"""Batches that are flushed together, so that a request to stop is heard between them."""
_REFUSALS = (UnknownSymbol, BudgetExceeded, SolverFailed)
_REMEDY = (
    " of the model; nothing leaves for it. To go on: --when-unknown suppress, repeat or substitute "
    "(another symbol in its place; none of these with --learn); or fit the model to a history that "
    "has the value"
)

Leaving: TypeAlias = dict[str, list[Answer]]
"""The answers that leave when a row has come, by the event id of that row."""
Beside: TypeAlias = tuple[Answer, tuple[str | None, ...]]
"""An answer, and the cells that leave beside it."""


def state_kind(plan: Plan) -> StateKind[StreamState]:
    """How the states of a stream are stored."""
    return StateKind(
        StreamState,
        begin=plan.begin,
        sequence=lambda state: state.sequence,
        spent=lambda state: (state.ledger.sip, state.ledger.ldp),
    )


class RowRun:
    """One pass over a source: answers group by group, each committed before it leaves.

    Attributes:
        rows: Rows answered so far.
    """

    def __init__(
        self,
        reader: RowReader,
        checks: RowChecks,
        plan: Plan,
        ledger: LedgeredRun[StreamState],
        randomness: Randomness,
    ) -> None:
        self._reader, self._checks = reader, checks
        self._plan, self._ledger, self._randomness = plan, ledger, randomness
        self._signalled = signal_column(plan) is not None
        # True values of incomplete batches are here alone: never in the ledger.
        self._batches: dict[str, _Batch] = {}
        self._waiting: dict[str, Row] = {}
        self._beside: dict[str, tuple[str | None, ...]] = {}
        self.rows = 0

    def records(
        self, chunks: Iterator[Chunk], stop: Interruptible, wait: float | None
    ) -> Iterator[list[Record]]:
        """Rows of the output in the order in which they may leave.

        Args:
            chunks: The rows of the input.
            stop: Asks for an end between two groups.
            wait: Seconds after which a batch leaves incomplete; at the end of the input if None.
        """
        arriving: Iterator[Chunk | None] = until_stopped(chunks, stop)
        if wait is not None:
            arriving = with_ticks(chunks, stop, partial(self._patience, wait))
        for group in groups(arriving, stop):
            if group is not None:
                yield from self._leaving(group)
            while wait is not None and (late := self._flushed(wait)):
                yield self._written(late)
        while not stop.requested and (last := self._flushed(0.0)):
            yield self._written(last)

    def answered(self, chunk: Chunk) -> list[Record]:
        """Rows of the output for some rows of the input."""
        return [record for records in self._leaving(chunk) for record in records]

    def check_resumed(self) -> None:
        """At the end of the input: refuse one that lacks rows which were answered before."""
        try:
            self._ledger.check_complete()
        except LedgerMismatch as problem:
            raise BadTable(self._reader.path, None, str(problem)) from None

    def remark(self) -> str | None:
        """What to tell of the streams of this run; None if there is nothing."""
        pair = spelled_twice(self._ledger.names(), self._ledger.begun)
        if pair is None:
            return None
        return (
            f"streams {pair[0]!r} and {pair[1]!r} are one number and two streams, each with a "
            "budget of its own: if they are one person, write the number in one way"
        )

    def report(self, *, interrupted: bool) -> ReleaseReport:
        """What was done."""
        sip, ldp = self._ledger.largest
        return ReleaseReport(
            rows=self.rows,
            repeated=self._ledger.repeated,
            streams=self._ledger.streams,
            largest_sip=sip,
            largest_ldp=ldp,
            interrupted=interrupted,
            waiting=len(self._waiting),
            missing=self._reader.missing,
            clipped=self._reader.clipped,
        )

    def repeated(
        self, answers: Sequence[Answer], beside: Sequence[tuple[str | None, ...]]
    ) -> list[Record]:
        """Old answers that were found elsewhere, and what leaves beside each, as rows."""
        return self._written(list(zip(answers, beside, strict=True)))

    def _written(self, answers: Sequence[Beside]) -> list[Record]:
        """Answers as rows of the output: public things only."""
        self.rows += len(answers)
        alphabet, in_batches = self._plan.model.alphabet, self._plan.in_batches
        gridded = isinstance(self._reader.model.encoding, Grid)
        centres = alphabet.coordinates if gridded else None
        records: list[Record] = []
        for answer, beside in answers:
            record: list[Label | float | None] = [answer.id] if self._reader.shows_ids else []
            record += [answer.stream, *beside, answer.sequence]
            record += [answer.batch, answer.released] if in_batches else [answer.released]
            record += [answer.signal] if self._signalled else []
            if centres is not None and answer.released is not None:
                record += centres[alphabet.index(answer.released)].tolist()
            elif centres is not None:
                record += [None, None]
            records.append([*record, answer.outcome, answer.leakage, answer.model_free])
        return records

    def _leaving(self, chunk: Chunk) -> Iterator[list[Record]]:
        """What leaves for the rows of a chunk, all of it committed.

        Rows of a pipe that came before a bad one have their answers; of a file, nothing leaves.
        """
        read, problem = self._reader.read(chunk)
        for part in without_repeats(read) if self._checks.live else [read]:
            answers, refusal = self._answered(part)
            broken = refusal or problem
            if broken is not None and not self._checks.live:
                raise broken
            yield self._written(answers)
            if refusal is not None:
                raise refusal
        if problem is not None:
            raise problem

    def _answered(self, read: list[Row]) -> tuple[list[Beside], BadTable | None]:
        """Answer rows from the ledger, or by new draws that are committed, up to a bad one."""
        problem: BadTable | None = None
        earlier = self._ledger.earlier([row.id for row in read])
        fresh: dict[str, Row] = {}
        released: Leaving = {}
        try:
            for row in read:
                self._sort(row, earlier, fresh)
        except BadTable as other:
            problem = other
        # What was drawn is charged and stored, also when a later row is refused.
        try:
            with self._ledger.group() as group:
                self._release(fresh, released, group)
        except BadTable as refusal:
            problem = refusal
        answers: list[Beside] = []
        for row in read:
            if problem is not None and problem.row is not None and row.place >= problem.row:
                break
            if row.id in fresh:
                answers += self._with_cells(released.get(row.id, ()))
            elif row.id in earlier:
                answers.append((earlier[row.id], row.beside))
        return answers, problem

    def _sort(self, row: Row, earlier: dict[str, Answer], fresh: dict[str, Row]) -> None:
        """See whether a row needs a new draw, or is a retry that may have its old answer."""
        first = self._waiting.get(row.id) or fresh.get(row.id)
        if first is not None and not (self._checks.live and first.tag == row.tag):
            raise self._checks.twice(first.stream, first.place, row)
        if first is not None:
            return  # sent twice while it waits: it will be answered once
        if row.id in earlier:
            self._checks.check_retry(earlier[row.id], row)
            return
        self._checks.check_order(row)
        fresh[row.id] = row
        if row.beside:
            self._beside[row.id] = row.beside

    def _release(self, rows: dict[str, Row], released: Leaving, group: Group[StreamState]) -> None:
        """Draw answers for rows; values of one stream in their order."""
        # A fleet answers in another order than rows came: after a bad one, some would have been.
        if self._plan.by_fleet and len(rows) >= _FEW and not self._checks.live:
            self._release_together(list(rows.values()), released, group)
            return
        early = self._plan.in_batches and self._plan.on_unknown is Fallback.REFUSE
        for row in rows.values():
            if row.silent:
                self._pass(row, released, group)
                continue
            if early and row.symbol not in self._plan.model.alphabet:
                # Refused before it waits: others of its batch may still be answered.
                raise self._refused(row, UnknownSymbol(len(self._plan.model.alphabet)), group)
            batch = self._batches.setdefault(row.stream, _Batch(time.monotonic(), []))
            batch.rows.append(row)
            self._waiting[row.id] = row
            if len(batch.rows) == self._plan.width:
                self._complete(row.stream, released, group)

    def _pass(self, row: Row, released: Leaving, group: Group[StreamState]) -> None:
        """Let a moment pass; what waited before it leaves first, as a shorter batch."""
        before: list[Answer] = []
        if row.stream in self._batches:
            last = self._batches[row.stream].rows[-1].id
            self._complete(row.stream, released, group)
            before = released.pop(last)
        events, state = self._plan.skip(group.state(row.stream), 1, row.phase, row.period)
        passed = self._answers([row], events)
        group.add(passed, row.stream, state)
        released[row.id] = [*before, *passed]

    def _complete(self, stream: str, released: Leaving, group: Group[StreamState]) -> None:
        """Release the batch of a stream; on an error it goes on waiting."""
        rows = self._batches[stream].rows
        values = [row.symbol for row in rows]
        try:
            now, when = group.state(stream), (rows[-1].phase, rows[-1].period)
            events, state = self._plan.step(now, values, self._randomness, (), *when)
        except _REFUSALS as problem:
            raise self._refused(rows[-1], problem, group) from problem
        del self._batches[stream]
        for row in rows:
            del self._waiting[row.id]
        released[rows[-1].id] = self._answers(rows, events)
        group.add(released[rows[-1].id], stream, state)

    def _flushed(self, waited: float) -> list[Beside]:
        """Release some batches that began so many seconds ago, shorter than they should be."""
        now = time.monotonic()
        # Those that began first stand first.
        oldest = islice(self._batches.items(), _FLUSHED)
        due = [name for name, _ in takewhile(lambda one: now - one[1].began >= waited, oldest)]
        released: Leaving = {}
        with self._ledger.group() as group:
            for stream in due:
                self._complete(stream, released, group)
        return [one for answers in released.values() for one in self._with_cells(answers)]

    def _with_cells(self, answers: Iterable[Answer]) -> list[Beside]:
        """New answers with what leaves beside them."""
        return [(answer, self._beside.pop(answer.id, ())) for answer in answers]

    def _patience(self, wait: float) -> float | None:
        """Seconds until a row will have waited for too long; None while nothing waits."""
        oldest = next(iter(self._batches.values()), None)
        return None if oldest is None else max(0.0, oldest.began + wait - time.monotonic())

    def _release_together(
        self, rows: list[Row], released: Leaving, group: Group[StreamState]
    ) -> None:
        """The same by a fleet: one value of many streams at a time."""
        streams = list(dict.fromkeys(row.stream for row in rows))
        places = {stream: place for place, stream in enumerate(streams)}
        states = [group.state(stream) for stream in streams]
        fleet = Fleet(self._plan, states=states, randomness=self._randomness)
        by_stream: dict[str, list[Answer]] = {stream: [] for stream in streams}
        try:
            for wave in waves(rows):
                which = np.array([places[row.stream] for row in wave])
                answers = self._answers(wave, self._wave(fleet, wave, which, group))
                for row, answer in zip(wave, answers, strict=True):
                    released[row.id] = [answer]
                    by_stream[row.stream].append(answer)
        finally:
            # What an interrupted step drew never left: it is forgotten.
            for place, before in enumerate(states if not fleet.torn else ()):
                if (after := fleet.state(place)).sequence > before.sequence:
                    group.add(by_stream[before.stream], before.stream, after)

    def _wave(
        self, fleet: Fleet, wave: list[Row], which: Ints, group: Group[StreamState]
    ) -> list[Event]:
        """One value of each of some streams; all of them or, on an error, none."""
        speaking = np.array([not row.silent for row in wave])
        values = [row.symbol for row in wave if not row.silent]
        try:
            step = fleet.step(values, which[speaking]) if values else ()
        except _REFUSALS:
            for row, place in zip(wave, which.tolist(), strict=True):
                self._try(fleet.state(place), row, group)
            raise
        stepped = (event for (event,) in step)
        passed = iter([_passed(fleet.state(place)) for place in which[~speaking].tolist()])
        fleet.skip(which[~speaking])
        return [next(passed) if row.silent else next(stepped) for row in wave]

    def _try(self, state: StreamState, row: Row, group: Group[StreamState]) -> None:
        """Name the row that is refused; what comes of the others is thrown away."""
        try:
            if not row.silent:
                self._plan.step(state, [row.symbol], self._randomness)
        except _REFUSALS as problem:
            raise self._refused(row, problem, group) from problem

    def _refused(self, row: Row, problem: Exception, group: Group[StreamState]) -> BadTable:
        """A refusal with its row; where the budget is gone, also what was answered before it."""
        rule = str(problem)
        if isinstance(problem, BudgetExceeded):
            count = self._ledger.answered + len(group.answers)
            rule += f". {self._ledger.committed(count)}. To go on without values: --when-exhausted"
            rule += " suppress or repeat"
            if isinstance(self._plan.budget, Horizon):
                rule += "; for longer streams release with a longer --horizon, or with --window"
            if self._plan.period is not None:
                rule += f", until the next {self._plan.period} begins"
        if isinstance(problem, UnknownSymbol):
            rule += _REMEDY
        return BadTable(self._reader.path, row.place, rule)

    def _answers(self, rows: Iterable[Row], events: Iterable[Event]) -> list[Answer]:
        source = self._ledger.source.label
        return [
            Answer(
                row.id,
                source,
                row.place,
                event.stream,
                event.sequence,
                event.outcome.value,
                event.released,
                event.sip.epsilon,
                event.ldp.epsilon,
                event.batch,
                None if row.time is None else row.time.text,
                row.tag,
                event.signal,
            )
            for row, event in zip(rows, events, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class _Batch:
    """Rows of one stream that wait for each other, and when the first of them came."""

    began: float
    rows: list[Row]


def _passed(state: StreamState) -> Event:
    """A moment at which nothing leaves."""
    return Event(state.stream, state.sequence, Outcome.SKIPPED, None, SIP(0.0), LDP(0.0))
