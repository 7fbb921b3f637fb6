"""How fast tables are released, and how much memory it takes: `make bench`.

Streams are drawn from a 16-state ring and released in a subprocess each, so that the largest
resident memory is that of one run. The share of file handling is measured by running the same
rows through readers, store and writer with the step replaced by a constant answer.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SYMBOLS = 16
EPSILON = 0.5


def ring(stay: float) -> np.ndarray:
    """A ring whose walker stays, or moves to a neighbour."""
    eye = np.eye(SYMBOLS)
    return stay * eye + (1 - stay) / 2 * (np.roll(eye, 1, axis=1) + np.roll(eye, -1, axis=1))


def make_data(folder: Path, rows: int, streams: int, suffix: str) -> Path:
    """A table of interleaved random walks."""
    rng = np.random.default_rng(1)
    place = rng.integers(0, SYMBOLS, streams)
    path = folder / f"live-{rows}.{suffix}"
    blocks = []
    for _ in range(rows // streams):
        place = (place + rng.choice([-1, 0, 0, 0, 0, 0, 0, 0, 0, 1], streams)) % SYMBOLS
        blocks.append(place)
    values = np.concatenate(blocks)
    names = np.char.add("u", np.tile(np.arange(streams), rows // streams).astype(str))
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    table = pa.table({"stream": names, "value": values})
    if suffix == "csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pyarrow.parquet.write_table(table, path)
    return path


def run_one(
    model: str, source: str, output: str, method: str, policy: str, handling_only: str
) -> None:
    """Release one table in this process and print what it took."""
    from sfumato.core.events import Event, Outcome
    from sfumato.core.guarantees import LDP, SIP
    from sfumato.models.encoding import StreamModel, Symbols
    from sfumato.store.files import load
    from sfumato.stream.plan import Plan
    from sfumato.stream.release_run import release_table
    from sfumato.stream.release_spec import ReleaseSpec
    from sfumato.tables.readers import Table

    chain = load(model)
    stream_model = StreamModel(chain, Symbols(chain.alphabet))
    kept = load(policy) if policy else None
    named = None if kept is None else kept.fingerprint
    spec = ReleaseSpec(epsilon=EPSILON, loss="absolute", method=method, policy=named)
    plan = spec.plan(stream_model, kept)
    if handling_only == "yes":
        free = (SIP(0.0), LDP(0.0))

        def constant_step(self, state, value, randomness):
            from dataclasses import replace

            event = Event(state.stream, state.sequence, Outcome.RELEASED, 0, *free)
            return (event,), replace(state, sequence=state.sequence + 1)

        Plan.step = constant_step
    start = time.perf_counter()
    report = release_table(Table.at(source), Table.at(output), stream_model, plan)
    seconds = time.perf_counter() - start
    print(json.dumps({"rows": report.rows, "seconds": seconds, "peak_mb": peak_memory()}))


def peak_memory() -> float:
    """Largest resident memory of this process in MB.

    Not `ru_maxrss`: that one also remembers the parent, from before the new program began.
    """
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def measure(
    model: Path, source: Path, method: str, policy: Path | str, handling_only: bool = False
) -> dict:
    """Run one release in a process of its own."""
    output = source.with_name(f"out-{source.name}")
    command = [sys.executable, __file__, "one", model, source, output, method, policy]
    command.append("yes" if handling_only else "no")
    done = subprocess.run([str(part) for part in command], capture_output=True, check=True)
    return json.loads(done.stdout)


def main() -> None:
    """Measure and print a table."""
    import sfumato as sf

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        chain = sf.MarkovChain.from_matrix(ring(0.8), floor=1e-4)
        model = folder / "ring.model"
        sf.save(chain, model)
        policy = folder / "ring.policy"
        loss = sf.loss.absolute(chain.alphabet)
        sf.save(sf.compile_policy(chain, loss, EPSILON, steps=4_000), policy)
        print("| method | format | rows | rows/s | peak MB | file handling |\n" + "|---" * 6 + "|")
        for method, kept, suffix, rows, streams in (
            ("optimal", "", "csv", 10_000, 1_000),
            ("optimal", policy, "csv", 200_000, 10_000),
            ("optimal", policy, "csv", 1_000_000, 10_000),
            ("optimal", policy, "parquet", 200_000, 10_000),
            ("randomized-response", "", "csv", 50_000, 10_000),
        ):
            source = make_data(folder, rows, streams, suffix)
            whole = measure(model, source, method, kept)
            files = measure(model, source, method, "", handling_only=True)
            share = files["seconds"] / whole["seconds"]
            speed = whole["rows"] / whole["seconds"]
            name = f"{method}, compiled" if kept else method
            figures = f"{speed:,.0f} | {whole['peak_mb']:,.0f} | {share:.0%}"
            print(f"| {name} | {suffix} | {rows:,} | {figures} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        run_one(*sys.argv[2:])
    else:
        main()
