"""Bodies of every kind, spoiled: the whole service refuses them, and nothing is stored by it.

Before and after each request all tables of the home are read by plain SQL: whatever was refused has
changed no row of any registry, ledger or state.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.store.folder_home import FolderHome
from sfumato.stream.policy_files import compile_for
from sfumato.stream.release_spec import ReleaseSpec
from tests.oracles.store_rows import Rows, changed, folder_rows
from tests.service.gateways import (
    SERIES_RULES,
    TEMPORAL_RULES,
    begun_jobs,
    document,
    gateway_served,
    town,
)
from tests.service.sentinels import leaks
from tests.service.spoiled import spoiled

FUZZ = settings(
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
HOMES = "streams.db homes"
"""Where a stream belongs is written before its first value is judged."""
KEY = {
    "streams": ["ward-*"],
    "actions": ["read", "release"],
    "expires": "2031-01-01T00:00:00Z",
    "note": "the ward",
    "rate": {
        "requests": {"per_second": 5, "burst": 10},
        "events": {"per_second": 50, "burst": 100},
    },
    "releases": ["a"],
}


def sound() -> list[tuple[str, dict[str, Any]]]:
    """Where to send what, as it should be: every kind of body."""
    policy = compile_for(town(), ReleaseSpec(epsilon=0.4, method="optimal"), steps=50)
    model, channels = document(town()), document(policy)
    event = {"id": "e", "value": "home", "time": "2026-05-01T10:00:00"}
    rules = {"epsilon": 0.5, "method": "optimal"}
    several = [{**event, "id": f"e{n}", "stream": f"s{n}"} for n in range(3)]
    return [
        ("/v1/models", {"name": "town", "data": model}),
        ("/v1/policies", {"name": "town", "data": channels}),
        ("/v1/releases", {"name": "b", "model": "town", "rules": rules}),
        ("/v1/releases", {"name": "c", "job": "realtime", "rules": SERIES_RULES}),
        ("/v1/releases", {"name": "w", "job": "temporal", "rules": TEMPORAL_RULES}),
        ("/v1/keys", KEY),
        ("/v1/keys/0123456789abcdef/rotate", {"overlap_seconds": 60}),
        ("/v1/streams/ann/events", event),
        ("/v1/streams/ann/events?release=counts", {**event, "value": 17}),
        ("/v1/streams/ann/events?release=wards", {**event, "value": 17}),
        ("/v1/events", {"events": several}),
    ]


class Watched:
    """A service, and a look into all its tables after each request."""

    def __init__(self, home: Path, client: httpx.Client) -> None:
        self._home, self._client = home, client
        self.rows = folder_rows(home)
        self.seen: Counter[tuple[str, int]] = Counter()

    def ask(self, path: str, body: Any) -> None:
        reply = self._client.post(path, json=body)
        route, status = path.partition("?")[0], reply.status_code
        self.seen[route, status] += 1
        assert status < 500, (route, status, reply.text)
        # What was taken may be told: names of releases, ids of events. What was refused is not.
        assert status < 400 or leaks(reply.content) == leaks(str(reply.headers)) == []
        made = status == 202 and route == "/v1/releases" and self._prepared(reply.json()["name"])
        before, self.rows = self.rows, folder_rows(self._home)
        different = changed(before, self.rows)
        if status >= 400 or (status == 202 and not made):
            # A stream may have got its place, by an event whose form was right.
            known = {HOMES} if status in (403, 409, 422) and "events" in route else set()
            assert set(different) <= known, (route, status, different)
        elif status == 200 and route == "/v1/events":
            self._check_refused(body, reply.json()["replies"], before)

    def _prepared(self, name: str) -> bool:
        """Whether a release that was begun could be made."""
        end = time.monotonic() + 60.0
        while time.monotonic() < end:
            states = self._client.get("/v1/releases").json()["releases"]
            [status] = [each["status"] for each in states if each["name"] == name]
            if status != "preparing":
                return bool(status == "ready")
            time.sleep(0.01)
        raise AssertionError("a release is prepared for ever")

    def _check_refused(self, body: Any, replies: list[Any], before: Rows) -> None:
        """What was refused among others is in no ledger."""
        there = ledger_ids(self.rows) - ledger_ids(before)
        for event, reply in zip(body["events"], replies, strict=True):
            if reply["status"] == "refused":
                assert f"{event['stream']}/{event['id']}" not in there


def ledger_ids(rows: Rows) -> set[str]:
    """Texts of all answers, ids among them."""
    tables = [table for name, table in rows.items() if name.endswith(".ledger events")]
    return {cell for table in tables for row in table for cell in row if isinstance(cell, str)}


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    place = tmp_path / "home"
    with (
        FolderHome(place) as home,
        gateway_served(home, begun_jobs) as (url, key),
        httpx.Client(base_url=url, timeout=60.0) as client,
    ):
        client.headers["authorization"] = f"Bearer {key}"
        yield Watched(place, client)


@pytest.mark.parametrize("examples", [150, pytest.param(1_500, marks=pytest.mark.slow)])
def test_a_spoiled_body_is_refused_and_nothing_is_stored(watched: Watched, examples: int) -> None:
    bodies = sound()
    for path, body in bodies:
        before = watched.rows
        watched.ask(path, body)
        # The look sees what is stored, so it would see what must not be; a key that is not there
        # is not rotated, and the model is there.
        assert changed(before, watched.rows) or "rotate" in path or path == "/v1/models", path
    watched.seen.clear()
    asked = st.sampled_from(bodies).flatmap(lambda one: st.tuples(st.just(one[0]), spoiled(one[1])))

    @settings(FUZZ, max_examples=examples)
    @given(asked)
    def ask(one: tuple[str, Any]) -> None:
        watched.ask(*one)

    ask()
    refused = {route for route, status in watched.seen if status in (400, 422)}
    assert refused == {path.partition("?")[0] for path, _ in bodies}, watched.seen
