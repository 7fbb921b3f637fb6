"""A home in PostgreSQL: shared by nodes, copied to files, and brought back."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.store import postgres_schema
from sfumato.store.folder_home import HomeFiles
from sfumato.store.home import Home, HomeAnchor, open_home
from sfumato.store.home_backup import backup_home
from sfumato.store.home_check import check_home
from sfumato.store.home_restore import SpendLowered, Unanchored, restore_home
from sfumato.store.home_source import migrate_home, reading
from sfumato.store.keys import new_key
from sfumato.store.postgres_copy import restore_postgres
from sfumato.store.postgres_home import PostgresHome
from sfumato.store.protocol import Identity, LedgerMismatch, ReleaseClosed, Released
from sfumato.store.release_end import close_release
from sfumato.store.stream_homes import reading_homes
from tests.contracts.home_laws import HomeLaws, made_release, release_some
from tests.contracts.store_laws import JOB, PLAN, moments
from tests.servers import PrivatePostgres


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """The secret that all nodes share."""
    path = tmp_path / "values.key"
    new_key(path)
    return path


class TestPostgresHome(HomeLaws):
    @pytest.fixture(autouse=True)
    def place(self, database: str, secret: Path) -> None:
        self.url, self.secret = database, secret

    def opened(self, place: Path) -> Home:
        return open_home(self.url, self.secret)

    def test_two_nodes_see_one_home(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as one, self.opened(tmp_path) as other:
            assert one.shared
            with (
                one.open_ledger("city", PLAN, JOB, None) as here,
                other.open_ledger("city", PLAN, JOB, None) as there,
            ):
                release_some(here, "u1", 2)
                release_some(there, "u1", 1)
                one.registry.append("ann", "do", "it", b"")
            assert one.ledgers() == other.ledgers()
            assert one.heads().registry == other.heads().registry
            assert one.heads().ledgers["city"].startswith("3:")

    def test_another_node_answers_nothing_once_a_release_is_closed(self, tmp_path: Path) -> None:
        with (
            self.opened(tmp_path) as one,
            self.opened(tmp_path) as other,
            other.open_ledger("city", PLAN, JOB, None) as there,
            ThreadPoolExecutor(1) as threads,
        ):
            made_release(one, "city")
            with there.turn():  # it has looked, and nobody has closed anything
                assert not there.ended
                closing = threads.submit(close_release, one, "ann", "city")
                with pytest.raises(TimeoutError):
                    closing.result(0.3)
                release_some(there, "u1", 1)
            # Who closes waits for what was begun, and his entry knows of it.
            assert closing.result(60.0).last_head == str(there.front.head)
            with pytest.raises(ReleaseClosed):
                release_some(there, "u1", 1)
            assert there.ended and there.front.head.entries == 1
            with self.opened(tmp_path) as later:
                late = later.open_ledger("city", PLAN, JOB, None)
                with late, pytest.raises(ReleaseClosed):
                    release_some(late, "u1", 1)

    def test_two_nodes_that_write_at_once_agree_where_streams_belong(self, tmp_path: Path) -> None:
        streams = [f"s{number}" for number in range(100)]
        with (
            self.opened(tmp_path) as one,
            self.opened(tmp_path) as other,
            ThreadPoolExecutor(4) as threads,
        ):
            tasks = [(one, streams, "old"), (other, streams[::-1], "new")] * 2
            running = [threads.submit(home.settle, asked, to) for home, asked, to in tasks]
            found = [each.result() for each in running]
        with self.opened(tmp_path) as later:
            assert all(each == later.settled(streams) for each in found)

    def test_a_ledger_needs_the_secret_of_its_home(self, tmp_path: Path) -> None:
        with PostgresHome(self.url) as home:
            assert home.ledgers() == []
            with pytest.raises(InvalidParameter, match="key file that all nodes share"):
                home.open_ledger("city", PLAN, JOB, None)


RELEASED: list[Released] = ["1", 1, 1.0, "", None, -7, 0.1, "é ✓", "'); --\\N\t"]


@pytest.fixture
def filled(database: str, secret: Path) -> str:
    """A home with two ledgers, in one of them every kind of value."""
    with open_home(database, secret) as home:
        home.registry.append("ann", "access.begun", "access", b'{"pepper":"%s"}' % (b"5" * 64))
        with home.open_ledger("city", PLAN, JOB, "rules") as store:
            store.begin("live", Identity.EVENT)
            for value, (answer, after) in zip(RELEASED, moments("u1", 9, "live"), strict=True):
                changed = {**{name: getattr(answer, name) for name in answer.__slots__}}
                store.commit([type(answer)(**changed | {"released": value})], [after])
        grow(database, secret, "town", "u2", 3)
    return database


def grow(url: str, secret: Path, name: str, stream: str, count: int) -> None:
    """Release some more."""
    with open_home(url, secret) as home, home.open_ledger(name, PLAN, JOB, None) as store:
        store.begin("live", Identity.EVENT)
        there = store.position(stream)
        begun = 0 if there is None else there.sequence
        for answer, after in moments(stream, begun + count, "live")[begun:]:
            store.commit([answer], [after])


def heads(where: str) -> tuple[str, dict[str, str]]:
    """The heads of a home that is whole."""
    with reading(where) as files:
        report = check_home(files)
    assert report.problems == []
    return report.anchor.registry, dict(report.anchor.ledgers)


def backed(url: str, target: Path) -> Path:
    with reading(url) as files:
        backup_home(files, target)
    return target


def restored(
    backup: Path, url: str, anchor: HomeAnchor | Unanchored | None = Unanchored.ACCEPTED
) -> None:
    with HomeFiles(backup) as files:
        restore_postgres(files, url, anchor)


def emptied(url: str) -> str:
    with psycopg.connect(url, autocommit=True) as database:
        database.execute("SET client_min_messages = error")
        database.execute("DROP SCHEMA sfumato CASCADE")
    return url


def test_a_database_is_checked_and_copied_as_files(filled: str, tmp_path: Path) -> None:
    copy = backed(filled, tmp_path / "copy")
    registry, ledgers = heads(str(copy))
    assert registry.startswith("1:")
    assert {name: head[:2] for name, head in ledgers.items()} == {"city": "9:", "town": "3:"}
    assert heads(filled) == (registry, ledgers)
    with HomeFiles(copy) as files, files.ledger("city") as ledger:
        assert [answer.released for answer in ledger.history()] == RELEASED
        assert ledger.front.rules == "rules"


def test_a_changed_row_of_a_database_shows(filled: str, tmp_path: Path) -> None:
    with psycopg.connect(filled, autocommit=True) as database:
        database.execute("UPDATE sfumato.events SET leakage = 0 WHERE entry = 2")
    with reading(filled) as files:
        assert not check_home(files).passed
    with pytest.raises(CorruptData):
        backed(filled, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_backup_comes_back_into_an_empty_database_and_goes_on(
    filled: str, secret: Path, tmp_path: Path
) -> None:
    copy, due = backed(filled, tmp_path / "copy"), heads(filled)
    emptied(filled)
    with pytest.raises(SpendLowered, match="an empty place cannot tell"):
        restored(copy, filled, None)
    restored(copy, filled)
    assert heads(filled) == due
    grow(filled, secret, "city", "u1", 1)
    assert heads(filled)[1]["city"].startswith("10:")


def test_a_backup_comes_back_over_what_it_grew_from(
    filled: str, secret: Path, tmp_path: Path
) -> None:
    older = backed(filled, tmp_path / "older")
    grow(filled, secret, "city", "u1", 2)
    grow(filled, secret, "new", "u3", 1)
    newer, due = backed(filled, tmp_path / "newer"), heads(filled)
    emptied(filled)
    restored(older, filled)
    restored(newer, filled, None)
    assert heads(filled) == due
    restored(newer, filled, None)
    assert heads(filled) == due
    with pytest.raises(SpendLowered, match="does not go on from the head"):
        restored(older, filled)
    assert heads(filled) == due


def grew(url: str, secret: Path) -> None:
    grow(url, secret, "town", "u9", 1)


def has_another(url: str, secret: Path) -> None:
    grow(url, secret, "other", "u9", 1)


def acted(url: str, secret: Path) -> None:
    with PostgresHome(url) as home:
        home.registry.append("ann", "release.activated", "city", b"{}")


def spent(url: str, secret: Path) -> None:
    with psycopg.connect(url, autocommit=True) as database:
        database.execute("UPDATE sfumato.streams SET leakage = leakage + 1")


@pytest.mark.parametrize("change", [grew, has_another, acted, spent])
def test_a_database_that_knows_more_is_left_as_it_is(
    filled: str, secret: Path, tmp_path: Path, change: Callable[[str, Path], None]
) -> None:
    copy = backed(filled, tmp_path / "copy")
    change(filled, secret)
    with PostgresHome(filled) as home:
        before = home.heads()
    with pytest.raises(SpendLowered, match="what was released stays spent"):
        restored(copy, filled)
    with PostgresHome(filled) as home:
        assert (home.heads().registry, home.heads().ledgers) == (before.registry, before.ledgers)


def test_an_anchor_that_the_backup_does_not_reach_is_heeded(
    filled: str, secret: Path, tmp_path: Path
) -> None:
    copy = backed(filled, tmp_path / "copy")
    grow(filled, secret, "town", "u2", 1)
    with PostgresHome(filled) as home:
        late = home.heads()
    emptied(filled)
    with pytest.raises(SpendLowered, match="older than the anchor"):
        restored(copy, filled, late)


def homes(where: str) -> dict[str, str]:
    with reading(where) as files, reading_homes(files.streams_path) as found:
        return dict(found)


def test_where_streams_belong_is_copied_and_comes_back_and_never_moves(
    filled: str, secret: Path, tmp_path: Path
) -> None:
    with PostgresHome(filled) as home:
        home.settle(["u1"], "city")
    copy = backed(filled, tmp_path / "copy")
    assert homes(str(copy)) == {"u1": "city"}
    emptied(filled)
    with PostgresHome(filled) as home:
        home.settle(["u9"], "town")
    restored(copy, filled)
    assert homes(filled) == {"u1": "city", "u9": "town"}
    emptied(filled)
    with PostgresHome(filled) as home:
        home.settle(["u1"], "town")
    with pytest.raises(SpendLowered, match="belongs to another release"):
        restored(copy, filled)
    with PostgresHome(filled) as home:
        assert home.settled(["u1"]) == {"u1": "town"}
        assert home.ledgers() == []


def test_a_database_that_was_put_back_is_refused_by_a_node_that_saw_more(
    postgres: PrivatePostgres, filled: str, secret: Path
) -> None:
    name = filled.rpartition("/")[2]
    with psycopg.connect(postgres.url(), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}_old TEMPLATE {name}".encode())
    old = filled.replace(name, f"{name}_old")
    try:
        grow(filled, secret, "town", "u2", 1)
        with pytest.raises(CorruptData, match="did not grow from its head 4:"):
            grow(old, secret, "town", "u2", 1)
        with open_home(filled, secret) as home:
            home.registry.append("ann", "do", "it", b"")
        with pytest.raises(CorruptData, match=r"registry had 2 entries.*was put back"):
            open_home(old, secret)
        open_home(old, secret, secret.with_name("elsewhere")).close()  # a node that saw nothing
        grow(filled, secret, "town", "u2", 1)
    finally:
        with psycopg.connect(postgres.url(), autocommit=True) as server:
            server.execute(f"DROP DATABASE {name}_old WITH (FORCE)".encode())


def test_what_other_nodes_appended_is_kept_too(filled: str, secret: Path) -> None:
    with open_home(filled, secret) as home:
        with PostgresHome(filled) as other:  # keeps nothing itself
            other.registry.append("ann", "do", "it", b"")
        home.registry.entries(1)
    with psycopg.connect(filled, autocommit=True) as database:
        database.execute("DELETE FROM sfumato.registry WHERE number = 2")
    with pytest.raises(CorruptData, match="registry had 2 entries"):
        open_home(filled, secret)


def test_heads_are_kept_for_their_owner_alone(filled: str, secret: Path) -> None:
    folder = secret.with_name(f"{secret.name}.anchors")
    assert folder.stat().st_mode & 0o777 == 0o700
    files = {each.name for each in folder.iterdir()}
    assert files == {"registry.head", "city.ledger.head", "town.ledger.head"}
    folder.chmod(0o750)
    with pytest.raises(LedgerMismatch, match="nobody but its owner"):
        open_home(filled, secret)
    with pytest.raises(InvalidParameter, match="--anchor-folder"):
        open_home(filled, secret, secret / "below a file")


def test_a_home_moves_from_a_database_to_a_folder(filled: str, tmp_path: Path) -> None:
    copy = backed(filled, tmp_path / "copy")
    with HomeFiles(copy) as files:
        restore_home(files, tmp_path / "home", Unanchored.ACCEPTED)
    assert heads(str(tmp_path / "home")) == heads(filled)


def test_a_migration_says_what_it_did(database: str) -> None:
    assert migrate_home(database) == [
        f"tables of ledgers: version 0 to {len(postgres_schema.STEPS)}"
    ]
    assert migrate_home(database) == []


def test_a_database_without_a_home_is_only_looked_at(database: str) -> None:
    with pytest.raises(LedgerMismatch, match="must hold a home; it has none"), reading(database):
        pass
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT to_regnamespace('sfumato')").fetchone() == (None,)
