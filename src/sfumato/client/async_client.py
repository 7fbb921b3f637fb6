"""A client of a service for programs that do other things while an answer is on its way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable
from typing import Any, Self

from sfumato.client.async_session import AsyncSession
from sfumato.client.attempts import Attempts
from sfumato.client.calls import (
    PAGE,
    Call,
    Came,
    Exchange,
    document,
    finished,
    rows_of,
    single,
)
from sfumato.client.endpoint import missing_library
from sfumato.client.messages import checked_events, decoded
from sfumato.client.questions import Questions
from sfumato.client.wire import MOST_EVENTS, LiveEvent, Reply, fresh_id

try:
    import httpx
except ModuleNotFoundError as problem:
    raise missing_library(problem.name) from None


class AsyncClient(Questions[Coroutine[Any, Any, dict[str, Any]]]):
    """The same as `Client`, for asyncio; used in the loop that it was first used in.

    Args:
        url: https://host, http://localhost:8477, or unix:/run/sfumato.sock.
        key: The access key, `sfk_<id>_<secret>`.
        release: Where events go; the default release, or where their stream began, if None.
        timeout: Seconds that one attempt may take.
        retries: How many attempts may follow the first.
        deadline: Seconds that all attempts of a call may take together.
        ca: File of certificates that vouch for the service, or a whole TLS context.
        cleartext: Whether true values may go over a network unencrypted.

    Examples:
        >>> AsyncClient("http://localhost:8477", "sfk_a1_secret")
        AsyncClient('http://localhost:8477')
    """

    def _open(self) -> None:
        self._http = httpx.AsyncClient(
            base_url=self._endpoint.http,
            headers=self._endpoint.headers,
            transport=httpx.AsyncHTTPTransport(
                verify=self._endpoint.tls or False, uds=self._endpoint.path, trust_env=False
            ),
            trust_env=False,
        )

    # Events ---------------------------------------------------------------------------------------

    async def release(
        self, stream: str, value: Any, *, id: str | None = None, time: str | None = None
    ) -> Reply:
        """Have one value released; see `Client.release`."""
        event = LiveEvent(stream, value, fresh_id() if id is None else id, time)
        return single((await self.release_many([event]))[0])

    async def release_many(self, events: Iterable[LiveEvent]) -> list[Reply]:
        """Have values released; see `Client.release_many`."""
        sent, replies = checked_events(events), list[Reply]()
        for start in range(0, len(sent), MOST_EVENTS):
            replies += await self._exchanged(Exchange(sent[start : start + MOST_EVENTS]))
        return replies

    async def _exchanged(self, exchange: Exchange) -> list[Reply]:
        attempts = Attempts(self._patience)
        target = self._endpoint.target("events")
        while not exchange.done:
            exchange.take(await self._asked(Call("POST", target, exchange.body()), attempts))
            if not exchange.done:
                await asyncio.sleep(attempts.wait("some events were not stored"))
        return exchange.replies()

    async def finish(self, stream: str) -> Reply | None:
        """Release what waits of a stream as a shorter batch; None if nothing waits."""
        target = self._endpoint.target("streams", stream, "finish")
        return finished(await self._asked(Call("POST", target)))

    def session(self, *, in_flight: int = 1024) -> AsyncSession:
        """A WebSocket on which events are sent without waiting for the replies to others.

        Args:
            in_flight: How many events may be without a reply at a time.
        """
        self._check_process()
        return AsyncSession(self._endpoint, self._patience, in_flight)

    # What is known --------------------------------------------------------------------------------

    async def event(self, stream: str, id: str) -> Reply:
        """The reply that an event got before; ServiceRefused with status 404 if it has none."""
        target = self._endpoint.target("streams", stream, "events", id)
        return decoded(await self._asked(Call("GET", target)), Reply)

    def streams(self) -> AsyncIterator[dict[str, Any]]:
        """Every stream, with the number of its answers and what they leaked; read in pages."""
        return self._pages("streams", "streams")

    def ledger(self, stream: str) -> AsyncIterator[dict[str, Any]]:
        """The answers of a stream, in order; read in pages."""
        return self._pages("rows", "streams", stream, "ledger")

    async def _document(self, call: Call) -> dict[str, Any]:
        return document(await self._asked(call))

    async def _pages(self, name: str, *parts: str) -> AsyncIterator[dict[str, Any]]:
        after, more = None, True
        while more:
            rows, after = rows_of(await self._read(*parts, after=after, limit=PAGE), name)
            for row in rows:
                yield row
            more = after is not None and bool(rows)

    # One call -------------------------------------------------------------------------------------

    async def _asked(self, call: Call, attempts: Attempts | None = None) -> bytes:
        """The body of the answer to a call that may be repeated; all of them may."""
        attempts = self._begun(attempts)
        while (came := await self._attempt(call, attempts.left())).passing:
            await asyncio.sleep(attempts.wait(came.why, came.asked))
        return came.checked()

    async def _attempt(self, call: Call, seconds: float) -> Came:
        """What came back, or why nothing did: the error itself would hold the request."""
        try:
            made = await self._http.request(**call.request, timeout=httpx.Timeout(seconds))
        except httpx.TransportError as problem:
            return Came(lost=type(problem).__name__)
        return Came(made.status_code, made.content, made.headers.get("Retry-After"))

    async def aclose(self) -> None:
        """Let go of the connections; may be called more than once."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
