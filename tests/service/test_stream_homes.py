"""Where a stream belongs: one release for all nodes, whoever names, reads, races or restarts."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
from pytest import MonkeyPatch

from sfumato.core.errors import CorruptData
from sfumato.service.assembly import Gateway, assembled, controlled
from sfumato.service.event_log import EventLog
from sfumato.service.settings import Limits
from sfumato.store.folder_home import FolderHome
from sfumato.store.home import MemoryHome, open_home
from sfumato.store.keys import new_key
from sfumato.store.protocol import StoreUnavailable
from tests.service.gateways import Opened, begun, json_of, opened


async def another(there: Opened, name: str, epsilon: float) -> None:
    """One more release of the town."""
    rules = {"epsilon": epsilon, "method": "optimal"}
    body = {"name": name, "rules": rules, "model": "town"}
    await there.client.post("/v1/releases", json=body)
    await there.settled()


async def two(there: Opened) -> None:
    """Two releases, both activated: `b` is the default."""
    await begun(there)
    await another(there, "b", 0.25)
    await there.client.post("/v1/releases/b/activate")


async def asked(client: httpx.AsyncClient, stream: str, id_: str, **query: str) -> Any:
    body = {"id": id_, "value": "home"}
    reply = await client.post(f"/v1/streams/{stream}/events", json=body, params=query)
    assert reply.status_code == 200, reply.text
    return json_of(reply)


async def found_in(client: httpx.AsyncClient, stream: str, id_: str) -> list[str]:
    """The releases in which an event has an answer."""
    url = f"/v1/streams/{stream}/events/{id_}"
    replies = {name: await client.get(url, params={"release": name}) for name in ("a", "b")}
    return [name for name, reply in replies.items() if reply.status_code == 200]


def test_naming_a_release_never_moves_a_stream() -> None:
    async def scenario() -> None:
        async with opened() as there:
            await two(there)
            await asked(there.client, "ann", "e1")
            await asked(there.client, "ann", "x", release="a")
            assert (await asked(there.client, "ann", "e1"))["repeated"]
            await asked(there.client, "ann", "e2")
            assert await found_in(there.client, "ann", "e2") == ["b"]
            assert (await there.client.get("/v1/streams/ann/events/e2")).status_code == 200
            budget = json_of(await there.client.get("/v1/streams/ann/budget"))
            assert budget["release"] == "b"

    asyncio.run(scenario())


def test_whoever_reads_pins_nothing() -> None:
    async def scenario() -> None:
        home = MemoryHome()
        async with opened(home) as there:
            await begun(there)
            await another(there, "b", 0.25)
            scope = {"streams": ["*"], "actions": ["read"]}
            key = json_of(await there.client.post("/v1/keys", json=scope))["key"]
            reader = {"authorization": f"Bearer {key}"}
            for url in ("/v1/streams/ann/events/e1", "/v1/streams/ann/budget"):
                await there.client.get(url, headers=reader)
            assert home.settled(["ann"]) == {}
            await there.client.post("/v1/releases/b/activate")
            await asked(there.client, "ann", "e1")
            assert await found_in(there.client, "ann", "e1") == ["b"]
            assert home.settled(["ann"]) == {"ann": "b"}

    asyncio.run(scenario())


def test_a_home_outlives_a_restart_and_an_activation(tmp_path: Path) -> None:
    async def first() -> str:
        with FolderHome(tmp_path / "home") as home:
            async with opened(home) as there:
                await two(there)
                await asked(there.client, "ann", "e1")
                # Ledgers alone would say `a`, which was activated first.
                await asked(there.client, "ann", "x", release="a")
                return there.key

    async def second(key: str) -> None:
        with FolderHome(tmp_path / "home") as home:
            async with opened(home, key) as there:
                await there.client.post("/v1/releases/a/activate")
                assert (await asked(there.client, "ann", "e1"))["repeated"]
                await asked(there.client, "bob", "e2")
                assert await found_in(there.client, "bob", "e2") == ["a"]

    asyncio.run(second(asyncio.run(first())))


def test_a_stream_of_which_nothing_is_written_belongs_where_its_answers_are() -> None:
    async def scenario() -> None:
        home = MemoryHome()
        async with opened(home) as there:
            await two(there)
            await asked(there.client, "ann", "e1", release="a")
            await asked(there.client, "bob", "e2", release="b")
            await asked(there.client, "bob", "e3", release="a")
            for stream, id_ in (("ann", "e1"), ("bob", "e3")):
                assert (await asked(there.client, stream, id_))["repeated"]
            assert home.settled(["ann", "bob"]) == {"ann": "a", "bob": "a"}

    asyncio.run(scenario())


def test_events_that_name_a_release_disturb_no_others() -> None:
    async def scenario() -> None:
        async with opened() as there:
            await two(there)
            for number in range(20):
                events = [
                    {"stream": stream, "id": f"{stream}{number}", "value": "home"}
                    for stream in ("ann", f"new{number}")
                ]
                reply, _ = await asyncio.gather(
                    there.client.post("/v1/events", json={"events": events}),
                    asked(there.client, "ann", f"x{number}", release="a"),
                )
                assert reply.status_code == 200

    asyncio.run(scenario())


def test_a_store_that_is_away_settles_nothing_and_says_so(monkeypatch: MonkeyPatch) -> None:
    async def scenario() -> None:
        home = MemoryHome()

        def away(*_: object) -> dict[str, str]:
            raise StoreUnavailable("the database cannot be used")

        monkeypatch.setattr(home, "settle", away)
        async with opened(home) as there:
            await begun(there)
            body = {"id": "e1", "value": "home"}
            reply = await there.client.post("/v1/streams/ann/events", json=body)
            assert (reply.status_code, json_of(reply)["type"][-8:]) == (503, "unstored")

    asyncio.run(scenario())


def test_a_release_whose_store_was_away_is_tried_again_and_a_broken_one_is_not(
    monkeypatch: MonkeyPatch,
) -> None:
    async def scenario() -> None:
        home = MemoryHome()
        async with opened(home) as there:
            await begun(there)
            key = there.key
        real, failures = home.open_ledger, list[Exception]()

        def flaky(*given: Any) -> Any:
            if failures:
                raise failures.pop()
            return real(*given)

        monkeypatch.setattr(home, "open_ledger", flaky)
        failures.append(StoreUnavailable("it starts"))
        async with opened(home, key) as there:
            assert [one.detail for one in there.gateway.releases.states()] == ["it starts"]
            await there.gateway.desk.follow()
            await there.settled()
            await asked(there.client, "ann", "e1")
        failures.append(CorruptData("rows are gone"))
        async with opened(home, key) as there:
            for _ in range(3):
                await there.gateway.desk.follow()
                await there.settled()
            assert [one.detail for one in there.gateway.releases.states()] == ["rows are gone"]

    asyncio.run(scenario())


def test_two_nodes_around_an_activation_give_one_answer_to_an_id(
    database: str, tmp_path: Path
) -> None:
    new_key(tmp_path / "values.key")

    async def scenario() -> None:
        with (
            open_home(database, tmp_path / "values.key") as here,
            open_home(database, tmp_path / "values.key") as there,
        ):
            async with opened(here) as one:
                await begun(one)
                await another(one, "b", 0.25)
                control = controlled(there)
                log = EventLog(list[bytes]().append, b"a secret of the tests")
                late: Gateway = assembled(there, log, control, limits=Limits(), node="late")
                await late.open()
                await one.client.post("/v1/releases/b/activate")
                client = httpx.AsyncClient(
                    transport=httpx.ASGITransport(late.app),
                    base_url="http://test",
                    headers=one.client.headers,
                    timeout=60.0,
                )
                async with client:  # it has not heard of the activation
                    assert late.releases.default == "a"
                    for number in range(6):
                        stream = f"s{number}"
                        both = await asyncio.gather(
                            asked(one.client, stream, f"e{number}"),
                            asked(client, stream, f"e{number}"),
                        )
                        assert sorted(reply["repeated"] for reply in both) == [False, True]
                        assert both[0]["answers"] == both[1]["answers"]
                        assert len(await found_in(client, stream, f"e{number}")) == 1
                await late.releases.close(10.0)

    asyncio.run(scenario())
