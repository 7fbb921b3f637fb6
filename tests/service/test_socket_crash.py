"""A real server is killed while events are on their way on a socket: the session goes on by itself.

Each event that was acknowledged before a kill is in the ledger once, with that answer; each that
was not is absent, or is answered when the session sends it again.
"""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import Future
from pathlib import Path

import pytest

from sfumato.client import LiveEvent, Reply
from sfumato.client.session import Session
from tests.service.nodes import LIMIT, PATIENCE, SYMBOLS, Node, ServiceHome, served
from tests.service.shadow import Shadow

IN_FLIGHT = 256
ROUNDS = [pytest.param(2, id="few"), pytest.param(25, id="many", marks=pytest.mark.slow)]


class Pipe:
    """A thread that keeps a session full of events, and what came back for each."""

    def __init__(self, session: Session) -> None:
        self.sent: list[tuple[LiveEvent, Future[Reply]]] = []
        self.failure: BaseException | None = None
        self._session, self._stop = session, threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        draw = random.Random(20261117)
        try:
            while not self._stop.is_set():
                first = len(self.sent)
                events = [
                    LiveEvent(f"s{n // 30}", draw.choice(SYMBOLS), id=f"e{n}")
                    for n in range(first, first + 32)
                ]
                self.sent += zip(events, self._session.send(events), strict=True)
        except BaseException as problem:  # raised where the test looks
            self.failure = problem

    def answered(self) -> int:
        return sum(future.done() for _, future in self.sent)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        if self.failure is not None:
            raise self.failure


def kill_at_work(node: Node, pipe: Pipe, draw: random.Random) -> dict[str, Reply]:
    """Kill a server that answers while others wait; what it had acknowledged."""
    before, end = pipe.answered(), time.monotonic() + PATIENCE
    while pipe.answered() <= before:
        assert pipe.failure is None and time.monotonic() < end
        time.sleep(0.001)
    time.sleep(draw.random() * 0.1)
    node.kill()
    return {event.id: future.result() for event, future in [*pipe.sent] if future.done()}


def sockets_through(home: ServiceHome, model: Path, rounds: int) -> None:
    draw, shadow = random.Random(20261118), Shadow()
    waited = 0
    with served(home, model) as ([node], key):
        with node.client(key) as client, client.session(in_flight=IN_FLIGHT) as session:
            pipe = Pipe(session)
            for _ in range(rounds):
                acknowledged = kill_at_work(node, pipe, draw)
                waited += len(pipe.sent) - len(acknowledged)
                stored = home.raw()
                assert stored.problems(LIMIT) == []
                events = [event for event, _ in [*pipe.sent] if event.id in acknowledged]
                told = Shadow()
                told.take(events, [acknowledged[event.id] for event in events])
                assert told.compared(stored) == []  # once, and with that answer
                node.start()
            end_when_answered(pipe)
        for event, future in pipe.sent:  # the session came back by itself, every time
            shadow.take([event], [future.result(PATIENCE)])
        with node.client(key) as client:  # and whoever asks again is told the same
            events = [event for event, _ in pipe.sent]
            shadow.take(events, client.release_many(events))
        assert node.stop() == 0
    ledger = home.raw()
    assert waited > 0 and len(pipe.sent) > IN_FLIGHT  # something was on its way
    assert ledger.problems(LIMIT) == []
    assert shadow.conflicts == [] and shadow.compared(ledger) == []
    assert set(ledger.answers()) == set(shadow.answers)
    assert set(shadow.refused) <= {"budget"}


def end_when_answered(pipe: Pipe) -> None:
    """Wait until the session answers again, then send no more."""
    before, end = pipe.answered(), time.monotonic() + PATIENCE
    while pipe.answered() <= before:
        assert pipe.failure is None and time.monotonic() < end
        time.sleep(0.001)
    pipe.stop()


@pytest.mark.parametrize("rounds", ROUNDS)
def test_a_socket_through_kills_of_the_server_loses_and_doubles_nothing(
    rounds: int, model: Path, tmp_path: Path
) -> None:
    sockets_through(ServiceHome.made(tmp_path), model, rounds)


@pytest.mark.slow
def test_a_socket_through_kills_on_postgres_loses_and_doubles_nothing(
    model: Path, tmp_path: Path, database: str
) -> None:
    sockets_through(ServiceHome.made(tmp_path, database), model, 10)
