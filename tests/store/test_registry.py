import contextlib
import sqlite3
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from sfumato.core.errors import CorruptData, FileInUse
from sfumato.store.chain import head_file
from sfumato.store.postgres_registry import PostgresRegistry
from sfumato.store.protocol import LedgerMismatch, StoreUnavailable
from sfumato.store.registry import MemoryRegistry, Registry, RegistryMoved
from sfumato.store.sqlite_registry import RegistryReader, SqliteRegistry
from tests.contracts.registry_laws import LastingRegistryLaws, RegistryLaws, noon
from tests.store.test_sqlite import FullDisk


class TestMemoryRegistry(RegistryLaws):
    def opened(self, place: Path) -> Registry:
        return MemoryRegistry(noon)


def file_of(place: Path) -> Path:
    return place / "registry.db"


class TestSqliteRegistry(LastingRegistryLaws):
    def opened(self, place: Path) -> Registry:
        return SqliteRegistry(file_of(place), noon)

    def change(self, place: Path, statement: str) -> None:
        with contextlib.closing(sqlite3.connect(file_of(place))) as database:
            database.execute(statement.format("entries"))
            database.commit()


class TestPostgresRegistry(LastingRegistryLaws):
    @pytest.fixture(autouse=True)
    def empty(self, database: str) -> None:
        self.url = database

    def opened(self, place: Path) -> Registry:
        return PostgresRegistry(self.url, noon)

    def change(self, place: Path, statement: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as database:
            database.execute(statement.format("sfumato.registry").encode())

    def test_two_nodes_share_one_log(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as one, self.opened(tmp_path) as other:
            first = one.append("ann", "do", "first", b"")
            with pytest.raises(RegistryMoved):
                other.append("bob", "do", "second", b"", after=0)
            second = other.append("bob", "do", "second", b"", after=1)
            assert one.entries() == other.entries() == [first, second]
            assert one.head == other.head

    def test_a_lost_connection_is_made_anew(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as registry:
            registry.append("ann", "do", "first", b"")
            others = "pid <> pg_backend_pid() AND datname = current_database()"
            with psycopg.connect(self.url, autocommit=True) as database:
                database.execute(
                    f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE {others}"
                )
            registry.append("ann", "do", "third", b"")
            assert [entry.name for entry in registry.entries()] == ["first", "third"]

    def test_a_password_is_not_quoted(self, tmp_path: Path) -> None:
        with pytest.raises(StoreUnavailable) as caught:
            PostgresRegistry("postgresql://ann:topsecret@127.0.0.1:1/none?connect_timeout=1")
        assert "topsecret" not in str(caught.value)


# A file -------------------------------------------------------------------------------------------

HOLDER = """
import sys
from sfumato.store.sqlite_registry import SqliteRegistry
with SqliteRegistry(sys.argv[1]) as registry:
    registry.append("ann", "do", "it", b"")
    print("held", flush=True)
    sys.stdin.read()
"""


def test_one_process_holds_a_registry_and_others_read_it(tmp_path: Path) -> None:
    path = file_of(tmp_path)
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        with pytest.raises(FileInUse, match="another run"):
            SqliteRegistry(path)
        with RegistryReader(path) as reader:
            assert [entry.name for entry in reader.entries()] == ["it"]
        holder.kill()
    with SqliteRegistry(path) as registry:
        assert registry.head.entries == 1


def test_what_a_failing_commit_left_open_is_never_read(tmp_path: Path) -> None:
    with SqliteRegistry(file_of(tmp_path), noon) as registry:
        registry._database = disk = FullDisk(registry._database)  # type: ignore[assignment]
        with pytest.raises(CorruptData):
            registry.append("ann", "greet", "bob", b"")
        assert registry.head.entries == 0 and registry.entries() == []
        disk.full = False
        assert registry.append("ann", "greet", "bob", b"").number == 1


def test_an_older_copy_in_the_place_of_a_registry_is_refused(tmp_path: Path) -> None:
    path = file_of(tmp_path)
    with SqliteRegistry(path) as registry:
        registry.append("ann", "do", "first", b"")
    older = path.read_bytes()
    with SqliteRegistry(path) as registry:
        registry.append("ann", "revoke", "first", b"")
    path.write_bytes(older)
    for kind in (SqliteRegistry, RegistryReader):
        with pytest.raises(CorruptData, match="rolled back"):
            kind(path)
    path.unlink()
    with pytest.raises(CorruptData, match="it is lost, but its head was"):
        SqliteRegistry(path)
    path.touch()
    with pytest.raises(CorruptData, match="rolled back"):
        SqliteRegistry(path)


def test_a_copy_alone_is_whole_and_is_read(tmp_path: Path) -> None:
    with SqliteRegistry(file_of(tmp_path)) as registry:
        made = registry.append("ann", "do", "first", b"")
        copy = tmp_path / "copy.db"
        copy.write_bytes(file_of(tmp_path).read_bytes())
        with RegistryReader(copy) as reader:
            assert reader.entries() == [made]


def test_other_files_are_no_registry(tmp_path: Path) -> None:
    with pytest.raises(LedgerMismatch, match="must exist"):
        RegistryReader(tmp_path / "none.db")
    with pytest.raises(LedgerMismatch, match="folder of a registry must exist"):
        SqliteRegistry(tmp_path / "nowhere" / "registry.db")
    path = tmp_path / "other.db"
    path.write_bytes(b"not a database at all" * 99)
    with pytest.raises(CorruptData, match="not a usable registry"):
        SqliteRegistry(path)
    with SqliteRegistry(file_of(tmp_path)):
        pass
    with contextlib.closing(sqlite3.connect(file_of(tmp_path))) as database:
        database.execute("CREATE TABLE more (one)")
    with pytest.raises(CorruptData, match="its tables are not those of a registry"):
        SqliteRegistry(file_of(tmp_path))


def test_a_registry_of_another_version_or_beginning_is_refused(tmp_path: Path) -> None:
    for column, words in (("name", "must have version 1"), ("content", "beginning was changed")):
        path = tmp_path / f"{column}.db"
        with SqliteRegistry(path):
            pass
        with contextlib.closing(sqlite3.connect(path)) as database:
            value = "'2'" if column == "name" else "x'00'"
            database.execute(f"UPDATE entries SET {column} = {value} WHERE number = 0")
            database.commit()
        with pytest.raises(CorruptData, match=words):
            RegistryReader(path)


def test_only_its_owner_reads_it(tmp_path: Path) -> None:
    with SqliteRegistry(file_of(tmp_path)):
        for path in (file_of(tmp_path), head_file(file_of(tmp_path))):
            assert path.stat().st_mode & 0o777 == 0o600
