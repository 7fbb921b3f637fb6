"""What workers count, check and recover in a partition, against the jobs over files."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from sfumato.engines.spark.partition_release import PartitionRelease
from sfumato.engines.spark.spark_audit import PartitionWalk
from sfumato.engines.spark.spark_fit import _bare, _counts, _Tallying
from sfumato.engines.spark.spark_recover import whole_streams
from sfumato.engines.spark.stream_frames import gathered
from sfumato.engines.spark.worker_failures import WorkerFailure
from sfumato.engines.spark.worker_plan import plan_of
from sfumato.models.fitting import count_transitions
from sfumato.store.codec import to_bytes
from sfumato.stream.recovered_counts import Population
from sfumato.stream.recovery import recover
from sfumato.stream.released_tracks import read_tracks
from sfumato.tables.cells import Missing
from sfumato.tables.readers import Table
from tests.engines.scene import PLACES, batches, in_order, town, walks, worker_plan

LENGTHS = [1, 30, 2, 17, 1]


@pytest.fixture(scope="module")
def private() -> pa.Table:
    worker = PartitionRelease(worker_plan(town().document), "time")
    return pa.Table.from_batches(list(worker(batches(walks(LENGTHS), 11))))


def walked(table: pa.Table, size: int) -> PartitionWalk:
    walk = PartitionWalk(plan_of(town().document))
    for batch in gathered(iter(table.to_batches(max_chunksize=size)), size):
        walk.take(batch)
    return walk


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_an_audit_of_a_true_release_finds_nothing(private: pa.Table, size: int) -> None:
    found = walked(private, size).found
    assert (found.rows, found.streams) == (sum(LENGTHS), len(LENGTHS))
    assert (found.problems, found.unverifiable) == (0, 0)
    charges: dict[str, float] = {}
    for row in private.to_pylist():
        charges[row["user"]] = charges.get(row["user"], 0.0) + row["sip"]
    assert found.sip == pytest.approx(max(charges.values()))
    assert found.worst == max(private["sip"].to_pylist())


def forged(table: pa.Table, row: int, name: str, cell: object) -> pa.Table:
    cells = table[name].to_pylist()
    cells[row] = cell
    place = table.column_names.index(name)
    return table.set_column(place, name, pa.array(cells, table.schema.field(name).type))


@pytest.mark.parametrize("size", [1, 9, 1000])
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("released", lambda cell: PLACES[(PLACES.index(cell) + 1) % 3]),
        ("sip", lambda cell: cell * 0.9),
        ("ldp", lambda cell: np.nextafter(cell, 0.0)),
        ("sequence", lambda cell: cell + 1),
        ("outcome", lambda cell: "suppressed"),
    ],
)
def test_an_audit_finds_a_forged_row(private: pa.Table, size: int, name: str, change: Any) -> None:
    row = private["user"].to_pylist().index("u1") + 14  # the middle of u1
    table = forged(private, row, name, change(private[name][row].as_py()))
    found = walked(table, size).found
    assert found.problems >= 1
    assert all("stream 'u1'" in line for line in found.told)


def test_an_audit_misses_no_row_that_was_taken_out_or_put_in_twice(private: pa.Table) -> None:
    rows = list(range(len(private)))
    for kept in (rows[:10] + rows[11:], rows[:10] + rows[9:]):
        assert walked(private.take(kept), 8).found.problems == 1


def tallied(rows: Sequence[tuple[Any, ...]], order: int, missing: Missing, size: int) -> Any:
    model = to_bytes(_bare(town().model.encoding))
    worker = _Tallying(model, "user", "time", ("cell",), order, missing)
    cells = [list(cells) for cells in zip(*rows, strict=True)]
    table = pa.table(dict(zip(("user", "time", "cell"), cells, strict=True)))
    parts = list(worker(iter(table.to_batches(max_chunksize=size))))
    whole = pa.Table.from_batches(parts).group_by(["kind", "code"]).aggregate([("times", "sum")])
    return _counts(whole.rename_columns(["kind", "code", "sum(times)"]), 3, order)


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("missing", [Missing.REFUSE, Missing.DROP, Missing.SKIP])
def test_transitions_are_counted_as_in_one_process(
    size: int, order: int, missing: Missing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.engines.spark.stream_frames.gathered.__defaults__", (size,))
    rng = np.random.default_rng(5)
    rows: list[tuple[Any, ...]] = list(in_order(walks([1, 9, 2, 3, 12, 1, 4])))
    if missing is not Missing.REFUSE:
        # Some streams begin with a gap: nothing of the stream before may go on in them.
        gone = (rng.random(len(rows)) < 0.3) | np.array([row[:2] == ("u1", 0) for row in rows])
        rows = [(*row[:2], None if gap else row[2]) for row, gap in zip(rows, gone, strict=True)]
    paths: list[list[int]] = []
    for before, row in pairwise([(None, 0, None), *rows]):
        if before[0] != row[0] or (row[2] is None and missing is Missing.SKIP):
            paths.append([])
        if row[2] is not None:
            paths[-1].append(PLACES.index(row[2]))
    due = count_transitions([np.array(path) for path in paths if path], 3, order)
    found = tallied(rows, order, missing, size)
    assert (found.starts == due.starts).all() and (found.symbols == due.symbols).all()
    assert found.sequences == due.sequences
    for part in ("data", "indices", "indptr"):
        assert (getattr(found.moves, part) == getattr(due.moves, part)).all()


def test_rows_of_one_time_have_no_order_to_be_counted_in() -> None:
    rows = [("u0", 1, "home"), ("u0", 1, "work")]
    with pytest.raises(WorkerFailure, match="one row for each 'time'"):
        tallied(rows, 1, Missing.REFUSE, 10)


@pytest.mark.parametrize("size", [1, 8, 1000])
def test_whole_streams_are_recovered_as_from_a_file(
    private: pa.Table, size: int, tmp_path: Path
) -> None:
    path = tmp_path / "private.parquet"
    pyarrow.parquet.write_table(private, path)
    scene = town()
    due = Population(recover(read_tracks(Table.at(str(path)), scene.model), scene.plan)).counts()
    opened = plan_of(scene.document)
    parts = gathered(iter(private.to_batches(max_chunksize=size)), size)
    sums: dict[int, Any] = {}
    for tracks in whole_streams(parts, opened):
        found = Population(recover(tracks, opened.plan)).counts()
        for moment, counts in zip(found.groups.tolist(), found.values, strict=True):
            sums[moment] = sums.get(moment, 0.0) + counts
    assert [*sums] and np.allclose([sums[group] for group in due.groups.tolist()], due.values)
