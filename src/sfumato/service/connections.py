"""Connections that cannot be held open for nothing: headers are bounded in size and in time."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sfumato.service.problems import Problem, problem
from sfumato.service.settings import Limits

_LINES = {
    400: b"400 Bad Request",
    408: b"408 Request Timeout",
    431: b"431 Request Header Fields Too Large",
    503: b"503 Service Unavailable",
}


class _HeadersTooLarge(Exception):
    """Ends the parsing of a request."""


class BoundedConnection(HttpToolsProtocol):
    """One connection; uvicorn makes one for each.

    Who sends a header now and then would hold a connection for ever (uvicorn bounds pauses between
    requests, not within one); who sends megabytes of headers would hold memory.

    Args:
        limits: How much, and how long.
        given: What uvicorn gives.
    """

    def __init__(self, *, limits: Limits, **given: Any) -> None:
        super().__init__(**given)
        self._limits = limits
        self._head = self._named = 0
        self._too_large = False
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, unless there are too many others."""
        super().connection_made(transport)
        if len(self.connections) > self._limits.connections:
            self._refuse(problem("unavailable", "there are too many connections; come again"))
            return
        self._begin_heading()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._end_heading()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take some bytes."""
        super().data_received(data)
        if self._deadline is None:
            return  # no headers are awaited
        # Of a long line without an end the parser tells nothing until it ends.
        self._head += len(data)
        if self._head > self._limits.header_bytes:
            self._refuse_headers()

    def on_message_begin(self) -> None:
        """A request begins, on a new connection or on one that was used before."""
        super().on_message_begin()
        self._named = 0
        if self._deadline is None:
            self._begin_heading()

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header has come."""
        super().on_header(name, value)
        self._count(len(name) + len(value))

    def on_headers_complete(self) -> None:
        """All headers have come."""
        self._count(len(self.url))
        self._end_heading()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """What is no request is refused, in the words of all refusals."""
        if self._too_large:
            self._refuse_headers()
        else:
            self._refuse(problem("malformed", "this is no HTTP request"))

    def _count(self, size: int) -> None:
        """Count bytes of headers that came whole, perhaps all in one piece with the body."""
        self._named += size
        if self._named > self._limits.header_bytes:
            self._too_large = True
            raise _HeadersTooLarge

    def _begin_heading(self) -> None:
        self._deadline = self.loop.call_later(self._limits.header_seconds, self._late)

    def _end_heading(self) -> None:
        self._head = 0
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _late(self) -> None:
        self._deadline = None
        self._refuse(problem("timeout", "the headers did not come in time"))

    def _refuse_headers(self) -> None:
        most = self._limits.header_bytes
        self._refuse(problem("headers", f"headers must have at most {most:,} bytes"))

    def _refuse(self, refused: Problem) -> None:
        self._end_heading()
        if self.transport.is_closing():
            return
        body = msgspec.json.encode(refused)
        head = b"HTTP/1.1 %b\r\ncontent-type: application/problem+json\r\n" % _LINES[refused.status]
        rest = b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body)
        self.transport.write(head + rest + body)
        self.transport.close()
