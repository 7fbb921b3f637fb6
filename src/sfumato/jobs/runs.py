"""One pass over a source: rows in, answers out, each committed before it leaves."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.accounting.events import Event
from sfumato.alphabet import Label
from sfumato.errors import BudgetExceeded, SolverFailed, UnknownSymbol
from sfumato.formats.problems import BadTable
from sfumato.formats.readers import Chunk
from sfumato.jobs.fit import stream_name
from sfumato.models.encoding import StreamModel, Unreadable
from sfumato.randomness import Randomness
from sfumato.store.sqlite import Answer, SqliteStore
from sfumato.streaming.batched_plan import BatchedPlan
from sfumato.streaming.fleet import InstantFleet
from sfumato.streaming.instant import Fallback, InstantPlan, InstantState

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
    """

    rows: int
    repeated: int
    streams: int
    largest_sip: float
    largest_ldp: float
    interrupted: bool
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class _Row:
    """A row that needs a new draw."""

    id: str
    stream: str
    row: int
    symbol: Label | None


_Leaving: TypeAlias = dict[str, list[Answer]]
"""The answers that leave when a row has come, by the event id of that row."""


class Run(ABC):
    """One pass over a source: answers chunk by chunk, each committed before it leaves.

    Attributes:
        rows: Rows answered so far.
        waiting: Rows whose batch is not complete, by event id.
    """

    def __init__(
        self,
        path: str,
        name: str,
        model: StreamModel,
        plan: InstantPlan | BatchedPlan,
        store: SqliteStore,
        randomness: Randomness,
        remark: Callable[[str], None] | None,
    ) -> None:
        self._remark = remark
        self._path = path
        self._name = name
        self._model = model
        self._plan = plan
        self._store = store
        self._randomness = randomness
        self._states: dict[str, InstantState] = {}
        self.rows = 0
        self.waiting: dict[str, _Row] = {}
        self._repeated = 0
        self._touched: set[str] = set()
        self._largest = (0.0, 0.0)

    def answer(self, chunk: Chunk, event: str | None) -> list[Answer]:
        """Answer the rows of a chunk: from the ledger, or by a new draw that is committed."""
        ids = self._ids(chunk, event)
        known = self._store.answers(ids)
        asked: list[tuple[str, str, int]] = []
        fresh: dict[str, _Row] = {}
        released: _Leaving = {}
        moved: dict[str, InstantState] = {}
        try:
            # What was drawn is charged and kept, also when a later row is refused.
            try:
                self._read(chunk, ids, known, asked, fresh)
            finally:
                self._release(fresh, released, moved)
        finally:
            self._commit(released, moved)
        known |= {answer.id: answer for answers in released.values() for answer in answers}
        answers: list[Answer] = []
        for id_, stream, row in asked:
            if id_ in fresh and fresh[id_].row == row:
                answers += released.get(id_, ())
            else:
                answers.append(self._again(known.get(id_), fresh.get(id_), stream, row))
        self.rows += len(answers)
        return answers

    def flush(self, waited: float = 0.0) -> list[Answer]:
        """Answer some rows that have waited for so many seconds; none wait unless in batches."""
        return []

    def patience(self, wait: float) -> float | None:
        """Seconds until a row will have waited for too long; None while nothing waits."""
        return None

    def _read(
        self,
        chunk: Chunk,
        ids: list[str],
        known: dict[str, Answer],
        asked: list[tuple[str, str, int]],
        fresh: dict[str, _Row],
    ) -> None:
        """List the rows of a chunk, and those of them that need a new draw."""
        owners = chunk.columns[self._model.stream]
        values = zip(*(chunk.columns[name] for name in self._model.values), strict=True)
        for offset, (id_, owner, value) in enumerate(zip(ids, owners, values, strict=True)):
            row = chunk.first + offset
            stream = stream_name(owner, self._model.stream, self._path, row)
            if id_ in self.waiting:
                raise self._twice(self.waiting[id_].row, row)
            if id_ not in known and id_ not in fresh:
                fresh[id_] = _Row(id_, stream, row, self._symbol(value, row))
            asked.append((id_, stream, row))

    @abstractmethod
    def _release(
        self, rows: dict[str, _Row], released: _Leaving, moved: dict[str, InstantState]
    ) -> None:
        """Draw answers for rows; values of one stream in their order."""

    def _ids(self, chunk: Chunk, event: str | None) -> list[str]:
        if event is None:
            return [f"{self._name}:{chunk.first + offset}" for offset in range(len(chunk))]
        return [
            stream_name(id_, event, self._path, chunk.first + offset)
            for offset, id_ in enumerate(chunk.columns[event])
        ]

    def _again(self, answer: Answer | None, first: _Row | None, stream: str, row: int) -> Answer:
        """The answer given before, if this is indeed the same event."""
        if answer is None:
            raise self._twice(0 if first is None else first.row, row)
        if answer.event.stream != stream:
            raise BadTable(self._path, row, "an event id must not occur in two streams")
        if answer.source == self._name and answer.place != row:
            raise self._twice(answer.place, row)
        if self._remark and not self._repeated:
            self._remark(
                f"{self._path}, row {row}: answered before, as event {answer.id!r}; new data under "
                "an old name needs another --source, or event ids"
            )
        self._repeated += 1
        self._touched.add(stream)
        return answer

    def _twice(self, first: int, row: int) -> BadTable:
        rule = f"an event id must occur once; it stands in row {first} too"
        return BadTable(self._path, row, rule)

    def _state(self, stream: str) -> InstantState:
        held = self._states.get(stream) or self._store.state(stream)
        return held or self._plan.begin(stream)

    def _symbol(self, value: tuple[object, ...], row: int) -> Label | None:
        try:
            return self._model.encoding.encode(*value)  # type: ignore[arg-type]
        except Unreadable as problem:
            raise BadTable(self._path, row, f"the value {problem}") from None

    def _commit(self, released: _Leaving, moved: dict[str, InstantState]) -> None:
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
        )


class InstantRun(Run):
    """Every value at once."""

    _plan: InstantPlan

    def _release(
        self, rows: dict[str, _Row], released: _Leaving, moved: dict[str, InstantState]
    ) -> None:
        if self._plan.policy is None or len(rows) < _FEW:
            for row in rows.values():
                state = moved.get(row.stream) or self._state(row.stream)
                happened, moved[row.stream] = self._step(state, row)
                released[row.id] = [Answer(row.id, self._name, row.row, happened)]
            return
        streams = list(dict.fromkeys(row.stream for row in rows.values()))
        places = {stream: place for place, stream in enumerate(streams)}
        states = [self._state(stream) for stream in streams]
        fleet = InstantFleet(self._plan, states=states, randomness=self._randomness)
        try:
            for wave in _waves(rows.values()):
                which = np.array([places[row.stream] for row in wave])
                for row, happened in zip(wave, self._wave(fleet, wave, which), strict=True):
                    released[row.id] = [Answer(row.id, self._name, row.row, happened)]
        finally:
            # What an interrupted step drew never left: it is forgotten.
            for place, before in enumerate(states if not fleet.torn else ()):
                if (after := fleet.state(place)).sequence > before.sequence:
                    moved[before.stream] = after

    def _wave(self, fleet: InstantFleet, wave: list[_Row], which: NDArray[np.int64]) -> list[Event]:
        """One value of each of some streams; all of them or, on an error, none."""
        try:
            return list(fleet.step([row.symbol for row in wave], which))
        except (UnknownSymbol, BudgetExceeded, SolverFailed):
            # Find the row that is refused; a state is tried and thrown away.
            for row, place in zip(wave, which.tolist(), strict=True):
                self._step(fleet.state(place), row)
            raise

    def _step(self, state: InstantState, row: _Row) -> tuple[Event, InstantState]:
        try:
            return self._plan.step(state, row.symbol, self._randomness)
        except (UnknownSymbol, BudgetExceeded, SolverFailed) as problem:
            raise BadTable(self._path, row.row, str(problem)) from problem


class BatchedRun(Run):
    """A row waits until its batch is complete, or is flushed."""

    _plan: BatchedPlan

    def __init__(self, *run: Any) -> None:
        super().__init__(*run)
        # True values of incomplete batches are here alone: never in the ledger.
        self._batches: dict[str, _Batch] = {}

    def flush(self, waited: float = 0.0) -> list[Answer]:
        """Release some batches that began so many seconds ago, shorter than they should be."""
        now = time.monotonic()
        # Those that began first stand first.
        oldest = islice(self._batches.items(), _FLUSHED)
        due = [name for name, _ in takewhile(lambda one: now - one[1].began >= waited, oldest)]
        released: _Leaving = {}
        moved: dict[str, InstantState] = {}
        try:
            for stream in due:
                self._complete(stream, released, moved)
        finally:
            self._commit(released, moved)
        late = [answer for answers in released.values() for answer in answers]
        self.rows += len(late)
        return late

    def patience(self, wait: float) -> float | None:
        """Seconds until a row will have waited for too long; None while nothing waits."""
        oldest = next(iter(self._batches.values()), None)
        return None if oldest is None else max(0.0, oldest.began + wait - time.monotonic())

    def _release(
        self, rows: dict[str, _Row], released: _Leaving, moved: dict[str, InstantState]
    ) -> None:
        refuse = self._plan.on_unknown is Fallback.REFUSE
        for row in rows.values():
            if refuse and row.symbol not in self._model.alphabet:
                raise BadTable(self._path, row.row, str(UnknownSymbol(len(self._model.alphabet))))
            batch = self._batches.setdefault(row.stream, _Batch(time.monotonic(), []))
            batch.rows.append(row)
            self.waiting[row.id] = row
            if len(batch.rows) == self._plan.width:
                self._complete(row.stream, released, moved)

    def _complete(self, stream: str, released: _Leaving, moved: dict[str, InstantState]) -> None:
        """Release the batch of a stream; on an error it goes on waiting."""
        rows = self._batches[stream].rows
        state = moved.get(stream) or self._state(stream)
        try:
            events, moved[stream] = self._plan.step(
                state, [row.symbol for row in rows], self._randomness
            )
        except (UnknownSymbol, BudgetExceeded, SolverFailed) as problem:
            raise BadTable(self._path, rows[-1].row, str(problem)) from problem
        del self._batches[stream]
        released[rows[-1].id] = [
            Answer(row.id, self._name, row.row, happened)
            for row, happened in zip(rows, events, strict=True)
        ]
        for row in rows:
            del self.waiting[row.id]


@dataclass(frozen=True, slots=True)
class _Batch:
    """Rows of one stream that wait for each other, and when the first of them came."""

    began: float
    rows: list[_Row]


def _waves(rows: Iterable[_Row]) -> Iterator[list[_Row]]:
    """Rows in groups with at most one of each stream, in their order."""
    waves: list[list[_Row]] = []
    seen: dict[str, int] = {}
    for row in rows:
        turn = seen.get(row.stream, 0)
        seen[row.stream] = turn + 1
        if turn == len(waves):
            waves.append([])
        waves[turn].append(row)
    yield from waves
