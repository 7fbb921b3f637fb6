"""A client of a service, for programs that wait for each answer; `async_client` is for others."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any, Self

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
from sfumato.client.session import Session
from sfumato.client.wire import MOST_EVENTS, LiveEvent, Reply, fresh_id

try:
    import httpx
except ModuleNotFoundError as problem:
    raise missing_library(problem.name) from None


class Client(Questions[dict[str, Any]]):
    """A service, asked over HTTP or a Unix socket; safe in threads, refused in a forked child.

    Every event has an id before it is first sent, and keeps it through all attempts: a retry never
    draws fresh noise. Attempts that met no service, or one without room (429, 502, 503, 504), are
    repeated after a wait that grows; everything else that is refused is raised. Proxies and
    password files of the environment are not used, and no redirect is followed: true values go
    where the URL says and nowhere else.

    Args:
        url: https://host, http://localhost:8477, or unix:/run/sfumato.sock.
        key: The access key, `sfk_<id>_<secret>`.
        release: Where events go; the default release, or where their stream began, if None.
        timeout: Seconds that one attempt may take.
        retries: How many attempts may follow the first.
        deadline: Seconds that all attempts of a call may take together.
        ca: File of certificates that vouch for the service, or a whole TLS context (to show a
            certificate of one's own, for instance).
        cleartext: Whether true values may go over a network unencrypted: never but inside a
            protected one.

    Examples:
        >>> client = Client("http://localhost:8477", "sfk_a1_secret")
        >>> client
        Client('http://localhost:8477')
        >>> client.close()
    """

    def _open(self) -> None:
        self._http = httpx.Client(
            base_url=self._endpoint.http,
            headers=self._endpoint.headers,
            transport=httpx.HTTPTransport(
                verify=self._endpoint.tls or False, uds=self._endpoint.path, trust_env=False
            ),
            trust_env=False,
        )

    # Events ---------------------------------------------------------------------------------------

    def release(
        self, stream: str, value: Any, *, id: str | None = None, time: str | None = None
    ) -> Reply:
        """Have one value released: the reply comes when it is durable.

        Args:
            stream: Whose value it is.
            value: The true value.
            id: What tells the event from all others; made if not given. Give one if this program
                may end before it has the reply, and ask again: the answer stays the same.
            time: When it was measured.

        Raises:
            ServiceRefused: If the service said no: value, budget, order, access.
            ServiceUnavailable: If no answer came in time; the same id may be sent again.
        """
        event = LiveEvent(stream, value, fresh_id() if id is None else id, time)
        return single(self.release_many([event])[0])

    def release_many(self, events: Iterable[LiveEvent]) -> list[Reply]:
        """Have values released, up to a thousand in each request; a reply for each, in order.

        A refusal of one says nothing to the others: it is a reply, and not raised. So look at the
        status of each:

            events = [sf.LiveEvent("ann", "home", id="e1"), sf.LiveEvent("bob", "work", id="e2")]
            for event, reply in zip(events, client.release_many(events)):
                if reply.problem is not None:
                    print(event.id, "refused:", reply.problem.detail)
                elif reply.status == "answered":
                    print(event.id, reply.released)

        Raises:
            ServiceRefused: If a request as a whole was refused.
            ServiceUnavailable: If no answer came in time; the same events may be sent again.
        """
        sent, replies = checked_events(events), list[Reply]()
        for start in range(0, len(sent), MOST_EVENTS):
            replies += self._exchanged(Exchange(sent[start : start + MOST_EVENTS]))
        return replies

    def _exchanged(self, exchange: Exchange) -> list[Reply]:
        attempts = Attempts(self._patience)
        target = self._endpoint.target("events")
        while not exchange.done:
            exchange.take(self._asked(Call("POST", target, exchange.body()), attempts))
            if not exchange.done:
                time.sleep(attempts.wait("some events were not stored"))
        return exchange.replies()

    def finish(self, stream: str) -> Reply | None:
        """Release what waits of a stream as a shorter batch; None if nothing waits."""
        return finished(
            self._asked(Call("POST", self._endpoint.target("streams", stream, "finish")))
        )

    def session(self, *, in_flight: int = 1024) -> Session:
        """A WebSocket on which events are sent without waiting for the replies to others.

        Args:
            in_flight: How many events may be without a reply at a time.
        """
        self._check_process()
        return Session(self._endpoint, self._patience, in_flight)

    # What is known --------------------------------------------------------------------------------

    def event(self, stream: str, id: str) -> Reply:
        """The reply that an event got before; ServiceRefused with status 404 if it has none."""
        body = self._asked(Call("GET", self._endpoint.target("streams", stream, "events", id)))
        return decoded(body, Reply)

    def streams(self) -> Iterator[dict[str, Any]]:
        """Every stream, with the number of its answers and what they leaked; read in pages."""
        return self._pages("streams", "streams")

    def ledger(self, stream: str) -> Iterator[dict[str, Any]]:
        """The answers of a stream, in order; read in pages."""
        return self._pages("rows", "streams", stream, "ledger")

    def _document(self, call: Call) -> dict[str, Any]:
        return document(self._asked(call))

    def _pages(self, name: str, *parts: str) -> Iterator[dict[str, Any]]:
        after, more = None, True
        while more:
            page = self._read(*parts, after=after, limit=PAGE)
            rows, after = rows_of(page, name)
            yield from rows
            more = after is not None and bool(rows)

    # One call -------------------------------------------------------------------------------------

    def _asked(self, call: Call, attempts: Attempts | None = None) -> bytes:
        """The body of the answer to a call that may be repeated; all of them may."""
        attempts = self._begun(attempts)
        while (came := self._attempt(call, attempts.left())).passing:
            time.sleep(attempts.wait(came.why, came.asked))
        return came.checked()

    def _attempt(self, call: Call, seconds: float) -> Came:
        """What came back, or why nothing did: the error itself would hold the request."""
        try:
            made = self._http.request(**call.request, timeout=httpx.Timeout(seconds))
        except httpx.TransportError as problem:
            return Came(lost=type(problem).__name__)
        return Came(made.status_code, made.content, made.headers.get("Retry-After"))

    def close(self) -> None:
        """Let go of the connections; may be called more than once."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
