"""What an engine runs for a shard and a micro-batch: data frames in, data frames out, one state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.core.errors import InvalidParameter
from sfumato.core.events import OUTCOMES
from sfumato.engines.spark.event_reading import EventReader
from sfumato.engines.spark.shard_release import REFUSALS, AskedRows, Shard, ShardAnswers
from sfumato.engines.spark.shard_state import ShardState
from sfumato.engines.spark.worker_failures import WorkerFailure, without_values
from sfumato.engines.spark.worker_plan import OpenedPlan, WorkerPlan
from sfumato.models.encoding import Grid
from sfumato.models.stream_model import StreamModel
from sfumato.store.answer_columns import Coded
from sfumato.tables.cells import Late, Missing
from sfumato.tables.spelling import Cells, column_array

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql.streaming.state import GroupState

HASH = "sfumato_hash"
SHARD = "sfumato_shard"
MICROS = "sfumato_micros"
_QUERY = "sql.streaming.queryId"
"""What Spark calls the id of a query among the properties of its tasks."""
_OUTCOMES = [*(one.value for one in OUTCOMES), "refused"]


class Malformed(StrEnum):
    """What becomes of an event that cannot be read.

    Attributes:
        END: It ends the query, at every start until it is taken out of the source.
        DROP: It is left out: nothing leaves, nothing is charged. `dead_letters` tells of it.
    """

    END = "end"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class EventColumns:
    """What the columns of events are called.

    Attributes:
        id: Column of ids.
        time: Column of times.
        left: The columns that leave, and what they hold.
    """

    id: str
    time: str
    left: dict[str, type]


class ShardFunction:
    """Answers the events of one shard in one micro-batch; what `applyInPandasWithState` runs.

    Args:
        plan: The plan and its key.
        columns: What the columns are called.
        release: Digest of the release; states of others are refused.
        malformed: What becomes of an event that cannot be read.
    """

    def __init__(
        self,
        plan: WorkerPlan,
        columns: EventColumns,
        release: str,
        malformed: Malformed = Malformed.END,
    ) -> None:
        self._plan, self._columns, self._release = plan, columns, release
        self._malformed = malformed

    def __call__(
        self, key: Any, frames: Iterator[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        """Private rows for true ones; the state goes on with them."""
        with without_values():
            opened, query = self._plan.opened(), query_id()
            rows = self._read(opened, list(frames))
            if not len(rows):  # all of them were left out
                return
            release = f"{self._release} {query}"
            coins = self._plan.coins_of(query)
            shard = Shard(opened.plan, coins, release, Late(opened.spec.late))
            stored = state.getOption
            before = None if stored is None else ShardState.of_bytes(stored[0], release)
            left, after = shard.answered(before, rows, 1000 * state.getCurrentWatermarkMs())
            state.update((after.encoded, None))
            table = self._table(opened.model, left)
        yield table

    def _read(self, opened: OpenedPlan, frames: list[pd.DataFrame]) -> AskedRows:
        import pandas as pd

        frame = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
        names = (opened.model.stream, self._columns.id, MICROS, HASH)
        streams, ids, times, hashes = (_column(frame, name) for name in names)
        told = (opened.model.stream, self._columns.id, self._columns.time)
        for name, array in zip(told, (streams, ids, times), strict=True):
            if array.null_count:
                raise WorkerFailure(f"column {name!r} must not be empty")
        words = ids.to_pylist()
        values = [frame[name] for name in opened.model.values]
        cells, bad = _reader(opened).read(streams.to_pylist(), words, values)
        if bad and self._malformed is Malformed.END:
            first = min(bad)
            raise WorkerFailure(f"event {words[first]!r}: {bad[first]}; nothing was released")
        rows = AskedRows(streams, ids, times.to_numpy(), cells, hashes.to_numpy())
        return rows.at(np.setdiff1d(np.arange(len(rows)), [*bad])) if bad else rows

    def _table(self, model: StreamModel, left: ShardAnswers) -> pd.DataFrame:
        import pyarrow as pa

        cells = _left(model, self._columns, left)
        kinds = self._columns.left
        table = pa.table({name: column_array(cells[name], kind) for name, kind in kinds.items()})
        # Whole numbers stay what they are where some are missing.
        frame: pd.DataFrame = table.to_pandas(integer_object_nulls=True, split_blocks=True)
        return frame


def query_id() -> str:
    """The id of the streaming query that this task works for; it lies in its checkpoint.

    A query that goes on has the id that it had. Another checkpoint has another id, and so coins of
    its own: two releases of the same streams under one key share none.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    found = None if context is None else context.getLocalProperty(_QUERY)
    if not found:
        raise WorkerFailure("a release of live streams must run as a streaming query of Spark")
    return str(found)


def _column(frame: pd.DataFrame, name: str) -> pa.Array:
    import pyarrow as pa

    found = pa.Array.from_pandas(frame[name])
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    return found.cast(pa.string()) if pa.types.is_large_string(found.type) else found


@lru_cache(maxsize=8)
def _reader(opened: OpenedPlan) -> EventReader:
    """Reads events, and remembers how symbols are spelled; once for a process."""
    missing = Missing(opened.spec.missing)
    return EventReader(opened.model, missing, opened.plan.on_unknown)


def _left(model: StreamModel, columns: EventColumns, left: ShardAnswers) -> dict[str, Cells]:
    """What leaves, column by column, as `answer_table` has it for a table."""
    answers = left.answers
    table: dict[str, Cells] = {
        "event": answers.ids,
        model.stream: Coded(answers.places, left.streams),
        columns.time: answers.times,
        "sequence": np.ma.masked_array(answers.sequences, answers.sequences < 0),
        "released": Coded(answers.released, model.alphabet.labels),
        "signal": np.ma.masked_array(answers.signals, answers.signals < 0),
        "outcome": Coded(answers.outcomes, _OUTCOMES),
        "reason": Coded(left.refusals, [one.value for one in REFUSALS]),
        "sip": answers.charges[:, 0],
        "ldp": answers.charges[:, 1],
    }
    if isinstance(model.encoding, Grid):
        assert model.alphabet.coordinates is not None  # the cells of a grid have middles
        for axis, name in enumerate("xy"):
            table[name] = Coded(answers.released, model.alphabet.coordinates[:, axis].tolist())
    return table


def check_missing(missing: str) -> None:
    """Refuse a rule that a release of live events has not."""
    if Missing(missing) is Missing.DROP:
        rule = "be refuse, symbol or skip: leave rows out of the frame before, with `where`"
        raise InvalidParameter("missing", missing, rule)
