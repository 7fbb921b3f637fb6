"""Laws of what all operations have in common: what is refused, how, and what it does not say."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from sfumato.core.errors import InvalidParameter
from sfumato.service.access_keys import AccessKey, Action
from sfumato.service.callers import Caller, Forbidden
from sfumato.service.operations import Call, Operation, Result
from sfumato.service.problems import SLUGS, of_query, problem, refusal
from sfumato.service.settings import Limits
from sfumato.store.live import Reason, Refused
from tests.service.fakes import World, json_of, world

SECRET = "hivpositive"
POST = "/v1/streams/u/events"


def one(method: str, url: str, limits: Limits | None = None, **request: Any) -> httpx.Response:
    async def run() -> httpx.Response:
        async with world(limits=limits or Limits()) as there, there.client() as client:
            response: httpx.Response = await client.request(method, url, **request)
            await _nothing_stored(there)
            return response

    response = asyncio.run(run())
    assert SECRET.encode() not in response.content
    return response


async def _nothing_stored(there: World) -> None:
    assert there.runs["city"].store.front.head.entries == 0


def is_problem(response: httpx.Response, status: int, slug: str) -> dict[str, Any]:
    assert response.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = json_of(response)
    assert document["type"] == f"urn:sfumato:problem:{slug}"
    assert response.status_code == document["status"] == status
    return document


BAD = [
    b"",
    b"hivpositive",
    b'{"id": "e1", "value": hivpositive}',
    b'{"id": "e1", "value": NaN}',
    b'{"id": "e1", "value": 1e999}',
    b'{"id": "e1", "value": -Infinity}',
    b'{"id": "e1", "value": true}',
    b'{"id": "e1", "value": ["hivpositive", [1]]}',
    b'{"id": "e1", "value": "hivpositive", "value": "x"}',
    b'{"id": "e1", "value": {"hivpositive": 1, "hivpositive": 2}}',
    b'{"id": "e1", "hivpositive": 1}',
    b'{"id": "e1"}',
    b'{"value": "hivpositive"}',
    b'{"id": 17, "value": "hivpositive"}',
    b'{"id": "", "value": "hivpositive"}',
    b'{"id": "e\\u0000", "value": "hivpositive"}',
    b'{"id": "e\\n", "value": "hivpositive"}',
    b'{"id": "e1", "value": "hivpositive\xff"}',
    b'{"id": "e1", "value": "hivpositive\\ud800"}',
    b'{"id": "e1", "value": "hivpositive", "time": 3}',
    b'{"id": "e1", "value": "hivpositive", "events": []}',
    b'{"events": [{"id": "e1", "value": "hivpositive"}], "id": "e1"}',
    b'{"events": []}',
    b'{"events": {"id": "e1"}}',
    b'["hivpositive"]',
    b"[" * 100_000,
    b'{"id": "e1", "value": ' + b"[" * 50_000,
    b'{"id": "' + b"e" * 257 + b'", "value": "hivpositive"}',
    b'{"id": "e1", "value": "' + b"hivpositive" * 400 + b'"}',
]


@pytest.mark.parametrize("body", BAD, ids=range(len(BAD)))
def test_a_bad_body_is_refused_without_a_word_of_it(body: bytes) -> None:
    response = one("POST", POST, content=body, headers={"content-type": "application/json"})
    is_problem(response, 400, "malformed")


def test_a_problem_names_the_place_and_the_rule() -> None:
    body = {"events": [{"id": "a", "value": 1}, {"id": 5, "value": SECRET}]}
    document = is_problem(one("POST", POST, json=body), 400, "malformed")
    assert document["field"] == "$.events[1].id"
    assert document["rule"] == "expected `str`, got `int`"


@pytest.mark.parametrize(
    ("headers", "status", "slug"),
    [
        ({"content-type": "text/plain"}, 415, "media-type"),
        ({"content-type": ""}, 415, "media-type"),
        ({"content-type": "application/json; charset=latin-1"}, 415, "media-type"),
        ({"content-type": "application/json", "content-encoding": "gzip"}, 415, "media-type"),
        ({"content-type": "application/json", "accept": "text/html"}, 406, "accept"),
        ({"content-type": "application/json", "content-length": "9" * 30}, 413, "too-large"),
    ],
)
def test_headers_are_checked(headers: dict[str, str], status: int, slug: str) -> None:
    body = b'{"id": "e1", "value": "hivpositive"}'
    is_problem(one("POST", POST, content=body, headers=headers), status, slug)


def test_a_long_body_is_refused_whether_its_length_is_told_or_not() -> None:
    async def parts() -> Any:
        for _ in range(10):
            yield b'"hivpositive'

    limits, headers = Limits(body_bytes=100), {"content-type": "application/json"}
    is_problem(one("POST", POST, limits, json={"x": SECRET * 20}), 413, "too-large")
    chunked = one("POST", POST, limits, content=parts(), headers=headers)
    is_problem(chunked, 413, "too-large")


def test_a_slow_body_is_refused() -> None:
    async def slow() -> Any:
        yield b'{"id": "e1", '
        await asyncio.sleep(5.0)
        yield b'"value": "hivpositive"}'

    headers = {"content-type": "application/json"}
    late = one("POST", POST, Limits(body_seconds=0.02), content=slow(), headers=headers)
    is_problem(late, 408, "timeout")


def test_too_many_events_are_refused() -> None:
    events = [{"id": f"e{n}", "value": SECRET} for n in range(11)]
    limits = Limits(request_events=10)
    is_problem(one("POST", POST, limits, json={"events": events}), 413, "too-large")


@pytest.mark.parametrize(
    "query",
    ["?hivpositive=1", "?release=a&release=b", "?release=", "?release=a%00b", "?a=1;b", "?%ff=1"],
)
def test_unknown_and_double_query_parameters_are_refused(query: str) -> None:
    is_problem(one("POST", POST + query, json={"id": "e", "value": SECRET}), 400, "query")


def test_an_unknown_query_parameter_is_told_those_that_are_known() -> None:
    response = one("POST", POST + "?relase=a", json={"id": "e", "value": SECRET})
    assert "known here: release" in is_problem(response, 400, "query")["detail"]


@pytest.mark.parametrize(
    ("reason", "detail", "field", "title"),
    [
        (Reason.VALUE, "the time must have a day", "time", "can answer"),
        (Reason.VALUE, "the value must be a text", "value", "can answer"),
        (Reason.VALUE, "the id must not be empty", "id", "can answer"),
        (Reason.ORDER, "the time must be of the kind of those before", "time", "does not follow"),
    ],
)
def test_a_refusal_names_the_part_of_the_event_that_it_is_about(
    reason: Reason, detail: str, field: str, title: str
) -> None:
    told = refusal(Refused(reason, detail), "e1")
    assert told.field == field
    assert title in told.title


def test_a_query_out_of_its_range_is_a_problem_of_the_query() -> None:
    told = of_query(InvalidParameter("limit", -1, "be at least 1"))
    assert (told.status, told.field, told.type.rpartition(":")[2]) == (400, "limit", "query")


def test_whoever_administers_some_streams_is_told_that_all_are_needed() -> None:
    key = AccessKey("k", "", ("a*",), frozenset((Action.ADMIN,)), datetime.now(UTC))
    with pytest.raises(Forbidden, match="for all streams"):
        Caller(key).require_everywhere(Action.ADMIN)


@pytest.mark.parametrize(
    ("method", "path", "status", "slug"),
    [
        ("GET", "/hivpositive", 404, "not-found"),
        ("GET", "/v1/streams/u/hivpositive", 404, "not-found"),
        ("GET", "/v1/events/", 404, "not-found"),
        ("PUT", POST, 405, "method"),
        ("OPTIONS", POST, 405, "method"),
        ("GET", "/v1/streams/%00/events/e", 400, "malformed"),
        ("GET", "/v1/streams/J%F6rg/events/e", 400, "malformed"),
        ("GET", "/v1/streams/J%EF%BF/events/e", 400, "malformed"),
        ("GET", "/v1/streams/u/events/e%C3", 400, "malformed"),
        ("GET", "/v1/streams/%ED%A0%80/events/e", 400, "malformed"),
        ("GET", "/v1/streams/" + "u" * 257 + "/events/e", 400, "malformed"),
    ],
)
def test_what_is_not_there_is_a_problem_too(method: str, path: str, status: int, slug: str) -> None:
    response = one(method, path)
    is_problem(response, status, slug)
    assert ("allow" in response.headers) == (status == 405)


def test_a_defect_says_where_in_the_log_and_nothing_to_the_asker() -> None:
    async def broken(call: Call) -> Result:
        raise RuntimeError(SECRET)

    operation = Operation("broken", "GET", "/broken", "breaks", broken)

    async def run() -> None:
        async with world(operations=[operation]) as there, there.client() as client:
            is_problem(await client.get("/broken"), 500, "defect")
            [line] = there.log.lines
            assert line == {"event": "defect", "failure": "RuntimeError", "operation": "broken"}

    asyncio.run(run())


def test_every_problem_has_a_status_and_a_title() -> None:
    for slug in SLUGS:
        made = problem(slug, "detail")
        assert 400 <= made.status < 600 and made.title


def test_health_needs_no_key_and_metrics_do() -> None:
    async def run() -> None:
        async with world() as there:
            async with there.client(authorization="") as stranger:
                assert (await stranger.get("/healthz")).status_code == 200
                assert (await stranger.get("/readyz")).status_code == 200
                assert (await stranger.get("/metrics")).status_code == 401
            async with there.client() as client:
                await client.post(POST, json={"id": "e1", "value": SECRET})
                # A reply leaves before its group is counted.
                answered = 'sfumato_events_total{outcome="answered",release="city"} 1.0'
                text = (await client.get("/metrics")).text
                while answered not in text:
                    await asyncio.sleep(0.01)
                    text = (await client.get("/metrics")).text
        assert 'sfumato_release_entries{release="city"} 1.0' in text
        assert SECRET not in text and '"u"' not in text

    asyncio.run(run())
