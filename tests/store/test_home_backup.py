"""Backups of homes, and that none of them can lower a spend."""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from unittest import mock

import pytest

from sfumato.core.errors import CorruptData, FileInUse, InvalidParameter, SfumatoError
from sfumato.store import home_backup, home_restore
from sfumato.store.catalogue import Catalogue, record
from sfumato.store.catalogue_contents import ReleaseContent
from sfumato.store.folder_home import FolderHome, HomeFiles
from sfumato.store.home import HomeAnchor
from sfumato.store.home_backup import backup_home
from sfumato.store.home_check import check_home
from sfumato.store.home_restore import SpendLowered, Unanchored, restore_home
from tests.contracts.home_laws import release_some
from tests.contracts.store_laws import JOB, PLAN


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home of two releases and five answers."""
    path = tmp_path / "home"
    with FolderHome(path) as opened:
        now = Catalogue()
        for name in ("city", "town"):
            rule = ReleaseContent("release", "{}")
            now = record(opened.registry, now, "ann", "release.created", name, rule)
    grow(path, "city", "u1", 3)
    grow(path, "town", "u1", 2)
    return path


def grow(path: Path, ledger: str, stream: str, count: int) -> None:
    """Release some more."""
    with FolderHome(path) as home, home.open_ledger(ledger, PLAN, JOB, None) as store:
        release_some(store, stream, count)


def backed(path: Path, name: str = "backup") -> Path:
    """A backup beside a home."""
    with HomeFiles(path) as home:
        backup_home(home, path.parent / name)
    return path.parent / name


def restored(
    backup: Path, place: Path, anchor: HomeAnchor | Unanchored = Unanchored.ACCEPTED
) -> HomeAnchor:
    with HomeFiles(backup) as files:
        return restore_home(files, place, anchor)


def heads(path: Path) -> HomeAnchor:
    with HomeFiles(path) as files:
        report = check_home(files)
    assert report.problems == []
    return report.anchor


def told(anchor: HomeAnchor) -> tuple[str, dict[str, str]]:
    """An anchor without its time."""
    return anchor.registry, dict(anchor.ledgers)


def everything(path: Path) -> dict[str, bytes]:
    """All files below a folder."""
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


# Checks -------------------------------------------------------------------------------------------


def test_a_check_tells_of_every_ledger_and_release(home: Path) -> None:
    seen: list[int] = []
    with HomeFiles(home) as files:
        report = check_home(files, progress=seen.append)
    assert report.passed and seen == [1, 2]
    assert (report.entries, report.releases) == (2, {"city": 3, "town": 2})
    assert {name: found.streams for name, found in report.ledgers.items()} == {"city": 1, "town": 1}
    assert report.unused == []


def edited(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute(statement)
        database.commit()


@pytest.mark.parametrize(
    ("file", "statement", "words"),
    [
        ("ledgers/city.ledger", "UPDATE events SET leakage = 0 WHERE entry = 2", "was changed"),
        ("ledgers/city.ledger", "UPDATE streams SET leakage = 0", "its state was changed"),
        ("ledgers/town.ledger", "CREATE TABLE more (one)", "its tables are not those"),
        ("registry.db", "UPDATE entries SET actor = 'eve' WHERE number = 1", "entry 1"),
    ],
)
def test_a_check_and_a_backup_find_what_was_changed(
    home: Path, file: str, statement: str, words: str
) -> None:
    edited(home / file, statement)
    with HomeFiles(home) as files:
        assert words in "\n".join(check_home(files).problems)
    with pytest.raises(CorruptData):
        backed(home)
    assert [each.name for each in home.parent.iterdir()] == ["home"]


def test_a_check_finds_what_an_anchor_remembers(home: Path) -> None:
    older = backed(home)
    grow(home, "city", "u1", 1)
    late = heads(home)
    with HomeFiles(older) as files:
        assert check_home(files).passed
        [problem] = check_home(files, late).problems
    assert "ledger 'city' did not grow from the anchored head 4:" in problem


def test_a_ledger_of_another_job_than_its_release_shows(home: Path) -> None:
    with FolderHome(home) as opened:
        now = Catalogue().after(opened.registry.entries())
        rule = ReleaseContent("realtime", "{}")
        now = record(opened.registry, now, "ann", "release.created", "other", rule)
        record(opened.registry, now, "ann", "release.created", "unused", rule)
    grow(home, "other", "u1", 1)
    with HomeFiles(home) as files:
        report = check_home(files)
    assert report.unused == ["unused"]
    assert "must be of `realtime`, as its release is; it is of `release`" in report.problems[0]


# Backups ------------------------------------------------------------------------------------------


def test_a_backup_of_a_home_in_use_is_whole(home: Path) -> None:
    with FolderHome(home) as opened, opened.open_ledger("city", PLAN, JOB, None) as store:
        release_some(store, "u2", 5)
        copy = backed(home)
        release_some(store, "u2", 1)
        opened.registry.append("ann", "release.activated", "city", b"{}")
    assert [Path(name).name for name in sorted(everything(copy))] == [
        "anchor.json",
        "city.ledger",
        "town.ledger",
        "registry.db",
    ]
    found = heads(copy)
    assert found.ledgers["city"].startswith("8:")
    assert told(HomeAnchor.load(copy / "anchor.json")) == told(found)
    assert copy.stat().st_mode & 0o777 == 0o700
    with HomeFiles(home) as files:
        assert check_home(files, found).passed


WRITER = """
import sys
from sfumato.store.folder_home import FolderHome
from tests.contracts.home_laws import release_some
from tests.contracts.store_laws import JOB, PLAN
with FolderHome(sys.argv[1]) as home, home.open_ledger("city", PLAN, JOB, None) as store:
    for turn in range(10_000):
        release_some(store, f"u{turn % 50}", 1)
        commitment = b'{"commitment":"%s"}' % (b"5" * 64)
        home.registry.append("ann", "coins.created", f"k{turn}", commitment)
        print(turn, flush=True)
"""


def test_backups_beside_a_busy_writer_are_whole_and_follow_each_other(home: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(home)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root) as writer:
        assert writer.stdout is not None
        anchors = []
        for number in range(3):
            writer.stdout.readline()
            anchors.append(heads(backed(home, f"backup-{number}")))
        writer.kill()
    with HomeFiles(home) as files:
        assert [check_home(files, anchor).problems for anchor in anchors] == [[], [], []]
    counts = [int(anchor.ledgers["city"].partition(":")[0]) for anchor in anchors]
    assert 3 < counts[0] < counts[1] < counts[2]


def test_a_backup_never_replaces_anything(home: Path) -> None:
    copy = backed(home)
    before = everything(copy)
    for target in (copy, home, home / "registry.db", home / "nowhere" / "copy"):
        with HomeFiles(home) as files, pytest.raises(InvalidParameter, match="be new"):
            backup_home(files, target)
    assert everything(copy) == before


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, OSError(28, "No space left")])
def test_an_interrupted_backup_leaves_nothing(home: Path, interruption: object) -> None:
    with (
        mock.patch.object(home_backup, "write_whole", side_effect=interruption),
        pytest.raises((KeyboardInterrupt, OSError)),
    ):
        backed(home)
    assert [each.name for each in home.parent.iterdir()] == ["home"]


def test_what_a_killed_backup_left_is_removed_by_the_next(home: Path) -> None:
    left = home.parent / f".partial.{16 * '0'}.backup"
    left.mkdir()
    (left / "registry.db").write_bytes(b"half")
    backed(home)
    assert sorted(each.name for each in home.parent.iterdir()) == ["backup", "home"]


def test_a_ledger_that_was_rolled_back_is_not_backed_up(home: Path, tmp_path: Path) -> None:
    ledger = home / "ledgers" / "city.ledger"
    older = ledger.read_bytes()
    grow(home, "city", "u1", 1)
    ledger.write_bytes(older)
    with pytest.raises(CorruptData, match="did not grow"):
        backed(home)


def test_a_backup_holds_no_key_file(home: Path) -> None:
    (home / "ledgers" / "city.ledger.key").write_bytes(32 * b"k")
    assert not [name for name in everything(backed(home)) if name.endswith(".key")]


# Restores -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("made", [False, True])
def test_a_backup_comes_back_into_an_empty_place_and_goes_on(home: Path, made: bool) -> None:
    copy, place = backed(home), home.parent / "place"
    if made:
        place.mkdir(mode=0o700)
    assert told(restored(copy, place)) == told(heads(home)) == told(heads(place))
    assert place.stat().st_mode & 0o777 == 0o700
    grow(place, "city", "u1", 2)
    assert heads(place).ledgers["city"].startswith("5:")
    names = {Path(name).name for name in everything(place)}
    assert "city.ledger.head" in names and "anchor.json" not in names


def test_a_backup_that_does_not_reach_the_anchor_is_refused(home: Path) -> None:
    copy, place = backed(home), home.parent / "place"
    fitting = heads(home)
    grow(home, "town", "u2", 1)
    with pytest.raises(SpendLowered, match="older than the anchor: ledger 'town' did not grow"):
        restored(copy, place, heads(home))
    assert not place.exists()
    restored(copy, place, fitting)


def test_an_empty_place_needs_an_anchor_or_a_word(home: Path) -> None:
    copy, place = backed(home), home.parent / "place"
    with HomeFiles(copy) as files:
        with pytest.raises(SpendLowered, match="cannot tell what was released after the backup"):
            restore_home(files, place)
        assert not place.exists()
        restore_home(files, place, Unanchored.ACCEPTED)
        restore_home(files, place)


def place_grew(home: Path) -> None:
    grow(home, "city", "u1", 1)


def place_has_another_ledger(home: Path) -> None:
    grow(home, "other", "u1", 1)


def place_acted(home: Path) -> None:
    with FolderHome(home) as opened:
        opened.registry.append("ann", "release.activated", "city", b"{}")


def place_lost_a_ledger_that_grew(home: Path) -> None:
    grow(home, "city", "u1", 1)
    (home / "ledgers" / "city.ledger").unlink()


def place_lost_a_registry_that_grew(home: Path) -> None:
    place_acted(home)
    (home / "registry.db").unlink()


@pytest.mark.parametrize(
    "change",
    [
        place_grew,
        place_has_another_ledger,
        place_acted,
        place_lost_a_ledger_that_grew,
        place_lost_a_registry_that_grew,
    ],
)
def test_a_place_that_knows_more_is_left_as_it_is(
    home: Path, change: Callable[[Path], None]
) -> None:
    copy = backed(home)
    change(home)
    before = everything(home)
    with pytest.raises(SpendLowered, match="what was released stays spent, and nothing"):
        restored(copy, home)
    assert everything(home) == before


def test_a_spend_that_would_fall_is_refused_whatever_the_chain_says(home: Path) -> None:
    """The state of a stream at the place says more than the backup, under the same head."""
    copy = backed(home)
    edited(home / "ledgers" / "city.ledger", "UPDATE streams SET leakage = leakage + 1")
    with pytest.raises(SpendLowered, match="stream 'u1' has spent more than in the backup"):
        restored(copy, home)


def test_the_ledger_of_another_history_is_refused(home: Path) -> None:
    copy, other = backed(home), home.parent / "other"
    with FolderHome(other):
        pass
    grow(other, "city", "u1", 1)
    with pytest.raises(SpendLowered, match="does not go on from its head 1:"):
        restored(copy, other)


def test_a_backup_comes_back_over_what_it_grew_from(home: Path) -> None:
    older = backed(home, "older")
    grow(home, "city", "u1", 4)
    place_acted(home)
    newer = backed(home, "newer")
    place = home.parent / "place"
    restored(older, place)
    key = place / "ledgers" / "city.ledger.key"
    key.write_bytes(32 * b"k")
    assert told(restored(newer, place)) == told(heads(home)) == told(heads(place))
    assert key.read_bytes() == 32 * b"k"
    grow(place, "city", "u1", 1)
    assert not [name for name in everything(place) if "partial" in name]
    with pytest.raises(SpendLowered):
        restored(newer, place)


def test_a_lost_or_damaged_file_is_brought_back_if_the_backup_reaches_its_head(
    home: Path,
) -> None:
    copy, due = backed(home), heads(home)
    ledger = home / "ledgers" / "city.ledger"
    ledger.unlink()
    (home / "registry.db").unlink()
    restored(copy, home)
    assert told(heads(home)) == told(due)
    ledger.write_bytes(b"damaged" * 999)
    with pytest.raises(SfumatoError, match=r"Move city\.ledger away, leave city\.ledger\.head"):
        restored(copy, home)
    ledger.unlink()
    restored(copy, home)
    assert told(heads(home)) == told(due)


def test_a_place_in_use_is_refused(home: Path) -> None:
    copy = backed(home)
    with FolderHome(home), pytest.raises(FileInUse):
        restored(copy, home)
    with FolderHome(home) as opened:
        store = opened.open_ledger("city", PLAN, JOB, None)
    with store, pytest.raises(FileInUse, match=r"city\.ledger"):
        restored(copy, home)
    restored(copy, home)


@pytest.mark.parametrize("after", range(3))
def test_a_restore_that_was_interrupted_has_forgotten_nothing(home: Path, after: int) -> None:
    """Stopped before any of its moves: every ledger is as before, or as in the backup."""
    older = backed(home, "older")
    for name in ("city", "town"):
        grow(home, name, "u1", 2)
    place_acted(home)
    newer, place = backed(home, "newer"), home.parent / "place"
    restored(older, place)
    replace, moves = home_restore._replace, iter(range(3))

    def stopped(new: Path, target: Path) -> None:
        if next(moves) == after:
            raise KeyboardInterrupt
        replace(new, target)

    with mock.patch.object(home_restore, "_replace", stopped), pytest.raises(KeyboardInterrupt):
        restored(newer, place)
    counts = [int(head.partition(":")[0]) for head in heads(place).ledgers.values()]
    assert counts == [5 if after > 0 else 3, 4 if after > 1 else 2]
    assert told(restored(newer, place)) == told(heads(home))


def test_what_a_killed_restore_left_is_removed_by_the_next(home: Path) -> None:
    left = home / f".partial.{16 * '0'}.restore"
    left.mkdir()
    (left / "registry.db").write_bytes(b"half")
    copy = backed(home)
    restored(copy, home)
    assert not left.exists() and heads(home)


def test_a_restore_into_an_empty_folder_that_was_interrupted_is_no_home(home: Path) -> None:
    """A folder that cannot be replaced, as a mounted one, is filled; its registry comes last."""
    copy, place = backed(home), home.parent / "place"
    place.mkdir(mode=0o700)
    replace, moves = home_restore._replace, iter(range(3))

    def stopped(new: Path, target: Path) -> None:
        if next(moves) == 1:
            raise KeyboardInterrupt
        replace(new, target)

    with mock.patch.object(home_restore, "_replace", stopped), pytest.raises(KeyboardInterrupt):
        restored(copy, place)
    with pytest.raises(CorruptData, match=r"registry\.db is not"):
        FolderHome(place)
    restored(copy, place)
    assert told(heads(place)) == told(heads(home))


def test_a_damaged_backup_is_refused(home: Path) -> None:
    copy, place = backed(home), home.parent / "place"
    edited(copy / "ledgers" / "city.ledger", "DELETE FROM events WHERE entry = 2")
    with pytest.raises(CorruptData):
        restored(copy, place)
    assert not place.exists()
    shutil.rmtree(copy)
    with pytest.raises(SfumatoError, match="must be a folder"):
        restored(copy, place)
