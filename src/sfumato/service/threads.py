"""Threads for whoever looks, apart from those that the service itself needs to go on.

What reads ledgers may take seconds, and whoever may read may ask for it again and again: it has few
threads and few places to wait, of which one key has a share. Following the registry, finding the
release of a stream, readiness and metrics never wait behind it.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from sfumato.service.problems import busy

Found = TypeVar("Found")
_THREADS, _WAITING = 2, 32
_SHARE = 16
"""Places of one key, running and waiting: two open dashboards, and no more than half of all."""


class ReadingRoom:
    """A bounded number of readers, and of those who wait for a place.

    Args:
        threads: Readers at a time.
        waiting: Those who wait at most; whoever comes then is sent away.
        share: Places that one key may have, of both kinds.
    """

    def __init__(
        self, threads: int = _THREADS, waiting: int = _WAITING, share: int = _SHARE
    ) -> None:
        self._places, self._share = threads + waiting, share
        self._executor = ThreadPoolExecutor(threads, "readout")
        self._lock, self._taken = threading.Lock(), Counter[str]()

    async def read(self, key: str, act: Callable[[], Found]) -> Found:
        """What an act brings, in a thread of this room.

        A place is free again when the thread has ended, not when the asker went away: otherwise
        whoever asks and leaves would fill the room.

        Raises:
            HttpProblem: 429 if there is no place, or the key has its share of them.
        """
        with self._lock:
            if self._taken.total() >= self._places:
                raise busy(1, "too many readouts are waiting; ask again in a moment")
            if self._taken[key] >= self._share:
                raise busy(1, f"one access key must ask for at most {self._share} at a time")
            self._taken[key] += 1
        reading = self._executor.submit(act)
        reading.add_done_callback(lambda _: self._left(key))
        return await asyncio.wrap_future(reading)

    def _left(self, key: str) -> None:
        with self._lock:
            self._taken[key] -= 1
            if not self._taken[key]:
                del self._taken[key]

    def close(self) -> None:
        """Take nobody in any more; who waits is sent away."""
        self._executor.shutdown(wait=False, cancel_futures=True)


class SharedLooks:
    """Looks that many may ask for at once: each is taken once at a time, for all who wait."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(2, "look")
        self._running: dict[str, asyncio.Future[Any]] = {}

    async def look(self, name: str, act: Callable[[], Found]) -> Found:
        """What an act brings; whoever asks while it runs gets the same; in the event loop only."""
        running = self._running.get(name)
        if running is None or running.done():
            loop = asyncio.get_running_loop()
            running = self._running[name] = loop.run_in_executor(self._executor, act)
        found: Found = await asyncio.shield(running)
        return found
