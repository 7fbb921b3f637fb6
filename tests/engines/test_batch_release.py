"""Releases by a real Spark: the same to the bit as one fleet in one process."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import sfumato as sf
from sfumato.engines.spark.worker_failures import refusal_in
from tests.engines.conftest import started
from tests.engines.scene import COLUMNS, KEY, PLACES, Row, answers, by_fleet, town, walks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("ignore:PySpark does not yet")]
SECRET = "a-place-nobody-may-know"
LENGTHS = [900, *[1] * 40, 25, 3, 60]
"""One stream as long as most others together, many of a single value."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("batch")


@pytest.fixture(scope="module")
def spark(folder: Path) -> Iterator[SparkSession]:
    (folder / "events").mkdir()
    session = started(
        "local[2,3]",
        folder,
        **{"spark.eventLog.enabled": "true", "spark.eventLog.dir": str(folder / "events")},
    )
    yield session
    session.stop()


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return walks(LENGTHS)


@pytest.fixture(scope="module")
def frame(spark: SparkSession, rows: list[Row]) -> DataFrame:
    return spark.createDataFrame(rows, list(COLUMNS)).cache()


@pytest.fixture(scope="module")
def due(rows: list[Row]) -> list[tuple[Any, ...]]:
    return by_fleet(rows, town().plan)


def released(frame: DataFrame, **given: Any) -> DataFrame:
    scene = town()
    how = {"model": scene.model, "policy": scene.policy, "key": KEY, "order": "time", **given}
    return sf.spark.release(frame, **how)


def failing_once(then: Callable[[], None]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What lets the first attempt of every task come to grief after its first rows."""

    def passing(parts: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        for part in parts:
            yield part
            if context is not None and context.attemptNumber() == 0:
                then()

    return passing


def raises() -> None:
    raise RuntimeError("a task that fails")


@pytest.mark.parametrize("partitions", [1, 4, None])
def test_any_number_of_partitions_gives_the_answers_of_one_fleet(
    frame: DataFrame, due: list[tuple[Any, ...]], partitions: int | None
) -> None:
    found = released(frame.repartition(3), partitions=partitions)
    assert answers(found.collect()) == due


def test_tasks_that_fail_and_workers_that_die_change_nothing(
    frame: DataFrame, due: list[tuple[Any, ...]]
) -> None:
    def dies() -> None:
        import os

        os._exit(3)

    private = released(frame, partitions=2)
    for then in (raises, dies):
        again = private.mapInArrow(failing_once(then), private.schema)
        assert answers(again.collect()) == due


def test_no_adaptive_plan_parts_a_stream(
    spark: SparkSession, frame: DataFrame, due: list[tuple[Any, ...]]
) -> None:
    eager = {
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": "1k",
        "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
        "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "1k",
        "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "1",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
    }
    before = {name: spark.conf.get(name) for name in eager}
    for name, value in eager.items():
        spark.conf.set(name, value)
    try:
        private = released(frame, partitions=3)
        # A join of the very key, parts that are put together, and another frame beside them.
        users = frame.select("user").distinct()
        joined = private.join(users, "user").select(private.columns)
        assert answers(joined.collect()) == due
        assert answers(private.coalesce(1).collect()) == due
        assert answers(private.unionAll(private.limit(0)).collect()) == due
        plan: Any = joined
        text = plan._jdf.queryExecution().executedPlan().toString()
    finally:
        for name, old in before.items():
            spark.conf.set(name, old or "")
    below = text[text.index("MapInArrow PartitionRelease") :].split("Exchange")[0]
    assert "AQEShuffleRead" not in below and "REPARTITION_BY_NUM" in text


def test_nothing_on_disk_in_plans_or_logs_holds_the_key(
    spark: SparkSession, frame: DataFrame, folder: Path
) -> None:
    private = released(frame, partitions=2)
    private.count()
    plan: Any = private
    shown = plan._jdf.queryExecution().toString()
    forms = (KEY, KEY.hex().encode(), repr(KEY)[2:-1].encode(), base64.b64encode(KEY)[:40])
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any("events" in str(path) for path in files) and "PartitionRelease" in shown
    for form in forms:
        assert form not in shown.encode()
        assert not [path for path in files if form in path.read_bytes()]


BAD: list[tuple[tuple[Any, ...], str]] = [
    (("u1", 9_999, SECRET), "must be one of the 3 symbols"),
    (("u1", 9_999, None), "the value must not be empty"),
    (("u0", 5, "home"), "one row for each 'time'"),
]


@pytest.mark.parametrize(("row", "rule"), BAD)
def test_what_a_release_refuses_fails_the_job_with_its_rule(
    spark: SparkSession, rows: list[Row], row: tuple[Any, ...], rule: str
) -> None:
    from pyspark.errors import PythonException

    frame = spark.createDataFrame([*rows, row], list(COLUMNS))
    with pytest.raises(PythonException) as caught:
        released(frame, partitions=2).collect()
    assert rule in (refusal_in(str(caught.value)) or "")
    assert SECRET not in str(caught.value)


def test_ids_tell_rows_of_one_time_apart(spark: SparkSession) -> None:
    rows = [("u", 1, "home", "b"), ("u", 1, "work", "a"), ("u", 2, "shop", "c")]
    names = [*COLUMNS, "event_id"]
    private = released(spark.createDataFrame(rows, names), id="event_id", partitions=1)
    found = [(row["event"], row["sequence"], row["released"]) for row in private.collect()]
    assert [row[:2] for row in found] == [("a", 0), ("b", 1), ("c", 2)]
    due = by_fleet([("u", 1, "work"), ("u", 2, "home"), ("u", 3, "shop")], town().plan)
    assert [row[2] for row in found] == [row[3] for row in due]
    twice = spark.createDataFrame([*rows, ("v", 1, "home", "c")], names)
    with pytest.raises(sf.SfumatoError, match="hold each id once"):
        released(twice, id="event_id", partitions=1)


def test_text_that_is_a_number_is_sorted_as_one(spark: SparkSession) -> None:
    rows = [("u", time, place) for time, place in enumerate(["home", "work", "shop"] * 5)]
    as_text = spark.createDataFrame(
        [(user, str(time), cell) for user, time, cell in rows], list(COLUMNS)
    )
    assert answers(released(as_text, partitions=1).collect()) == by_fleet(rows, town().plan)


def test_text_of_clocks_is_sorted_without_the_zone_of_the_session(spark: SparkSession) -> None:
    # Half an hour that a clock in Berlin never showed, between two that it did.
    times = ["2024-03-31T01:50:00", "2024-03-31T02:30:00", "2024-03-31T02:50:00"]
    times += ["2024-03-31T03:10:00", "2024-03-31T03:40:00"]
    rows = [("u", time, place) for time, place in zip(times, PLACES * 2, strict=False)]
    frame = spark.createDataFrame(list(reversed(rows)), list(COLUMNS))
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        found = released(frame, partitions=1).collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before or "UTC")
    due = by_fleet([("u", turn, row[2]) for turn, row in enumerate(rows)], town().plan)
    assert [row["time"] for row in found] == times
    assert [row["released"] for row in found] == [row[3] for row in due]


def test_a_frame_of_chance_is_refused_before_anything_is_drawn(frame: DataFrame) -> None:
    from pyspark.sql import functions as F

    by_chance = F.when(F.rand() < 0.5, "home").otherwise("work")
    changes: list[tuple[DataFrame, dict[str, str]]] = [
        (frame.withColumn("cell", by_chance), {}),
        (frame.withColumn("event_id", F.expr("uuid()")), {"id": "event_id"}),
        (frame.withColumn("row", F.monotonically_increasing_id()), {"order": "row"}),
        (frame.withColumn("cell", F.udf(lambda cell: cell).asNondeterministic()("cell")), {}),
    ]
    for changed, given in changes:
        with pytest.raises(sf.SfumatoError, match="be the same whenever it is read"):
            released(changed, **given)
    # What is not read may be what it likes.
    assert released(frame.withColumn("aside", F.rand())).columns


def test_names_with_dots_and_backticks_are_names(
    spark: SparkSession, rows: list[Row], due: list[tuple[Any, ...]]
) -> None:
    user, time, cell = "the.`user`", "when.at", "cell.now"
    model = replace(town().model, stream=user, values=(cell,))
    frame = spark.createDataFrame(rows, [user, time, cell])
    private = released(frame, model=model, order=time, partitions=3)
    assert private.columns[:2] == [user, time]
    plain = private.withColumnsRenamed({user: "user", time: "time"})
    assert answers(plain.collect()) == due
    fitted = sf.spark.fit(frame, order=time, stream=user, value=cell)
    assert fitted.transitions == sum(length - 1 for length in LENGTHS)
    rules = sf.stream.ReleaseSpec(
        epsilon=0.5, keep=(time,), model=model.chain.fingerprint, policy=town().policy.fingerprint
    )
    how: dict[str, Any] = {"model": model, "rules": rules, "policy": town().policy}
    assert sf.spark.audit(private, **how).passed
    assert sf.spark.recover(private, **how).counts.count() > 0


def test_a_copy_of_the_values_is_not_kept_whatever_is_declared(frame: DataFrame) -> None:
    kept: dict[str, Any] = {"keep": ("time", "more"), "independent": ("more",)}
    with pytest.raises(sf.SfumatoError, match="'more' must not hold the very values"):
        released(frame.selectExpr("*", "cell AS more"), **kept)
    for other in ("'home'", "upper(cell)", "if(time = 3, 'home', cell)"):
        assert released(frame.selectExpr("*", f"{other} AS more"), **kept).columns


def test_frames_that_lack_a_column_are_refused_before_anything_runs(frame: DataFrame) -> None:
    with pytest.raises(sf.SfumatoError, match="be one of those of the frame"):
        released(frame, order="when")
    with pytest.raises(sf.SfumatoError, match="hold one of string"):
        released(frame.selectExpr("double(time) as user", "time", "cell"))
    with pytest.raises(sf.SfumatoError, match="declare independent"):
        released(frame.selectExpr("*", "cell as copy"), keep=("time", "copy"))
