"""Tables written without the package: the oracle of its readers and writers."""

import csv
import gzip
import io
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

PLACES = ("bakery", "clinic", "market", "school")
SUFFIXES = ("csv", "csv.gz", "jsonl", "ndjson", "json", "jsonl.gz", "parquet", "arrow", "feather")
FORMATS = ("csv", "jsonl", "parquet", "arrow")


def csv_bytes(names: Sequence[str], records: Iterable[Sequence[object]]) -> bytes:
    """A CSV file."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(records)
    return text.getvalue().encode()


def json_bytes(names: Sequence[str], records: Iterable[Sequence[object]]) -> bytes:
    """A file of JSON lines."""
    lines = (json.dumps(dict(zip(names, record, strict=True))) for record in records)
    return "".join(line + "\n" for line in lines).encode()


def arrow_table(names: Sequence[str], records: Iterable[Sequence[object]]) -> Any:
    """An Arrow table; columns without rows hold text."""
    rows = list(records)
    columns = [pa.array([row[i] for row in rows]) for i in range(len(names))]
    if not rows:
        columns = [pa.array([], type=pa.string()) for _ in names]
    return pa.Table.from_arrays(columns, names=list(names))


def write(path: Path, names: Sequence[str], records: Iterable[Sequence[object]]) -> Path:
    """A table in the format that the suffix says."""
    name = path.name.removesuffix(".gz")
    if name.endswith(".parquet"):
        pyarrow.parquet.write_table(arrow_table(names, records), path)
    elif name.endswith((".arrow", ".feather")):
        table = arrow_table(names, records)
        with pyarrow.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
    else:
        encode = csv_bytes if name.endswith(".csv") else json_bytes
        data = encode(names, records)
        path.write_bytes(gzip.compress(data) if path.name.endswith(".gz") else data)
    return path


def read(path: Path) -> list[dict[str, Any]]:
    """All rows of a table, read without the package."""
    name = path.name.removesuffix(".gz")
    if name.endswith(".parquet"):
        return list(pyarrow.parquet.read_table(path).to_pylist())
    if name.endswith((".arrow", ".feather")):
        with pyarrow.ipc.open_file(str(path)) as reader:
            return list(reader.read_all().to_pylist())
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.name.endswith(".gz") else data).decode()
    if name.endswith(".csv"):
        return list(csv.DictReader(io.StringIO(text, newline="")))
    return [json.loads(line) for line in text.split("\n") if line]


def walk(
    seed: int, rows: int, streams: int = 3, symbols: Sequence[str] = PLACES
) -> list[tuple[str, str]]:
    """Interleaved streams of people who mostly stay where they are."""
    rng = random.Random(seed)
    here: dict[str, str] = {}
    path = []
    for _ in range(rows):
        person = f"person-{rng.randrange(streams)}"
        if person not in here or rng.random() < 0.3:
            here[person] = rng.choice(symbols)
        path.append((person, here[person]))
    return path


def table(path: Path, records: Iterable[Sequence[object]]) -> Path:
    """A table of streams and values."""
    return write(path, ["person", "place"], records)


def by_stream(records: Iterable[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Rows of each stream, in order."""
    streams: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        streams.setdefault(str(record["person"]), []).append(dict(record))
    return streams
