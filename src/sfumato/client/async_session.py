"""A WebSocket on which events are pipelined; what has no reply when it breaks is sent again."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Iterable
from typing import Any, Self

from sfumato.client.attempts import Attempts, Patience
from sfumato.client.calls import single
from sfumato.client.client_errors import ServiceRefused, ServiceUnavailable
from sfumato.client.endpoint import Endpoint, missing_library
from sfumato.client.messages import checked_events
from sfumato.client.pipeline import NotStored, Pipeline
from sfumato.client.wire import RETRIED, LiveEvent, Problem, Reply, fresh_id
from sfumato.core import checks
from sfumato.core.errors import SfumatoError

try:
    from websockets.asyncio.client import ClientConnection, connect, unix_connect
    from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
except ModuleNotFoundError as problem:
    raise missing_library(problem.name) from None

_log = logging.getLogger("sfumato.client.socket")
_log.setLevel(logging.INFO)  # below it the library writes frames, and with them true values
_BAD_KEY, _TOO_LARGE = 1008, 1009
_FAREWELLS: dict[int | None, Problem] = {
    _BAD_KEY: Problem("urn:sfumato:problem:access", "the access key was not taken", 401),
    _TOO_LARGE: Problem("urn:sfumato:problem:size", "an event is too large", 413),
}
_OVER_LIMIT, _OVER_LIMIT_WAIT = 4429, 1.0
_MOST_BYTES = 1 << 24
"""Of one message of the service: replies to thousands of events."""
MOST_IN_FLIGHT = 4096


class AsyncSession:
    """Events on one WebSocket, as a context; made by `AsyncClient.session`.

    Replies come in the order of the events. When the connection breaks, another is made after a
    wait that grows, and whatever has no reply is sent again: ids make that safe. If none can be
    made in time, everything that waits fails, and the session is over.

    Args:
        endpoint: The service.
        patience: How long and how often to try for a connection.
        in_flight: How many events may be without a reply at a time.

    Examples:
        >>> from sfumato.client.async_client import AsyncClient
        >>> client = AsyncClient("http://localhost:8477", "sfk_a1_secret")
        >>> isinstance(client.session(), AsyncSession)
        True
    """

    def __init__(self, endpoint: Endpoint, patience: Patience, in_flight: int) -> None:
        checks.count("in_flight", in_flight, at_most=MOST_IN_FLIGHT)
        self._endpoint, self._patience = endpoint, patience
        self._room = asyncio.Semaphore(in_flight)
        self._pipeline = Pipeline()
        self._more = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._waiting: set[asyncio.Future[Reply]] = set()
        self._over: SfumatoError | None = None
        self._runner: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._runner = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            await self.drain()
        await self.aclose()

    async def drain(self) -> None:
        """Wait until everything that was sent has a reply, or the session is over."""
        await self._empty.wait()

    async def release(
        self, stream: str, value: Any, *, id: str | None = None, time: str | None = None
    ) -> Reply:
        """Have one value released; several calls at once are pipelined.

        Raises:
            ServiceRefused: If the service said no.
            ServiceUnavailable: If no connection could be made; the same id may be sent again.
        """
        event = LiveEvent(stream, value, fresh_id() if id is None else id, time)
        return single(await (await self.send([event]))[0])

    async def send(self, events: Iterable[LiveEvent]) -> list[asyncio.Future[Reply]]:
        """Send events, as soon as there is room for them; what will come back for each.

        A refusal is a reply, and not raised.
        """
        return [await self._put(event) for event in checked_events(events)]

    async def replies(self, events: Iterable[LiveEvent]) -> AsyncIterator[Reply]:
        """The replies to events, in order, while later ones are on their way."""
        ahead: deque[asyncio.Future[Reply]] = deque()
        for event in events:
            while ahead and (ahead[0].done() or self._room.locked()):
                yield await ahead.popleft()
            ahead.extend(await self.send([event]))
        while ahead:
            yield await ahead.popleft()

    async def _put(self, event: LiveEvent) -> asyncio.Future[Reply]:
        await self._room.acquire()
        if self._runner is None or self._over is not None:
            self._room.release()
            raise self._over or ServiceUnavailable("the session must be entered first")
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        self._empty.clear()

        def heard(reply: Reply) -> None:
            if not future.done():
                future.set_result(reply)
            self._done(future)

        self._pipeline.add(event, heard)
        self._more.set()
        return future

    def _done(self, future: asyncio.Future[Reply]) -> None:
        self._waiting.discard(future)
        self._room.release()
        if not self._waiting:
            self._empty.set()

    # The connection -------------------------------------------------------------------------------

    async def _run(self) -> None:
        """Keep a connection while the session lasts; end it for everybody if there can be none."""
        try:
            await self._reconnecting()
        except SfumatoError as problem:
            self._end(problem)
        except asyncio.CancelledError:
            self._end(ServiceUnavailable("the session was closed"))
            raise

    async def _reconnecting(self) -> None:
        attempts = Attempts(self._patience)
        while True:
            if not len(self._pipeline):  # nobody waits: a service may be away meanwhile
                await self._more.wait()
                attempts.begin()
            why, asked = await self._connection(attempts)
            await asyncio.sleep(attempts.wait(why, asked))

    async def _connection(self, attempts: Attempts) -> tuple[str, float]:
        """One connection until it ends; why it did, and how long to wait at least.

        A refusal that stays is raised.
        """
        status: int | None = None
        try:
            async with self._connect(attempts.left()) as socket:
                self._pipeline.reconnected()
                await self._exchanged(socket, attempts)
                status = socket.close_code
        except NotStored as problem:
            return str(problem), 0.0
        except ConnectionClosed as problem:
            status = None if problem.rcvd is None else problem.rcvd.code
        except InvalidStatus as problem:
            status = problem.response.status_code
        except (WebSocketException, OSError, TimeoutError) as problem:
            return type(problem).__name__, 0.0
        if status in _FAREWELLS:
            raise ServiceRefused(_FAREWELLS[status])
        if status is not None and 400 <= status < 500 and status not in RETRIED:
            raise ServiceRefused(Problem(title="no socket was opened", status=status))
        return f"closed with {status}", _OVER_LIMIT_WAIT if status == _OVER_LIMIT else 0.0

    def _connect(self, seconds: float) -> connect:
        target = self._endpoint.socket + self._endpoint.target("socket")
        how: dict[str, Any] = {
            "additional_headers": self._endpoint.headers,
            "open_timeout": seconds,
            "close_timeout": seconds,
            "max_size": _MOST_BYTES,
            "proxy": None,  # true values go where the URL says
            "compression": None,  # what is compressed together can be told from its length
            "logger": _log,
        }
        if self._endpoint.path is not None:
            return unix_connect(self._endpoint.path, target, **how)
        return connect(target, ssl=self._endpoint.tls, **how)

    async def _exchanged(self, socket: ClientConnection, attempts: Attempts) -> None:
        """Send and take until one of the two fails."""
        sender = asyncio.create_task(self._sent(socket))
        try:
            async for message in socket:
                self._pipeline.take(message)
                attempts.begin()
        finally:
            sender.cancel()
            await asyncio.gather(sender, return_exceptions=True)

    async def _sent(self, socket: ClientConnection) -> None:
        while True:
            while not self._pipeline.idle:
                await socket.send(self._pipeline.message())
            self._more.clear()
            await self._more.wait()

    def _end(self, problem: SfumatoError) -> None:
        """Nothing will come any more: tell everybody who waits."""
        self._over = problem
        self._pipeline = Pipeline()
        for future in [*self._waiting]:
            if not future.done():
                future.set_exception(problem)
                future.exception()  # whoever waits is told; nobody else needs to be
            self._done(future)

    async def aclose(self) -> None:
        """End the session: what has no reply fails. May be called more than once."""
        if self._runner is not None and not self._runner.done():
            self._runner.cancel()
            await asyncio.gather(self._runner, return_exceptions=True)
        self._over = self._over or ServiceUnavailable("the session was closed")
