"""Laws of sockets: replies in the order of n, bounded, and safe to repeat."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from sfumato.service.settings import Limits
from tests.service.fakes import KEY, World, world


class Peer:
    """One end of a socket, without a network."""

    def __init__(self, there: World, query: str = "", key: str | None = KEY) -> None:
        headers = [] if key is None else [(b"authorization", f"Bearer {key}".encode())]
        scope = {"type": "websocket", "path": "/v1/socket", "raw_path": b"/v1/socket"}
        scope |= {"query_string": query.encode(), "headers": headers, "client": ("::1", 1)}
        self._in: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._out: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._in.put_nowait({"type": "websocket.connect"})
        self.writable = asyncio.Event()
        self.writable.set()
        self.task = asyncio.ensure_future(there.service(scope, self._in.get, self._send))

    async def _send(self, message: Any) -> None:
        await self.writable.wait()
        await self._out.put(message)

    def send(self, content: Any) -> None:
        text = content if isinstance(content, str) else json.dumps(content)
        self._in.put_nowait({"type": "websocket.receive", "text": text})

    def unread(self) -> int:
        return self._in.qsize()

    def leave(self) -> None:
        self._in.put_nowait({"type": "websocket.disconnect", "code": 1001})

    async def message(self) -> dict[str, Any]:
        async with asyncio.timeout(10.0):
            return await self._out.get()

    async def accepted(self) -> Peer:
        assert await self.message() == {"type": "websocket.accept"}
        return self

    async def replies(self, count: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while len(found) < count:
            message = await self.message()
            assert message["type"] == "websocket.send", message
            content = json.loads(message["text"])
            found += content if isinstance(content, list) else [content]
        return found

    async def closed(self) -> int:
        while (message := await self.message())["type"] != "websocket.close":
            pass
        async with asyncio.timeout(10.0):
            await self.task
        return int(message["code"])


def event(n: int, stream: str = "u", value: Any = "home", **more: Any) -> dict[str, Any]:
    return {"n": n, "stream": stream, "id": f"e{n}", "value": value, **more}


def told(scenario: Callable[[World], Awaitable[None]], *names: str, **parts: Any) -> None:
    async def run() -> None:
        async with world(*names, **parts) as there:
            await scenario(there)

    asyncio.run(run())


def test_replies_come_in_the_order_of_n_whatever_the_messages() -> None:
    async def scenario(there: World) -> None:
        peer = await Peer(there).accepted()
        n = 1
        for size in (1, 5, 1, 1, 40, 2, 1):
            events = [
                event(n + k, f"u{(n + k) % 3}", "unknown" if k == 3 else "x") for k in range(size)
            ]
            peer.send(events[0] if size == 1 else events)
            n += size
        replies = await peer.replies(n - 1)
        assert [reply["n"] for reply in replies] == list(range(1, n))
        for reply in replies:
            if reply["status"] == "answered":
                assert reply["answers"][0]["event"] == f"e{reply['n']}"
            else:
                assert reply["problem"]["status"] == 422
        peer.leave()
        await peer.task

    told(scenario)


def test_what_has_no_reply_is_sent_again_on_another_socket() -> None:
    gate = threading.Event()

    async def scenario(there: World) -> None:
        first = await Peer(there).accepted()
        first.send([event(n) for n in range(1, 6)])
        while there.releases.open()[0].gatherer.depth < 5:
            await asyncio.sleep(0.001)
        first.leave()
        await first.task
        gate.set()
        second = await Peer(there).accepted()
        second.send([event(n) for n in range(1, 8)])
        replies = await second.replies(7)
        assert [reply["repeated"] for reply in replies] == 5 * [True] + 2 * [False]
        second.leave()
        await second.task

    told(scenario, gate=gate)


def test_beyond_the_bound_nothing_is_read() -> None:
    gate = threading.Event()

    async def scenario(there: World) -> None:
        peer = await Peer(there).accepted()
        for n in range(1, 21):
            peer.send(event(n))
        while peer.unread() > 12:
            await asyncio.sleep(0.001)
        for _ in range(50):
            await asyncio.sleep(0)
        assert peer.unread() == 12  # eight were taken
        gate.set()
        assert len(await peer.replies(20)) == 20
        peer.leave()
        await peer.task

    told(scenario, limits=Limits(unanswered=8), gate=gate)


def test_who_does_not_read_his_replies_is_not_read_from() -> None:
    async def scenario(there: World) -> None:
        peer = await Peer(there).accepted()
        peer.writable.clear()
        for n in range(1, 41):
            peer.send(event(n))
        while there.runs["city"].store.front.head.entries < 8:
            await asyncio.sleep(0.001)
        for _ in range(100):
            await asyncio.sleep(0)
        assert peer.unread() >= 24  # eight without a reply, and eight that could not be sent
        peer.writable.set()
        assert len(await peer.replies(40)) == 40
        peer.leave()
        await peer.task

    told(scenario, limits=Limits(unanswered=8))


def test_a_full_queue_holds_a_socket_up_and_refuses_nothing() -> None:
    gate = threading.Event()

    async def scenario(there: World) -> None:
        peer = await Peer(there).accepted()
        for n in range(1, 13):
            peer.send(event(n))
        while there.releases.open()[0].gatherer.depth < 4:
            await asyncio.sleep(0.001)
        gate.set()
        assert {reply["status"] for reply in await peer.replies(12)} == {"answered"}
        peer.leave()
        await peer.task

    told(scenario, limits=Limits(queued_events=4, request_events=4), gate=gate)


def test_a_key_may_come_first_and_a_ping_has_its_pong() -> None:
    async def scenario(there: World) -> None:
        peer = await Peer(there, key=None).accepted()
        peer.send({"key": KEY})
        peer.send({"ping": 7})
        assert await peer.replies(1) == [{"pong": 7}]
        peer.send(event(1))
        assert (await peer.replies(1))[0]["n"] == 1
        peer.leave()
        await peer.task

    told(scenario)


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        (["hivpositive"], 1007),
        ([{"n": 1, "stream": "u", "id": "e1"}], 1007),
        ([{"n": 1, "stream": "u", "id": "e1", "value": 1, "hivpositive": 1}], 1007),
        (['{"n": 1, "stream": "u", "id": "e1", "value": "hivpositive", "value": 1}'], 1007),
        ([[]], 1007),
        ([event(1), event(3)], 1008),
        ([[event(1), event(1)]], 1008),
        ([[event(n) for n in range(1, 12)]], 1009),
        ([event(1, value="x" * 3_000)], 1009),
        ([[event(n) for n in range(1, 6)], event(6)], 4429),
    ],
)
def test_what_breaks_a_rule_closes_the_socket(messages: list[Any], code: int) -> None:
    async def scenario(there: World) -> None:
        there.gate.events_left = 5
        peer = await Peer(there).accepted()
        for message in messages:
            peer.send(message)
        assert await peer.closed() == code
        assert peer._out.empty()

    told(scenario, limits=Limits(request_events=10, body_bytes=2_000))


@pytest.mark.parametrize(
    ("key", "first", "query"),
    [
        ("sfk_wrong", [], ""),
        (None, [{"key": "sfk_wrong"}], ""),
        (None, [event(1)], ""),
        (KEY, [], "x=1"),
    ],
)
def test_who_has_no_key_is_shut_out(key: str | None, first: list[Any], query: str) -> None:
    async def scenario(there: World) -> None:
        peer = await Peer(there, query, key).accepted()
        for message in first:
            peer.send(message)
        assert await peer.closed() == 1008
        assert there.runs["city"].groups == []

    told(scenario)


def test_a_key_that_is_revoked_closes_its_sockets_with_their_next_message() -> None:
    async def scenario(there: World) -> None:
        peer = await Peer(there).accepted()
        peer.send(event(1))
        await peer.replies(1)
        there.gate.revoked = True
        peer.send(event(2))
        assert await peer.closed() == 1008
        assert there.runs["city"].groups == [["e1"]]

    told(scenario)


def test_events_of_foreign_streams_are_refused_one_by_one() -> None:
    async def scenario(there: World) -> None:
        peer = await Peer(there).accepted()
        peer.send([event(1), event(2, "foreign"), event(3)])
        replies = await peer.replies(3)
        assert [reply["status"] for reply in replies] == ["answered", "refused", "answered"]
        assert replies[1]["problem"]["status"] == 403
        peer.leave()
        await peer.task

    told(scenario)


def test_an_unknown_release_refuses_events_and_keeps_the_socket() -> None:
    async def scenario(there: World) -> None:
        peer = await Peer(there, "release=none").accepted()
        peer.send([event(1), event(2)])
        assert [one["problem"]["status"] for one in await peer.replies(2)] == [404, 404]
        peer.leave()
        await peer.task

    told(scenario)


def test_at_the_end_replies_of_what_was_taken_leave_before_the_socket_closes() -> None:
    gate = threading.Event()

    async def scenario(there: World) -> None:
        peer = await Peer(there).accepted()
        peer.send([event(n) for n in range(1, 4)])
        while there.releases.open()[0].gatherer.depth < 3:
            await asyncio.sleep(0.001)
        closing = asyncio.ensure_future(there.service.sockets.close(5.0))
        await asyncio.sleep(0.01)
        gate.set()
        assert len(await peer.replies(3)) == 3
        assert await peer.closed() == 1012
        await closing
        late = await Peer(there).accepted()
        assert await late.closed() == 1012

    told(scenario, gate=gate)


def test_more_sockets_than_allowed_are_sent_away() -> None:
    async def scenario(there: World) -> None:
        peer = await Peer(there).accepted()
        other = await Peer(there).accepted()
        assert await other.closed() == 1013
        peer.leave()
        await peer.task

    told(scenario, limits=Limits(sockets=1))
