"""A streaming release: the answers of the plan, and what it refuses, on real Spark."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import sfumato as sf
from sfumato.cli.spark_stream_places import Places
from sfumato.core.errors import InvalidParameter
from sfumato.engines.spark.checkpoint_identity import check_in_step, refused_checkpoint
from sfumato.engines.spark.column_names import quoted
from sfumato.engines.spark.kafka_messages import events_of
from sfumato.engines.spark.shard_state import OtherRelease
from sfumato.engines.spark.spark_session import told_plainly
from sfumato.engines.spark.stream_sources import event_schema
from sfumato.tables.problems import BadTable
from tests.engines.shards import KEY, letter_policy, letters
from tests.engines.stream_driver import released, writer
from tests.engines.test_stream_kill import (
    FILES,
    START,
    answer_of,
    check,
    due,
    folder_with,
    seen,
)

pytestmark = [
    pytest.mark.engines,
    # Of the engine, which names no reason; whatever it meant is in what these tests compare.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


def run(spark: SparkSession, folder: Path, sink: str = "files", **settings: Any) -> None:
    """Answer all that lies in a folder."""
    with told_plainly("the events"), refused_checkpoint():
        query = writer(released(spark, folder, **settings), folder, sink).start()
        query.awaitTermination()


def add(folder: Path, name: str, *rows: dict[str, Any]) -> None:
    path = folder / "in" / name
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    os.utime(path, (START + 1000, START + 1000))


@pytest.fixture(scope="module")
def answered(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose events were answered once."""
    folder = tmp_path_factory.mktemp("answered")
    folder_with(folder, seed=11)
    run(spark, folder)
    return folder


def test_answers_refusals_and_spends_are_those_of_the_plan(answered: Path, tmp_path: Path) -> None:
    batches = folder_with(tmp_path, seed=11)
    check(answered, "files", batches)
    words = {one for told in due(batches, KEY)[0].values() for one in told if isinstance(one, str)}
    assert words >= {"late", "order"}  # the events are such that both are tried


def test_no_value_is_in_the_checkpoint(answered: Path) -> None:
    # Values are words of one letter here; ids, names and answers are what may be found.
    kinds = {path.suffix for path in (answered / "checkpoint" / "state").rglob("*")}
    assert kinds & {".delta", ".changelog", ".snapshot", ".zip"}
    told = {answer_of(row) for row in seen(answered, "files")}
    assert told
    for path in (answered / "checkpoint").rglob("*"):
        if path.is_file():
            assert b'"cell"' not in path.read_bytes()
            assert KEY not in path.read_bytes()


def test_a_batch_is_done_again_alike_and_under_another_checkpoint_otherwise(
    spark: SparkSession, answered: Path, tmp_path: Path
) -> None:
    first = folder_with(tmp_path, seed=11)[0]
    for path in (tmp_path / "in").glob("[1-9].json"):
        path.unlink()
    run(spark, tmp_path, "rows")
    # As if it had been killed between its state and its sink: the batch was not committed.
    for path in (tmp_path / "checkpoint" / "commits").iterdir():
        path.unlink()
    run(spark, tmp_path, "rows")
    rows = seen(tmp_path, "rows")
    assert len(rows) == 2 * len(first)
    own = {(row["user"], row["event"], answer_of(row)) for row in rows}
    assert len(own) == len(first)
    # The same key, values, streams and sequences as in the other folder, and other coins.
    others = {(row["user"], row["event"], answer_of(row)) for row in seen(answered, "files")}
    assert own - others


@pytest.mark.parametrize(
    "settings",
    [{"key": b"another key, of the same length or so"}, {"shards": 8}, {"epsilon": 0.4}],
    ids=["key", "shards", "rules"],
)
def test_a_checkpoint_of_another_release_is_refused(
    spark: SparkSession, answered: Path, settings: dict[str, Any]
) -> None:
    before = len(seen(answered, "files"))
    # A stream that the checkpoint does not know: no state of its own would refuse it.
    name = f"new-{next(iter(settings))}.json"
    row = {"user": name, "id": "1", "time": "2023-11-14T22:20:00Z", "cell": "a"}
    add(answered, name, row)
    try:
        with pytest.raises(OtherRelease, match="another model, policy, rules, key"):
            run(spark, answered, **settings)
    finally:
        (answered / "in" / name).unlink()
    assert len(seen(answered, "files")) == before


def test_a_checkpoint_that_is_behind_its_answers_is_refused(
    spark: SparkSession, answered: Path, tmp_path: Path
) -> None:
    out, checkpoint = str(answered / "out"), answered / "checkpoint"
    check_in_step(spark, str(checkpoint), out)
    check_in_step(spark, str(tmp_path / "new"), str(tmp_path / "no answers"))
    old = tmp_path / "from a backup"
    shutil.copytree(checkpoint, old)
    check_in_step(spark, str(old), out)
    for path in (old / "offsets").glob("[0-9]*"):
        if int(path.name) >= FILES - 1:  # the last one that has answers, and what was refused
            path.unlink()
    for behind in (old, tmp_path / "new"):
        with pytest.raises(InvalidParameter, match="know every micro-batch that"):
            check_in_step(spark, str(behind), out)


def test_a_time_without_a_zone_is_of_utc_in_any_zone(spark: SparkSession, tmp_path: Path) -> None:
    told = '{"user": "u", "id": "1", "time": "2026-03-29T02:30:00", "cell": "a"}'
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "one.json").write_text(told)
    places = Places.of(
        source=str(tmp_path / "in"),
        source_format="json",
        source_option=None,
        names=("id", "time"),
        output=str(tmp_path / "out"),
        sink_format="json",
        sink_option=None,
        dead_letters=None,
        checkpoint=str(tmp_path / "state"),
        trigger={},
    )
    message = spark.createDataFrame(
        [(told, "raw", 0, 0, 0)], ["value", "topic", "partition", "offset", "timestamp"]
    )
    schema = event_schema(letters(), "id", "time", typed=False)
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        # There was no such hour in Berlin.
        for zone in ("Europe/Berlin", "UTC"):
            spark.conf.set("spark.sql.session.timeZone", zone)
            live = places.events(spark, letters()).writeStream.format("memory").queryName("live")
            live.trigger(availableNow=True).start().awaitTermination()
            for events in (spark.table("live"), events_of(message, schema)):
                (row,) = events.selectExpr("unix_seconds(time) AS seconds").collect()
                assert row["seconds"] == 1_774_751_400
    finally:
        spark.conf.set("spark.sql.session.timeZone", before or "UTC")


def test_names_of_columns_with_dots_are_names_live_too(spark: SparkSession, tmp_path: Path) -> None:
    user, id, time, cell = names = ("the.`user`", "my.id", "when.at", "cell.now")
    (tmp_path / "in").mkdir()
    rows = [("u1", str(number), f"2026-03-09T00:0{number}:00Z", "a") for number in range(5)]
    text = "".join(f"{json.dumps(dict(zip(names, row, strict=True)))}\n" for row in rows)
    (tmp_path / "in" / "one.json").write_text(text)
    kinds = ("string", "string", "timestamp", "string")
    schema = ", ".join(f"{quoted(name)} {kind}" for name, kind in zip(names, kinds, strict=True))
    private = sf.spark.release_stream(
        spark.readStream.schema(schema).json(str(tmp_path / "in")),
        model=replace(letters(), stream=user, values=(cell,)),
        policy=letter_policy(),
        key=KEY,
        watermark="1 minute",
        id=id,
        time=time,
        shards=2,
    )
    writer(private, tmp_path, "files").start().awaitTermination()
    found = sorted((row["sequence"], row["event"], row[user]) for row in seen(tmp_path, "files"))
    assert found == [(number, str(number), "u1") for number in range(5)]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"cell": "a secret place"}, "the value must be one of the 3 symbols"),
        ({"time": None}, "column 'time' must not be empty"),
    ],
)
def test_what_cannot_be_read_ends_the_query_and_is_not_quoted(
    spark: SparkSession, tmp_path: Path, change: dict[str, Any], rule: str
) -> None:
    folder_with(tmp_path, seed=1)
    for path in (tmp_path / "in").iterdir():
        path.unlink()
    row = {"user": "ann", "id": "1", "time": "2023-11-14T22:20:00Z", "cell": "a"}
    add(tmp_path, "bad.json", row | {"id": "0"}, row | change)
    with pytest.raises(BadTable, match=rule) as told:
        run(spark, tmp_path)
    assert "secret" not in str(told.value)
    assert not list((tmp_path / "out" / "_spark_metadata").glob("[0-9]*"))  # nothing has left


def test_frames_that_are_no_streams_of_events_are_refused(
    spark: SparkSession, answered: Path
) -> None:
    given: dict[str, Any] = {"model": letters(), "policy": letter_policy(), "key": KEY}
    given["watermark"] = "1 minute"
    whole = spark.createDataFrame([("ann", "1", "a")], "user string, id string, cell string")
    with pytest.raises(InvalidParameter, match="be a streaming one"):
        sf.spark.release_stream(whole, **given)
    live = spark.readStream.schema("user string, id string, time string, cell string")
    frame = live.json(str(answered / "in"))
    with pytest.raises(InvalidParameter, match="hold a timestamp"):
        sf.spark.release_stream(frame, **given)
    moments = frame.withColumn("time", frame["time"].cast("timestamp"))
    with pytest.raises(InvalidParameter, match="leave rows out of the frame"):
        sf.spark.release_stream(moments, **given, missing="drop")
    with pytest.raises(InvalidParameter, match="at least 16 bytes"):
        sf.spark.release_stream(moments, **(given | {"key": b"short"}))
