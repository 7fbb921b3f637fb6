"""Ctrl-C and a polite kill: stop between two groups of rows, never inside one."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


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
