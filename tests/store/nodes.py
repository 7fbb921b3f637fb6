"""Nodes that share a ledger in PostgreSQL, as tests use them."""

import subprocess
import sys
from pathlib import Path

import psycopg

from sfumato.store.keys import new_key
from sfumato.store.postgres import PostgresStore, open_postgres
from sfumato.store.postgres_connection import Patience
from sfumato.store.postgres_rows import PostgresReader, read_postgres
from tests.contracts.store_laws import JOB, PLAN

NAME = "city"


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
        return open_postgres(
            self.url,
            self.name,
            PLAN,
            job=JOB,
            rules='{"columns":["person"]}',
            secret=self.secret,
            anchor=anchor,
            patience=Patience(**waits),
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
