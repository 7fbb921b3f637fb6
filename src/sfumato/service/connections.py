"""Connections that cannot be held open for nothing: headers are bounded in size and in time.

So is what comes after a reply, and a request is one that every proxy on its way reads alike.

A reply that is at hand as a whole leaves in one write: a call of the system costs more than making
the reply, and whoever waits for it is woken once, not twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    HEADER_VALUE_RE,
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from sfumato.service.problems import Problem, problem
from sfumato.service.settings import Limits

_LINES = {
    400: b"400 Bad Request",
    408: b"408 Request Timeout",
    431: b"431 Request Header Fields Too Large",
    503: b"503 Service Unavailable",
}


_LENGTH, _OTHERS = b"content-length", frozenset((b"connection", b"transfer-encoding"))
"""What says how long a body is, and headers that uvicorn must look at itself."""


class WholeReplies(RequestResponseCycle):
    """One request of uvicorn; its reply leaves in one write if its body comes as a whole."""

    _begun: Any = None

    async def send(self, message: Any) -> None:
        """Take the head of a reply, or a part of its body."""
        if message["type"] == "http.response.start" and not self.response_started:
            self._begun = message  # nothing has left: a reply in its place may still be sent
            return
        begun, self._begun = self._begun, None
        if begun is not None:
            if self.flow.write_paused and not self.disconnected:
                await self.flow.drain()
            if (whole := self._whole(begun, message)) is not None:
                self._leave(whole)
                return
            await super().send(begun)
        await super().send(message)

    def _whole(self, begun: Any, message: Any) -> bytes | None:
        """The whole reply; None if it is of a kind that uvicorn writes."""
        status, body = begun["status"], message.get("body", b"")
        usual = self.keep_alive and self.scope["method"] != "HEAD" and status in STATUS_LINE
        if not usual or message.get("more_body", False) or self.disconnected:
            return None
        headers = head_lines([*self.default_headers, *begun.get("headers", ())], len(body))
        return None if headers is None else b"%b%b\r\n%b" % (STATUS_LINE[status], headers, body)

    def _leave(self, whole: bytes) -> None:
        self.response_started = self.response_complete = True
        self.waiting_for_100_continue = False
        self.transport.write(whole)
        self.message_event.set()
        self.on_response()


def head_lines(headers: Sequence[tuple[bytes, bytes]], length: int) -> bytes | None:
    r"""The headers of a reply with a body of a length, as they are sent.

    None if they do not tell that length, once, or have one that uvicorn must look at itself.

    Examples:
        >>> head_lines([(b"content-length", b"2"), (b"Age", b"0")], 2)
        b'content-length: 2\r\nage: 0\r\n'
        >>> head_lines([(b"age", b"0")], 2) is None
        True
    """
    if (_LENGTH, b"%d" % length) not in headers:
        return None
    try:
        lines = b"".join(map(_line, headers))
    except _NotOurs:
        return None
    return lines if lines.count(_LENGTH) == 1 else None


@lru_cache(maxsize=1024)
def _line(header: tuple[bytes, bytes]) -> bytes:
    """A header as it is sent; most are the same in every reply, and are looked at once.

    Raises:
        _NotOurs: If uvicorn must look at it.
        RuntimeError: If it would be more than one header.
    """
    name, value = header[0].lower(), header[1]
    if name in _OTHERS:
        raise _NotOurs
    if HEADER_RE.search(name) or HEADER_VALUE_RE.search(value):
        raise RuntimeError("a header of a reply has characters that no header may have")
    return b"%b: %b\r\n" % (name, value)


class _NotOurs(Exception):
    """A header that says how a reply or a connection ends."""


_ALONE = (b"host", b"authorization", b"content-type", b"content-encoding")
"""Headers of which a proxy before the service may read another one, where they come twice."""


class _Wrong(Exception):
    """Ends the parsing of a request."""


def _title(name: bytes) -> str:
    return name.decode().title()


class BoundedConnection(HttpToolsProtocol):
    """One connection; uvicorn makes one for each.

    Who sends a header now and then would hold a connection for ever (uvicorn bounds pauses between
    requests, not within one), and so would who sends the rest of a body that was refused already,
    or empty lines after it; who sends megabytes of headers would hold memory.

    Args:
        limits: How much, and how long.
        given: What uvicorn gives.
    """

    def __init__(self, *, limits: Limits, **given: Any) -> None:
        super().__init__(**given)
        self._limits = limits
        self._head = self._named = 0
        self._wrong: Problem | None = None
        self._heading = self._ended = False
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, unless there are too many others."""
        super().connection_made(transport)
        if len(self.connections) > self._limits.connections:
            self._refuse(problem("unavailable", "there are too many connections; come again"))
            return
        self._heading = True
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._end_heading()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take some bytes."""
        if self._ended:  # whatever comes now, were it empty lines, belongs to the next request
            self._ended, self._heading = False, True
        super().data_received(data)
        if self._ended and self.cycle is not None and self.cycle.response_complete:
            self._keep_alive()  # uvicorn waits again where a reply leaves; it has left before
        if not self._heading:
            return  # no headers are awaited
        self._await_headers()
        # Of a long line without an end the parser tells nothing until it ends.
        self._head += len(data)
        if self._head > self._limits.header_bytes:
            self._refuse(self._too_large())

    def on_message_begin(self) -> None:
        """A request begins, on a new connection or on one that was used before."""
        super().on_message_begin()
        self._named, self._ended = 0, False
        # Most requests come in one piece: only who leaves headers open for later has a deadline.
        self._heading = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header has come, or a trailer after the body, which is nobody's header any more."""
        if self._heading:
            super().on_header(name, value)
        self._count(len(name) + len(value))

    def on_headers_complete(self) -> None:
        """All headers have come."""
        self._count(len(self.url))
        self._check_names()
        self._end_heading()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The body has come, too."""
        super().on_message_complete()
        # A connection that becomes a socket has its own pings, and ends otherwise.
        self._ended = not (self.parser.should_upgrade() and self._should_upgrade())
        self._end_deadline()  # that of a body whose reply has left

    def on_response_complete(self) -> None:
        """A reply has left; the rest of its body has as long as bodies have."""
        super().on_response_complete()
        if self.cycle.response_complete and not (self._heading or self._ended):
            self._end_deadline()
            self._deadline = self.loop.call_later(self._limits.body_seconds, self._cut)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        # uvicorn has no other place to say of which class a request is.
        cycle.__class__ = WholeReplies
        super()._start_asgi_task(cycle, app)

    def send_400_response(self, msg: str) -> None:
        """What is no request is refused, in the words of all refusals."""
        self._refuse(self._wrong or problem("malformed", "this is no HTTP request"))

    def _count(self, size: int) -> None:
        """Count bytes of headers that came whole, perhaps all in one piece with the body."""
        self._named += size
        if self._named > self._limits.header_bytes:
            self._wrong = self._too_large()
            raise _Wrong

    def _check_names(self) -> None:
        """Refuse a request that a proxy before the service may have read as another one."""
        names = [name for name, _ in self.headers]
        told = [names.count(name) for name in _ALONE]
        if max(told) > 1 or (told[0] == 0 and self.parser.get_http_version() == "1.1"):
            rule = f"say Host, and none of {', '.join(map(_title, _ALONE))} twice"
            self._wrong = problem("malformed", f"a request must {rule}", rule=rule)
            raise _Wrong

    def _await_headers(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self._limits.header_seconds, self._late)

    def _end_heading(self) -> None:
        self._head, self._heading = 0, False
        self._end_deadline()

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _late(self) -> None:
        self._deadline = None
        self._refuse(problem("timeout", "the headers did not come in time"))

    def _cut(self) -> None:
        """End a connection whose reply has left, and whose body goes on and on."""
        self._deadline = None
        self.timeout_keep_alive_handler()

    def _keep_alive(self) -> None:
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def _too_large(self) -> Problem:
        most = self._limits.header_bytes
        return problem("headers", f"headers must have at most {most:,} bytes")

    def _refuse(self, refused: Problem) -> None:
        self._end_heading()
        if self.transport.is_closing():
            return
        body = msgspec.json.encode(refused)
        head = b"HTTP/1.1 %b\r\ncontent-type: application/problem+json\r\n" % _LINES[refused.status]
        rest = b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body)
        self.transport.write(head + rest + body)
        self.transport.close()
