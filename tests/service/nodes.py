"""Real servers in processes of their own, that can be killed, and where their ledgers lie."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sfumato.cli.app import called
from sfumato.client import Client
from sfumato.store.keys import new_key
from tests.oracles.ledger_sums import RawLedger, postgres_ledger, sqlite_ledger
from tests.servers import free_port

LIMIT, HORIZON = 5.0, 40
SYMBOLS = "abc"
_MAIN = "import sys; from sfumato.cli import main; sys.exit(main())"
PATIENCE = 120.0
"""Seconds that a start may take on a busy machine."""


def town_model(folder: Path) -> Path:
    """A model of three symbols that stay where they are, mostly."""
    draw, lines = random.Random(20261117), ["stream,value"]
    for stream in range(20):
        symbol = draw.choice(SYMBOLS)
        for _ in range(60):
            symbol = draw.choice(SYMBOLS) if draw.random() < 0.2 else symbol
            lines.append(f"u{stream},{symbol}")
    history = folder / "history.csv"
    history.write_text("\n".join(lines) + "\n")
    model = folder / "town.model"
    assert called(["fit", str(history), "-o", str(model), "-q"]) == 0
    return model


@dataclass(frozen=True)
class ServiceHome:
    """Where a service keeps everything.

    Attributes:
        folder: Of the home, or of what nodes need beside a database.
        database: URL, if it is PostgreSQL.
    """

    folder: Path
    database: str | None = None

    def words(self) -> list[str]:
        if self.database is None:
            return ["--home", str(self.folder / "home")]
        return ["--home", "-", "--secret-file", str(self.folder / "values.key")]

    def raw(self) -> RawLedger:
        """What lies in the tables, read without the product."""
        if self.database is not None:
            return postgres_ledger(self.database, "default")
        return sqlite_ledger(self.folder / "home" / "ledgers" / "default.ledger")

    @classmethod
    def made(cls, folder: Path, database: str | None = None) -> ServiceHome:
        if database is not None:
            new_key(folder / "values.key")
        return cls(folder, database)


class Node:
    """One server of a home, on one port, started as often as it takes.

    Attributes:
        port: Where it listens, whenever it runs.
        started: Seconds that the last start took.
    """

    def __init__(self, home: ServiceHome, name: str = "node") -> None:
        self.home, self._name = home, name
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.started = 0.0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, *words: str) -> str | None:
        """Start it, and wait until it listens; the first start of a home tells its first key."""
        said = self.home.folder / f"{self._name}.json"
        log = self.home.folder / f"{self._name}.log"
        command = [sys.executable, "-c", _MAIN, "serve", *self.home.words(), "--json", *words]
        environment = {**os.environ, "SFUMATO_DATABASE_URL": self.home.database or ""}
        began = time.monotonic()
        with said.open("wb") as out, log.open("ab") as err:
            self.process = subprocess.Popen(
                [*command, "--port", str(self.port)], stdout=out, stderr=err, env=environment
            )
        while not said.read_text().rstrip().endswith("}"):
            assert self.process.poll() is None, log.read_text()[-2000:]
            assert time.monotonic() < began + PATIENCE, "the service did not start"
            time.sleep(0.01)
        self.started = time.monotonic() - began
        key: str | None = json.loads(said.read_text()).get("admin_key")
        return key

    def kill(self) -> None:
        """End it at once, as a machine that fails does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self) -> int:
        """End it in order."""
        assert self.process is not None
        self.process.terminate()
        code = self.process.wait()
        self.process = None
        return code

    def client(self, key: str, deadline: float = PATIENCE) -> Client:
        return Client(self.url, key, retries=100_000, deadline=deadline, timeout=30.0)


@contextmanager
def served(home: ServiceHome, model: Path, nodes: int = 1) -> Iterator[tuple[list[Node], str]]:
    """Nodes of a home with one release, and the key of its administrator."""
    rules = ["--model", str(model), "--budget", str(LIMIT), "--horizon", str(HORIZON)]
    made = [Node(home, f"node{number}") for number in range(nodes)]
    try:
        key = made[0].start(*rules, "--every", "1")
        assert key is not None
        for other in made[1:]:
            other.start()
        yield made, key
    finally:
        for node in made:
            node.kill()
