"""Rows as they arrive: in groups between which a request to stop is heard, and ticks of a clock."""

from __future__ import annotations

import contextlib
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

from sfumato.tables.readers import CHUNK_ROWS, Chunk

_GROUP_SECONDS, _LONGEST_TICK = 0.25, 3600.0


class Interruptible:
    """Turns SIGINT and SIGTERM into a request that is honoured between groups.

    While `waiting()` for input, which may take for ever, the signal interrupts at once.

    Examples:
        >>> with Interruptible() as stop:
        ...     stop.requested
        False
    """

    def __init__(self) -> None:
        self.requested = False
        self._waiting = False

    def __enter__(self) -> Interruptible:
        self._before = {}
        # Signals belong to the main thread; elsewhere the caller decides.
        if threading.current_thread() is threading.main_thread():
            for kind in (signal.SIGINT, signal.SIGTERM):
                self._before[kind] = signal.signal(kind, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for kind, handler in self._before.items():
            signal.signal(kind, handler)

    def _handle(self, kind: int, frame: FrameType | None) -> None:
        self.requested = True
        if self._waiting:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Input is awaited: nothing is under way that a signal could tear apart."""
        self._waiting = True
        try:
            if self.requested:
                raise KeyboardInterrupt
            yield
        except KeyboardInterrupt:
            self.requested = True
        finally:
            self._waiting = False


def groups(chunks: Iterator[Chunk | None], stop: Interruptible) -> Iterator[Chunk | None]:
    """Chunks in parts that take a fraction of a second, so that a request to stop is heard."""
    size = 16
    for chunk in chunks:
        if chunk is None:
            yield None
            continue
        start = 0
        while start < len(chunk) and not stop.requested:
            began = time.monotonic()
            part = {name: column[start : start + size] for name, column in chunk.columns.items()}
            yield Chunk(chunk.first + start, part)
            start += size
            quick = time.monotonic() - began < _GROUP_SECONDS
            size = min(2 * size, CHUNK_ROWS) if quick else max(size // 2, 1)


def until_stopped(chunks: Iterator[Chunk], stop: Interruptible) -> Iterator[Chunk]:
    """Chunks until the end or a request to stop."""
    while not stop.requested:
        chunk = None
        with stop.waiting():
            chunk = next(chunks, None)
        if chunk is None:
            return
        yield chunk


def with_ticks(
    chunks: Iterator[Chunk], stop: Interruptible, patience: Callable[[], float | None]
) -> Iterator[Chunk | None]:
    """The same, with a None whenever `patience()` seconds have passed without a row.

    Args:
        chunks: The rows; read by a thread of their own, a few chunks ahead.
        stop: Ends it.
        patience: How long to wait for the next row; None for ever.
    """
    arrived: queue.Queue[Chunk | BaseException | None] = queue.Queue(maxsize=8)

    def read() -> None:
        try:
            for chunk in chunks:
                arrived.put(chunk)
            arrived.put(None)
        except BaseException as problem:  # whatever it is, the main thread raises it
            arrived.put(problem)

    threading.Thread(target=read, daemon=True).start()
    while not stop.requested:
        found: Chunk | BaseException | None = None
        try:
            with stop.waiting():
                due = patience()
                found = arrived.get(timeout=None if due is None else min(due, _LONGEST_TICK))
        except queue.Empty:
            yield None
            continue
        if isinstance(found, BaseException):
            raise found
        if found is None:
            return
        yield found
