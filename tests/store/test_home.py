"""Homes: where they are, who holds them, and what is refused."""

import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.core.errors import CorruptData, FileInUse, InvalidParameter
from sfumato.store.folder_home import FolderHome, HomeFiles
from sfumato.store.home import Home, HomeAnchor, MemoryHome, open_home
from sfumato.store.protocol import LedgerMismatch
from tests.contracts.home_laws import HomeLaws, release_some
from tests.contracts.store_laws import JOB, PLAN


class TestMemoryHome(HomeLaws):
    def opened(self, place: Path) -> Home:
        return MemoryHome()


class TestFolderHome(HomeLaws):
    def opened(self, place: Path) -> Home:
        return FolderHome(place / "home")


HOLDER = """
import sys
from sfumato.store.folder_home import FolderHome
with FolderHome(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_one_process_holds_a_folder_and_others_read_it(tmp_path: Path) -> None:
    path = tmp_path / "home"
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        with pytest.raises(FileInUse, match="home: must not be in use"):
            FolderHome(path)
        with HomeFiles(path) as files:
            assert files.heads().ledgers == {}
        holder.kill()
    FolderHome(path).close()


def test_a_folder_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "home"
    with FolderHome(path) as home, home.open_ledger("city", PLAN, JOB, None) as store:
        release_some(store, "u1", 1)
    for each in (path, path / "ledgers"):
        assert each.stat().st_mode & 0o777 == 0o700
    path.chmod(0o750)
    with pytest.raises(LedgerMismatch, match="nobody but its owner"):
        FolderHome(path)


def test_a_folder_of_other_things_is_no_home(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / "letters.txt").write_text("dear")
    with pytest.raises(LedgerMismatch, match="a new or empty folder"):
        FolderHome(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["letters.txt"]
    with pytest.raises(InvalidParameter, match="in a folder that exists"):
        FolderHome(tmp_path / "nowhere" / "home")
    for path, words in (
        (tmp_path / "none", "must be a folder"),
        (tmp_path, "must have a registry"),
    ):
        with pytest.raises(LedgerMismatch, match=words):
            HomeFiles(path)


def test_a_lost_registry_or_ledger_is_not_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "home"
    with FolderHome(path) as home, home.open_ledger("city", PLAN, JOB, None) as store:
        release_some(store, "u1", 1)
    (path / "ledgers" / "city.ledger").rename(tmp_path / "city.ledger")
    with FolderHome(path) as home:
        with pytest.raises(LedgerMismatch, match="must exist"):
            home.ledgers()
        with pytest.raises(LedgerMismatch, match="had 1 rows"):
            home.open_ledger("city", PLAN, JOB, None)
    (tmp_path / "city.ledger").rename(path / "ledgers" / "city.ledger")
    (path / "ledgers" / "town.ledger.head").touch()  # left by a run that began nothing
    with FolderHome(path) as home:
        assert [ledger.name for ledger in home.ledgers()] == ["city"]
    for lost in ("registry.db", "registry.db.head"):
        (path / lost).unlink()
        with pytest.raises(CorruptData, match="was lost"):
            FolderHome(path)


def test_a_place_is_named_by_one_word(tmp_path: Path) -> None:
    assert isinstance(open_home("memory:"), MemoryHome)
    with open_home(str(tmp_path / "home")) as home:
        assert isinstance(home, FolderHome)
    with pytest.raises(InvalidParameter, match="secret must be given for postgresql"):
        open_home("memory:", secret="file")


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"{}",
        b'{"registry": "x:00", "ledgers": {}, "time": ""}',
        b'{"registry": "1:00", "ledgers": {"a": "x"}, "time": ""}',
        b'{"registry": "1:00", "ledgers": {}, "time": "", "format": "sfumato anchor 2"}',
    ],
)
def test_other_documents_are_no_anchors(tmp_path: Path, document: bytes) -> None:
    path = tmp_path / "anchor.json"
    path.write_bytes(document)
    with pytest.raises(CorruptData, match=r"anchor\.json: an anchor must"):
        HomeAnchor.load(path)
