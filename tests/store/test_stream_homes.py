"""Where streams belong, in a folder: kept over restarts, copied, checked, and never moved."""

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from sfumato.core.errors import CorruptData
from sfumato.store.folder_home import FolderHome, HomeFiles
from sfumato.store.home_backup import backup_home
from sfumato.store.home_check import check_home
from sfumato.store.home_restore import SpendLowered, Unanchored, restore_home
from sfumato.store.protocol import LedgerMismatch, StoreUnavailable
from sfumato.store.stream_homes import SqliteStreamHomes, reading_homes
from tests.contracts.home_laws import release_some
from tests.contracts.store_laws import JOB, PLAN


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a ledger, and a stream that belongs to it."""
    path = tmp_path / "home"
    with FolderHome(path) as opened, opened.open_ledger("city", PLAN, JOB, None) as store:
        opened.settle(["ann"], "city")
        release_some(store, "ann", 2)
    return path


def backed(home: Path, name: str) -> Path:
    with HomeFiles(home) as files:
        backup_home(files, home.with_name(name))
    return home.with_name(name)


def restored(backup: Path, place: Path) -> None:
    with HomeFiles(backup) as files:
        restore_home(files, place, Unanchored.ACCEPTED)


def homes(path: Path) -> dict[str, str]:
    with HomeFiles(path) as files, reading_homes(files.streams_path) as found:
        return dict(found)


def test_a_restart_keeps_homes_on_disk_for_their_owner_alone(home: Path) -> None:
    with FolderHome(home) as opened:
        assert opened.settle(["ann", "bob"], "town") == {"ann": "city", "bob": "town"}
        (told,) = opened._homes._database.execute("PRAGMA synchronous").fetchone()  # type: ignore[union-attr]
        assert told == 2
    mode = stat.S_IMODE((home / "streams.db").stat().st_mode)
    assert mode == 0o600
    with FolderHome(home) as opened:
        assert opened.settled(["ann", "bob"]) == {"ann": "city", "bob": "town"}
    with pytest.raises(LedgerMismatch, match="it was closed"):
        opened.settled(["ann"])


def test_a_file_of_another_kind_is_refused_and_holds_nothing(home: Path) -> None:
    path = home / "streams.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE more (x)")
    for _ in range(2):
        with pytest.raises(CorruptData, match="not that of the homes of streams"):
            FolderHome(home)
    path.write_bytes(b"something else, long enough to be no header of a database" * 9)
    with pytest.raises(CorruptData, match="not a usable file"):
        FolderHome(home)
    with HomeFiles(home) as files:
        assert any("not a usable file" in each for each in check_home(files).problems)
    path.unlink()
    path.symlink_to(home / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        FolderHome(home)


def test_where_nothing_can_be_written_nothing_is_settled(home: Path) -> None:
    with closing(sqlite3.connect(home / "streams.db")) as other:
        own = SqliteStreamHomes(home / "streams.db")
        assert own._database is not None
        own._database.execute("PRAGMA busy_timeout = 1")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="could not be written down"):
            own.settle(["bob"], "town")
        other.rollback()
        assert own.settled(["bob"]) == {}
        own.close()


def test_a_backup_has_all_homes_and_comes_back_with_them(home: Path) -> None:
    copy = backed(home, "copy")
    assert homes(copy) == {"ann": "city"}
    restored(copy, home.with_name("new"))
    assert homes(home.with_name("new")) == {"ann": "city"}
    with FolderHome(home) as opened:
        opened.settle(["bob"], "city")
    restored(copy, home)  # what the place knows beside stays
    assert homes(home) == {"ann": "city", "bob": "city"}
    (home / "streams.db").unlink()
    restored(copy, home)
    assert homes(home) == {"ann": "city"}


def test_a_restore_that_would_move_a_stream_leaves_the_place_as_it_is(home: Path) -> None:
    copy = backed(home, "copy")
    (home / "streams.db").unlink()
    with FolderHome(home) as opened:
        opened.settle(["ann"], "town")
    with pytest.raises(SpendLowered, match="belongs to another release"):
        restored(copy, home)
    assert homes(home) == {"ann": "town"}


def test_a_home_without_a_release_shows_and_is_not_copied(home: Path) -> None:
    with FolderHome(home) as opened:
        opened.settle(["bob"], "lost")
    with HomeFiles(home) as files:
        assert check_home(files).problems == [
            "1 streams belong to a release that neither the registry nor a ledger knows"
        ]
    copy = backed(home, "copy")
    assert homes(copy) == {"ann": "city"}
    with HomeFiles(copy) as files:
        assert check_home(files).passed
