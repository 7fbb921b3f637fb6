"""A bridge over whatever a home may be: PostgreSQL, and releases of every job."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from sfumato.service.job_rules import made_rules
from sfumato.service.release_desk import ReleaseDesk
from sfumato.service.releases import Releases
from sfumato.service.settings import Limits
from sfumato.store.home import open_home
from sfumato.store.live_intake import own_id
from tests.bridges.bridging import Person, person, until
from tests.bridges.test_bridge_command import Town
from tests.servers import PrivateMosquitto
from tests.service.example_releases import PLACES
from tests.shell.running import call

NUMBERS: dict[str, dict[str, Any]] = {
    "realtime": {"epsilon": 1, "sensitivity": 1, "length": 50},
    "temporal": {"alpha": 1.0, "backward": [[[0.8, 0.2], [0.1, 0.9]]]},
}


class ElsewhereTown(Town):
    """A town whose home is named, and whose bridge makes no release by itself."""

    def __init__(
        self, folder: Path, server: PrivateMosquitto, home: str, *more: str, made: bool = False
    ) -> None:
        super().__init__(folder, server)
        self.home, self.more, self.made = home, more, made

    def words(self, *more: str) -> list[str]:
        words = super().words(*self.more, *more)
        words[words.index("--home") + 1] = self.home
        if self.made:
            begin = words.index("--model")
            del words[begin : words.index("--value-field")]
        return words


def heard_once(people: Person, numbers: range) -> None:
    """Each event has one answer, however often the bridge was killed."""
    names = {f"u{number % 3}#{number}" for number in numbers}
    until(lambda: set(people.answers()) >= names, "all answers")
    heard = people.answers()
    assert set(heard) == names and all(len(said) == 1 for said in heard.values())


def test_a_bridge_over_postgres_is_killed_and_goes_on(
    mosquitto: PrivateMosquitto, database: str, tmp_path: Path
) -> None:
    secret = tmp_path / "digests.key"
    assert call("key", "new", str(secret)).code == 0
    town = ElsewhereTown(tmp_path, mosquitto, database, "--secret-file", str(secret))
    try:
        with person(mosquitto) as people:
            town.start()
            for number in range(60):
                people.event(f"u{number % 3}", number, PLACES[number % 5])
            until(lambda: len(people.answers()) > 5, "some answers")
            town.end(signal.SIGKILL)
            town.start()
            heard_once(people, range(60))
            assert town.end(signal.SIGTERM) == 0
    finally:
        if town.process is not None:
            town.end(signal.SIGKILL)
    with open_home(database, str(secret)) as home:
        desk = ReleaseDesk(home, Releases(Limits()))
        desk.catch_up()
        opened = desk.open("default")
        try:
            rows = [
                own_id(answer.id)
                for stream in ("u0", "u1", "u2")
                for answer in opened.store.rest(stream, 0)
            ]
        finally:
            opened.close()
    assert len(rows) == len(set(rows)) == 60
    assert call("store", "check", database).code == 0


@pytest.mark.parametrize("job", NUMBERS)
def test_numbers_are_answered_by_the_job_of_their_release(
    job: str, mosquitto: PrivateMosquitto, tmp_path: Path
) -> None:
    place = tmp_path / "home"
    with open_home(str(place)) as home:
        desk = ReleaseDesk(home, Releases(Limits()))
        desk.establish("test", "counts", job, made_rules(job, NUMBERS[job], None, None), None)
    town = ElsewhereTown(tmp_path, mosquitto, str(place), "--release", "counts", made=True)
    try:
        with person(mosquitto) as people:
            town.start()
            for number in range(6):
                people.say(f"raw/u{number % 3}", json.dumps({"n": number, "cell": 40 + number}))
            heard_once(people, range(6))
            assert all(
                isinstance(json.loads(said)["released"], int | float)
                for answers in people.answers().values()
                for said in answers
            )
            assert town.end(signal.SIGTERM) == 0
    finally:
        if town.process is not None:
            town.end(signal.SIGKILL)
    assert call("store", "check", str(place)).code == 0
