"""From a table of true values to a table of private ones, with a ledger."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sfumato.accounting.events import Event
from sfumato.alphabet import Label
from sfumato.errors import BudgetExceeded, InvalidParameter, SolverFailed, UnknownSymbol
from sfumato.formats.problems import BadTable
from sfumato.formats.readers import CHUNK_ROWS, STANDARD, Chunk, Table
from sfumato.formats.writers import Columns, Output, Record
from sfumato.jobs import Progress
from sfumato.jobs.fit import stream_name
from sfumato.jobs.interrupt import Interruptible
from sfumato.jobs.spec import beside
from sfumato.models.encoding import Grid, StreamModel, Unreadable
from sfumato.randomness import Randomness, secure
from sfumato.store.sqlite import Answer, SqliteStore
from sfumato.streaming.fleet import InstantFleet
from sfumato.streaming.instant import InstantPlan, InstantState

_RESERVED = ("sequence", "released", "x", "y", "outcome", "sip", "ldp")
_GROUP_SECONDS = 0.25
_STATES_HELD = 100_000
_FEW = 8
"""Fewer rows than this are released one by one."""


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
    """

    rows: int
    repeated: int
    streams: int
    largest_sip: float
    largest_ldp: float
    interrupted: bool


def release_table(
    source: Table,
    output: Table,
    model: StreamModel,
    plan: InstantPlan,
    *,
    ledger: str | Path | None = None,
    event: str | None = None,
    source_name: str | None = None,
    randomness: Randomness | None = None,
    progress: Progress | None = None,
    remark: Callable[[str], None] | None = None,
) -> ReleaseReport:
    """Release a table with one row per value; rows of different streams may be interleaved.

    Args:
        source: The true values.
        output: Where the private values go; a file appears only when it is complete, or, after
            Ctrl-C, when all that was answered is in it.
        model: The model, and how the table is read for it.
        plan: The rule of the release; made for the chain of `model`.
        ledger: File that keeps every answer; with it a second run draws nothing anew.
        event: Column of event ids; without it an event is known by source name and row.
        source_name: The name of the source in event ids; the file name if not given.
        randomness: Coins; fresh ones unless given.
        progress: Called with the number of rows answered so far.
        remark: Told once when a row was answered before, which new data under an old name is.

    Raises:
        BadTable: If a row is malformed; answers committed so far stay in the ledger.
    """
    if plan.model.fingerprint != model.chain.fingerprint:
        raise InvalidParameter("plan", "that of another model", "be made for the given model")
    if event is not None and event in model.values:
        raise InvalidParameter("the event column", event, "not hold the values: ids are released")
    if same_file(source.path, output.path):
        raise BadTable(output.path, None, "the output must not be the input")
    for other in (source.path, output.path, str(beside(output.path))):
        if ledger is not None and same_file(str(ledger), other):
            raise BadTable(str(ledger), None, "the ledger must be a file of its own")
    name = source_name or Path(source.path).name
    with SqliteStore(ledger, plan.fingerprint) as store, Interruptible() as stop:
        run = _Run(source.path, name, model, plan, store, randomness or secure(), remark)
        columns = output_columns(model, with_event=event is not None)
        wanted = [model.stream, *model.values, *([event] if event else [])]
        with Output(output, columns) as sink:
            for group in _groups(_until_stopped(source.chunks(wanted), stop), stop):
                answers = run.answer(group, event)
                sink.write(records(answers, model, with_event=event is not None))
                if progress:
                    progress(run.rows)
        return run.report(interrupted=stop.requested)


def output_columns(model: StreamModel, *, with_event: bool) -> Columns:
    """Columns of a released table, and what they hold."""
    columns: dict[str, type] = {"event": str} if with_event else {}
    taken = {*columns, *_RESERVED}
    if model.stream in taken:
        rule = f"not have the name of an output column ({', '.join(sorted(taken))})"
        raise InvalidParameter("the stream column", model.stream, rule)
    columns |= {
        model.stream: str,
        "sequence": int,
        "released": type(model.chain.alphabet.labels[0]),
    }
    if isinstance(model.encoding, Grid):
        columns |= {"x": float, "y": float}
    return columns | {"outcome": str, "sip": float, "ldp": float}


def records(answers: Iterable[Answer], model: StreamModel, *, with_event: bool) -> Iterator[Record]:
    """Answers as rows of the output: public things only."""
    alphabet = model.chain.alphabet
    centres = alphabet.coordinates if isinstance(model.encoding, Grid) else None
    for answer in answers:
        event = answer.event
        record: list[Label | float | None] = [answer.id] if with_event else []
        record += [event.stream, event.sequence, event.released]
        if centres is not None:
            known = event.released is not None
            record += centres[alphabet.index(event.released)].tolist() if known else [None, None]
        yield [*record, event.outcome.value, event.sip.epsilon, event.ldp.epsilon]


@dataclass(frozen=True, slots=True)
class _Row:
    """A row that needs a new draw."""

    id: str
    stream: str
    row: int
    symbol: Label | None


class _Run:
    """One pass over a source: answers chunk by chunk, each committed before it leaves."""

    def __init__(
        self,
        path: str,
        name: str,
        model: StreamModel,
        plan: InstantPlan,
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
        self._repeated = 0
        self._touched: set[str] = set()
        self._largest = (0.0, 0.0)

    def answer(self, chunk: Chunk, event: str | None) -> list[Answer]:
        """Answer every row of a chunk: from the ledger, or by a new draw that is committed."""
        ids = self._ids(chunk, event)
        known = self._store.answers(ids)
        asked: list[tuple[str, str, int]] = []
        fresh: dict[str, _Row] = {}
        released: dict[str, Answer] = {}
        moved: dict[str, InstantState] = {}
        try:
            # What was drawn is charged and kept, also when a later row is refused.
            try:
                self._read(chunk, ids, known, asked, fresh)
            finally:
                self._release(fresh, released, moved)
        finally:
            self._commit(released.values(), moved)
        answers = []
        for id_, stream, row in asked:
            if id_ in fresh and fresh[id_].row == row:
                answers.append(released[id_])
            else:
                answers.append(self._again(released.get(id_) or known[id_], stream, row))
        self.rows += len(answers)
        return answers

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
            if id_ not in known and id_ not in fresh:
                fresh[id_] = _Row(id_, stream, row, self._symbol(value, row))
            asked.append((id_, stream, row))

    def _release(
        self, rows: dict[str, _Row], released: dict[str, Answer], moved: dict[str, InstantState]
    ) -> None:
        """Draw an answer for each row; values of one stream in their order."""
        if self._plan.policy is None or len(rows) < _FEW:
            for row in rows.values():
                state = moved.get(row.stream) or self._state(row.stream)
                happened, moved[row.stream] = self._step(state, row)
                released[row.id] = Answer(row.id, self._name, row.row, happened)
            return
        streams = list(dict.fromkeys(row.stream for row in rows.values()))
        places = {stream: place for place, stream in enumerate(streams)}
        states = [self._state(stream) for stream in streams]
        fleet = InstantFleet(self._plan, states=states, randomness=self._randomness)
        try:
            for wave in _waves(rows.values()):
                which = np.array([places[row.stream] for row in wave])
                for row, happened in zip(wave, self._wave(fleet, wave, which), strict=True):
                    released[row.id] = Answer(row.id, self._name, row.row, happened)
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

    def _ids(self, chunk: Chunk, event: str | None) -> list[str]:
        if event is None:
            return [f"{self._name}:{chunk.first + offset}" for offset in range(len(chunk))]
        return [
            stream_name(id_, event, self._path, chunk.first + offset)
            for offset, id_ in enumerate(chunk.columns[event])
        ]

    def _again(self, answer: Answer, stream: str, row: int) -> Answer:
        """The answer given before, if this is indeed the same event."""
        if answer.event.stream != stream:
            raise BadTable(self._path, row, "an event id must not occur in two streams")
        if answer.source == self._name and answer.place != row:
            rule = f"an event id must occur once; it stands in row {answer.place} too"
            raise BadTable(self._path, row, rule)
        if self._remark and not self._repeated:
            self._remark(
                f"{self._path}, row {row}: answered before, as event {answer.id!r}; new data under "
                "an old name needs another --source, or event ids"
            )
        self._repeated += 1
        self._touched.add(stream)
        return answer

    def _state(self, stream: str) -> InstantState:
        held = self._states.get(stream) or self._store.state(stream)
        return held or self._plan.begin(stream)

    def _symbol(self, value: tuple[object, ...], row: int) -> Label | None:
        try:
            return self._model.encoding.encode(*value)  # type: ignore[arg-type]
        except Unreadable as problem:
            raise BadTable(self._path, row, f"the value {problem}") from None

    def _step(self, state: InstantState, row: _Row) -> tuple[Event, InstantState]:
        try:
            return self._plan.step(state, row.symbol, self._randomness)
        except (UnknownSymbol, BudgetExceeded, SolverFailed) as problem:
            raise BadTable(self._path, row.row, str(problem)) from problem

    def _commit(self, fresh: Iterable[Answer], moved: dict[str, InstantState]) -> None:
        if not moved:
            return
        self._store.commit(fresh, moved.values())
        if len(self._states) + len(moved) > _STATES_HELD:
            self._states.clear()
        self._states.update(moved)
        self._touched.update(moved)
        for state in moved.values():
            sip, ldp = self._largest
            self._largest = max(sip, state.ledger.sip), max(ldp, state.ledger.ldp)

    def report(self, *, interrupted: bool) -> ReleaseReport:
        sip, ldp = self._largest
        if self._repeated:
            spent = [self._state(stream).ledger for stream in self._touched]
            sip, ldp = max(one.sip for one in spent), max(one.ldp for one in spent)
        return ReleaseReport(self.rows, self._repeated, len(self._touched), sip, ldp, interrupted)


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


def same_file(left: str, right: str) -> bool:
    """Whether two names mean one file, however they are written."""
    return left != STANDARD and os.path.realpath(left) == os.path.realpath(right)


def _groups(chunks: Iterator[Chunk], stop: Interruptible) -> Iterator[Chunk]:
    """Chunks in parts that take a fraction of a second, so that a request to stop is heard."""
    size = 16
    for chunk in chunks:
        start = 0
        while start < len(chunk) and not stop.requested:
            began = time.monotonic()
            part = {name: column[start : start + size] for name, column in chunk.columns.items()}
            yield Chunk(chunk.first + start, part)
            start += size
            quick = time.monotonic() - began < _GROUP_SECONDS
            size = min(2 * size, CHUNK_ROWS) if quick else max(size // 2, 1)


def _until_stopped(chunks: Iterator[Chunk], stop: Interruptible) -> Iterator[Chunk]:
    while not stop.requested:
        chunk = None
        with stop.waiting():
            chunk = next(chunks, None)
        if chunk is None:
            return
        yield chunk
