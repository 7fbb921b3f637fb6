"""Kafka in and out with a substitute at each end: files with Kafka's columns, no broker.

What Spark's connector itself does is not tried here. Everything between the two is: the command,
its settings, the release, the keys and values of messages, and messages that cannot be read.
"""

import json
import os
import runpy
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from sfumato.engines.spark import kafka_messages
from tests.engines.conftest import SMALL, SOURCES
from tests.engines.shards import KEY, Answer, Asked
from tests.engines.test_stream_kill import ROOT, START, answer_of, due, folder_with, key_of

pytestmark = pytest.mark.engines

SECRET = "a-place-nobody-may-know"
COLUMNS = pa.schema(
    {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", "UTC"),
        "timestampType": pa.int32(),
    }
)
PARTITIONS = 3
BAD = (
    b'{"user": "u1", "id": "x1", "time": "2023-11-14T22:13:40Z", "cell": "%s"}' % SECRET.encode(),
    b'{"user": "u1", "id": "x2", "time": "2023-11-14T22:13:40Z"}',
    b'{"user": "u1", "id": "x3", "time": "yesterday", "cell": "a"}',
    b'{"user": "u1", "id": "x4", "time": "2023-11-14T22:13:40Z", "ce',
    b'{"user": "u1", "id": "", "time": "2023-11-14T22:13:40Z", "cell": "a"}',
    b'{"id": "x6", "time": "2023-11-14T22:13:40Z", "cell": "a"}',
    SECRET.encode(),
    b"",
    b"\xff\xfe",
    None,  # what Kafka calls a tombstone
)
RULES = [
    "the value must be one of the 3 symbols of the alphabet",
    "the value must not be empty",
    "column 'time' must not be empty",
    "column 'user' must not be empty",
    "the id must not be empty",
    *["column 'user' must not be empty"] * 5,
]


def topic(folder: Path, name: str, bad: tuple[bytes | None, ...]) -> list[list[Asked]]:
    """Events as messages in the partitions of a topic, a file for each micro-batch."""
    batches = folder_with(folder, seed=17)
    (folder / name).mkdir()
    offsets = [0] * PARTITIONS
    for turn, events in enumerate(batches):
        lines = (folder / "in" / f"{turn}.json").read_text().splitlines()
        sent: list[tuple[bytes, bytes | None]] = [
            (one.stream.encode(), line.encode()) for one, line in zip(events, lines, strict=True)
        ]
        if turn == 1:
            sent[3:3] = [(b"u1", value) for value in bad]
        rows = []
        for key, value in sent:
            part = crc32(key) % PARTITIONS
            moment = 1_000_000 * (START + turn)
            rows.append((key, value, "raw", part, offsets[part], moment, 0))
            offsets[part] += 1
        parts = zip(zip(*rows, strict=True), COLUMNS, strict=True)
        columns = [pa.array(one, kind.type) for one, kind in parts]
        path = folder / name / f"{turn}.parquet"
        pq.write_table(pa.table(columns, schema=COLUMNS), path)
        os.utime(path, (START + turn, START + turn))
    (folder / "key").write_bytes(KEY)
    (folder / "key").chmod(0o600)
    return batches


def stream(folder: Path, *more: str) -> "subprocess.CompletedProcess[str]":
    """The command with files where Spark's connector would stand."""
    program = (
        "import sys; from sfumato.engines.spark import kafka_messages; "
        "kafka_messages.CONNECTOR = 'parquet'; "
        "from sfumato.cli import main; sys.exit(main())"
    )
    words = [sys.executable, "-W", "ignore", "-c", program, "spark", "stream"]
    words += ["--source-format", "kafka", "--source-option", f"path={folder / 'raw'}"]
    words += ["--source-option", "maxFilesPerTrigger=1", "--sink-format", "kafka"]
    words += ["--sink-option", "topic=private", "--sink-option", f"path={folder / 'private'}"]
    words += ["-m", str(folder / "letters.model"), "--policy", str(folder / "letters.policy")]
    words += ["--epsilon", "0.5", "--key-file", str(folder / "key"), "--shards", "4"]
    words += ["--watermark", "30 seconds", "--checkpoint", str(folder / "checkpoint")]
    words += ["--master", "local[2]", "--once", "--json"]
    # Kafka's reader knows its columns by itself; that of files must be told to look.
    settings = {**SMALL, "spark.sql.streaming.schemaInference": "true"}
    for name, value in settings.items():
        words += ["--conf", f"{name}={value}"]
    return subprocess.run(
        [*words, *more],
        env={**os.environ, "PYTHONPATH": SOURCES, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def written(folder: Path) -> list[dict[str, Any]]:
    """Messages in the order of each file."""
    paths = sorted((folder / "private").glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    return [row for path in paths for row in pq.read_table(path).to_pylist()]


def test_messages_that_cannot_be_read_become_dead_letters_and_the_rest_is_answered(
    tmp_path: Path,
) -> None:
    batches = topic(tmp_path, "raw", BAD)
    ended = stream(tmp_path)
    # Without a choice it ends, at every start, and quotes nothing.
    assert ended.returncode == 2 and "must" in ended.stderr, ended.stderr
    assert SECRET not in ended.stderr and not (tmp_path / "letters").exists()
    ran = stream(tmp_path, "--dead-letters", str(tmp_path / "letters"))
    assert ran.returncode == 0, ran.stderr
    events = sum(map(len, batches))
    told = json.loads(ran.stdout)
    assert told["dead_letters"] == len(BAD)
    # The first micro-batch was answered by the run before.
    assert told["events"] == events + len(BAD) - len(batches[0])
    lines = [
        json.loads(line)
        for path in (tmp_path / "letters").glob("*.json")
        for line in path.read_text().splitlines()
    ]
    part, first = crc32(b"u1") % PARTITIONS, {row["offset"] for row in lines}
    assert {(row["topic"], row["partition"]) for row in lines} == {("raw", part)}
    assert first == set(range(min(first), min(first) + len(BAD)))
    in_order = [row["rule"] for row in sorted(lines, key=lambda row: row["offset"])]
    assert in_order == RULES
    assert all(set(row) == {"topic", "partition", "offset", "timestamp", "rule"} for row in lines)
    folders = (tmp_path / "letters", tmp_path / "checkpoint", tmp_path / "private")
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    assert files and not any(SECRET.encode() in path.read_bytes() for path in files)
    check_messages(tmp_path, batches)


def check_messages(folder: Path, batches: list[list[Asked]]) -> None:
    """Every event has its answer under the key of its stream, in the order of its sequence.

    The run that ended has left some answers of its last micro-batch, as it would have left them in
    a topic: the next run repeats them, and they are equal.
    """
    answers, _ = due(batches, key_of(folder))
    found: dict[tuple[str, str], list[Any]] = defaultdict(list)
    moments: dict[str, list[int]] = defaultdict(list)
    for row in written(folder):
        told = json.loads(row["value"])
        key = row["key"] if isinstance(row["key"], str) else row["key"].decode()
        assert key == told["user"]
        answer = answer_of(told)
        if isinstance(answer, Answer) and answer not in found[key, told["event"]]:
            moments[key].append(answer.sequence)
        found[key, told["event"]].append(answer)
    assert {name: set(one) for name, one in found.items()} == {
        name: set(one) for name, one in answers.items()
    }
    assert moments and all(one == sorted(one) for one in moments.values())


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
def test_the_example_answers_a_topic_live_and_goes_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = topic(tmp_path, "raw", BAD)
    for turn in range(1, 5):
        (tmp_path / "raw" / f"{turn}.parquet").rename(tmp_path / f"{turn}.parquet")
    example = runpy.run_path(str(ROOT / "examples" / "kafka_spark.py"))
    live = example["main"].__globals__

    def messages(session: SparkSession, source: dict[str, str]) -> Any:
        assert source["failOnDataLoss"] == "true" and source["startingOffsets"] == "earliest"
        schema = spark.read.parquet(str(tmp_path / "raw")).schema
        return session.readStream.schema(schema).parquet(str(tmp_path / source["subscribe"]))

    def begin(rows: Any, given: Any, name: str, folder: str) -> None:
        writer = rows.writeStream.option("checkpointLocation", f"{given.checkpoint}/{folder}")
        writer = writer.trigger(availableNow=True).format("parquet")
        writer.start(str(tmp_path / name)).awaitTermination()

    monkeypatch.setattr(kafka_messages, "messages", messages)
    monkeypatch.setitem(live, "begin", begin)
    words = ["example", "--brokers", "nowhere:1", "--incoming", "raw", "--outgoing", "private"]
    words += ["--model", str(tmp_path / "letters.model"), "--key-file", str(tmp_path / "key")]
    words += ["--epsilon", "0.5"]
    more = ["--checkpoint", str(tmp_path / "state"), "--unreadable", "letters"]
    monkeypatch.setattr(sys, "argv", words + more)
    live["main"]()
    answered = pq.read_table(tmp_path / "private").to_pylist()
    assert {(row["key"], json.loads(row["value"])["event"]) for row in answered} == {
        (one.stream, one.id) for one in batches[0]
    }
    assert len(answered) == len(batches[0])
    (tmp_path / "1.parquet").rename(tmp_path / "raw" / "1.parquet")
    live["main"]()
    assert len(pq.read_table(tmp_path / "private")) == len(batches[0]) + len(batches[1])
    rules = [
        json.loads(row["value"])["rule"] for row in pq.read_table(tmp_path / "letters").to_pylist()
    ]
    assert sorted(rules) == sorted(RULES)
