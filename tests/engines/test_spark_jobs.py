"""Fit, audit, recover and learn by a real Spark, against the same jobs over files."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet
import pytest

import sfumato as sf
from sfumato.engines.spark.partition_outputs import KEPT, KeepOutputs
from sfumato.engines.spark.spark_audit import arranged_release
from sfumato.engines.spark.spark_learn import FrameSums
from sfumato.engines.spark.worker_plan import plan_of
from sfumato.models.expectation import even
from sfumato.stream.fit_model import Cut, fit_table, uniform_model
from sfumato.stream.learning import learn, learnt_model
from sfumato.stream.recovered_counts import Population
from sfumato.stream.recovery import recover
from sfumato.stream.release_document import parse_spec
from sfumato.stream.released_tracks import read_tracks
from sfumato.tables.readers import Table
from tests.engines.scene import COLUMNS, KEY, in_order, town, walks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("ignore:PySpark does not yet")]
ROWS = walks([70, 1, 1, 2, 30])


@pytest.fixture(scope="module")
def private(spark: SparkSession) -> DataFrame:
    scene, frame = town(), spark.createDataFrame(ROWS, list(COLUMNS))
    given: dict[str, Any] = {"model": scene.model, "policy": scene.policy}
    return sf.spark.release(frame, **given, key=KEY, order="time", partitions=2).cache()


def given() -> dict[str, Any]:
    """What an audit and a recovery of it are told."""
    scene = town()
    rules = parse_spec(scene.document.rules, "the rules")
    return {"model": scene.model, "policy": scene.policy, "rules": rules, "partitions": 2}


def test_a_fit_is_the_local_fit_to_the_bit(spark: SparkSession, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    watts = [float(watt) for watt in rng.gamma(2.0, 300.0, len(ROWS))]
    lines = [(*row, watt) for row, watt in zip(in_order(ROWS), watts, strict=True)]
    path = tmp_path / "history.csv"
    text = [",".join(map(str, line)) for line in lines]
    path.write_text("\n".join(["user,time,cell,watts", *text]))
    frame = spark.createDataFrame(lines, [*COLUMNS, "watts"]).repartition(3)
    for value, order, cut in (("cell", 2, Cut()), ("watts", 1, Cut(bins=4, unit="W"))):
        local, _ = fit_table(
            Table.at(str(path)), stream="user", values=(value,), order=order, cut=cut
        )
        given: dict[str, Any] = {"stream": "user", "order": "time", "value": value}
        found = sf.spark.fit(frame, **given, chain_order=order, cut=cut, partitions=3)
        assert sf.store.to_bytes(found) == sf.store.to_bytes(local)


def test_an_audit_passes_a_release_and_finds_one_forged_row(private: DataFrame) -> None:
    from pyspark.sql import functions as F

    report = sf.spark.audit(private, **given())
    assert report.passed and (report.rows, report.streams) == (len(ROWS), 5)
    assert 0.0 < report.worst_step <= 0.5
    one = (F.col("user") == "u4") & (F.col("sequence") == 20)
    forged = private.withColumn("sip", F.when(one, 0.1).otherwise(F.col("sip")))
    found = sf.spark.audit(forged, **given())
    assert not found.passed and found.problem_count == 1
    assert found.problems[0].startswith("stream 'u4', sequence 20: sip must be")


def test_counts_and_flows_are_those_of_a_file(private: DataFrame, tmp_path: Path) -> None:
    scene, path = town(), tmp_path / "private.parquet"
    pyarrow.parquet.write_table(private.toArrow(), path)
    local = Population(recover(read_tracks(Table.at(str(path)), scene.model), scene.plan))
    found = sf.spark.recover(private, **given())
    counts, moments = local.counts(), {}
    for row in found.counts.collect():
        place = scene.model.alphabet.index(row["symbol"])
        moments[row["moment"], place] = row["count"], row["error"]
    for group, values, errors in zip(counts.groups, counts.values, counts.errors, strict=True):
        for place in range(3):
            due = (values[place], errors[place])
            assert moments[group, place] == pytest.approx(due, abs=1e-9)
    flows = {(row["from"], row["to"]): row["count"] for row in found.flows.collect()}
    labels, due_flows = scene.model.alphabet.labels, local.flows().values
    assert all(
        flows[one, other] == pytest.approx(due_flows[here, there], abs=1e-9)
        for here, one in enumerate(labels)
        for there, other in enumerate(labels)
    )


def test_what_is_learnt_is_what_one_process_learns_to_the_byte(
    spark: SparkSession, tmp_path: Path
) -> None:
    model = uniform_model(Cut(), ("home", "work"), stream="user", values=("cell",))
    asked: dict[str, Any] = {"epsilon": 2.0, "method": "randomized-response", "keep": ("time",)}
    rng = np.random.default_rng(4)
    rows = [
        (f"u{name}", time, "home" if rng.random() < 0.8 else "work")
        for name in range(13)
        for time in range(6)
    ]
    frame = spark.createDataFrame(rows, list(COLUMNS))
    left = sf.spark.release(frame, model=model, key=KEY, order="time", **asked)
    rules = sf.stream.ReleaseSpec(**asked)
    found = sf.spark.learn(left, model=model, rules=rules, order=1)
    path = tmp_path / "private.parquet"
    pyarrow.parquet.write_table(left.toArrow(), path)
    plan = rules.plan(model)
    local = learn(read_tracks(Table.at(str(path)), model), plan, order=1)
    assert sf.store.to_bytes(found.model) == sf.store.to_bytes(learnt_model(local, model, plan))
    assert found.report.plausible is not None and local.plausible is not None
    assert found.report.plausible.fingerprint == local.plausible.fingerprint
    assert (found.report.gain, found.report.effective) == (local.gain, local.effective)


def test_sums_of_workers_are_those_of_one_process_to_the_bit(private: DataFrame) -> None:
    opened = plan_of(town().document)
    shared: Any = SimpleNamespace(value=town().document)
    rows = arranged_release(private, opened, 3, together=True)
    sums = FrameSums.of(rows.mapInArrow(KeepOutputs(shared, None), KEPT).cache(), 3)
    local, guess = sums.gathered(), even(3, 2)
    assert (sums.streams, sums.values) == (local.streams, local.values) == (5, len(ROWS))
    found, due = sums.passed(guess), local.passed(guess)
    assert (found.starts == due.starts).all() and (found.moves == due.moves).all()
    assert found.score == due.score
    pieces = sums.cut(12).every(3, 2)[0].scores(guess)
    assert pieces.tolist() == local.cut(12).every(3, 2)[0].scores(guess).tolist()
