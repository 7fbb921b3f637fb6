"""The whole service keeps its word: what is documented is answered, and it knows when it cannot."""

from __future__ import annotations

import asyncio
import threading

import pytest

from sfumato.core.errors import SfumatoError
from sfumato.service import health_routes
from sfumato.service.assembly import lacking
from tests.service.gateways import begun, begun_jobs, gateway_served, json_of, opened
from tests.service.test_openapi import fuzzed


def test_a_service_is_ready_until_a_worker_dies_or_it_ends() -> None:
    async def run() -> None:
        async with opened() as there:
            await begun(there)
            assert (await there.client.get("/readyz")).status_code == 200
            there.gateway.service.end()
            reply = await there.client.get("/readyz")
            assert (reply.status_code, json_of(reply)["lacking"]) == (503, ["it is shutting down"])
            releases = there.gateway.releases
            await releases.open()[0].gatherer.close(5.0)
            found = lacking(there.gateway.home, releases, ending=False)
            assert found == ["the worker of a release has ended"]

    asyncio.run(run())


def test_a_registry_that_cannot_be_read_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(after: int = 0) -> None:
        raise SfumatoError("gone")

    async def run() -> None:
        async with opened() as there:
            monkeypatch.setattr(there.gateway.home.registry, "entries", broken)
            found = lacking(there.gateway.home, there.gateway.releases, ending=False)
            assert found == ["the registry cannot be read"]

    asyncio.run(run())


def test_whoever_asks_is_told_of_a_store_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe that waits for ever is no answer: a balancer must learn it in time."""
    gate = threading.Event()
    monkeypatch.setattr(health_routes, "LOOK_SECONDS", 0.05)

    async def run() -> None:
        async with opened() as there:
            await begun(there)
            registry = there.gateway.home.registry
            entries = registry.entries
            monkeypatch.setattr(registry, "entries", lambda after=0: gate.wait() and entries(after))
            reply = await there.client.get("/readyz")
            assert reply.status_code == 503 and "did not answer" in reply.text
            assert (await there.client.get("/metrics")).status_code == 200
            gate.set()
            while (await there.client.get("/readyz")).status_code != 200:
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(run(), 30.0))


@pytest.mark.parametrize(
    ("problem", "says"),
    [(SfumatoError("the secret must be given"), True), (ValueError("hivpositive"), False)],
)
def test_why_a_release_did_not_open_is_in_the_log_in_our_own_words(
    problem: Exception, says: bool
) -> None:
    async def run() -> None:
        async with opened() as there:
            there.gateway.releases.failed("city", problem)
            line = next(one for one in there.lines if b"release failed" in one)
            assert (str(problem).encode() in line) is says

    asyncio.run(run())


def test_no_value_is_in_the_log_or_the_metrics() -> None:
    async def run() -> None:
        async with opened() as there:
            await begun(there)
            for id_, value in (("e1", "work"), ("e2", "hivpositive"), ("e3", {"hivpositive": 1})):
                url = "/v1/streams/ann/events"
                await there.client.post(url, json={"id": id_, "value": value})
            text = (await there.client.get("/metrics")).text
            assert "hivpositive" not in text and "ann" not in text.replace("channel", "")
            log = b"".join(there.lines).decode()
            assert "hivpositive" not in log and '"ann"' not in log
            assert log.count("/v1/streams/{stream}/events") == 3

    asyncio.run(run())


@pytest.mark.parametrize("examples", [2, pytest.param(60, marks=pytest.mark.slow)])
def test_whatever_the_whole_service_is_asked_the_reply_is_as_documented(examples: int) -> None:
    with gateway_served(begin=begun_jobs) as (url, key):
        assert fuzzed(url, examples, key) > 40
