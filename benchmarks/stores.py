"""Group commits of the stores that last, beside the same database that writes ready rows.

Run as `python -m benchmarks.stores [--seconds S]`. A group is one turn: events are looked up, then
committed with their positions, durably. Sizes 1, 100 and 1,000, of a thousand streams, by turns in
one process: the ledger file and raw SQLite (WAL, `synchronous=FULL`), the ledger in PostgreSQL and
raw PostgreSQL (COPY and one upsert, `synchronous_commit=on`) on a private server with its usual
settings. Raw databases get rows and positions that are ready, into the same tables with the same
indexes, and look nothing up. Printed are events/s of wall time, CPU of this process per event, and
the share of the raw rate that is left.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from benchmarks.ledger import Raw, Source
from tests.servers import private_postgres

from sfumato.store import postgres_append
from sfumato.store.answer_columns import AnswerColumns, PositionColumns, committed
from sfumato.store.chain import Row
from sfumato.store.keys import new_key
from sfumato.store.postgres import PostgresStore
from sfumato.store.postgres_schema import migrate
from sfumato.store.protocol import Head, Identity, Job, Store
from sfumato.store.sqlite import SqliteStore

SIZES = (1, 100, 1_000)
STREAMS = 1_000
STATE_BYTES = 300
HEAD = Head(0, bytes(32))
Group = tuple[AnswerColumns, PositionColumns]


def group(source: Source, size: int) -> Group:
    """Answers and positions as a release would commit them."""
    columns, states, *_ = source.group(size)
    object.__setattr__(columns, "tags", [bytes(16)] * size)
    return columns, PositionColumns(
        columns.streams.words,
        np.array([state.sequence for state in states]),
        np.array([state.ledger.sip for state in states]),
        np.array([state.ledger.ldp for state in states]),
        [bytes(STATE_BYTES)] * len(states),
    )


def ready(given: Group, done: int) -> tuple[list[Row], list[Row], dict[str, Any]]:
    """The same as rows that need no more work: events, positions, and positions by columns."""
    commit = committed(*given)
    rows, hashes, _ = commit.chained([bytes(32)] * len(commit.after), Head(done, HEAD.hash))
    moved = [(*after, own) for after, own in zip(commit.after, hashes, strict=True)]
    return list(rows), moved, postgres_append._moved(commit, hashes)


class RawPostgres:
    """PostgreSQL that writes rows and positions that are ready."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        migrate(self._connection)

    def write(self, rows: list[Row], moved: dict[str, Any]) -> None:
        """One group."""
        given = {"ledger": 0, "entries": 0, "head": b"", **moved}
        with self._connection.transaction():
            postgres_append._copy(self._connection, 0, iter(rows))
            self._connection.execute(postgres_append._ADVANCE, given)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def answer(store: Store, given: Group) -> None:
    """One turn: what is known, and a commit."""
    with store.turn():
        store.known(given[0].ids)
        store.commit_columns(*given)


class Timed:
    """Wall and CPU time of groups, by who wrote them."""

    def __init__(self) -> None:
        self.wall: dict[str, list[float]] = {}
        self.cpu: dict[str, list[float]] = {}

    def take(self, name: str, work: Callable[..., None], *given: object) -> None:
        """Time one group."""
        cpu, wall = time.process_time(), time.perf_counter()
        work(*given)
        self.wall.setdefault(name, []).append(time.perf_counter() - wall)
        self.cpu.setdefault(name, []).append(time.process_time() - cpu)

    def lines(self, size: int) -> list[str]:
        """A line for each ledger, beside its raw database."""
        found = []
        for name in ("SQLite", "PostgreSQL"):
            own, raw = (statistics.median(self.wall[f"{kind}{name}"]) for kind in ("", "raw "))
            cpu = statistics.median(self.cpu[name]) * 1e6 / size
            rates = f"{size / own:,.0f} | {size / raw:,.0f} | {raw / own:.2f}"
            found.append(f"| {size:,} | {name} | {rates} | {cpu:,.0f} | {1e3 * own:.1f} |")
        return found


def measured(folder: Path, url: str, raw_url: str, size: int, seconds: float) -> Timed:
    """Groups of one size, by turns, for so long."""
    timed, secret = Timed(), folder / f"{size}.key"
    new_key(secret)
    raw_file, raw_server = Raw(folder / f"{size}.raw"), RawPostgres(raw_url)
    with (
        SqliteStore(folder / f"{size}.ledger", "plan") as file,
        PostgresStore(
            url, str(size), "plan", job=Job("release"), rules=None, secret=secret
        ) as server,
    ):
        for store in (file, server):
            store.begin("live", Identity.EVENT)
        source, done, end = Source(STREAMS, "live"), 0, time.monotonic() + seconds
        while time.monotonic() < end or done < 5 * size:
            given = group(source, size)
            rows, moved, by_columns = ready(given, done)
            timed.take("SQLite", answer, file, given)
            timed.take("raw SQLite", raw_file.write, rows, moved)
            timed.take("PostgreSQL", answer, server, given)
            timed.take("raw PostgreSQL", raw_server.write, rows, by_columns)
            done += size
        raw_server._connection.execute("TRUNCATE sfumato.events, sfumato.streams")
    raw_file.database.close()
    raw_server.close()
    return timed


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="for each size of groups")
    seconds = parser.parse_args().seconds
    print("| group | store | events/s | raw events/s | share | CPU, us an event | ms a group |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name, private_postgres() as server:
        server.stop()
        server.start(shared_buffers="128MB")
        with server.database() as url, server.database() as raw_url:
            for size in SIZES:
                timed = measured(Path(name), url, raw_url, size, seconds)
                print("\n".join(timed.lines(size)), flush=True)


if __name__ == "__main__":
    main()
