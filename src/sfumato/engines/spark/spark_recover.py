"""What a receiver makes of a released frame: counts and flows of all streams, with errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sfumato.core import checks
from sfumato.engines.spark.column_names import mapped
from sfumato.engines.spark.rising_order import FRAME
from sfumato.engines.spark.spark_audit import arranged_release
from sfumato.engines.spark.stream_frames import gathered
from sfumato.engines.spark.worker_failures import without_values
from sfumato.engines.spark.worker_plan import OpenedPlan, PlanDocument, Shared, plan_of
from sfumato.models.stream_model import StreamModel
from sfumato.solver.policy import Policy
from sfumato.stream.recovered_counts import Population
from sfumato.stream.recovered_rows import count_rows, flow_rows
from sfumato.stream.recovery import recover as recover_tracks
from sfumato.stream.release_spec import ReleaseSpec
from sfumato.stream.released_columns import read_released
from sfumato.stream.released_tracks import ReleasedTracks
from sfumato.tables.batches import Batch, Column
from sfumato.tables.problems import BadTable

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_COUNTED = "moment long, symbol string, released long, count double, variance double"
_MOVED = "here string, there string, count double, variance double"
_SURE = 1.96


@dataclass(frozen=True, slots=True)
class SparkRecovery:
    """What many released streams say together; both frames are computed when they are asked for.

    Attributes:
        counts: A row for every moment and symbol: how many values left so, how many there were,
            the standard error of that, and from where to where the number may lie.
        flows: A row for every pair of symbols: how many moved from one to the other.

    Examples:
        With a session at hand, `spark`:

        ```python
        import secrets
        import sfumato as sf
        rows = [("ann", time, "home" if time % 5 else "work") for time in range(40)]
        frame = spark.createDataFrame(rows, ["user", "time", "cell"])
        model = sf.spark.fit(frame, order="time", stream="user", value="cell")
        asked = {"epsilon": 0.5, "method": "step-wise"}
        key = secrets.token_bytes(32)
        private = sf.spark.release(frame, model=model, key=key, order="time", **asked)
        rules = sf.stream.ReleaseSpec(**asked, keep=("time",), model=model.chain.fingerprint)
        found = sf.spark.recover(private, model=model, rules=rules)
        assert found.flows.count() == 2 * 2
        ```
    """

    counts: DataFrame
    flows: DataFrame


def recover(
    frame: DataFrame,
    *,
    model: StreamModel,
    rules: ReleaseSpec,
    policy: Policy | None = None,
    stream: str | None = None,
    every: int = 1,
    partitions: int | None = None,
) -> SparkRecovery:
    """Infer counts and flows of a population from what left: free of privacy cost.

    As `sfumato recover`: right on average if values move as the model says and streams are
    independent. Sums of floats depend on the parts that they are added in, in their last digits;
    errors of flows are drawn, and differ by some per cent. A stream is held whole by one worker:
    8 bytes for each value and symbol.

    Args:
        frame: What `release` made, or a table of it; rows in any order.
        model: The model of the release.
        rules: Its rules.
        policy: The policy that they name, if they do.
        stream: Column of the streams; as fitted if not given.
        every: So many successive moments are one.
        partitions: Parts that streams are shared out to; by the size of the frame if not given.

    Examples:
        With a session at hand, `spark`:

        ```python
        import secrets
        import sfumato as sf
        rows = [("ann", time, "home" if time % 5 else "work") for time in range(40)]
        frame = spark.createDataFrame(rows, ["user", "time", "cell"])
        model = sf.spark.fit(frame, order="time", stream="user", value="cell")
        asked = {"epsilon": 0.5, "method": "step-wise"}
        key = secrets.token_bytes(32)
        private = sf.spark.release(frame, model=model, key=key, order="time", **asked)
        rules = sf.stream.ReleaseSpec(**asked, keep=("time",), model=model.chain.fingerprint)
        found = sf.spark.recover(private, model=model, rules=rules)
        assert found.counts.count() == 2 * 40
        ```
    """
    from pyspark.sql import functions as F

    checks.count("every", every)
    named = replace(model, stream=stream or model.stream)
    sent = PlanDocument.of(rules, named, policy)
    rows = arranged_release(frame, plan_of(sent), partitions)
    shared = frame.sparkSession.sparkContext.broadcast(sent)
    error = F.sqrt(F.greatest(F.sum("variance"), F.lit(0.0)))
    parts = mapped(rows, _PartitionCounts(shared, every), _COUNTED)
    sums = (F.sum("released").alias("released"), F.sum("count").alias("count"))
    counts = parts.groupBy("moment", "symbol").agg(*sums, error.alias("error"))
    low = F.greatest(F.col("count") - _SURE * F.col("error"), F.lit(0.0))
    counts = counts.withColumns({"low": low, "high": F.col("count") + _SURE * F.col("error")})
    moves = mapped(rows, _PartitionFlows(shared), _MOVED)
    flows = moves.groupBy(F.col("here").alias("from"), F.col("there").alias("to")).agg(
        F.sum("count").alias("count"), error.alias("error")
    )
    return SparkRecovery(counts.orderBy("moment", "symbol"), flows.orderBy("from", "to"))


class _PartitionCounts:
    """How many were where, of the streams of one partition; what `mapInArrow` runs."""

    def __init__(self, shared: Shared, every: int) -> None:
        self._shared, self._every = shared, every

    def __call__(self, parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with without_values():
            opened = plan_of(self._shared.value)
            for tracks in whole_streams(gathered(parts), opened):
                recovery = recover_tracks(tracks, opened.plan)
                groups = None if self._every == 1 else tracks.moments // self._every
                found = count_rows(Population(recovery, groups))
                rows = [(*row[:4], row[4] ** 2) for row in found]  # type: ignore[operator]
                yield _record_batch(rows, ["moment", "symbol", "released", "count", "variance"])


class _PartitionFlows:
    """How many moved from where to where, of the streams of one partition."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    def __call__(self, parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with without_values():
            opened = plan_of(self._shared.value)
            for tracks in whole_streams(gathered(parts), opened):
                found = flow_rows(Population(recover_tracks(tracks, opened.plan)))
                rows = [(*row[:3], row[3] ** 2) for row in found]  # type: ignore[operator]
                yield _record_batch(rows, ["here", "there", "count", "variance"])


def _record_batch(rows: list[tuple[object, ...]], names: list[str]) -> pa.RecordBatch:
    import pyarrow as pa

    cells = [pa.array(list(one)) for one in zip(*rows, strict=True)]
    return pa.RecordBatch.from_arrays(cells, names=names)


def whole_streams(batches: Iterator[Batch], opened: OpenedPlan) -> Iterator[ReleasedTracks]:
    """Streams that are complete: the last one of a batch of rows may go on in the next."""
    held: Batch | None = None
    for batch in batches:
        both = batch if held is None else _after(held, batch)
        codes, _ = both.columns[opened.model.stream].coded()
        edge = int(np.flatnonzero(codes == codes[-1])[0])
        if edge:
            yield _tracks(_part(both, 0, edge), opened.model)
        held = _part(both, edge, len(both) - edge)
    if held is not None:
        yield _tracks(held, opened.model)


def _after(held: Batch, batch: Batch) -> Batch:
    import pyarrow as pa

    pairs = [(name, (held.columns[name].array, batch.columns[name].array)) for name in held.columns]
    return Batch(1, {name: Column(pa.concat_arrays(both)) for name, both in pairs})


def _part(batch: Batch, start: int, size: int) -> Batch:
    return Batch(
        1, {name: Column(one.array.slice(start, size)) for name, one in batch.columns.items()}
    )


def _tracks(batch: Batch, model: StreamModel) -> ReleasedTracks:
    """Rows of whole streams, one after another, as what left."""
    rows = read_released(batch, model, text=False)
    if rows is None:
        raise BadTable(FRAME, None, "rows must be as a release writes them: audit the frame")
    starts = np.append(np.flatnonzero(np.diff(rows.owners, prepend=-1)), len(rows))
    due = np.arange(len(rows)) - np.repeat(starts[:-1], np.diff(starts))
    if (rows.sequences != due).any() or len(starts) - 1 != len(rows.names):
        rule = "the sequence numbers of a stream must be 0, 1, 2, ...: none missing, none twice"
        raise BadTable(FRAME, None, rule)
    return ReleasedTracks(
        tuple(rows.names),
        starts,
        rows.released,
        rows.outcomes,
        rows.sequences,
        rows.signals,
        np.full(len(rows), -1, dtype=np.int64),
        FRAME,
    )
