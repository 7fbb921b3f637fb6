"""Clients that load a service and remember every answer that they were given, on their own."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterable
from typing import Any

from sfumato.client import Client, GivenAnswer, LiveEvent, Reply
from tests.oracles.ledger_sums import RawLedger
from tests.service.nodes import SYMBOLS


class Shadow:
    """What clients were told; an event that is told two things is a defect.

    Attributes:
        answers: The answer that each event got.
        refused: Events that were refused, by the kind of problem.
        conflicts: Ids that got two different answers.
    """

    def __init__(self) -> None:
        self.answers: dict[str, GivenAnswer] = {}
        self.refused: Counter[str] = Counter()
        self.conflicts: list[str] = []
        self._lock = threading.Lock()

    def take(self, events: Iterable[LiveEvent], replies: Iterable[Reply]) -> None:
        with self._lock:
            for event, reply in zip(events, replies, strict=True):
                if reply.problem is not None:
                    self.refused[reply.problem.slug] += 1
                    continue
                answer = reply.answer_to(event.id)
                assert answer is not None
                if self.answers.setdefault(event.id, answer) != answer:
                    self.conflicts.append(event.id)

    def compared(self, ledger: RawLedger) -> list[str]:
        """What of it is not in the ledger as it was told."""
        found = ledger.answers()
        return [name for name, told in self.answers.items() if found.get(name) != _raw(told)]


def _raw(told: GivenAnswer) -> tuple[Any, ...]:
    return (told.stream, told.sequence, told.outcome, told.released, told.sip, told.ldp)


class Load:
    """Threads of clients that send events until they are told to stop.

    Each asks for new events of streams that all share and of streams of its own, and now and then
    for one that was answered long ago.
    """

    def __init__(self, clients: list[Client], shadow: Shadow, seed: int) -> None:
        self.sent: list[LiveEvent] = []
        self.failures: list[BaseException] = []
        self._shadow, self._stop, self._lock = shadow, threading.Event(), threading.Lock()
        self._threads = [
            threading.Thread(target=self._work, args=(client, number, seed))
            for number, client in enumerate(clients)
        ]

    def _work(self, client: Client, number: int, seed: int) -> None:
        draw, count = random.Random(f"{seed} {number}"), 0
        try:
            while not self._stop.is_set():
                events = []
                for _ in range(draw.choice((1, 1, 5, 40))):
                    shared = draw.random() < 0.3
                    stream = f"s{count // 150}" if shared else f"w{number}.{count // 30}"
                    name = f"{number}-{count}"
                    events.append(LiveEvent(stream, draw.choice(SYMBOLS), id=name))
                    count += 1
                with self._lock:
                    self.sent += events
                    if draw.random() < 0.2:
                        events += draw.sample(self.sent, min(3, len(self.sent)))
                self._shadow.take(events, client.release_many(events))
        except BaseException as problem:  # raised where the test looks
            self.failures.append(problem)

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self.failures:
            raise self.failures[0]
