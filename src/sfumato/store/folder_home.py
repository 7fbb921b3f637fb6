"""A home in a folder of its owner: `registry.db`, `ledgers/NAME.ledger` and `streams.db`.

The folder is held by one process: whoever holds its registry. Reading needs no hold (`HomeFiles`):
a check, a copy or an export may run beside a service.
"""

from __future__ import annotations

import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from sfumato.core.errors import CorruptData, FileInUse, InvalidParameter
from sfumato.store.chain import head_file
from sfumato.store.home import HeldLedger, anchor_of, checked_name, ending_turn
from sfumato.store.home_anchor import HomeAnchor
from sfumato.store.ledger_reader import LedgerReader
from sfumato.store.protocol import Head, Job, LedgerMismatch, Store
from sfumato.store.registry import Registry
from sfumato.store.sqlite import SqliteStore
from sfumato.store.sqlite_registry import RegistryReader, SqliteRegistry
from sfumato.store.stream_homes import SqliteStreamHomes

REGISTRY, LEDGERS, ANCHOR = "registry.db", "ledgers", "anchor.json"
STREAMS = "streams.db"
_SUFFIX = ".ledger"
_HEAD = head_file(Path(_SUFFIX)).suffix
_PRIVATE = 0o700


class HomeFolder:
    """The files of a home, whatever state they are in; nothing is opened.

    Examples:
        >>> HomeFolder("town").ledger_path("city").name
        'city.ledger'
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def registry_path(self) -> Path:
        """Where the registry lies."""
        return self.path / REGISTRY

    @property
    def streams_path(self) -> Path:
        """Where it is written which release a stream belongs to."""
        return self.path / STREAMS

    def ledger_path(self, name: str) -> Path:
        """Where the ledger of a release lies."""
        return self.path / LEDGERS / f"{checked_name(name)}{_SUFFIX}"

    def names(self) -> list[str]:
        """Names of all ledgers; a head without its ledger is one that was lost."""
        folder = self.path / LEDGERS
        there = folder.iterdir() if folder.is_dir() else iter(())
        # An empty head is what a killed run left before it began anything.
        files = [path.name for path in there if path.suffix != _HEAD or path.stat().st_size]
        found = [name.removesuffix(_HEAD) for name in files]
        ledgers = {name.removesuffix(_SUFFIX) for name in found if name.endswith(_SUFFIX)}
        return sorted(name for name in ledgers if not name.startswith("."))

    def ledgers(self) -> list[HeldLedger]:
        """All ledgers by name, as far as they have come."""
        found = []
        for name in self.names():
            with self.ledger(name) as ledger:
                front = ledger.front
                found.append(HeldLedger(name, front.job, front.plan, front.head))
        return found

    def ledger(self, name: str) -> LedgerReader:
        """A ledger, to be read."""
        return LedgerReader(self.ledger_path(name))

    def head_at(self, ledger: str, entries: int) -> Head | None:
        """The head of a ledger after so many rows; None if it has no such commit, or is missing."""
        if not self.ledger_path(ledger).exists():
            return None
        with self.ledger(ledger) as found:
            return found.head_at(entries)


class HomeFiles(HomeFolder):
    """A home in a folder, or a backup of one, that is only read.

    Raises:
        LedgerMismatch: If there is none.
        CorruptData: If its registry is damaged.

    Examples:
        >>> path = getfixture("tmp_path") / "town"
        >>> with FolderHome(path) as home, home.open_ledger("city", "a plan", Job("release"), None):
        ...     pass
        >>> with HomeFiles(path) as files:
        ...     files.names()
        ['city']
    """

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        if not self.path.is_dir():
            raise LedgerMismatch(f"{path}: a home must be a folder; there is none")
        if not self.registry_path.exists():
            raise LedgerMismatch(f"{path}: a home must have a {REGISTRY}; this folder has none")
        self.registry = RegistryReader(self.registry_path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.registry.close()

    def heads(self) -> HomeAnchor:
        """How far all of it has come."""
        return anchor_of(self.registry.head, self.ledgers())


class FolderHome(HomeFolder):
    """A home in a folder of its owner, held by one process.

    Args:
        path: The folder; made where there is none, for its owner alone.

    Raises:
        FileInUse: If another process holds it.
        LedgerMismatch: If the folder is no home, or others may read it.
        CorruptData: If its registry is damaged or lost.

    Examples:
        >>> path = getfixture("tmp_path") / "town"
        >>> with FolderHome(path) as home:
        ...     with home.open_ledger("city", "a plan", Job("release"), None) as store:
        ...         [ledger.name for ledger in home.ledgers()]
        ['city']
        >>> sorted(each.name for each in path.iterdir())
        ['ledgers', 'registry.db', 'registry.db.head']
    """

    shared = False
    registry: Registry

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        prepare_folder(self.path)
        if not self.registry_path.exists() and self.names():
            raise CorruptData(
                f"{path}: ledgers are there, but {REGISTRY} is not: it was lost. Bring it back "
                "(sfumato store restore); without it nobody knows what was released here"
            )
        self._open: dict[str, SqliteStore] = {}
        self._ended: set[str] = set()
        self._opening = threading.Lock()  # a ledger is opened before its release ends, or after
        (self.path / LEDGERS).mkdir(mode=_PRIVATE, exist_ok=True)
        try:
            self.registry = SqliteRegistry(self.registry_path)
        except FileInUse:
            raise FileInUse(str(path)) from None
        try:
            self._homes = SqliteStreamHomes(self.streams_path)
        except BaseException:
            self.registry.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open_ledger(self, name: str, plan: str, job: Job, rules: str | None) -> Store:
        """The ledger of a release; made where there is none."""
        store = SqliteStore(self.ledger_path(name), plan, job=job, rules=rules)
        with self._opening:
            store.ended = name in self._ended
            self._open[name] = store
        return store

    @contextmanager
    def ending(self, name: str) -> Iterator[Head | None]:
        """Hold a ledger while its release is closed; its head."""
        with self._opening:
            store = self._open.get(name)
            with ending_turn(store) as head:
                if store is None and self.ledger_path(name).exists():
                    with self.ledger(name) as found:  # nobody else writes: the folder is ours
                        head = found.front.head
                yield head
            self._ended.add(name)

    def settle(self, streams: Sequence[str], release: str) -> dict[str, str]:
        """Write down where streams belong of which that is not written yet; where each belongs."""
        return self._homes.settle(streams, checked_name(release))

    def settled(self, streams: Sequence[str]) -> dict[str, str]:
        """Where streams belong, as far as it is written down."""
        return self._homes.settled(streams)

    def heads(self) -> HomeAnchor:
        """How far all of it has come, to be written down elsewhere."""
        return anchor_of(self.registry.head, self.ledgers())

    def close(self) -> None:
        """Let others hold it."""
        self._homes.close()
        self.registry.close()


def prepare_folder(path: Path) -> None:
    """Make a folder for its owner alone, or refuse one that is something else."""
    if not path.parent.is_dir():
        raise InvalidParameter("home", str(path), "be a folder in a folder that exists")
    path.mkdir(mode=_PRIVATE, exist_ok=True)
    mode = path.stat().st_mode
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        rule = f"{path}: nobody but its owner may enter a home (chmod 700)"
        raise LedgerMismatch(f"{rule}; it is {stat.filemode(mode)}")
    others = {each.name for each in path.iterdir()}
    if others and not others & {REGISTRY, f"{REGISTRY}.head", LEDGERS}:
        raise LedgerMismatch(f"{path}: a home must be a new or empty folder, or one that was begun")
