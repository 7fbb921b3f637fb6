"""A streaming release inside Spark, as a share of the same job with a state that does nothing.

Both jobs read the same files, shuffle by the same shards, keep a state of about the same size and
write about the same columns. They run in turn in one session; what counts is the processor time of
driver, engine and workers. What a state for each stream costs instead: docs/design/engines.md.

    python benchmarks/spark_streaming.py [--rows 40000] [--streams 5000] [--rounds 4]

Two rounds come before those that count: they start workers, load loops and let the engine compile
its own code for both jobs, as a query that runs for days has done. Beside the least of each job the
share of each round is told, for a machine with other work.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tables import EPSILON

import sfumato as sf
from sfumato.models.encoding import Symbols
from sfumato.models.stream_model import StreamModel

SYMBOLS, BATCHES, SHARDS, WARM = 8, 4, 16, 2
SCHEMA = "user string, id string, time timestamp, cell string"
LEFT = "event string, user string, time timestamp, released string, sip double, ldp double"
CLOCK = os.sysconf("SC_CLK_TCK")


def processor_time() -> float:
    """Seconds that this process and all that it started have used."""
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                told = Path(f"/proc/{entry}/stat").read_text()
            except OSError:
                continue
            parts = told.rpartition(")")[2].split()
            parents[int(entry)] = int(parts[1])
            # Of those that ended, too: workers come and go.
            used[int(entry)] = sum(map(int, parts[11:15])) / CLOCK
    mine = {os.getpid()}
    while found := {pid for pid, parent in parents.items() if parent in mine} - mine:
        mine |= found
    return sum(used[pid] for pid in mine)


def write_events(folder: Path, streams: int, rows: int) -> None:
    """Files of events, one for each micro-batch."""
    rng = np.random.default_rng(5)
    for batch in range(BATCHES):
        seconds = 1_700_000_000 + 60 * batch + np.arange(rows) % 60
        table = pa.table(
            {
                "user": [f"u{one}" for one in rng.integers(0, streams, rows).tolist()],
                "id": [f"{batch}-{row}" for row in range(rows)],
                "time": pa.array(1_000_000 * seconds, pa.timestamp("us", "UTC")),
                "cell": [f"s{one}" for one in rng.integers(0, SYMBOLS, rows).tolist()],
            }
        )
        pq.write_table(table, folder / f"{batch}.parquet")
        os.utime(folder / f"{batch}.parquet", (1e9 + batch, 1e9 + batch))


def nothing(frame: Any, key: str) -> Any:
    """A job with a state of the same size that answers with what it got."""
    import pandas as pd

    def answered(group: Any, parts: Iterator[Any], state: Any) -> Iterator[Any]:
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
        # What a shard keeps: a belief for each stream, and an answer for each event.
        size = (0 if held is None else len(held[0])) + 90 * rows
        state.update((bytes(size),))

    grouped = frame.groupBy(key)
    return grouped.applyInPandasWithState(answered, LEFT, "held binary", "append", "NoTimeout")


def jobs() -> dict[str, Callable[[Any], Any]]:
    """What is compared, from a frame of events to one of answers."""
    from pyspark.sql import functions as F

    names = sf.Alphabet([f"s{number}" for number in range(SYMBOLS)])
    stays = 0.8 * np.eye(SYMBOLS) + np.full((SYMBOLS, SYMBOLS), 0.2 / SYMBOLS)
    chain = sf.MarkovChain.from_matrix(stays, alphabet=names)
    policy = sf.compile_policy(chain, sf.loss.hamming(names), EPSILON, steps=500)
    model = StreamModel(chain, Symbols(names), stream="user", values=("cell",))
    # One key for all rounds: the engine compiles code for a release, and a query has one for life.
    key = os.urandom(32)

    def release(frame: Any) -> Any:
        return sf.spark.release_stream(
            frame,
            model=model,
            policy=policy,
            key=key,
            watermark="10 minutes",
            shards=SHARDS,
        )

    def by_shard(frame: Any) -> Any:
        shard = F.pmod(F.xxhash64("user"), F.lit(SHARDS))
        return nothing(
            frame.withWatermark("time", "10 minutes").withColumn("shard", shard), "shard"
        )

    return {"release": release, "nothing": by_shard}


def measure(spark: Any, make: Callable[[Any], Any], folder: Path) -> float:
    """Processor time of one job over all micro-batches."""
    place = Path(tempfile.mkdtemp(dir=folder))
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    frame = make(reader.parquet(str(folder / "in")))
    before = processor_time()
    writer = frame.writeStream.format("parquet").option("path", str(place / "out"))
    writer = writer.option("checkpointLocation", str(place / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    used = processor_time() - before
    shutil.rmtree(place)
    return used


def main() -> None:
    """Measure the jobs in turn, and say how they compare."""
    from pyspark.sql import SparkSession

    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--streams", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=4)
    given = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    folder = Path(tempfile.mkdtemp())
    (folder / "in").mkdir()
    write_events(folder / "in", given.streams, given.rows)
    compared = jobs()
    used: dict[str, list[float]] = {name: [] for name in compared}
    for turn in range(given.rounds + WARM):
        for name, make in compared.items():
            seconds = measure(spark, make, folder)
            if turn >= WARM:
                used[name].append(seconds)
    spark.stop()
    shutil.rmtree(folder)
    events = BATCHES * given.rows
    least = {name: min(seconds) for name, seconds in used.items()}
    for name, seconds in least.items():
        print(f"{name:8} {1e6 * seconds / events:7.1f} us of processor time an event")
    share = least["nothing"] / least["release"]
    print(f"the release does {share:.0%} of what the job that does nothing does")
    turns = zip(used["nothing"], used["release"], strict=True)
    shares = sorted(nothing / release for nothing, release in turns)
    middle = statistics.median(shares)
    print(f"round by round: {middle:.0%} ({shares[0]:.0%} to {shares[-1]:.0%})")


if __name__ == "__main__":
    main()
