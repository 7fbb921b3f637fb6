"""Files that others read: written aside, by one writer at a time, named when complete.

Aside: a new file in the folder of the target, under a name that nobody can foresee, made with
O_EXCL and O_NOFOLLOW and readable by its owner alone. A link or a file that somebody put in the
way is never written through.

Alone: a lock, `.NAME.lock`, is held from before the first byte until the name points to the last
one. A second writer is refused. The lock ends with its process, however that ends, and who
takes it next removes what a killed writer left aside.

Whole: the content is on disk before the name points to it, and the folder is on disk after.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from sfumato.core.errors import FileInUse, InvalidParameter

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOCK = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_PRIVATE = 0o600

_holders: dict[Path, tuple[int, int]] = {}
"""Targets locked by this process: which process (a child of a fork is another) and thread."""
_asides: set[Path] = set()
"""Files being written aside by this process; writing to one of them whole is writing to it."""
_mask = threading.Lock()


def write_whole(path: str | Path, data: bytes) -> None:
    """Replace a file by new content in one step, on disk before the name points to it.

    Raises:
        FileInUse: If somebody else is writing it.
    """
    with whole(path) as aside:
        aside.write_bytes(data)


@contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """A file aside to write into, which takes the name when the block has ended well.

    Examples:
        >>> path = getfixture("tmp_path") / "note.txt"
        >>> with whole(path) as aside:
        ...     count = aside.write_text("all")
        ...     path.exists()
        False
        >>> path.read_text()
        'all'
    """
    with together([path]) as [aside]:
        yield aside


@contextmanager
def together(paths: Sequence[str | Path]) -> Iterator[list[Path]]:
    """Files aside that take their names when the block has ended well: all of them, or none.

    Args:
        paths: The files, in the order in which they take their names. What must never stand
            without the others, a table that needs its certificate, comes last: older files are put
            aside first, the last one before the others, so that who is killed between two moves
            leaves a certificate without a table, but never a table without its own certificate.

    Raises:
        FileInUse: If somebody else is writing one of them.
    """
    targets = [_target(path) for path in paths]
    if all(target in _asides for target in targets):
        yield targets  # a part of what is written together already
        return
    asides = {target: _beside(target) for target in targets}
    if len(asides) < len(targets):
        raise InvalidParameter("paths", [str(path) for path in paths], "be files of their own")
    with ExitStack() as stack:
        for target in targets:
            stack.enter_context(locked(target))
        try:
            for target, aside in asides.items():
                _asides.add(aside)
                os.close(_opened(aside, _NEW, target))
            yield list(asides.values())
            for target, aside in asides.items():
                _settle(aside, _mode(target))
            _move(asides)
        finally:
            for aside in asides.values():
                aside.unlink(missing_ok=True)
                _asides.discard(aside)


@contextmanager
def locked(path: str | Path) -> Iterator[None]:
    """Keep every other thread and process from writing a file, or from holding it.

    The same thread may lock a file again, and write it. A child of a fork does not inherit the
    lock: it is refused like anybody else.

    Raises:
        FileInUse: If it is held already. There is no waiting.

    Examples:
        >>> path = getfixture("tmp_path") / "year.state"
        >>> with locked(path):
        ...     write_whole(path, b"all of it")
    """
    target = _target(path)
    me = (os.getpid(), threading.get_ident())
    if _holders.get(target) == me:
        yield
        return
    handle = _grip(target)
    _holders[target] = me
    try:
        _sweep(target)
        yield
    finally:
        if me[0] == os.getpid():
            del _holders[target]
            _lock_of(target).unlink(missing_ok=True)
        os.close(handle)


def _target(path: str | Path) -> Path:
    """Where the content goes: a link stays a link, and what it leads to is written."""
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise InvalidParameter("path", str(path), "not be a link that leads to itself")
    if target.is_dir() or not target.parent.is_dir():
        raise InvalidParameter("path", str(path), "name a file in a folder that exists")
    if target.exists() and not target.is_file():
        raise InvalidParameter("path", str(path), "name a plain file, no device and no pipe")
    return target


def _beside(target: Path) -> Path:
    """A new name in the same folder; the same suffix, which tells writers the format."""
    return target.with_name(f".partial.{secrets.token_hex(8)}.{target.name}")


def _lock_of(target: Path) -> Path:
    return target.with_name(f".{target.name}.lock")


def _grip(target: Path) -> int:
    name = _lock_of(target)
    while True:
        try:
            handle = _opened(name, _LOCK, target)
        except OSError as problem:
            if problem.errno != errno.ELOOP:
                raise
            raise InvalidParameter("path", str(name), "not be a link: it is a lock") from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever held it before may have removed it while this process opened it.
            if _same(name, handle):
                return handle
        except BaseException as problem:
            os.close(handle)
            if isinstance(problem, BlockingIOError):
                raise FileInUse(str(target)) from None
            raise
        os.close(handle)


def _opened(path: Path, flags: int, target: Path) -> int:
    """A new file for its owner alone; a problem is told with the name that the user knows."""
    try:
        return os.open(path, flags, _PRIVATE)
    except OSError as problem:
        raise type(problem)(problem.errno, problem.strerror, str(target)) from None


def _same(name: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.stat(name, follow_symlinks=False), os.fstat(handle))
    except FileNotFoundError:
        return False


def _sweep(target: Path) -> None:
    """Remove what a killed writer left; whoever holds the lock is the only writer."""
    left = re.compile(rf"\.partial\.[0-9a-f]{{16}}\.{re.escape(target.name)}")
    with os.scandir(target.parent) as entries:
        stale = [entry.path for entry in entries if left.fullmatch(entry.name)]
    for path in stale:
        with suppress(OSError):  # another user's litter is in nobody's way
            os.unlink(path)


def _mode(target: Path) -> int:
    """Who may read it: as before, or as of any new file."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode) & 0o777
    with _mask:  # there is no way to read the mask without setting it
        mask = os.umask(0o077)
        os.umask(mask)
    return 0o666 & ~mask


def _settle(aside: Path, mode: int) -> None:
    handle = os.open(aside, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchmod(handle, mode)
        os.fsync(handle)
    finally:
        os.close(handle)


def _move(asides: dict[Path, Path]) -> None:
    """Give the files their names; a single one in one step, several as `together` says."""
    *others, last = asides
    parked: dict[Path, Path] = {}
    try:
        for target in (last, *others) if others else ():
            if target.exists():
                parked[target] = _beside(target)
                os.replace(target, parked[target])
        for target in others:
            os.replace(asides[target], target)
        sync_folders(others)  # a power cut must not keep the last move and lose one before
        os.replace(asides[last], last)
    except BaseException:
        if asides[last].exists():
            _take_back(asides, parked)
        raise
    finally:
        for old in parked.values():
            old.unlink(missing_ok=True)
    sync_folders([last])


def _take_back(asides: dict[Path, Path], parked: dict[Path, Path]) -> None:
    for target, aside in asides.items():
        if target in parked and parked[target].exists():
            os.replace(parked[target], target)
        elif target not in parked and not aside.exists():
            target.unlink(missing_ok=True)


def sync_folders(targets: Sequence[Path]) -> None:
    """Have the names of files or folders on disk, in the folders that hold them."""
    for folder in {target.parent for target in targets}:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        except OSError as problem:
            if problem.errno != errno.EINVAL:  # some shared disks cannot do this for a folder
                raise
        finally:
            os.close(handle)
