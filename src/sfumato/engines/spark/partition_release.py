"""What a worker does: the streams of one partition, one after another, through a fleet.

Rows come sorted, so a stream is over when another begins: only the last one of a batch of rows goes
on in the next. Memory is that of one batch, be it of one stream or of thousands.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from sfumato.core.arrays import Ints
from sfumato.core.events import OUTCOMES
from sfumato.core.randomness import Randomness
from sfumato.core.state import StreamState
from sfumato.engines.spark.rising_order import FRAME, RisingOrder
from sfumato.engines.spark.stream_frames import check_together, gathered
from sfumato.engines.spark.worker_failures import without_values
from sfumato.engines.spark.worker_plan import OpenedPlan, WorkerPlan
from sfumato.store.protocol import Identity, Input
from sfumato.stream.answer_table import AnswerTable, answer_table
from sfumato.stream.column_rows import ColumnReader, RowColumns
from sfumato.stream.column_values import PASSES, Irregular
from sfumato.stream.fleet import Fleet
from sfumato.stream.fleet_answers import Run
from sfumato.stream.input_rows import Reading, RowReader
from sfumato.stream.plan import Plan
from sfumato.stream.release_run import output_columns
from sfumato.stream.release_spec import ReleaseSpec
from sfumato.tables.batches import Batch
from sfumato.tables.cells import Late, Missing
from sfumato.tables.problems import BadTable
from sfumato.tables.spelling import column_array
from sfumato.tables.writers import arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa


def reading_of(spec: ReleaseSpec, order: str) -> Reading:
    """Which columns of a frame mean what."""
    missing, late = Missing(spec.missing), Late(spec.late)
    return Reading(spec.event, order, spec.keep, spec.independent, missing, late)


class PartitionRelease:
    """Answers the rows of one partition; what `mapInArrow` runs.

    Args:
        plan: The plan and its key.
        order: The column that rows are sorted by.
    """

    def __init__(self, plan: WorkerPlan, order: str) -> None:
        self._plan, self._order = plan, order

    def __call__(self, parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Private rows for true ones, as they come."""
        import pyarrow as pa

        with without_values():
            opened = self._plan.opened()
            reading = reading_of(opened.spec, self._order)
            columns = output_columns(opened.model, reading, opened.plan)
            schema = arrow_schema(columns)
            streams = PartitionStreams(opened, reading, self._plan.coins())
            for batch in gathered(parts):
                table = streams.answered(batch)
                arrays = [column_array(table[name], kind) for name, kind in columns.items()]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)


class PartitionStreams:
    """The streams of one partition, of which only the last one goes on.

    Args:
        opened: The plan.
        reading: Which columns mean what.
        coins: Of its key.
    """

    def __init__(self, opened: OpenedPlan, reading: Reading, coins: Randomness) -> None:
        opened.plan.check_coins(coins)
        self._opened, self._reading, self._coins = opened, reading, coins
        self._reader = ColumnReader(opened.model, reading, FRAME)
        self._last: StreamState | None = None
        assert reading.time is not None
        strictly = reading.identity is Identity.TIME
        self._rising = RisingOrder(reading.time, strictly=strictly)

    def answered(self, batch: Batch) -> AnswerTable:
        """What leaves for the next rows.

        Raises:
            BadTable: If a cell breaks a rule, or a stream has two rows of one time.
            WorkerFailure: If the rows of a stream do not come together.
            UnknownSymbol: If a value is not in the alphabet and the plan says to refuse.
            BudgetExceeded: If the budget of a stream is gone and the plan says to refuse.
        """
        try:
            rows = self._reader.read(batch)
            if len(rows):
                before = None if self._last is None else self._last.stream
                check_together(rows.streams.words, rows.streams.codes, before)
                assert rows.times is not None  # the reading names a column of times
                self._rising.follow(rows.times, rows.streams.words, rows.streams.codes)
            periods = self._periods(batch, rows)
        except Irregular:
            raise self._broken(batch) from None
        return answer_table(self._opened.model, rows, self._run(rows, periods))

    def _run(self, rows: RowColumns, periods: Ints | None) -> Run:
        plan, coins, names = self._opened.plan, self._coins, rows.streams.words
        if not names:
            return stepped(plan, coins, {}, rows.cells, rows.streams.codes)
        if self._last is not None and self._last.stream == names[0]:
            before, names = [self._last], names[1:]
        else:
            before = []
        if not plan.by_fleet:
            states = [*before, *map(plan.begin, names)]
            held = dict(enumerate(states))
            run = stepped(plan, coins, held, rows.cells, rows.streams.codes, periods)
            self._last = held[len(states) - 1]
            return run
        fleet = Fleet(plan, names, states=before, randomness=coins)
        # Streams have their places in the order of their first rows, as the codes have.
        run = fleet.run(rows.cells, rows.streams.codes)
        self._last = fleet.state(len(fleet) - 1)
        return run

    def _periods(self, batch: Batch, rows: RowColumns) -> Ints | None:
        """The periods of the budget that rows lie in, if it is for such."""
        period = self._opened.plan.period
        return None if period is None else self._reader.periods(batch, rows, period)

    def _broken(self, batch: Batch) -> BadTable:
        """Which rule a row breaks; rows of a frame have no numbers to be told."""
        source = Input(FRAME, 0, b"")
        period = self._opened.plan.period
        reader = RowReader(FRAME, self._opened.model, self._reading, source, period)
        _, problem = reader.read(batch.chunk())
        if problem is not None:
            return BadTable(FRAME, None, problem.rule)
        rule = f"column {self._reading.time!r} must hold numbers alone, or moments of one kind"
        if self._reading.event is not None:
            rule += f", and {self._reading.event!r} each id once"
        return BadTable(FRAME, None, rule)


def stepped(
    plan: Plan,
    coins: Randomness,
    states: dict[int, StreamState],
    cells: Ints,
    which: Ints,
    periods: Ints | None = None,
) -> Run:
    """What `Fleet.run` does, step by step: under a plan without a policy, each is solved.

    Args:
        plan: The rule.
        coins: Of its key.
        states: Where the streams stand, by their places; they go on.
        cells: As `Fleet.run` has them.
        which: The place of the stream of each.
        periods: The period of each, under a budget for periods of time.
    """
    labels, alphabet = (*plan.model.alphabet.labels, None), plan.model.alphabet
    left: list[tuple[int, int, int, int]] = []
    charges = np.empty((len(cells), 2))
    whens = [None] * len(cells) if periods is None else periods.tolist()
    rows = zip(cells.tolist(), which.tolist(), whens, strict=True)
    for row, (cell, place, when) in enumerate(rows):
        if cell == PASSES:
            events, states[place] = plan.skip(states[place], period=when)
        else:
            value = [labels[cell]]
            events, states[place] = plan.step(states[place], value, coins, period=when)
        (event,) = events
        signal = -1 if event.signal is None else event.signal
        symbol, outcome = alphabet.place(event.released), OUTCOMES.index(event.outcome)
        left.append((event.sequence, symbol, outcome, signal))
        charges[row] = event.sip.epsilon, event.ldp.epsilon
    found = np.array(left, dtype=np.int64).reshape(-1, 4)
    return Run(
        sequences=found[:, 0],
        released=found[:, 1],
        outcomes=found[:, 2].astype(np.uint8),
        charges=charges,
        signals=None if plan.sight is None else found[:, 3],
    )
