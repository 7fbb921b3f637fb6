"""What workers add up while a chain is learnt, against one process: the same bits in any parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from sfumato.engines.spark.partition_outputs import KeepOutputs
from sfumato.engines.spark.partition_release import PartitionRelease
from sfumato.engines.spark.spark_learn import FrameSums
from sfumato.engines.spark.worker_failures import WorkerFailure
from sfumato.engines.spark.worker_plan import PlanDocument, plan_of
from sfumato.store.codec import to_bytes
from sfumato.stream.learning import Learning, learn, learn_sums, learnt_model
from sfumato.stream.name_order import name_key, slot_of
from sfumato.stream.one_channel import one_channel
from sfumato.stream.release_spec import ReleaseSpec
from sfumato.stream.released_tracks import read_tracks
from sfumato.tables.readers import Table
from tests.engines.scene import batches, town, walks, worker_plan

Worker = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
RESPONSE = ReleaseSpec(epsilon=2.0, method="randomized-response", keep=("time",))
MANY, FEW = [9, 1, 30, 2, 17, 5, 25, 8, 3, 12, 40, 7, 2, 19], [50, 1, 33]


class Parts:
    """A frame of an engine that only maps, one partition after another."""

    def __init__(self, parts: list[list[pa.RecordBatch]]) -> None:
        self._parts = parts

    def mapInArrow(self, worker: Worker, schema: str) -> Parts:
        return Parts([list(worker(iter(part))) for part in self._parts])

    def toArrow(self) -> pa.Table:
        return pa.Table.from_batches([batch for part in self._parts for batch in part])


def released(document: PlanDocument, lengths: list[int]) -> pa.Table:
    worker = PartitionRelease(worker_plan(document), "time")
    return pa.Table.from_batches(list(worker(batches(walks(lengths), 50))))


def in_parts(table: pa.Table, number: int) -> Parts:
    """Rows as an engine gives them to its workers: by slots, and in the order of names."""
    rows = sorted(table.to_pylist(), key=lambda row: (name_key(row["user"]), row["sequence"]))
    parts = []
    for part in range(number):
        own = [row for row in rows if slot_of(row["user"]) % number == part]
        parts.append(pa.Table.from_pylist(own, table.schema).to_batches(max_chunksize=20))
    return Parts(parts)


def by_workers(document: PlanDocument, table: pa.Table, number: int) -> Learning:
    """What is learnt in some parts; with 0 by a driver that has gathered three of them."""
    plan = plan_of(document).plan
    channel, shared = one_channel(plan), SimpleNamespace(value=document)
    kept: Any = in_parts(table, number or 3).mapInArrow(KeepOutputs(shared, channel), "")
    sums = FrameSums.of(kept, 3)
    return learn_sums(sums if number else sums.gathered(), plan, channel)


@pytest.fixture(params=["one channel", "a policy"])
def document(request: pytest.FixtureRequest) -> PlanDocument:
    if request.param == "a policy":
        return town().document
    return PlanDocument.of(RESPONSE, town().model)


@pytest.mark.parametrize("lengths", [MANY, FEW], ids=["many", "few"])
def test_what_is_learnt_is_that_of_one_process_in_any_parts(
    document: PlanDocument, lengths: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Workers are given few rows at a time, so that streams go on from one to the next.
    monkeypatch.setattr("sfumato.engines.spark.stream_frames.gathered.__defaults__", (20,))
    table, path = released(document, lengths), tmp_path / "private.parquet"
    mixed = np.random.default_rng(2).permutation(len(table))
    pyarrow.parquet.write_table(table.take(pa.array(mixed)), path)
    model, plan = town().model, plan_of(document).plan
    due = learn(read_tracks(Table.at(str(path)), model), plan)
    for number in (1, 2, 5, 0):
        found = by_workers(document, table, number)
        assert to_bytes(learnt_model(found, model, plan)) == to_bytes(
            learnt_model(due, model, plan)
        )
        for each in fields(Learning):
            one, other = getattr(found, each.name), getattr(due, each.name)
            if each.name == "plausible" and one is not None:
                one, other = one.fingerprint, other.fingerprint
            if each.name != "chain":
                assert one == other, each.name
    assert (due.plausible is None) == (plan.policy is not None)


def test_a_stream_that_lacks_a_row_teaches_nothing(document: PlanDocument) -> None:
    table = released(document, FEW)
    with pytest.raises(WorkerFailure, match="none missing, none twice"):
        by_workers(document, table.slice(1), 1)
