"""Where compiled loops are kept: folders that nobody else can write to.

What is read from there is run, so a folder is used only if it, and every folder above it, belongs
to this user or to root and cannot be changed by others. It is used by the path that was checked,
without links. Without anything said, loops are kept beside their sources; where these cannot be
written to, what is there already (an image that was warmed when it was built) is still used, and
the rest goes to the cache of the user.

The folder beside the sources may belong to whoever installed them, and to his group: they can
change the sources. It is not used if everybody can write to it or move it. The same holds for the
folder of loops that a wheel brings along (`carried_loops`).
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path
from typing import NamedTuple

from sfumato.core.errors import InvalidParameter

CHOSEN = "SFUMATO_CACHE_DIR"
"""Names the folder of compiled loops in the environment; the only one that is used then."""


class Places(NamedTuple):
    """Folders of compiled loops.

    Attributes:
        reads: Where they are looked for, in order.
        writes: Where new ones go; None if nowhere.
        shared: Whether other versions of the program keep theirs there, too.
        lasting: Whether they are there for other processes.
    """

    reads: tuple[str, ...]
    writes: str | None
    shared: bool
    lasting: bool = True


def places(source: str) -> Places:
    """Where the loops of a source file are kept.

    Raises:
        InvalidParameter: If the folder that the environment names could be changed by others.
    """
    beside = str(Path(source).parent / "__pycache__")
    named = os.environ.get(CHOSEN) or os.environ.get("NUMBA_CACHE_DIR")
    return _places(beside, named, CHOSEN if os.environ.get(CHOSEN) else None)


@cache
def _places(beside: str, named: str | None, checked: str | None) -> Places:
    if named:
        folder = os.path.realpath(named)
        writes = folder if _writable(folder) else None
        if only_ours(folder):
            return Places((folder,), writes, True)
        if checked:
            rule = "name a folder, below others, that only this user or root can change"
            raise InvalidParameter(checked, named, rule)
    beside = os.path.realpath(beside)
    writable = _writable(beside)
    installed = [beside] if _closed(beside, stat.S_IWOTH) else []
    if installed and writable:
        return Places((beside,), beside, False)
    own = _of_user()
    new = own or _of_process()
    return Places((*installed, *filter(None, [new])), new, True, lasting=own is not None)


def only_ours(folder: str) -> bool:
    """Whether nobody but this user and root can put anything into a folder; not if it is a link.

    Examples:
        >>> only_ours("/no/such/folder"), only_ours("/tmp")
        (False, False)
    """
    return _closed(folder, stat.S_IWGRP | stat.S_IWOTH, {0, _user()})


def as_safe_as(source: str, folder: str) -> bool:
    """Whether a folder belongs to the owner of a source file, and not everybody can change it.

    Who can change the sources may change what was compiled from them, too.

    Examples:
        >>> as_safe_as(__file__, "/no/such/folder"), as_safe_as(__file__, "/tmp")
        (False, False)
    """
    try:
        same = os.lstat(source).st_uid == os.lstat(folder).st_uid
    except OSError:
        return False
    return same and _closed(folder, stat.S_IWOTH)


def _closed(folder: str, others: int, trusted: Collection[int] | None = None) -> bool:
    """Whether a folder and all above it are no links, and closed to others; whose they may be."""
    lowest = Path(folder)
    # From above: nobody can exchange what stands in a folder that was found closed.
    for place in (*reversed(lowest.parents), lowest):
        try:
            found = place.lstat()
        except OSError:
            return False
        # Others may add to a folder above if they cannot rename what is not theirs, as in /tmp.
        harmless = place != lowest and found.st_mode & stat.S_ISVTX
        open_to_others = found.st_mode & others and not harmless
        strange = trusted is not None and found.st_uid not in trusted
        if not stat.S_ISDIR(found.st_mode) or strange or open_to_others:
            return False
    return True


def _user() -> int:
    ask: Callable[[], int] = getattr(os, "geteuid", lambda: 0)
    return ask()


def _writable(folder: str) -> bool:
    """Whether something can be written there; the folder is made, for this user alone."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


@cache
def _of_user() -> str | None:
    """The cache of the user, if there is a home and it is the user's own."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(named) if os.path.isabs(named) else Path("~/.cache").expanduser()
    if not base.is_absolute():
        return None
    folder = os.path.realpath(base / "sfumato")
    return folder if _writable(folder) and only_ours(folder) else None


@cache
def _of_process() -> str | None:
    """A folder of this process alone: everything is compiled again by the next one."""
    try:
        folder = os.path.realpath(tempfile.mkdtemp(prefix="sfumato-loops-"))
    except OSError:
        return None
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder if only_ours(folder) else None
