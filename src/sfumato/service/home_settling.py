"""Homes of new streams, written down for all askers who wait for one at once.

A commit takes as long for a thousand streams as for one. While one is on its way others ask; the
next takes all of them. Nobody waits for a clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeAlias

Homes: TypeAlias = dict[str, str]
_Asker: TypeAlias = tuple[Sequence[str], asyncio.Future[Homes]]


class HomeSettling:
    """Looks homes of streams up, and writes down those that are missing; in the event loop.

    Args:
        settle: The homes of some streams, written down for those that have none; called in a
            thread, once at a time.

    Examples:
        >>> async def three_askers() -> list[int]:
        ...     rounds = []
        ...     def settle(streams):
        ...         rounds.append(len(streams))
        ...         return dict.fromkeys(streams, "v1")
        ...     settling = HomeSettling(settle)
        ...     await asyncio.gather(*(settling.homes([one]) for one in ("ann", "bob", "eve")))
        ...     return rounds
        >>> asyncio.run(three_askers())
        [3]
    """

    def __init__(self, settle: Callable[[list[str]], Homes]) -> None:
        self._settle = settle
        self._askers: list[_Asker] = []
        self._work: asyncio.Task[None] | None = None

    async def homes(self, streams: Sequence[str]) -> Homes:
        """The homes of some streams, durable; fails as `settle` fails for these streams."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Homes] = loop.create_future()
        self._askers.append((streams, future))
        if self._work is None or self._work.done():
            self._work = loop.create_task(self._rounds())
        return await future

    async def _rounds(self) -> None:
        while self._askers:
            askers, self._askers = self._askers, []
            if not await self._settled(askers) and len(askers) > 1:
                # What is wrong with the streams of one asker must not be told to another.
                for asker in askers:
                    await self._settled([asker])

    async def _settled(self, askers: Sequence[_Asker]) -> bool:
        """Answer askers together; whether they have answers, or, one alone, why not."""
        names = sorted({stream for streams, _ in askers for stream in streams})
        try:
            found = await asyncio.to_thread(self._settle, names)
        except Exception as problem:
            if len(askers) == 1 and not askers[0][1].done():
                askers[0][1].set_exception(problem)
            return False
        for streams, future in askers:
            if not future.done():  # else he went away
                future.set_result({stream: found[stream] for stream in streams})
        return True
