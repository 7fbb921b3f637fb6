"""One pass over a source: rows in, answers out, each committed before it leaves."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any, TypeAlias

import numpy as np

from sfumato.core.arrays import Ints
from sfumato.core.errors import BudgetExceeded, SolverFailed, UnknownSymbol
from sfumato.core.events import Event, Outcome
from sfumato.core.guarantees import LDP, SIP
from sfumato.core.purpose import Fallback
from sfumato.core.randomness import Randomness
from sfumato.core.state import StreamState
from sfumato.models.encoding import StreamModel
from sfumato.store.ledgered_run import Group, LedgeredRun, StateKind
from sfumato.store.protocol import Answer, Input, LedgerMismatch, Store
from sfumato.stream.fleet import Fleet
from sfumato.stream.input_rows import Reading, Row, RowReader
from sfumato.stream.plan import Plan
from sfumato.stream.retries import RowChecks
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Chunk

_FEW, _FLUSHED = 8, 64
"""Fewer rows than this are released one by one; so many batches are flushed together."""


@dataclass(frozen=True, slots=True)
class ReleaseReport:
    """What a run did.

    Attributes:
        rows: Rows answered.
        repeated: How many of them had been answered before; their noise was not drawn again.
        streams: How many streams the answers belong to.
        largest_sip: Largest leakage under the model that any of those streams has in all.
        largest_ldp: The same whatever the model.
        interrupted: Whether the run was asked to stop before the end of the input.
        waiting: Rows read but not answered: their batch was not complete when the run stopped.
        missing: Values that were missing: their rows were left out, their moments passed, or they
            were released as a symbol of their own.
        clipped: Values beyond the range of the model, released as if they stood at its edge.
    """

    rows: int
    repeated: int
    streams: int
    largest_sip: float
    largest_ldp: float
    interrupted: bool
    waiting: int = 0
    missing: int = 0
    clipped: int = 0


_Leaving: TypeAlias = dict[str, list[Answer]]
"""The answers that leave when a row has come, by the event id of that row."""

Told: TypeAlias = tuple[Answer, tuple[str | None, ...]]
"""An answer and the cells that leave beside it."""


class Run(ABC):
    """One pass over a source: answers chunk by chunk, each committed before it leaves.

    Attributes:
        rows: Rows answered so far.
        waiting: Rows whose batch is not complete, by event id.
    """

    def __init__(
        self,
        path: str,
        source: Input,
        model: StreamModel,
        plan: Plan,
        store: Store,
        randomness: Randomness,
        reading: Reading,
        remark: Callable[[str], None] | None,
    ) -> None:
        self._path = path
        self._source = source
        self._model = model
        self._plan = plan
        self._randomness = randomness
        self._reading = reading
        kind = StateKind(StreamState, plan.begin, lambda one: one.sequence, _spent)
        self._ledger = LedgeredRun(store, source, kind)
        self._reader = RowReader(path, model, reading, source)
        self.checks = RowChecks(path, self._ledger, reading, remark)
        self._kept: dict[str, tuple[str | None, ...]] = {}
        self.rows = 0
        self.waiting: dict[str, Row] = {}

    def answer(self, chunk: Chunk) -> list[Told]:
        """Answer the rows of a chunk: from the ledger, or by a new draw that is committed."""
        read, problem = self._reader.read(chunk)
        known = self._ledger.earlier([row.id for row in read])
        fresh: dict[str, Row] = {}
        released: _Leaving = {}
        try:
            for row in read:
                self._sort(row, known, fresh)
        except BadTable as earlier:
            problem = earlier
        # What was drawn is charged and kept, also when a later row is refused.
        with self._ledger.group() as group:
            self._release(fresh, released, group)
        if problem is not None:
            raise problem
        answers: list[Answer] = []
        for row in read:
            if row.id in fresh:
                answers += released.get(row.id, ())
            elif row.id in known:
                answers.append(known[row.id])
        return self._told(answers)

    def _told(self, answers: list[Answer]) -> list[Told]:
        """Answers that leave, each with what is kept of its row."""
        self.rows += len(answers)
        return [(answer, self._kept.pop(answer.id, ())) for answer in answers]

    def flush(self, waited: float = 0.0) -> list[Told]:
        """Answer some rows that have waited for so many seconds; none wait unless in batches."""
        return []

    def patience(self, wait: float) -> float | None:
        """Seconds until a row will have waited for too long; None while nothing waits."""
        return None

    @abstractmethod
    def _release(self, rows: dict[str, Row], released: _Leaving, group: Group[StreamState]) -> None:
        """Draw answers for rows; values of one stream in their order."""

    def _sort(self, row: Row, known: dict[str, Answer], fresh: dict[str, Row]) -> None:
        """See whether a row needs a new draw, or is a retry that may have its old answer."""
        first = self.waiting.get(row.id) or fresh.get(row.id)
        if first is not None and not (self.checks.live and first.tag == row.tag):
            raise self.checks.twice(first.stream, first.place, row)
        if first is not None:
            return  # sent twice while it waits: it will be answered once
        if row.id in known:
            self.checks.check_retry(known[row.id], row)
        else:
            if row.time is not None:
                self.checks.check_order(row, row.time)
            fresh[row.id] = row
        if self._reading.keep:
            self._kept[row.id] = row.kept

    def check_resumed(self) -> None:
        """At the end of the input: refuse one that lacks rows which were answered before."""
        try:
            self._ledger.check_complete()
        except LedgerMismatch as problem:
            raise BadTable(self._path, None, str(problem)) from None

    def _answer(self, row: Row, happened: Event) -> Answer:
        when = None if row.time is None else row.time.text
        return Answer(
            row.id,
            self._source.label,
            row.place,
            happened.stream,
            happened.sequence,
            happened.outcome.value,
            happened.released,
            happened.sip.epsilon,
            happened.ldp.epsilon,
            happened.batch,
            when,
            row.tag,
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
            waiting=len(self.waiting),
            missing=self._reader.missing,
            clipped=self._reader.clipped,
        )


def _spent(state: StreamState) -> tuple[float, float]:
    return state.ledger.sip, state.ledger.ldp


class InstantRun(Run):
    """Every value at once."""

    def _release(self, rows: dict[str, Row], released: _Leaving, group: Group[StreamState]) -> None:
        if self._plan.policy is None or len(rows) < _FEW:
            for row in rows.values():
                happened, state = self._step(group.state(row.stream), row)
                released[row.id] = [self._answer(row, happened)]
                group.add(released[row.id], row.stream, state)
            return
        streams = list(dict.fromkeys(row.stream for row in rows.values()))
        places = {stream: place for place, stream in enumerate(streams)}
        states = [group.state(stream) for stream in streams]
        fleet = Fleet(self._plan, states=states, randomness=self._randomness)
        try:
            for wave in _waves(rows.values()):
                which = np.array([places[row.stream] for row in wave])
                for row, happened in zip(wave, self._wave(fleet, wave, which), strict=True):
                    released[row.id] = [self._answer(row, happened)]
        finally:
            # What an interrupted step drew never left: it is forgotten.
            by_stream: dict[str, list[Answer]] = {}
            for (answer,) in released.values():
                by_stream.setdefault(answer.stream, []).append(answer)
            for place, before in enumerate(states if not fleet.torn else ()):
                if (after := fleet.state(place)).sequence > before.sequence:
                    group.add(by_stream[before.stream], before.stream, after)

    def _wave(self, fleet: Fleet, wave: list[Row], which: Ints) -> list[Event]:
        """One value of each of some streams; all of them or, on an error, none."""
        speaking = np.array([not row.silent for row in wave])
        told = [row for row in wave if not row.silent]
        try:
            step = fleet.step([row.symbol for row in told], which[speaking]) if told else ()
        except (UnknownSymbol, BudgetExceeded, SolverFailed):
            # Find the row that is refused; a state is tried and thrown away.
            for row, place in zip(wave, which.tolist(), strict=True):
                self._step(fleet.state(place), row)
            raise
        stepped = (event for (event,) in step)
        passed = iter([_passed(fleet.state(place)) for place in which[~speaking].tolist()])
        fleet.skip(which[~speaking])
        return [next(passed) if row.silent else next(stepped) for row in wave]

    def _step(self, state: StreamState, row: Row) -> tuple[Event, StreamState]:
        try:
            (event,), following = (
                self._plan.skip(state)
                if row.silent
                else self._plan.step(state, [row.symbol], self._randomness)
            )
            return event, following
        except (UnknownSymbol, BudgetExceeded, SolverFailed) as problem:
            raise BadTable(self._path, row.place, str(problem)) from problem


class BatchedRun(Run):
    """A row waits until its batch is complete, or is flushed."""

    def __init__(self, *run: Any) -> None:
        super().__init__(*run)
        # True values of incomplete batches are here alone: never in the ledger.
        self._batches: dict[str, _Batch] = {}

    def flush(self, waited: float = 0.0) -> list[Told]:
        """Release some batches that began so many seconds ago, shorter than they should be."""
        now = time.monotonic()
        # Those that began first stand first.
        oldest = islice(self._batches.items(), _FLUSHED)
        due = [name for name, _ in takewhile(lambda one: now - one[1].began >= waited, oldest)]
        released: _Leaving = {}
        with self._ledger.group() as group:
            for stream in due:
                self._complete(stream, released, group)
        return self._told([answer for answers in released.values() for answer in answers])

    def patience(self, wait: float) -> float | None:
        """Seconds until a row will have waited for too long; None while nothing waits."""
        oldest = next(iter(self._batches.values()), None)
        return None if oldest is None else max(0.0, oldest.began + wait - time.monotonic())

    def _release(self, rows: dict[str, Row], released: _Leaving, group: Group[StreamState]) -> None:
        refuse = self._plan.on_unknown is Fallback.REFUSE
        for row in rows.values():
            if row.silent:
                self._pass(row, released, group)
                continue
            if refuse and row.symbol not in self._model.alphabet:
                raise BadTable(self._path, row.place, str(UnknownSymbol(len(self._model.alphabet))))
            batch = self._batches.setdefault(row.stream, _Batch(time.monotonic(), []))
            batch.rows.append(row)
            self.waiting[row.id] = row
            if len(batch.rows) == self._plan.width:
                self._complete(row.stream, released, group)

    def _pass(self, row: Row, released: _Leaving, group: Group[StreamState]) -> None:
        """Let a moment pass; what waited before it leaves first, as a shorter batch."""
        before: list[Answer] = []
        if row.stream in self._batches:
            last = self._batches[row.stream].rows[-1].id
            self._complete(row.stream, released, group)
            before = released.pop(last)
        (happened,), state = self._plan.skip(group.state(row.stream))
        passed = self._answer(row, happened)
        group.add([passed], row.stream, state)
        released[row.id] = [*before, passed]

    def _complete(self, stream: str, released: _Leaving, group: Group[StreamState]) -> None:
        """Release the batch of a stream; on an error it goes on waiting."""
        rows = self._batches[stream].rows
        try:
            events, state = self._plan.step(
                group.state(stream), [row.symbol for row in rows], self._randomness
            )
        except (UnknownSymbol, BudgetExceeded, SolverFailed) as problem:
            raise BadTable(self._path, rows[-1].place, str(problem)) from problem
        del self._batches[stream]
        answers = [self._answer(row, happened) for row, happened in zip(rows, events, strict=True)]
        group.add(answers, stream, state)
        released[rows[-1].id] = answers
        for row in rows:
            del self.waiting[row.id]


@dataclass(frozen=True, slots=True)
class _Batch:
    """Rows of one stream that wait for each other, and when the first of them came."""

    began: float
    rows: list[Row]


def _passed(state: StreamState) -> Event:
    """A moment at which nothing leaves."""
    return Event(state.stream, state.sequence, Outcome.SKIPPED, None, SIP(0.0), LDP(0.0))


def _waves(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows in groups with at most one of each stream, in their order."""
    waves: list[list[Row]] = []
    seen: dict[str, int] = {}
    for row in rows:
        turn = seen.get(row.stream, 0)
        seen[row.stream] = turn + 1
        if turn == len(waves):
            waves.append([])
        waves[turn].append(row)
    yield from waves
