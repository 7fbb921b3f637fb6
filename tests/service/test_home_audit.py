"""A release of a service, audited from its home alone, for every job, with its key and without."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sfumato.core.errors import InvalidParameter
from sfumato.core.randomness import ledger_key, secure
from sfumato.service.home_audit import audit_home
from sfumato.service.release_desk import ReleaseDesk, ReleaseRequest
from sfumato.service.release_keys import ReleaseKeys
from sfumato.service.releases import Releases
from sfumato.service.settings import Limits
from sfumato.store.folder_home import FolderHome
from sfumato.store.home import open_home
from sfumato.store.live import Answered, Asked
from sfumato.store.protocol import Job
from sfumato.store.release_end import close_release
from sfumato.stream.audit_promise import Required
from tests.service.gateways import town
from tests.shell.running import call, done

MATRIX = [[0.9, 0.1], [0.2, 0.8]]
RULES: dict[str, dict[str, Any]] = {
    "step": {"job": "release", "model": "town", "rules": {"epsilon": 0.5, "method": "optimal"}},
    "kept": {"job": "release", "model": "town", "rules": {"epsilon": 0.5, "method": "far-sighted"}},
    "counts": {"job": "realtime", "rules": {"epsilon": 1, "sensitivity": 1, "length": 50}},
    "wards": {"job": "temporal", "rules": {"alpha": 1, "backward": [MATRIX], "forward": [MATRIX]}},
}


def _served(folder: Path) -> tuple[str, bytes]:
    """A home in which every release answered some events; its place, and the key of its coins."""
    folder.mkdir()
    place = str(folder / "home")

    async def run() -> bytes:
        with open_home(place) as home:
            keys = ReleaseKeys(folder / "keys", home.registry)
            key = keys.add("tests")
            desk = ReleaseDesk(home, Releases(Limits()), keys)
            desk.add_model("tests", "town", town())
            for name, asked in RULES.items():
                opened = desk._make("tests", ReleaseRequest(name, coins=key.id, **asked))
                values: Any = ["home", "work"] if asked["job"] == "release" else [3, 4]
                events = [Asked(f"e{n}", f"u{n % 3}", values[n % 2]) for n in range(24)]
                assert all(isinstance(one, Answered) for one in opened.run.answer(events))
                opened.close()
            return key.secret

    return place, asyncio.run(run())


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, bytes]:
    return _served(tmp_path_factory.mktemp("audited") / "service")


@pytest.mark.parametrize("name", RULES)
def test_registry_and_ledger_are_enough_for_every_job(served: tuple[str, bytes], name: str) -> None:
    found = audit_home(served[0], name)
    rows = getattr(found.report, "only_in_ledger", found.report.rows)
    assert found.passed and rows == 24 and found.closed is None
    told = done("audit", "--home", served[0], "--release", name)
    assert "the audit found nothing wrong" in told.out
    told = done("audit", "--home", served[0], "--release", name, "--json", "--quiet")
    assert json.loads(told.out)["passed"]


@pytest.mark.parametrize("name", ["step", "kept"])
def test_every_draw_is_one_of_the_key_or_that_of_the_ledger(
    served: tuple[str, bytes], name: str
) -> None:
    where, secret = served
    with open_home(where) as home:
        path = home.ledger_path(name)  # type: ignore[attr-defined]
        with home.ledger(name) as reader:  # type: ignore[attr-defined]
            derived = ledger_key(secret, reader.front.id)
    assert path.exists()
    for key in (secret, derived):
        found = audit_home(where, name, key=key)
        assert found.passed and found.report.possible == 24  # type: ignore[union-attr]
    # Of 24 rows, all may be draws of one other key by chance: one time in 50, but not of five.
    others = [hashlib.sha256(f"another key {n}".encode()).digest() for n in range(5)]
    reports = [audit_home(where, name, key=other).report for other in others]
    failed = [report for report in reports if not report.passed]
    assert failed
    assert all([*one.problem_kinds] == ["coins"] for one in failed)  # type: ignore[union-attr]


def test_what_the_rules_must_say_and_what_is_not_there_is_said(served: tuple[str, bytes]) -> None:
    assert not audit_home(served[0], "step", required=Required(budget="0.1/value")).passed
    with pytest.raises(InvalidParameter, match="be one of this home: step, kept"):
        audit_home(served[0], "absent")
    for words in (["--home", served[0]], ["--release", "step"]):
        assert "come with --release" in call("audit", *words).err
    told = call("audit", "--home", served[0], "--release", "step", "--model", "x.model")
    assert told.code == 2 and "be left out with --home" in told.err
    for words in (["--truth", "x.model"], ["--radius", "0"], ["--plausible", "x.set"]):
        told = call("audit", "--home", served[0], "--release", "step", *words)
        assert told.code == 2 and f"{words[0]} must not come with --home" in told.err


def test_answers_with_other_coins_than_those_of_the_registry_fail(
    served: tuple[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = str(tmp_path / "home")
    shutil.copytree(served[0], place)
    shutil.copytree(Path(served[0]).with_name("keys"), tmp_path / "keys")

    def answered(id_: str, *, rotated: bool) -> bool:
        with open_home(place) as home:
            keys = ReleaseKeys(tmp_path / "keys", home.registry)
            desk = ReleaseDesk(home, Releases(Limits()), keys)
            desk.catch_up()
            if rotated:
                keys.add("tests", in_place_of=next(iter(desk.catalogue.coins)))
            opened = desk.open("step")
            [reply] = opened.run.answer([Asked(id_, "u0", "home")])
            opened.close()
        assert isinstance(reply, Answered)
        return audit_home(place, "step").passed

    assert answered("rotated", rotated=True)
    monkeypatch.setattr(ReleaseDesk, "_coins", lambda self, id_: (secure(), "http"))
    assert not answered("others", rotated=False)
    assert "the key of coins that the registry names" in audit_home(place, "step").problems[0]


def test_a_ledger_that_grew_after_the_end_or_is_another_one_fails(
    served: tuple[str, bytes], tmp_path: Path
) -> None:
    shutil.copytree(served[0], tmp_path / "home")
    with FolderHome(tmp_path / "home") as home:
        close_release(home, "tests", "step")
    found = audit_home(str(tmp_path / "home"), "step")
    assert found.passed and found.closed is not None
    with FolderHome(tmp_path / "home") as home:
        with home.ledger("step") as reader:
            front = reader.front
            (last,) = [*reader.rest("u0", 7)]
            position = reader.position("u0")
        assert position is not None
        with home.open_ledger("step", front.plan, Job(front.job), front.rules) as store:
            row = replace(last, id="u0/new", place=25, sequence=8)
            after = replace(
                position,
                sequence=9,
                leakage=position.leakage + last.leakage,
                model_free=position.model_free + last.model_free,
            )
            store.commit([row], [after])
    found = audit_home(str(tmp_path / "home"), "step")
    assert any("24 rows with which its release was closed" in one for one in found.problems)
    told = call("audit", "--home", tmp_path / "home", "--release", "step")
    assert told.code == 1 and "PROBLEM" in told.out
