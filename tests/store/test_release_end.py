"""The end of a release stays: no older registry, and no row after it, goes unnoticed."""

import shutil
from pathlib import Path

import pytest

from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.store.catalogue import Catalogue, record
from sfumato.store.folder_home import FolderHome, HomeFiles
from sfumato.store.home import MemoryHome
from sfumato.store.home_backup import backup_home
from sfumato.store.home_check import check_home
from sfumato.store.home_restore import SpendLowered, restore_home
from sfumato.store.release_end import close_release
from tests.contracts.home_laws import made_release, release_some
from tests.contracts.store_laws import JOB, PLAN


def _closed(path: Path) -> None:
    """A home with a release of three rows that is closed, and a backup from before that."""
    with FolderHome(path) as home:
        made_release(home, "city")
        with home.open_ledger("city", PLAN, JOB, None) as store:
            release_some(store, "u1", 3)
    with HomeFiles(path) as files:
        backup_home(files, path.with_name("backup"))
    shutil.copy(path / "registry.db", path.with_name("older.db"))
    with FolderHome(path) as home:
        assert close_release(home, "ann", "city").last_head is not None


def test_no_older_registry_takes_the_place_of_one_that_closed_a_release(tmp_path: Path) -> None:
    path = tmp_path / "home"
    _closed(path)
    with HomeFiles(tmp_path / "backup") as files, pytest.raises(SpendLowered):
        restore_home(files, path, None)
    shutil.copy(tmp_path / "older.db", path / "registry.db")
    for opened in (FolderHome, HomeFiles):
        with pytest.raises(CorruptData, match="rolled back"):
            opened(path)


def test_a_check_finds_rows_that_came_after_the_end(tmp_path: Path) -> None:
    path = tmp_path / "home"
    _closed(path)
    with HomeFiles(path) as files:
        report = check_home(files)
        assert report.passed and list(report.closed) == ["city"]
    with FolderHome(path) as home, home.open_ledger("city", PLAN, JOB, None) as store:
        release_some(store, "u1", 1)  # by a program that asks no registry
    with HomeFiles(path) as files:
        [problem] = check_home(files).problems
    assert "must have the 3 rows with which its release was closed; it has 4" in problem


def test_a_closed_release_becomes_no_default_and_only_releases_are_closed() -> None:
    home = MemoryHome()
    made_release(home, "city")
    with pytest.raises(InvalidParameter, match="created before"):
        close_release(home, "ann", "town")
    assert close_release(home, "ann", "city").last_head is None  # it never had a ledger
    with pytest.raises(InvalidParameter, match="not be closed"):
        record(home.registry, Catalogue(), "ann", "release.activated", "city")
