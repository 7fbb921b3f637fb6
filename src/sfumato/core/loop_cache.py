"""Compiled loops on disk: which are fresh, and who compiles which.

Numba asks whether the file of a loop has changed. A loop holds the code of all loops that it
calls, and the constants that it names, wherever they stand: here these are asked for, too. Two
processes that need the same loop at the same time compile it once: the second one waits. What
cannot be read is compiled, what cannot be written is not kept: no loop fails because of its files.
Loops for this processor come first, then those that the package brings along (`carried_loops`).
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import sys
import time
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.core.caching import IndexDataCacheFile
from numba.core.compiler import CompileResult

from sfumato.core.carried_loops import carried
from sfumato.core.compile_events import compiling
from sfumato.core.loop_folders import Places, places

_PAUSE, _PATIENCE = 0.02, 60.0
"""How often to ask whether another process is done, and when to compile all the same: seconds."""


@cache
def _digest(path: str) -> bytes:
    """What a file holds."""
    return hashlib.sha256(Path(path).read_bytes()).digest()


def _names(code: CodeType) -> Iterator[str]:
    """Global names that a function uses, and those within it."""
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names(each)


def ingredients(loop: FunctionType) -> dict[str, bytes]:
    """Everything of the program that is compiled into a loop: files by path, constants by value."""
    package = loop.__module__.partition(".")[0]
    parts: dict[str, bytes] = {}
    seen: set[int] = set()
    waiting = [loop]
    while waiting:
        function = waiting.pop()
        if id(function) in seen:
            continue
        seen.add(id(function))
        parts[function.__module__] = _digest(function.__code__.co_filename)
        for name in _names(function.__code__):
            value = function.__globals__.get(name)
            # Of a loop, or of what numba writes down as instructions.
            value = getattr(value, "py_func", getattr(value, "__wrapped__", value))
            if isinstance(value, FunctionType) and value.__module__.partition(".")[0] == package:
                waiting.append(value)
            elif isinstance(value, ModuleType) and value.__name__.partition(".")[0] == package:
                parts[value.__name__] = _digest(str(value.__file__))
            elif isinstance(value, bool | int | float | str | tuple):
                parts[f"{function.__qualname__}.{name}"] = repr(value).encode()
            elif isinstance(value, np.ndarray):
                parts[f"{function.__qualname__}.{name}"] = value.tobytes()
    return parts


class _Claims:
    """Which loops this process is compiling: one byte of one locked file stands for each."""

    def __init__(self, folder: str) -> None:
        path = os.path.join(folder, "loops.lock")
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def take(self, place: int) -> bool:
        """Wait until no other process compiles a loop; False if that takes too long."""
        for _ in range(round(_PATIENCE / _PAUSE)):
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
            except (BlockingIOError, PermissionError):
                time.sleep(_PAUSE)
            except OSError:
                return False  # a file system without locks
            else:
                return True
        return False

    def drop(self, place: int) -> None:
        """Let others compile a loop; nothing happens if it was not taken."""
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, place)


@cache
def _claims(folder: str, process: int) -> _Claims | None:
    """The locks of a folder; None where there are none."""
    try:
        return _Claims(folder)
    except OSError:
        return None


class _Found(NamedTuple):
    """One loop in its folders: new forms go to the last of `files`, none to what was brought."""

    files: tuple[IndexDataCacheFile, ...]
    brought: tuple[IndexDataCacheFile, tuple[str, str]] | None
    name: str
    place: int


class LoopCache:
    """The compiled forms of one loop on disk, as numba's dispatchers ask for them."""

    def __init__(self, loop: Any) -> None:
        self._loop: FunctionType = loop

    @property
    def cache_path(self) -> str | None:
        """Where new ones are kept."""
        return self._places.writes

    @cached_property
    def _places(self) -> Places:
        return places(self._loop.__code__.co_filename)

    @cached_property
    def _found(self) -> _Found:
        loop = self._loop
        stamp = hashlib.sha256(repr((numba.__version__, loop.__code__.co_firstlineno)).encode())
        for name, content in sorted(ingredients(loop).items()):
            stamp.update(repr((name, content)).encode())
        python = "py{}{}".format(*sys.version_info)
        name = f"{loop.__module__}.{loop.__qualname__}-{stamp.hexdigest()[:16]}.{python}"
        folders = dict.fromkeys((*self._places.reads, *filter(None, [self._places.writes])))
        files = tuple(IndexDataCacheFile(each, name, stamp.digest()) for each in folders)
        brought = None
        if (own := carried()) is not None:
            brought = IndexDataCacheFile(own.folder, name, stamp.digest()), own.processor
        return _Found(files, brought, name, int.from_bytes(stamp.digest()[:5], "big"))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled form for arguments of some types; if there is none, compiling is claimed."""
        target_context.refresh()
        made = self._read(sig, target_context)
        if made is None:
            compiling(self._loop.__qualname__)
            if (claims := self._locks()) is not None:
                claims.take(self._found.place)
                made = self._read(sig, target_context)
        return made

    def has(self, sig: Any, target_context: Any) -> bool:
        """Whether a compiled form for arguments of some types is on disk."""
        for file, key in self._forms(sig, target_context):
            with contextlib.suppress(Exception):  # a damaged file is as good as none
                if key in file._load_index():
                    return True
        return False

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled form, if there is a place and room for it."""
        folder = self._places.writes
        if folder is None or data.library.has_dynamic_globals:
            return
        with contextlib.suppress(OSError):  # it is compiled all the same: a full disk, say
            self._forget_older(Path(folder))
            self._forget_damaged(Path(folder))
            self._found.files[-1].save((sig, data.codegen.magic_tuple()), data._reduce())

    def indexes(self) -> list[str]:
        """Files on disk that list compiled forms of this loop."""
        brought = self._found.brought
        files = (*self._found.files, *(brought[:1] if brought else ()))
        return [each._index_path for each in files if Path(each._index_path).exists()]

    def released(self) -> None:
        """Let others compile this loop."""
        if (claims := self._locks()) is not None:
            claims.drop(self._found.place)

    def _forms(self, sig: Any, target_context: Any) -> Iterator[tuple[IndexDataCacheFile, Any]]:
        """Where a compiled form may be, and its key there: for this processor, then for many."""
        machine = target_context.codegen().magic_tuple()
        for file in self._found.files:
            yield file, (sig, machine)
        if self._found.brought is not None:
            file, processor = self._found.brought
            yield file, (sig, (machine[0], *processor))

    def _read(self, sig: Any, target_context: Any) -> Any:
        for file, key in self._forms(sig, target_context):
            # Bytes of a damaged file may raise anything: it is as good as none, and written anew.
            with contextlib.suppress(Exception):
                if data := file.load(key):
                    return CompileResult._rebuild(target_context, *data)
        return None

    def _locks(self) -> _Claims | None:
        folder = self._places.writes
        return None if folder is None else _claims(folder, os.getpid())

    def _forget_older(self, folder: Path) -> None:
        """Remove what was compiled from older sources, where no other version keeps its own."""
        if not self._places.shared:
            for old in folder.glob(f"{self._loop.__module__}.{self._loop.__qualname__}-*.nb[ic]"):
                if not old.name.startswith(self._found.name):
                    old.unlink(missing_ok=True)

    def _forget_damaged(self, folder: Path) -> None:
        """Begin anew if the list of compiled forms cannot be read.

        The forms go first: a new list must never name a file that holds another form.
        """
        index = self._found.files[-1]
        try:
            index._load_index()
        except Exception:  # bytes of a damaged file may raise anything
            for form in folder.glob(f"{self._found.name}.*.nbc"):
                form.unlink(missing_ok=True)
            index.flush()
