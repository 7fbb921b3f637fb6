"""`sfumato bridge mqtt` as a process: killed, ended in order, and refused at its start."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sfumato.service.release_desk import ReleaseDesk
from sfumato.service.releases import Releases
from sfumato.service.serve_release import establish
from sfumato.service.settings import Limits
from sfumato.store.files import save
from sfumato.store.home import open_home
from sfumato.store.live_intake import own_id
from sfumato.stream.release_spec import ReleaseSpec
from tests.bridges.bridging import MODEL, PATIENCE, Person, person, until
from tests.servers import PrivateMosquitto, private_mosquitto
from tests.service.example_releases import PLACES
from tests.service.sentinels import OUTSIDE, files, leaks
from tests.shell.running import COMMAND, call

RULES = ("--epsilon", "0.5", "--method", "step-wise")
JSON = ("--value-field", "cell", "--id-field", "n")


class Town:
    """A folder with a model and a home, and the process of its bridge."""

    def __init__(self, folder: Path, server: PrivateMosquitto) -> None:
        self.folder, self.server = folder, server
        self.process: subprocess.Popen[str] | None = None
        save(MODEL, folder / "town.model")

    def words(self, *more: str) -> list[str]:
        return [
            *("bridge", "mqtt", "--broker", self.server.url, "--in", "raw/#", "--out", "private/"),
            *("--home", str(self.folder / "home"), "--log", str(self.folder / "log"), "--json"),
            *("--model", str(self.folder / "town.model"), *RULES, *JSON, *more),
        ]

    def start(self, *more: str) -> dict[str, Any]:
        """Start the bridge; what it said when it was ready."""
        with (self.folder / "said").open("a") as said:
            self.process = subprocess.Popen(
                [*COMMAND, *self.words(*more)], stdout=subprocess.PIPE, stderr=said, text=True
            )
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if line == "}\n":
                break
        found: dict[str, Any] = json.loads("".join(lines))
        return found

    def end(self, number: int) -> int:
        assert self.process is not None and self.process.stdout is not None
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self.process.stdout.close()
        self.process = None
        return code

    def ids(self) -> list[str]:
        with sqlite3.connect(self.folder / "home" / "ledgers" / "default.ledger") as ledger:
            found = [own_id(row[0]) for row in ledger.execute("SELECT id FROM events")]
        ledger.close()
        return found


@contextmanager
def town_of(folder: Path, server: PrivateMosquitto) -> Iterator[Town]:
    town = Town(folder, server)
    try:
        yield town
    finally:
        if town.process is not None:
            town.end(signal.SIGKILL)


def check_once(people: Person, town: Town, names: set[str]) -> None:
    until(lambda: set(people.answers()) >= names, "all answers")
    heard = people.answers()
    assert set(heard) == names and all(len(said) == 1 for said in heard.values())
    stored = town.ids()
    assert len(stored) == len(set(stored)) and set(stored) == names


def test_a_bridge_that_is_killed_goes_on_and_no_other_may_use_its_home(
    mosquitto: PrivateMosquitto, tmp_path: Path
) -> None:
    with person(mosquitto) as people, town_of(tmp_path, mosquitto) as town:
        assert town.start()["ids"] == "field:n"
        for number in range(200):
            people.event(f"u{number % 7}", number, PLACES[number % 5])
        until(lambda: len(people.answers()) > 20, "some answers")
        town.end(signal.SIGKILL)
        until(lambda: ("private/$bridge/status", b"offline") in people.heard, "the last will")
        people.event("u1", 7_000, OUTSIDE)
        town.start()
        names = {f"u{number % 7}#{number}" for number in range(200)}
        until(lambda: set(people.answers()) == names, "answers")
        until(lambda: people.notices("refused"), "the refusal")
        second = call(*town.words())
        assert second.code == 2 and "in use" in second.err
        assert town.end(signal.SIGTERM) == 0
        words = " ".join(town.words()).replace("--id-field n", "--id-property n").split()
        other = call(*words)
        assert other.code == 2 and "known by field:n" in other.err
        check_once(people, town, names)
        # What the device itself said is heard by whoever may hear raw/.
        assert not leaks(repr([told for told in people.heard if told[0] != "raw/u1"]))
    assert not any(leaks(path.read_bytes()) for path in files(tmp_path))
    assert call("store", "check", str(tmp_path / "home")).code == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_killed_and_restarted_at_random_with_its_broker(tmp_path: Path, seed: int) -> None:
    luck = random.Random(seed)
    with (
        private_mosquitto("max_inflight_messages 0") as server,
        person(server) as people,
        town_of(tmp_path, server) as town,
    ):
        names = set()
        for turn in range(10):
            town.start("--in-flight", str(luck.choice([1, 20, 500])))
            for number in range(turn * 200, turn * 200 + 200):
                for _ in range(luck.choice([1, 1, 1, 2])):
                    people.event(f"u{number % 9}", number, PLACES[number % 5])
                names.add(f"u{number % 9}#{number}")
            before = len(people.answers())
            wanted = before + luck.randrange(1, 150)
            until(lambda: len(people.answers()) >= wanted, "some answers")  # noqa: B023
            if luck.random() < 0.5:
                server.stop()
                server.start()
            town.end(luck.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
        town.start()
        until(lambda: set(people.answers()) == names, "answers")
        assert town.end(signal.SIGTERM) == 0
        check_once(people, town, names)
    assert call("store", "check", str(tmp_path / "home")).code == 0


# Refused at the start -----------------------------------------------------------------------------

STARTS = {
    "no ids": (("--value-field", "cell"), "where event ids are"),
    "two kinds of ids": ((*JSON, "--id-property", "e"), "where event ids are"),
    "ids from nowhere": (("--id-from", "field"), "--id-from"),
    "time without a field": (("--value-field", "cell", "--id-from", "time"), "--time-field"),
    "a field of no JSON": (("--id-field", "n"), "--value-field"),
    "a loop": ((*JSON, "--out", "raw/x"), "--out"),
    "refusals among answers": ((*JSON, "--notices", "private/bridge"), "--notices"),
    "no stream": ((*JSON, "--in", "raw/+"), "--in"),
    "a password that all can read": (
        (*JSON, "--broker", "mqtt://me:s3cret@127.0.0.1"),
        "--password-file",
    ),
    "no such release": ((*JSON, "--release", "other"), "--release"),
    "a window of nothing": ((*JSON, "--in-flight", "0"), "--in-flight"),
    "authorities without TLS": ((*JSON, "--tls-ca", "ca.pem"), "mqtts"),
}


@pytest.mark.parametrize("what", STARTS)
def test_a_bridge_that_could_harm_does_not_start(what: str, tmp_path: Path) -> None:
    words, told = STARTS[what]
    # Of an option that is typed twice the last one counts.
    usual = ("--broker", "mqtt://127.0.0.1:1", "--in", "raw/#", "--out", "private/")
    refused = call("bridge", "mqtt", *usual, "--home", str(tmp_path / "home"), *words)
    assert refused.code == 2
    assert told in refused.err and "s3cret" not in refused.err


def test_a_release_in_batches_is_refused(tmp_path: Path) -> None:
    save(MODEL, tmp_path / "town.model")
    where = ("--home", str(tmp_path / "home"))
    spec = ReleaseSpec(epsilon=0.5, batch=2, method="step-wise", loss="hamming")
    with open_home(where[1]) as home:
        desk = ReleaseDesk(home, Releases(Limits()))
        establish(desk, "default", lambda begun: (MODEL, spec, None))
    refused = call(
        *("bridge", "mqtt", "--broker", "mqtt://127.0.0.1:1", "--in", "raw/#"),
        *("--out", "private/", *where, *JSON),
    )
    assert refused.code == 2 and "batches" in refused.err
