"""What durable live events cost beside raw SQLite that writes the same bytes.

Run as `python -m benchmarks.live [--events N]`. Both write a file in WAL mode with
`synchronous=FULL`, group by group, by turns, in one process: SQLite alone gets rows and states that
are ready; the live run gets events, looks their ids up, reads values, draws, and makes digests,
states, hashes and replies. Printed are events a second of processor time and of the clock, medians
over groups, by size of the groups; every tenth group is also asked once more, as retries.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from benchmarks.ledger import Raw

import sfumato as sf
from sfumato.models.encoding import Symbols
from sfumato.models.stream_model import StreamModel
from sfumato.store import sqlite
from sfumato.store.live import Asked
from sfumato.store.live_intake import begun
from sfumato.store.sqlite import SqliteStore
from sfumato.stream.live_fleet import LiveFleet

SYMBOLS = 16
SIZES = (1, 10, 100, 1000)
PARTS = ("live, columns", "live, replies", "retries", "raw SQLite")


class Events:
    """Events of random streams, each with an id of its own."""

    def __init__(self, streams: int) -> None:
        self._rng, self._streams, self._next = np.random.default_rng(streams), streams, 0

    def group(self, size: int) -> list[Asked]:
        """Some events."""
        streams = self._rng.integers(self._streams, size=size).tolist()
        cells = self._rng.integers(SYMBOLS, size=size).tolist()
        first, self._next = self._next, self._next + size
        rows = zip(range(first, first + size), streams, cells, strict=True)
        return [Asked(f"event-{n}", f"user-{who}", f"cell-{cell}") for n, who, cell in rows]


class Timed:
    """Microseconds per event, of the processor and of the clock, one figure per group."""

    def __init__(self) -> None:
        self.cpu: dict[str, list[float]] = {name: [] for name in PARTS}
        self.wall: dict[str, list[float]] = {name: [] for name in PARTS}

    def run(self, name: str, count: int, work: Callable[[], object]) -> None:
        """Time some work."""
        cpu, wall = time.process_time(), time.perf_counter()
        work()
        self.cpu[name].append((time.process_time() - cpu) * 1e6 / count)
        self.wall[name].append((time.perf_counter() - wall) * 1e6 / count)


def released_plan() -> tuple[StreamModel, sf.Plan]:
    """A model of sixteen cells, and a plan with a policy for it."""
    places = sf.Alphabet([f"cell-{place}" for place in range(SYMBOLS)])
    moves = 0.9 * np.eye(SYMBOLS) + 0.1 / SYMBOLS
    chain = sf.MarkovChain.from_matrix(moves, alphabet=places)
    loss = sf.loss.hamming(places)
    policy = sf.compile_policy(chain, loss, 0.5, steps=500)
    plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.5)), loss, policy=policy)
    return StreamModel(chain, Symbols(places)), plan


def measured(folder: Path, size: int, streams: int, count: int) -> Timed:
    """The cost of groups of a size, of so many streams."""
    model, plan = released_plan()
    timed, raw = Timed(), Raw(folder / f"{size}.raw")
    with SqliteStore(folder / f"{size}.ledger", plan.fingerprint) as store:
        run = LiveFleet(store, begun(store, "live"), model, plan, sf.secure())
        events = Events(streams)
        for turn in range(max(count // size, 20)):
            group, before = events.group(size), store.front.head.entries
            if turn % 2:
                columns = _columns(group)
                timed.run(PARTS[0], size, lambda given=columns: run.answer_columns(*given))  # type: ignore[misc]
            else:
                timed.run(PARTS[1], size, lambda given=group: run.answer(given))  # type: ignore[misc]
            if turn % 10 == 0:
                timed.run(PARTS[2], size, lambda given=group: run.answer(given))  # type: ignore[misc]
            rows, states = _ready(store, before)
            timed.run(PARTS[3], size, lambda: raw.write(rows, states))  # noqa: B023
    raw.database.close()
    return timed


def _columns(group: list[Asked]) -> tuple[list[str], list[str], list[str]]:
    return (
        [event.id for event in group],
        [event.stream for event in group],
        [event.value for event in group],
    )


def _ready(store: SqliteStore, before: int) -> tuple[list[sqlite3_row], list[sqlite3_row]]:
    """The rows and states of the last commit, as SQLite takes them."""
    database = store._database
    query = f"SELECT {sqlite.COLUMNS} FROM events WHERE entry > ?"
    rows = database.execute(query, (before,)).fetchall()
    names = list({row[4] for row in rows})
    states = []
    for name in names:
        found = database.execute("SELECT * FROM streams WHERE stream = ?", (name,))
        states += found.fetchall()
    return rows, states


sqlite3_row = tuple[object, ...]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000, help="events of large groups")
    parser.add_argument("--streams", type=int, default=10_000)
    given = parser.parse_args()
    print(f"{'group':>6} {'streams':>8}" + "".join(f"{name:>24}" for name in PARTS), end="")
    print("   columns / raw   (events/s of processor time; of the clock)")
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            total = given.events if size > 10 else 400 * size
            timed = measured(Path(folder), size, given.streams, total)
            cpu = [statistics.median(timed.cpu[name]) for name in PARTS]
            wall = [statistics.median(timed.wall[name]) for name in PARTS]
            cells = [f"{1e6 / c:,.0f}; {1e6 / w:,.0f}" for c, w in zip(cpu, wall, strict=True)]
            line = f"{size:>6,} {given.streams:>8,}" + "".join(f"{cell:>24}" for cell in cells)
            print(f"{line}{cpu[0] / cpu[3]:>16.2f}", flush=True)


if __name__ == "__main__":
    main()
