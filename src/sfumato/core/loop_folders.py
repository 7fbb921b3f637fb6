"""Where compiled loops are kept: folders that nobody else can write to.

What is read from there is run, so a folder is used only if it, and every folder above it, belongs
to this user or to root and cannot be changed by others. Without anything said, loops are kept
beside their sources; where these cannot be written to, what is there already (an image that was
warmed when it was built) is still used, and the rest goes to the cache of the user.
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
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
        folder = str(Path(named).absolute())
        writes = folder if _writable(folder) else None
        if checked and not only_ours(folder):
            rule = "name a folder, below others, that only this user or root can change"
            raise InvalidParameter(checked, named, rule)
        return Places((folder,), writes, True)
    if _writable(beside):
        return Places((beside,), beside, False)
    own = _of_user()
    folder = own or _of_process()
    return Places((beside, folder), folder, True, lasting=own is not None)


def only_ours(folder: str) -> bool:
    """Whether nobody but this user and root can put anything into a folder.

    Examples:
        >>> only_ours("/no/such/folder"), only_ours("/tmp")
        (False, False)
    """
    lowest = Path(os.path.realpath(folder))
    trusted = {0, _user()}
    for place in (lowest, *lowest.parents):
        try:
            found = place.stat()
        except OSError:
            return False
        # Others may add to a folder above if they cannot rename what is not theirs, as in /tmp.
        harmless = place != lowest and found.st_mode & stat.S_ISVTX
        open_to_others = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not harmless
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in trusted or open_to_others:
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
    folder = str(base / "sfumato")
    if not os.path.isabs(folder) or not _writable(folder):
        return None
    return folder if only_ours(folder) else None


@cache
def _of_process() -> str:
    """A folder of this process alone: everything is compiled again by the next one."""
    folder = tempfile.mkdtemp(prefix="sfumato-loops-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
