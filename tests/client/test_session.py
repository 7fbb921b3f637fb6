"""Sessions: order, bounds, and what happens when the connection breaks."""

import asyncio
import logging
import threading
from concurrent.futures import wait

import pytest

from sfumato.client import AsyncClient, Client, LiveEvent, ServiceRefused, ServiceUnavailable
from sfumato.client.pipeline import Pipeline
from sfumato.core.errors import InvalidParameter
from tests.client.cutting_wire import cutting_wire
from tests.client.fake_service import KEY, FakeService

COUNT = 700


def events(count: int = COUNT) -> list[LiveEvent]:
    return [LiveEvent(f"u{place % 3}", "home", id=f"e{place}") for place in range(count)]


def checked(service: FakeService, answered: list[str], count: int = COUNT) -> None:
    assert answered == [f"e{place}" for place in range(count)]
    assert len(service.drawn) == count and set(service.drawn.values()) == {1}


def test_replies_come_in_order(service: FakeService, url: str) -> None:
    with Client(url, KEY) as client, client.session(in_flight=64) as session:
        checked(service, [reply.answers[0].event for reply in session.replies(events())])


def test_replies_come_in_order_in_asyncio(service: FakeService, url: str) -> None:
    async def asked() -> list[str]:
        async with AsyncClient(url, KEY) as client, client.session(in_flight=64) as session:
            return [reply.answers[0].event async for reply in session.replies(events())]

    checked(service, asyncio.run(asked()))


def test_what_has_no_reply_is_sent_again_after_a_break(service: FakeService, port: int) -> None:
    with cutting_wire(port) as wire, Client(wire.url, KEY) as client:
        wire.cuts = 4
        with client.session(in_flight=300) as session:
            checked(service, [reply.answers[0].event for reply in session.replies(events())])
        assert wire.swallowed == 4
    assert len(service.seen) > COUNT  # some were sent twice


@pytest.mark.parametrize("code", [1001, 1006, 1011, 1012])
def test_a_service_that_closes_is_asked_again(service: FakeService, url: str, code: int) -> None:
    service.faults.extend([1000 if code == 1006 else code] * 2)
    with Client(url, KEY) as client, client.session() as session:
        checked(service, [reply.answers[0].event for reply in session.replies(events(9))], 9)


def test_an_event_that_was_not_stored_is_sent_again_in_order(
    service: FakeService, url: str
) -> None:
    service.faults.extend(["unstored"] * 3)
    with Client(url, KEY) as client, client.session() as session:
        checked(service, [reply.answers[0].event for reply in session.replies(events(20))], 20)


def test_a_refusal_is_a_reply_and_raised_for_one(service: FakeService, url: str) -> None:
    with Client(url, KEY) as client, client.session() as session:
        bad, good = session.send([LiveEvent("u1", "impossible"), LiveEvent("u1", "home")])
        assert bad.result().problem is not None and good.result().released == "r0"
        with pytest.raises(ServiceRefused):
            session.release("u1", "impossible")


@pytest.mark.parametrize(("code", "status"), [(1008, 401), (1009, 413)])
def test_a_refusal_that_stays_ends_the_session(
    service: FakeService, url: str, code: int, status: int
) -> None:
    service.faults.append(code)
    with Client(url, KEY) as client, client.session() as session:
        sent = session.send(events(3))
        wait(sent)
        for future in sent:
            with pytest.raises(ServiceRefused) as refused:
                future.result()
            assert refused.value.problem.status == status
        with pytest.raises(ServiceRefused):
            session.release("u1", "home")


def test_a_wrong_key_is_refused(url: str) -> None:
    with Client(url, "sfk_a1_wrong") as client, client.session() as session:
        with pytest.raises(ServiceRefused) as refused:
            session.release("u1", "home")
        assert refused.value.problem.status == 401


def test_without_a_service_everything_that_waits_fails() -> None:
    with Client("http://127.0.0.1:1", KEY, retries=2) as client, client.session() as session:
        for future in session.send(events(3)):
            with pytest.raises(ServiceUnavailable):
                future.result()


def test_closing_twice_is_closing_once_and_nothing_can_be_sent_then(url: str) -> None:
    with Client(url, KEY) as client:
        session = client.session()
        with session:
            session.release("u1", "home")
            session.close()
            session.close()
        with pytest.raises(ServiceUnavailable, match="not open"):
            session.release("u1", "home")
        client.session().close()


def test_threads_share_a_session(service: FakeService, url: str) -> None:
    def work(stream: str) -> None:
        for _ in range(20):
            session.release(stream, "home")

    with Client(url, KEY) as client, client.session(in_flight=5) as session:
        workers = [threading.Thread(target=work, args=(f"u{each}",)) for each in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert set(service.lengths.values()) == {20} and set(service.drawn.values()) == {1}


def test_no_more_are_on_their_way_than_was_said(service: FakeService, url: str) -> None:
    with Client(url, KEY) as client, pytest.raises(InvalidParameter, match="in_flight"):
        client.session(in_flight=5000)

    async def asked() -> int:
        async with AsyncClient(url, KEY) as client, client.session(in_flight=7) as session:
            most = 0
            async for _ in session.replies(events(100)):
                most = max(most, len(session._pipeline))
            return most

    assert asyncio.run(asked()) <= 7


def test_replies_out_of_order_or_about_others_are_not_taken() -> None:
    pipeline = Pipeline()
    for event in events(2):
        pipeline.add(event, lambda reply: None)
    pipeline.message()
    answer = '{"event":"e1","stream":"u1","sequence":0,"outcome":"released"}'
    for message in (
        '{"n":2,"status":"waiting"}',
        f'{{"n":1,"status":"answered","answers":[{answer}]}}',
        '{"n":1,"status":"answered"}',
        "no JSON",
    ):
        with pytest.raises(ServiceUnavailable):
            pipeline.take(message)


def test_frames_are_never_logged(url: str, caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.DEBUG),
        Client(url, KEY) as client,
        client.session() as session,
    ):
        session.release("u1", "a-true-value")
        client.release("u1", "a-true-value")
    assert "a-true-value" not in caplog.text and "secret" not in caplog.text
