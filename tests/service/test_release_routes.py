"""Laws of models, policies and releases over HTTP: made once, never changed, found again."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from sfumato.core.errors import CorruptData
from sfumato.models.cycle import Cycle
from sfumato.models.encoding import Symbols
from sfumato.models.periodic import PeriodicChain
from sfumato.models.stream_model import StreamModel
from sfumato.service.job_rules import rules_schema
from sfumato.solver.design_methods import Method
from sfumato.store.home import MemoryHome
from sfumato.stream.policy_files import compile_for
from sfumato.stream.release_spec import ReleaseSpec
from tests.service.gateways import (
    SERIES_RULES,
    TEMPORAL_RULES,
    Opened,
    document,
    json_of,
    opened,
    town,
)

RULES = {"epsilon": 0.5, "method": "optimal"}
RAGGED = [[0.5, 0.5], [1.0]]
# Tables as long as these would fill the memory of a service.
LONG_SERIES = {**SERIES_RULES, "length": 2**53}
LONG_TEMPORAL = {**TEMPORAL_RULES, "steps": 2**53}


def told(scenario: Callable[[Opened], Awaitable[None]]) -> None:
    async def run() -> None:
        async with opened() as there:
            await scenario(there)

    asyncio.run(run())


async def with_model(there: Opened) -> str:
    body = {"name": "town", "data": document(town())}
    made = await there.client.post("/v1/models", json=body)
    assert made.status_code == 201
    again = await there.client.post("/v1/models", json=body)
    assert (again.status_code, json_of(again)) == (200, json_of(made))
    return str(json_of(made)["fingerprint"])


async def released(there: Opened, name: str, **parts: Any) -> Any:
    body = {"name": name, "rules": RULES, "model": "town", **parts}
    return await there.client.post("/v1/releases", json=body)


def test_a_release_is_prepared_made_once_and_activated() -> None:
    async def scenario(there: Opened) -> None:
        client = there.client
        event = {"id": "e1", "value": "home"}
        assert (await client.post("/v1/streams/ann/events", json=event)).status_code == 404
        fingerprint = await with_model(there)
        begun = await released(there, "city")
        assert (begun.status_code, json_of(begun)["status"]) == (202, "preparing")
        await there.settled()
        again = await released(there, "city")
        assert (again.status_code, json_of(again)["status"]) == (200, "ready")
        assert json_of(again)["model"] == fingerprint
        for other in ({"rules": {"epsilon": 0.6}}, {"job": "temporal", "model": None}):
            refused = await released(there, "city", **other)
            assert refused.status_code == 409
        active = await client.post("/v1/releases/city/activate")
        assert json_of(active)["default"] is True
        answered = await client.post("/v1/streams/ann/events", json=event)
        assert answered.status_code == 200
        assert (await client.post("/v1/releases/none/activate")).status_code == 404
        [line] = json_of(await client.get("/v1/releases"))["releases"]
        assert line["rules"]["epsilon"] == 0.5

    told(scenario)


def test_what_an_administrator_did_stands_in_the_log() -> None:
    async def scenario(there: Opened) -> None:
        await with_model(there)
        await released(there, "city")
        await there.settled()
        await there.client.post("/v1/releases/city/activate")
        first = json_of(await there.client.get("/v1/admin/log?limit=3"))
        rest = json_of(await there.client.get(f"/v1/admin/log?after={first['next']}"))
        entries = first["entries"] + rest["entries"]
        actions = [entry["action"] for entry in entries]
        assert actions[-3:] == ["model.created", "release.created", "release.activated"]
        assert {entry["actor"] for entry in entries[-3:]} == {there.key.split("_")[1]}
        assert rest["next"] is None and rest["head"].startswith(f"{len(entries)}:")

    told(scenario)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "x", "rules": {"epsilon": -1.0}}, "epsilon"),
        ({"name": "x", "rules": {}, "job": "column", "model": None}, "job"),
        ({"name": "x", "rules": RULES, "model": "none"}, "model"),
        ({"name": "x", "rules": RULES, "policy": "none"}, "policy"),
        ({"name": "x", "rules": RULES, "coins": "0a1b2c"}, "coins"),
        ({"name": "x", "rules": {"epsilon": 0.5, "loss": "/etc/passwd"}}, "rules.loss"),
        ({"name": "x", "rules": {"epsilon": 0.5, "loss": "rules.csv"}}, "rules.loss"),
        ({"name": "x", "rules": {"epsilon": 0.5, "policy": "p"}}, "rules.policy"),
        ({"name": "x", "rules": {"epsilon": 0.5, "unheard": 1}}, "rules"),
        ({"name": "x", "rules": {"alpha": 1.0}, "job": "temporal", "model": None}, "matrices"),
        ({"name": "x", "rules": {"alpha": 1.0}, "job": "realtime", "model": None}, "rules"),
        ({"name": "x", "rules": {"epsilon": "a"}}, "rules.epsilon"),
        (
            {"name": "x", "rules": LONG_SERIES, "job": "realtime", "model": None},
            "rules.length",
        ),
        ({"name": "x", "rules": LONG_TEMPORAL, "job": "temporal", "model": None}, "rules.steps"),
        (
            {"name": "x", "rules": {"budget": 1, "horizon": 5, "method": "far-sighted"}},
            "rules.method",
        ),
        ({"name": "x", "rules": {"epsilon": 0.5, "method": "best"}}, "rules.method"),
        ({"name": "x", "rules": {"epsilon": 0.5, "loss": "absolute"}}, "alphabet.coordinates"),
        ({"name": "x", "rules": {"epsilon": 0.5, "loss": [[1.0]]}}, "rules.loss"),
        ({"name": "x", "rules": {"epsilon": 0.5, "missing": "zero"}}, "rules.missing"),
        ({"name": "x", "rules": {"epsilon": 0.5, "missing": "symbol"}}, "rules.missing"),
        ({"name": "x", "rules": {"epsilon": 0.5, "late": "never"}}, "rules.late"),
        ({"name": "x", "rules": {"epsilon": 0.5, "when_unknown": "guess"}}, "rules.when_unknown"),
        ({"name": "x", "rules": {"epsilon": 0.5, "purpose": "test"}}, "rules.purpose"),
        ({"name": "x", "rules": {"epsilon": 0.5, "robust": -1}}, "rules.robust"),
        ({"name": "x", "rules": {"epsilon": 0.5, "robust": 0.1, "batch": 3}}, "rules.robust"),
        ({"name": "x", "rules": {"epsilon": 0.5, "batch": 0}}, "rules.batch"),
        ({"name": "x", "rules": {"budget": 9, "per": "day", "cap": 1}}, "rules.per"),
        ({"name": "x", "rules": {"epsilon": 0.5, "learn": {}}}, "rules.learn"),
        (
            {
                "name": "x",
                "rules": {**SERIES_RULES, "purpose": "test"},
                "job": "realtime",
                "model": None,
            },
            "purpose",
        ),
        (
            {
                "name": "x",
                "rules": {**SERIES_RULES, "epsilon": 1e-300},
                "job": "realtime",
                "model": None,
            },
            "epsilon",
        ),
        (
            {
                "name": "x",
                "rules": {**TEMPORAL_RULES, "alpha": 2e19},
                "job": "temporal",
                "model": None,
            },
            "alpha",
        ),
        (
            {
                "name": "x",
                "rules": {"alpha": 1, "backward": [RAGGED]},
                "job": "temporal",
                "model": None,
            },
            "matrix",
        ),
        ({"name": "x", "rules": {"epsilon": 50.0}}, None),
    ],
)
def test_rules_that_are_none_are_refused_or_fail_and_leave_no_release(
    body: dict[str, Any], field: str | None
) -> None:
    async def scenario(there: Opened) -> None:
        await with_model(there)
        reply = await there.client.post("/v1/releases", json={"model": "town", **body})
        await there.settled()
        assert not there.gateway.desk.catalogue.releases
        if field is not None:
            assert (reply.status_code, json_of(reply)["field"]) == (422, field)
            return
        [line] = json_of(await there.client.get("/v1/releases"))["releases"]
        assert line["status"] == "failed" and line["detail"]
        # What failed is no release: its name is free.
        assert (await there.client.post("/v1/releases/x/activate")).status_code == 404
        again = await released(there, "x")
        assert again.status_code == 202
        await there.settled()
        assert "x" in there.gateway.desk.catalogue.releases

    told(scenario)


def test_bad_documents_and_names_are_refused() -> None:
    async def scenario(there: Opened) -> None:
        nothing = base64.b64encode(b"nothing of ours").decode()
        for path in ("/v1/models", "/v1/policies"):
            reply = await there.client.post(path, json={"name": "a", "data": nothing})
            assert reply.status_code == 422
        body = {"name": "../a", "data": document(town())}
        assert (await there.client.post("/v1/models", json=body)).status_code == 400
        body = {"name": "a", "data": "!"}
        assert (await there.client.post("/v1/models", json=body)).status_code == 400

    told(scenario)


def test_a_compiled_policy_is_used_where_it_is_named() -> None:
    spec = ReleaseSpec(epsilon=0.5, method=Method.OPTIMAL.value)
    policy = compile_for(town(), spec)

    async def scenario(there: Opened) -> None:
        await with_model(there)
        body = {"name": "channels", "data": document(policy)}
        assert (await there.client.post("/v1/policies", json=body)).status_code == 201
        await released(there, "city", policy="channels")
        await there.settled()
        again = await released(there, "city", policy="channels")
        assert json_of(again)["policy"] == policy.fingerprint
        asked = {"id": "e1", "value": "work"}
        reply = await there.client.post("/v1/streams/ann/events?release=city", json=asked)
        assert reply.status_code == 200

    told(scenario)


def test_series_and_correlated_counts_are_released_too() -> None:
    async def scenario(there: Opened) -> None:
        counts = {"alpha": 1.0, "backward": [[[0.8, 0.2], [0.2, 0.8]]]}
        series = {"sensitivity": 1.0, "epsilon": 1.0, "length": 50}
        for job, rules, charged in (
            ("temporal", counts, "epsilon"),
            ("temporal release", counts, "epsilon"),
            ("realtime", series, "charge"),
        ):
            name = job.replace(" ", "-")
            reply = await released(there, name, job=job, rules=rules, model=None)
            assert reply.status_code == 202
            await there.settled()
            again = await released(there, name, job=job, rules=rules, model=None)
            assert (again.status_code, json_of(again)["status"]) == (200, "ready")
            asked = {"id": "e1", "value": 17}
            url = f"/v1/streams/ward/events?release={name}"
            answer = json_of(await there.client.post(url, json=asked))["answers"][0]
            assert answer[charged] > 0 and "sip" not in answer

    told(scenario)


def test_a_service_that_starts_again_finds_its_releases_and_answers() -> None:
    home = MemoryHome()

    async def first() -> tuple[str, Any]:
        async with opened(home) as there:
            await with_model(there)
            await released(there, "city")
            await there.settled()
            await there.client.post("/v1/releases/city/activate")
            asked = {"id": "e1", "value": "home"}
            reply = await there.client.post("/v1/streams/ann/events", json=asked)
            return there.key, json_of(reply)

    async def second(key: str) -> Any:
        async with opened(home, key) as there:
            asked = {"id": "e1", "value": "home"}
            return json_of(await there.client.post("/v1/streams/ann/events", json=asked))

    key, before = asyncio.run(first())
    assert asyncio.run(second(key)) == {**before, "repeated": True}


def test_a_key_of_some_streams_administers_and_reads_no_others() -> None:
    async def scenario(there: Opened) -> None:
        await with_model(there)
        await released(there, "city")
        await there.settled()
        await there.client.post("/v1/releases/city/activate")
        for stream in ("ward-1", "home-1"):
            asked = {"id": stream, "value": "home"}
            await there.client.post(f"/v1/streams/{stream}/events", json=asked)
        grant = {"streams": ["ward-*"], "actions": ["read", "admin", "release"]}
        key = json_of(await there.client.post("/v1/keys", json=grant))["key"]
        there.client.headers["authorization"] = f"Bearer {key}"
        streams = json_of(await there.client.get("/v1/streams"))["streams"]
        assert [one["stream"] for one in streams] == ["ward-1"]
        closed = ("overview", "ledger", "drift", "ledger?stream=ward-1", "ledger/head", "admin/log")
        for path in closed:
            assert (await there.client.get(f"/v1/{path}")).status_code == 403, path
        assert (await there.client.get("/v1/catalogue")).status_code == 200
        assert (await there.client.get("/v1/streams/home-1/budget")).status_code == 403
        assert (await released(there, "other")).status_code == 403
        assert (await there.client.get("/v1/releases")).status_code == 403

    told(scenario)


async def with_key(there: Opened, streams: list[str], *actions: str) -> dict[str, str]:
    grant = {"streams": streams, "actions": list(actions)}
    key = json_of(await there.client.post("/v1/keys", json=grant))["key"]
    return {"authorization": f"Bearer {key}"}


def test_nothing_that_a_key_of_some_streams_reads_counts_answers_of_others() -> None:
    async def scenario(there: Opened) -> None:
        await with_model(there)
        await released(there, "city")
        await there.settled()
        await there.client.post("/v1/releases/city/activate")
        own = await with_key(there, ["ward-*"], "read")
        one = "/v1/streams/ward-1"
        paths = ["/v1/streams", "/v1/catalogue", f"{one}/ledger?limit=2"]
        paths += [f"{one}/{what}" for what in ("budget", "certificate", "leakage")]

        async def seen() -> list[bytes]:
            replies = [await there.client.get(path, headers=own) for path in paths]
            assert {reply.status_code for reply in replies} == {200}
            return [reply.content for reply in replies]

        for place in range(3):
            asked = {"id": f"w{place}", "value": "home"}
            await there.client.post("/v1/streams/ward-1/events", json=asked)
        before = await seen()
        for stream in ("a", "ward", "ward.", "zed"):
            asked = {"id": f"by {stream}", "value": "home"}
            await there.client.post(f"/v1/streams/{stream}/events", json=asked)
        assert await seen() == before
        page = "/v1/streams/ward-1/ledger"
        first = json_of(await there.client.get(page, params={"limit": 2}, headers=own))
        assert [row["sequence"] for row in first["rows"]] == [0, 1] and first["next"] == 2
        rest = json_of(await there.client.get(page, params={"after": 2}, headers=own))
        assert [row["event"] for row in rest["rows"]] == ["w2"] and rest["next"] is None

    told(scenario)


def test_the_head_is_for_keys_of_all_streams_and_of_what_is_counted() -> None:
    async def scenario(there: Opened) -> None:
        await with_model(there)
        await released(there, "city")
        await there.settled()
        await there.client.post("/v1/releases/city/activate")
        for streams, action, status in (
            (["*"], "read", 200),
            (["ward-*"], "metrics", 200),
            (["ward-*"], "read", 403),
            (["*"], "release", 403),
        ):
            own = await with_key(there, streams, action)
            reply = await there.client.get("/v1/ledger/head", headers=own)
            assert reply.status_code == status, (streams, action)

    told(scenario)


def test_why_a_release_failed_is_for_administrators() -> None:
    async def scenario(there: Opened) -> None:
        await with_model(there)
        await released(there, "city")
        await there.settled()

        def broken() -> Any:
            raise CorruptData("its ledger is at /srv/secret/place")

        await there.gateway.releases.prepare("city", broken)
        own = await with_key(there, ["*"], "read")
        for headers, detail in ((own, ""), ({}, "its ledger is at /srv/secret/place")):
            reply = await there.client.get("/v1/catalogue", headers=headers)
            [row] = [row for row in json_of(reply)["rows"] if row["kind"] == "release"]
            assert (row["status"], row["detail"]) == ("failed", detail)
        reply = await there.client.get("/v1/streams/ann/budget", headers=own)
        assert b"secret" not in reply.content

    told(scenario)


def test_a_budget_names_every_release_of_the_stream_and_what_they_told_together() -> None:
    async def scenario(there: Opened) -> None:
        await with_model(there)
        for name in ("city", "town"):
            await released(there, name)
            await there.settled()
        await there.client.post("/v1/releases/city/activate")
        alone = json_of(await there.client.get("/v1/streams/ann/budget"))
        assert alone["others"] == [] and alone["together"] is None
        for name in ("city", "town"):
            asked, where = {"id": "e", "value": "home"}, {"release": name}
            await there.client.post("/v1/streams/ann/events", json=asked, params=where)
        for what in ("budget", "certificate"):
            found = json_of(await there.client.get(f"/v1/streams/ann/{what}"))
            assert [(one["release"], one["answers"]) for one in found["others"]] == [("town", 1)]
            assert found["together"]["releases"] == 2
            assert found["together"]["ldp"] >= 2 * found["others"][0]["ldp"] - 1e-9

    told(scenario)


def test_a_model_that_changes_with_time_is_refused() -> None:
    """Events over the network have no phases: nothing may be certified as if they had."""
    turns = Cycle.of("2")
    matrices = [[[0.9, 0.1], [0.1, 0.9]], [[0.5, 0.5], [0.5, 0.5]]]
    chain = PeriodicChain.from_matrices(matrices, turns)
    phased = StreamModel(chain, Symbols(chain.alphabet))

    async def scenario(there: Opened) -> None:
        body = {"name": "phased", "data": document(phased)}
        made = await there.client.post("/v1/models", json=body)
        assert made.status_code == 422 and "change with time" in made.text
        await with_model(there)
        asked = await released(there, "city", rules={**RULES, "time": "when"})
        assert asked.status_code == 422 and "rules.time" in asked.text

    told(scenario)


def test_a_release_for_many_chains_looks_ahead_without_a_policy() -> None:
    async def scenario(there: Opened) -> None:
        await with_model(there)
        rules = {"epsilon": 0.5, "robust": 0.02}
        assert (await released(there, "wide", rules=rules)).status_code == 202
        await there.settled()
        [line] = json_of(await there.client.get("/v1/releases"))["releases"]
        assert (line["status"], line.get("policy")) == ("ready", None)
        assert line["rules"]["method"] == Method.FAR_SIGHTED.value
        assert line["rules"]["robust"] == 0.02
        events = [{"stream": "ann", "id": f"e{n}", "value": "home"} for n in range(5)]
        reply = await there.client.post("/v1/events?release=wide", json={"events": events})
        answers = [one["answers"][0] for one in json_of(reply)["replies"]]
        assert len(answers) == 5 and all(one["sip"] <= 0.5 for one in answers)

    told(scenario)


def test_the_document_names_no_rule_that_is_refused_whatever_it_is() -> None:
    [streams] = [one for one in rules_schema()["anyOf"] if one["title"] == "release"]
    assert {"epsilon", "robust", "missing"} <= set(streams["properties"])
    assert not {"per", "learn", "keep", "policy"} & set(streams["properties"])
