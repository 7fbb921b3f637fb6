"""A streaming release inside Spark, as a share of the same job with a state that does nothing.

Both jobs read the same files, shuffle by the same shards, keep a state of about the same size and
write about the same columns. They run in turn in one session; what counts is the processor time of
driver, engine and workers.

    python -m benchmarks.spark_streaming [--rows 40000] [--streams 5000] [--rounds 4] [--apis]

With --apis the same fold is run by the other interface of Spark for states, too, and each with a
function that does nothing: see `benchmarks/spark_state_apis.py`.

Two rounds come before those that count: they start workers, load loops and let the engine compile
its own code for all jobs, as a query that runs for days has done. Beside the least of each job the
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

import sfumato as sf
from sfumato.models.encoding import Symbols
from sfumato.models.stream_model import StreamModel

SYMBOLS, BATCHES, SHARDS, WARM, EPSILON = 8, 4, 16, 2, 0.5
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


def example() -> tuple[StreamModel, sf.Policy]:
    """Eight symbols that mostly stay, and channels for half a nat a value."""
    names = sf.Alphabet([f"s{number}" for number in range(SYMBOLS)])
    stays = 0.8 * np.eye(SYMBOLS) + np.full((SYMBOLS, SYMBOLS), 0.2 / SYMBOLS)
    chain = sf.MarkovChain.from_matrix(stays, alphabet=names)
    policy = sf.compile_policy(chain, sf.loss.hamming(names), EPSILON, steps=500)
    return StreamModel(chain, Symbols(names), stream="user", values=("cell",)), policy


def jobs() -> dict[str, Callable[[Any], Any]]:
    """What is compared, from a frame of events to one of answers."""
    model, policy = example()
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

    return {"release": release, "nothing": lambda frame: nothing(by_shard(frame), "shard")}


def by_shard(frame: Any) -> Any:
    """Events with the shard of each."""
    from pyspark.sql import functions as F

    shard = F.pmod(F.xxhash64("user"), F.lit(SHARDS))
    return frame.withWatermark("time", "10 minutes").withColumn("shard", shard)


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


def session() -> Any:
    """A local Spark of two threads."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def shares(base: list[float], used: list[float]) -> str:
    """What a job does of what another does: the least of each, and round by round."""
    turns = sorted(one / other for one, other in zip(base, used, strict=True))
    middle = statistics.median(turns)
    return f"{min(base) / min(used):.0%} | {middle:.0%} ({turns[0]:.0%} to {turns[-1]:.0%})"


def main() -> None:
    """Measure the jobs in turn, and say how they compare."""
    from benchmarks.spark_state_apis import more_jobs, store_of

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--streams", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--apis", action="store_true", help="the other interface for states, too")
    given = parser.parse_args()
    spark, folder = session(), Path(tempfile.mkdtemp())
    (folder / "in").mkdir()
    write_events(folder / "in", given.streams, given.rows)
    compared = jobs()
    if given.apis:
        compared |= more_jobs(compared, *example())
    used: dict[str, list[float]] = {name: [] for name in compared}
    for turn in range(given.rounds + WARM):
        for name, make in compared.items():
            spark.conf.set("spark.sql.streaming.stateStore.providerClass", store_of(name))
            seconds = measure(spark, make, folder)
            if turn >= WARM:
                used[name].append(seconds)
    spark.stop()
    shutil.rmtree(folder)
    events = BATCHES * given.rows
    print(f"{given.rows:,} events of {given.streams:,} streams in a micro-batch, {SHARDS} shards\n")
    print("| job | us of processor an event | share of doing nothing, least | round by round |")
    print("|---|---|---|---|")
    for name, seconds in used.items():
        told = shares(used["nothing"], seconds)
        print(f"| {name} | {1e6 * min(seconds) / events:.1f} | {told} |")


if __name__ == "__main__":
    main()
