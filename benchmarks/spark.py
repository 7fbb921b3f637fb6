"""Rows a second inside Spark, beside fleets in plain processes: `python -m benchmarks.spark`.

The limit is what the same cores do without an engine: a process for each, a fleet in each, true
values ready in arrays. Spark reads a Parquet table, sorts it by stream and time, hands rows to its
workers through Arrow and takes the answers back; they are counted and summed, not written. Both run
in turns on the same rows and the same cores; what is told is their share, turn by turn. Run it
idle: `--rows 2000000 --turns 3` takes some minutes. Workers and loops are warm before the clock is
started, for a cluster starts them once a day.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import sfumato as sf
from sfumato.engines.spark.worker_plan import PlanDocument, plan_of
from sfumato.models.encoding import Symbols
from sfumato.models.stream_model import StreamModel
from sfumato.stream.release_spec import ReleaseSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEY = bytes(range(3, 35))
PLACES = tuple(f"cell-{number:02d}" for number in range(16))
RUN_ROWS = 1 << 16


def example() -> tuple[StreamModel, sf.Policy, PlanDocument]:
    """Sixteen places on a ring, each of which stays with .8; half a nat a value."""
    size = len(PLACES)
    turned = np.roll(np.eye(size), 1, axis=1)
    matrix = 0.79 * np.eye(size) + 0.1 * (turned + turned.T) + 0.01 / size
    chain = sf.MarkovChain.from_matrix(matrix, alphabet=sf.Alphabet(PLACES))
    policy = sf.compile_policy(chain, sf.loss.hamming(chain.alphabet), 0.5, steps=2_000)
    model = StreamModel(chain, Symbols(chain.alphabet), "user", ("cell",))
    spec = ReleaseSpec(epsilon=0.5, keep=("time",))
    return model, policy, PlanDocument.of(spec, model, policy)


def true_values(streams: int, rows: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The stream of each row, and its cell; times are the numbers of rows."""
    rng = np.random.default_rng(1)
    return rng.integers(streams, size=rows), rng.integers(len(PLACES), size=rows)


def fleet_of(document: PlanDocument, first: int, stop: int, streams: int, rows: int) -> float:
    """Seconds that one process takes for its share of the streams, in runs of 65,536 rows."""
    owners, cells = true_values(streams, rows)
    own = (owners >= first) & (owners < stop)
    owners, cells = owners[own] - first, cells[own]
    names = [f"user-{number:07d}" for number in range(first, stop)]
    fleet = sf.Fleet(plan_of(document).plan, names, randomness=sf.keyed(KEY))
    fleet.run(cells[:RUN_ROWS], owners[:RUN_ROWS])  # loops are loaded, streams are touched
    fleet = sf.Fleet(plan_of(document).plan, names, randomness=sf.keyed(KEY))
    began = time.perf_counter()
    for start in range(0, len(owners), RUN_ROWS):
        fleet.run(cells[start : start + RUN_ROWS], owners[start : start + RUN_ROWS])
    return time.perf_counter() - began


def by_fleets(document: PlanDocument, cores: int, streams: int, rows: int) -> float:
    """Rows a second of plain processes, one for each core."""
    edges = [streams * part // cores for part in range(cores + 1)]
    # The threads that talk to Java must not be forked.
    with ProcessPoolExecutor(cores, get_context("spawn")) as pool:
        shares = [
            pool.submit(fleet_of, document, first, stop, streams, rows)
            for first, stop in pairwise(edges)
        ]
        return rows / max(share.result() for share in shares)


def session(cores: int, folder: Path) -> SparkSession:
    """A local Spark with as many workers as there are cores."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    made = (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.ui.enabled", "false")
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.driver.memory", "2g")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "65536")
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("ERROR")
    return made


def by_spark(
    spark: SparkSession, table: Path, given: tuple[StreamModel, sf.Policy], cores: int, rows: int
) -> float:
    """Rows a second of Spark, from the table to the sum of the certificates."""
    model, policy = given
    frame = spark.read.parquet(str(table))
    how: dict[str, Any] = {"model": model, "policy": policy, "key": KEY, "order": "time"}
    private = sf.spark.release(frame, **how, partitions=2 * cores)
    began = time.perf_counter()
    (total,) = private.agg({"sip": "sum", "sequence": "count"}).collect()
    seconds = time.perf_counter() - began
    assert total["count(sequence)"] == rows
    return rows / seconds


def nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows as a release lets them leave, without one."""
    for batch in batches:
        rows = batch.num_rows
        zeros, words = np.zeros(rows), pa.array(["home"]).take(pa.array(np.zeros(rows, np.int64)))
        left = [batch["user"], batch["time"].cast(pa.string()), np.arange(rows), words, words]
        yield pa.record_batch(
            [*map(pa.array, left[:2]), *map(pa.array, left[2:]), pa.array(zeros), pa.array(zeros)],
            names=["user", "time", "sequence", "released", "outcome", "sip", "ldp"],
        )


def by_nothing(spark: SparkSession, table: Path, cores: int, rows: int) -> float:
    """Rows a second of the same job, read, sorted and handed to workers that release nothing."""
    from sfumato.engines.spark.stream_frames import StreamColumns

    schema = "user string, time string, sequence long, released string, outcome string, "
    arranged = StreamColumns("user", "time", ("cell",)).arranged(
        spark.read.parquet(str(table)), 2 * cores
    )
    left = arranged.mapInArrow(nothing, schema + "sip double, ldp double")
    began = time.perf_counter()
    (total,) = left.agg({"sip": "sum", "sequence": "count"}).collect()
    assert total["count(sequence)"] == rows
    return rows / (time.perf_counter() - began)


def main() -> None:
    """Print a table of shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    model, policy, document = example()
    found: dict[str, list[tuple[float, float, float]]] = {}
    with tempfile.TemporaryDirectory() as place:
        spark = session(asked.cores, Path(place))
        for streams in (1_000, asked.rows // 10):
            owners, cells = true_values(streams, asked.rows)
            table = Path(place) / f"{streams}.parquet"
            names = pa.array([f"user-{number:07d}" for number in range(streams)])
            columns = {
                "user": names.take(pa.array(owners)),
                "time": np.arange(asked.rows),
                "cell": pa.array(PLACES).take(pa.array(cells)),
            }
            pyarrow.parquet.write_table(pa.table(columns), table)
            by_spark(spark, table, (model, policy), asked.cores, asked.rows)
            by_nothing(spark, table, asked.cores, asked.rows)
            found[f"{streams:,} streams"] = [
                (
                    by_fleets(document, asked.cores, streams, asked.rows),
                    by_nothing(spark, table, asked.cores, asked.rows),
                    by_spark(spark, table, (model, policy), asked.cores, asked.rows),
                )
                for _ in range(asked.turns)
            ]
        spark.stop()
    if asked.json:
        print(json.dumps(found))
        return
    print(f"{asked.rows:,} rows, {asked.cores} cores\n")
    print("| streams | fleets, rows/s | no release, rows/s | Spark, rows/s | of fleets | of none |")
    print("|---|---|---|---|---|---|")
    for name, turns in found.items():
        fleets, none, sparks = (statistics.median(side) for side in zip(*turns, strict=True))
        print(f"| {name} | {fleets:,.0f} | {none:,.0f} | {sparks:,.0f} | ", end="")
        print(f"{_shares([(turn[0], turn[2]) for turn in turns])} | ", end="")
        print(f"{_shares([(turn[1], turn[2]) for turn in turns])} |")


def _shares(pairs: list[tuple[float, float]]) -> str:
    """The median of shares, turn by turn, and their range."""
    shares = sorted(part / whole for whole, part in pairs)
    return f"{statistics.median(shares):.2f} ({shares[0]:.2f} to {shares[-1]:.2f})"


if __name__ == "__main__":
    main()
