"""Laws of the operations for events."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from sfumato.service.settings import Limits
from tests.service.fakes import World, json_of, world

Body = dict[str, Any]


def told(scenario: Callable[[World], Awaitable[None]], *names: str, **parts: Any) -> None:
    async def run() -> None:
        async with world(*names, **parts) as there:
            await scenario(there)

    asyncio.run(run())


def test_one_event_has_its_answer_and_again_the_same() -> None:
    async def scenario(there: World) -> None:
        async with there.client() as client:
            url = "/v1/streams/u%2F1/events"
            first = await client.post(url, json={"id": "e1", "value": "home", "time": "08:00"})
            assert first.status_code == 200
            assert first.headers["content-type"] == "application/json"
            [answer] = json_of(first)["answers"]
            assert answer == {
                "event": "e1",
                "stream": "u/1",
                "sequence": 0,
                "released": "p",
                "outcome": "released",
                "sip": 0.5,
                "ldp": 0.75,
            }
            again = await client.post(url, json={"id": "e1", "value": "home"})
            assert json_of(again) == {"status": "answered", "answers": [answer], "repeated": True}
            other = await client.post(url, json={"id": "e1", "value": "work"})
            assert other.content == again.content
            found = await client.get("/v1/streams/u%2F1/events/e1")
            assert json_of(found)["repeated"] is True
            for missing in ("/v1/streams/u%2F1/events/e2", "/v1/streams/u2/events/e1"):
                assert (await client.get(missing)).status_code == 404

    told(scenario)


@pytest.mark.parametrize(("value", "status"), [("unknown", 422), ("dear", 403)])
def test_a_refused_event_is_a_problem_alone_and_a_reply_among_others(
    value: str, status: int
) -> None:
    async def scenario(there: World) -> None:
        async with there.client() as client:
            alone = await client.post("/v1/streams/u/events", json={"id": "e", "value": value})
            assert (alone.status_code, json_of(alone)["status"]) == (status, status)
            events = [{"id": "e", "value": value}, {"id": "f", "value": "home"}]
            both = await client.post("/v1/streams/u/events", json={"events": events})
            refused, answered = json_of(both)["replies"]
            assert refused == {"status": "refused", "problem": json_of(alone)}
            assert answered["status"] == "answered"

    told(scenario)


def test_events_of_many_streams_have_replies_in_order() -> None:
    async def scenario(there: World) -> None:
        events = [{"stream": f"u{n % 7}", "id": f"e{n}", "value": "home"} for n in range(300)]
        async with there.client() as client:
            replies = json_of(await client.post("/v1/events", json={"events": events}))["replies"]
        assert [one["answers"][0]["event"] for one in replies] == [one["id"] for one in events]
        assert [one["answers"][0]["stream"] for one in replies] == [one["stream"] for one in events]

    told(scenario)


def test_a_batch_waits_and_is_finished() -> None:
    async def scenario(there: World) -> None:
        async with there.client() as client:
            nothing = await client.post("/v1/streams/u/finish")
            assert (nothing.status_code, nothing.content) == (204, b"")
            first = await client.post("/v1/streams/u/events", json={"id": "a", "value": 1})
            assert first.status_code == 202
            assert json_of(first) == {"status": "waiting", "missing": 2}
            await client.post("/v1/streams/u/events", json={"id": "b", "value": 1})
            done = await client.post("/v1/streams/u/finish")
            assert [one["event"] for one in json_of(done)["answers"]] == ["a", "b"]
            body = {"id": "c", "value": "dear at last"}
            await client.post("/v1/streams/v/events", json=body)
            assert (await client.post("/v1/streams/v/finish")).status_code == 403

    told(scenario, width=3)


def test_a_stream_stays_with_the_release_that_it_began_in() -> None:
    async def scenario(there: World) -> None:
        async def post(stream: str, id_: str, query: str = "") -> int:
            body = {"id": id_, "value": "home"}
            reply = await client.post(f"/v1/streams/{stream}/events{query}", json=body)
            return reply.status_code

        async with there.client() as client:
            await post("old", "e1")
            there.releases.activate("new")
            await post("old", "e2")
            await post("young", "e3")
            assert await post("old", "e4", "?release=new") == 200
            await post("old", "e5")
            assert await post("old", "e6", "?release=none") == 404
            events = [{"stream": s, "id": f"m-{s}", "value": "x"} for s in ("old", "young", "old2")]
            mixed = await client.post("/v1/events", json={"events": events})
            ids = [reply["answers"][0]["event"] for reply in json_of(mixed)["replies"]]
            assert ids == ["m-old", "m-young", "m-old2"]
        first = [id_ for group in there.runs["city"].groups for id_ in group]
        second = [id_ for group in there.runs["new"].groups for id_ in group]
        assert sorted(first) == ["e1", "e2", "e5", "m-old"]
        assert sorted(second) == ["e3", "e4", "m-old2", "m-young"]

    told(scenario, "city", "new")


def test_nothing_is_answered_without_a_key_or_beyond_its_scope() -> None:
    async def scenario(there: World) -> None:
        body = {"id": "e1", "value": "home"}
        async with there.client(authorization="Bearer sfk_wrong") as stranger:
            reply = await stranger.post("/v1/streams/u/events", json=body)
            assert reply.status_code == 401
            assert reply.headers["www-authenticate"] == "Bearer"
        async with there.client() as client:
            alone = await client.post("/v1/streams/foreign/events", json=body)
            events = [{"stream": each, **body} for each in ("mine", "foreign")]
            among = await client.post("/v1/events", json={"events": events})
            assert (alone.status_code, among.status_code) == (403, 403)
        assert there.runs["city"].groups == []

    told(scenario)


def test_a_full_queue_is_refused_before_the_body_is_read() -> None:
    gate = threading.Event()

    async def scenario(there: World) -> None:
        async with there.client() as client:
            events = [{"id": f"e{n}", "value": "home"} for n in range(4)]
            first = asyncio.ensure_future(
                client.post("/v1/streams/u/events", json={"events": events})
            )
            while there.releases.open()[0].gatherer.depth < 4:
                await asyncio.sleep(0.001)
            refused = await client.post(
                "/v1/streams/u/events",
                content=b"no json at all",
                headers={"content-type": "application/json"},
            )
            assert refused.status_code == 429
            assert int(refused.headers["retry-after"]) >= 1
            gate.set()
            assert (await first).status_code == 200

    told(scenario, limits=Limits(queued_events=4, request_events=4), gate=gate)


def test_too_many_bytes_in_flight_are_refused() -> None:
    gate = threading.Event()

    async def scenario(there: World) -> None:
        async with there.client() as client:
            body = {"id": "e", "value": "x" * 500}
            first = asyncio.ensure_future(client.post("/v1/streams/u/events", json=body))
            while not there.service.application.flight.now:
                await asyncio.sleep(0.001)
            second = await client.post("/v1/streams/u/events", json=body)
            assert second.status_code == 429
            gate.set()
            assert (await first).status_code == 200
            assert there.service.application.flight.now == 0

    told(scenario, limits=Limits(flight_bytes=900, body_bytes=900, document_bytes=900), gate=gate)


def test_who_waits_too_long_is_told_and_the_event_is_answered_all_the_same() -> None:
    gate = threading.Event()

    async def scenario(there: World) -> None:
        async with there.client() as client:
            body = {"id": "e1", "value": "home"}
            late = await client.post("/v1/streams/u/events", json=body)
            assert (late.status_code, json_of(late)["type"][-8:]) == (503, "unstored")
            gate.set()
            while there.releases.open()[0].gatherer.depth:
                await asyncio.sleep(0.001)
            again = await client.post("/v1/streams/u/events", json=body)
            assert json_of(again)["repeated"] is True

    told(scenario, limits=Limits(reply_seconds=0.05), gate=gate)


def test_the_rate_of_a_key_is_kept() -> None:
    async def scenario(there: World) -> None:
        there.gate.events_left = 2
        events = [{"id": f"e{n}", "value": "home"} for n in range(3)]
        async with there.client() as client:
            refused = await client.post("/v1/streams/u/events", json={"events": events})
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
            taken = await client.post("/v1/streams/u/events", json={"events": events[:2]})
            assert taken.status_code == 200
        assert there.runs["city"].groups == [["e0", "e1"]]

    told(scenario)


def test_a_store_that_fails_is_503_and_asking_again_is_safe() -> None:
    async def scenario(there: World) -> None:
        there.runs["city"].break_with = OSError("disk of home")
        body = {"id": "e1", "value": "home"}
        async with there.client() as client:
            failed = await client.post("/v1/streams/u/events", json=body)
            assert failed.status_code == 503
            assert b"disk" not in failed.content
            there.runs["city"].break_with = None
            again = await client.post("/v1/streams/u/events", json=body)
            assert json_of(again)["repeated"] is False
        assert there.log.lines == [{"event": "failed", "failure": "OSError", "release": "city"}]

    told(scenario)
