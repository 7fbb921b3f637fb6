"""Where a service keeps everything: a registry, and one ledger for each release.

| home | where | |
|---|---|---|
| `MemoryHome` | `memory:` | gone with its process |
| `FolderHome` | a path | SQLite files: `registry.db`, `ledgers/NAME.ledger`; held by one process |
| `PostgresHome` | `postgresql://...` | a database that several nodes share |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, Protocol, Self

from sfumato.core.errors import InvalidParameter
from sfumato.core.guard import Guarded, guarded
from sfumato.store.home_anchor import HomeAnchor, check_anchor
from sfumato.store.memory import MemoryLedger, MemoryStore
from sfumato.store.protocol import Front, Head, Job, Store
from sfumato.store.registry import MemoryRegistry, Registry, utc_now
from sfumato.store.stream_homes import MemoryStreamHomes

__all__ = ["HeldLedger", "Home", "HomeAnchor", "MemoryHome", "anchor_of", "check_anchor"]
__all__ += ["checked_name", "is_postgres", "open_home"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SCHEMES = ("postgresql://", "postgres://")


class HeldLedger(NamedTuple):
    """A ledger of a home.

    Attributes:
        name: Of its release.
        job: Who writes it.
        plan: Fingerprint of its plan.
        head: How many rows it has, and the hash of all of them.
    """

    name: str
    job: str
    plan: str
    head: Head


class Home(Protocol):
    """A registry and ledgers; whoever opens a ledger closes it.

    Attributes:
        shared: Whether other nodes use it at the same time.
        registry: What administrators did.

    Examples:
        >>> from sfumato.store.folder_home import FolderHome
        >>> with FolderHome(getfixture("tmp_path") / "town") as home:
        ...     home.shared, [ledger.name for ledger in home.ledgers()]
        (False, [])
    """

    shared: bool

    @property
    def registry(self) -> Registry:
        """What administrators did."""
        ...

    def open_ledger(self, name: str, plan: str, job: Job, rules: str | None) -> Store:
        """The ledger of a release; made where there is none.

        Args:
            name: Of the release: letters, digits, dots, dashes and underscores, at most 64.
            plan: Fingerprint of its plan; a ledger of another plan is refused.
            job: Who writes it; a ledger of another job is refused.
            rules: The document of its plan, kept in a new ledger for an audit.
        """
        ...

    def ending(self, name: str) -> AbstractContextManager[Head | None]:
        """Hold a ledger while it is written down that its release is closed.

        What was begun before is over, and nothing is committed to it afterwards, here or on other
        nodes. Gives its head; None if there is no such ledger.
        """
        ...

    def settle(self, streams: Sequence[str], release: str) -> dict[str, str]:
        """Write down where streams belong of which that is not written yet; where each belongs.

        The first who writes wins, on all nodes, and what is written never changes. It is durable
        when this returns: nothing is drawn for a stream before.
        """
        ...

    def settled(self, streams: Sequence[str]) -> dict[str, str]:
        """Where streams belong, as far as it is written down; nothing is written."""
        ...

    def ledgers(self) -> list[HeldLedger]:
        """All ledgers by name, as far as they have come."""
        ...

    def heads(self) -> HomeAnchor:
        """How far all of it has come, to be written down elsewhere."""
        ...

    def head_at(self, ledger: str, entries: int) -> Head | None:
        """The head of a ledger after so many rows; None if it has no such commit."""
        ...

    def close(self) -> None:
        """Let others hold it; everything committed stays."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


def open_home(
    where: str, secret: str | Path | None = None, anchors: str | Path | None = None
) -> Home:
    """The home at a place.

    Args:
        where: `memory:`, a folder, or `postgresql://...`.
        secret: For PostgreSQL: the file with the secret of the digests of values, the same for all
            nodes (`sfumato key new`). A folder keeps one beside each ledger.
        anchors: For PostgreSQL: folder of the heads that this node saw; `SECRET.anchors` if not
            given.

    Examples:
        >>> with open_home("memory:") as home:
        ...     home.ledgers()
        []
        >>> with open_home(str(getfixture("tmp_path") / "town")) as home:
        ...     home.shared, home.registry.head.entries
        (False, 0)
    """
    if is_postgres(where):
        check_postgres()
        from sfumato.store.postgres_home import PostgresHome

        return PostgresHome(where, secret, anchors)
    if secret is not None:
        raise InvalidParameter("secret", str(secret), "be given for postgresql:// alone")
    if anchors is not None:
        raise InvalidParameter("anchor folder", str(anchors), "be given for postgresql:// alone")
    if where == "memory:":
        return MemoryHome()
    from sfumato.store.folder_home import FolderHome

    return FolderHome(where)


def is_postgres(where: str) -> bool:
    """Whether a place is a database."""
    return where.startswith(_SCHEMES)


def check_postgres() -> None:
    """Say what to install where the library of PostgreSQL is missing; before it is imported."""
    if lacking := [name for name in ("psycopg", "psycopg_pool") if find_spec(name) is None]:
        rule = 'be complete for PostgreSQL: pip install "sfumato[postgres]"'
        raise InvalidParameter("the installation", f"no {', '.join(lacking)}", rule)


def checked_name(name: str) -> str:
    """A name that is safe as that of a file.

    Examples:
        >>> checked_name("city-2026.v2")
        'city-2026.v2'
        >>> checked_name("../city")
        Traceback (most recent call last):
        sfumato.core.errors.InvalidParameter: name of a release must begin with a letter or digit...
    """
    if _NAME.fullmatch(name) is None:
        rule = "begin with a letter or digit, go on with those, dots, dashes or underscores, at "
        raise InvalidParameter("name of a release", name, f"{rule}most 64 in all")
    return name


def anchor_of(registry: Head, ledgers: list[HeldLedger]) -> HomeAnchor:
    """The heads of a home as a document."""
    time = utc_now().isoformat(timespec="seconds").replace("+00:00", "Z")
    return HomeAnchor(str(registry), {each.name: str(each.head) for each in ledgers}, time)


@contextmanager
def ending_turn(store: Store | None) -> Iterator[Head | None]:
    """A turn of an open ledger after which it takes nothing; its head."""
    if store is None:
        yield None
        return
    with store.turn():
        yield store.front.head
        store.ended = True


class _WatchedStore(MemoryStore):
    """A store in memory that tells each head that it had."""

    def __init__(
        self,
        ledger: MemoryLedger,
        told: Callable[[Head], None],
        plan: str,
        job: Job,
        rules: str | None,
    ) -> None:
        super().__init__(ledger, plan=plan, job=job, rules=rules)
        self._told = told
        told(self.front.head)

    def _set_front(self, front: Front) -> None:
        super()._set_front(front)
        self._told(front.head)


class MemoryHome(Guarded):
    """A home in memory: for tests and simulations, gone with its process.

    Examples:
        >>> with MemoryHome() as home, home.open_ledger("city", "a plan", Job("release"), None):
        ...     [ledger.name for ledger in home.ledgers()]
        ['city']
    """

    shared = False

    def __init__(self) -> None:
        self.registry: Registry = MemoryRegistry()
        self._homes = MemoryStreamHomes()
        self._ledgers: dict[str, MemoryLedger] = {}
        self._heads: dict[str, dict[int, Head]] = {}
        self._open: dict[str, MemoryStore] = {}
        self._ended: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @guarded
    def open_ledger(self, name: str, plan: str, job: Job, rules: str | None) -> Store:
        """The ledger of a release."""
        ledger = self._ledgers.get(checked_name(name), MemoryLedger())
        heads = self._heads.setdefault(name, {})

        def told(head: Head) -> None:
            heads[head.entries] = head

        store = _WatchedStore(ledger, told, plan, job, rules)
        store.ended = name in self._ended
        self._ledgers[name] = ledger
        self._open[name] = store
        return store

    @contextmanager
    def ending(self, name: str) -> Iterator[Head | None]:
        """Hold a ledger while its release is closed; its head."""
        # Held to the end: a ledger that is opened meanwhile would not know.
        with self._lock:
            with ending_turn(self._open.get(name)) as head:
                yield head
            self._ended.add(name)

    def settle(self, streams: Sequence[str], release: str) -> dict[str, str]:
        """Write down where streams belong of which that is not written yet; where each belongs."""
        return self._homes.settle(streams, checked_name(release))

    def settled(self, streams: Sequence[str]) -> dict[str, str]:
        """Where streams belong, as far as it is written down."""
        return self._homes.settled(streams)

    @guarded
    def ledgers(self) -> list[HeldLedger]:
        """All ledgers by name."""
        fronts = [(name, one.front) for name, one in sorted(self._ledgers.items())]
        return [HeldLedger(name, one.job, one.plan, one.head) for name, one in fronts if one]

    def heads(self) -> HomeAnchor:
        """How far all of it has come."""
        return anchor_of(self.registry.head, self.ledgers())

    def head_at(self, ledger: str, entries: int) -> Head | None:
        """The head of a ledger after so many rows."""
        return self._heads.get(ledger, {}).get(entries)

    def close(self) -> None:
        """Take nothing more."""
        self.registry.close()
