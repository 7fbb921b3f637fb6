"""What an event and a stream cost, and a deployment made of it: `python -m benchmarks.scale`.

Costs are processor time and bytes, so a busy machine does little harm. What is measured: a step of
a fleet with coins of a key, the same with a ledger on disk, bytes of memory and of ledger for each
stream and each event, bytes of an event on the wire. What is derived: cores, memory, disks and
wires for so many devices at so many events a minute. Half of every core is left free.
"""

from __future__ import annotations

import argparse
import json
import os
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


def deployment(costs: Costs, devices: float, a_minute: float) -> dict[str, Any]:
    """What so many devices need."""
    rate = devices * a_minute / 60
    return {
        "events a second": rate,
        "cores for steps alone": rate * costs.step / _BUSY,
        "cores with ledgers": rate * costs.stored / _BUSY,
        "memory of states, GB": devices * costs.memory / 1e9,
        "ledgers, states, GB": devices * costs.state / 1e9,
        "ledgers, TB a day": rate * _DAY * costs.row / 1e12,
        "wire in and out, Gbit/s": 8 * rate * costs.wire / 1e9,
    }


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--devices", type=float, default=1e8)
    parser.add_argument("--a-minute", type=float, default=1.0)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    costs = measured(asked.streams)
    made = deployment(costs, asked.devices, asked.a_minute)
    if asked.json:
        print(json.dumps({"costs": asdict(costs), "deployment": made}))
        return
    print("| measured | |\n|---|---|")
    print(f"| a step of a fleet, coins of a key | {1e6 * costs.step:.1f} us |")
    print(f"| the same from file to file, with a ledger | {1e6 * costs.stored:.1f} us |")
    print(f"| memory of a stream | {costs.memory:,.0f} bytes |")
    print(f"| a stream in the ledger | {costs.state:,.0f} bytes |")
    print(f"| an event in the ledger | {costs.row:,.0f} bytes |")
    print(f"| an event and its answer as JSON | {costs.wire:,.0f} bytes |")
    print(f"\n| {asked.devices:,.0f} devices, {asked.a_minute:g} events a minute | |\n|---|---|")
    for name, number in made.items():
        print(f"| {name} | {number:,.0f} |")


if __name__ == "__main__":
    main()
