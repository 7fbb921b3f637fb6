"""Payloads beyond the limit, at a real broker: told to operators, held by nobody."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from sfumato.bridges.bad_messages import message_digest
from sfumato.store.live import Asked, LiveRun, Reply
from tests.bridges.bridging import PATIENCE, READER, bridged, person, rows, until
from tests.servers import PrivateMosquitto, private_mosquitto
from tests.service.sentinels import OUTSIDE, files, leaks

SECRET = b"a secret of the installation"
MEBIBYTE = 1 << 20
LARGE = [8 * MEBIBYTE, *([MEBIBYTE] * 30), READER.largest + 1]
NAMES = {f"u1#{number}" for number in range(len(LARGE))}


def padded(number: int, size: int) -> bytes:
    """An event whose payload has a size: as JSON it would be read."""
    told = f'{{"n": {number + 1000}, "cell": "{OUTSIDE}"}}'.encode()
    return told + b" " * (size - len(told))


class Slow:
    """A live run that answers when it is let."""

    def __init__(self) -> None:
        self.let, self.asked = threading.Event(), threading.Event()

    def over(self, run: LiveRun) -> LiveRun:
        self._run = run
        return self

    def answer(self, events: Sequence[Asked]) -> list[Reply]:
        self.asked.set()
        assert self.let.wait(PATIENCE)
        return self._run.answer(events)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._run, name)


@pytest.fixture
def eager() -> Iterator[PrivateMosquitto]:
    """A broker that does not wait for acknowledgements before it delivers more."""
    with private_mosquitto("max_inflight_messages 0") as server:
        yield server


def test_payloads_beyond_the_limit_are_dead_letters_and_all_others_are_answered_once(
    eager: PrivateMosquitto, tmp_path: Path
) -> None:
    slow = Slow()
    with (
        person(eager, hears="private/#") as people,
        person(eager, name="operator", hears="bridge/#") as operator,
    ):
        with bridged(eager, tmp_path, changed=slow.over, window=100) as town:
            people.event("u1", 0, "home")
            until(slow.asked.is_set, "the first event")
            tracemalloc.start()
            for number, size in enumerate(LARGE):
                people.say("raw/u1", padded(number, size))
                if number:
                    people.event("u1", number, "home")
            most = 2 * len(LARGE)
            until(lambda: town.unacknowledged == most, "all messages wait for the first one")
            until(people.confirmed, "the broker has what was said")
            held, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            slow.let.set()
            until(lambda: len(operator.notices("dead")) == len(LARGE), "dead letters")
            until(lambda: set(people.answers()) == NAMES, "answers")
        letters = operator.notices("dead")
        assert all(each["field"] == "payload" and each["topic"] == "raw/u1" for each in letters)
        assert [each["digest"] for each in letters] == [
            message_digest(SECRET, "raw/u1", padded(number, size))
            for number, size in enumerate(LARGE)
        ]
        assert all(len(said) == 1 for said in people.answers().values())
        heard = [*people.heard, *operator.heard]
    # 38 MiB came while nobody looked at them.
    assert held < 4 * MEBIBYTE
    assert not leaks(repr(heard)) and not any(leaks(line) for line in town.lines)
    assert not any(leaks(path.read_bytes()) for path in files(tmp_path))
    assert sorted(answer.sequence for answer in rows(tmp_path)) == list(range(len(NAMES)))


def test_a_message_of_many_properties_is_a_dead_letter_too(
    mosquitto: PrivateMosquitto, tmp_path: Path
) -> None:
    with person(mosquitto) as people, bridged(mosquitto, tmp_path):
        many = [("note", OUTSIDE * 10)] * 100
        people.say("raw/u1", '{"n": 1, "cell": "home"}', UserProperty=many)
        people.event("u1", 2, "home")
        until(lambda: "u1#2" in people.answers(), "an answer")
        until(lambda: people.notices("dead"), "a dead letter")
        (letter,) = people.notices("dead")
    assert letter["field"] == "properties"
    assert letter["digest"] == message_digest(SECRET, "raw/u1", b'{"n": 1, "cell": "home"}')
    assert not leaks(repr(letter)) and set(people.answers()) == {"u1#2"}
