"""A closed release over HTTP: nothing new, all that was answered, and no stream begins there."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx

from sfumato.service.release_desk import ReleaseDesk
from sfumato.service.releases import Releases
from sfumato.service.settings import Limits
from sfumato.store.folder_home import FolderHome
from sfumato.store.live import Asked, Reason, Refused
from sfumato.store.release_end import close_release
from tests.service.gateways import Opened, begun, json_of, opened

EVENTS = "/v1/streams/ann/events"


def _event(id_: str) -> dict[str, str]:
    return {"id": id_, "value": "home"}


def _is_closed(reply: httpx.Response) -> bool:
    return reply.status_code == 410 and json_of(reply)["type"] == "urn:sfumato:problem:closed"


async def _check_new_stream(there: Opened) -> None:
    """A stream that has no home yet gets none where nothing is answered."""
    assert _is_closed(await there.client.post("/v1/streams/new/events", json=_event("e1")))
    assert there.gateway.home.settled(["new"]) == {}


async def _check_closed(there: Opened, first: httpx.Response) -> None:
    for url in (EVENTS, f"{EVENTS}?release=a"):
        assert _is_closed(await there.client.post(url, json=_event("e2")))
        again = json_of(await there.client.post(url, json=_event("e1")))
        assert again["repeated"] and again["answers"] == json_of(first)["answers"]
    await _check_new_stream(there)
    for what in ("budget", "certificate", "leakage", "recovered", "ledger", "events/e1"):
        assert (await there.client.get(f"/v1/streams/ann/{what}")).status_code == 200
    assert (await there.client.get("/v1/overview")).status_code == 200
    [line] = json_of(await there.client.get("/v1/releases"))["releases"]
    rows = json_of(await there.client.get("/v1/catalogue"))["rows"]
    assert line["closed"] == rows[-1]["closed"] is not None


def test_no_stream_begins_in_a_release_that_another_node_has_just_closed() -> None:
    async def run() -> None:
        async with opened() as there:
            await begun(there)
            first = await there.client.post(EVENTS, json=_event("e1"))
            close_release(there.gateway.home, "elsewhere", "a")
            await _check_new_stream(there)
            again = json_of(await there.client.post(EVENTS, json=_event("e1")))
            assert again["repeated"] and again["answers"] == json_of(first)["answers"]

    asyncio.run(run())


def test_a_release_that_is_closed_stays_closed_also_for_whoever_opens_it_next(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        with FolderHome(tmp_path / "home") as home:
            async with opened(home) as there:
                await begun(there)
                first = await there.client.post(EVENTS, json=_event("e1"))
                made = await there.client.post("/v1/releases/a/close")
                closed = json_of(made)["closed"]
                again = await there.client.post("/v1/releases/a/close")
                assert made.status_code == 200 and json_of(again)["closed"] == closed
                assert (await there.client.post("/v1/releases/b/close")).status_code == 404
                assert _is_closed(await there.client.post("/v1/releases/a/activate"))
                await _check_closed(there, first)
                log = json_of(await there.client.get("/v1/admin/log"))["entries"]
                assert [one["action"] for one in log].count("release.closed") == 1
                key = there.key
            async with opened(home, key) as there:
                await _check_closed(there, first)
            # A bridge opens it by the same desk.
            found = ReleaseDesk(home, Releases(Limits()), door="mqtt x")
            found.catch_up()
            bridged = found.open("a")
            [reply] = bridged.run.answer([Asked("e3", "ann", "home")])
            assert isinstance(reply, Refused) and reply.reason is Reason.CLOSED
            bridged.close()

    asyncio.run(run())


def test_another_default_takes_new_streams_after_the_first_was_closed() -> None:
    async def run() -> None:
        async with opened() as there:
            await begun(there)
            await there.client.post(EVENTS, json=_event("e1"))
            rules = {"epsilon": 0.2, "method": "optimal"}
            body = {"name": "b", "rules": rules, "model": "town"}
            await there.client.post("/v1/releases", json=body)
            await there.settled()
            await there.client.post("/v1/releases/a/close")
            await there.client.post("/v1/releases/b/activate")
            new = await there.client.post("/v1/streams/new/events", json=_event("e1"))
            assert new.status_code == 200
            assert _is_closed(await there.client.post(EVENTS, json=_event("e2")))  # its home

    asyncio.run(run())
