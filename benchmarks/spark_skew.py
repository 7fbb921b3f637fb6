"""Streams of very different lengths inside Spark, and the same job in one process.

    python -m benchmarks.spark_skew [--rows 2000000] [--turns 3]

Four tables of the same rows: a thousand streams, many of ten rows, one giant stream of half of the
rows among streams of one row, and streams of one row alone. Each is read from Parquet, released
with coins of a key and written as Parquet: by Spark, and by the product's own `release` of a file
in one process. A bare fleet has values ready in arrays, reads nothing and writes nothing. All in
turns in one run; figures are processor time (driver, engine and workers together), so other work on
the machine does little harm. Beside them the most memory that a worker of Spark has held, of those
that live: tables come one after another in one session, and the giant stream must not need more
than streams of one row do.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from benchmarks.spark import KEY, PLACES, RUN_ROWS, example, session
from benchmarks.spark_streaming import processor_time

import sfumato as sf
from sfumato.engines.spark.worker_plan import PlanDocument, plan_of
from sfumato.stream.input_rows import Reading
from sfumato.stream.release_run import RunSpec, release_table
from sfumato.tables.readers import Table

Array = np.ndarray[Any, Any]


def cases(rows: int) -> dict[str, Array]:
    """Whose each row is; rows are in the order of time."""
    rng = np.random.default_rng(1)
    half = rows // 2
    skewed = np.concatenate([np.zeros(half, dtype=np.int64), 1 + np.arange(rows - half)])
    return {
        "1,000": rng.integers(1_000, size=rows),
        f"{rows // 10:,}": rng.integers(rows // 10, size=rows),
        f"one of {half:,} rows, {rows - half:,} of one": rng.permutation(skewed),
        f"{rows:,} of one row": rng.permutation(rows),
    }


def write_case(path: Path, owners: Array, cells: Array) -> None:
    """The rows of a case as a table."""
    names = pa.array([f"user-{number:07d}" for number in range(int(owners.max()) + 1)])
    columns = {
        "user": names.take(pa.array(owners)),
        "time": np.arange(len(owners)),
        "cell": pa.array(PLACES).take(pa.array(cells)),
    }
    pyarrow.parquet.write_table(pa.table(columns), path)


def by_fleet(document: PlanDocument, owners: Array, cells: Array) -> float:
    """Seconds of a processor for a bare fleet."""
    names = [f"user-{number:07d}" for number in range(int(owners.max()) + 1)]
    fleet = sf.Fleet(plan_of(document).plan, names, randomness=sf.keyed(KEY))
    began = time.process_time()
    for start in range(0, len(owners), RUN_ROWS):
        fleet.run(cells[start : start + RUN_ROWS], owners[start : start + RUN_ROWS])
    return time.process_time() - began


def by_release(document: PlanDocument, table: Path, out: Path) -> float:
    """Seconds of a processor for the product's own release of a file, without a ledger."""
    opened = plan_of(document)
    spec = RunSpec(
        reading=Reading(None, "time", ("time",)), randomness=sf.keyed(KEY), document=document.rules
    )
    began = time.process_time()
    release_table(Table.at(str(table)), Table.at(str(out)), opened.model, opened.plan, spec)
    return time.process_time() - began


def by_spark(spark: Any, given: tuple[Any, Any], table: Path, out: Path) -> float:
    """Seconds of a processor for Spark: driver, engine and workers."""
    model, policy = given
    how: dict[str, Any] = {"model": model, "policy": policy, "key": KEY, "order": "time"}
    began = processor_time()
    private = sf.spark.release(spark.read.parquet(str(table)), **how, partitions=2 * _CORES)
    private.write.parquet(str(out))
    return processor_time() - began


_CORES = os.cpu_count() or 1


def largest_worker() -> float:
    """The most memory, in MB, that one of the workers of Spark has held; the daemon is one, too."""
    most = 0
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            words = Path(f"/proc/{entry}/cmdline").read_bytes()
            told = Path(f"/proc/{entry}/status").read_text()
        except OSError:
            continue
        if b"pyspark.daemon" in words:
            most = max(most, int(told.partition("VmHWM:")[2].split()[0]))
    return most / 1024


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--turns", type=int, default=3)
    asked = parser.parse_args()
    model, policy, document = example()
    cells = np.random.default_rng(2).integers(len(PLACES), size=asked.rows)
    print(f"{asked.rows:,} rows, {_CORES} cores; us of processor a row, the least of turns\n")
    print("| streams | a bare fleet | a file in one process | Spark | ", end="")
    print("Spark's share of the file's | largest worker |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as place:
        spark = session(_CORES, Path(place))
        for name, owners in cases(asked.rows).items():
            table, out = Path(place) / "in.parquet", Path(place) / "out.parquet"
            write_case(table, owners, cells)
            ways: dict[str, Callable[[], float]] = {
                "fleet": lambda: by_fleet(document, owners, cells),  # noqa: B023
                "file": lambda: by_release(document, table, out),  # noqa: B023
                "spark": lambda: by_spark(spark, (model, policy), table, out),  # noqa: B023
            }
            used: dict[str, list[float]] = {way: [] for way in ways}
            for turn in range(asked.turns + 1):
                for way, run in ways.items():
                    seconds = run()
                    _remove(out)
                    if turn:  # the first one warms up
                        used[way].append(seconds)
            each = " | ".join(f"{1e6 * min(one) / asked.rows:.2f}" for one in used.values())
            shares = [one / two for one, two in zip(used["file"], used["spark"], strict=True)]
            told = f"{statistics.median(shares):.2f} ({min(shares):.2f} to {max(shares):.2f})"
            print(f"| {name} | {each} | {told} | {largest_worker():,.0f} MB |", flush=True)
        spark.stop()


def _remove(out: Path) -> None:
    if out.is_dir():
        shutil.rmtree(out)
    else:
        out.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
