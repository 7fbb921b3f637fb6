"""A line for every request and every socket, whatever became of it."""

from __future__ import annotations

import itertools
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextvars import ContextVar
from typing import Any, TypeAlias

from sfumato.core.keyed_digest import KeyedDigest
from sfumato.service.event_log import EventLog

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
_LOUD = 500
# Names that tell nobody how many requests others made, without a call of the system for each.
_named, _count = KeyedDigest(secrets.token_bytes(32)), itertools.count()


class RequestLog:
    """ASGI middleware: writes one event for each request, and names it to whoever asked.

    The id is drawn here, never taken from the asker: what he writes may be anybody's data. It
    stands in the header `X-Request-Id` of the reply, and in the log. The route is that which
    Starlette's router leaves in the scope. Whoever finds out who asks says so by `note_key`, and
    why he is refused by `note_reason`.
    """

    def __init__(self, app: App, log: EventLog) -> None:
        """Log what an app is asked.

        Args:
            app: The app.
            log: Where lines go.
        """
        self._app, self._log = app, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, and log."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        seen = _Seen(receive, send)
        failure: Exception | None = None
        before = _current.set(seen)
        try:
            await self._app(scope, seen.receive, seen.send)
        except Exception as problem:
            failure = problem
            raise
        finally:
            _current.reset(before)
            self._write(scope, seen, failure)

    def _write(self, scope: Scope, seen: _Seen, failure: Exception | None) -> None:
        loud = failure is not None or seen.failed
        self._log.event(
            "socket" if scope["type"] == "websocket" else "request",
            level=logging.ERROR if loud else logging.INFO,
            failure=failure,
            stream=scope.get("path_params", {}).get("stream"),
            request=seen.name,
            key=seen.key,
            reason=seen.reason,
            method=_method(scope),
            route=_template(scope),
            status=seen.status,
            milliseconds=round((time.perf_counter_ns() - seen.begun) / 1e6, 3),
            bytes_in=seen.bytes_in,
            bytes_out=seen.bytes_out,
        )


def _method(scope: Scope) -> str | None:
    known = ("GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH")
    method = scope.get("method")
    return method if method is None or method in known else "other"


def _template(scope: Scope) -> str:
    """The route as it was declared; a path that has none is not repeated."""
    template = getattr(scope.get("route"), "path", None)
    return template if isinstance(template, str) else "(none)"


class _Seen:
    """What went in and out of one request."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self.begun = time.perf_counter_ns()
        self.status: int | None = None
        self.failed = False
        self.bytes_in = self.bytes_out = 0
        self.name = _named(b"%d" % next(_count))[:8].hex()
        self.key: str | None = None
        self.reason: str | None = None

    async def receive(self) -> Message:
        message = await self._receive()
        self.bytes_in += _size(message)
        return message

    def send(self, message: Message) -> Awaitable[None]:
        # No coroutine of its own: whoever awaits this awaits what is below.
        kind = message["type"]
        if kind in ("http.response.start", "websocket.http.response.start"):
            self.status = message["status"]
            self.failed = message["status"] >= _LOUD
            named = (b"x-request-id", self.name.encode())
            message = {**message, "headers": [*message.get("headers", ()), named]}
        elif kind == "websocket.close":
            self.status = message.get("code", 1000)
        else:
            self.bytes_out += _size(message)
        return self._send(message)


def _size(message: Message) -> int:
    if (body := message.get("body")) is not None:
        return len(body)
    return len(message.get("bytes") or b"") + len(message.get("text") or "")


_current: ContextVar[_Seen | None] = ContextVar("request", default=None)
"""The request that is being answered; known to all that is called for it."""


def note_key(key: str | None) -> None:
    """Say for the log whose key the current request has shown."""
    if (seen := _current.get()) is not None:
        seen.key = key


def note_reason(reason: str) -> None:
    """Say for the log why the current request is refused, in one word."""
    if (seen := _current.get()) is not None:
        seen.reason = reason
