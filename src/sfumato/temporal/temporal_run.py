"""From a table of correlated streams to a table of private ones, with a ledger."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sfumato.core.certificate import Certificate
from sfumato.core.errors import BudgetExceeded, InsecureRandomness, InvalidParameter, UnknownSymbol
from sfumato.core.progress import Progress
from sfumato.core.randomness import Randomness, secure
from sfumato.store.ledgered_run import Group, LedgeredRun, StateKind
from sfumato.store.protocol import Again, Answer, Identity, Input, LedgerMismatch, Store
from sfumato.store.sqlite import SqliteStore
from sfumato.tables.input_groups import (
    EventColumns,
    Interruptible,
    TimeOrder,
    groups,
    until_stopped,
)
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import CHUNK_ROWS, Chunk, Table, same_file
from sfumato.tables.writers import Output
from sfumato.temporal.temporal_certificate import StreamTotals
from sfumato.temporal.temporal_plan import TemporalPlan, TemporalState
from sfumato.temporal.temporal_rows import (
    RELEASED,
    SKIPPED,
    Row,
    RowReader,
    output_columns,
    read_value,
    records,
    written_value,
)
from sfumato.temporal.temporal_spec import JOB, TemporalSpec, beside, document


@dataclass(frozen=True, slots=True)
class TemporalReport:
    """What a run did.

    Attributes:
        rows: Rows answered.
        repeated: How many of them had been answered before; their noise was not drawn again.
        skipped: Rows whose value was missing: nothing left, and their moment passed.
        streams: How many streams the ledger has.
        interrupted: Whether the run was asked to stop before the end of the input.
        certificate: What all that the ledger holds leaks and costs.
        moments: How many moments that is about: more than rows, if streams began before them.
    """

    rows: int
    repeated: int
    skipped: int
    streams: int
    interrupted: bool
    certificate: Certificate
    moments: int


def release_streams(
    source: Table,
    output: Table,
    spec: TemporalSpec,
    *,
    ledger: str | Path | None = None,
    columns: EventColumns | None = None,
    again: Again = Again.REFUSE,
    source_name: str | None = None,
    randomness: Randomness | None = None,
    progress: Progress | None = None,
) -> TemporalReport:
    r"""Release a table with one row per moment of a stream; streams may be interleaved.

    Args:
        source: The true values.
        output: Where the private ones go; a file appears only when it is complete, or, after
            Ctrl-C, when all that was answered is in it. Its rules lie beside it.
        spec: The rules.
        ledger: File that keeps every answer: an event that comes again gets its old answer, and a
            stream goes on from file to file.
        columns: What tells events apart; else they are known by source and row.
        again: Whether a source that the ledger knows is the same input once more (`RESUME`), which
            is checked, or new data (`APPEND`).
        source_name: The name of the source in the ledger; the file name if not given.
        randomness: Coins; fresh ones unless given.
        progress: Called with the number of rows answered so far.

    Raises:
        BadTable: If a row is malformed or refused; answers committed so far stay in the ledger.
        LedgerMismatch: If the ledger is that of another plan, or knows the source already.

    Examples:
        >>> from sfumato.tables.readers import Table
        >>> folder, chain = getfixture("tmp_path"), [[0.8, 0.2], [0.2, 0.8]]
        >>> names = ("counts.csv", "private.csv")
        >>> counts, private = (Table.at(str(folder / name)) for name in names)
        >>> _ = (folder / "counts.csv").write_text("stream,value\nhill,7\nhill,9\n")
        >>> spec = TemporalSpec(alpha=1.0, steps=2, backward=[chain])
        >>> release_streams(counts, private, spec).rows
        2

    References:
        [TPL, Fig. 1 and Alg. 8]
    """
    spec, columns = spec.check(), columns or EventColumns()
    coins = secure() if randomness is None else randomness
    if coins.simulated and spec.purpose != "simulation":
        raise InsecureRandomness("a temporal release")
    _check_files(source, output, ledger)
    if ledger is None and again is not Again.REFUSE:
        raise InvalidParameter("ledger", None, f"be given to {again.value} a source")
    written, rules = output_columns(spec, columns), document(spec)
    with (
        SqliteStore(ledger, spec.fingerprint, job=JOB, rules=rules.decode()) as store,
        Interruptible() as stop,
    ):
        asked = store.begin(source_name or Path(source.path).name, columns.identity, again)
        run = _TemporalRun(source.path, spec, columns, store, asked, coins)
        papers = {} if output.is_standard else {str(beside(output.path)): rules}
        with Output(output, written, papers) as sink:
            if ledger is None and not coins.addressed:
                _check_new(output)
            wanted = (spec.stream, *spec.values, *columns.names)
            # Rows of a pipe that came before a bad one have left: they go one by one.
            size = 1 if source.is_standard else CHUNK_ROWS
            with closing(source.chunks(wanted, rows=size)) as chunks:
                for chunk in groups(until_stopped(chunks, stop), stop):
                    if chunk is not None:
                        sink.write(records(run.answer(chunk), spec, columns))
                    if progress:
                        progress(run.rows)
            if not stop.requested:
                run.check_complete()
        return run.report(interrupted=stop.requested)


def _check_files(source: Table, output: Table, ledger: str | Path | None) -> None:
    if same_file(source.path, output.path):
        raise BadTable(output.path, None, "the output must not be the input")
    for other in (source.path, output.path, str(beside(output.path))):
        if ledger is not None and same_file(str(ledger), other):
            raise BadTable(str(ledger), None, "the ledger must be a file of its own")


def _check_new(output: Table) -> None:
    """Without a ledger nothing that left is drawn anew by accident."""
    if not output.is_standard and Path(output.path).exists():
        rule = "not exist: a second release tells more about everyone (or give a ledger, or a key)"
        raise InvalidParameter("output", output.path, rule)


class _TemporalRun:
    """One pass over a source: answers group by group, each committed before it leaves."""

    def __init__(
        self,
        path: str,
        spec: TemporalSpec,
        columns: EventColumns,
        store: Store,
        asked: Input,
        coins: Randomness,
    ) -> None:
        self.rows = self.skipped = 0
        self._path, self._spec, self._columns = path, spec, columns
        self._store, self._coins = store, coins
        self._common = spec.plan("") if spec.backward or spec.forward else None
        self._plans: dict[str, TemporalPlan] = {}
        kind = StateKind(
            TemporalState,
            lambda stream: self._plan(stream).begin(stream),
            lambda state: state.sequence,
            # The sum of all releases by themselves holds for a whole stream, whatever the matrices.
            lambda state: (state.spent, state.spent),
        )
        self._ledger = LedgeredRun(store, asked, kind)
        self._reader = RowReader(path, spec, columns, asked.label)
        self._order = TimeOrder(path, columns.time, self._ledger.last_time, "sort the table")

    def _plan(self, stream: str) -> TemporalPlan:
        if self._common is not None and stream not in self._spec.own:
            return self._common
        if stream not in self._plans:
            self._plans[stream] = self._spec.plan(stream)
        return self._plans[stream]

    def answer(self, chunk: Chunk) -> list[Answer]:
        """Answer the rows of a chunk: from the ledger, or by a new draw that is committed."""
        answers: list[Answer] = []
        rows, problem = self._reader.read(chunk)
        earlier = self._ledger.earlier([row.id for row in rows])
        fresh: dict[str, Row] = {}
        # What was drawn is charged and kept, also when a later row is refused.
        with self._ledger.group() as group:
            for row in rows:
                if row.id in earlier:
                    answers.append(self._repeated(earlier[row.id], row))
                    continue
                if row.id in fresh:
                    raise self._twice(row, fresh[row.id].place)
                fresh[row.id] = row
                answers.append(self._drawn(row, group))
        if problem is not None:
            raise problem
        self.rows += len(answers)
        return answers

    def _drawn(self, row: Row, group: Group[TemporalState]) -> Answer:
        self._order.check(row)
        try:
            plan, state = self._plan(row.stream), group.state(row.stream)
            if row.value is None:
                (event,), after = plan.skip(state)
                self.skipped += 1
            else:
                (event,), after = plan.step(state, row.value, self._coins)
        except BudgetExceeded as problem:
            rule = f"{problem}. Answers to rows before it are in the ledger, if there is one"
            raise BadTable(self._path, row.place, rule) from problem
        except (InvalidParameter, UnknownSymbol) as problem:
            raise BadTable(self._path, row.place, str(problem)) from problem
        answer = Answer(
            row.id,
            self._ledger.source.label,
            row.place,
            row.stream,
            event.sequence,
            SKIPPED if row.value is None else RELEASED,
            written_value(event.value),
            event.epsilon,
            event.epsilon,
            time=None if row.time is None else row.time.text,
            tag=self._ledger.tag(row.id, row.stream, row.written),
        )
        group.add([answer], row.stream, after)
        return answer

    def _repeated(self, answer: Answer, row: Row) -> Answer:
        if self._ledger.answered_here(answer) and self._columns.identity is not Identity.ROW:
            raise self._twice(row, answer.place)
        try:
            self._ledger.check_retry(
                answer, row.stream, self._ledger.tag(row.id, row.stream, row.written)
            )
        except LedgerMismatch as problem:
            raise BadTable(self._path, row.place, str(problem)) from None
        return answer

    def _twice(self, row: Row, place: int) -> BadTable:
        rule = f"an event must occur once; it stands in row {place} too"
        return BadTable(self._path, row.place, rule)

    def check_complete(self) -> None:
        """At the end of the input: refuse one that lacks rows which were answered before."""
        try:
            self._ledger.check_complete()
        except LedgerMismatch as problem:
            raise BadTable(self._path, None, str(problem)) from None

    def report(self, *, interrupted: bool) -> TemporalReport:
        """What was done, and what all of the ledger leaks and costs."""
        totals, spec = StreamTotals(self._spec), self._spec
        streams = [stream for stream, _ in self._store.streams()]
        for stream in streams:
            answers = self._store.rest(stream, 0)
            totals.add(stream, [(one.leakage, read_value(one.released, spec)) for one in answers])
        counts = (self.rows, self._ledger.repeated, self.skipped, len(streams))
        return TemporalReport(*counts, interrupted, totals.certificate(), totals.moments)
