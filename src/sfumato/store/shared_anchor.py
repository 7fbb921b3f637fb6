"""Heads of what a database holds, kept by a node: a database that was put back is refused.

`chain.Anchor` is held by the one process that writes a file. A database has many writers, and
several nodes of one machine may share a folder of heads: each says how far it saw the database
come, and a head only ever grows.
"""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path
from typing import Self

from sfumato.core.errors import InvalidParameter
from sfumato.store.chain import head_file, head_line, read_head
from sfumato.store.protocol import Head, LedgerMismatch

_FILE = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class SharedAnchor:
    """The head of a log in a database, as far as nodes of this machine saw it.

    Args:
        path: Of the log; the file is `PATH.head`.

    Examples:
        >>> from sfumato.store.chain import written_head
        >>> path = getfixture("tmp_path") / "city"
        >>> with SharedAnchor(path) as one, SharedAnchor(path) as other:
        ...     one.write(Head(3, bytes(32)))
        ...     other.write(Head(2, bytes(32)))
        >>> written_head(path).entries
        3
    """

    def __init__(self, path: Path) -> None:
        self._path = head_file(path)
        self._handle = os.open(self._path, _FILE, 0o600)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, head: Head) -> None:
        """Say that so many rows are stored; a power cut may lose this, and is no harm."""
        if not head.entries:
            return  # nothing can be forgotten of a log without rows
        fcntl.flock(self._handle, fcntl.LOCK_EX)
        try:
            # Another node may have come further, and said so.
            line = head_line(head)
            before = read_head(os.pread(self._handle, 2 * len(line), 0), self._path)
            if before is None or before.entries <= head.entries:
                os.pwrite(self._handle, line, 0)
        finally:
            fcntl.flock(self._handle, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the file; what was written stays."""
        if self._handle >= 0:
            os.fsync(self._handle)
            os.close(self._handle)
            self._handle = -1


def anchor_folder(path: Path) -> Path:
    """A folder for heads, for its owner alone; made where there is none.

    Raises:
        InvalidParameter: If it cannot be made.
        LedgerMismatch: If others may enter it.
    """
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        usable = path.is_dir() and os.access(path, os.W_OK | os.X_OK)
    except OSError:
        usable = False
    if not usable:
        rule = "be a folder that can be made and written to (--anchor-folder names another)"
        raise InvalidParameter("anchor folder", str(path), rule)
    mode = path.stat().st_mode
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        rule = f"{path}: nobody but its owner may enter a folder of heads (chmod 700)"
        raise LedgerMismatch(f"{rule}; it is {stat.filemode(mode)}")
    return path
