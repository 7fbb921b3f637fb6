"""Laws of the server as a whole: what it bounds, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from sfumato.core.errors import InvalidParameter
from sfumato.service.server import address_of, listening
from sfumato.service.settings import Limits, Settings
from tests.service.fakes import KEY
from tests.service.servers import Served, served

HEADERS = {"authorization": f"Bearer {KEY}"}


def connected(there: Served) -> socket.socket:
    address = urlsplit(there.url)
    assert address.hostname and address.port
    return socket.create_connection((address.hostname, address.port), timeout=10.0)


def dripped(there: Served, first: bytes, drop: bytes) -> bytes:
    """What the server says to somebody who sends a little, again and again, until it closes."""
    found, end = b"", time.monotonic() + 20.0
    with connected(there) as own, contextlib.suppress(ConnectionError):
        own.sendall(first)
        own.settimeout(0.05)
        while time.monotonic() < end:
            with contextlib.suppress(TimeoutError):
                if not (piece := own.recv(65_536)):
                    return found
                found += piece
            own.sendall(drop)
        raise AssertionError("the connection is held for nothing")
    return found


def raw(there: Served, *parts: bytes) -> bytes:
    """What the server says to some bytes until it closes the connection."""
    with connected(there) as own:
        for part in parts:
            own.sendall(part)
        found = b""
        try:
            while piece := own.recv(65_536):
                found += piece
        except ConnectionResetError:
            return found  # the server closed while we were still sending
        return found


def test_requests_sockets_and_kept_connections_are_served() -> None:
    async def talk(url: str) -> list[Any]:
        socket_url = url.replace("http", "ws") + "/v1/socket"
        async with connect(socket_url, additional_headers=HEADERS, compression=None) as own:
            events = [
                {"n": n, "stream": "u", "id": f"w{n}", "value": "home"} for n in range(1, 201)
            ]
            for event in events:
                await own.send(json.dumps(event))
            found: list[Any] = []
            while len(found) < len(events):
                content = json.loads(await own.recv())
                found += content if isinstance(content, list) else [content]
            return found

    with served() as there:
        with httpx.Client(base_url=there.url, headers=HEADERS) as client:
            for n in range(3):
                body = {"id": f"e{n}", "value": "home"}
                reply = client.post("/v1/streams/a%2Fb/events", json=body)
                assert reply.json()["answers"][0]["stream"] == "a/b"
                assert "server" not in reply.headers
        replies = asyncio.run(talk(there.url))
        assert [reply["n"] for reply in replies] == list(range(1, 201))


@pytest.mark.parametrize(
    "parts",
    [
        [b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-long: " + b"s" * 3_000],
        [b"GET /healthz HTTP/1.1\r\nhost: x\r\n" + 100 * b"a: ssssssssssssssssssss\r\n" + b"\r\n"],
        [b"GET /" + b"s" * 3_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n"],
    ],
    ids=["one long header", "many headers", "a long address"],
)
def test_large_headers_are_refused(parts: list[bytes]) -> None:
    with served(limits=Limits(header_bytes=2_000)) as there:
        assert raw(there, *parts).startswith(b"HTTP/1.1 431 ")


def test_who_is_slow_with_his_headers_is_cut_off() -> None:
    with served(limits=Limits(header_seconds=0.1)) as there:
        assert raw(there, b"GET /healthz HT").startswith(b"HTTP/1.1 408 ")
        assert raw(there).startswith(b"HTTP/1.1 408 ")
        again = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"
        replies = raw(there, again, again[:10])
        assert replies.startswith(b"HTTP/1.1 200 ") and b"HTTP/1.1 408 " in replies


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 9000\r\n\r\n", b"200"),
        (b"POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-length: 9000\r\n\r\n", b"401"),
        (b"POST /none HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5;", b"404"),
    ],
    ids=["not needed", "no key", "nothing there"],
)
def test_who_goes_on_sending_a_body_that_was_replied_to_is_cut_off(
    request_: bytes, status: bytes
) -> None:
    with served(limits=Limits(body_seconds=0.3)) as there:
        assert dripped(there, request_, b"a").startswith(b"HTTP/1.1 " + status)


def test_who_sends_empty_lines_after_a_reply_is_cut_off() -> None:
    with served(limits=Limits(header_seconds=0.3)) as there:
        first = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"
        found = dripped(there, first, b"\r\n")
        assert found.startswith(b"HTTP/1.1 200 ") and b"HTTP/1.1 408 " in found


def test_a_connection_whose_body_came_after_its_reply_is_closed_when_it_idles() -> None:
    with served(limits=Limits(idle_seconds=1.0)) as there:
        head = b"POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\n"
        with connected(there) as own:
            own.sendall(head)
            assert own.recv(65_536).startswith(b"HTTP/1.1 401 ")
            own.sendall(b"x")
            assert own.recv(65_536) == b""


def test_a_connection_goes_on_after_a_body_that_nobody_read() -> None:
    limits = Limits(body_seconds=0.2, header_seconds=0.2, idle_seconds=30)
    with served(limits=limits) as there, connected(there) as own:
        for body in (b"x", b""):
            own.sendall(b"POST /none HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\n")
            assert own.recv(65_536).startswith(b"HTTP/1.1 404 ")
            own.sendall(body)
            time.sleep(0.4)
        with contextlib.suppress(ConnectionResetError):
            assert own.recv(65_536) == b""  # the second body never came


def test_what_is_no_request_is_a_problem() -> None:
    with served() as there:
        reply = raw(there, b"hivpositive\r\n\r\n")
        assert reply.startswith(b"HTTP/1.1 400 ") and b"problem+json" in reply
        assert b"hivpositive" not in reply


def test_too_many_connections_are_refused() -> None:
    with served(limits=Limits(connections=1)) as there:
        address = urlsplit(there.url)
        with socket.create_connection((address.hostname, address.port)) as first:
            first.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
            assert first.recv(1_000).startswith(b"HTTP/1.1 200 ")
            assert raw(there).startswith(b"HTTP/1.1 503 ")


def test_the_end_answers_what_was_taken_and_closes_everything() -> None:
    gate = threading.Event()

    async def talk(url: str) -> tuple[list[Any], int]:
        socket_url = url.replace("http", "ws") + "/v1/socket"
        async with connect(socket_url, additional_headers=HEADERS, compression=None) as own:
            events = [{"n": n, "stream": "u", "id": f"w{n}", "value": "x"} for n in range(1, 6)]
            await own.send(json.dumps(events))
            found: list[Any] = []
            try:
                while True:
                    content = json.loads(await own.recv())
                    found += content if isinstance(content, list) else [content]
            except ConnectionClosed as closed:
                assert closed.rcvd is not None
                return found, closed.rcvd.code

    with served(gate=gate) as there, ThreadPoolExecutor(2) as pool:
        body = {"id": "e1", "value": "home"}
        post = pool.submit(
            httpx.post, there.url + "/v1/streams/a/events", json=body, headers=HEADERS
        )
        sent = pool.submit(lambda: asyncio.run(talk(there.url)))
        while there.world.releases.open()[0].gatherer.depth < 6:
            time.sleep(0.005)
        there.stop()
        time.sleep(0.05)
        gate.set()
        assert post.result(20.0).json()["status"] == "answered"
        replies, code = sent.result(20.0)
        assert [reply["status"] for reply in replies] == 5 * ["answered"] and code == 1012
        there.thread.join(20.0)
        run = there.world.runs["city"]
        assert run.closed and not run.store._ledger.held


def test_a_unix_socket_is_for_owner_and_group_and_gone_afterwards(short_path: Path) -> None:
    path = short_path / "sfumato.sock"
    for _ in range(2):
        with listening(Settings(uds=str(path))) as own:
            assert address_of(own, tls=False) == f"unix:{path}"
            assert path.stat().st_mode & 0o777 == 0o660
        assert not path.exists()
    path.write_text("precious")
    with pytest.raises(InvalidParameter, match="--uds"), listening(Settings(uds=str(path))):
        pass
    assert path.read_text() == "precious"


def test_the_second_signal_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr("sfumato.service.server.os._exit", ended.append)
    with served() as there:
        there.server.handle_exit(signal.SIGTERM, None)
        assert there.server.should_exit and not ended
        there.server.handle_exit(signal.SIGTERM, None)
        assert ended == [143]
