"""Connections to PostgreSQL: set up for a ledger, never for ever, and without their password.

A node that dies while it holds a ledger must not hold it for long: its server notices through
keepalives, and ends sessions that do nothing within a transaction. Whoever waits gives up in time
and says so. A password is in no message: what a server or the library says is told without it.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import psycopg
from psycopg import conninfo, errors
from psycopg.types.json import set_json_dumps, set_json_loads
from psycopg_pool import ConnectionPool

from sfumato.core.errors import InvalidParameter, SfumatoError
from sfumato.store.postgres_schema import Connection
from sfumato.store.protocol import LedgerMismatch, StoreUnavailable

_SESSION = {
    "client_encoding": "UTF8",
    # Nothing that somebody else named like one of ours is found by chance.
    "search_path": "pg_catalog",
    # A plan that was made for an empty ledger would be used for a long one.
    "plan_cache_mode": "force_custom_plan",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "25000",
}
_CLIENT: dict[str, Any] = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25000,
    "application_name": "sfumato",
}
# What is stronger than `on` was chosen by whoever runs the server, and stays.
_SYNCHRONOUS = """SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit')
    WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)"""
DURABLE = {
    "fsync": ("on",),
    "full_page_writes": ("on",),
    "synchronous_commit": ("on", "remote_apply"),
    "server_encoding": ("UTF8",),
}
"""What a server must say of itself; asked in every turn, for it can be changed while it runs."""
SETTINGS = ", ".join(f"current_setting('{name}')" for name in DURABLE)
"""Columns that say it, for `check_durable`."""
_CONNECTIONS, _RECONNECT = 4, 2.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How many seconds a node waits, and how long others wait for it.

    Attributes:
        connect: For a connection; less than clients wait for an answer (10 s), so that they hear
            that there is none.
        lock: For another node that holds the ledger.
        idle: A node that holds the ledger and does nothing is cut off after so long.
        statement: For one statement.
    """

    connect: float = 5.0
    lock: float = 15.0
    idle: float = 30.0
    statement: float = 60.0

    def __post_init__(self) -> None:
        for name in ("connect", "lock", "idle", "statement"):
            if not 0.0 < getattr(self, name) < math.inf:
                raise InvalidParameter(name, getattr(self, name), "be finite and greater than 0")

    def settings(self) -> dict[str, str]:
        """The same, as a session of PostgreSQL is told."""
        waits = {
            "lock_timeout": self.lock,
            "idle_in_transaction_session_timeout": self.idle,
            "statement_timeout": self.statement,
        }
        return {name: f"{math.ceil(1000 * wait)}ms" for name, wait in waits.items()}


class Database:
    """A database of PostgreSQL, and some connections to it.

    Args:
        url: How it is reached: `postgresql://user@host/name`, or as `host=... dbname=...`.
        patience: How long it waits.

    Attributes:
        place: What it is called in messages: never with a password.
    """

    def __init__(self, url: str, patience: Patience) -> None:
        given = _parameters(url)
        self.place, self.patience = called(url), patience
        self._password = str(given.get("password") or "")
        wait = {"connect_timeout": max(1, math.ceil(patience.connect))}
        # What the operator says of a connection stands before what is usual.
        self._conninfo = conninfo.make_conninfo(url, **{**_CLIENT, **wait, **given})
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            self._conninfo,
            kwargs={"autocommit": True},
            min_size=1,
            max_size=_CONNECTIONS,
            timeout=patience.connect,
            # Between attempts a pool waits longer and longer; whoever asks anew begins at once.
            reconnect_timeout=min(_RECONNECT, patience.connect),
            configure=self._configure,
            check=ConnectionPool.check_connection,
            open=False,
        )

    @contextlib.contextmanager
    def reported(self) -> Iterator[None]:
        """What PostgreSQL cannot do, in the words of a ledger."""
        try:
            yield
        except psycopg.Error as problem:
            raise self.refusal(problem) from None  # its details quote rows

    @contextlib.contextmanager
    def alone(self) -> Iterator[Connection]:
        """A connection of its own, which is not kept."""
        with self.reported(), psycopg.connect(self._conninfo, autocommit=True) as connection:
            self._configure(connection)
            yield connection

    @contextlib.contextmanager
    def pooled(self) -> Iterator[Connection]:
        """One of the connections that are kept; one that was lost meanwhile is not handed out."""
        self._pool.open()  # the first time; later it does nothing
        with self._pool.connection() as connection:
            yield connection

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    def refusal(self, problem: psycopg.Error) -> SfumatoError:
        """What a problem of the library means; nothing of a row is quoted."""
        if isinstance(problem, psycopg.DataError):
            rule = "names, ids and times must be text without NUL"
            return LedgerMismatch(f"{self.place}: {rule}; nothing was stored")
        what = "the database cannot be used"
        if isinstance(problem, errors.LockNotAvailable):
            what = f"another node held the ledger for more than {self.patience.lock:g} s"
        told = problem.diag.message_primary or str(problem).strip() or type(problem).__name__
        if self._password:
            told = told.replace(self._password, "***")
        rule = "nothing was stored, and asking again is safe"
        return StoreUnavailable(f"{self.place}: {what}; {rule} ({told})")

    def _configure(self, connection: Connection) -> None:
        set_json_dumps(_json, connection)
        set_json_loads(msgspec.json.decode, connection)
        given = {**_SESSION, **self.patience.settings()}
        calls = ", ".join(["set_config(%s, %s, false)"] * len(given))
        pairs = [part for pair in given.items() for part in pair]
        connection.execute(f"SELECT {calls}".encode(), pairs)
        connection.execute(_SYNCHRONOUS)


def _json(value: Any) -> bytes:
    # The words of JSON know no infinity: it would come back as something else.
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidParameter("released", value, "be finite")
    return msgspec.json.encode(value)


def called(url: str) -> str:
    """What a database is called in messages: never with a password.

    Examples:
        >>> called("postgresql://ann:secret@db.example:5433/privacy?sslmode=require")
        'postgresql://ann@db.example:5433/privacy'
        >>> called("host=/run/postgresql dbname=privacy password=secret")
        'postgresql:///run/postgresql/privacy'
    """
    given = _parameters(url)
    user = f"{given['user']}@" if given.get("user") else ""
    port = f":{given['port']}" if given.get("port") else ""
    host = given.get("host") or given.get("hostaddr") or ""
    return f"postgresql://{user}{host}{port}/{given.get('dbname') or ''}"


def _parameters(url: str) -> dict[str, Any]:
    try:
        return conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError:  # what the library says quotes all of it
        pass
    rule = "be a URL of PostgreSQL, postgresql://user:password@host/name"
    raise InvalidParameter("database", "something else", rule)


def refuse_forgetful(connection: Connection, place: str) -> None:
    """Ask a server whether it may forget what it said was stored, and refuse it if so."""
    told = connection.execute(f"SELECT {SETTINGS}".encode()).fetchone()
    check_durable(place, told or ())


def check_durable(place: str, told: tuple[str, ...]) -> None:
    """Refuse a server that may forget what it said was stored.

    Args:
        place: The database.
        told: Its settings, in the order of `DURABLE`.

    Raises:
        LedgerMismatch: If one of them is another.
    """
    for (name, allowed), found in zip(DURABLE.items(), told, strict=True):
        if found not in allowed:
            raise LedgerMismatch(
                f"{place}: the server must have {name} = {allowed[0]}; it has {found}: a crash "
                "could take back what was spent"
            )
