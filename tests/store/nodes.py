"""Nodes that share a ledger in PostgreSQL, as tests use them."""

import subprocess
import sys
from pathlib import Path

import psycopg

from sfumato.store.keys import new_key
from sfumato.store.postgres import PostgresStore
from sfumato.store.postgres_connection import Patience
from sfumato.store.postgres_rows import PostgresReader, read_postgres
from tests.contracts.store_laws import JOB, PLAN

NAME = "city"
PATIENCE = 120.0
HAMMER = """
import sys
from pathlib import Path
from dataclasses import replace
from tests.contracts.store_laws import moments
from tests.store.nodes import Nodes

url, secret, name, turns = sys.argv[1:]
streams = [f"u{place}" for place in range(5)]
with Nodes(url, Path(secret).parent, name).open(connect=2.0) as store:
    print("open", flush=True)
    sys.stdin.readline()
    for turn in range(int(turns)):
        ids = [f"{stream}-{turn}" for stream in streams]
        with store.turn():  # both nodes are asked the same: the second finds it answered
            ends, known = store.ends(streams), store.known(ids)
            fresh = []
            for stream, end, id_, there in zip(streams, ends, ids, known):
                if not there:
                    moment = 0 if end is None else end[0].sequence
                    answer, after = moments(stream, moment + 1)[-1]
                    fresh.append((replace(answer, id=id_), after))
            store.commit([answer for answer, _ in fresh], [after for _, after in fresh])
        print(*(answer.id for answer, _ in fresh), flush=True)
"""
HOLDER = """
import sys
from pathlib import Path
from tests.contracts.store_laws import moments
from tests.store.nodes import Nodes

url, secret, name = sys.argv[1:]
with Nodes(url, Path(secret).parent, name).open() as store:
    (answer, after), = moments("held", 1)
    with store.turn():
        store.commit([answer], [after])
        print("held", flush=True)
        sys.stdin.readline()
"""


class Nodes:
    """What every node of a service is told.

    Attributes:
        url: The database.
        secret: The file of the secret.
        name: The ledger.
    """

    def __init__(self, url: str, folder: Path, name: str = NAME) -> None:
        self.url, self.secret, self.name = url, folder / "values.key", name
        if not self.secret.exists():
            new_key(self.secret)

    def open(self, anchor: Path | None = None, **waits: float) -> PostgresStore:
        """A store of the ledger."""
        return PostgresStore(
            self.url,
            self.name,
            PLAN,
            job=JOB,
            rules='{"columns":["person"]}',
            secret=self.secret,
            anchor=anchor,
            # On a busy machine a server may take longer than clients of a service would wait.
            patience=Patience(**{"connect": PATIENCE, **waits}),
        )

    def read(self, anchor: Path | None = None) -> PostgresReader:
        """The ledger, read apart."""
        return read_postgres(self.url, self.name, anchor)

    def run(self, *statements: str) -> None:
        """Do something to the database behind the back of all nodes."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def process(self, script: str, *arguments: str) -> "subprocess.Popen[bytes]":
        """A node in a process of its own."""
        command = [sys.executable, "-c", script, self.url, str(self.secret), self.name, *arguments]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
