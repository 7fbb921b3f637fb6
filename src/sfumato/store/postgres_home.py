"""A home in PostgreSQL, shared by all nodes of a service."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from sfumato.core.errors import InvalidParameter
from sfumato.store.home import HeldLedger, anchor_of, checked_name
from sfumato.store.home_anchor import HomeAnchor
from sfumato.store.postgres import PostgresStore
from sfumato.store.postgres_connection import Database, Patience
from sfumato.store.postgres_registry import PostgresRegistry
from sfumato.store.postgres_rows import postgres_ledgers, read_postgres
from sfumato.store.postgres_stream_homes import PostgresStreamHomes
from sfumato.store.protocol import Head, Job, Store
from sfumato.store.registry import Registry
from sfumato.store.shared_anchor import anchor_folder

_MADE = "SELECT to_regclass('sfumato.ledgers')"
_BEGUN = "SELECT 1 FROM sfumato.ledgers WHERE name = %s"
_HOLD_ALL = "LOCK TABLE sfumato.ledgers IN EXCLUSIVE MODE"
_HOLD = "SELECT entries, head FROM sfumato.ledgers WHERE name = %s FOR UPDATE"


class PostgresHome:
    """A home that several nodes share.

    Args:
        url: The database, as `postgresql://user@host/name`.
        secret_file: The key of the digests that tell a retry from other data: the same on every
            node, made once by `sfumato key new`. None where no ledger is opened.
        anchors: Folder where this node keeps the heads of registry and ledgers, so that it refuses
            a database that was put back; `SECRET_FILE.anchors` if not given.

    Raises:
        CorruptData: If the database did not grow from what this node saw last.
    """

    shared = True
    registry: Registry

    def __init__(
        self,
        url: str,
        secret_file: str | Path | None = None,
        anchors: str | Path | None = None,
    ) -> None:
        self._url = url
        self._secret = None if secret_file is None else Path(secret_file)
        if anchors is None and self._secret is not None:
            anchors = self._secret.with_name(f"{self._secret.name}.anchors")
        self._anchors = None if anchors is None else anchor_folder(Path(anchors))
        self.registry = PostgresRegistry(url, anchor=self._anchor("registry"))
        self._homes = PostgresStreamHomes(url)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open_ledger(self, name: str, plan: str, job: Job, rules: str | None) -> Store:
        """The ledger of a release; made where there is none."""
        if self._secret is None:
            rule = "name the key file that all nodes share (sfumato key new): retries are compared"
            raise InvalidParameter("secret", None, rule)
        anchor = self._anchor(f"{checked_name(name)}.ledger")
        return PostgresStore(
            self._url, name, plan, job=job, rules=rules, secret=self._secret, anchor=anchor
        )

    @contextmanager
    def ending(self, name: str) -> Iterator[Head | None]:
        """Hold a ledger while its release is closed; its head.

        Turns of all nodes wait for the same row, and look into the registry when they have it.
        """
        with Database(self._url, Patience()).alone() as connection, connection.transaction():
            found = None
            if connection.execute(_MADE).fetchone() != (None,):
                if connection.execute(_BEGUN, (checked_name(name),)).fetchone() is None:
                    connection.execute(_HOLD_ALL)  # no row to wait for: none begins meanwhile
                found = connection.execute(_HOLD, (name,)).fetchone()
            yield None if found is None else Head(*found)

    def _anchor(self, log: str) -> Path | None:
        return None if self._anchors is None else self._anchors / log

    def settle(self, streams: Sequence[str], release: str) -> dict[str, str]:
        """Write down where streams belong of which that is not written yet; where each belongs."""
        return self._homes.settle(streams, checked_name(release))

    def settled(self, streams: Sequence[str]) -> dict[str, str]:
        """Where streams belong, as far as it is written down."""
        return self._homes.settled(streams)

    def ledgers(self) -> list[HeldLedger]:
        """All ledgers by name, as far as they have come."""
        return sorted(HeldLedger(*found) for found in postgres_ledgers(self._url))

    def heads(self) -> HomeAnchor:
        """How far all of it has come, to be written down elsewhere."""
        # Ledgers last: what is released meanwhile belongs to releases that the registry knows.
        registry = self.registry.head
        return anchor_of(registry, self.ledgers())

    def head_at(self, ledger: str, entries: int) -> Head | None:
        """The head of a ledger after so many rows; None if it has no such commit, or is missing."""
        if ledger not in {found.name for found in postgres_ledgers(self._url)}:
            return None
        with read_postgres(self._url, ledger) as found:
            return found.head_at(entries)

    def close(self) -> None:
        """Close its connections."""
        self.registry.close()
        self._homes.close()
