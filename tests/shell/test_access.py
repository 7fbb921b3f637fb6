"""`sfumato access` on a home, and through a service: the same keys either way."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.service.access import AccessControl, Action, Unauthenticated
from sfumato.service.event_log import EventLog
from sfumato.store.home import open_home
from tests.service.secured import Secured, secured
from tests.shell.running import Result, call, done, refused


def said_no(*arguments: object) -> Result:
    result = call(*arguments)
    refused(result)
    return result


def admitted(home: Path, text: str) -> bool:
    with open_home(str(home)) as opened:
        try:
            AccessControl(opened.registry).identify_text(text)
        except Unauthenticated:
            return False
        return True


def test_a_key_is_made_shown_once_rotated_and_revoked(tmp_path: Path) -> None:
    home = tmp_path / "home"
    made = done("access", "new", home, "--stream", "ward-*", "--action", "read", "--expires", "9d")
    text = made.out.strip()
    assert text.startswith("sfk_") and "shown once" in made.err
    id_ = text.split("_")[1]
    assert admitted(home, text)
    new = done("access", "rotate", home, id_, "--overlap", "0s", "--quiet").out.strip()
    assert admitted(home, new) and not admitted(home, text)
    done("access", "revoke", home, new.split("_")[1])
    assert not admitted(home, new)
    listed = done("access", "list", home)
    assert [line.split("\t")[1] for line in listed.out.splitlines()[2:]] == ["expired", "revoked"]
    assert text[21:] not in listed.out and new[21:] not in listed.out
    document = done("access", "list", home, "--json").document
    assert [key["streams"] for key in document["keys"]] == [["ward-*"], ["ward-*"]]


def test_the_secret_is_in_no_file_of_the_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    text = done("access", "new", home, "--stream", "*", "--action", "admin").out.strip()
    for path in home.rglob("*"):
        assert path.is_dir() or text[21:].encode() not in path.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["new", "HOME", "--action", "read"], "--stream must be given"),
        (["new", "HOME", "--stream", "*"], "--action must be some of release, read"),
        (["new", "HOME", "--stream", "*", "--action", "all"], "--action must be some of"),
        (["new", "HOME", "--stream", "a*b", "--action", "read"], "streams must have no *"),
        (["new", "--stream", "*", "--action", "read"], "HOME must be given, or else --url"),
        (["new", "HOME", "--stream", "*", "--action", "read", "--expires", "soon"], "--expires"),
        (["new", "HOME", "--stream", "*", "--action", "read", "--requests", "0"], "per_second"),
        (["list", "nowhere"], "HOME must be the home of a service"),
        (["revoke", "HOME"], "arguments must be"),
        (["rotate", "HOME", "x", "--overlap", "1"], "--overlap must be a number with"),
        (["list", "--url", "http://gateway.example"], "--url must begin with https://"),
        (["list", "--url", "http://127.0.0.1:1"], "SFUMATO_ACCESS_KEY must hold"),
        (["list", "HOME", "--url", "https://x"], "HOME must be given, or else --url"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_made(
    tmp_path: Path, arguments: list[str], rule: str
) -> None:
    home = tmp_path / "home"
    told = said_no("access", *[str(home) if each == "HOME" else each for each in arguments])
    assert rule in told.err
    assert not home.exists()


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Secured, Path]]:
    home = tmp_path_factory.mktemp("served") / "home"
    with secured(EventLog(lambda line: None, b"secret"), home, released=False) as service:
        yield service, home


def test_a_service_that_runs_is_asked_with_the_key_of_an_administrator(
    there: tuple[Secured, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    service, home = there

    def asked(*arguments: str) -> tuple[str, ...]:
        monkeypatch.setenv("SFUMATO_ACCESS_KEY", service.first)  # it is taken out when it is read
        return ("access", arguments[0], "--url", service.url, *arguments[1:])

    text = done(*asked("new", "--stream", "ann", "--action", "read", "--events", "10")).out.strip()
    id_ = text.split("_")[1]
    assert service.control.identify_text(text).may(Action.READ, "ann")
    new = done(*asked("rotate", id_, "--overlap", "1h", "--json")).document
    assert service.control.identify_text(new["key"]).key.rate.events.per_second == 10
    done(*asked("revoke", id_))
    listed = json.loads(done(*asked("list", "--json")).out)
    assert {key["id"]: key["valid"] for key in listed["keys"]}[id_] is False
    told = said_no(*asked("revoke", "0" * 16))
    assert "the service refused (404)" in told.err
    told = said_no("access", "list", home)
    assert "not be served meanwhile" in told.err and "--url" in told.err


def test_a_key_that_may_not_is_told_so(
    there: tuple[Secured, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    service, _ = there
    for key, status in ((service.key(Action.READ), 403), ("sfk_wrong", 401)):
        monkeypatch.setenv("SFUMATO_ACCESS_KEY", key)
        told = said_no("access", "list", "--url", service.url)
        assert f"({status})" in told.err and key not in told.err


def test_a_key_is_limited_to_releases_that_are_named(tmp_path: Path) -> None:
    home = tmp_path / "home"
    words = ("access", "new", home, "--stream", "*", "--action", "read", "--json", "--quiet")
    named = ("--release", "city", "--release", "town", "--release", "city")
    made = json.loads(done(*words, *named).out)
    assert made["access"]["releases"] == ["city", "town"]
    assert json.loads(done(*words).out)["access"]["releases"] is None
    found = json.loads(done("access", "list", home, "--json").out)["keys"]
    assert [key["releases"] for key in found] == [["city", "town"], None]
    assert "name of a release" in call(*words, "--release", "../city").err
