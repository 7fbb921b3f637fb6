"""The client over HTTP: what it sends, what it repeats, and what it never shows."""

import asyncio
import os
import pickle
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.client import AsyncClient, Client, LiveEvent, ServiceRefused, ServiceUnavailable
from sfumato.core.errors import ForkedUse, InvalidParameter
from tests.client.cutting_wire import cutting_wire
from tests.client.fake_service import KEY, FakeService, running

HIDDEN = "a-true-value-that-nobody-may-see"
ODD = complex(4242, 1)


class Waited:
    """An AsyncClient behind the calls of a Client, so that one law holds for both."""

    def __init__(self, *given: Any, **more: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._client = AsyncClient(*given, **more)

    def __getattr__(self, name: str) -> Any:
        asked = getattr(self._client, name)

        def call(*given: Any, **more: Any) -> Any:
            made = asked(*given, **more)
            if hasattr(made, "__aiter__"):
                return self._loop.run_until_complete(_all(made))
            return self._loop.run_until_complete(made)

        return call

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run_until_complete(self._client.aclose())
        self._loop.close()


async def _all(rows: Any) -> list[Any]:
    return [row async for row in rows]


Made = Any
BOTH = pytest.mark.parametrize("kind", [Client, Waited])


@BOTH
def test_an_answer_comes_back_and_the_same_id_gets_it_again(kind: Made, url: str) -> None:
    with kind(url, KEY) as client:
        first = client.release("u1", "home", id="e1", time="7")
        again = client.release("u1", "home", id="e1", time="7")
        assert (first.status, first.repeated, first.released) == ("answered", False, "r0")
        assert (again.repeated, again.answers) == (True, first.answers)
        assert client.event("u1", "e1") == again


@BOTH
def test_a_lost_answer_is_asked_for_under_the_same_id(
    kind: Made, service: FakeService, port: int
) -> None:
    with cutting_wire(port) as wire, kind(wire.url, KEY) as client:
        wire.cuts = 3
        reply = client.release("u1", "home")
        assert wire.swallowed == 3
        assert reply.repeated and reply.released == "r0"
        assert len(service.seen) == 4 and len(set(service.seen)) == 1
        assert set(service.drawn.values()) == {1}


@BOTH
@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_service_without_room_is_asked_again(
    kind: Made, service: FakeService, url: str, status: int
) -> None:
    service.faults.extend([status, status])
    with kind(url, KEY) as client:
        assert client.release("u1", "home").released == "r0"
    assert not service.faults and len(service.targets) == 3


@BOTH
@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422, 500])
def test_what_will_not_change_is_asked_once(
    kind: Made, service: FakeService, url: str, status: int
) -> None:
    service.faults.append(status)
    with kind(url, KEY) as client, pytest.raises(ServiceRefused) as refused:
        client.release("u1", "home")
    assert refused.value.problem.status == status
    assert len(service.targets) == 1 and not service.drawn


@BOTH
def test_a_redirect_is_not_followed(kind: Made, service: FakeService, url: str) -> None:
    service.faults.append(307)
    with kind(url, KEY) as client, pytest.raises(ServiceUnavailable, match="redirect"):
        client.release("u1", "home")


@BOTH
def test_many_events_are_answered_in_order_and_a_refusal_is_one_of_the_replies(
    kind: Made, service: FakeService, url: str
) -> None:
    events = [LiveEvent("u1", "home") for _ in range(2500)]
    events[7] = LiveEvent("u1", "impossible", id="e7")
    with kind(url, KEY) as client:
        replies = client.release_many(events)
    assert len(service.targets) == 3  # a thousand in each request
    assert replies[7].problem.slug == "value" and replies[7].problem.event == "e7"
    others = [reply for place, reply in enumerate(replies) if place != 7]
    assert [reply.answers[0].sequence for reply in others] == list(range(2499))


@BOTH
def test_events_that_were_not_stored_are_sent_again_and_no_others(
    kind: Made, service: FakeService, url: str
) -> None:
    service.faults.extend(["unstored", "unstored"])
    events = [LiveEvent("u1", "home", id=f"e{place}") for place in range(4)]
    with kind(url, KEY) as client:
        replies = client.release_many(events)
    assert [reply.answers[0].event for reply in replies] == ["e0", "e1", "e2", "e3"]
    assert service.seen == ["e0", "e1", "e2", "e3", "e0", "e1"]


@BOTH
def test_a_refusal_of_one_event_is_raised_with_its_problem(kind: Made, url: str) -> None:
    with kind(url, KEY) as client, pytest.raises(ServiceRefused) as refused:
        client.release("u1", "impossible", id="new")
    problem = refused.value.problem
    assert (problem.slug, problem.status, problem.event) == ("value", 422, "new")


@BOTH
def test_a_batch_waits_and_can_be_finished(kind: Made, service: FakeService, url: str) -> None:
    service.batch = 3
    with kind(url, KEY) as client:
        assert client.release("u1", "home", id="e1").missing == 2
        client.release("u1", "work", id="e2")
        whole = client.release("u1", "home", id="e3")
        assert [answer.event for answer in whole.answers] == ["e1", "e2", "e3"]
        assert whole.answer_to("e2").sequence == 1
        client.release("u1", "home", id="e4")
        assert client.finish("u1").released == "r3"
        assert client.finish("u1") is None


@BOTH
def test_pages_are_read_to_the_end_and_names_of_streams_may_hold_anything(
    kind: Made, service: FakeService, url: str
) -> None:
    stream = "a/b ü?&#%"
    with kind(url, KEY, release="town") as client:
        client.release_many(LiveEvent(stream, "home") for _ in range(5))
        assert [row["sequence"] for row in client.ledger(stream)] == [0, 1, 2, 3, 4]
        assert client.budget(stream) == {"stream": stream, "answers": 5}
    assert service.targets[0].endswith("/v1/events?release=town")


@BOTH
def test_nothing_shows_the_value_or_the_key(kind: Made, service: FakeService, url: str) -> None:
    with kind("http://127.0.0.1:1", KEY, retries=1) as client:
        with pytest.raises(ServiceUnavailable) as lost:
            client.release("u1", HIDDEN)
        with pytest.raises(InvalidParameter) as bad:
            client.release("u1", {"x": [ODD]})
    with kind(url, KEY) as client, pytest.raises(ServiceRefused) as refused:
        service.faults.append(422)
        client.release("u1", HIDDEN)
    with kind(url, "sfk_a1_wrong") as client, pytest.raises(ServiceRefused) as shut:
        client.release("u1", HIDDEN)
    for problem in (lost.value, bad.value, refused.value, shut.value):
        told = "".join(traceback.format_exception(problem)) + repr(vars(problem))
        assert HIDDEN not in told and "4242" not in told
        assert "secret" not in told and "sfk_a1_wrong" not in told
        link: BaseException | None = problem
        while link is not None:  # an error of httpx would hold the request
            assert not hasattr(link, "request")
            link = link.__cause__ or link.__context__
    assert HIDDEN not in repr(LiveEvent("u1", HIDDEN))
    assert shut.value.problem.status == 401


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [1, {"x": float("nan")}]])
def test_a_number_that_json_lacks_is_refused_and_never_a_missing_value(value: Any) -> None:
    with Client("http://localhost:1", KEY) as client, pytest.raises(InvalidParameter, match="fin"):
        client.release("u1", value)


def test_numbers_of_numpy_are_numbers(service: FakeService, url: str) -> None:
    with Client(url, KEY) as client:
        client.release("u1", np.float64(1.5), id="a")
        client.release("u1", [np.int64(3), "x"], id="b")
        client.release("u1", None, id="c")
    assert service.values == {"a": 1.5, "b": [3, "x"], "c": None}


@pytest.mark.parametrize(
    "url",
    ["http://gate.example", "ftp://gate.example", "gate.example", "https://me:pw@gate.example"],
)
def test_a_way_that_is_open_to_others_is_refused(url: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        Client(url, KEY)
    assert "pw" not in str(refused.value)


@pytest.mark.parametrize("key", ["", "secret", "sfk_a1_", "sfk_a1_x\r\nEvil: 1"])
def test_a_text_that_is_no_access_key_is_refused_and_not_quoted(key: str) -> None:
    with pytest.raises(InvalidParameter, match="not quoted"):
        Client("https://gate.example", key)


def test_proxies_of_the_environment_are_not_used(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with Client(url, KEY) as client:
        assert client.release("u1", "home").released == "r0"
        with client.session() as session:
            assert session.release("u1", "home").released == "r1"


def test_a_unix_socket_is_a_way_too(service: FakeService, short_path: Path) -> None:
    path = str(short_path / "sfumato.sock")
    with running(service, path), Client(f"unix:{path}", KEY) as client:
        assert client.release("u1", "home").released == "r0"
        with client.session() as session:
            assert session.release("u1", "home").released == "r1"


def test_threads_share_a_client(service: FakeService, url: str) -> None:
    replies: list[str] = []

    def work(stream: str) -> None:
        for _ in range(20):
            replies.append(client.release(stream, "home").released)

    with Client(url, KEY) as client:
        workers = [threading.Thread(target=work, args=(f"u{each}",)) for each in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert len(replies) == 160 and set(service.drawn.values()) == {1}
    assert set(service.lengths.values()) == {20}


def test_a_forked_child_is_refused(url: str) -> None:
    with Client(url, KEY) as client:
        client.release("u1", "home")
        client._process = os.getpid() + 1  # as a child sees it
        with pytest.raises(ForkedUse):
            client.release("u1", "home")
        client._process = os.getpid()
        with pytest.raises(TypeError):
            pickle.dumps(client)


def test_without_the_extra_it_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['httpx'] = None\n"
        "import sfumato as sf\n"
        "try: sf.Client\n"
        "except sf.SfumatoError as problem: print(problem)"
    )
    made = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert 'pip install "sfumato[client]"' in made.stdout


def test_the_clients_stand_at_the_top() -> None:
    assert sf.Client is Client and sf.AsyncClient is AsyncClient
