"""A ledger that was tampered with, rolled back or torn is found out; a copy of it is whole."""

import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import msgspec
import pytest

from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.store.chain import head_file
from sfumato.store.ledger_check import backup_ledger, check_ledger, checked
from sfumato.store.ledger_reader import LedgerReader
from sfumato.store.protocol import Head, Identity, LedgerMismatch
from sfumato.store.sqlite import SqliteStore
from tests.contracts.store_laws import PLAN, moments

Tamper = Callable[[sqlite3.Connection], object]


def filled(path: Path, count: int = 6, streams: tuple[str, ...] = ("u1", "u2")) -> Path:
    """A ledger with some answers of some streams, by turns."""
    histories = [moments(stream, count) for stream in streams]
    with SqliteStore(path, PLAN) as store:
        for now in zip(*histories, strict=True):
            store.commit([answer for answer, _ in now], [state for _, state in now])
    return path


def at_once(path: Path, count: int = 6, streams: tuple[str, ...] = ("u1", "u2")) -> Path:
    """The same in one commit: many rows in a link."""
    histories = [moments(stream, count) for stream in streams]
    with SqliteStore(path, PLAN) as store:
        answers = [answer for history in histories for answer, _ in history]
        store.commit(answers, [history[-1][1] for history in histories])
    return path


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return filled(tmp_path / "city.ledger")


# Tampering ---------------------------------------------------------------------------------------


def swapped(database: sqlite3.Connection) -> None:
    """Two answers of one stream change places, and nothing else."""
    one, other = database.execute(
        "SELECT entry, released, leakage FROM events WHERE stream = 'u1' AND sequence IN (2, 3)"
    ).fetchall()
    for entry, released, sip in ((one[0], *other[1:]), (other[0], *one[1:])):
        database.execute(
            "UPDATE events SET released = ?, leakage = ? WHERE entry = ?", (released, sip, entry)
        )


def swapped_rows(database: sqlite3.Connection) -> None:
    """Two whole rows change places."""
    for old, new in ((3, 99), (5, 3), (99, 5)):
        database.execute("UPDATE events SET entry = ? WHERE entry = ?", (new, old))


def forgotten_end(database: sqlite3.Connection) -> None:
    """The last row of a stream is gone, and the front says so."""
    database.execute("DELETE FROM events WHERE entry = 12")
    (head,) = database.execute("SELECT head FROM events WHERE entry = 11").fetchone()
    database.execute("UPDATE ledger SET entries = 11, head = ?", (head,))


def moved_end(database: sqlite3.Connection) -> None:
    """The hash of a link stands a row earlier."""
    (own,) = database.execute("SELECT hash FROM events WHERE entry = 12").fetchone()
    database.execute("UPDATE events SET hash = x'' WHERE entry = 12")
    database.execute("UPDATE events SET hash = ? WHERE entry = 11", (own,))


def with_row(entry: int, stream: str, sequence: int = 0, ends: bool = False) -> Tamper:
    """One more row, of a number that no commit gives; it may be a link of its own."""
    tail = "hash, head" if ends else "x'', x''"
    query = f"""INSERT INTO events SELECT ?, 'more', source, place, ?, ?, outcome, released,
        leakage, model_free, batch, time, tag, digest, {tail}, signal
        FROM events WHERE entry = 12"""
    return lambda database: database.execute(query, (entry, stream, sequence))


def instead(database: sqlite3.Connection) -> None:
    """A row of a number below 1 stands for another: there are as many as before."""
    database.execute("DELETE FROM events WHERE entry = 4")
    with_row(-4, "u3")(database)


def with_state(database: sqlite3.Connection) -> None:
    """The state of a stream once more, for a stream without a name."""
    columns = "sequence, leakage, model_free, state, hash"
    database.execute(f"INSERT INTO streams SELECT '', {columns} FROM streams WHERE stream = 'u1'")


TAMPERINGS: dict[str, Tamper] = {
    "an edited answer": lambda d: d.execute("UPDATE events SET released = 7 WHERE entry = 4"),
    "an edited price": lambda d: d.execute("UPDATE events SET leakage = .2 WHERE entry = 4"),
    "an edited signal": lambda d: d.execute("UPDATE events SET signal = 9 WHERE entry = 3"),
    "a lost signal": lambda d: d.execute("UPDATE events SET signal = NULL WHERE entry = 3"),
    "an added signal": lambda d: d.execute("UPDATE events SET signal = 0 WHERE entry = 1"),
    "an edited first row": lambda d: d.execute("UPDATE events SET model_free = 9 WHERE entry = 1"),
    "an edited last row": lambda d: d.execute("UPDATE events SET leakage = 0 WHERE entry = 12"),
    "another id": lambda d: d.execute("UPDATE events SET id = 'new' WHERE entry = 4"),
    "another digest": lambda d: d.execute("UPDATE events SET tag = x'00' WHERE entry = 4"),
    "a deleted row": lambda d: d.execute("DELETE FROM events WHERE entry = 4"),
    "a deleted last row": lambda d: d.execute("DELETE FROM events WHERE entry = 12"),
    "a forgotten end": forgotten_end,
    "swapped answers": swapped,
    "swapped rows": swapped_rows,
    "a cheaper state": lambda d: d.execute("UPDATE streams SET leakage = 0 WHERE stream = 'u1'"),
    "an older state": lambda d: d.execute("UPDATE streams SET sequence = 5 WHERE stream = 'u1'"),
    "a lost state": lambda d: d.execute("DELETE FROM streams WHERE stream = 'u1'"),
    "a lost hash": lambda d: d.execute("UPDATE events SET hash = x'' WHERE entry = 6"),
    "a lost head": lambda d: d.execute("UPDATE events SET head = x'' WHERE entry = 12"),
    "an added hash": lambda d: d.execute("UPDATE events SET hash = zeroblob(32) WHERE entry = 3"),
    "an added head": lambda d: d.execute("UPDATE events SET head = zeroblob(32) WHERE entry = 3"),
    "a moved end of a link": moved_end,
    "a row 0": with_row(0, "u3"),
    "a row below 0": with_row(-7, "u3"),
    "a row below 0 that ends a link": with_row(-7, "u3", ends=True),
    "a row below 0 of a known stream": with_row(-7, "u1", 6),
    "a moment below 0": with_row(-7, "u1", -1),
    "a row after the last": with_row(13, "u3"),
    "a row far after the last": with_row(99, "u3"),
    "a row below 0 for another": instead,
    "a state without a stream": with_state,
    "another front": lambda d: d.execute("UPDATE ledger SET entries = 11"),
}


@pytest.mark.parametrize("made", [filled, at_once])
@pytest.mark.parametrize("anchored", ["with its head", "alone"])
@pytest.mark.parametrize("name", TAMPERINGS)
def test_tampering_is_found_by_a_check(
    tmp_path: Path, name: str, anchored: str, made: Callable[[Path], Path]
) -> None:
    ledger = made(tmp_path / "city.ledger")
    if anchored == "alone":
        head_file(ledger).unlink()
    assert check_ledger(ledger).passed
    with sqlite3.connect(ledger) as database:
        TAMPERINGS[name](database)
    database.close()
    report = check_ledger(ledger)
    assert not report.passed
    assert report.problem_count >= 1


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("stream, sequence", [("u3", 0), ("u1", 6), ("u1", -1)])
def test_a_row_outside_of_the_chain_is_never_read(
    ledger: Path, stream: str, sequence: int, ends: bool
) -> None:
    with sqlite3.connect(ledger) as database:
        with_row(-7, stream, sequence, ends)(database)
    database.close()
    with LedgerReader(ledger) as reader:
        with pytest.raises(CorruptData, match="row -7 stands outside"):
            reader.answers(["more"])
        if sequence < 0:
            assert reader.moment(stream, sequence) is None
        else:
            with pytest.raises(CorruptData, match="row -7 stands outside"):
                reader.moment(stream, sequence)
        assert not checked(reader).passed
        with pytest.raises(CorruptData, match="moment by moment"):
            reader.between(stream, sequence, sequence + 1)


def test_after_a_check_only_what_it_saw_is_read(ledger: Path) -> None:
    with LedgerReader(ledger) as reader:
        assert checked(reader).passed and reader.walked == {"u1": 6, "u2": 6}
        reader.walked = {"u1": 4}
        assert [answer.sequence for answer in reader.between("u1", -3, 9)] == [0, 1, 2, 3]
        assert reader.between("u2", 0, 6) == []
        assert reader.moment("u1", 3) is not None
        assert [reader.moment("u1", 4), reader.moment("u2", 0)] == [None, None]


def test_an_index_that_leads_elsewhere_is_found(ledger: Path) -> None:
    turns = """UPDATE events SET sequence = -2 WHERE stream = 'u1' AND sequence = 2;
        UPDATE events SET sequence = 2 WHERE stream = 'u1' AND sequence = 3;
        UPDATE events SET sequence = 3 WHERE stream = 'u1' AND sequence = -2;"""
    database = sqlite3.connect(ledger)
    index = database.execute("SELECT * FROM sqlite_master WHERE name = 'moments'").fetchone()
    database.executescript(turns)
    forget = "DELETE FROM sqlite_master WHERE name = 'moments'"
    database.executescript(f"PRAGMA writable_schema = ON; {forget}")
    database.close()
    database = sqlite3.connect(ledger)  # it knows no index now, and leaves it as it is
    database.executescript(f"{turns} PRAGMA writable_schema = ON")
    with database:
        database.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", index)
    database.close()
    report = check_ledger(ledger)
    assert report.problems == ["the file is damaged, or its indexes do not fit its rows"]


FORMS = {
    "a trigger": """CREATE TRIGGER more AFTER INSERT ON events
        BEGIN UPDATE events SET released = 7 WHERE entry = new.entry; END""",
    "a view": "CREATE VIEW more AS SELECT * FROM events",
    "a view in the place of a table": """ALTER TABLE events RENAME TO more;
        CREATE VIEW events AS SELECT * FROM more""",
    "a further table": "CREATE TABLE more (a)",
    "a further index": "CREATE INDEX more ON events (released)",
    "a lost index": "DROP INDEX moments",
    "a further column": "ALTER TABLE streams ADD COLUMN more TEXT",
    "two fronts": "INSERT INTO ledger SELECT * FROM ledger",
    "another version": "UPDATE ledger SET version = 4",
    "another identity": "UPDATE ledger SET identity = 'name'",
}


@pytest.mark.parametrize("name", FORMS)
def test_a_ledger_of_another_form_is_refused_by_all_who_open_it(ledger: Path, name: str) -> None:
    database = sqlite3.connect(ledger)
    database.executescript(FORMS[name])
    database.close()
    told = "its tables are not|it must have one front|its events are known by is nothing"
    with pytest.raises(CorruptData, match=told):
        check_ledger(ledger)
    with pytest.raises(CorruptData, match=told):
        SqliteStore(ledger, PLAN)


RULES = {
    "another rule": 'UPDATE ledger SET rules = \'{"columns":["user"]}\'',
    "no rules": "UPDATE ledger SET rules = NULL",
    "another job": "UPDATE ledger SET job = 'realtime'",
    "an id as it was before rules were in it": "UPDATE ledger SET id = substr(id, 1, 16)",
}


@pytest.mark.parametrize("name", RULES)
def test_changed_rules_are_found_by_all_who_open_a_ledger(tmp_path: Path, name: str) -> None:
    ledger = tmp_path / "city.ledger"
    history = moments("u1", 2)
    with SqliteStore(ledger, PLAN, rules='{"columns":["person"]}') as store:
        store.commit([answer for answer, _ in history], [history[-1][1]])
    assert check_ledger(ledger).passed
    with sqlite3.connect(ledger) as database:
        database.execute(RULES[name])
    database.close()
    told = "its rules are not those|its last row is not|moments 0 to 1 of stream 'u1' was changed"
    with pytest.raises(CorruptData, match=told):
        SqliteStore(ledger, PLAN)
    try:
        assert not check_ledger(ledger).passed
    except CorruptData as problem:
        assert "its rules are not those" in str(problem)


@pytest.mark.parametrize("told", [0, 2, 4])
def test_how_many_rows_of_an_input_were_answered_is_counted(tmp_path: Path, told: int) -> None:
    ledger = tmp_path / "city.ledger"
    history = moments("u1", 3)
    with SqliteStore(ledger, PLAN) as store:
        store.begin("live.csv", Identity.EVENT)
        store.commit([answer for answer, _ in history], [history[-1][1]])
    assert check_ledger(ledger).inputs == {"live.csv": 3}
    with sqlite3.connect(ledger) as database:
        database.execute("UPDATE inputs SET answered = ?", (told,))
    database.close()
    assert check_ledger(ledger).problems == [f"input 'live.csv' must have {told} rows; it has 3"]


def refuse(path: Path, answers: int) -> None:
    """A run that answers some rows, and then refuses one."""
    with SqliteStore(path, PLAN) as store:
        store.begin("live.csv", Identity.EVENT)
        for answer, after in moments("u1", answers):
            store.commit([answer], [after])
        raise ValueError("refused")


def test_what_is_refused_before_its_first_answer_leaves_no_ledger(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="refused"):
        refuse(tmp_path / "city.ledger", 0)
    assert list(tmp_path.iterdir()) == []


def test_what_is_refused_after_an_answer_leaves_its_ledger(tmp_path: Path) -> None:
    ledger = tmp_path / "city.ledger"
    with pytest.raises(ValueError, match="refused"):
        refuse(ledger, 1)
    with pytest.raises(LedgerMismatch, match="answered before"):
        refuse(ledger, 1)
    assert check_ledger(ledger).rows == 1


def test_a_refusal_removes_nothing_that_was_there_before(tmp_path: Path) -> None:
    ledger = tmp_path / "city.ledger"
    with SqliteStore(ledger, PLAN) as store:
        store.begin("live.csv", Identity.EVENT)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ValueError, match="refused"):
        refuse(ledger, 0)
    assert {path.name for path in tmp_path.iterdir()} == set(before)
    ledger.unlink()
    head_file(ledger).unlink()
    with pytest.raises(ValueError, match="refused"):
        refuse(ledger, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["city.ledger.key"]
    assert (tmp_path / "city.ledger.key").read_bytes() == before["city.ledger.key"]


def test_a_head_that_is_removed_while_it_is_taken_is_not_held(tmp_path: Path) -> None:
    ledger = tmp_path / "city.ledger"
    opened = os.open

    def removed(path: Path, *how: int) -> int:
        handle = opened(path, *how)
        os.unlink(path)
        return handle

    with (
        mock.patch("sfumato.store.chain.os.open", removed),
        pytest.raises(LedgerMismatch, match="in use"),
    ):
        SqliteStore(ledger, PLAN)


@pytest.mark.parametrize("name", ["a deleted row", "an edited last row", "a forgotten end"])
def test_a_release_never_goes_on_with_a_ledger_that_lost_rows(ledger: Path, name: str) -> None:
    with sqlite3.connect(ledger) as database:
        TAMPERINGS[name](database)
    database.close()
    with pytest.raises(CorruptData):
        SqliteStore(ledger, PLAN)


EDITS = {
    "free rows": "UPDATE events SET leakage = 0, model_free = 0 WHERE stream = 'u1'",
    "another answer": "UPDATE events SET released = 7 WHERE stream = 'u1' AND sequence = 1",
    "another id": "UPDATE events SET id = 'new' WHERE stream = 'u1' AND sequence = 1",
    "another time": "UPDATE events SET time = '1' WHERE stream = 'u1' AND sequence = 1",
    "another stream": "UPDATE events SET stream = 'u3' WHERE stream = 'u1' AND sequence = 0",
    "a cheaper state": "UPDATE streams SET leakage = 0, model_free = 0 WHERE stream = 'u1'",
    "a lost state": "DELETE FROM streams WHERE stream = 'u1'",
}


@pytest.mark.parametrize("made", [filled, at_once])
@pytest.mark.parametrize("name", EDITS)
def test_a_stream_is_never_continued_over_an_edited_row(
    tmp_path: Path, name: str, made: Callable[[Path], Path]
) -> None:
    ledger = made(tmp_path / "city.ledger")
    with sqlite3.connect(ledger) as database:
        database.execute(EDITS[name])
    database.close()
    with SqliteStore(ledger, PLAN) as store:
        with pytest.raises(CorruptData, match="stream 'u1'"):
            store.position("u1")
        with pytest.raises(CorruptData, match="stream 'u1'"):
            store.ends(["u2", "u1", "nobody"])
        assert store.position("u2") is not None


def test_a_changed_answer_is_never_given_again(ledger: Path) -> None:
    with sqlite3.connect(ledger) as database:
        TAMPERINGS["an edited answer"](database)
    database.close()
    with SqliteStore(ledger, PLAN) as store:
        with pytest.raises(CorruptData, match="moment 1 of stream 'u2' was changed"):
            store.answers(["u2:1"])
        assert len(store.answers(["u1:0", "u2:0"])) == 2


def test_no_answer_of_a_link_with_a_changed_row_is_given_again(tmp_path: Path) -> None:
    ledger = at_once(tmp_path / "city.ledger", 150)
    with sqlite3.connect(ledger) as database:
        database.execute("UPDATE events SET released = 7 WHERE id = 'u1:70'")
    database.close()
    told = "one of the moments 64 to 127 of stream 'u1' was changed"
    with SqliteStore(ledger, PLAN) as store:
        for near in ("u1:64", "u1:70", "u1:127"):
            with pytest.raises(CorruptData, match=told):
                store.answers([near])
            with pytest.raises(CorruptData, match=told):
                store.moment("u1", int(near[3:]))
        with pytest.raises(CorruptData, match=told):
            list(store.rest("u1", 100))
        others = ["u1:63", "u1:128", "u1:149", "u2:70"]
        assert store.answers(others).keys() == set(others)
        assert [answer.sequence for answer in store.rest("u1", 140)] == [*range(140, 150)]


def test_a_state_put_back_is_never_continued(ledger: Path) -> None:
    (_, older), *_ = moments("u1", 1)
    with sqlite3.connect(ledger) as database:
        database.execute("UPDATE streams SET state = ? WHERE stream = 'u1'", (older.state,))
    database.close()
    with (
        SqliteStore(ledger, PLAN) as store,
        pytest.raises(CorruptData, match="is not the one of its last row"),
    ):
        store.position("u1")


def by_hand(path: Path) -> tuple[int, bytes]:
    """The head of a ledger, recomputed from its bare rows and the words of the format."""
    hashed = hashlib.sha256
    database = sqlite3.connect(path)
    id_, plan = database.execute("SELECT id, plan FROM ledger").fetchone()
    rows = database.execute("SELECT * FROM events ORDER BY entry").fetchall()
    assert {row[-1] for row in rows} == {None, 1, 2}
    database.close()
    head = hashed(b"sfumato ledger 4 ledger\0" + msgspec.msgpack.encode([id_, plan])).digest()
    last: dict[str, bytes] = {}
    link, links = b"", b""
    for *row, signal in rows:
        stream = row[4]
        begun = b"sfumato ledger 4 stream\0" + msgspec.msgpack.encode([id_, plan, stream])
        before = last.get(stream) or hashed(begun).digest()
        told = [] if signal is None else [signal]
        link += msgspec.msgpack.encode([*row[:-3], *told, row[-3]])
        if row[-2]:
            last[stream] = hashed(b"sfumato ledger 4 row\0" + before + link).digest()
            assert row[-2] == last[stream]
            link, links = b"", links + last[stream]
        if row[-1]:
            head = hashed(b"sfumato ledger 4 head\0" + head + links).digest()
            assert row[-1] == head
            links = b""
    assert not link and not links
    return len(rows), head


@pytest.mark.parametrize("count", [6, 63, 64, 65, 200])
def test_the_head_is_a_chain_over_all_rows(tmp_path: Path, count: int) -> None:
    for path in (filled(tmp_path / "turns.ledger", 6), at_once(tmp_path / "once.ledger", count)):
        assert Head(*by_hand(path)) == Head.read(check_ledger(path).head)
        assert check_ledger(path).passed


# Rolled back -------------------------------------------------------------------------------------


def grown(ledger: Path, count: int = 8) -> None:
    """Two more answers of each stream."""
    with SqliteStore(ledger, PLAN) as store:
        for stream in ("u1", "u2"):
            for answer, state in moments(stream, count)[6:]:
                store.commit([answer], [state])


def test_an_older_copy_in_the_place_of_a_ledger_is_refused(ledger: Path, tmp_path: Path) -> None:
    older = shutil.copy(ledger, tmp_path / "older")
    grown(ledger)
    shutil.copy(older, ledger)
    with pytest.raises(CorruptData, match="it has 12 rows, but 16 were committed"):
        SqliteStore(ledger, PLAN)
    assert not check_ledger(ledger).passed


def test_another_history_in_the_place_of_a_ledger_is_refused(ledger: Path, tmp_path: Path) -> None:
    other = filled(tmp_path / "other.ledger", count=9)
    shutil.copy(other, ledger)
    with pytest.raises(CorruptData, match="its rows are not those that were committed"):
        SqliteStore(ledger, PLAN)


def test_a_ledger_that_was_deleted_is_not_begun_again(ledger: Path) -> None:
    ledger.unlink()
    with pytest.raises(LedgerMismatch, match="is empty, but had 12 rows"):
        SqliteStore(ledger, PLAN)


def test_a_head_written_down_finds_what_no_file_beside_can(ledger: Path, tmp_path: Path) -> None:
    older, at_first = tmp_path / "older.ledger", check_ledger(ledger).head
    for name in (ledger, head_file(ledger)):
        shutil.copy(name, older.with_name(name.name.replace("city", "older")))
    grown(ledger)
    now = check_ledger(ledger).head
    assert check_ledger(older).passed
    for head, expected in ((at_first, False), (now, True)):
        assert check_ledger(older, Head.read(head)).passed != expected
        assert check_ledger(ledger, Head.read(head)).passed
    assert Head.read(now).entries == 16


def test_a_commit_that_the_head_missed_is_no_rollback(ledger: Path) -> None:
    """A kill between the commit and the head leaves one more row than the head says."""
    before = head_file(ledger).read_bytes()
    grown(ledger)
    head_file(ledger).write_bytes(before)
    assert check_ledger(ledger).passed
    with SqliteStore(ledger, PLAN) as store:
        assert store.count() == 16
    assert head_file(ledger).read_bytes() != before


KILLED = """
import os, signal, sys
sys.path.insert(0, os.getcwd())
from pathlib import Path
from sfumato.store.sqlite import SqliteStore
from tests.contracts.store_laws import PLAN, moments
store = SqliteStore(Path(sys.argv[1]), PLAN)
for answer, state in moments("u1", 8)[6:]:
    store.commit([answer], [state])
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(ledger: Path) -> Path:
    """A ledger whose writer was killed after two commits; its log."""
    subprocess.run([sys.executable, "-c", KILLED, str(ledger)], check=False)
    log = ledger.with_name(ledger.name + "-wal")
    assert log.stat().st_size > 0
    return log


def test_a_killed_writer_loses_nothing(ledger: Path) -> None:
    killed(ledger)
    assert check_ledger(ledger).rows == 14
    with SqliteStore(ledger, PLAN) as store:
        assert store.count() == 14


WRITING = """
import os, sys
sys.path.insert(0, os.getcwd())
from sfumato.store.sqlite import SqliteStore
from tests.contracts.store_laws import PLAN, by_columns, moments
histories = [moments(f"v{i}", 4_000) for i in range(10)]
with SqliteStore(sys.argv[1], PLAN) as store:
    for first in range(0, 4_000, 100):
        some = [history[first : first + 100] for history in histories]
        columns = by_columns([a for part in some for a, _ in part], [part[-1][1] for part in some])
        store.commit_columns(*columns)
        print(store.front.head, flush=True)
"""


@pytest.mark.parametrize("after", [1, 3, 4])
def test_a_writer_of_columns_that_is_killed_loses_no_batch_and_halves_none(
    ledger: Path, after: int
) -> None:
    words = [sys.executable, "-c", WRITING, str(ledger)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        told = [Head.read(writer.stdout.readline()) for _ in range(after)]
        writer.kill()
    report = check_ledger(ledger, told[-1])
    assert report.problems == []
    rows = report.rows - 12
    assert rows >= 1_000 * after and rows % 1_000 == 0
    with SqliteStore(ledger, PLAN) as store:
        assert {moments for name, moments in store.streams() if name[0] == "v"} == {rows // 10}
        ((answer, state),) = moments("w", 1)
        store.commit([answer], [state])
    assert check_ledger(ledger, told[0]).passed


@pytest.mark.parametrize("loss", ["truncated", "cut in two", "removed"])
def test_a_log_that_is_lost_is_noticed(ledger: Path, loss: str) -> None:
    log = killed(ledger)
    match loss:
        case "truncated":
            os.truncate(log, 0)
        case "cut in two":
            os.truncate(log, log.stat().st_size // 2)
        case _:
            log.unlink()
    assert not check_ledger(ledger).passed
    with pytest.raises(CorruptData, match="but 14 were committed: it was rolled back, or lost"):
        SqliteStore(ledger, PLAN)


def test_a_copy_without_its_log_is_noticed(ledger: Path, tmp_path: Path) -> None:
    killed(ledger)
    copy = Path(shutil.copy(ledger, tmp_path / "copy.ledger"))
    with pytest.raises(CorruptData, match="without its -wal file"):
        SqliteStore(copy, PLAN)
    assert not check_ledger(copy).passed
    shutil.copy(f"{ledger}-wal", f"{copy}-wal")
    assert check_ledger(copy).rows == 14


def test_a_link_to_a_ledger_is_the_ledger(ledger: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(ledger)
    older = shutil.copy(ledger, tmp_path / "older")
    grown(ledger)
    assert check_ledger(link).head == check_ledger(ledger).head
    shutil.copy(older, ledger)
    assert not check_ledger(link).passed
    (tmp_path / "second").hardlink_to(ledger)
    with pytest.raises(LedgerMismatch, match="must have one name"):
        SqliteStore(ledger, PLAN)


# Reading and copying -----------------------------------------------------------------------------


def test_reading_changes_nothing_and_needs_no_right_to_write(ledger: Path) -> None:
    folder = ledger.parent
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    ledger.chmod(0o400)
    folder.chmod(0o500)
    try:
        assert check_ledger(ledger).passed
        with LedgerReader(ledger, PLAN) as reader:
            assert reader.count() == 12
    finally:
        folder.chmod(0o700)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("content", ["nothing", "an empty file"])
def test_reading_makes_no_ledger(tmp_path: Path, content: str) -> None:
    path = tmp_path / "city.ledger"
    if content == "an empty file":
        path.touch()
    with pytest.raises((CorruptData, LedgerMismatch)):
        check_ledger(path)
    assert [other.name for other in tmp_path.iterdir()] == ([path.name] if path.exists() else [])


def test_a_ledger_in_use_is_copied_with_its_log(ledger: Path, tmp_path: Path) -> None:
    with SqliteStore(ledger, PLAN) as store:
        for answer, state in moments("u1", 8)[6:]:
            store.commit([answer], [state])
        report = backup_ledger(ledger, tmp_path / "copy.ledger")
    assert report.rows == 14
    assert (tmp_path / "copy.ledger").stat().st_mode & 0o077 == 0
    with SqliteStore(tmp_path / "copy.ledger", PLAN) as copy:
        assert copy.count() == 14
        assert str(copy.front.head) == report.head == check_ledger(ledger).head


@pytest.mark.parametrize("there", ["a file", "a link"])
def test_a_copy_never_replaces_anything(ledger: Path, tmp_path: Path, there: str) -> None:
    target = tmp_path / "copy.ledger"
    target.write_text("mine") if there == "a file" else target.symlink_to(tmp_path / "gone")
    with pytest.raises(InvalidParameter, match="be a new file"):
        backup_ledger(ledger, target)
    assert target.is_symlink() or target.read_text() == "mine"
    assert not (tmp_path / "gone").exists()


def test_no_copy_is_made_of_a_damaged_ledger(ledger: Path, tmp_path: Path) -> None:
    with sqlite3.connect(ledger) as database:
        TAMPERINGS["an edited answer"](database)
    database.close()
    with pytest.raises(CorruptData):
        backup_ledger(ledger, tmp_path / "copy.ledger")
    assert not (tmp_path / "copy.ledger").exists()
