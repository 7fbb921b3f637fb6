"""A key for some releases: of all others it is told what is told of none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.service.access import AccessControl, operator
from sfumato.service.access_entries import CREATED, LIMITED, KeyRing, creation, followed
from sfumato.service.access_keys import EVERYTHING, Action, Grant
from sfumato.service.callers import Forbidden
from sfumato.service.stream_together import PARTIAL
from sfumato.store.catalogue import Catalogue
from sfumato.store.registry import MemoryRegistry
from tests.service.fakes import World
from tests.service.gateways import Opened, begun, document, json_of, opened, town
from tests.service.test_socket_routes import Peer, event, told

HOST = operator("tests")
READ = frozenset({Action.READ})
HIDDEN, ABSENT = "hidden", "absent"
Asked = Callable[..., Awaitable[tuple[int, bytes]]]


async def _two_releases(there: Opened) -> None:
    """Release `a`, and one that is hidden; `ann` has answers in both."""
    await begun(there)
    rules = {"epsilon": 0.2, "method": "optimal"}
    body = {"name": HIDDEN, "rules": rules, "model": "town"}
    await there.client.post("/v1/releases", json=body)
    body = {"name": f"{HIDDEN}-noise", "job": "realtime", "rules": _SERIES}
    await there.client.post("/v1/releases", json=body)
    await there.settled()
    for name in ("a", HIDDEN):
        url = f"/v1/streams/ann/events?release={name}"
        assert (await there.client.post(url, json={"id": "e1", "value": "home"})).is_success


_SERIES = {"epsilon": 1, "sensitivity": 1, "length": 10}


async def _limited(there: Opened, *releases: str, actions: Any = tuple(Action)) -> Asked:
    body = {"streams": ["*"], "actions": list(actions), "releases": list(releases)}
    made = json_of(await there.client.post("/v1/keys", json=body))
    assert made["access"]["releases"] == list(releases)
    headers = {"authorization": f"Bearer {made['key']}"}

    async def asked(method: str, url: str, content: Any = None) -> tuple[int, bytes]:
        reply = await there.client.request(method, url, json=content, headers=headers)
        return reply.status_code, reply.content

    return asked


def _bodies(path: str) -> list[Any]:
    """Good bodies of an operation, so that nothing but its release keeps it from its reply."""
    alone = {"id": "e9", "value": "home"}
    if path == "/v1/events":
        return [{"events": [{"stream": "ann", **alone}]}]
    return [alone, {"events": [alone]}] if path.endswith("/events") else [None]


def test_a_release_out_of_scope_cannot_be_told_from_one_that_is_not_there() -> None:
    async def run() -> None:
        async with opened() as there:
            await _two_releases(there)
            asked = await _limited(there, "a")
            described = json_of(await there.client.get("/openapi.json"))
            named = 0
            for path, methods in described["paths"].items():
                for method, operation in methods.items():
                    given = [one for one in operation.get("parameters", ()) if one["in"] == "query"]
                    if not {"release"} & {one["name"] for one in given} or "catalogue" in path:
                        continue
                    named += 1
                    url = path.replace("{stream}", "ann").replace("{event}", "e1")
                    url += "?epsilon=0.5&release=" if path == "/v1/plan" else "?release="
                    for body in _bodies(path):
                        replies = [
                            await asked(method.upper(), url + name, body)
                            for name in (HIDDEN, ABSENT, "a")
                        ]
                        assert replies[0] == replies[1], path
                        assert replies[0][0] == 404 and replies[2][0] in (200, 204), path
            assert named >= 16

    asyncio.run(run())


def test_no_reply_to_a_limited_key_names_another_release() -> None:
    async def run() -> None:
        async with opened() as there:
            await _two_releases(there)
            asked = await _limited(there, "a")
            described = json_of(await there.client.get("/openapi.json"))
            for path, methods in described["paths"].items():
                if "get" in methods:
                    url = path.replace("{stream}", "ann").replace("{event}", "e1")
                    status, content = await asked("GET", url)
                    assert HIDDEN.encode() not in content, path
                    about_all = ("/metrics", "/v1/models", "/v1/policies", "/v1/releases")
                    assert (status == 403) == (path in (*about_all, "/v1/admin/log")), path
            for path in ("/v1/releases", f"/v1/releases/{HIDDEN}/activate"):
                body = {"name": "c", "rules": {"epsilon": 1.0}} if path == "/v1/releases" else None
                assert (await asked("POST", path, body))[0] == 403

    asyncio.run(run())


def test_what_all_releases_told_together_is_said_to_be_of_some() -> None:
    async def run() -> None:
        async with opened() as there:
            await _two_releases(there)
            for name in ("budget", "certificate"):
                url = f"/v1/streams/ann/{name}?release=a"
                whole = json_of(await there.client.get(url))
                assert whole["together"]["releases"] == 2
                assert [one["release"] for one in whole["others"]] == [HIDDEN]
                for own, others in ((("a",), []), (("a", HIDDEN), [HIDDEN])):
                    asked = await _limited(there, *own)
                    found = _json((await asked("GET", url))[1])
                    assert [one["release"] for one in found["others"]] == others
                    assert (found["together"] is None) == (not others)
                    said = found["guarantees"] if name == "certificate" else [found["partial"]]
                    assert PARTIAL in said
                    assert not any(line.startswith("all 2 releases") for line in said)

    asyncio.run(run())


def test_the_catalogue_of_a_limited_key_is_what_its_releases_rest_on() -> None:
    async def run() -> None:
        async with opened() as there:
            await _two_releases(there)
            asked = await _limited(there, "a")
            found = _json((await asked("GET", "/v1/catalogue"))[1])
            rows = [(row["kind"], row["name"]) for row in found["rows"]]
            assert found["limited"] and rows == [("model", "town"), ("release", "a")]
            asked = await _limited(there, f"{HIDDEN}-noise")
            found = _json((await asked("GET", "/v1/catalogue"))[1])
            assert [row["kind"] for row in found["rows"]] == ["release"]
            whole = json_of(await there.client.get("/v1/catalogue"))
            assert not whole["limited"] and len(whole["rows"]) == 4

    asyncio.run(run())


@pytest.mark.parametrize("model", ["town", HIDDEN])
def test_what_another_release_rests_on_as_well_does_not_tell_its_name(model: str) -> None:
    async def run() -> None:
        async with opened() as there:
            data = document(town())
            await there.client.post("/v1/models", json={"name": model, "data": data})
            for name in (HIDDEN, "a"):  # the policy is compiled for the first, and for both
                body = {"name": name, "rules": {"epsilon": 0.5}, "model": model}
                await there.client.post("/v1/releases", json=body)
                await there.settled()
            asked = await _limited(there, "a")
            content = (await asked("GET", "/v1/catalogue"))[1]
            known = "town" if model == "town" else "a"
            rows = [(row["kind"], row["name"]) for row in _json(content)["rows"]]
            assert sorted(rows) == [("model", known), ("policy", "a"), ("release", "a")]
            assert HIDDEN.encode() not in content

    asyncio.run(run())


def test_a_key_for_one_release_asks_it_wherever_streams_belong() -> None:
    async def run() -> None:
        async with opened() as there:
            await _two_releases(there)
            at_home = await there.client.post("/v1/streams/bob/events", json=_event("e1"))
            assert json_of(at_home)["answers"][0]["sip"] <= 0.5
            asked = await _limited(there, HIDDEN)
            status, content = await asked("POST", "/v1/streams/bob/events", _event("e1"))
            assert status == 200 and not _json(content)["repeated"]
            status, content = await asked("GET", "/v1/streams/bob/ledger")
            assert _json(content)["release"] == HIDDEN
            several = await _limited(there, "a", HIDDEN)
            status, content = await several("POST", "/v1/streams/bob/events", _event("e2"))
            assert status == 404 and "name one of them" in _json(content)["detail"]
            # What it sent moved nothing: bob belongs where he did.
            again = await there.client.post("/v1/streams/bob/events", json=_event("e1"))
            assert json_of(again)["repeated"]

    asyncio.run(run())


def test_a_socket_refuses_a_release_out_of_scope_like_one_that_is_not_there() -> None:
    async def scenario(there: World) -> None:
        there.gate.visitor.releases = ("city",)
        replies = []
        for name in (HIDDEN, ABSENT, "city"):
            peer = await Peer(there, f"release={name}").accepted()
            peer.send([event(1), event(2)])
            replies.append(await peer.replies(2))
            peer.leave()
        assert replies[0] == replies[1]
        assert [one["problem"]["status"] for one in replies[0]] == [404, 404]
        assert [one["status"] for one in replies[2]] == ["answered", "answered"]
        assert there.runs[HIDDEN].groups == []

    told(scenario, "city", HIDDEN)


def test_nobody_hands_out_more_releases_than_he_has() -> None:
    control = AccessControl(MemoryRegistry())
    grant = Grant(("*",), frozenset({Action.ADMIN, Action.READ}), releases=("a", "b"))
    some = control.identify_text(control.issue(HOST, grant)[0])
    text, key = control.issue(some, Grant(("ann",), READ, releases=("b",)))
    assert control.identify_text(text).key.releases == ("b",)
    for releases in (None, ("c",), ("a", "c")):
        with pytest.raises(Forbidden):
            control.issue(some, Grant(("ann",), READ, releases=releases))
    everywhere = control.issue(HOST, Grant(("ann",), READ))[1]
    for act in (control.revoke, lambda by, id_: control.revoke(by, "0" * 16)):
        with pytest.raises(Forbidden):
            act(some, everywhere.id)
    assert {one.id for one in control.keys(some)} == {some.id, key.id}
    assert control.revoke(some, key.id).revoked is not None


def test_a_limit_stays_through_rotations_and_older_programs_know_no_such_key() -> None:
    registry = MemoryRegistry()
    control = AccessControl(registry)
    key = control.issue(HOST, Grant(("*",), READ, releases=("a",)))[1]
    new = control.rotate(HOST, key.id, timedelta(hours=1))[1]
    assert new.releases == ("a",)
    entries = registry.entries()
    assert [one.action for one in entries if one.name in (key.id, new.id)][:2] == [LIMITED] * 2
    # To an older program there is no `key.limited`: whatever else it reads makes no key of it.
    older = followed(KeyRing(), [one for one in entries if one.action != LIMITED])
    assert not older.keys
    assert Catalogue().after(entries).keys[key.id].releases == ("a",)
    assert creation(control.issue(HOST, EVERYTHING)[1]) == CREATED


def test_an_entry_that_says_limited_and_is_not_is_refused() -> None:
    registry = MemoryRegistry()
    control = AccessControl(registry)
    key = control.issue(HOST, Grant(("*",), READ))[1]
    content = next(one.content for one in registry.entries() if one.name == key.id)
    registry.append("eve", LIMITED, key.id, content)
    with pytest.raises(CorruptData, match="limit its key"):
        followed(KeyRing(), registry.entries())


@pytest.mark.parametrize("releases", [(), ("a", "a"), ("../a",), ("",), ("(no release)",)])
def test_other_names_are_no_limit(releases: tuple[str, ...]) -> None:
    with pytest.raises(InvalidParameter):
        Grant(("*",), READ, releases=releases)


def _event(id_: str) -> dict[str, str]:
    return {"id": id_, "value": "home"}


def _json(content: bytes) -> Any:
    return msgspec.json.decode(content)
