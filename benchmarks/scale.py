"""What an event and a stream cost, and a deployment made of it: `python -m benchmarks.scale`.

Costs are processor time and bytes, so a busy machine does little harm. What is measured: a step of
a fleet with coins of a key, the same with a ledger on disk, bytes of memory and of ledger for each
stream and each event, bytes of an event on the wire. What is taken from the results of other
benchmarks (`benchmarks/results`): events through the service, rows of Spark. What is derived:
cores, memory, disks and wires for so many devices at so many events a minute. Half of every core is
left free. docs/scale.md has these tables; a test compares the two.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.spark import KEY, PLACES, example

import sfumato as sf
from sfumato.engines.spark.worker_plan import plan_of
from sfumato.stream.input_rows import Reading
from sfumato.stream.release_run import RunSpec, release_table
from sfumato.tables.readers import Table

RESULTS = Path(__file__).parent / "results"
_BUSY = 0.5
"""Share of a core that is used at the mean rate: devices are awake at the same hours."""
_DAY = 86_400
_EVENT = '{"id":"01924f7c-7d3e-7a51","stream":"user-0000001","value":"cell-07"}'
_ANSWER = (
    '{"id":"01924f7c-7d3e-7a51","stream":"user-0000001","sequence":1440,"released":"cell-07",'
    '"outcome":"released","sip":0.49999999,"ldp":0.98431401}'
)


@dataclass(frozen=True)
class Costs:
    """What was measured.

    Attributes:
        step: Seconds of a processor for an event of a fleet, coins of a key included.
        stored: The same with a ledger, from a CSV file to a CSV file.
        memory: Bytes of memory for a stream of a fleet, its name included.
        state: Bytes of a stream in the ledger.
        row: Bytes of an event in the ledger.
        wire: Bytes of an event and its answer as JSON.
    """

    step: float
    stored: float
    memory: float
    state: float
    row: float
    wire: float


def fleet_costs(streams: int, each: int) -> tuple[float, float]:
    """Processor seconds for an event, and bytes of memory for a stream."""
    _, _, document = example()
    plan, rng = plan_of(document).plan, np.random.default_rng(1)
    sf.Fleet(plan, ["warm"], randomness=sf.keyed(KEY)).run(
        np.zeros(4_096, dtype=np.int64), np.zeros(4_096, dtype=np.int64)
    )
    before = _resident()
    fleet = sf.Fleet(plan, [f"user-{n:07d}" for n in range(streams)], randomness=sf.keyed(KEY))
    which, spent = np.arange(streams), 0.0
    for _ in range(each):
        cells = rng.integers(len(PLACES), size=streams)
        began = time.process_time()
        fleet.run(cells, which)
        spent += time.process_time() - began
    return spent / (streams * each), (_resident() - before) / streams


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def ledger_costs(streams: int, each: int, folder: Path) -> tuple[float, int]:
    """Processor seconds for an event of a file with a ledger, and the bytes of that ledger."""
    model, _, document = example()
    rng, source = np.random.default_rng(2), folder / f"{each}.csv"
    with source.open("w") as file:
        file.write("user,time,cell\n")
        for moment in range(each):
            cells = rng.integers(len(PLACES), size=streams).tolist()
            file.writelines(f"user-{n:07d},{moment},{PLACES[c]}\n" for n, c in enumerate(cells))
    ledger = folder / f"{each}.ledger"
    spec = RunSpec(
        reading=Reading(None, "time"), ledger=ledger, randomness=sf.keyed(KEY), document=b"{}"
    )
    began = time.process_time()
    out = Table.at(str(folder / f"{each}-private.csv"))
    release_table(Table.at(str(source)), out, model, plan_of(document).plan, spec)
    return (time.process_time() - began) / (streams * each), ledger.stat().st_size


def measured(streams: int) -> Costs:
    """All costs."""
    step, memory = fleet_costs(10 * streams, 3)
    with tempfile.TemporaryDirectory() as place:
        (_, few), (stored, many) = (ledger_costs(streams, n, Path(place)) for n in (4, 12))
    row = (many - few) / (8 * streams)
    state = few / streams - 4 * row
    return Costs(step, stored, memory, state, row, len(_EVENT) + len(_ANSWER))


@dataclass(frozen=True)
class Elsewhere:
    """What other benchmarks have measured.

    Attributes:
        single: Seconds of a processor for an event through the service, by itself.
        batched: The same in batches of 100.
        service: Events a second of one service in batches of 100.
        spark: Rows a second and core of Spark, with many short streams.
    """

    single: float
    batched: float
    service: float
    spark: float


def elsewhere(folder: Path = RESULTS) -> Elsewhere:
    """The figures that lie in the results of other benchmarks; SQLite is the first store there."""
    service = _cells(folder / "service.md")
    single, batched = service["single, 64 connections"], service["batches of 100, 8 connections"]
    cores = int(re.findall(r"(\d+) cores", (folder / "spark.md").read_text())[0])
    *_, spark = _cells(folder / "spark.md").values()
    return Elsewhere(1e-6 * single[-2], 1e-6 * batched[-2], batched[0], spark[2] / cores)


def _cells(path: Path) -> dict[str, list[float]]:
    """The rows of tables by their first cells, the first of each name; numbers of the others."""
    found: dict[str, list[float]] = {}
    for line in path.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        numbers = [re.match(r"[\d,.]+", cell) for cell in cells[1:]]
        if all(numbers) and numbers:
            told = [float(number[0].replace(",", "")) for number in numbers if number]
            found.setdefault(cells[0], told)
    return found


def deployment(costs: Costs, other: Elsewhere, devices: float, a_minute: float) -> dict[str, Any]:
    """What so many devices need."""
    rate = devices * a_minute / 60
    return {
        "events a second": rate,
        "cores for steps alone": rate * costs.step / _BUSY,
        "cores with ledgers, files": rate * costs.stored / _BUSY,
        "cores with ledgers, service in batches of 100": rate * other.batched / _BUSY,
        "cores with ledgers, service, single requests": rate * other.single / _BUSY,
        "core hours of Spark for a day": rate * _DAY / other.spark / 3600,
        "memory of states, GB": devices * costs.memory / 1e9,
        "ledgers, states, GB": devices * costs.state / 1e9,
        "ledgers, TB a day": rate * _DAY * costs.row / 1e12,
        "wire in and out, Gbit/s": 8 * rate * costs.wire / 1e9,
    }


def lines(
    costs: Costs, other: Elsewhere, made: dict[str, Any], devices: str, a_minute: str
) -> list[str]:
    """Both tables."""
    told = {
        "a step of a fleet, coins of a key": f"{1e6 * costs.step:.1f} us",
        "the same from file to file, with a ledger": f"{1e6 * costs.stored:.1f} us",
        "memory of a stream": f"{costs.memory:,.0f} bytes",
        "a stream in the ledger": f"{costs.state:,.0f} bytes",
        "an event in the ledger": f"{costs.row:,.0f} bytes",
        "an event and its answer as JSON": f"{costs.wire:,.0f} bytes",
        "an event through the service, in batches of 100": f"{1e6 * other.batched:.0f} us",
        "an event through the service, by itself": f"{1e6 * other.single:.0f} us",
        "events a second of a service, in batches of 100": f"{other.service:,.0f}",
        "rows a second and core of Spark": f"{other.spark:,.0f}",
    }
    rows = [f"| {name} | {number} |" for name, number in told.items()]
    derived = [f"| {name} | {number:,.0f} |" for name, number in made.items()]
    heads = "| measured | |", f"| {devices} devices, {a_minute} events a minute | |"
    return [heads[0], "|---|---|", *rows, "", heads[1], "|---|---|", *derived]


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--devices", type=float, default=1e8)
    parser.add_argument("--a-minute", type=float, default=1.0)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    costs = measured(asked.streams)
    other = elsewhere()
    made = deployment(costs, other, asked.devices, asked.a_minute)
    if asked.json:
        told = {"costs": asdict(costs), "elsewhere": asdict(other), "deployment": made}
        print(json.dumps(told))
        return
    for line in lines(costs, other, made, f"{asked.devices:,.0f}", f"{asked.a_minute:g}"):
        print(line)


if __name__ == "__main__":
    main()
