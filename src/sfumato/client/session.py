"""A WebSocket for programs without asyncio: the same session, in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Coroutine, Iterable, Iterator
from concurrent.futures import Future
from functools import partial
from itertools import islice
from typing import Any, Self, TypeVar

from sfumato.client.async_session import AsyncSession
from sfumato.client.attempts import Patience
from sfumato.client.calls import single
from sfumato.client.client_errors import ServiceUnavailable
from sfumato.client.endpoint import Endpoint
from sfumato.client.messages import checked_events
from sfumato.client.wire import LiveEvent, Reply, fresh_id
from sfumato.core.errors import ForkedUse

Result = TypeVar("Result")
_TOGETHER = 256
"""Events that are handed to the other thread at a time."""


class Session:
    """Events on one WebSocket, as a context; made by `Client.session`. Safe in threads.

    Replies come in the order of the events. When the connection breaks, another is made after a
    wait that grows, and whatever has no reply is sent again: ids make that safe. If none can be
    made in time, everything that waits fails, and the session is over.

    Args:
        endpoint: The service.
        patience: How long and how often to try for a connection.
        in_flight: How many events may be without a reply at a time.

    Examples:
        >>> from sfumato.client.client import Client
        >>> with Client("http://localhost:8477", "sfk_a1_secret") as client:
        ...     session = client.session()
        ...     session.close()
    """

    def __init__(self, endpoint: Endpoint, patience: Patience, in_flight: int) -> None:
        self._session = AsyncSession(endpoint, patience, in_flight)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._closing = threading.Lock()
        self._closed = False
        self._process = os.getpid()

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._session.__aenter__())
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None and not self._closed:
                self._run(self._session.drain())
        finally:
            self.close()

    def release(
        self, stream: str, value: Any, *, id: str | None = None, time: str | None = None
    ) -> Reply:
        """Have one value released; calls in several threads are pipelined.

        Raises:
            ServiceRefused: If the service said no.
            ServiceUnavailable: If no connection could be made; the same id may be sent again.
        """
        event = LiveEvent(stream, value, fresh_id() if id is None else id, time)
        return single(self.send([event])[0].result())

    def send(self, events: Iterable[LiveEvent]) -> list[Future[Reply]]:
        """Send events, as soon as there is room for them; what will come back for each.

        A refusal is a reply, and not raised:

            with client.session() as session:
                [coming] = session.send([sf.LiveEvent("ann", "home", id="e1")])
                ...  # send others meanwhile
                reply = coming.result()
                print(reply.status, reply.released)
        """
        return self._run(self._put(checked_events(events)))

    def replies(self, events: Iterable[LiveEvent]) -> Iterator[Reply]:
        """The replies to events, in order, while later ones are on their way.

        Events may come from a generator, which is read as there is room:

            with client.session() as session:
                for reply in session.replies(sf.LiveEvent("ann", value) for value in values):
                    print(reply.released)
        """
        source, ahead = iter(events), deque[Future[Reply]]()
        while part := list(islice(source, _TOGETHER)):
            ahead.extend(self.send(part))
            while ahead and ahead[0].done():
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()

    async def _put(self, events: list[LiveEvent]) -> list[Future[Reply]]:
        made: list[Future[Reply]] = []
        for event in events:
            outer: Future[Reply] = Future()
            for inner in await self._session.send([event]):
                inner.add_done_callback(partial(_handed_over, outer))
            made.append(outer)
        return made

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        if os.getpid() != self._process:
            work.close()
            raise ForkedUse("session")
        if self._closed or not self._thread.is_alive():
            work.close()
            raise ServiceUnavailable("the session is not open")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        """End the session: what has no reply fails. May be called more than once."""
        with self._closing:
            if self._closed or os.getpid() != self._process:
                return
            if self._thread.is_alive():
                self._run(self._session.aclose())
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join()
            self._closed = True
            self._loop.close()


def _handed_over(outer: Future[Reply], done: asyncio.Future[Reply]) -> None:
    if done.cancelled():
        outer.cancel()
    elif (problem := done.exception()) is not None:
        outer.set_exception(problem)
    else:
        outer.set_result(done.result())
