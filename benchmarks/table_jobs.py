"""One job on one table in a process of its own, and what it took: called by `tables.py`.

The loops and the libraries are warmed on a small table first, so that seconds are those of the
work; the largest resident memory is that of the whole process.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from pathlib import Path

import numpy as np

from sfumato.core.compile_events import eagerly

GROUP = 65_536
"""Rows that raw SQLite commits together."""


def peak_memory() -> float:
    """Largest resident memory of this process in MB.

    Not `ru_maxrss`: that one also remembers the parent, from before the new program began.
    """
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def planned(job: dict):
    """The model and the rule of a release."""
    from sfumato.models.encoding import Symbols
    from sfumato.models.stream_model import StreamModel
    from sfumato.store.files import load
    from sfumato.stream.release_spec import ReleaseSpec

    chain, policy = load(job["model"]), job["policy"]
    stream_model = StreamModel(chain, Symbols(chain.alphabet))
    kept = load(policy) if policy else None
    named = None if kept is None else kept.fingerprint
    asked = {name: job[name] for name in ("epsilon", "loss", "method")}
    spec = ReleaseSpec(**asked, policy=named)
    return stream_model, spec.plan(stream_model, kept)


def release(job: dict, source: str, output: str, ledger: str | None) -> int:
    """Release a table; return its rows."""
    from sfumato.core.randomness import keyed
    from sfumato.stream.release_run import RunSpec, release_table
    from sfumato.tables.readers import Table

    model, plan = planned(job)
    coins = keyed(bytes(range(32))) if job["keyed"] else None
    spec = RunSpec(ledger=ledger, randomness=coins)
    return release_table(Table.at(source), Table.at(output), model, plan, spec).rows


def audit(job: dict, released: str) -> int:
    """Audit a released table; return its rows."""
    from sfumato.stream.audit import audit_table
    from sfumato.tables.readers import Table

    model, plan = planned(job)
    report = audit_table(Table.at(released), model, plan)
    if report.problems:
        raise SystemExit(f"an honest release was found wrong: {report.problems[0]}")
    return report.rows


def bare_fleet(job: dict) -> int:
    """The same streams in arrays, without tables: the limit."""
    import sfumato as sf

    _, plan = planned(job)
    streams = min(job["streams"], 10_000)
    rounds = max(1, min(job["rows"], 2_000_000) // streams)
    fleet = sf.Fleet(plan, [f"u{place}" for place in range(streams)])
    rng, size = np.random.default_rng(2), plan.model.size
    place, took = rng.integers(0, size, streams), 0.0
    for turn in range(rounds + 12):
        place = (place + (rng.random(streams) < 0.2) * rng.choice([-1, 1], streams)) % size
        began = time.process_time()
        fleet.step(place)
        took += time.process_time() - began if turn >= 12 else 0.0
    job["took"] = took
    return rounds * streams


def raw_sqlite(job: dict, ledger: str, target: str) -> int:
    """Write the rows of a finished ledger into an empty one of the same schema, in groups.

    Rows are read group by group, and only what writing them takes is counted: memory is that of a
    group, whatever the ledger.
    """
    source = sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)
    made = [row[0] for row in source.execute("SELECT sql FROM sqlite_master WHERE sql NOTNULL")]
    states = source.execute("SELECT * FROM streams").fetchall()
    events = source.execute("SELECT * FROM events")
    database = sqlite3.connect(target, isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    for statement in made:
        database.execute(statement)
    rows, took = 0, 0.0
    while group := events.fetchmany(GROUP):
        began = time.process_time()
        database.execute("BEGIN IMMEDIATE")
        database.executemany(f"INSERT INTO events VALUES ({marks(group)})", group)
        # A release stores the state of every stream that had an answer.
        insert = f"INSERT OR REPLACE INTO streams VALUES ({marks(states)})"
        database.executemany(insert, states[: len(group)])
        database.execute("COMMIT")
        took += time.process_time() - began
        rows += len(group)
    began = time.process_time()
    database.close()
    job["took"] = took + time.process_time() - began
    source.close()
    return rows


def marks(rows: list) -> str:
    """As many question marks as a row has columns."""
    return ", ".join("?" * len(rows[0]))


def main() -> None:
    """Do the job that the argument says, and print what it took."""
    job = json.loads(sys.argv[1])
    folder = Path(job["folder"])
    warm = folder / f"warm-{time.monotonic_ns()}.parquet"
    with eagerly():
        if job["kind"] in ("release", "audit"):
            release(job, job["small"], str(warm), None)
        if job["kind"] == "audit":
            audit(job, str(warm))
    warm.unlink(missing_ok=True)
    began, spent = time.perf_counter(), time.process_time()
    match job["kind"]:
        case "release":
            rows = release(job, job["source"], job["output"], job["ledger"])
        case "audit":
            rows = audit(job, job["source"])
        case "fleet":
            rows = bare_fleet(job)
        case "sqlite":
            rows = raw_sqlite(job, job["source"], job["output"])
        case other:
            raise SystemExit(f"no job {other}")
    wall, cpu = time.perf_counter() - began, time.process_time() - spent
    # Processor seconds of all threads: the machine is shared, and the wall tells of others too.
    seconds = job.get("took", cpu)
    print(json.dumps({"rows": rows, "seconds": seconds, "wall": wall, "peak_mb": peak_memory()}))


if __name__ == "__main__":
    main()
