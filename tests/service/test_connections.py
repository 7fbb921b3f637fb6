"""Replies on the wire are those of uvicorn, byte for byte; whole ones leave in one write."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from sfumato.service.connections import BoundedConnection
from sfumato.service.settings import Limits

Message = dict[str, Any]


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: Any) -> None:
        self.writes.append(bytes(data))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        """All has come already."""

    def resume_reading(self) -> None:
        """All has come already."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default


def said(kind: type[HttpToolsProtocol], request: bytes, messages: list[Message]) -> Wire:
    """What a server writes whose app reads the body and sends messages."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["method"] == "POST":
            await receive()
        for message in messages:
            if message["type"] == "broken":
                raise ValueError
            await send(message)

    return served_by(kind, app, request)


def served_by(kind: type[HttpToolsProtocol], app: Any, request: bytes) -> Wire:
    """What is written to a request that comes in one piece."""

    async def served() -> Wire:
        config = uvicorn.Config(app, lifespan="off", log_config=None, date_header=False)
        config.load()
        given: Any = {"limits": Limits()} if kind is BoundedConnection else {}
        made: Any = kind(config=config, server_state=ServerState(), app_state={}, **given)
        wire = Wire()
        made.connection_made(wire)
        made.data_received(request)
        while made.tasks:
            await asyncio.wait(set(made.tasks))
        made.connection_lost(None)
        return wire

    return asyncio.run(served())


def start(status: int, *headers: tuple[bytes, bytes]) -> Message:
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


def body(content: bytes, more: bool = False) -> Message:
    return {"type": "http.response.body", "body": content, "more_body": more}


PLAIN = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
LENGTH = (b"content-length", b"2")
CASES: dict[str, tuple[bytes, list[Message]]] = {
    "whole": (PLAIN, [start(200, LENGTH, (b"X-A", b"1"), (b"x-a", b"2")), body(b"ok")]),
    "problem": (PLAIN, [start(429, (b"retry-after", b"1"), LENGTH), body(b"no")]),
    "capitals": (PLAIN, [start(200, (b"Content-Length", b"2")), body(b"ok")]),
    "two lengths": (PLAIN, [start(200, LENGTH, (b"content-length", b"9"), LENGTH), body(b"ok")]),
    "without a length": (PLAIN, [start(200), body(b"ok")]),
    "in parts": (PLAIN, [start(200, LENGTH), body(b"o", more=True), body(b"k")]),
    "chunks": (PLAIN, [start(200), body(b"o", more=True), body(b"k")]),
    "no content": (PLAIN, [start(204, (b"content-length", b"0")), body(b"")]),
    "head": (b"HEAD / HTTP/1.1\r\nhost: x\r\n\r\n", [start(200, LENGTH), body(b"ok")]),
    "closing": (PLAIN, [start(400, LENGTH, (b"connection", b"close")), body(b"no")]),
    "old": (b"GET / HTTP/1.0\r\n\r\n", [start(200, LENGTH), body(b"ok")]),
    "two at once": (2 * PLAIN, [start(200, LENGTH), body(b"ok")]),
    "continue": (
        b"POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\nx",
        [start(200, LENGTH), body(b"ok")],
    ),
    "trailers": (
        b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
        b"1\r\nx\r\n0\r\nx-a: b\r\n\r\n",
        [start(200, LENGTH), body(b"ok")],
    ),
    "nothing": (PLAIN, []),
    "broken": (PLAIN, [{"type": "broken"}]),
}


WHOLE = ("whole", "problem", "no content")


@pytest.mark.parametrize("case", CASES)
def test_replies_are_those_of_uvicorn(case: str) -> None:
    ours, theirs = (said(one, *CASES[case]) for one in (BoundedConnection, HttpToolsProtocol))
    assert b"".join(ours.writes) == b"".join(theirs.writes)
    assert ours.closed == theirs.closed
    assert len(ours.writes) == 1 or case not in WHOLE


@pytest.mark.parametrize(
    "messages",
    [
        [start(200, LENGTH), {"type": "broken"}],
        [start(200, LENGTH)],
        [start(200, LENGTH, (b"x-a", b"1\r\nx-b: 2")), body(b"ok")],
        [start(200, LENGTH, (b"x-a\r\nx-b", b"2")), body(b"ok")],
    ],
    ids=["broken", "unfinished", "split value", "split name"],
)
def test_a_reply_that_breaks_before_its_body_is_an_error_of_the_server(
    messages: list[Message],
) -> None:
    wire = said(BoundedConnection, PLAIN, messages)
    assert b"".join(wire.writes).startswith(b"HTTP/1.1 500 ")
    assert b"x-b" not in b"".join(wire.writes)


@pytest.mark.parametrize("content", [b"more", b"x"])
def test_a_reply_of_another_length_than_it_says_ends_the_connection(content: bytes) -> None:
    wire = said(BoundedConnection, PLAIN, [start(200, LENGTH), body(content)])
    assert wire.closed


def headers_of(request: bytes) -> list[tuple[bytes, bytes]]:
    """The headers that an app is shown."""
    shown: list[list[tuple[bytes, bytes]]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        shown.append(list(scope["headers"]))
        await send(start(200, LENGTH))
        await send(body(b"ok"))

    served_by(BoundedConnection, app, request)
    return shown[0]


def test_a_trailer_is_no_header() -> None:
    """It comes after whoever stands before the service has looked at the headers."""
    head = b"POST / HTTP/1.1\r\nhost: x\r\nauthorization: first\r\n"
    rest = b"transfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nauthorization: second\r\n\r\n"
    told = [value for name, value in headers_of(head + rest) if name == b"authorization"]
    assert told == [b"first"]


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [b"host: x", b"host: y"],
        [b"host: x", b"Authorization: Bearer a", b"authorization: Bearer b"],
        [b"host: x", b"content-type: application/json", b"content-type: text/plain"],
    ],
    ids=["no host", "two hosts", "two keys", "two types"],
)
def test_a_request_that_a_proxy_may_read_otherwise_is_refused(headers: list[bytes]) -> None:
    request = b"\r\n".join([b"GET / HTTP/1.1", *headers, b"", b""])
    wire = said(BoundedConnection, request, [start(200, LENGTH), body(b"ok")])
    assert wire.closed and b"".join(wire.writes).startswith(b"HTTP/1.1 400 ")
    assert b"Bearer" not in b"".join(wire.writes)
    assert said(HttpToolsProtocol, request, [start(200, LENGTH), body(b"ok")]).writes[0][9:12] == (
        b"200"
    )
