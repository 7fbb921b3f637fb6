import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sfumato.core.errors import CorruptData, SfumatoError
from sfumato.store.ledger_check import check_ledger
from sfumato.store.ledger_reader import LedgerReader
from sfumato.store.protocol import Job, LedgerMismatch, Store
from sfumato.store.sqlite import SqliteStore
from tests.contracts.store_laws import PLAN, HeldStoreLaws, answers_of, moments

PATIENCE = 60.0
HOLDER = """
import sys
from sfumato.store.sqlite import SqliteStore
with SqliteStore(sys.argv[1], sys.argv[2]):
    print("held", flush=True)
    sys.stdin.read()
"""


class TestSqliteStore(HeldStoreLaws):
    def opened(self, place: Path, plan: str, job: Job) -> Store:
        return SqliteStore(place / "city.ledger", plan, job=job)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a ledger may lie."""
    return tmp_path / "city.ledger"


def test_a_ledger_without_a_name_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with SqliteStore(None, PLAN) as store:
        ((answer, state),) = moments("u1", 1)
        store.commit([answer], [state])
        assert store.answers([answer.id]) == {answer.id: answer}
    assert list(tmp_path.iterdir()) == []


def test_a_state_that_cannot_be_stored_keeps_its_answers_out(path: Path) -> None:
    trouble = "CREATE TRIGGER t BEFORE INSERT ON streams BEGIN SELECT RAISE(ABORT, 'full'); END"
    ((answer, state),) = moments("u1", 1)
    with SqliteStore(path, PLAN) as store:
        store._database.execute(trouble)
        with pytest.raises((SfumatoError, sqlite3.Error)):
            store.commit([answer], [state])
        store._database.execute("DROP TRIGGER t")
        assert store.answers([answer.id]) == {}
        assert store.position("u1") is None
        store.commit([answer], [state])
        assert store.answers([answer.id]) == {answer.id: answer}


class FullDisk:
    """A connection whose commits fail while it is full; the transaction stays open then."""

    def __init__(self, inner: sqlite3.Connection) -> None:
        self.inner, self.full = inner, True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def execute(self, statement: str, *given: Any) -> Any:
        if self.full and statement == "COMMIT":
            raise sqlite3.OperationalError("disk I/O error")
        return self.inner.execute(statement, *given)


def test_what_a_failing_commit_left_open_is_never_read(path: Path) -> None:
    ((answer, state),) = moments("u1", 1)
    with SqliteStore(path, PLAN) as store:
        store._database = disk = FullDisk(store._database)  # type: ignore[assignment]
        with pytest.raises(CorruptData):
            store.commit([answer], [state])
        assert store.answers([answer.id]) == {} and store.position("u1") is None
        disk.full = False
        store.commit([answer], [state])
        assert store.answers([answer.id]) == {answer.id: answer}


@pytest.mark.parametrize("data", [b"person,place\n" * 500, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_no_ledger_is_refused_and_left_alone(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    with pytest.raises(CorruptData, match="not a readable ledger") as caught:
        SqliteStore(path, PLAN)
    assert str(caught.value).startswith(str(path))
    assert path.read_bytes() == data


def test_a_ledger_whose_first_page_is_damaged_is_refused(path: Path) -> None:
    with SqliteStore(path, PLAN) as store:
        for answer, state in moments("u1", 50):
            store.commit([answer], [state])
    damaged = bytearray(path.read_bytes())
    damaged[100:1000] = b"\xa5" * 900
    path.write_bytes(damaged)
    with pytest.raises(CorruptData, match="not a readable ledger"):
        SqliteStore(path, PLAN)


def test_a_ledger_of_another_version_is_refused(path: Path) -> None:
    SqliteStore(path, PLAN).close()
    with sqlite3.connect(path) as database:
        database.execute("UPDATE ledger SET version = 7")
    database.close()
    with pytest.raises(CorruptData, match="must have version 6; it has 7"):
        SqliteStore(path, PLAN)


def test_a_ledger_from_before_signals_is_read_and_goes_on(path: Path) -> None:
    history = [(replace(answer, signal=None), state) for answer, state in moments("u1", 9)]
    with SqliteStore(path, PLAN) as store:
        store.commit([answer for answer, _ in history[:6]], [history[5][1]])
    with sqlite3.connect(path) as database:
        database.execute("ALTER TABLE events DROP COLUMN signal")
        database.execute("UPDATE ledger SET version = 4")
    database.close()
    before = path.read_bytes()
    with LedgerReader(path) as reader:
        assert answers_of(reader) == [answer for answer, _ in history[:6]]
        assert not reader.signalled()
    assert not check_ledger(path).problems and path.read_bytes() == before
    with pytest.raises(LedgerMismatch, match="another"):
        SqliteStore(path, "another plan")
    assert path.read_bytes() == before
    last, state = moments("u1", 9)[8]
    for _ in range(2):  # the second time there is nothing to add
        with SqliteStore(path, PLAN) as store:
            if not store.moment("u1", 6):
                rest = [*(answer for answer, _ in history[6:8]), last]
                store.commit(rest, [state])
    with LedgerReader(path) as reader:
        assert answers_of(reader) == [*(answer for answer, _ in history[:8]), last]
        assert reader.signalled() and last.signal == 2
    assert not check_ledger(path).problems


@pytest.mark.parametrize("version", [1, 3])
def test_a_ledger_from_before_the_chain_is_refused_and_left_alone(path: Path, version: int) -> None:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE ledger (version INTEGER NOT NULL, plan TEXT NOT NULL)")
        database.execute("INSERT INTO ledger VALUES (?, ?)", (version, PLAN))
    database.close()
    before = path.read_bytes()
    with pytest.raises(CorruptData, match=f"it has {version}. Those of other versions"):
        SqliteStore(path, PLAN)
    assert path.read_bytes() == before


def test_a_database_of_somebody_else_is_refused_and_left_alone(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE friends (name TEXT)")
    database.close()
    before = path.read_bytes()
    with pytest.raises(CorruptData, match="not a readable ledger"):
        SqliteStore(path, PLAN)
    assert path.read_bytes() == before
    assert [other.name for other in path.parent.iterdir()] == [path.name]


def test_a_state_that_was_changed_by_hand_is_refused(path: Path) -> None:
    ((answer, state),) = moments("u1", 1)
    with SqliteStore(path, PLAN) as store:
        store.commit([answer], [state])
    with sqlite3.connect(path) as database:
        (blob,) = database.execute("SELECT state FROM streams").fetchone()
        changed = bytearray(blob)
        changed[len(blob) // 2] ^= 1
        database.execute("UPDATE streams SET state = ?", (bytes(changed),))
    database.close()
    with SqliteStore(path, PLAN) as store, pytest.raises(CorruptData):
        store.position("u1")


def test_a_ledger_needs_a_folder_that_exists(tmp_path: Path) -> None:
    with pytest.raises(LedgerMismatch, match="the folder of a ledger must exist"):
        SqliteStore(tmp_path / "missing" / "city.ledger", PLAN)


def test_two_processes_cannot_hold_one_ledger_at_once(path: Path) -> None:
    ((answer, state),) = moments("u1", 1)
    with SqliteStore(path, PLAN) as store:
        store.commit([answer], [state])
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path), PLAN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(SfumatoError) as caught:
            SqliteStore(path, PLAN)
        assert str(caught.value).startswith(str(path))
    finally:
        holder.communicate(timeout=PATIENCE)
    with SqliteStore(path, PLAN) as store:
        assert answers_of(store) == [answer]
