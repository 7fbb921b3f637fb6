"""A home copied, also while a service uses it: whole, checked and on disk, or not at all.

A backup is a folder of the form of a home, with the heads of all that is in it (`anchor.json`).
Key files are not in it: the digests of true values are secret only as long as no copy has both.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from sfumato.core.errors import InvalidParameter
from sfumato.core.progress import Progress
from sfumato.store.folder_home import ANCHOR, LEDGERS, REGISTRY, HomeFiles, HomeFolder
from sfumato.store.home_anchor import HomeAnchor
from sfumato.store.ledger_check import backup_ledger
from sfumato.store.outputs import locked, sync_folders, write_whole
from sfumato.store.stream_homes import reading_homes, write_homes

_CREATED = "release.created"


def backup_home(
    home: HomeFiles, target: str | Path, progress: Progress | None = None
) -> HomeAnchor:
    """Copy a home that is being read into a new folder.

    Args:
        home: The home; a service may use it meanwhile.
        target: The folder; must not exist.
        progress: Called with the number of ledgers that were copied.

    Returns:
        The heads of the copy.

    Raises:
        CorruptData: If something is damaged; no copy is left then.

    Examples:
        >>> from sfumato.store.folder_home import FolderHome
        >>> folder = getfixture("tmp_path")
        >>> FolderHome(folder / "town").close()
        >>> with HomeFiles(folder / "town") as home:
        ...     copied = backup_home(home, folder / "copy")
        >>> copied.registry
        '0:...'
    """
    with new_folder(target) as aside:
        return copy_home(home, aside, progress)


def copy_home(home: HomeFiles, aside: Path, progress: Progress | None = None) -> HomeAnchor:
    """Copy a home into an empty folder, and check the copy."""
    # The registry first: a ledger of a release that it does not know yet does no harm, but of a
    # release that it knows without its rows, what was spent would be forgotten.
    _copy_registry(home, aside / REGISTRY)
    (aside / LEDGERS).mkdir(mode=0o700)
    for done, name in enumerate(home.names(), start=1):
        backup_ledger(home.ledger_path(name), aside / LEDGERS / home.ledger_path(name).name)
        if progress is not None:
            progress(done)
    with HomeFiles(aside) as copy:
        entries = copy.registry.entries()  # each is checked as it is read
        anchor = copy.heads()
    known = {*anchor.ledgers, *(each.name for each in entries if each.action == _CREATED)}
    _copy_homes(home, HomeFolder(aside), known)
    write_whole(aside / ANCHOR, anchor.document())
    sync_folders([aside / LEDGERS, aside])
    return anchor


def _copy_homes(home: HomeFiles, copy: HomeFolder, known: set[str]) -> None:
    """Where streams belong, copied last: it is known of every stream that a copied ledger has."""
    with reading_homes(home.streams_path) as homes:
        # A release that was begun since is not in the copy, and no stream of it.
        write_homes(copy.streams_path, (each for each in homes if each[1] in known))


def _copy_registry(home: HomeFiles, target: Path) -> None:
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    with contextlib.closing(sqlite3.connect(target, isolation_level=None)) as database:
        home.registry.copy_to(database)
        database.execute("PRAGMA journal_mode=DELETE")  # one file that needs no other
    with open(target, "rb") as file:
        os.fsync(file.fileno())


@contextlib.contextmanager
def new_folder(target: str | Path) -> Iterator[Path]:
    """A folder aside to write into, which takes the name when the block has ended well.

    Raises:
        InvalidParameter: If there is something of that name, other than an empty folder.
        FileInUse: If somebody else is writing it.
    """
    path = Path(os.path.realpath(target))
    if not path.parent.is_dir() or not is_empty(path):
        raise InvalidParameter("folder", str(target), "be new, in a folder that exists")
    with locked(path.with_name(f"{path.name}.folder")):
        _sweep(path)
        aside = path.with_name(f".partial.{secrets.token_hex(8)}.{path.name}")
        aside.mkdir(mode=0o700)
        try:
            yield aside
            # A folder that is not empty by now is refused by the system itself.
            os.rename(aside, path)
            sync_folders([path])
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def is_empty(path: Path) -> bool:
    """Whether nothing is there, or a folder with nothing in it."""
    if path.is_symlink() or not path.exists():
        return not path.is_symlink()
    return path.is_dir() and next(path.iterdir(), None) is None


def _sweep(path: Path) -> None:
    """Remove what a killed writer left aside; whoever holds the lock is the only writer."""
    left = re.compile(rf"\.partial\.[0-9a-f]{{16}}\.{re.escape(path.name)}")
    for each in path.parent.iterdir():
        if left.fullmatch(each.name):
            shutil.rmtree(each, ignore_errors=True)
