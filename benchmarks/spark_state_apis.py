"""The other interface of Spark for states, `transformWithState`, with the same fold and shards.

Used by `python -m benchmarks.spark_streaming --apis`. `transformWithState` asks for RocksDB, so
`applyInPandasWithState`, which the release uses, is run with both state stores. Each is run with
the fold of the release (`ShardFunction`: the same bytes of state, the same answers) and with one
that does nothing but keep a state of the same size.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from benchmarks.spark_streaming import LEFT, SHARDS, by_shard

import sfumato as sf
from sfumato.engines.spark.partition_release import reading_of
from sfumato.engines.spark.shard_function import SHARD, EventColumns, ShardFunction
from sfumato.engines.spark.stream_frames import StreamColumns, frame_schema
from sfumato.engines.spark.stream_release import _sharded
from sfumato.engines.spark.worker_plan import PlanDocument, WorkerPlan, plan_of
from sfumato.models.stream_model import StreamModel
from sfumato.stream.release_run import output_columns
from sfumato.stream.release_spec import ReleaseSpec

Job = Callable[[Any], Any]
_STORES = "org.apache.spark.sql.execution.streaming.state."
_FILES = f"{_STORES}HDFSBackedStateStoreProvider"
_ROCKS = f"{_STORES}RocksDBStateStoreProvider"


def store_of(name: str) -> str:
    """The state store that a job asks for."""
    return _ROCKS if "RocksDB" in name else _FILES


def more_jobs(jobs: dict[str, Job], model: StreamModel, policy: sf.Policy) -> dict[str, Job]:
    """The jobs of the release with RocksDB, and by `transformWithState`."""
    return {
        "release, RocksDB": jobs["release"],
        "nothing, RocksDB": jobs["nothing"],
        "release, transformWithState, RocksDB": transformed_release(model, policy),
        "nothing, transformWithState, RocksDB": transformed_nothing,
    }


class _Held:
    """A state of `transformWithState` as `applyInPandasWithState` would show it."""

    def __init__(self, state: Any, watermark: int) -> None:
        self._state, self._watermark = state, watermark

    @property
    def getOption(self) -> Any:
        return self._state.get() if self._state.exists() else None

    def update(self, held: tuple[Any, ...]) -> None:
        self._state.update(held[:1])

    def getCurrentWatermarkMs(self) -> int:
        return self._watermark


def processor(function: Callable[[Any, Iterator[Any], Any], Iterator[Any]]) -> Any:
    """A processor that runs a function of a shard, its rows and its state."""
    from pyspark.sql.streaming import StatefulProcessor

    class Processor(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self._held = handle.getValueState("held", "held binary")

        def handleInputRows(self, key: Any, rows: Iterator[Any], timers: Any) -> Iterator[Any]:
            yield from function(key, rows, _Held(self._held, timers.getCurrentWatermarkInMs()))

        def close(self) -> None:
            pass

    return Processor()


def transformed_release(model: StreamModel, policy: sf.Policy) -> Job:
    """The release by `transformWithState`: what `stream_document` makes, by the other interface."""
    spec = ReleaseSpec(epsilon=policy.epsilon, keep=("time",), event="id", policy="")
    sent = PlanDocument.of(spec, model, policy)
    opened = plan_of(sent)
    left = output_columns(opened.model, reading_of(opened.spec, "time"), opened.plan)
    columns = EventColumns("id", "time", {**left, "reason": str, "time": int})
    # Within the function: the driver makes a processor once itself, where no broadcast is loaded.
    worker = WorkerPlan(SimpleNamespace(value=sent), os.urandom(32))

    def job(frame: Any) -> Any:
        given = StreamColumns(model.stream, "time", ("id", *model.values))
        rows = _sharded(frame.withWatermark("time", "10 minutes"), given, model, SHARDS)
        return rows.groupBy(SHARD).transformWithStateInPandas(
            processor(ShardFunction(worker, columns, "digest")),
            frame_schema(columns.left),
            "append",
            "EventTime",
        )

    return job


def transformed_nothing(frame: Any) -> Any:
    """The job that does nothing, by `transformWithState`."""

    def answered(group: Any, parts: Iterator[Any], state: Any) -> Iterator[Any]:
        import pandas as pd

        held, rows = state.getOption, 0
        for part in parts:
            rows += len(part)
            yield pd.DataFrame(
                {
                    "event": part["id"],
                    "user": part["user"],
                    "time": part["time"],
                    "released": part["cell"],
                    "sip": 0.5,
                    "ldp": 1.0,
                }
            )
        state.update((bytes((0 if held is None else len(held[0])) + 90 * rows),))

    grouped = by_shard(frame).groupBy("shard")
    return grouped.transformWithStateInPandas(processor(answered), LEFT, "append", "EventTime")
