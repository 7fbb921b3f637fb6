"""A backup brought back, unless it would lower what was spent.

What was released after a backup was made stays known to whoever saw it. A home that is put back to
the backup would not know, and spend the same budget again. So a backup goes only where nothing is
lost: into an empty place, compared with an anchor that was kept elsewhere, or over a home of which
every ledger is the beginning of the backup's. There, files are replaced one by one, ledgers before
the registry: whoever is killed in between leaves a home that has forgotten nothing, or, if it was
empty, one without a registry, which no service opens. A new folder appears as a whole.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import TypeVar

from sfumato.core.errors import CorruptData, FileInUse
from sfumato.core.progress import Progress
from sfumato.store.chain import Anchor, Row, head_file, written_head
from sfumato.store.folder_home import ANCHOR, LEDGERS, HomeFiles, HomeFolder, prepare_folder
from sfumato.store.home_anchor import HomeAnchor, check_anchor
from sfumato.store.home_backup import copy_home, is_empty, new_folder
from sfumato.store.ledger_connection import log_of
from sfumato.store.ledger_reader import LedgerReader
from sfumato.store.outputs import sync_folders
from sfumato.store.protocol import Head, LedgerMismatch
from sfumato.store.sqlite_registry import RegistryReader
from sfumato.store.stream_homes import joined_homes

File = TypeVar("File", RegistryReader, LedgerReader)


class SpendLowered(LedgerMismatch):
    """A restore was refused: something that was released would be forgotten."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}; what was released stays spent, and nothing was restored")


class Unanchored(Enum):
    """What stands in the place of an anchor where there is none.

    Attributes:
        ACCEPTED: Whoever restores knows that what was released since the backup is forgotten.
    """

    ACCEPTED = "accepted"


def restore_home(
    backup: HomeFiles,
    place: str | Path,
    anchor: HomeAnchor | Unanchored | None = None,
    progress: Progress | None = None,
) -> HomeAnchor:
    """Bring a backup back to a place; the place is as before if it is refused.

    Args:
        backup: The backup.
        place: The folder of a home, or where one is to be.
        anchor: What was written down of the home, as late as possible: the backup must reach it.
            Needed for an empty place, which remembers nothing itself.
        progress: Called with the number of ledgers that were copied and checked.

    Returns:
        The heads of what is there now.

    Raises:
        SpendLowered: If the place, or the anchor, knows of something that the backup does not, or
            nothing can tell.
        FileInUse: If somebody uses the place.
        CorruptData: If the backup is damaged.

    Examples:
        >>> from sfumato.store.folder_home import FolderHome
        >>> from sfumato.store.home_backup import backup_home
        >>> folder = getfixture("tmp_path")
        >>> FolderHome(folder / "town").close()
        >>> with HomeFiles(folder / "town") as home:
        ...     anchor = backup_home(home, folder / "copy")
        >>> with HomeFiles(folder / "copy") as backup:
        ...     restore_home(backup, folder / "new", anchor).registry == anchor.registry
        True
    """
    path = Path(os.path.realpath(place))
    if is_empty(path):
        refuse_unanchored(anchor)
    if not path.exists():
        with new_folder(path) as aside:
            heads = copy_home(backup, aside, progress)
            reached(HomeFolder(aside), anchor)
            for target, head in _targets(aside, heads).items():
                with Anchor(target) as beside:
                    beside.write(head)
            (aside / ANCHOR).unlink()
        return heads
    prepare_folder(path)
    (path / LEDGERS).mkdir(mode=0o700, exist_ok=True)
    with _held(path, backup.names()) as anchors, _within(path) as aside:
        heads = copy_home(backup, aside, progress)
        reached(HomeFolder(aside), anchor)
        _check_place(aside, HomeFolder(path))
        _put_homes(HomeFolder(aside), HomeFolder(path))
        for target, head in _targets(path, heads).items():
            _replace(aside / target.relative_to(path), target)
            anchors[target].write(head)
    return heads


def refuse_unanchored(anchor: HomeAnchor | Unanchored | None) -> None:
    """Refuse a restore into an empty place if nothing tells what was released since the backup."""
    if anchor is None:
        raise SpendLowered(
            "an empty place cannot tell what was released after the backup: all of it would be "
            "forgotten, and spent again. Give an anchor that was written down later (--anchor), or "
            "say that there is none (--accept-unanchored)"
        )


def reached(copy: HomeFolder, anchor: HomeAnchor | Unanchored | None) -> None:
    """Refuse a copy that does not reach an anchor."""
    if not isinstance(anchor, HomeAnchor):
        return
    with HomeFiles(copy.path) as files:
        try:
            check_anchor(files, anchor)
        except LedgerMismatch as problem:
            raise SpendLowered(f"the backup is older than the anchor: {problem}") from None


def _targets(path: Path, heads: HomeAnchor) -> dict[Path, Head]:
    """The files of a home with their heads; the registry last."""
    folder = HomeFolder(path)
    found = {folder.ledger_path(name): Head.read(text) for name, text in heads.ledgers.items()}
    return found | {folder.registry_path: Head.read(heads.registry)}


@contextlib.contextmanager
def _within(path: Path) -> Iterator[Path]:
    """A folder aside, on the disk of a place that is held; what a killed restore left goes too."""
    for left in path.glob(".partial.*.restore"):
        shutil.rmtree(left)
    aside = path / f".partial.{secrets.token_hex(8)}.restore"
    aside.mkdir(mode=0o700)
    try:
        yield aside
    finally:
        shutil.rmtree(aside, ignore_errors=True)


@contextlib.contextmanager
def _held(path: Path, names: list[str]) -> Iterator[dict[Path, Anchor]]:
    """Keep every service from the place, and every release from its ledgers."""
    folder = HomeFolder(path)
    files = [folder.ledger_path(name) for name in sorted({*names, *folder.names()})]
    with contextlib.ExitStack() as stack:
        anchors = {}
        for file in (folder.registry_path, *files):
            try:
                anchors[file] = stack.enter_context(Anchor(file))
            except LedgerMismatch:
                raise FileInUse(str(file)) from None
        yield anchors


def _check_place(aside: Path, place: HomeFolder) -> None:
    """Refuse unless everything at the place is the beginning of what the copy has."""
    registry = place.registry_path
    with HomeFiles(aside) as copy:
        for head in _heads(registry, RegistryReader, lambda found: found.head):
            if copy.registry.head_at(head.entries) != head:
                raise SpendLowered(f"{registry}: the backup does not go on from its head {head}")
        for name in place.names():
            path = place.ledger_path(name)
            for head in _heads(path, LedgerReader, lambda found: found.front.head):
                if copy.head_at(name, head.entries) != head:
                    raise SpendLowered(f"{path}: the backup does not go on from its head {head}")
            if _is_there(path) and _is_there(copy.ledger_path(name)):
                with copy.ledger(name) as later, place.ledger(name) as earlier:
                    check_spends(str(path), later.stream_rows(), earlier.stream_rows())


def _put_homes(copy: HomeFolder, place: HomeFolder) -> None:
    """Write down where streams belong, by the place and by the copy; before any of their rows."""
    try:
        joined_homes(copy.streams_path, place.streams_path)
    except LedgerMismatch as problem:
        raise SpendLowered(str(problem)) from None
    if copy.streams_path.exists():
        _replace(copy.streams_path, place.streams_path)


def _heads(path: Path, open_: Callable[[Path], File], read: Callable[[File], Head]) -> list[Head]:
    """The heads that a file has and had: its own, and the one beside it; one that may be lost."""
    found = [written_head(path)]
    if _is_there(path):
        try:
            with open_(path) as file:
                found.append(read(file))
        except CorruptData as problem:
            raise LedgerMismatch(
                f"{problem}. Move {path.name} away, leave {head_file(path).name} there, and "
                "restore again: the backup is then compared with that head"
            ) from None
    return [head for head in found if head is not None and head.entries > 0]


def _is_there(path: Path) -> bool:
    """Whether there is more than an empty file, which a refused run may leave."""
    return path.exists() and path.stat().st_size > 0


def check_spends(where: str, later: Iterable[Row], earlier: Iterable[Row]) -> None:
    """Refuse if a stream has spent more than later; both tell their streams in one order.

    Args:
        where: What they are of, for a message.
        later: Stream, moments, leakage and model-free leakage in the backup.
        earlier: The same at the place.
    """
    copied = iter(later)
    for stream, _, leakage, model_free, *_ in earlier:
        own = next((row for row in copied if row[0] >= stream), None)
        if own is None or own[0] != stream or own[2] < leakage or own[3] < model_free:
            raise SpendLowered(f"{where}: stream {stream!r} has spent more than in the backup")


def _replace(new: Path, target: Path) -> None:
    """Put a file in the place of an older one, whose log must not outlive it."""
    if target.exists():
        with contextlib.closing(sqlite3.connect(target, isolation_level=None)) as database:
            database.execute("PRAGMA journal_mode=DELETE")
    for beside in (log_of(target), target.with_name(f"{target.name}-shm")):
        beside.unlink(missing_ok=True)
    os.replace(new, target)
    sync_folders([target])
