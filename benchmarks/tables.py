"""How fast tables are released and audited, and how that grows: `make bench`.

Streams are random walks on a ring of 16 places, interleaved; far-sighted ones stay for long at one
of six activities, and are released step by step beside it. Each run is a process of its own (see
`table_jobs.py`), the median of three; the limits beside them (the bare fleet, raw SQLite with the
same bytes) are measured in turn with them; seconds are those of the processor, all threads
added up, since the machine is shared. `--quick` takes tables a hundredth as long.

    python benchmarks/tables.py [--quick] [--growth growth.json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

import sfumato as sf

EPSILON = 0.5
PART = 1_000_000
LEDGERED = 1_000_000
"""Most rows of a ledger in the picture of growth; the table of goals has ten times as many."""
GROWING = (
    "bare fleet",
    "release, Parquet",
    "release, CSV",
    "audit, Parquet",
    "release, durable ledger",
)
JOBS = Path(__file__).with_name("table_jobs.py")


@dataclass(frozen=True)
class Setting:
    """A chain with its policy, and where the tables of its streams are."""

    folder: Path
    symbols: int = 16
    order: int = 1
    method: str = "optimal"
    kind: str | None = None
    stay: float = 0.8
    loss: str = "absolute"
    files: dict = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Tells its files from those of others."""
        return f"{self.symbols}-{self.order}-{self.method}-{self.kind}"

    def prepare(self) -> None:
        """Make model, policy and a small table to warm up with."""
        chain = ring_chain(self.symbols, self.order, self.stay)
        model, policy = self.folder / f"{self.name}.model", self.folder / f"{self.name}.policy"
        sf.save(chain, model)
        loss = getattr(sf.loss, self.loss)(chain.alphabet)
        steps = 4_000 if self.symbols <= 64 else 400
        steps = None if self.method == "far-sighted" else steps
        asked = {"steps": steps, "method": self.method, "kind": self.kind}
        sf.save(sf.compile_policy(chain, loss, EPSILON, **asked), policy)
        self.files.update(model=str(model), policy=str(policy))
        self.files["small"] = str(self.table(2_000, 100, "parquet"))

    def table(self, rows: int, streams: int, suffix: str) -> Path:
        """A table of interleaved random walks."""
        path = self.folder / f"{self.name}-{rows}-{streams}.{suffix}"
        if path.exists():
            return path
        rng = np.random.default_rng(1)
        place = rng.integers(0, self.symbols, streams)
        names = pa.array([f"u{number}" for number in range(streams)])
        with writer(path, suffix) as sink:
            done, held = 0, []
            while done < rows:
                moved = (rng.random(streams) > self.stay) * rng.choice([-1, 1], streams)
                place = (place + moved) % self.symbols
                held.append(place)
                done += streams
                if done % PART < streams or done >= rows:
                    values = pa.array(np.concatenate(held))
                    who = pa.chunked_array([names] * len(held)).combine_chunks()
                    sink.write_table(pa.table({"stream": who, "value": values}))
                    held = []
        return path


def writer(path: Path, suffix: str):
    """Writes tables with a stream and a value."""
    schema = pa.schema([("stream", pa.string()), ("value", pa.int64())])
    if suffix == "csv":
        return pyarrow.csv.CSVWriter(path, schema)
    return pyarrow.parquet.ParquetWriter(path, schema)


def ring_chain(symbols: int, order: int, stay: float = 0.8) -> sf.MarkovChain:
    """A walk on a ring that mostly stays; of a higher order it knows the same."""
    eye = np.eye(symbols)
    step = stay * eye + (1 - stay) / 2 * (np.roll(eye, 1, axis=1) + np.roll(eye, -1, axis=1))
    rows = np.tile(step, (symbols ** (order - 1), 1))
    return sf.MarkovChain.from_matrix(rows, floor=1e-4 / symbols)


def once(kind: str, setting: Setting, **asked) -> dict:
    """One run of a job in a process of its own."""
    job = {"kind": kind, "folder": str(setting.folder), "epsilon": EPSILON}
    job |= {"method": setting.method, "loss": setting.loss}
    job |= {"keyed": False, "ledger": None} | setting.files
    job |= {name: str(value) if isinstance(value, Path) else value for name, value in asked.items()}
    done = subprocess.run(
        [sys.executable, JOBS, json.dumps(job)], capture_output=True, check=False, text=True
    )
    if done.returncode:
        raise SystemExit(f"{kind} failed: {done.stderr[-2000:]}")
    return json.loads(done.stdout)


class Race:
    """Runs of several jobs in turn; their medians."""

    def __init__(self, turns: int) -> None:
        self._turns = turns
        self._jobs: dict = {}

    def add(self, name: str, job) -> None:
        """A job, as a function that runs it once."""
        self._jobs[name] = job

    def run(self) -> dict:
        """The median of each: rows a second of the processor, and of the wall; MB."""
        found: dict = {name: [] for name in self._jobs}
        for _ in range(self._turns):
            for name, job in self._jobs.items():
                found[name].append(job())
        return {name: medians(runs) for name, runs in found.items()}


def medians(runs: list[dict]) -> dict:
    """Of several runs of one job."""
    middle = statistics.median
    return {
        "rows": runs[0]["rows"],
        "speed": middle(run["rows"] / run["seconds"] for run in runs),
        "wall": middle(run["rows"] / run["wall"] for run in runs),
        "peak_mb": max(run["peak_mb"] for run in runs),
    }


def released(setting: Setting, rows: int, streams: int, suffix: str, **more):
    """A job that releases a table; what it writes is thrown away, but for the last."""
    source = setting.table(rows, streams, suffix)
    output = source.with_name(f"out-{source.name}")
    ledger = source.with_suffix(".ledger") if more.pop("ledgered", False) else None

    def job() -> dict:
        for old in (output, *(source.parent.glob(f"{ledger.name}*") if ledger else ())):
            old.unlink(missing_ok=True)
        return once("release", setting, source=source, output=output, ledger=ledger, **more)

    return job, output, ledger


def goals(setting: Setting, whole: int, part: int, turns: int) -> None:
    """The jobs that have a goal, beside their limits."""
    race = Race(turns)
    parquet, output, _ = released(setting, whole, 10_000, "parquet")
    race.add("bare fleet", lambda: once("fleet", setting, rows=whole, streams=10_000))
    race.add("release, Parquet", parquet)
    race.add("audit, Parquet", lambda: once("audit", setting, source=output))
    race.add("release, CSV", released(setting, whole, 10_000, "csv")[0])
    keyed, _, _ = released(setting, part, 10_000, "parquet", keyed=True)
    race.add("release, Parquet, keyed coins", keyed)
    some, _, _ = released(setting, part, 10_000, "csv", ledgered=True)
    race.add("release, CSV, durable ledger, a tenth", some)
    held, _, ledger = released(setting, whole, 10_000, "csv", ledgered=True)
    race.add("release, CSV, durable ledger", held)
    copy = setting.folder / "raw.sqlite"

    def raw() -> dict:
        for old in setting.folder.glob("raw.sqlite*"):
            old.unlink()
        return once("sqlite", setting, source=ledger, output=copy)

    race.add("raw SQLite, the same rows", raw)
    race.add("one stream", released(setting, part, 1, "parquet")[0])
    race.add("as many streams as rows", released(setting, part, part, "parquet")[0])
    found = race.run()
    fleet, table = found["bare fleet"]["speed"], found["release, Parquet"]["speed"]
    limits = dict.fromkeys(found, fleet) | {"audit, Parquet": table}
    raw_speed = found["raw SQLite, the same rows"]["speed"]
    limits |= {name: raw_speed for name in found if "ledger" in name}
    print("| job | rows | rows/s of processor | rows/s of wall | peak MB | share of its limit |")
    print("|---" * 6 + "|")
    for name, one in found.items():
        share = "" if name in ("bare fleet", "raw SQLite, the same rows") else one["speed"]
        share = f"{share / limits[name]:.0%}" if share else ""
        figures = f"{one['speed']:,.0f} | {one['wall']:,.0f} | {one['peak_mb']:,.0f} | {share}"
        print(f"| {name} | {one['rows']:,} | {figures} |", flush=True)


def sighted(folder: Path, rows: int, turns: int) -> None:
    """The default of a cap on each value, beside kept channels and beside step-wise ones."""
    race, alike = Race(turns), {"symbols": 6, "stay": 0.97, "loss": "hamming"}
    kinds = {
        "step-wise": (Setting(folder, **alike), rows),
        "far-sighted": (Setting(folder, **alike, method="far-sighted"), rows),
        "far-sighted, kept": (
            Setting(folder, **alike, method="far-sighted", kind="kept"),
            rows // 500,
        ),
    }
    for name, (setting, some) in kinds.items():
        setting.prepare()
        job, output, _ = released(setting, some, 10_000 if some > 100_000 else 100, "parquet")
        race.add(f"release, {name}", job)
        audit = {"source": output}
        race.add(
            f"audit, {name}", lambda setting=setting, audit=audit: once("audit", setting, **audit)
        )
        race.add(f"one stream, {name}", released(setting, some, 1, "parquet")[0])
    found = race.run()
    print("\n## Far-sighted\n\n| job | rows | rows/s of processor | us a row | peak MB |")
    print("|---" * 5 + "|")
    for name, one in found.items():
        each = f"{1e6 / one['speed']:.2f} | {one['peak_mb']:,.0f}"
        print(f"| {name} | {one['rows']:,} | {one['speed']:,.0f} | {each} |", flush=True)


def growth(folder: Path, scale: int, turns: int) -> dict:
    """How jobs grow with rows, streams, symbols and order, each beside the bare fleet."""
    found: dict = {"rows": [], "streams": [], "symbols": [], "order": []}
    base = Setting(folder)
    base.prepare()
    middle = 1_000_000 // scale
    for rows in (middle // 10, middle, 10 * middle):
        found["rows"].append((rows, beside(base, rows, 10_000 // scale, turns)))
    for streams in (1, 100, 10_000, middle):
        if streams <= middle:
            found["streams"].append((streams, beside(base, middle, streams, turns)))
    for symbols in (2, 16, 64, 256):
        setting = base if symbols == 16 else Setting(folder, symbols)
        if setting is not base:
            setting.prepare()
        few = middle if symbols <= 16 else middle // 4
        found["symbols"].append((symbols, beside(setting, few, 1_000, turns)))
    for order in (1, 2, 3):
        setting = Setting(folder, 4, order)
        setting.prepare()
        found["order"].append((order, beside(setting, middle, 1_000, turns)))
    for name, points in found.items():
        print(f"\n| {name} | " + ", rows/s | ".join(GROWING) + ", rows/s | peak MB, Parquet |")
        print("|---" * (len(GROWING) + 2) + "|")
        for at, jobs in points:
            speeds = " | ".join(f"{jobs[job]['speed']:,.0f}" for job in GROWING)
            print(f"| {at:,} | {speeds} | {jobs['release, Parquet']['peak_mb']:,.0f} |")
    return found


def beside(setting: Setting, rows: int, streams: int, turns: int) -> dict:
    """Rows a second and MB of each job on one table; a ledger of a million rows at most."""
    race, few = Race(turns), min(rows, LEDGERED)
    parquet, output, _ = released(setting, rows, streams, "parquet")
    race.add("bare fleet", lambda: once("fleet", setting, rows=rows, streams=streams))
    race.add("release, Parquet", parquet)
    race.add("release, CSV", released(setting, rows, streams, "csv")[0])
    race.add("audit, Parquet", lambda: once("audit", setting, source=output))
    ledgered, _, _ = released(setting, few, min(streams, few), "csv", ledgered=True)
    race.add("release, durable ledger", ledgered)
    return race.run()


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--quick", action="store_true", help="tables a hundredth as long, one turn")
    asked.add_argument("--turns", type=int, default=3, help="runs of each job")
    asked.add_argument("--sighted", action="store_true", help="far-sighted tables alone")
    asked.add_argument("--growth", type=Path, help="where to keep the points of the picture")
    given = asked.parse_args()
    scale, turns = (100, 1) if given.quick else (1, given.turns)
    with tempfile.TemporaryDirectory() as name:
        sighted(Path(name), 1_000_000 // scale, turns)
    if given.sighted:
        return
    with tempfile.TemporaryDirectory() as name:
        setting = Setting(Path(name))
        setting.prepare()
        print("## Tables\n")
        goals(setting, 10_000_000 // scale, 1_000_000 // scale, turns)
    with tempfile.TemporaryDirectory() as name:
        print("\n## Growth")
        points = growth(Path(name), scale, 1)
    if given.growth:
        given.growth.write_text(json.dumps(points) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
