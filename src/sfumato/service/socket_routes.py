"""Sockets: events in without waiting, replies out in the order of their numbers.

One task reads and puts events into the queues of their releases; another sends replies, as many at
once as are ready. Who has too many without a reply is not read from: his sending stops by itself.
A socket that breaks loses nothing: what has no reply is sent again under its id.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.types import Receive, Scope, Send

from sfumato.service.application import Application, Visitor
from sfumato.service.bodies import (
    NumberedBody,
    RefusedBody,
    ReplyBody,
    Time,
    Value,
    Word,
    decode,
    event_columns,
)
from sfumato.service.event_routes import ReleaseQuery, check_asked, placed
from sfumato.service.operations import header_fields, parsed_query, peer_of, text_of
from sfumato.service.problems import HttpProblem, Problem
from sfumato.service.release_scope import release_in_scope
from sfumato.service.wording import Worded, whole_reply

SOCKET_PATH = "/v1/socket"
ENDED, NO_TEXT, BAD_FORM, POLICY, TOO_LARGE = 1000, 1003, 1007, 1008, 1009
DEFECT, RESTART, CROWDED, TOO_OFTEN = 1011, 1012, 1013, 4429
_PAUSE = 0.05
"""Seconds between two looks at a full queue: its groups take about as long."""
_encode = msgspec.json.Encoder().encode


class _Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message that is no array: an event, a ping, or a key."""

    n: Annotated[int, Meta(ge=0, lt=2**53)] | UnsetType = UNSET
    stream: Word | UnsetType = UNSET
    id: Word | UnsetType = UNSET
    value: Value | UnsetType = UNSET
    time: Time | None = None
    ping: int | Annotated[str, Meta(max_length=64)] | UnsetType = UNSET
    key: Annotated[str, Meta(max_length=256)] | UnsetType = UNSET


_message = msgspec.json.Decoder(_Message)
_array = msgspec.json.Decoder(Annotated[list[NumberedBody], Meta(min_length=1)])


class Closed(Exception):
    """Ends a socket with a code, and with a reason that quotes nothing."""

    def __init__(self, code: int, reason: str = "") -> None:
        self.code, self.reason = code, reason[:120]
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class _Part:
    """Events of one message, in the order of their numbers."""

    events: Sequence[NumberedBody]
    refused: dict[int, Problem]
    replies: asyncio.Future[list[Worded]] | None

    async def bodies(self) -> list[ReplyBody]:
        found = iter([] if self.replies is None else await self.replies)
        refused = self.refused
        return [
            RefusedBody(refused[event.n], event.n)
            if event.n in refused
            else whole_reply(next(found), event.n)
            for event in self.events
        ]

    @property
    def ready(self) -> bool:
        return self.replies is None or self.replies.done()


class Sockets:
    """All open sockets, as an ASGI application."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._closing = asyncio.Event()
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one socket until it is closed."""
        await receive()  # websocket.connect
        await send({"type": "websocket.accept"})
        if self._closing.is_set() or self._open >= self._application.limits.sockets:
            code = RESTART if self._closing.is_set() else CROWDED
            await send({"type": "websocket.close", "code": code})
            return
        self._open += 1
        self._application.metrics.socket(1)
        try:
            await _Socket(self._application, self._closing, scope, receive, send).serve()
        finally:
            self._open -= 1
            self._application.metrics.socket(-1)

    async def close(self, seconds: float) -> None:
        """Read nothing more, let what was taken have its replies, and close all sockets."""
        self._closing.set()
        try:
            async with asyncio.timeout(seconds):
                while self._open:
                    await asyncio.sleep(_PAUSE)
        except TimeoutError:
            self._application.log.event("sockets cut", level=logging.WARNING, sockets=self._open)


class _Socket:
    """One open socket."""

    def __init__(
        self,
        application: Application,
        closing: asyncio.Event,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        self._application, self._closing = application, closing
        self._scope, self._receive, self._send = scope, receive, send
        self._visitor: Visitor | None = None
        self._release: str | None = None
        self._last: int | None = None
        self._parts: deque[_Part] = deque()
        self._unanswered = 0
        self._changed = asyncio.Condition()
        self._ended = False

    async def serve(self) -> None:
        tasks = [asyncio.ensure_future(self._read()), asyncio.ensure_future(self._write())]
        closing = asyncio.ensure_future(self._closing.wait())
        reader, writer = tasks
        try:
            await asyncio.wait({reader, writer, closing}, return_when=asyncio.FIRST_COMPLETED)
            code, reason = await self._stopped(reader, writer)
            await self._send({"type": "websocket.close", "code": code, "reason": reason})
        except (OSError, RuntimeError):
            pass  # the asker went away meanwhile: nobody is left to tell
        finally:
            for task in (*tasks, closing):
                task.cancel()
            await asyncio.gather(*tasks, closing, return_exceptions=True)

    async def _stopped(
        self, reader: asyncio.Future[None], writer: asyncio.Future[None]
    ) -> tuple[int, str]:
        """Let replies of what was taken leave; the code to close with, and why."""
        if not reader.done():
            reader.cancel()
        outcome = (await asyncio.gather(reader, return_exceptions=True))[0]
        if isinstance(outcome, _Gone):
            raise ConnectionError
        async with self._changed:
            self._ended = True
            self._changed.notify_all()
        sent = (await asyncio.gather(writer, return_exceptions=True))[0]
        if isinstance(sent, BaseException):
            raise ConnectionError
        if isinstance(outcome, Closed):
            return outcome.code, outcome.reason
        if isinstance(outcome, Exception):
            self._application.log.event(
                "defect", level=logging.ERROR, operation="socket", failure=outcome
            )
            return DEFECT, ""
        return RESTART, "the service stops here; connect again"

    # Reading --------------------------------------------------------------------------------------

    async def _read(self) -> None:
        try:
            self._release = parsed_query(self._scope["query_string"], ReleaseQuery).release
            await self._identify()
            while True:
                await self._room()
                await self._take(await self._text())
        except HttpProblem as refused:
            status = refused.problem.status
            codes = {413: TOO_LARGE, 429: TOO_OFTEN, 401: POLICY, 403: POLICY, 503: CROWDED}
            fallback = POLICY if refused.problem.type.endswith(":query") else BAD_FORM
            raise Closed(codes.get(status, fallback), refused.problem.detail) from None

    async def _identify(self) -> None:
        gate, peer = self._application.gate, peer_of(self._scope)
        header = text_of(header_fields(self._scope), b"authorization")
        if header is not None:
            self._visitor = gate.admit(header, peer)
        else:
            try:
                async with asyncio.timeout(self._application.limits.header_seconds):
                    first = decode(_message, (await self._text()).encode())
            except TimeoutError:
                raise Closed(POLICY, "the access key did not come in time") from None
            if first.key is UNSET:
                raise Closed(POLICY, "the first message must hold the access key")
            self._visitor = gate.admit_key(first.key, peer)
        self._visitor.require("release")

    async def _text(self) -> str:
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            raise _Gone
        text = message.get("text")
        if text is None:
            raise Closed(NO_TEXT, "messages must be text")
        if len(text) > self._application.limits.body_bytes:
            raise Closed(TOO_LARGE, "the message is too large")
        return str(text)

    async def _room(self) -> None:
        most = self._application.limits.unanswered
        async with self._changed:
            await self._changed.wait_for(lambda: self._unanswered < most)

    async def _take(self, text: str) -> None:
        content = text.encode()
        if content.lstrip()[:1] == b"[":
            events = decode(_array, content)
        else:
            single = decode(_message, content)
            if single.ping is not UNSET:
                self._visitor = self._application.gate.message(self._known, 0)
                await self._send({"type": "websocket.send", "text": _text({"pong": single.ping})})
                return
            events = [_numbered(single)]
        limits = self._application.limits
        if len(events) > min(limits.request_events, limits.unanswered):
            raise Closed(TOO_LARGE, "the message has too many events")
        self._check_numbers(events)
        self._visitor = self._application.gate.message(self._known, len(events))
        part = await self._placed(events)
        async with self._changed:
            self._parts.append(part)
            self._unanswered += len(events)
            self._changed.notify_all()

    @property
    def _known(self) -> Visitor:
        assert self._visitor is not None
        return self._visitor

    def _check_numbers(self, events: Sequence[NumberedBody]) -> None:
        first = events[0].n if self._last is None else self._last + 1
        if [event.n for event in events] != [*range(first, first + len(events))]:
            raise Closed(POLICY, "n must rise by one")
        self._last = events[-1].n

    async def _placed(self, events: Sequence[NumberedBody]) -> _Part:
        refused = self._forbidden(events)
        allowed = [one for one in events if one.n not in refused]
        asked = event_columns(allowed, [one.stream for one in allowed])
        if not allowed:
            return _Part(events, refused, None)
        check_asked(asked)
        while True:
            try:
                release = release_in_scope(self._known, self._release)
                return _Part(events, refused, await placed(self._application, asked, release))
            except HttpProblem as full:
                if full.problem.status != 429:
                    return _Part(events, {one.n: full.problem for one in events}, None)
            # A full queue does not refuse a socket: it is not read from until there is room.
            await asyncio.sleep(_PAUSE)

    def _forbidden(self, events: Sequence[NumberedBody]) -> dict[int, Problem]:
        problems: dict[str, Problem] = {}
        for stream in self._known.outside("release", [event.stream for event in events]):
            try:
                self._known.require("release", stream)
            except HttpProblem as refused:
                problems[stream] = refused.problem
        if not problems:
            return {}
        return {one.n: problems[one.stream] for one in events if one.stream in problems}

    # Writing --------------------------------------------------------------------------------------

    async def _write(self) -> None:
        while True:
            async with self._changed:
                await self._changed.wait_for(lambda: self._parts or self._ended)
            if not self._parts:
                return
            bodies = await self._parts[0].bodies()
            self._parts.popleft()
            while self._parts and self._parts[0].ready:
                bodies += await self._parts.popleft().bodies()
            text = _text(bodies[0] if len(bodies) == 1 else bodies)
            await self._send({"type": "websocket.send", "text": text})
            async with self._changed:
                self._unanswered -= len(bodies)
                self._changed.notify_all()


class _Gone(Exception):
    """The asker closed the socket, or it broke."""


def _text(content: Any) -> str:
    return _encode(content).decode()


def _numbered(message: _Message) -> NumberedBody:
    n, stream, id_, value = message.n, message.stream, message.id, message.value
    if n is UNSET or stream is UNSET or id_ is UNSET or value is UNSET:
        raise Closed(BAD_FORM, "an event must have n, stream, id and value")
    return NumberedBody(n, stream, id_, value, message.time)
