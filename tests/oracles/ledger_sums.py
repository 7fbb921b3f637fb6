"""What the raw rows of ledgers say, by plain SQL and plain sums; no code of the product is used.

As a script: `python tests/oracles/ledger_sums.py city.ledger --limit 5`, or with a URL of a
PostgreSQL database and `--name`. It prints what is wrong, and ends with 1 if anything is.
"""

import argparse
import json
import math
import shutil
import sqlite3
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_ROUNDING = 1e-9
"""Sums of some hundred floats, in another order than the product adds them."""


@dataclass(frozen=True)
class RawLedger:
    """Rows as they lie in the tables.

    Attributes:
        events: (id, stream, sequence, outcome, released, leakage, model_free) of each answer.
        positions: (sequence, leakage, model_free) of each stream.
        entries: How many rows the front page counts.
    """

    events: list[tuple[str, str, int, str, Any, float, float]]
    positions: dict[str, tuple[int, float, float]]
    entries: int

    def spent(self) -> dict[str, float]:
        """What each stream cost, from the rows of its answers."""
        costs: dict[str, list[float]] = defaultdict(list)
        for _, stream, _, _, _, leakage, _ in self.events:
            costs[stream].append(leakage)
        return {stream: math.fsum(each) for stream, each in costs.items()}

    def answers(self) -> dict[str, tuple[str, int, str, Any, float, float]]:
        """Each answer by the id that its asker gave: what follows the name of the stream."""
        return {row[0].split("/", 1)[1]: row[1:] for row in self.events}

    def problems(self, limit: float) -> list[str]:
        """What must not be: an id or a moment twice, gaps, wrong sums, a budget exceeded."""
        found = []
        if self.entries != len(self.events):
            found.append(f"{self.entries} rows are counted, {len(self.events)} are there")
        found += [
            f"an id has {n} answers" for n in Counter(r[0] for r in self.events).values() if n > 1
        ]
        moments: dict[str, list[int]] = defaultdict(list)
        for row in self.events:
            moments[row[1]].append(row[2])
        if set(moments) != set(self.positions):
            found.append("streams with answers are not those with a position")
        for stream, places in moments.items():
            if sorted(places) != list(range(len(places))):
                found.append(f"{stream}: a moment is left out or there twice")
        spent = self.spent()
        free = {stream: 0.0 for stream in spent}
        for row in self.events:
            free[row[1]] += row[6]
        for stream, (count, leakage, model_free) in self.positions.items():
            if count != len(moments[stream]):
                found.append(f"{stream}: {count} answers are counted, {len(moments[stream])} there")
            if abs(leakage - spent.get(stream, 0.0)) > _ROUNDING:
                found.append(f"{stream}: the leakage is not the sum of its rows")
            if abs(model_free - free.get(stream, 0.0)) > _ROUNDING:
                found.append(f"{stream}: the model-free leakage is not the sum of its rows")
        over = [stream for stream, total in spent.items() if total > limit + _ROUNDING]
        return found + [
            f"{stream}: {spent[stream]} is over the budget of {limit}" for stream in over
        ]


def sqlite_ledger(path: Path) -> RawLedger:
    """The rows of a ledger file, read from a copy: a writer may have been killed just now."""
    with tempfile.TemporaryDirectory() as folder:
        for file in path.parent.glob(f"{path.name}*"):
            shutil.copy(file, folder)
        database = sqlite3.connect(Path(folder) / path.name)
        try:
            events = database.execute(
                "SELECT id, stream, sequence, outcome, released, leakage, model_free FROM events"
            ).fetchall()
            streams = database.execute("SELECT stream, sequence, leakage, model_free FROM streams")
            positions = {name: (n, a, b) for name, n, a, b in streams.fetchall()}
            (entries,) = database.execute("SELECT entries FROM ledger").fetchone()
        finally:
            database.close()
    return RawLedger(events, positions, entries)


def postgres_ledger(url: str, name: str) -> RawLedger:
    """The rows of a ledger in PostgreSQL, of one moment."""
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        front = "SELECT number, entries FROM sfumato.ledgers WHERE name = %s"
        number, entries = connection.execute(front, (name,)).fetchone() or (0, 0)
        events = connection.execute(
            "SELECT id, stream, sequence, outcome, released, leakage, model_free"
            " FROM sfumato.events WHERE ledger = %s",
            (number,),
        ).fetchall()
        streams = connection.execute(
            "SELECT stream, sequence, leakage, model_free FROM sfumato.streams WHERE ledger = %s",
            (number,),
        ).fetchall()
    return RawLedger(events, {each[0]: each[1:] for each in streams}, entries)


def main() -> int:
    """Check one ledger."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ledger", help="a file, or postgresql://...")
    parser.add_argument("--name", default="default", help="of a ledger in PostgreSQL")
    parser.add_argument("--limit", type=float, required=True, help="the budget of each stream")
    given = parser.parse_args()
    if given.ledger.startswith("postgres"):
        ledger = postgres_ledger(given.ledger, given.name)
    else:
        ledger = sqlite_ledger(Path(given.ledger))
    problems = ledger.problems(given.limit)
    most = max(ledger.spent().values(), default=0.0)
    print(json.dumps({"answers": len(ledger.events), "most": most, "problems": problems}))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
