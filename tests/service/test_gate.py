"""Laws of the gate, and of keys over HTTP, asked of a real server."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from sfumato.service.access import AccessControl, Action, Grant
from sfumato.service.event_log import EventLog
from sfumato.service.gate import AccessGate
from sfumato.service.problems import HttpProblem
from sfumato.service.rate_limits import SECOND, Limit, Rate
from tests.service.entry_lists import EntryList
from tests.service.secured import HOST, Secured, secured

READ = frozenset({Action.READ})


class Ticks:
    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def ticks() -> Ticks:
    return Ticks()


@pytest.fixture
def control() -> AccessControl:
    return AccessControl(EntryList())


@pytest.fixture
def gate(control: AccessControl, ticks: Ticks) -> AccessGate:
    return AccessGate(control, ticks)


def refused(act: Any, *arguments: Any) -> HttpProblem:
    with pytest.raises(HttpProblem) as problem:
        act(*arguments)
    return problem.value


def test_a_valid_key_passes_however_often_its_neighbours_failed(
    gate: AccessGate, control: AccessControl
) -> None:
    text = control.issue(HOST, Grant(("*",), READ))[0]
    statuses = [refused(gate.admit, "Bearer x", "192.0.2.1").problem.status for _ in range(60)]
    assert statuses == 50 * [401] + 10 * [429]
    last = refused(gate.admit, "Bearer x", "192.0.2.1")
    assert last.headers["retry-after"] == "1"
    assert gate.admit(f"Bearer {text}", "192.0.2.1").id == text.split("_")[1]
    assert refused(gate.admit, None, "192.0.2.2").problem.status == 401


def test_who_asks_too_often_waits_as_long_as_he_is_told(
    gate: AccessGate, control: AccessControl, ticks: Ticks
) -> None:
    rate = Rate(Limit(2, 2), Limit(10, 20))
    text = control.issue(HOST, Grant(("*",), READ, rate=rate))[0]
    visitor = gate.admit_key(text, None)
    gate.charge(visitor, 20)
    told = refused(gate.charge, visitor, 20)
    assert told.problem.status == 429 and told.headers["retry-after"] == "2"
    ticks.now = 2 * SECOND
    gate.charge(visitor, 20)
    gate.message(visitor, 0)
    gate.message(visitor, 0)
    assert refused(gate.message, visitor, 0).problem.status == 429
    assert refused(gate.admit_key, text, None).problem.status == 429


def test_a_socket_ends_with_its_key(gate: AccessGate, control: AccessControl) -> None:
    text, key = control.issue(HOST, Grant(("*",), READ))
    visitor = gate.admit_key(text, None)
    assert gate.message(visitor, 1).id == key.id
    control.revoke(HOST, key.id)
    assert refused(gate.message, visitor, 1).problem.status == 401


def test_who_may_not_is_told_the_same_of_every_stream(
    gate: AccessGate, control: AccessControl
) -> None:
    visitor = gate.admit_key(control.issue(HOST, Grant(("ann",), READ))[0], None)
    visitor.require("read", "ann")
    told = {
        refused(visitor.require, "read", "bob").problem,
        refused(visitor.require, "read", "ann2").problem,
    }
    assert len(told) == 1 and told.pop().status == 403
    assert refused(visitor.require_everywhere, "read").problem.status == 403
    assert visitor.streams == ("ann",) and not visitor.may_everywhere("read")
    assert visitor.may("read") and not visitor.may("metrics")


def test_nobody_is_let_in_by_a_node_that_is_cut_off() -> None:
    seconds = [0.0]
    control = AccessControl(EntryList(), stale_after=30.0, monotonic=lambda: seconds[0])
    text = control.issue(HOST, Grant(("*",), READ))[0]
    seconds[0] = 31.0
    told = refused(AccessGate(control).admit_key, text, None)
    assert told.problem.status == 503 and told.headers["retry-after"] == "1"


# Keys over HTTP -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def there() -> Iterator[Secured]:
    with secured(EventLog(lambda line: None, b"secret"), released=False) as service:
        yield service


def client(there: Secured, key: str) -> httpx.Client:
    headers = {"authorization": f"Bearer {key}"}
    return httpx.Client(base_url=there.url, headers=headers, timeout=30.0)


def test_a_key_is_made_used_rotated_and_revoked(there: Secured) -> None:
    with client(there, there.first) as admin:
        wanted = {"streams": ["*"], "actions": ["metrics"], "note": "the board"}
        reply = admin.post("/v1/keys", json=wanted)
        made = reply.json()
        assert reply.status_code == 201 and made["access"]["valid"]
        assert reply.headers["cache-control"] == "no-store"
        with client(there, made["key"]) as board:
            assert board.get("/metrics").status_code == 200
            assert board.get("/v1/keys").status_code == 403
            id_ = made["access"]["id"]
            new = admin.post(f"/v1/keys/{id_}/rotate", json={"overlap_seconds": 3600}).json()
            assert board.get("/metrics").status_code == 200
            ended = admin.delete(f"/v1/keys/{id_}").json()
            assert not ended["valid"] and ended["replaced_by"] == new["access"]["id"]
            assert board.get("/metrics").status_code == 401
        with client(there, new["key"]) as board:
            assert board.get("/metrics").status_code == 200
        listed = admin.get("/v1/keys")
    assert {key["id"] for key in listed.json()["keys"]} >= {id_, new["access"]["id"]}
    for secret in (made["key"][21:], new["key"][21:]):
        assert secret not in listed.text
    assert "hash" not in listed.text


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"streams": ["*"], "actions": []},
        {"streams": ["*"], "actions": ["everything"]},
        {"streams": [], "actions": ["read"]},
        {"streams": ["a*b"], "actions": ["read"]},
        {"streams": ["*"], "actions": ["read"], "expires": "2020-01-01T00:00:00Z"},
        {"streams": ["*"], "actions": ["read"], "expires": "2030-01-01T00:00:00"},
        {"streams": ["*"], "actions": ["read"], "note": "two\nlines"},
        {"streams": ["*"], "actions": ["read"], "hash": 64 * "0"},
        {"streams": ["*"], "actions": ["read"], "rate": {"requests": 0}},
    ],
)
def test_a_key_that_means_nothing_is_refused_by_a_rule(
    there: Secured, wanted: dict[str, Any]
) -> None:
    with client(there, there.first) as admin:
        before = admin.get("/v1/keys").json()
        reply = admin.post("/v1/keys", json=wanted)
        assert reply.status_code in (400, 422), reply.text
        assert reply.headers["content-type"] == "application/problem+json"
        assert admin.get("/v1/keys").json() == before


def test_what_is_not_there_and_what_is_not_his_look_alike_to_a_smaller_administrator(
    there: Secured,
) -> None:
    text = there.key(Action.ADMIN, Action.READ, streams=("ward-*",))
    root = there.first.split("_")[1]
    with client(there, text) as ward:
        replies = [ward.delete(f"/v1/keys/{id_}") for id_ in (root, "0" * 16, "ward-3")]
        replies += [ward.post(f"/v1/keys/{id_}/rotate", json={}) for id_ in (root, "0" * 16)]
        wider = {"streams": ["*"], "actions": ["read"]}
        assert ward.post("/v1/keys", json=wider).status_code == 403
    assert {(reply.status_code, reply.text) for reply in replies} == {(403, replies[0].text)}
    with client(there, there.first) as admin:
        assert admin.delete("/v1/keys/" + "0" * 16).status_code == 404


def test_an_expiry_is_kept_with_its_zone(there: Secured) -> None:
    ends = datetime.now(UTC) + timedelta(days=1)
    wanted = {"streams": ["x"], "actions": ["read"], "expires": ends.isoformat()}
    with client(there, there.first) as admin:
        told = admin.post("/v1/keys", json=wanted).json()["access"]["expires"]
    assert datetime.fromisoformat(told) == ends
