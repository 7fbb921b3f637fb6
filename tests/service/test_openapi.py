"""The document says what the service does: routes and types are compared, and it is fuzzed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import checks

from sfumato.service.openapi import openapi
from sfumato.service.problems import SLUGS, problem
from tests.service.fakes import KEY, json_of, world
from tests.service.servers import served

# What cannot be told from a document: which streams and events there are.
CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
]
# A body that is wrong may be too large as well, and is refused for that: schemathesis by itself
# takes 413 for an acceptance.
_REFUSED = sorted({status for slug in SLUGS if (status := problem(slug, "").status) < 500})
_CONFIG = schemathesis.Config.from_dict(
    {"checks": {"negative_data_rejection": {"expected-statuses": _REFUSED}}}
)
PATIENCE = 120.0
"""Seconds: by itself it waits for ten, in which a busy machine may not have planned anything."""


def test_every_route_is_documented_and_every_document_is_routed() -> None:
    async def run() -> None:
        async with world() as there, there.client(authorization="") as stranger:
            document = json_of(await stranger.get("/openapi.json"))
            assert set(there.service.addresses) == set(document["paths"])
            told = {
                (path, method.upper())
                for path, methods in document["paths"].items()
                for method in methods
            }
            assert told == {(one.path, one.method) for one in there.service.operations}

    asyncio.run(run())


def test_operations_have_names_of_their_own_and_all_references_lead_somewhere() -> None:
    async def run() -> None:
        async with world() as there:
            document = openapi(there.service.operations)
            names = [
                one["operationId"] for path in document["paths"].values() for one in path.values()
            ]
            assert len(set(names)) == len(names)
            schemas = document["components"]["schemas"]
            for reference in _references(document):
                assert reference.removeprefix("#/components/schemas/") in schemas

    asyncio.run(run())


def _references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        for name, value in part.items():
            if name == "$ref":
                yield value
            yield from _references(value)
    elif isinstance(part, list):
        for value in part:
            yield from _references(value)


def fuzzed(url: str, examples: int, key: str = KEY) -> int:
    """Ask every operation for things that its schema allows, and for things that it does not."""
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json", config=_CONFIG)
    count = 0
    with requests.Session() as session:
        session.headers["authorization"] = f"Bearer {key}"
        for found in schema.get_all_operations():
            operation: Any = found.ok()  # type: ignore[union-attr]
            told = schema.raw_schema["paths"][operation.path][operation.method]
            for mode in schemathesis.GenerationMode:
                if mode.is_negative and not (told["parameters"] or "requestBody" in told):
                    continue  # nothing can be wrong with nothing

                @settings(
                    max_examples=examples,
                    deadline=None,
                    database=None,
                    phases=[Phase.generate],
                    suppress_health_check=list(HealthCheck),
                )
                @given(operation.as_strategy(generation_mode=mode))
                def check(case: Any) -> None:
                    response = case.call(session=session, timeout=PATIENCE)
                    case.validate_response(response, checks=CHECKS)

                check()
                count += 1
    return count


def test_whatever_is_asked_the_reply_is_as_documented() -> None:
    with served() as there:
        assert fuzzed(there.url, 8) > 10


@pytest.mark.slow
def test_whatever_is_asked_for_long_the_reply_is_as_documented() -> None:
    with served() as there:
        assert fuzzed(there.url, 400) > 10
