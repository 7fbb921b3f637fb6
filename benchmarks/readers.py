"""Rows of a table as codes: by pyarrow, which reads them here, and by polars, in one run.

What a release needs of a chunk are the different words of each column, and for each row which one
it is. Both libraries read the same files with one thread, in chunks of 65,536 rows, and make such
codes of the streams and the values. The reader of a release also looks at every byte of a CSV file
first, so that pyarrow can but agree with the strict reader: "checked" is with that, which polars
would need as well. Least processor time of several turns, by turns.

    python benchmarks/readers.py [--rows 1000000] [--turns 7]
"""

from __future__ import annotations

import argparse
import io
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("POLARS_MAX_THREADS", "1")

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from sfumato.tables.plain_blocks import plain_columns

CHUNK = 65_536
STREAMS, SYMBOLS = 10_000, 16
NAMES = ("stream", "value")


def make_tables(folder: Path, rows: int) -> tuple[list[bytes], Path]:
    """Blocks of whole lines, and the same rows as Parquet."""
    draw = np.random.default_rng(1)
    table = pa.table(
        {
            "stream": [f"u{number}" for number in draw.integers(0, STREAMS, rows).tolist()],
            "value": [f"place {number}" for number in draw.integers(0, SYMBOLS, rows).tolist()],
        }
    )
    parquet = folder / "rows.parquet"
    pyarrow.parquet.write_table(table, parquet, row_group_size=CHUNK)
    blocks = []
    options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
    for batch in table.to_batches(CHUNK):
        sink = io.BytesIO()
        pyarrow.csv.write_csv(pa.Table.from_batches([batch]), sink, options)
        blocks.append(sink.getvalue())
    return blocks, parquet


def arrow_csv(blocks: list[bytes]) -> int:
    """Codes of all blocks by pyarrow; how many."""
    asked = (
        pyarrow.csv.ReadOptions(use_threads=False, column_names=NAMES, block_size=1 << 25),
        pyarrow.csv.ParseOptions(quote_char=False),
        pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(NAMES, pa.string())),
    )
    found = 0
    for block in blocks:
        read = pyarrow.csv.read_csv(pa.py_buffer(block), *asked)
        found += sum(len(read[name].combine_chunks().dictionary_encode()) for name in NAMES)
    return found


def checked_csv(blocks: list[bytes]) -> int:
    """The same as a release reads them."""
    found = 0
    for block in blocks:
        columns = plain_columns(block, ",", 2, {"stream": 0, "value": 1})
        assert columns is not None
        found += sum(len(column.dictionary_encode().indices) for column in columns.values())
    return found


def polars_csv(blocks: list[bytes]) -> int:
    """Codes of all blocks by polars; how many."""
    asked = {"has_header": False, "new_columns": list(NAMES), "infer_schema": False}
    found = 0
    for block in blocks:
        read = pl.read_csv(block, quote_char=None, **asked)
        found += sum(polars_codes(read[name]) for name in NAMES)
    return found


def arrow_parquet(path: Path) -> int:
    """Codes of all groups by pyarrow; how many."""
    found, source = 0, pyarrow.parquet.ParquetFile(path, read_dictionary=list(NAMES))
    for batch in source.iter_batches(CHUNK, use_threads=False):
        found += sum(len(column.indices) for column in batch.columns)
    return found


def polars_parquet(path: Path) -> int:
    """Codes of all groups by polars; how many."""
    found, rows = 0, pyarrow.parquet.ParquetFile(path).metadata.num_rows
    scan = pl.scan_parquet(path, parallel="none")
    for start in range(0, rows, CHUNK):
        read = scan.slice(start, CHUNK).collect()
        found += sum(polars_codes(read[name]) for name in NAMES)
    return found


def polars_codes(column: pl.Series) -> int:
    """A column as codes and words; how many codes."""
    return len(column.cast(pl.Categorical).to_physical().to_numpy())


def race(jobs: dict[str, Callable[[], int]], turns: int, due: int) -> dict[str, float]:
    """Seconds of the processor of each job, the least of some turns."""
    found: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(turns):
        for name, run in jobs.items():
            began = time.process_time()
            assert run() == due
            found[name].append(time.process_time() - began)
    return {name: min(each) for name, each in found.items()}


def main() -> None:
    """Print both, and their ratio."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rows", type=int, default=1_000_000)
    asked.add_argument("--turns", type=int, default=7)
    given = asked.parse_args()
    pa.set_cpu_count(1)
    with tempfile.TemporaryDirectory() as name:
        blocks, parquet = make_tables(Path(name), given.rows)
        jobs = {
            "CSV, pyarrow": lambda: arrow_csv(blocks),
            "CSV, polars": lambda: polars_csv(blocks),
            "CSV, pyarrow, checked": lambda: checked_csv(blocks),
            "Parquet, pyarrow": lambda: arrow_parquet(parquet),
            "Parquet, polars": lambda: polars_parquet(parquet),
        }
        found = race(jobs, given.turns, 2 * given.rows)
    print("## Rows as codes\n\n| reader | us a row | of pyarrow |\n|---|---|---|")
    for name, spent in found.items():
        beside = found[name.partition(",")[0] + ", pyarrow"]
        print(f"| {name} | {1e6 * spent / given.rows:.3f} | {spent / beside:.2f} |")


if __name__ == "__main__":
    main()
