"""Which release a stream belongs to, in PostgreSQL: one table for all nodes."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from psycopg import IsolationLevel

from sfumato.core.errors import CorruptData
from sfumato.core.guard import guarded
from sfumato.store.database_guard import DatabaseGuard
from sfumato.store.postgres_connection import Database, Patience, refuse_forgetful
from sfumato.store.postgres_schema import STEPS, check_form, migrate, version_of

# In order: two nodes that write down the same streams must not wait for each other in a circle.
_NEW = """INSERT INTO sfumato.homes (stream, release)
    SELECT stream, %s FROM unnest(%s::text[]) AS asked (stream) ORDER BY stream COLLATE "C"
    ON CONFLICT (stream) DO NOTHING"""
_FOUND = "SELECT stream, release FROM sfumato.homes WHERE stream = ANY(%s::text[])"


class PostgresStreamHomes(DatabaseGuard):
    """Homes of streams that several nodes share; of two who write at once the first wins.

    Args:
        url: The database, as `postgresql://user@host/name`.
    """

    def __init__(self, url: str) -> None:
        self._lock = threading.RLock()
        self._database = Database(url, Patience())
        self._made = False

    @guarded
    def settle(self, streams: Sequence[str], release: str) -> dict[str, str]:
        """Write down a release for those that have none yet; durable when this returns."""
        asked = sorted(set(streams))
        self._is_made(make=True)
        with self._database.reported(), self._database.pooled() as connection:
            # Each statement sees what others wrote while the one before waited for them.
            connection.isolation_level = IsolationLevel.READ_COMMITTED
            with connection.transaction():
                refuse_forgetful(connection, self._database.place)
                connection.execute(_NEW, (release, asked))
                found = dict(connection.execute(_FOUND, (asked,)).fetchall())
        if len(found) != len(asked):
            raise CorruptData(f"{self._database.place}: what is written of streams vanishes")
        return {stream: found[stream] for stream in streams}

    @guarded
    def settled(self, streams: Sequence[str]) -> dict[str, str]:
        """The release of those for which one is written down."""
        if not self._is_made(make=False):
            return {}
        with self._database.reported(), self._database.pooled() as connection:
            found = dict(connection.execute(_FOUND, (sorted(set(streams)),)).fetchall())
        return {stream: found[stream] for stream in streams if stream in found}

    def _is_made(self, *, make: bool) -> bool:
        """Whether the table is there; looked for until it was found."""
        if not self._made:
            with self._database.alone() as connection:
                if make:
                    migrate(connection)
                self._made = version_of(connection) == len(STEPS)
                if self._made:
                    check_form(connection)
        return self._made

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            self._database.close()
