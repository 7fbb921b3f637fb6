"""Durable events per second of a service, beside what its store and its server can do at all.

Run as `python -m benchmarks.service [--seconds S]`. One run, loopback only: a real server process
with a folder (SQLite) and with PostgreSQL (a private instance, if Debian's is installed), and
load from another process: single requests on 64 connections, batches of 100, one pipelined
socket. Beside it, in the same run: the bare database, which writes ready rows into the same tables
and looks nothing up; the raw store, committing groups of 1,000 answers that are ready (half of that
is the goal); and the floor: an empty endpoint of Starlette on uvicorn as the
service sets it up, asked by the same client: no request costs less than that, so what a request
costs is told in floors, too. Then batches that arrive at twice the rate that it sustained, whatever
the replies (`open_loop.py`): what is refused, with what, how long the accepted ones take, whether
memory stays, and how much of what it sustained it still accepts. At the end a restart with about
100,000 streams. The machine must have nothing else to do.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.ledger import Raw, Source
from benchmarks.stores import Group, RawPostgres, ready
from tests.servers import missing, private_postgres
from tests.service.nodes import Node, ServiceHome, town_model

from sfumato.store.answer_columns import PositionColumns
from sfumato.store.chain import value_tags
from sfumato.store.codec import to_bytes
from sfumato.store.keys import new_key
from sfumato.store.postgres import PostgresStore
from sfumato.store.protocol import NO_JOB, Identity, Store
from sfumato.store.sqlite import SqliteStore

GROUP, STREAMS, RESTART_STREAMS = 1_000, 10_000, 100_000
RULES = ("--epsilon", "0.5")
EMPTY = """
import socket, sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

async def empty(request):
    await request.body()
    return JSONResponse({})

listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
print(listener.getsockname()[1], flush=True)
app = Starlette(routes=[Route("/empty", empty, methods=["POST"])])
config = uvicorn.Config(
    app, loop="uvloop", http="httptools", lifespan="off", log_config=None, access_log=False,
    proxy_headers=False, server_header=False,
)
uvicorn.Server(config).run([listener])
"""


@dataclass(frozen=True)
class Limits:
    """What a database and a store commit in groups, in answers per second.

    Attributes:
        bare: The database, rows that are ready.
        raw: The store, answers that are ready.
    """

    bare: float
    raw: float

    def told(self) -> str:
        """In words."""
        return (
            f"bare database {self.bare:,.0f} rows/s, raw store {self.raw:,.0f} answers/s "
            f"({self.raw / self.bare:.0%}) in groups of {GROUP:,}"
        )


def limits_of(store: Store, write: Callable[[Group, int], float], seconds: float) -> Limits:
    """Both, by turns: groups of answers of many streams.

    Args:
        store: The store.
        write: Writes a group, of so many before it, into the bare database; its seconds count.
        seconds: For each of the two.
    """
    begun = store.begin("live", Identity.EVENT)
    source, spent, bare, done = Source(STREAMS, begun.label), 0.0, 0.0, 0
    while spent < seconds:
        columns, states, names, values = source.group(GROUP)
        tags = value_tags(begun.secret, columns.ids, names, values)
        object.__setattr__(columns, "tags", tags)
        positions = PositionColumns(
            columns.streams.words,
            np.array([state.sequence for state in states]),
            np.array([state.ledger.sip for state in states]),
            np.array([state.ledger.ldp for state in states]),
            [to_bytes(state) for state in states],
        )
        bare += write((columns, positions), done)
        began = time.perf_counter()
        with store.turn():
            store.commit_columns(columns, positions)
        spent += time.perf_counter() - began
        done += GROUP
    return Limits(done / bare, done / spent)


def bare_sqlite(raw: Raw) -> Callable[[Group, int], float]:
    """Writes ready rows into a file; the seconds of the writing alone."""

    def write(group: Group, done: int) -> float:
        rows, moved, _ = ready(group, done)
        began = time.perf_counter()
        raw.write(rows, moved)
        return time.perf_counter() - began

    return write


def bare_postgres(raw: RawPostgres) -> Callable[[Group, int], float]:
    """The same in a database."""

    def write(group: Group, done: int) -> float:
        rows, _, moved = ready(group, done)
        began = time.perf_counter()
        raw.write(rows, moved)
        return time.perf_counter() - began

    return write


def loaded(**given: Any) -> dict[str, Any]:
    """What a process of load found."""
    command = [sys.executable, "-m", "benchmarks.service_load", json.dumps(given)]
    found: dict[str, Any] = json.loads(
        subprocess.run(command, capture_output=True, check=True).stdout
    )
    return found


@dataclass(frozen=True)
class Floor:
    """What an endpoint that does nothing reaches.

    Attributes:
        rate: Requests per second.
        cost: Microseconds of processor of a request.
    """

    rate: float
    cost: float


def empty_floor(seconds: float) -> Floor:
    """The floor, asked as the service is."""
    command = [sys.executable, "-c", EMPTY]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            url = f"http://127.0.0.1:{int(server.stdout.readline())}"
            loaded(kind="empty", url=url, seconds=1.0)
            before = cpu(server.pid)
            found = loaded(kind="empty", url=url, seconds=seconds)
            return Floor(found["rate"], (cpu(server.pid) - before) / found["accepted"] * 1e6)
        finally:
            server.kill()


def cpu(process: int) -> float:
    """Seconds of processor that a process took so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(process: int) -> float:
    """Resident megabytes of a process."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def peak(process: int) -> float:
    """The most megabytes that a process ever had."""
    told = Path(f"/proc/{process}/status").read_text().partition("VmHWM:")[2]
    return int(told.split()[0]) / 1e3


def measure(home: ServiceHome, model: Path, limits: Limits, floor: Floor, seconds: float) -> None:
    """One home: a table of the ways in, then twice of what it can take."""
    node = Node(home)
    key = node.start("--model", str(model), *RULES)
    assert node.process is not None and key is not None
    process = node.process.pid
    ways: dict[str, dict[str, Any]] = {
        "single, 64 connections": {"kind": "single"},
        "batches of 100, 8 connections": {"kind": "batch", "events": 100, "connections": 8},
        "socket, pipelined": {"kind": "socket", "connections": 1, "window": 4_096},
    }
    columns = "events/s | p50, ms | p99, ms | of raw | of bare | of floor | CPU, us/event"
    print(f"| way in | {columns} | in floors |")
    print("|---|---|---|---|---|---|---|---|---|")
    sustained = 0.0
    loaded(
        kind="batch", events=100, connections=2, url=node.url, key=key, seconds=2.0, label="warm"
    )
    for number, (told, way) in enumerate(ways.items()):
        before = cpu(process)
        found = loaded(**way, url=node.url, key=key, seconds=seconds, label=f"w{number}-")
        used = (cpu(process) - before) / max(found["accepted"], 1) * 1e6
        rate = found["rate"]
        cells = (f"{rate:,.0f}", f"{found['p50']:.1f}", f"{found['p99']:.1f}")
        shares = (
            f"{rate / limits.raw:.0%}",
            f"{rate / limits.bare:.0%}",
            f"{rate / floor.rate:.0%}",
            f"{used:.0f}",
            f"{used / floor.cost:.1f}",
        )
        print(f"| {told} | {' | '.join((*cells, *shares))} |", flush=True)
        sustained = rate / 100 if way["kind"] == "batch" else sustained
    overloaded(node, key, sustained, seconds)
    restarted(node, key)


def overloaded(node: Node, key: str, sustained: float, seconds: float) -> None:
    """Batches at twice the rate that it sustains, whatever the replies."""
    assert node.process is not None
    process = node.process.pid
    before, used = memory(process), cpu(process)
    load = {"kind": "open", "events": 100, "rate": 2 * sustained, "seconds": 2 * seconds}
    found = loaded(**load, url=node.url, key=key, label="over-")
    used = (cpu(process) - used) / found["taken"]
    total = sum(found["statuses"].values())
    accepted = found["accepted"] * 100 / found["taken"]
    others = {k: v for k, v in found["statuses"].items() if k not in ("200", "429")}
    print(
        f"\nOpen loop at twice the load ({200 * sustained:,.0f} events/s arrive in batches of 100, "
        f"{found['connections']} connections, latest arrival {found['late']:.2f} s late): "
        f"{accepted:,.0f} accepted/s, {accepted / (100 * sustained):.0%} of what was sustained; "
        f"{found['statuses'].get('429', 0) / total:.1%} refused with 429, other statuses "
        f"{others or 'none'}; accepted p50 {found['p50']:.0f} ms, p99 {found['p99']:.0f} ms, "
        f"refused p50 {found['refused_p50']:.0f} ms, p99 {found['refused_p99']:.0f} ms; "
        f"{used:.2f} processors; "
        f"memory {before:.0f} -> {memory(process):.0f} MB, at most {peak(process):.0f}\n",
        flush=True,
    )


def told_start(node: Node) -> str:
    """How long the last start took; the processor's time is the same on a busy machine."""
    assert node.process is not None
    return f"{node.started:.2f} s, {cpu(node.process.pid):.2f} s of processor"


def restarted(node: Node, key: str) -> None:
    """Killed and started again with many streams, and with the fewer ones of the load."""
    node.kill()
    node.start()
    fresh = told_start(node)
    loaded(
        kind="batch",
        events=1_000,
        connections=2,
        url=node.url,
        key=key,
        label="r-",
        streams=RESTART_STREAMS,
        most=RESTART_STREAMS,
        seconds=120.0,
    )
    streams = len(node.home.raw().positions)
    node.kill()
    node.start()
    with node.client(key) as client:
        began = time.perf_counter()
        client.release("u1", "a")
        first = time.perf_counter() - began
    print(
        f"Restart after kill -9 with {streams:,} streams: listens after {told_start(node)} "
        f"(with {STREAMS:,} or fewer: {fresh}), first answer {first * 1e3:.0f} ms later\n",
        flush=True,
    )
    assert node.process is not None
    node.process.send_signal(signal.SIGTERM)
    node.process.wait()
    node.process = None


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each load")
    seconds = parser.parse_args().seconds
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        model = town_model(folder)
        floor = empty_floor(seconds)
        told = f"{floor.rate:,.0f} requests/s, {floor.cost:.0f} us of processor each"
        print(f"Floor, an empty endpoint of Starlette, 64 connections: {told}\n", flush=True)
        bare = Raw(folder / "bare.db")
        with SqliteStore(folder / "raw.ledger", "plan") as store:
            limits = limits_of(store, bare_sqlite(bare), seconds)
        bare.database.close()
        print(f"## SQLite: {limits.told()}\n", flush=True)
        (folder / "one").mkdir()
        measure(ServiceHome.made(folder / "one"), model, limits, floor, seconds)
        if missing("postgres"):
            print("PostgreSQL is not installed: not measured")
            return
        server = stack.enter_context(private_postgres())
        (folder / "two").mkdir()
        new_key(folder / "raw.key")
        with server.database() as database, server.database() as empty:
            bare_server = RawPostgres(empty)
            given = {"job": NO_JOB, "rules": None, "secret": folder / "raw.key"}
            with PostgresStore(database, "raw", "plan", **given) as other:
                limits = limits_of(other, bare_postgres(bare_server), seconds)
            bare_server.close()
            print(f"## PostgreSQL: {limits.told()}\n", flush=True)
            measure(ServiceHome.made(folder / "two", database), model, limits, floor, seconds)


if __name__ == "__main__":
    main()
