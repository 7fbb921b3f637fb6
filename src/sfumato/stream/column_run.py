"""One pass over a table by columns: many rows at a time, committed before they leave.

Arrays cover what is regular. Rows with anything else among them (a refusal, a cell that cannot be
read, an event that stands there twice, a step back in time) go one by one through `RowRun`, with
the same streams: so answers, ledgers and errors are those of rows that came one by one.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from sfumato.core.alphabet import MISSING_SYMBOL
from sfumato.core.arrays import Bools, Ints
from sfumato.core.errors import BudgetExceeded, SolverFailed, UnknownSymbol
from sfumato.core.events import OUTCOMES
from sfumato.core.state import StreamState
from sfumato.models.stream_model import StreamModel
from sfumato.store.answer_columns import AnswerColumns, Coded
from sfumato.store.chain import value_tags
from sfumato.store.ledgered_run import LedgeredRun
from sfumato.store.protocol import Identity, Store
from sfumato.stream.answer_table import AnswerTable, answer_table
from sfumato.stream.column_rows import ColumnReader, RowColumns
from sfumato.stream.column_times import TimeKeys
from sfumato.stream.column_values import Irregular
from sfumato.stream.earlier_rows import EarlierRows
from sfumato.stream.fleet_answers import Run
from sfumato.stream.input_rows import Reading, RowChecks
from sfumato.stream.release_report import ReleaseReport
from sfumato.stream.row_run import RowRun
from sfumato.stream.run_streams import RunStreams
from sfumato.tables.batches import BATCH_ROWS, Batch, Column, as_batch
from sfumato.tables.cells import Late
from sfumato.tables.chunks import CHUNK_ROWS, Chunk
from sfumato.tables.input_groups import GROUP_SECONDS, Interruptible, until_stopped
from sfumato.tables.writers import Record

Answered: TypeAlias = AnswerTable | list[Record]
"""What may leave: by columns, or row by row."""

_FIRST_ROWS = 16
_COMMIT_SECONDS = 8 * GROUP_SECONDS
"""A commit holds the state of every stream once: fewer and larger ones cost less per row."""
_SHORT_STRETCH = 256
"""Old answers among new ones in stretches shorter than this are found row by row."""
_REFUSALS = (UnknownSymbol, BudgetExceeded, SolverFailed)


@dataclass(frozen=True, slots=True)
class OneByOne:
    """The same run row by row.

    Attributes:
        run: Answers rows.
        checks: What must hold of them.
        streams: Where the streams stand.
        earlier: Finds rows that came before.
    """

    run: RowRun
    checks: RowChecks
    streams: RunStreams
    earlier: EarlierRows

    def answered(self, chunk: Chunk) -> list[Record]:
        """Rows of the output for some rows of the input, after others that came by columns."""
        if self.streams.ordered:
            self.checks.forget_times()
        self.earlier.until = chunk.first
        return self.run.answered(chunk)


class ColumnRun:
    """One pass over a table with one row per value, under a plan with a policy.

    Args:
        one_by_one: The same run row by row: it answers what is not regular.
        reader: Reads rows by columns.
        streams: Where the streams of both stand.
        ledger: What both commit to.
        store: Where that lies; None if nothing is kept.
        reading: What must hold of rows.
        model: How values become symbols.
    """

    def __init__(
        self,
        one_by_one: OneByOne,
        reader: ColumnReader,
        streams: RunStreams,
        ledger: LedgeredRun[StreamState],
        store: Store | None,
        reading: Reading,
        model: StreamModel,
    ) -> None:
        self._one_by_one, self._row_run, self._reader = one_by_one, one_by_one.run, reader
        self._streams, self._ledger, self._store = streams, ledger, store
        self._reading, self._model = reading, model
        self._rows = self._missing = self._clipped = 0

    @property
    def rows(self) -> int:
        """Rows answered so far."""
        return self._rows + self._row_run.rows

    def check_resumed(self) -> None:
        """At the end of the input: refuse one that lacks rows which were answered before."""
        self._row_run.check_resumed()

    def remark(self) -> str | None:
        """What to tell of the streams of this run; None if there is nothing."""
        return self._row_run.remark()

    def report(self, *, interrupted: bool) -> ReleaseReport:
        """What was done."""
        one_by_one = self._row_run.report(interrupted=interrupted)
        sip, ldp = self._streams.largest
        return replace(
            one_by_one,
            rows=self.rows,
            largest_sip=sip,
            largest_ldp=ldp,
            missing=one_by_one.missing + self._missing,
            clipped=one_by_one.clipped + self._clipped,
        )

    def answers(self, batches: Iterator[Batch | Chunk], stop: Interruptible) -> Iterator[Answered]:
        """What may leave, in parts that take a fraction of a second: a request to stop is heard.

        Parts begin small, as for rows that come one by one. They are as long as their own work
        allows: what else a machine does would cut them short, and many short ones take longer.
        """
        size = _FIRST_ROWS
        allowed = GROUP_SECONDS if self._store is None else _COMMIT_SECONDS
        for batch in until_stopped(batches, stop):
            start = 0
            while start < len(batch) and not stop.requested:
                began = time.thread_time()
                done, answered = self._part(_part(batch, start, size))
                yield answered
                start += done
                size = max(done, 1) if done < min(size, len(batch) - start + done) else size
                quick = time.thread_time() - began < allowed
                size = min(2 * size, BATCH_ROWS) if quick else max(size // 2, 1)

    def _part(self, part: Batch | Chunk) -> tuple[int, Answered]:
        """Answer some rows, or the first of them; how many."""
        # Rows of a pipe that came before a bad one must have left.
        most = 1 if self._one_by_one.checks.live else CHUNK_ROWS
        try:
            return self._by_columns(_batch(part))
        except Irregular:
            if len(part) > most:
                return self._part(_part(part, 0, len(part) // 2))
            chunk = part.chunk() if isinstance(part, Batch) else part
            return len(part), self._one_by_one.answered(chunk)

    def _by_columns(self, part: Batch) -> tuple[int, Answered]:
        """Answer rows by array, all of them or those before an old answer.

        Raises:
            Irregular: If they must go one by one; nothing has been done for any of them.
        """
        rows = self._reader.read(part)
        if not len(rows):
            self._count(rows)
            return len(part), []
        times: list[str] | None = None
        ids: list[str] = []
        if self._store is not None:
            times = self._reader.texts_of_times(part, rows)
            ids = self._reader.ids(rows, times)
            known = self._known(self._store, ids)
            turns = np.flatnonzero(np.diff(known))
            if turns.size:
                if len(rows) < _SHORT_STRETCH * turns.size:
                    raise Irregular
                return self._by_columns(
                    _slice(part, 0, int(rows.places[turns[0]]) + 1 - part.first)
                )
            if known[0]:
                return len(part), self._repeated(self._store, rows, ids)
        elif (seen := self._one_by_one.earlier.seen) is not None:
            ids = self._reader.ids(rows, self._reader.texts_of_times(part, rows))
            if seen.perhaps(ids).any():
                raise Irregular
        return len(part), self._fresh(rows, ids, times)

    def _known(self, store: Store, ids: list[str]) -> Bools:
        """Which rows were answered before."""
        if self._reading.identity is Identity.ROW and not self._ledger.source.answered:
            # They are known by the name of an input that no other has, and the number of a row.
            return np.zeros(len(ids), dtype=np.bool_)
        return store.known(ids)

    def _fresh(self, rows: RowColumns, ids: list[str], times: list[str] | None) -> AnswerTable:
        """Draw new answers, and commit them."""
        places = self._streams.places(rows.streams.words)
        which = places[rows.streams.codes]
        keys = self._in_order(rows, which)
        try:
            run = self._streams.run(rows.cells, which)
        except _REFUSALS:
            raise Irregular from None
        if self._store is not None:
            answers = self._answer_columns(rows, ids, times, run)
            self._store.commit_columns(answers, self._streams.fleet.positions(places))
        else:
            self._one_by_one.earlier.add(ids)
        self._ledger.answered += len(rows)
        self._streams.mark_new(which, run.sequences)
        if keys is not None:
            self._streams.set_times(which, keys)
        self._count(rows)
        self._rows += len(rows)
        return answer_table(self._model, rows, run)

    def _in_order(self, rows: RowColumns, which: Ints) -> TimeKeys | None:
        """The times of rows, if no stream goes back in them, and none has one twice."""
        if rows.times is None:
            return None
        times = self._streams.compared(rows.times)
        if self._reading.late is Late.ACCEPT:
            return times
        by_stream = np.argsort(which, kind="stable")
        streams, keys = which[by_stream], times.keys[by_stream]
        before = np.empty_like(keys)
        before[1:] = keys[:-1]
        follows = np.concatenate([[False], streams[1:] == streams[:-1]])
        timed, last = self._streams.last_keys(streams[~follows])
        before[~follows] = np.where(timed, last, keys[~follows])
        follows[~follows] = timed
        # Where times tell events apart, the same time is the same event.
        strictly = self._reading.identity is Identity.TIME
        back = keys <= before if strictly else keys < before
        if (back & follows).any():
            raise Irregular
        return times

    def _answer_columns(
        self, rows: RowColumns, ids: list[str], times: list[str] | None, run: Run
    ) -> AnswerColumns:
        return AnswerColumns(
            source=self._ledger.source.label,
            ids=ids,
            places=rows.places,
            streams=rows.streams,
            sequences=run.sequences,
            outcomes=Coded(run.outcomes.astype(np.int64), [one.value for one in OUTCOMES]),
            released=Coded(run.released, self._model.alphabet.labels),
            leakage=run.charges[:, 0],
            model_free=run.charges[:, 1],
            tags=self._tags(rows, ids),
            times=times,
            signals=run.signals,
        )

    def _tags(self, rows: RowColumns, ids: list[str]) -> list[bytes]:
        # A value outside the alphabet stands at -1, a moment that passes at -2.
        words = (*self._model.alphabet.labels, MISSING_SYMBOL, None)
        values = [words[cell] for cell in rows.cells.tolist()]
        names = [rows.streams.words[code] for code in rows.streams.codes.tolist()]
        return value_tags(self._ledger.source.secret, ids, names, values)

    def _repeated(self, store: Store, rows: RowColumns, ids: list[str]) -> list[Record]:
        """The answers that were given before, if these are the same rows."""
        found = store.answers(ids)
        old = [found[id_] for id_ in ids]
        names = [rows.streams.words[code] for code in rows.streams.codes.tolist()]
        if [answer.stream for answer in old] != names:
            raise Irregular
        if not all(map(self._ledger.comparable, {answer.source for answer in old})):
            raise Irregular
        tags = b"".join(answer.tag for answer in old)
        if not hmac.compare_digest(tags, b"".join(self._tags(rows, ids))):
            raise Irregular
        which = self._streams.places(rows.streams.words)[rows.streams.codes]
        sequences = np.array([answer.sequence for answer in old])
        here = self._streams.answered_here(which, sequences)
        if self._reading.identity is not Identity.ROW and here.any():
            raise Irregular
        self._ledger.repeated += len(rows)
        self._streams.mark_old(which)
        self._count(rows)
        return self._row_run.repeated(old, _beside(rows))

    def _count(self, rows: RowColumns) -> None:
        self._missing += rows.missing
        self._clipped += rows.clipped


def _beside(rows: RowColumns) -> list[tuple[str | None, ...]]:
    """What leaves beside each row."""
    if not rows.beside:
        return [()] * len(rows)
    return list(zip(*(column.cells() for column in rows.beside.values()), strict=True))


def _part(batch: Batch | Chunk, start: int, size: int) -> Batch | Chunk:
    """Some successive rows."""
    if isinstance(batch, Batch):
        return _slice(batch, start, size)
    cells = {name: column[start : start + size] for name, column in batch.columns.items()}
    return Chunk(batch.first + start, cells)


def _batch(part: Batch | Chunk) -> Batch:
    """The same rows as arrays, if each column holds one kind of cells."""
    batch = as_batch(part) if isinstance(part, Chunk) else part
    if isinstance(batch, Chunk):
        raise Irregular
    return batch


def _slice(part: Batch, start: int, size: int) -> Batch:
    columns = {name: Column(one.array.slice(start, size)) for name, one in part.columns.items()}
    return Batch(part.first + start, columns)
