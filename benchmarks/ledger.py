"""What a durable ledger costs beside raw SQLite that writes the same bytes.

Run as `python -m benchmarks.ledger [--rows N]`. Both write a file in WAL mode with
`synchronous=FULL`, group by group, by turns, in one process: SQLite alone gets rows that are ready
(the same columns, the same indexes, the same states); the ledger gets columns, and makes digests of
the values, states as bytes, hashes and rows. Printed are microseconds of CPU per row (medians over
groups), by size of the groups and by number of streams, and what each part takes.
"""

from __future__ import annotations

import argparse
import contextlib
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from sfumato.core.arrays import Ints
from sfumato.core.belief import Belief
from sfumato.core.ledger import Ledger
from sfumato.core.state import StreamState
from sfumato.store import sqlite
from sfumato.store.answer_columns import AnswerColumns, Coded, PositionColumns
from sfumato.store.chain import Row, value_tags
from sfumato.store.codec import to_bytes
from sfumato.store.ledger_check import check_ledger
from sfumato.store.ledger_form import SCHEMA
from sfumato.store.protocol import Identity, Released
from sfumato.store.sqlite import SqliteStore

SYMBOLS = 16
CASES = [(1, 1), (100, 100), (10_000, 1_000)]
"""Rows of a group and number of streams; beside these, groups of 65,536 rows."""
STREAMS = (1, 100, 10_000, 65_536)
LARGE = 65_536
PARTS = ("digests of values", "states", "commit", "raw SQLite")


class Source:
    """Rows as a release would commit them: random streams, moment after moment."""

    def __init__(self, streams: int, label: str) -> None:
        self.label = label
        self._rng = np.random.default_rng(streams)
        self._moments = np.zeros(streams, dtype=np.int64)
        self._spent = np.zeros((streams, 2))
        self._row = 0
        self._symbols = [f"cell-{place}" for place in range(SYMBOLS)]
        self._belief = Belief(np.full(SYMBOLS, 1 / SYMBOLS))

    def group(self, count: int) -> tuple[AnswerColumns, list[StreamState], list[str], list[str]]:
        """Columns without digests, states after them, and streams and values one by one."""
        streams = len(self._moments)
        drawn = self._rng.integers(streams, size=count)
        if streams >= count:
            drawn = (self._row + np.arange(count)) % streams
        there, codes = np.unique(drawn, return_inverse=True)
        costs = self._rng.random((count, 2))
        np.add.at(self._spent, drawn, costs)
        sequences = self._moments[drawn] + _ranks(codes)
        np.add.at(self._moments, drawn, 1)
        places = self._row + 1 + np.arange(count)
        self._row += count
        names = [f"user-{place}" for place in there.tolist()]
        released: Coded[Released] = Coded(self._rng.integers(SYMBOLS, size=count), self._symbols)
        columns = AnswerColumns(
            source=self.label,
            ids=[f"{self.label}:{place}" for place in places.tolist()],
            places=places,
            streams=Coded(codes, names),
            sequences=sequences,
            outcomes=Coded(np.zeros(count, dtype=np.int64), ["released"]),
            released=released,
            leakage=costs[:, 0],
            model_free=costs[:, 1],
            tags=[b""] * count,
        )
        states = [
            self._state(name, place) for name, place in zip(names, there.tolist(), strict=True)
        ]
        values = released.cells()
        return columns, states, columns.streams.cells(), values

    def _state(self, name: str, place: int) -> StreamState:
        moments, (sip, ldp) = int(self._moments[place]), self._spent[place].tolist()
        ledger = Ledger(moments, sip, ldp)
        return StreamState("f" * 32, name, moments, self._belief, ledger, 3)


def _ranks(codes: Ints) -> Ints:
    """How many rows of the same stream stand before each."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    first = np.searchsorted(ordered, ordered)
    ranks = np.empty(len(codes), dtype=np.int64)
    ranks[order] = np.arange(len(codes)) - first
    return ranks


class Raw:
    """SQLite that writes rows and states that are ready."""

    def __init__(self, path: Path) -> None:
        self.database = sqlite3.connect(path, isolation_level=None)
        self.database.execute("PRAGMA journal_mode=WAL")
        self.database.execute("PRAGMA synchronous=FULL")
        self.database.execute(f"PRAGMA cache_size=-{sqlite._CACHE_KIB}")
        for statement in SCHEMA.split(";"):
            self.database.execute(statement)

    def write(self, rows: list[Row], states: list[Row]) -> None:
        """One group."""
        self.database.execute("BEGIN IMMEDIATE")
        self.database.executemany(sqlite._INSERT, rows)
        self.database.executemany(sqlite._ADVANCE, states)
        self.database.execute("COMMIT")


class Timed:
    """CPU time of parts, one figure per group."""

    def __init__(self) -> None:
        self.parts: dict[str, list[float]] = {name: [] for name in PARTS}
        self.wall: dict[str, list[float]] = {name: [] for name in PARTS}

    @contextlib.contextmanager
    def part(self, name: str, count: int) -> Iterator[None]:
        """Time what is done here."""
        cpu, wall = time.process_time(), time.perf_counter()
        yield
        self.parts[name].append((time.process_time() - cpu) * 1e6 / count)
        self.wall[name].append((time.perf_counter() - wall) * 1e6 / count)


def measured(folder: Path, size: int, streams: int, rows: int) -> Timed:
    """The cost of groups of a size, of so many streams, in microseconds per row."""
    timed = Timed()
    ledger, raw = folder / f"{size}-{streams}.ledger", Raw(folder / f"{size}-{streams}.raw")
    with SqliteStore(ledger, "plan") as store:
        begun = store.begin("live.csv", Identity.ROW)
        source = Source(streams, begun.label)
        for _ in range(max(rows // size, 5)):
            columns, states, names, values = source.group(size)
            with timed.part("digests of values", size):
                tags = value_tags(begun.secret, columns.ids, names, values)
            with timed.part("states", size):
                coded = [to_bytes(state) for state in states]
            object.__setattr__(columns, "tags", tags)
            positions = PositionColumns(
                columns.streams.words,
                np.array([state.sequence for state in states]),
                np.array([state.ledger.sip for state in states]),
                np.array([state.ledger.ldp for state in states]),
                coded,
            )
            before = store.front.head.entries
            with timed.part("commit", size):
                store.commit_columns(columns, positions)
            ready = store._database.execute(
                f"SELECT {sqlite.COLUMNS} FROM events WHERE entry > ?", (before,)
            ).fetchall()
            ends = {row[4]: row[-2] for row in ready if row[-2]}
            moved = [(*row, ends[row[0]]) for row in positions.rows()]
            with timed.part("raw SQLite", size):
                raw.write(ready, moved)
    raw.database.close()
    return timed


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000, help="rows of large groups")
    rows = parser.parse_args().rows
    cases = [*CASES, *((LARGE, streams) for streams in STREAMS)]
    print(f"{'rows':>7} {'streams':>8}" + "".join(f"{name:>19}" for name in PARTS), end="")
    print(f"{'ours / raw':>12} {'rows/s ours':>12} {'rows/s raw':>11}   (CPU, us a row)")
    with tempfile.TemporaryDirectory() as folder:
        for size, streams in cases:
            total = rows if size > 100 else 200 * size
            timed = measured(Path(folder), size, streams, total)
            medians = [statistics.median(timed.parts[name]) for name in PARTS]
            walls = [statistics.median(timed.wall[name]) for name in PARTS]
            ratio = sum(medians[:3]) / medians[3]
            line = f"{size:>7,} {streams:>8,}" + "".join(f"{figure:>19.2f}" for figure in medians)
            speeds = f"{1e6 / sum(walls[:3]):>13,.0f} {1e6 / walls[3]:>11,.0f}"
            print(f"{line}{ratio:>12.2f}{speeds}", flush=True)
        path = Path(folder) / f"{LARGE}-10000.ledger"
        start, wall = time.process_time(), time.perf_counter()
        report = check_ledger(path)
        cpu = time.process_time() - start
        print(f"check of {report.rows:,} rows: {cpu * 1e6 / report.rows:.2f} us a row", end="")
        print(
            f" ({report.rows / (time.perf_counter() - wall):,.0f} rows/s); passed {report.passed}"
        )


if __name__ == "__main__":
    main()
