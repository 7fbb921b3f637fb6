"""The commands of a home: what they say, and what a machine reads."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sfumato.store.catalogue import Catalogue, record
from sfumato.store.catalogue_contents import ReleaseContent
from sfumato.store.folder_home import FolderHome
from sfumato.store.home_anchor import HomeAnchor
from tests.shell.releasing import RULE
from tests.shell.running import call, done, files, litter, refused, rows
from tests.shell.tables import PLACES, table
from tests.store.test_ledger_versions import written_before


@pytest.fixture
def home(model: Path, tmp_path: Path) -> Path:
    """A home with a release that answered four values."""
    path = tmp_path / "home"
    with FolderHome(path) as opened:
        rule = ReleaseContent("release", "{}")
        record(opened.registry, Catalogue(), "ann", "release.created", "city", rule)
    release(model, path, "one")
    return path


def release(model: Path, home: Path, source: str) -> None:
    """Four more values, by a run beside the service."""
    live = table(home.parent / f"{source}.csv", [("a", place) for place in PLACES])
    ledger = home / "ledgers" / "city.ledger"
    done(
        "release",
        live,
        "-m",
        model,
        *RULE,
        "--ledger",
        ledger,
        "-o",
        home.parent / f"{source}-private.csv",
    )


def test_a_check_tells_the_heads_and_an_anchor_remembers_them(
    model: Path, home: Path, tmp_path: Path
) -> None:
    anchor = tmp_path / "anchor.json"
    found = done("store", "check", home, "--json", "--write-anchor", anchor).document
    assert (found["passed"], found["releases"], found["problems"]) == (True, {"city": 4}, [])
    assert found["ledgers"]["city"]["rows"] == 4
    kept = HomeAnchor.load(anchor)
    assert found["anchor"]["ledgers"] == kept.ledgers
    assert f"head: {kept.registry}" in done("store", "check", home).out
    release(model, home, "two")
    assert "the home is whole" in done("store", "check", home, "--expect-anchor", anchor).out
    other = json.loads(anchor.read_bytes())
    other["ledgers"]["city"] = f"5:{64 * 'a'}"
    anchor.write_text(json.dumps(other))
    result = call("store", "check", home, "--expect-anchor", anchor)
    assert (result.code, "the home is NOT whole" in result.out) == (1, True)
    assert "PROBLEM ledger 'city' did not grow from the anchored head 5:" in result.out
    refused(call("store", "check", home, "--expect-anchor", home / "registry.db"), "an anchor must")


def test_a_home_that_is_not_whole_gets_no_anchor(home: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(home / "ledgers" / "city.ledger")) as database:
        database.execute("UPDATE events SET leakage = 0 WHERE entry = 2")
        database.commit()
    result = call("store", "check", home, "--json", "--write-anchor", tmp_path / "anchor.json")
    assert (result.code, result.document["passed"]) == (1, False)
    assert not (tmp_path / "anchor.json").exists()


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "arrow"])
def test_an_export_has_every_answer_in_any_format(home: Path, tmp_path: Path, suffix: str) -> None:
    output = tmp_path / f"answers.{suffix}"
    assert "4 rows" in done("store", "export", home, "--release", "city", "-o", output).err
    if suffix == "csv":
        assert [row["stream"] for row in rows(output)] == ["a"] * 4
    assert output.stat().st_size > 0
    refused(call("store", "export", home, "--release", "x", "-o", output), "a ledger here: city")
    ledger = home / "ledgers" / "city.ledger"
    itself = call("store", "export", home, "--release", "city", "-o", ledger)
    refused(itself, "be a file of its own")


def test_a_backup_comes_back_unless_it_lowers_a_spend(
    model: Path, home: Path, tmp_path: Path
) -> None:
    copy, new = tmp_path / "copy", tmp_path / "new"
    backed = done("store", "backup", home, copy, "--json").document
    assert backed["place"] == str(copy) and backed["ledgers"]["city"].startswith("4:")
    release(model, home, "two")
    done("store", "check", home, "--quiet", "--write-anchor", tmp_path / "late.json")
    refused(call("store", "restore", copy, "--to", home), "does not go on from its head 8:")
    late = ("--anchor", tmp_path / "late.json")
    refused(call("store", "restore", copy, "--to", new, *late), "older than the anchor")
    refused(call("store", "restore", copy, "--to", new), "--accept-unanchored")
    assert not new.exists()
    told = done("store", "restore", copy, "--to", new, "--accept-unanchored", "--json")
    assert told.document["ledgers"] == backed["ledgers"]
    assert "can be spent again" in told.err
    assert "the home is whole" in done("store", "check", new).out
    assert litter(tmp_path) == []
    assert files(new) == {"ledgers", "registry.db", "registry.db.head"}


def test_a_migration_says_what_it_did(home: Path) -> None:
    for version in (4, 5):
        written_before(home / "ledgers" / f"old-{version}.ledger", version)
    told = done("store", "migrate", home).out.splitlines()
    assert told == [f"ledger 'old-{version}': version {version} to 6" for version in (4, 5)]
    assert done("store", "migrate", home, "--json").document == {"done": []}
    assert "the home is whole" in done("store", "check", home).out


def test_a_place_without_a_home_is_refused_and_left_alone(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    for words in (["check"], ["migrate"], ["export", "--release", "x", "-o", "-"]):
        refused(call("store", words[0], nowhere, *words[1:]), "a home must be a folder")
    refused(call("store", "backup", nowhere, tmp_path / "copy"), "a home must be a folder")
    refused(call("store", "migrate", "memory:"), "be a folder or postgresql://")
    assert files(tmp_path) == set()


def test_a_release_is_closed_once_and_a_check_holds_its_ledger_to_that(
    model: Path, home: Path
) -> None:
    said = done("store", "close", home, "--release", "city")
    told = done("store", "close", home, "--release", "city", "--json").document
    assert told["release"] == "city" and f"city is closed since {told['closed']}" in said.err
    checked = done("store", "check", home)
    assert f"city: closed since {told['closed']}" in checked.out
    release(model, home, "two")  # a table that is released beside the service asks no registry
    found = call("store", "check", home, "--json")
    assert found.code == 1 and "with which its release was closed" in found.out
    for words in (
        (home, "--release", "town"),
        ("--release", "city"),
        (home / "no", "--release", "x"),
    ):
        refused(call("store", "close", *words))


def test_a_home_that_is_served_is_closed_by_its_service(home: Path) -> None:
    with FolderHome(home):
        told = call("store", "close", home, "--release", "city")
    assert told.code == 2 and "ask the service: --url" in told.err
