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
from sfumato.store.sqlite import Answer, Input, SqliteStore
from sfumato.stream.batched_plan import BatchedPlan
from sfumato.stream.fleet import InstantFleet
from sfumato.stream.input_rows import Reading, Row, RowReader
from sfumato.stream.instant import InstantPlan
from sfumato.stream.retries import RowChecks
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Chunk

_STATES_HELD = 100_000
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
        plan: InstantPlan | BatchedPlan,
        store: SqliteStore,
        randomness: Randomness,
        reading: Reading,
        remark: Callable[[str], None] | None,
    ) -> None:
        self._path = path
        self._source = source
        self._model = model
        self._plan = plan
        self._store = store
        self._randomness = randomness
        self._reading = reading
        self._reader = RowReader(path, model, reading, source)
        self.checks = RowChecks(path, source, store, reading, remark)
        self._states: dict[str, StreamState] = {}
        self._kept: dict[str, tuple[str | None, ...]] = {}
        self.rows = 0
        self.waiting: dict[str, Row] = {}
        self._repeated = 0
        self._touched: set[str] = set()
        self._largest = (0.0, 0.0)

    def answer(self, chunk: Chunk) -> list[Told]:
        """Answer the rows of a chunk: from the ledger, or by a new draw that is committed."""
        read, problem = self._reader.read(chunk)
        known = self._store.answers([row.id for row in read])
        fresh: dict[str, Row] = {}
        released: _Leaving = {}
        moved: dict[str, StreamState] = {}
        try:
            for row in read:
                self._sort(row, known, fresh)
        except BadTable as earlier:
            problem = earlier
        try:
            # What was drawn is charged and kept, also when a later row is refused.
            self._release(fresh, released, moved)
        finally:
            self._commit(released, moved)
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
    def _release(
        self, rows: dict[str, Row], released: _Leaving, moved: dict[str, StreamState]
    ) -> None:
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
            self._repeated += 1
            self._touched.add(row.stream)
        else:
            if row.time is not None:
                self.checks.check_order(row, row.time)
            fresh[row.id] = row
        if self._reading.keep:
            self._kept[row.id] = row.kept

    def check_resumed(self) -> None:
        """At the end of the input: refuse one that lacks rows which were answered before."""
        if self._repeated < self._source.answered:
            rule = (
                f"{self._source.answered} of its rows were answered before, but only "
                f"{self._repeated} of them are there: --resume is for the same input once more"
            )
            raise BadTable(self._path, None, rule)

    def _answer(self, row: Row, happened: Event) -> Answer:
        when = None if row.time is None else row.time.text
        return Answer(row.id, self._source.label, row.place, happened, row.tag, when)

    def _state(self, stream: str) -> StreamState:
        held = self._states.get(stream) or self._store.state(stream)
        return held or self._plan.begin(stream)

    def _commit(self, released: _Leaving, moved: dict[str, StreamState]) -> None:
        if not moved:
            return
        fresh = (answer for answers in released.values() for answer in answers)
        self._store.commit(fresh, moved.values())
        if len(self._states) + len(moved) > _STATES_HELD:
            self._states.clear()
        self._states.update(moved)
        self._touched.update(moved)
        for state in moved.values():
            sip, ldp = self._largest
            self._largest = max(sip, state.ledger.sip), max(ldp, state.ledger.ldp)

    def report(self, *, interrupted: bool) -> ReleaseReport:
        """What was done."""
        sip, ldp = self._largest
        if self._repeated:
            spent = [self._state(stream).ledger for stream in self._touched]
            sip, ldp = max(one.sip for one in spent), max(one.ldp for one in spent)
        return ReleaseReport(
            rows=self.rows,
            repeated=self._repeated,
            streams=len(self._touched),
            largest_sip=sip,
            largest_ldp=ldp,
            interrupted=interrupted,
            waiting=len(self.waiting),
            missing=self._reader.missing,
            clipped=self._reader.clipped,
        )


class InstantRun(Run):
    """Every value at once."""

    _plan: InstantPlan

    def _release(
        self, rows: dict[str, Row], released: _Leaving, moved: dict[str, StreamState]
    ) -> None:
        if self._plan.policy is None or len(rows) < _FEW:
            for row in rows.values():
                state = moved.get(row.stream) or self._state(row.stream)
                happened, moved[row.stream] = self._step(state, row)
                released[row.id] = [self._answer(row, happened)]
            return
        streams = list(dict.fromkeys(row.stream for row in rows.values()))
        places = {stream: place for place, stream in enumerate(streams)}
        states = [self._state(stream) for stream in streams]
        fleet = InstantFleet(self._plan, states=states, randomness=self._randomness)
        try:
            for wave in _waves(rows.values()):
                which = np.array([places[row.stream] for row in wave])
                for row, happened in zip(wave, self._wave(fleet, wave, which), strict=True):
                    released[row.id] = [self._answer(row, happened)]
        finally:
            # What an interrupted step drew never left: it is forgotten.
            for place, before in enumerate(states if not fleet.torn else ()):
                if (after := fleet.state(place)).sequence > before.sequence:
                    moved[before.stream] = after

    def _wave(self, fleet: InstantFleet, wave: list[Row], which: Ints) -> list[Event]:
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
        stepped = iter(step)
        passed = iter([_passed(fleet.state(place)) for place in which[~speaking].tolist()])
        fleet.skip(which[~speaking])
        return [next(passed) if row.silent else next(stepped) for row in wave]

    def _step(self, state: StreamState, row: Row) -> tuple[Event, StreamState]:
        if row.silent:
            return self._plan.skip(state)
        try:
            return self._plan.step(state, row.symbol, self._randomness)
        except (UnknownSymbol, BudgetExceeded, SolverFailed) as problem:
            raise BadTable(self._path, row.place, str(problem)) from problem


class BatchedRun(Run):
    """A row waits until its batch is complete, or is flushed."""

    _plan: BatchedPlan

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
        moved: dict[str, StreamState] = {}
        try:
            for stream in due:
                self._complete(stream, released, moved)
        finally:
            self._commit(released, moved)
        return self._told([answer for answers in released.values() for answer in answers])

    def patience(self, wait: float) -> float | None:
        """Seconds until a row will have waited for too long; None while nothing waits."""
        oldest = next(iter(self._batches.values()), None)
        return None if oldest is None else max(0.0, oldest.began + wait - time.monotonic())

    def _release(
        self, rows: dict[str, Row], released: _Leaving, moved: dict[str, StreamState]
    ) -> None:
        refuse = self._plan.on_unknown is Fallback.REFUSE
        for row in rows.values():
            if row.silent:
                self._pass(row, released, moved)
                continue
            if refuse and row.symbol not in self._model.alphabet:
                raise BadTable(self._path, row.place, str(UnknownSymbol(len(self._model.alphabet))))
            batch = self._batches.setdefault(row.stream, _Batch(time.monotonic(), []))
            batch.rows.append(row)
            self.waiting[row.id] = row
            if len(batch.rows) == self._plan.width:
                self._complete(row.stream, released, moved)

    def _pass(self, row: Row, released: _Leaving, moved: dict[str, StreamState]) -> None:
        """Let a moment pass; what waited before it leaves first, as a shorter batch."""
        before: list[Answer] = []
        if row.stream in self._batches:
            last = self._batches[row.stream].rows[-1].id
            self._complete(row.stream, released, moved)
            before = released.pop(last)
        state = moved.get(row.stream) or self._state(row.stream)
        (happened,), moved[row.stream] = self._plan.skip(state)
        released[row.id] = [*before, self._answer(row, happened)]

    def _complete(self, stream: str, released: _Leaving, moved: dict[str, StreamState]) -> None:
        """Release the batch of a stream; on an error it goes on waiting."""
        rows = self._batches[stream].rows
        state = moved.get(stream) or self._state(stream)
        try:
            events, moved[stream] = self._plan.step(
                state, [row.symbol for row in rows], self._randomness
            )
        except (UnknownSymbol, BudgetExceeded, SolverFailed) as problem:
            raise BadTable(self._path, rows[-1].place, str(problem)) from problem
        del self._batches[stream]
        released[rows[-1].id] = [
            self._answer(row, happened) for row, happened in zip(rows, events, strict=True)
        ]
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
